"""Phrases of a question that occur word for word in a text."""

from __future__ import annotations

import pytest

from datafari_rag.core.passages.term_matching import MAX_PHRASES, WORTH, Phrase, phrases_of, said_in

QUESTION = "When is the end of the island lease?"


def phrases(question: str = QUESTION, language: str = "en") -> tuple[Phrase, ...]:
    return phrases_of(question, language)


def said(text: str, question: str = QUESTION, language: str = "en") -> list[str]:
    return [phrase.text for phrase in phrases(question, language) if any(said_in([phrase], [text]))]


def worth(question: str, *texts: str) -> list[float]:
    return said_in(phrases(question), texts)


def test_phrases_are_pairs_and_triples_around_a_word_of_content() -> None:
    assert [phrase.text for phrase in phrases()] == [
        "the end", "end of", "the island", "island lease",
        "is the end", "the end of", "end of the", "of the island", "the island lease",
    ]  # fmt: skip
    assert [phrase.content for phrase in phrases()][-1] == 2


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param(
            "The end of the year.", ["the end", "end of", "the end of", "end of the"], id="case does not matter"
        ),
        pytest.param("the\nend", ["the end"], id="nor does a line break"),
        pytest.param("An end.", [], id="other little words are another phrase"),
        pytest.param("the lease of an island", [], id="nor does the order count for nothing"),
        pytest.param("", [], id="an empty question has no phrases"),
    ],
)
def test_a_phrase_is_said_word_for_word(text: str, wanted: list[str]) -> None:
    assert said(text) == wanted


def test_apostrophes_of_any_kind_are_the_same() -> None:
    assert said("Le prix de l’entretien.", "Quel est le prix de l'entretien ?", "fr") == [
        "le prix", "prix de", "de l'entretien", "le prix de", "prix de l'entretien",
    ]  # fmt: skip


def test_spaces_of_the_question_are_one() -> None:
    assert "island lease" in said("the island lease", "the  island\n lease")


def test_all_phrases_together_are_worth_what_is_said_and_none_nothing() -> None:
    whole, part, none = worth(
        "the island lease", "It is the island lease.", "An island lease.", "Some lease of an island."
    )
    assert whole == pytest.approx(sum(WORTH.values()))
    assert whole > part > none == 0.0


def test_what_every_candidate_says_counts_less_than_what_one_says() -> None:
    common, rare, _ = worth("island lease, harbour fee", "island lease", "island lease harbour fee", "island lease")
    assert rare > 3 * common


def test_a_question_without_neighbours_has_no_phrases() -> None:
    assert phrases("lease") == phrases("?") == phrases("渡轮几点出发", "zh") == ()
    assert worth("lease", "lease") == [0.0]


def test_a_pasted_page_has_no_more_phrases_than_a_question() -> None:
    words = "pump valve motor rotor engine copper silver harbour island ferry ticket window garden bridge castle market"
    more = "letter winter doctor lawyer teacher farmer butcher painter singer dancer writer driver sailor pilot captain"
    assert len(phrases(f"{words} {more} soldier banker broker")) == MAX_PHRASES


def test_neighbours_that_are_too_long_together_are_no_phrase() -> None:
    texts = [phrase.text for phrase in phrases(f"{'x' * 150} {'y' * 150} pump valve")]
    assert texts == [f"{'y' * 150} pump", "pump valve", f"{'y' * 150} pump valve"]
