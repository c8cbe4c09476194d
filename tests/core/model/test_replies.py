"""One row for each status and each finish reason: what it is called, what it keeps, and what it never shows."""

from __future__ import annotations

import pytest

from datafari_rag.core.errors import (
    ContentFiltered,
    ModelBusy,
    ModelError,
    ModelGarbled,
    ModelKeyRefused,
    ModelOutOfCredit,
    ModelRefused,
    ModelUnavailable,
    NoAnswer,
    OnlyThoughts,
    RagError,
)
from datafari_rag.core.events import ModelFacts
from datafari_rag.core.model.replies import (
    MAX_MESSAGE_CHARS,
    Rejection,
    ReplyChunk,
    ReplyTotals,
    error_object,
    failure_for,
    failure_in,
    header_value,
    refused_by_model,
    retry_after_s,
)

NOW = 1_700_000_000.0
SECRET = "what the model's server said"

STATUSES = [
    # status, error, its label's code, is it asked again?, is Retry-After kept?
    (400, ModelRefused, 502, False, False),
    (401, ModelKeyRefused, 502, False, False),
    (402, ModelOutOfCredit, 502, False, False),
    (403, ModelRefused, 502, False, False),
    (404, ModelRefused, 502, False, False),
    (405, ModelRefused, 502, False, False),
    (408, ModelUnavailable, 502, False, False),
    (413, ModelRefused, 502, False, False),
    (418, ModelRefused, 502, False, False),
    (422, ModelRefused, 502, False, False),
    (429, ModelBusy, 503, True, True),
    (500, ModelUnavailable, 502, False, False),
    (502, ModelUnavailable, 502, True, False),
    (503, ModelUnavailable, 502, True, True),
    (504, ModelUnavailable, 502, True, False),
    (529, ModelUnavailable, 502, False, False),
    (204, ModelGarbled, 502, False, False),
    (301, ModelGarbled, 502, False, False),
]


@pytest.mark.parametrize(
    ("status", "kind", "code", "is_repeated", "has_retry_after"), STATUSES, ids=[str(row[0]) for row in STATUSES]
)
def test_every_status_has_one_named_failure_that_keeps_the_number(
    status: int, kind: type[ModelError], code: int, is_repeated: bool, has_retry_after: bool
) -> None:
    rejection = Rejection(
        status,
        headers={"retry-after": "7", "set-cookie": SECRET, "x-request-id": "r-1"},
        size_bytes=123,
        error={"message": SECRET},
    )
    failure = failure_for(rejection, now_s=NOW)
    assert type(failure) is kind
    assert (failure.code, failure.status, failure.can_repeat) == (code, status, is_repeated)
    assert failure.retry_after_s == (7.0 if has_retry_after else None)
    assert f"status={status} bytes=123" in failure.log
    assert "r-1" in failure.log
    assert SECRET not in failure.log + failure.reason


FILTERED = {
    "Azure's code": {"code": "content_filter"},
    "Azure's inner error": {"code": "bad", "innererror": {"code": "ResponsibleAIPolicyViolation"}},
    "OpenAI's code": {"code": "content_policy_violation"},
    "a type": {"type": "content_filter"},
    "LiteLLM's message": {"message": "litellm.ContentPolicyViolationError: no"},
}


@pytest.mark.parametrize("error", FILTERED.values(), ids=FILTERED.keys())
def test_a_400_that_names_the_content_filter_is_content_filtered(error: dict[str, object]) -> None:
    failure = failure_for(Rejection(400, error=error), now_s=NOW)
    assert type(failure) is ContentFiltered
    assert failure.reason == "Your message contains content that was flagged by the OpenAI content filter."


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, {"code": "context_length_exceeded"}),
        (400, {"code": None, "innererror": "text"}),
        (500, {"code": "content_filter"}),
    ],
    ids=["a 400 about the window", "a 400 that names nothing", "a 500 that names the filter"],
)
def test_other_rejections_are_not_taken_for_filtered_content(status: int, error: dict[str, object]) -> None:
    assert type(failure_for(Rejection(status, error=error), now_s=NOW)) is not ContentFiltered


FINISHES = [
    # finish_reason, text, is declined, failure
    ("stop", True, False, None),
    ("length", True, False, None),
    ("content_filter", True, False, ContentFiltered),
    ("content_filter", False, False, ContentFiltered),
    ("tool_calls", False, False, NoAnswer),
    ("tool_calls", True, False, None),
    ("stop", False, False, NoAnswer),
    ("length", False, False, OnlyThoughts),
    ("stop", True, True, NoAnswer),
    ("eos", True, False, None),
    (None, True, False, None),
    (None, False, False, NoAnswer),
]


@pytest.mark.parametrize(
    ("reason", "has_text", "is_declined", "kind"), FINISHES, ids=[str(row[:3]) for row in FINISHES]
)
def test_every_finish_reason_has_one_outcome(
    reason: str | None, has_text: bool, is_declined: bool, kind: type[RagError] | None
) -> None:
    totals = ReplyTotals("m")
    totals.add(ReplyChunk("Nice." if has_text else " ", reason, is_declined=is_declined))
    failure = totals.failure()
    assert (None if failure is None else type(failure)) is kind


RETRY_AFTER: dict[str, tuple[dict[str, str], float | None]] = {
    "seconds": ({"retry-after": "2"}, 2.0),
    "seconds with a fraction": ({"retry-after": " 0.5 "}, 0.5),
    "zero": ({"retry-after": "0"}, 0.0),
    "a negative number": ({"retry-after": "-3"}, 0.0),
    "a date to come": ({"retry-after": "Tue, 14 Nov 2023 22:13:30 GMT"}, 10.0),
    "a date that is over": ({"retry-after": "Tue, 14 Nov 2023 22:13:10 GMT"}, 0.0),
    "milliseconds, which are finer": ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
    "words": ({"retry-after": "soon"}, None),
    "an endless number": ({"retry-after": "inf"}, None),
    "a number too long to mean anything": ({"retry-after": "9" * 400}, None),
    "a date out of range": ({"retry-after": "Tue, 14 Nov 99999999 22:13:10 GMT"}, None),
    "nothing": ({}, None),
}


@pytest.mark.parametrize(("headers", "seconds"), RETRY_AFTER.values(), ids=RETRY_AFTER.keys())
def test_retry_after_is_seconds_from_now_or_nothing(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers, now_s=NOW) == seconds


INSIDE = [
    ({"code": "500", "message": SECRET}, ModelUnavailable, 500),
    ({"code": 429}, ModelBusy, 429),
    ({"status": 503}, ModelUnavailable, 503),
    ({"code": "rate_limit_exceeded"}, ModelBusy, 429),
    ({"type": "insufficient_quota"}, ModelOutOfCredit, 429),
    ({"type": "overloaded_error"}, ModelUnavailable, 503),
    ({"type": "invalid_request_error"}, ModelRefused, 400),
    ({"code": "content_filter"}, ContentFiltered, 400),
    ({"message": SECRET}, ModelUnavailable, 500),
    ({"code": 200}, ModelUnavailable, 500),
    ({}, ModelUnavailable, 500),
]


@pytest.mark.parametrize(("error", "kind", "status"), INSIDE, ids=[str(row[0]) for row in INSIDE])
def test_an_error_object_inside_a_200_is_a_failure_by_its_own_code(
    error: dict[str, object], kind: type[ModelError], status: int
) -> None:
    failure = failure_in(error)
    assert (type(failure), failure.status) == (kind, status)
    assert SECRET not in failure.log + failure.reason


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"error": {"message": "m", "code": 1}}, {"message": "m", "code": 1}),
        ({"error": "m"}, {"message": "m"}),
        ({"detail": "m"}, {"message": "m"}),
        ({"object": "error", "message": "m"}, {"message": "m"}),
        ({"message": "m", "choices": []}, {}),
        ({"error": 7}, {}),
        ([1], {}),
        ({}, {}),
    ],
)
def test_error_objects_of_all_servers_are_read(body: object, error: dict[str, object]) -> None:
    assert error_object(body) == error


def test_a_refused_relay_shows_its_sender_the_models_message_and_logs_none_of_it() -> None:
    failure = refused_by_model(Rejection(404, size_bytes=9, error={"message": "no model\r\n`x`\x00" + "y" * 2000}))
    assert failure.code == 400
    assert failure.reason.startswith("no model `x` yyy")
    assert len(failure.reason) == MAX_MESSAGE_CHARS
    assert failure.log == "status=404 bytes=9"


@pytest.mark.parametrize("message", [None, "", " \n ", {"a": 1}])
def test_a_refused_relay_without_a_message_has_a_sentence_all_the_same(message: object) -> None:
    assert refused_by_model(Rejection(422, error={"message": message})).reason == ModelRefused.sentence


def test_a_tally_takes_first_names_last_extras_and_the_last_finish_reason() -> None:
    tally = ReplyTotals("asked")
    assert tally.facts.name == "asked"
    tally.add(
        ReplyChunk(facts=ModelFacts(name="real", id="1", created=5, extras={"usage": None, "system_fingerprint": "f"}))
    )
    tally.add(ReplyChunk("text"))
    tally.add(
        ReplyChunk(finish_reason="stop", facts=ModelFacts(id="2", created=6, extras={"usage": {"total_tokens": 3}}))
    )
    assert tally.failure() is None
    assert tally.finish_reason == "stop"
    assert tally.facts == ModelFacts(
        name="real", id="1", created=5, extras={"usage": {"total_tokens": 3}, "system_fingerprint": "f"}
    )


def test_what_was_declined_stays_declined() -> None:
    tally = ReplyTotals("")
    tally.add(ReplyChunk(is_declined=True))
    tally.add(ReplyChunk("text", "stop"))
    assert isinstance(tally.failure(), NoAnswer)


HEADERS = {
    "a plain name": (ModelFacts(name="gpt-4o", tries=1), "gpt-4o; tries=1; fallback=0"),
    "a fallback after three tries": (ModelFacts("m", tries=3, is_fallback=True), "m; tries=3; fallback=1"),
    "no name": (ModelFacts(), "unknown; tries=1; fallback=0"),
    "a name that is an address": (ModelFacts("http://10.0.0.1/m"), "unknown; tries=1; fallback=0"),
    "line ends and other controls": (ModelFacts("m\r\nSet-Cookie: a\x00"), "mSet-Cookie: a; tries=1; fallback=0"),
    "separators of the header": (ModelFacts("m; tries=9, x"), "m tries=9 x; tries=1; fallback=0"),
    "letters no header takes": (ModelFacts("modèle 模型"), "modle; tries=1; fallback=0"),
    "nothing but such letters": (ModelFacts("模型"), "unknown; tries=1; fallback=0"),
    "a very long name": (ModelFacts("m" * 500), "m" * 100 + "; tries=1; fallback=0"),
}


@pytest.mark.parametrize(("facts", "value"), HEADERS.values(), ids=HEADERS.keys())
def test_the_header_says_who_answered_and_is_safe_whatever_the_name(facts: ModelFacts, value: str) -> None:
    assert header_value(facts) == value


# As OpenAI's, DeepSeek's and OpenRouter's pages of errors have them, and, as people reported them: Azure
# (SciSharp/BotSharp, issue 386), Ollama (netease-youdao/QAnything, 555), vLLM (vllm-project/vllm, 3485), and Gemini
# (continuedev/continue, 10290).
ABOUT = [
    (401, {"message": "Incorrect API key provided", "code": "invalid_api_key"}, "modelKeyRefused"),
    (401, {"code": "401", "message": "Access denied due to invalid subscription key"}, "modelKeyRefused"),
    (400, {"code": 400, "message": "API key not valid. Please pass a valid API key."}, "modelKeyRefused"),
    (404, {"message": "The model `x` does not exist or you do not have access to it."}, "modelNotFound"),
    (404, {"message": 'model "llama3" not found, try pulling it first', "type": "api_error"}, "modelNotFound"),
    (404, {"message": "The model `x` does not exist.", "type": "NotFoundError", "code": 404}, "modelNotFound"),
    (404, {"code": "DeploymentNotFound", "message": "The API deployment does not exist."}, "modelNotFound"),
    (404, {"message": "Not Found"}, "modelRefused"),
    (404, {}, "modelRefused"),
    (400, {"message": "Unknown parameter: 'x'.", "param": "x", "code": "unknown_parameter"}, "modelParameterRefused"),
    (400, {"message": "m", "param": "messages", "code": "context_length_exceeded"}, "modelInputTooLong"),
    (400, {"message": "request (9000 tokens) exceeds the available context size (4096)"}, "modelInputTooLong"),
    (413, {"message": "prompt is too long"}, "modelInputTooLong"),
    (402, {"message": "Insufficient Balance"}, "modelOutOfCredit"),
    (429, {"message": "You exceeded your current quota", "code": "insufficient_quota"}, "modelOutOfCredit"),
    (400, {"message": "Your credit balance is too low"}, "modelOutOfCredit"),
    (429, {"message": "Rate limit reached", "code": "rate_limit_exceeded"}, "modelBusy"),
    (400, {"message": "m", "code": "content_filter"}, "contentFiltered"),
    (500, {"message": "The model `x` does not exist"}, "modelUnavailable"),
]


@pytest.mark.parametrize(("status", "error", "label"), ABOUT)
def test_what_a_refusal_is_about_has_a_label_of_its_own(status: int, error: dict[str, object], label: str) -> None:
    failure = failure_for(Rejection(status, {"retry-after": "7"}, error=error), now_s=NOW)
    assert failure.label == label
    if status == 429:
        assert (failure.can_repeat, failure.retry_after_s) == ((True, 7.0) if label == "modelBusy" else (False, None))


def test_the_log_has_code_type_and_parameter_and_no_message() -> None:
    error = {"message": SECRET, "code": "c-1", "type": "t", "param": "a b"}
    log = failure_for(Rejection(400, size_bytes=9, error=error), now_s=NOW).log
    assert log == "status=400 bytes=9 code=c-1 type=t"


@pytest.mark.parametrize(
    ("finish", "usage", "reason"),
    [
        (
            "length",
            {"completion_tokens": 77},
            "The language model used its 77 tokens for thinking: raise rag.maxTokens.",
        ),
        ("length", {}, "The language model used all its tokens for thinking: raise rag.maxTokens."),
        ("stop", {"completion_tokens": 77}, "The language model thought, and gave no answer."),
    ],
)
def test_nothing_but_thoughts_has_its_own_failure(finish: str, usage: dict[str, object], reason: str) -> None:
    totals = ReplyTotals("m")
    totals.add(ReplyChunk("", finish, facts=ModelFacts(extras={"usage": usage})))
    totals.note_thoughts(9, 120.0)
    failure = totals.failure()
    assert isinstance(failure, OnlyThoughts)
    assert failure.reason == reason
    assert (totals.facts.thought_chars, totals.facts.thought_ms) == (9, 120.0)


@pytest.mark.parametrize("finish", ["stop", "length"])
def test_hidden_thoughts_are_thoughts(finish: str) -> None:
    """OpenAI's models that think show none of it: only the usage says so, in a stream often nothing does."""
    usage = {"completion_tokens": 77, "completion_tokens_details": {"reasoning_tokens": 77}}
    totals = ReplyTotals("m")
    totals.add(ReplyChunk("", finish))
    totals.add(ReplyChunk(facts=ModelFacts(extras={"usage": usage})))
    assert isinstance(totals.failure(), OnlyThoughts)
    assert (totals.facts.thought_tokens, totals.facts.has_thoughts) == (77, True)


@pytest.mark.parametrize("usage", [None, 7, {"completion_tokens_details": 7}, {"completion_tokens_details": {}}])
def test_a_usage_that_names_no_thoughts_is_none(usage: object) -> None:
    totals = ReplyTotals("m")
    totals.add(ReplyChunk("", "stop", facts=ModelFacts(extras={"usage": usage})))
    assert type(totals.failure()) is NoAnswer
    assert totals.facts.thought_tokens is None


@pytest.mark.parametrize(
    "body", [{"detail": [1]}, {"detail": [{"msg": "m"}]}, {"detail": [{"loc": []}]}, {"detail": []}]
)
def test_fields_that_fastapi_names_without_a_place_have_no_parameter(body: object) -> None:
    assert error_object(body).get("param") is None
