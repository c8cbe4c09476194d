"""What a browser may change: the keys of this list alone, each with the reason why it can do no harm."""

from __future__ import annotations

import pytest

from datafari_rag.core.settings.parsing import is_for_browsers, refusals
from datafari_rag.core.settings.table import BY_KEY, ROWS, row_for

HARMLESS = {
    "which model of the same endpoint answers, and how the request to it looks": """
        rag.model rag.template llm.server llm.fallback.models openai.models""",
    "how the model words its answer and how long it is": "rag.temperature rag.maxTokens rag.addInstructions",
    "how much is read of documents that this reader may see anyway": """
        rag.maxFiles rag.maxJsonLength rag.solrField rag.hl.fragsize rag.operator rag.search
        rag.effort rag.extract rag.evidence.min rag.clean retrieval.method openai.limits
        chat.limits synthesis.maxFiles summarization.chunks.number prompt.chunking.strategy
        prompt.max.request.size""",
    "what of an answer is shown that its documents do not prove": """
        answer.unsupported answer.support""",
    "how a reply is spelled": """
        rag.reply log.format""",
    "ids, counts and milliseconds in the log, no texts": "rag.enable.logs",
    "how tokens are counted and shared out": """
        llm.context.window token.counter""",
    "how long is waited, and how often is tried": "llm.limits solr.limits",
    "an answer from a part of the collection, which says so": "solr.shards.tolerant",
    "the model without documents, and how documents are sent": "openai.client",
    "steps that the reader sees of his own answer, what administrators alone see stays theirs; what a client may "
    "say to the model: fences, rights and the filter of links stay": "chat.client",
    "the reader's own turns, signed for him; the secret is not changed": """
        chat.memory.enabled chat.memory.history.size""",
    "additional instructions for the model; fences, rights and the filter of links stay": """
        chat.query.rewriting.enabled""",
    "descriptions of the tools for agents, not which tools there are and as whom they read": "mcp.descriptions",
    "whether a kind of question is answered; as whom it is read stays": """
        ai.enable.rag ai.enable.agentic ai.enable.summarization ai.enable.synthesis""",
    "load": """
        server.rate server.workers""",
}
"""Why a browser may change these keys. A new key is in no browser until it is listed here."""

OPEN = {key for keys in HARMLESS.values() for key in keys.split()}


@pytest.mark.parametrize("key", BY_KEY)
def test_a_key_is_harmless_or_refused(key: str) -> None:
    assert is_for_browsers(key) == (key in OPEN)
    problems = refusals({key: "1"})
    assert [problem.key for problem in problems] == ([] if key in OPEN else [key])
    assert [problem.key for problem in refusals({key: None})] == ([] if key in OPEN else [key])


def test_every_harmless_key_is_one() -> None:
    assert {key for key in OPEN if row_for(key) is None} == set()


def test_no_secret_file_address_or_field_name_is_harmless() -> None:
    """By what a row is, whatever the list above says."""
    closed = [row for row in ROWS if row.is_secret or row.check.kind in ("path", "mapping")]
    addresses = [row for row in ROWS if "://" in row.check.expectation or "address" in row.check.expectation]
    named = [row for row in ROWS if row.group in ("security", "audit", "feedback", "demo")]
    fields = [row for row in ROWS if "field" in row.check.expectation or row.key == "solr.fields"]

    assert [row.key for row in (*closed, *addresses, *named, *fields) if row.is_for_browsers] == []
    assert min(len(closed), len(addresses), len(named), len(fields)) > 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param({"no.such.key": "1"}, "in the settings file", id="a key that is none"),
        pytest.param({"solr.field.nosuch": "title"}, "in the settings file", id="a field that is none"),
        pytest.param({"rag.model": "${HOME}"}, "A reference", id="a variable that would be shown as the model's name"),
    ],
)
def test_it_refuses(changes: dict[str, str | None], words: str) -> None:
    (problem,) = refusals(changes)
    assert words in problem.message


@pytest.mark.parametrize("changes", [{}, {"rag.temperature": "0.2", "rag.model": None}])
def test_it_allows(changes: dict[str, str | None]) -> None:
    assert refusals(changes) == ()
