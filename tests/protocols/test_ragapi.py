from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from datafari_rag.core.ask import Ask
from datafari_rag.core.documents import Citation, Document, Extract
from datafari_rag.core.errors import BadRequest, NoDocuments, NoQuery, QueryTooLong, RagError, leaves
from datafari_rag.core.events import Answer, Delta, Failed, Finished, ModelFacts, Sources, Thought
from datafari_rag.core.settings.records import ReplyShape
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols import ragapi
from datafari_rag.protocols.request import Incoming, ReplyContext
from tests.settings import settings_with


def incoming(**params: str) -> Incoming:
    return Incoming("/search/select", {name: (value,) for name, value in params.items()})


def extract(number: int, *, title: str | None = "CHECK-IN", url: str | None = "file:///volotea.pdf") -> Extract:
    document = Document(f"id-{number}", "Boarding pass", title=title, url=url)
    return Extract(number, title or "x", document, (), "Boarding pass")


def context(settings: Settings | None = None, **ask: Any) -> ReplyContext:
    return ReplyContext(Ask("when?", **ask), settings or Settings(), "id", 1.5)


MARK = Citation("CHECK-IN", "supported", answer_start=0, answer_end=9)
ANSWER = Answer(Sources((extract(1),)), Finished("At 15:50.\nOn time.", citations=(MARK,)))


def test_the_seeds_valid_response_has_its_keys_and_types() -> None:
    reply: Any = ragapi.reply(ANSWER, context())

    assert reply["status"] == "OK"
    assert reply["content"]["documents"] == [
        {"id": "id-1", "url": "file:///volotea.pdf", "title": "CHECK-IN", "content": "Boarding pass"}
    ]
    assert reply["content"]["citations"][0]["status"] == "supported"
    assert set(reply["content"]) == {"message", "documents", "citations"}


@pytest.mark.parametrize(
    ("linebreaks", "message"),
    [
        pytest.param("escaped", "At <15:50>.\\nOn time.", id="escaped writes two characters as RagAPI shows"),
        pytest.param("newline", "At <15:50>.\nOn time.", id="newline leaves line breaks"),
        pytest.param("html", "At &lt;15:50&gt;.<br/>On time.", id="html escapes the text and breaks with br"),
    ],
)
def test_line_breaks_follow_the_setting_whole_and_streamed(linebreaks: Any, message: str) -> None:
    settings = settings_with(rag_reply=ReplyShape(linebreaks=linebreaks))
    finished = Finished("At <15:50>.\r\nOn time.")
    reply: Any = ragapi.reply(Answer(Sources(()), finished), context(settings))
    lines: Any = list(
        ragapi.stream(iter([Sources(()), Delta("At <15:50>.\r"), Delta("\nOn time."), finished]), context(settings))
    )

    assert reply["content"]["message"] == message
    assert "".join(line["data"]["text"] for line in lines if line["type"] == "message.delta") == message
    assert next(line for line in lines if line["type"] == "message.final")["data"]["text"] == message


@pytest.mark.parametrize("proposed", [("And then?",), None])
def test_the_last_message_of_a_stream_has_the_proposals_that_were_wanted(proposed: tuple[str, ...] | None) -> None:
    events = [Sources(()), Finished("x", followups=proposed)]
    lines: list[Any] = [
        list(ragapi.stream(iter(events), context(wants_followups=is_wanted))) for is_wanted in (True, False)
    ]
    wanted, plain = (next(line["data"] for line in one if line["type"] == "message.final") for one in lines)
    assert wanted["followup_questions"] == proposed
    assert "followup_questions" not in plain


def test_a_request_chooses_its_own_line_breaks() -> None:
    asked = ragapi.parse(Incoming("/", {"q": ("x",), "linebreaks": ("newline",)}), Settings())
    reply: Any = ragapi.reply(Answer(Sources(()), Finished("a\nb")), replace(context(), ask=asked))

    assert reply["content"]["message"] == "a\nb"


def test_documents_as_an_object_are_keyed_by_their_place() -> None:
    settings = settings_with(rag_reply=ReplyShape(documents="object"))
    reply: Any = ragapi.reply(Answer(Sources((extract(1), extract(2))), Finished("x")), context(settings))

    assert list(reply["content"]["documents"]) == ["0", "1"]


@pytest.mark.parametrize(
    ("title", "url", "shown"),
    [
        pytest.param(None, "https://h/a/Fiche%20F1.pdf?x=1", "Fiche F1.pdf", id="no title shows the url's file name"),
        pytest.param("  ", None, "id-1", id="neither title nor url shows the id"),
        pytest.param("T", "u", "T", id="a title is shown"),
    ],
)
def test_a_document_always_has_all_four_keys(title: str | None, url: str | None, shown: str) -> None:
    reply: Any = ragapi.reply(Answer(Sources((extract(1, title=title, url=url),)), Finished("x")), context())

    assert reply["content"]["documents"][0]["title"] == shown
    assert reply["content"]["documents"][0]["url"] == (url or "id-1")


def test_a_cut_answer_says_so_and_a_whole_one_has_no_such_key() -> None:
    cut: Any = ragapi.reply(Answer(Sources(()), Finished("x", "length")), context())
    whole: Any = ragapi.reply(ANSWER, context())

    assert cut["content"]["finish_reason"] == "length"
    assert "finish_reason" not in whole["content"]


def test_thoughts_come_with_the_trace_and_only_then() -> None:
    told = Answer(Sources((), (Thought("Original user query", "when?"),)), Finished("x"))
    traced: Any = ragapi.reply(told, context(wants_trace=True))

    assert traced["content"]["thoughts"] == [{"title": "Original user query", "description": "when?", "props": None}]
    assert "thoughts" not in ragapi.reply(told, context())["content"]  # type: ignore[operator]


def test_a_trace_says_that_the_model_thought_and_how_long() -> None:
    facts = ModelFacts("m", thought_chars=9, thought_ms=20.0)
    told = Answer(Sources((), (Thought("Original user query", "when?"),)), Finished("x", facts=facts))
    traced: Any = ragapi.reply(told, context(wants_trace=True))
    assert [one["title"] for one in traced["content"]["thoughts"]] == ["Original user query", "Thinking"]
    hidden: Any = ragapi.reply(Answer(Sources(()), Finished("x", facts=facts)), context(wants_trace=True))
    assert hidden["content"]["thoughts"] == []


def test_a_stream_is_started_sources_deltas_final_completed() -> None:
    lines: Any = list(ragapi.stream(iter([ANSWER.sources, Delta("At"), ANSWER.finished]), context()))

    assert [line["type"] for line in lines] == [
        "stream.started",
        "sources.final",
        "message.delta",
        "message.final",
        "stream.completed",
    ]
    assert lines[1]["data"]["items"] == ragapi.reply(ANSWER, context())["content"]["documents"]  # type: ignore[index]
    assert lines[3]["data"]["citations"][0]["label"] == "CHECK-IN"
    assert lines[4]["data"] == {"status": "OK"}
    assert {line["ts"] for line in lines} == {1500}


def test_a_stream_dates_each_line_when_it_has_a_clock() -> None:
    ticks = iter([1.0, 2.0, 3.0, 4.0])
    dated = replace(context(), clock=lambda: next(ticks))
    lines: Any = list(ragapi.stream(iter([ANSWER.sources, ANSWER.finished]), dated))

    assert [line["ts"] for line in lines] == [1000, 2000, 3000, 4000]


def test_a_stream_that_fails_ends_with_an_error_and_completed() -> None:
    lines: Any = list(ragapi.stream(iter([Sources(()), Delta("At"), Failed(NoDocuments())]), context()))

    assert [line["type"] for line in lines[-2:]] == ["error", "stream.completed"]
    assert lines[-2]["data"] == {"code": 428, "label": "noDocuments", "reason": NoDocuments.sentence}
    assert lines[-1]["data"] == {"status": "ERROR"}


def test_the_seeds_error_response_is_nested_under_http_200() -> None:
    status, body = ragapi.failure(NoDocuments(), Settings())

    assert status == 200
    assert body == {
        "status": "ERROR",
        "content": {
            "error": {
                "code": 428,
                "reason": "The query cannot be answered because no associated documents were found.",
                "label": "noDocuments",
            }
        },
    }


@pytest.mark.parametrize("kind", leaves(), ids=lambda kind: kind.__name__)
def test_every_failure_can_be_spelled_with_its_code_as_status(kind: type[RagError]) -> None:
    status, body = ragapi.failure(kind(), settings_with(rag_reply=ReplyShape(http_errors=True)))
    error: Any = body["content"]["error"]  # type: ignore[index]

    assert status == kind.code == error["code"]
    assert error["label"] == kind.label
    assert error["reason"]


@pytest.mark.parametrize(
    ("params", "error"),
    [
        pytest.param({}, NoQuery, id="no q at all"),
        pytest.param({"q": " \t"}, NoQuery, id="a blank q"),
        pytest.param({"q": "a" * 4001}, QueryTooLong, id="4001 characters"),
        pytest.param({"q": "a\ud800"}, BadRequest, id="half of a character"),
    ],
)
def test_words_that_cannot_be_asked_are_refused(params: dict[str, str], error: type[RagError]) -> None:
    with pytest.raises(error):
        ragapi.parse(incoming(action="rag", **params), Settings())


def test_a_question_of_four_thousand_characters_is_taken_word_for_word() -> None:
    assert ragapi.parse(incoming(q="é" * 4000), Settings()).question == "é" * 4000


def test_prompt_is_read_when_q_is_absent() -> None:
    assert ragapi.parse(incoming(prompt="when?"), Settings()).question == "when?"
    assert ragapi.parse(incoming(q="this", prompt="that"), Settings()).question == "this"


@pytest.mark.parametrize(
    ("sent", "read"),
    [("bulletpoint", "bulletpoint"), ("BulletPoint", "bulletpoint"), ("", None), ("default", "default"), ("pie", None)],
)
def test_formats_are_read_in_any_case_and_an_unknown_one_is_noted(sent: str, read: str | None) -> None:
    ask = ragapi.parse(incoming(q="x", format=sent), Settings())

    assert ask.answer_format == read
    assert ("format" in ask.ignored) == (sent == "pie")


def test_rag_is_the_action_in_any_case_and_nothing_else_is() -> None:
    assert ragapi.accepts(incoming(action="RAG"))
    assert not ragapi.accepts(incoming(action="search"))
    assert not ragapi.accepts(incoming())
