"""Two failures that are answers where their readers are in a conversation."""

from __future__ import annotations

import pytest

from datafari_rag.core.answer.empty_answers import empty_answer, is_awaited, sentence_for
from datafari_rag.core.documents import Document, Extract
from datafari_rag.core.errors import NoAnswer, NoDocuments
from datafari_rag.core.events import Delta, Failed, Finished, Sources, Thought

SOURCES = Sources((Extract(1, "A", Document("a", "x"), (), "x"),), (Thought("t", "d"),), "fr")


def test_nothing_found_is_an_answer_without_documents_in_the_language_of_the_answer() -> None:
    sources, delta, finished = empty_answer([Sources((), SOURCES.thoughts, "fr")], Failed(NoDocuments()), "en")
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
    assert empty_answer([], Failed(NoDocuments()), "en")[1] == Delta(NoDocuments.sentence)


def test_a_silent_model_is_an_answer_without_documents() -> None:
    sources, delta, _ = empty_answer([SOURCES, Delta(" \n")], Failed(NoAnswer()), "en")
    assert isinstance(sources, Sources) and sources.extracts == ()
    assert delta == Delta("Le modèle n'a pas pu fournir de réponse.")


@pytest.mark.parametrize(
    ("language", "begins"), [("fr-CA", "Aucune"), ("en", "The query"), ("cs", "The query"), ("FR", "Aucune")]
)
def test_languages_without_sentences_are_told_in_english(language: str, begins: str) -> None:
    assert sentence_for(NoDocuments(), language).startswith(begins)


def test_sources_and_blank_words_are_held_back_and_nothing_else() -> None:
    assert [is_awaited(event) for event in (SOURCES, Delta(" \n"), Delta("a"), Finished("a"), Failed(NoAnswer()))] == [
        True,
        True,
        False,
        False,
        False,
    ]
