from __future__ import annotations

from typing import Any

import pytest

from datafari_rag.core.ask import Ask
from datafari_rag.core.events import Answer, Delta, Finished, Sources
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols import ragapi
from datafari_rag.protocols.request import Incoming, ReplyContext


def incoming(**params: str) -> Incoming:
    return Incoming("/search/select", {name: (value,) for name, value in params.items()})


def context(settings: Settings | None = None, **ask: Any) -> ReplyContext:
    return ReplyContext(Ask("when?", **ask), settings or Settings(), "id", 1.5)


@pytest.mark.parametrize(
    ("linebreaks", "message"),
    [
        pytest.param("escaped", "At <15:50>.\\nOn time.", id="escaped writes two characters as RagAPI shows"),
        pytest.param("newline", "At <15:50>.\nOn time.", id="newline leaves line breaks"),
        pytest.param("html", "At &lt;15:50&gt;.<br/>On time.", id="html escapes the text and breaks with br"),
    ],
)
def test_line_breaks_follow_the_request_whole_and_streamed(linebreaks: Any, message: str) -> None:
    finished = Finished("At <15:50>.\r\nOn time.")
    reply: Any = ragapi.reply(Answer(Sources(()), finished), context(linebreaks=linebreaks))
    lines: Any = list(
        ragapi.stream(
            iter([Sources(()), Delta("At <15:50>.\r"), Delta("\nOn time."), finished]), context(linebreaks=linebreaks)
        )
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
