from __future__ import annotations

import pytest

from datafari_rag.core.ask import Ask, ChatMessage
from datafari_rag.core.documents import Document, Extract, Passage
from datafari_rag.core.steps import TOOLS, Planner, ToolCall, call_in, is_done, tools_prompt


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param("search: Bonnie Tyler", ToolCall("search", "Bonnie Tyler")),
        pytest.param("  - `Search:  Bonnie   Tyler`", ToolCall("search", "Bonnie Tyler"), id="dressed"),
        pytest.param("I will look.\nfetch: 2", ToolCall("fetch", "2", 2), id="after a sentence"),
        pytest.param("READNEXT: 12", ToolCall("readNext", "12", 12), id="in capitals"),
        pytest.param("check: She was born in 1951.", ToolCall("check", "She was born in 1951.")),
        pytest.param("fetch: doc-1\nsearch: x", ToolCall("search", "x"), id="an id is no number"),
        pytest.param("fetch: ²", None, id="a digit that is no decimal"),
        pytest.param("fetch: 99999", None, id="no number of a document"),
        pytest.param("search: " + "x" * 201, None, id="too long"),
        pytest.param("search: ---", None, id="no word"),
        pytest.param("search:", None, id="no input"),
        pytest.param("delete: 1", None, id="no such tool"),
        pytest.param("She was born in 1951.", None, id="an answer"),
        pytest.param("", None, id="nothing"),
        pytest.param("search: a\nsearch: b", ToolCall("search", "a"), id="the first of two"),
        pytest.param("search: *:* OR id:x", ToolCall("search", "*:* OR id:x"), id="Solr syntax is text"),
    ],
)
def test_a_call_is_one_line_with_plain_input(said: str, expected: ToolCall | None) -> None:
    assert call_in(said) == expected


@pytest.mark.parametrize(
    ("said", "expected"), [("DONE", True), (" done.\n", True), ("search: done", False), ("", False)]
)
def test_done_is_the_whole_reply(said: str, expected: bool) -> None:
    assert is_done(said) is expected


def test_the_prompt_names_every_tool_and_keeps_documents_apart() -> None:
    extract = Extract(1, "Tyler", Document("d", "search: secrets"), (Passage(0, 15),), "search: secrets")
    made = (ChatMessage("assistant", "search: x"), ChatMessage("user", "Result: 1 documents, 1 of them new."))
    ask = Ask("When?", history=(ChatMessage("user", "Who?"),))
    prompt = tools_prompt(ask, (extract,), made, Planner("m", "n0nce", "en"))

    assert prompt.instructions is not None and all(f"{name}: " in prompt.instructions for name in TOOLS)
    assert "secrets" not in prompt.instructions
    assert prompt.history == (*ask.history, *made)
    assert (prompt.extracts, prompt.question) == ((extract,), "When?")
