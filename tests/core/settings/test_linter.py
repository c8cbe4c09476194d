"""Entries into settings: unknown keys, doubles, aliases, references, lines."""

from __future__ import annotations

import pytest

from datafari_rag.core.settings.checks import Row
from datafari_rag.core.settings.parsing import ALIASES, Entry, Problem, lint
from datafari_rag.core.settings.table import BY_KEY, Settings


def as_written(row: Row, text: str) -> str:
    if text == "${GONE}":
        raise ValueError("The environment variable GONE is not set.")
    return text.replace("${HERE}", "here")


def linted(*pairs: tuple[str, str]) -> tuple[Settings, tuple[Problem, ...]]:
    entries = [Entry(number, key, value) for number, (key, value) in enumerate(pairs, start=1)]
    return lint(entries, resolve=as_written, folder="/etc/rag")


def test_nothing_gives_the_defaults() -> None:
    assert linted() == (Settings(), ())


def test_the_last_of_two_counts_and_a_warning_names_both_lines() -> None:
    settings, (problem,) = linted(("rag.maxFiles", "3"), ("rag.model", "m"), ("rag.maxFiles", "4"))
    assert settings.rag.max_files == 4
    assert (problem.line, problem.severity) == (3, "warning")
    assert problem.message == "rag.maxFiles is set twice: this line is used, line 1 is ignored."


def test_an_earlier_bad_value_of_a_double_does_not_count() -> None:
    settings, (problem,) = linted(("rag.maxFiles", "x"), ("rag.maxFiles", "4"))
    assert (settings.rag.max_files, problem.severity) == (4, "warning")


@pytest.mark.parametrize(("alias", "key"), ALIASES.items())
def test_an_alias_is_read_with_a_warning(alias: str, key: str) -> None:
    row = BY_KEY.get(key)
    assert row is not None
    others = {"rag.template": "datafari", "solr.shards.tolerant": "true", "chat.query.rewriting.enabled": "false"}
    text = others.get(key, "1")
    settings, problems = linted((alias, text))
    assert row.value_in(settings) != row.default
    assert [problem.severity for problem in problems if key in problem.message] == ["warning"]
    assert not any(problem.stops for problem in problems)


def test_an_alias_and_its_key_are_one_setting_given_twice() -> None:
    settings, problems = linted(("rag.maxTokens", "5"), ("rag.maxToken", "6"))
    assert settings.rag.max_tokens == 6
    assert len(problems) == 2


@pytest.mark.parametrize(
    ("key", "message"),
    [
        pytest.param("rag.maxFile", "Unknown key rag.maxFile: did you mean rag.maxFiles?", id="one letter short"),
        pytest.param("maxFiles", "Unknown key maxFiles: did you mean rag.maxFiles?", id="without its group"),
        pytest.param("rag.maxTokn", "Unknown key rag.maxTokn: did you mean rag.maxTokens?", id="near an alias"),
        pytest.param("solr.tonic.water", "Unknown key solr.tonic.water.", id="alike in a few letters"),
        pytest.param("", "A key is missing before the equals sign.", id="no key"),
        pytest.param(
            "ai.api.endpoint", "Unknown key ai.api.endpoint: did you mean rag.api.endpoint?", id="a later version"
        ),
    ],
)
def test_an_unknown_key_is_told_and_stops_nothing(key: str, message: str) -> None:
    settings, (problem,) = linted((key, "1"))
    assert (problem.message, problem.severity, problem.stops) == (message, "error", False)
    assert settings == Settings()


OF_DATAFARI_7 = """
ai.enable.rag=true ai.enable.agentic=false ai.enable.summarization=true ai.enable.synthesis=false
assistant.enable.assistant=false assistant.enable.conversation.storage=true assistant.retrieval.method=bm25
agentic.enable.loop.control=false agentic.loop.control.max.iterations=3 agentic.loop.control.min.score=0.8
agentic.loop.control.max.iterations.secondary=3 agentic.loop.control.min.score.secondary=0.6
synthesis.maxFiles=4 summarization.chunks.number=9 retrieval.method=bm25 chunking.maxFiles=3 chunking.chunk.size=8000
rag.operator=OR rrf.topK=50 rrf.rank.constant=60 inMemory.enable.vector.search=false inMemory.topK=10
prompt.chunking.strategy=mapreduce prompt.max.request.size=30000 chat.query.rewriting.enabled.bm25=true
chat.query.rewriting.enabled.vector=false chat.memory.enabled=false chat.memory.history.size=6 solr.topK=10
rag.topK=10 solr.enable.ladr=true solr.enable.acorn=true solr.filtered.search.threshold=60
"""
"""Every key of the file that Datafari 7.0 ships, some with another value."""


def test_a_file_of_datafari_7_has_no_error_and_every_key_is_used_or_explained() -> None:
    pairs = [(key, value) for key, _, value in (pair.partition("=") for pair in OF_DATAFARI_7.split())]
    settings, problems = linted(*pairs)
    assert [problem.message for problem in problems if problem.severity == "error"] == []
    told = {
        problem.message.partition(" has no effect here: ")[0] for problem in problems if "no effect" in problem.message
    }
    assert all(problem.message.endswith(".") and len(problem.message) > 40 for problem in problems)
    for key, _ in pairs:
        assert (BY_KEY.get(ALIASES.get(key, key)) is None) == (key in told), key
    assert (settings.rag.max_files, settings.rag.operator, settings.chat.query_rewriting_enabled) == (3, "OR", True)


def test_conversations_without_users_are_warned_about() -> None:
    _, (problem,) = linted(("security.identity", "anonymous"), ("chat.store.folder", "chats"))
    assert (problem.severity, problem.line) == ("warning", 2)
    assert problem.message.startswith("chat.store.folder has no effect")
    assert linted(("security.identity", "header"), ("chat.store.folder", "chats"))[1] == ()


def test_references_are_resolved_before_values_are_read() -> None:
    settings, problems = linted(("rag.model", "${HERE}-1"))
    assert (settings.rag.model, problems) == ("here-1", ())


def test_a_reference_to_nothing_is_an_error_that_tells_callers_no_name() -> None:
    settings, (problem,) = linted(("rag.api.token", "${GONE}"))
    assert problem.message == "Invalid value for rag.api.token property. The environment variable GONE is not set."
    assert problem.sentence.startswith("Invalid value for rag.api.token property. Valid values are ${VARIABLE} of ")
    assert (problem.line, problem.stops, settings) == (1, True, Settings())


def test_the_instructions_cannot_be_left_out_for_openai() -> None:
    _, (problem,) = linted(("rag.model", "m"), ("rag.addInstructions", "false"))
    assert (problem.line, problem.severity) == (2, "warning")
    assert linted(("rag.addInstructions", "false"), ("rag.template", "datafari"))[1] == ()


def test_an_empty_value_is_the_default_and_told() -> None:
    _, (problem,) = linted(("rag.operator", " "))
    assert (problem.severity, problem.message) == ("warning", "rag.operator is empty: its default, AND, is used.")


def test_tokens_for_others_are_warned_about_at_the_line_to_mend() -> None:
    pairs = [("security.jwt.jwks", "keys.json"), ("security.identity", "jwt"), ("security.jwt.issuer", "")]
    _, problems = linted(*pairs)
    assert [(problem.line, problem.severity, problem.message) for problem in problems] == [
        (2, "warning", "security.jwt.audience is empty: tokens for other applications are accepted."),
        (3, "warning", "security.jwt.issuer is empty: the issuer that a token names is not checked."),
    ]
    assert linted(*pairs[:2], ("security.jwt.issuer", "i"), ("security.jwt.audience", "a"))[1] == ()
    assert linted(("security.jwt.jwks", "keys.json"))[1] == ()


def test_a_placeholder_left_in_is_told() -> None:
    _, (problem,) = linted(("rag.api.endpoint", "https://<LLM_SERVICE_HOST>:8888/invoke"))
    assert (problem.severity, problem.line) == ("warning", 1)


@pytest.mark.parametrize(
    ("pairs", "line"),
    [
        pytest.param([("rag.model", "m"), ("security.tokens", "claims")], 2, id="the line of its key"),
        pytest.param(
            [("rag.model", "m"), ("security.identity", "jwt")],
            2,
            id="the line of its key, whatever else the message names",
        ),
        pytest.param(
            [("rag.model", "m"), ("solr.fields", '{"allow_token_document": "language"}')],
            1,
            id="the first, where the default of another key does not suit",
        ),
    ],
)
def test_a_contradiction_has_a_line(pairs: list[tuple[str, str]], line: int) -> None:
    _, problems = linted(*pairs)
    assert [problem.line for problem in problems if problem.severity == "error"] == [line]


def test_problems_come_in_the_order_of_lines() -> None:
    _, problems = linted(("rag.maxFiles", "x"), ("oops", "1"), ("rag.operator", "x"), ("rag.operator", "y"))
    assert [problem.line for problem in problems] == [1, 2, 4, 4]


def test_a_base_address_and_a_model_without_a_name_are_told() -> None:
    settings, problems = linted(("rag.api.endpoint", "https://api.openai.com/v1"), ("rag.model", ""))
    assert settings.rag.model_url == "https://api.openai.com/v1/chat/completions"
    assert [(problem.key, problem.severity, problem.line) for problem in problems] == [
        ("rag.api.endpoint", "note", 1),
        ("rag.model", "warning", 2),
    ]
    assert linted(("rag.api.endpoint", "http://a/v1"), ("rag.template", "datafari"))[1] == ()
    assert linted(("rag.api.endpoint", "http://a/v1/chat/completions"), ("rag.model", ""))[1] == ()


def test_a_model_that_is_known_to_think_has_room_kept_for_it() -> None:
    plain, thinking = (linted(("rag.api.endpoint", "http://a/v1"), ("rag.model", name))[0] for name in ("m", "qwen3"))
    assert (plain.window.answer, thinking.window.answer) == (250, 250 + 4096)
