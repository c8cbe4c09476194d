"""Two failures that are answers where their readers are in a conversation."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from datafari_rag.core.answer.empty_answers import answered, sentence_for
from datafari_rag.core.documents import Document, Extract
from datafari_rag.core.errors import ModelTimeout, NoAnswer, NoDocuments, RagError
from datafari_rag.core.events import Delta, Event, Failed, Finished, Sources, Thought

BOTH = (NoDocuments, NoAnswer)
SOURCES = Sources((Extract(1, "A", Document("a", "x"), (), "x"),), (Thought("t", "d"),), "fr")


def _events(*events: Event) -> Generator[Event, None, None]:
    yield from events


def _told(*events: Event, softened: tuple[type[RagError], ...] = BOTH) -> list[Event]:
    return list(answered(_events(*events), softened, language="en"))


def test_nothing_found_is_an_answer_without_documents_in_the_language_of_the_answer() -> None:
    sources, delta, finished = _told(Sources((), SOURCES.thoughts, "fr"), Failed(NoDocuments()))
    assert sources == Sources((), SOURCES.thoughts, "fr")
    assert isinstance(delta, Delta) and delta.text.startswith("Aucune réponse")
    assert isinstance(finished, Finished) and finished.text == delta.text
    assert (finished.finish_reason, finished.followups) == ("stop", None)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        pytest.param("de-AT", "Ich habe in den Dokumenten keine Antwort auf diese Frage gefunden.", id="German"),
        pytest.param("zh", "我在文档中没有找到这个问题的答案。", id="Chinese"),
    ],
)
def test_nothing_found_is_said_in_each_language_that_has_sentences(language: str, text: str) -> None:
    assert sentence_for(NoDocuments(), language) == text


def test_a_failure_before_the_language_was_known_is_told_in_the_callers() -> None:
    assert _told(Failed(NoDocuments()))[1] == Delta(NoDocuments.sentence)


def test_a_silent_model_is_an_answer_without_documents() -> None:
    sources, delta, _ = _told(SOURCES, Delta(" \n"), Failed(NoAnswer()))
    assert isinstance(sources, Sources) and sources.extracts == ()
    assert delta == Delta("Le modèle n'a pas pu fournir de réponse.")


def test_a_good_answer_passes_unchanged() -> None:
    events = [SOURCES, Delta(" "), Delta("a"), Delta("b"), Finished(" ab")]
    assert _told(*events) == events


def test_what_ends_without_a_word_passes_unchanged() -> None:
    assert _told(SOURCES, Delta(" ")) == [SOURCES, Delta(" ")]


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([SOURCES, Failed(ModelTimeout())], id="another failure"),
        pytest.param([SOURCES, Delta("a"), Failed(NoAnswer())], id="after the first words"),
    ],
)
def test_all_else_stays_a_failure(events: list[Event]) -> None:
    assert [type(event) for event in _told(*events)] == [type(event) for event in events]


def test_only_what_is_softened_is_told_as_an_answer() -> None:
    failed = _told(SOURCES, Failed(NoAnswer()), softened=(NoDocuments,))[-1]
    assert isinstance(failed, Failed) and isinstance(failed.error, NoAnswer)


@pytest.mark.parametrize(
    ("language", "begins"), [("fr-CA", "Aucune"), ("en", "The query"), ("cs", "The query"), ("FR", "Aucune")]
)
def test_languages_without_sentences_are_told_in_english(language: str, begins: str) -> None:
    assert sentence_for(NoDocuments(), language).startswith(begins)


def test_closing_frees_what_is_behind() -> None:
    closed: list[bool] = []

    def line() -> Generator[Event, None, None]:
        try:
            yield Delta("a")
            yield Delta("b")
        finally:
            closed.append(True)

    told = answered(line(), BOTH, language="en")
    next(told)
    told.close()
    assert closed == [True]
