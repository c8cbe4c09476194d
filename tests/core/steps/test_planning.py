from __future__ import annotations

import pytest

from datafari_rag.core.ask import Ask, ChatMessage
from datafari_rag.core.steps import MAX_QUERIES, MAX_QUERY_CHARS, MAX_TOKENS, plan_prompt, queries_in


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param("Bonnie Tyler birth\nDiamond Cut 1979 album", ("Bonnie Tyler birth", "Diamond Cut 1979 album")),
        pytest.param('- "Bonnie Tyler"\n2. Diamond Cut\n* x', ("Bonnie Tyler", "Diamond Cut", "x"), id="dressed lines"),
        pytest.param('["Bonnie Tyler", 3, null, "Diamond  Cut"]', ("Bonnie Tyler", "Diamond Cut"), id="a JSON list"),
        pytest.param("[Bonnie Tyler]", ("[Bonnie Tyler]",), id="brackets that are no JSON"),
        pytest.param("[" * 5000, (), id="brackets without end"),
        pytest.param("DONE", (), id="enough"),
        pytest.param("Bonnie Tyler\nDone.", ("Bonnie Tyler",), id="and then enough"),
        pytest.param("work done in 1979", ("work done in 1979",), id="a search with that word"),
        pytest.param("", (), id="nothing"),
        pytest.param(" \n--- \n\n", (), id="no word"),
        pytest.param("Who sang it?\nwho  SANG it?", (), id="the question itself"),
        pytest.param("a\nA\n a ", ("a",), id="the same again"),
        pytest.param("x" * (MAX_QUERY_CHARS + 1) + "\nshort", ("short",), id="a line that is no query"),
        pytest.param("*:* OR id:[* TO *]", ("*:* OR id:[* TO *]",), id="Solr syntax is text"),
        pytest.param("${jndi:ldap://x} {!term f=id}x", ("${jndi:ldap://x} {!term f=id}x",), id="a macro is text"),
    ],
)
def test_a_plan_is_read_as_plain_strings(said: str, expected: tuple[str, ...]) -> None:
    assert queries_in(said, ("Who sang it?",)) == expected


def test_of_ten_thousand_queries_four_are_read() -> None:
    said = "\n".join(f"query {number}" for number in range(10_000))
    assert queries_in(said, ()) == ("query 0", "query 1", "query 2", "query 3")
    assert len(queries_in(said, ())) == MAX_QUERIES


def test_a_plan_sees_the_conversation_and_no_document() -> None:
    ask = Ask("And when?", history=(ChatMessage("user", "Who sang it?"),))
    prompt = plan_prompt(ask, "en", model="m", nonce="n0nce")

    assert (prompt.question, prompt.history, prompt.extracts) == ("And when?", ask.history, ())
    assert (prompt.max_tokens, prompt.temperature, prompt.model) == (MAX_TOKENS, 0.0, "m")
