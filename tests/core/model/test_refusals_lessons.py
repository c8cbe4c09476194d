"""What refusals teach: those that servers really send, and those that teach nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from datafari_rag.core.errors import Rejection
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.model.replies import error_object
from datafari_rag.core.model.servers import PAPERS_FORM, ServerNeeds, Thinking, lesson_in, thinking_lesson
from datafari_rag.core.model.streams import ThinkingFilter

RECORDED = json.loads((Path(__file__).parents[2] / "data" / "model_refusals.json").read_text("utf-8"))


def refusal(reply: object, status: int = 400) -> Rejection:
    return Rejection(status, error=error_object(reply))


def said(message: str, status: int = 400) -> Rejection:
    return Rejection(status, error={"message": message})


@pytest.mark.parametrize("row", RECORDED, ids=[row["case"] for row in RECORDED])
def test_a_recorded_refusal_teaches_what_it_names_and_only_once(row: dict[str, object]) -> None:
    rejection = refusal(row["reply"], int(str(row["status"])))
    lesson = lesson_in(rejection, PAPERS_FORM, ())
    assert lesson is not None
    assert (lesson.name, lesson.needs != PAPERS_FORM) == (row["lesson"], True)
    assert lesson_in(rejection, lesson.needs, ()) is None


def test_what_is_learned_is_the_form_that_was_wanted() -> None:
    learned = {row["lesson"]: lesson_in(refusal(row["reply"]), PAPERS_FORM, ()) for row in RECORDED}
    needs = {name: lesson.needs for name, lesson in learned.items() if lesson is not None}
    assert needs == {
        "length": ServerNeeds(length="max_completion_tokens"),
        "temperature": ServerNeeds(sends_temperature=False),
        "system": ServerNeeds(instructions="user"),
        "turns": ServerNeeds(is_merged=True),
    }


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
def test_the_older_name_of_the_length_is_learned_too(reply: object) -> None:
    lesson = lesson_in(refusal(reply, 422), ServerNeeds(length="max_completion_tokens"), ())
    assert lesson is not None
    assert lesson.needs == PAPERS_FORM


def test_instructions_of_a_developer_become_the_systems_and_then_the_users() -> None:
    first = lesson_in(said("Unexpected role 'developer'"), ServerNeeds(instructions="developer"), ())
    assert first is not None
    assert first.needs.instructions == "system"
    second = lesson_in(said("Unexpected role 'system'"), first.needs, ())
    assert second is not None
    assert second.needs.instructions == "user"


def test_a_refused_key_of_the_settings_is_left_out() -> None:
    needs = ServerNeeds(body={"reasoning_effort": "low", "seed": 1})
    lesson = lesson_in(said("Unrecognized request argument supplied: reasoning_effort"), needs, ())
    assert lesson is not None
    assert lesson.needs.body == {"seed": 1}


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
def test_what_names_no_difference_teaches_nothing(rejection: Rejection) -> None:
    assert lesson_in(rejection, PAPERS_FORM, ()) is None


@pytest.mark.parametrize("quoted", [str, repr, json.dumps, lambda text: json.dumps(json.dumps(text))])
@pytest.mark.parametrize("quote", ['"', "'", '\\"', "\n", "\\n", "été", "\U0001f600", "?"])
def test_a_quotation_teaches_nothing_however_it_is_escaped(quote: str, quoted: Callable[[str], str]) -> None:
    document = f"It's {quote}temperature{quote} that is not supported,{quote}max_tokens{quote} neither."
    assert lesson_in(said(f"Bad request: {quoted(document)}"), PAPERS_FORM, (document,)) is None


@pytest.mark.parametrize("row", RECORDED, ids=[row["case"] for row in RECORDED])
def test_a_document_teaches_nothing_when_the_refusal_quotes_it(row: dict[str, object]) -> None:
    message = error_object(row["reply"])["message"]
    document = f"How to fix it. {message} That was all."
    quoted = said(f"Bad request: {{'role': 'user', 'content': '{document}'}}")
    assert lesson_in(quoted, PAPERS_FORM, (document,)) is None


def test_the_servers_own_words_count_beside_a_quoted_document() -> None:
    document = "Unsupported parameter: 'temperature' is not what this is about. " * 3
    rejection = said(f"Unsupported parameter: 'max_tokens' here. Your request was: {document}")
    lesson = lesson_in(rejection, PAPERS_FORM, (document,))
    assert lesson is not None
    assert lesson.needs == replace(PAPERS_FORM, length="max_completion_tokens")


@pytest.mark.parametrize(
    ("text", "known", "learned"),
    [
        ("a\n</think>\nb", "none", "aloud"),
        ("a\n</think>\nb", "apart", "aloud"),
        ("a\n</think>\nb", "aloud", None),
        ("<think>a</think>b", "none", "apart"),
        ("<think>a</think>b", "apart", None),
        ("b", "none", None),
    ],
)
def test_a_reply_teaches_whether_its_model_thinks(text: str, known: Thinking, learned: str | None) -> None:
    thinking = ThinkingFilter(is_held=True, thinks_aloud=known == "aloud")
    thinking.feed(text)
    needs, prompt = ServerNeeds(thinking=known), Prompt("What is nice?", (), None, "n")
    lessons = list(thinking_lesson(needs, thinking, prompt, has_thoughts=thinking.thought_chars > 0))
    assert [lesson.needs.thinking for lesson in lessons] == ([] if learned is None else [learned])


def test_hidden_thoughts_teach_and_a_mark_that_may_be_quoted_does_not() -> None:
    prompt = Prompt("What does </think> mean?", (), None, "n")
    (lesson,) = thinking_lesson(PAPERS_FORM, ThinkingFilter(is_held=False), prompt, has_thoughts=True)
    assert lesson.needs.thinking == "apart"
    thinking = ThinkingFilter(is_held=False)
    thinking.feed("It is </think>.")
    assert thinking.is_without_beginning
    assert list(thinking_lesson(PAPERS_FORM, thinking, prompt, has_thoughts=False)) == []


def test_the_same_wish_for_turns_teaches_nothing_twice() -> None:
    rejection = said("Unsupported: conversation roles must alternate user/assistant")
    lesson = lesson_in(rejection, PAPERS_FORM, ())
    assert lesson is not None
    assert lesson.name == "turns"
    assert lesson_in(rejection, lesson.needs, ()) is None
    assert lesson_in(said("Unexpected role 'system'"), ServerNeeds(instructions="user"), ()) is None
