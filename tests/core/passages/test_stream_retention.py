from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datafari_rag.core.citations.resolution import resolve
from datafari_rag.core.documents import Document, Extract, Passage
from datafari_rag.core.passages.extracts import HIGHLIGHTING, extracts_for
from datafari_rag.core.passages.stream_retention import SURROUNDINGS_CHARS, given_back, kept_of

PLANE = "The plane takes off at 15h50 from terminal 2."
FILLING = "Nothing of this was asked for, and nobody reads it. " * 1000


def extracts_of(text: str, *places: tuple[int, int], is_cleaned: bool = True, **document: str) -> tuple[Extract, ...]:
    passages = tuple(Passage(start, end, 0.5) for start, end in places or [(0, len(text))])
    return extracts_for([(Document("doc-1", text, title="Pass", **document), passages)], is_cleaned=is_cleaned)


def held_bytes(extracts: tuple[Extract, ...]) -> int:
    return sum(len(data) for kept in kept_of(extracts) for _, data in kept.pieces)


@pytest.mark.parametrize("is_cleaned", [True, False], ids=["cleaned", "not cleaned"])
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(PLANE, id="plain text"),
        pytest.param("On time 🙂\nGate C:\\12\tat noon.", id="an emoji, line ends and a backslash"),
        pytest.param("Half a \ud83d character, and a soft\u00adhyphen.", id="half a character and what nobody sees"),
    ],
)
def test_what_was_kept_comes_back_as_it_was(text: str, is_cleaned: bool) -> None:
    extracts = extracts_of(text, is_cleaned=is_cleaned)

    assert given_back(kept_of(extracts), is_cleaned=is_cleaned) == extracts


@given(st.text(max_size=60), st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=4), st.booleans())
def test_whatever_was_chosen_of_a_document_comes_back(
    text: str, places: list[tuple[int, int]], is_cleaned: bool
) -> None:
    extracts = extracts_of(
        text, *((min(at, len(text)), min(to, len(text))) for at, to in places), is_cleaned=is_cleaned
    )

    assert given_back(kept_of(extracts), is_cleaned=is_cleaned) == extracts


def test_snippets_stay_as_they_are() -> None:
    extracts = extracts_of("The <em>plane</em> &amp; its gate.", field=HIGHLIGHTING)

    assert given_back(kept_of(extracts), is_cleaned=True) == extracts


def test_of_a_long_document_the_surroundings_of_its_passages_are_kept() -> None:
    text = f"{FILLING}{PLANE} 🙂 {FILLING}It lands at noon. {FILLING}"
    first, second = text.index(PLANE), text.index("It lands")
    extracts = extracts_of(text, (first, first + len(PLANE)), (second, second + 17))
    (back,) = given_back(kept_of(extracts), is_cleaned=True)

    assert (back.text, len(back.document.text)) == (f"{PLANE} … It lands at noon.", len(text))
    for at in (first, second):
        around = slice(at - SURROUNDINGS_CHARS, at + SURROUNDINGS_CHARS)
        assert back.document.text[around] == text[around]
    assert back.document.text[:1000].isspace()
    assert held_bytes(extracts) < 4 * SURROUNDINGS_CHARS + 100


def test_neighbouring_passages_are_kept_once() -> None:
    text = FILLING[:6000]

    assert held_bytes(extracts_of(text, (0, 2000), (1000, 1500), (3000, 4000))) == len(text)


def test_an_emoji_makes_no_text_four_times_as_large() -> None:
    assert held_bytes(extracts_of(FILLING + "🙂")) == len(FILLING) + 4


@pytest.mark.parametrize("lead", ["", " ", ". ", "\n\n"])
def test_citations_are_the_same_wherever_a_sentence_is_cut(lead: str) -> None:
    """What is blank lies beyond what the proof of a sentence looks at, even where no sentence ever ends."""
    text = f"{'word ' * 3000}{lead}{PLANE}{lead}{' word' * 3000}"
    at = text.index(PLANE)
    extracts = extracts_of(text, (at - 300, at + 300))
    answer = "It takes off at 15h50 [1]. “From terminal 2” [1]."

    assert resolve(answer, given_back(kept_of(extracts), is_cleaned=True)) == resolve(answer, extracts)
    assert {found.status for found in resolve(answer, extracts)} & {"verified", "supported"}
