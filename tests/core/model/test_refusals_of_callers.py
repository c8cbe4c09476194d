"""Whose error a refusal of the model's server is: the caller's for what he chose, else the administrator's."""

from __future__ import annotations

import pytest

from datafari_rag.core.errors import Refusal, Rejection
from datafari_rag.core.model.replies import failure_for
from datafari_rag.core.model.servers import callers_error

SECRET = "the words of a document"


def _error(message: str = SECRET, **more: object) -> dict[str, object]:
    return {"message": message, **more}


BLAMED = [
    pytest.param(
        Rejection(404, error=_error(type="invalid_request_error", code="model_not_found")),
        Refusal(404, "model_not_found", "invalid_request_error", "model"),
        id="a model that does not exist, by its code",
    ),
    pytest.param(
        Rejection(404, error=_error('model "gpt-9" not found, try pulling it first')),
        Refusal(404, "model_not_found", "invalid_request_error", "model"),
        id="by its name in the words of another server",
    ),
    pytest.param(
        Rejection(400, error=_error(code="context_length_exceeded", param="messages", type="invalid_request_error")),
        Refusal(400, "context_length_exceeded", "invalid_request_error", "messages"),
        id="too much for the window, by its code",
    ),
    pytest.param(
        Rejection(
            400, error=_error("This model's maximum context length is 4096 tokens.", code=400, type="BadRequest")
        ),
        Refusal(400, "context_length_exceeded", "BadRequest", "messages"),
        id="by its words, where the code is a number",
    ),
    pytest.param(
        Rejection(400, error=_error(param="top_p", code="unsupported_value", type="invalid_request_error")),
        Refusal(400, "unsupported_value", "invalid_request_error", "top_p"),
        id="a value that he sent",
    ),
    pytest.param(
        Rejection(422, error=_error(param="max_completion_tokens")),
        Refusal(422, "invalid_value", "invalid_request_error", "max_completion_tokens"),
        id="under the newer name of it",
    ),
]


@pytest.mark.parametrize(("rejection", "refusal"), BLAMED)
def test_it_is_the_callers(rejection: Rejection, refusal: Refusal) -> None:
    chosen = {"model", "messages", "top_p", "max_tokens"}
    error = callers_error(failure_for(rejection, now_s=0), chosen=chosen, model="gpt-9")
    assert error is not None and error.refusal == refusal
    assert SECRET not in f"{error.reason} {error.log}"


@pytest.mark.parametrize(("rejection", "refusal"), BLAMED)
def test_it_is_not_where_he_chose_nothing(rejection: Rejection, refusal: Refusal) -> None:
    assert callers_error(failure_for(rejection, now_s=0), chosen=(), model="gpt-9") is None


@pytest.mark.parametrize(
    "rejection",
    [
        pytest.param(Rejection(401, error=_error(code="invalid_api_key")), id="our key"),
        pytest.param(Rejection(500, error=_error(code="model_not_found")), id="a defect of the server"),
        pytest.param(Rejection(404, error={"message": "Not Found"}), id="an address that is not there"),
        pytest.param(
            Rejection(400, error=_error("'gpt-9' is not happy with temperature.")), id="a name alone in a 400"
        ),
        pytest.param(Rejection(400, error=_error(param="logprobs")), id="a parameter that he did not send"),
        pytest.param(Rejection(400), id="no words at all"),
    ],
)
def test_the_rest_is_not_his(rejection: Rejection) -> None:
    assert callers_error(failure_for(rejection, now_s=0), chosen={"model", "messages"}, model="gpt-9") is None


def test_what_is_no_plain_word_is_not_repeated() -> None:
    rejection = Rejection(404, error=_error(code="model_not_found", type="x\r\ny", param={"a": 1}))
    error = callers_error(failure_for(rejection, now_s=0), chosen={"model"}, model="{0}" * 100)
    assert error is not None
    assert error.refusal == Refusal(404, "model_not_found", "invalid_request_error", "model")
    assert len(error.reason) < 200
