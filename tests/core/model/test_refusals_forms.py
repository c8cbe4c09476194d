"""What a refused question is sent without: by refusals that servers really send, and by those that name nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from datafari_rag.core.errors import Rejection
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.model.replies import error_object
from datafari_rag.core.model.servers import PAPERS_FORM, ServerNeeds, Thinking, with_thoughts, without_refused
from datafari_rag.core.model.streams import ThinkingFilter

RECORDED = json.loads((Path(__file__).parents[2] / "data" / "model_refusals.json").read_text("utf-8"))


def refusal(reply: object, status: int = 400) -> Rejection:
    return Rejection(status, error=error_object(reply))


def said(message: str, status: int = 400) -> Rejection:
    return Rejection(status, error={"message": message})


CHANGED = {
    "length": ServerNeeds(length="max_completion_tokens"),
    "temperature": ServerNeeds(sends_temperature=False),
    "form": ServerNeeds(is_plain=True),
}


@pytest.mark.parametrize("row", RECORDED, ids=[row["case"] for row in RECORDED])
def test_what_a_recorded_refusal_names_is_left_out(row: dict[str, object]) -> None:
    rejection = refusal(row["reply"], int(str(row["status"])))
    needs = CHANGED[str(row["refused"])]
    assert without_refused(PAPERS_FORM, rejection) == needs
    # Once it is left out, the same refusal again leads to nothing that was not sent before.
    assert without_refused(needs, rejection) in (PAPERS_FORM, needs, None)


@pytest.mark.parametrize(
    "reply",
    [
        # github.com/editor-code-assistant/eca/issues/231: Mistral
        {
            "object": "error",
            "message": {
                "detail": [
                    {
                        "type": "extra_forbidden",
                        "loc": ["body", "max_completion_tokens"],
                        "msg": "Extra inputs are not permitted",
                        "input": 64,
                    }
                ]
            },
            "type": "invalid_request_error",
            "param": None,
            "code": None,
        },
        # github.com/voideditor/void/issues/128: vLLM
        {
            "object": "error",
            "message": "[{'type': 'extra_forbidden', 'loc': ('body', 'max_completion_tokens'), "
            "'msg': 'Extra inputs are not permitted', 'input': 8192}]",
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
    ],
    ids=["mistral", "vllm"],
)
def test_the_limit_gets_its_older_name_too(reply: object) -> None:
    assert without_refused(ServerNeeds(length="max_completion_tokens"), refusal(reply, 422)) == PAPERS_FORM


@pytest.mark.parametrize("name", ["reasoning_effort", "topK"])
def test_a_refused_key_of_the_settings_is_left_out(name: str) -> None:
    needs = ServerNeeds(body={name: "low", "seed": 1})
    changed = without_refused(needs, said(f"Unrecognized request argument supplied: {name}"))
    assert changed == ServerNeeds(body={"seed": 1})


def test_of_several_parameters_the_first_is_what_the_refusal_is_about() -> None:
    needs = ServerNeeds(body={"reasoning_effort": "low"})
    message = "temperature is not supported unless reasoning_effort is 'none', and max_tokens is large"
    assert without_refused(needs, said(message)) == replace(needs, sends_temperature=False)


NOTHING = {
    "a time-out": said("max_tokens is not supported", 408),
    "an error of the server that names a parameter": said("Unsupported parameter: 'max_tokens'", 500),
    "a busy server": said("Unsupported parameter: 'max_tokens'", 429),
    "a key": said("Incorrect API key provided", 401),
    "an unknown model": said("The model `x` does not exist", 404),
    "a length that is too large": Rejection(
        400, error={"message": "max_tokens is too large: 9. At most 4 is supported.", "param": "max_tokens"}
    ),
    "a temperature out of range": said("temperature must be between 0 and 1"),
    "another parameter": Rejection(
        400, error={"message": "Unsupported parameter", "param": "logit_bias", "code": "unsupported_parameter"}
    ),
    "no message": Rejection(400),
    "a message that is no text": Rejection(400, error={"message": {"a": 1}, "param": ["temperature"]}),
    "a model of that name": said("unknown model: max_tokenser"),
}


@pytest.mark.parametrize("rejection", NOTHING.values(), ids=NOTHING.keys())
def test_what_names_no_difference_changes_nothing(rejection: Rejection) -> None:
    assert without_refused(PAPERS_FORM, rejection) is None


@pytest.mark.parametrize(
    ("text", "known", "shown"),
    [
        ("a\n</think>\nb", "none", "aloud"),
        ("a\n</think>\nb", "apart", "aloud"),
        ("a\n</think>\nb", "aloud", "aloud"),
        ("<think>a</think>b", "none", "apart"),
        ("<think>a</think>b", "apart", "apart"),
        ("b", "none", "none"),
    ],
)
def test_a_reply_shows_whether_its_model_thinks(text: str, known: Thinking, shown: str) -> None:
    thinking = ThinkingFilter(is_held=True, thinks_aloud=known == "aloud")
    thinking.feed(text)
    thinking.end(is_cut=False)
    needs, prompt = ServerNeeds(thinking=known), Prompt("What is nice?", (), None, "n")
    assert with_thoughts(needs, thinking, prompt, has_thoughts=thinking.thought_chars > 0).thinking == shown


def test_hidden_thoughts_count_and_a_mark_that_may_be_quoted_does_not() -> None:
    prompt = Prompt("What does </think> mean?", (), None, "n")
    thinking = ThinkingFilter(is_held=False)
    assert with_thoughts(PAPERS_FORM, thinking, prompt, has_thoughts=True).thinking == "apart"
    thinking.feed("It is </think>.")
    thinking.end(is_cut=False)
    assert thinking.is_without_beginning
    assert with_thoughts(PAPERS_FORM, thinking, prompt, has_thoughts=False) == PAPERS_FORM
