from collections.abc import Sequence
from typing import Any

import pytest

from datafari_rag.core.documents import Document
from datafari_rag.core.passages.reranking import MAX_EVENTS, Ranked, events_of, fullest, ranked, rarity_of
from datafari_rag.core.passages.term_matching import TermPositions, terms_of, traces_of

FILLER = "Nothing of interest is said in this sentence at all. " * 40


def in_order(question: str, *documents: Document) -> tuple[Ranked, ...]:
    return ranked(question, documents, language="en", terms=terms_of(question, "en"))


def order(question: str, *documents: Document) -> list[str]:
    return [one.document.id for one in in_order(question, *documents)]


def document(name: str, text: str, score: float = 5.0, **more: Any) -> Document:
    return Document(name, text, score=score, language="en", **more)


def test_words_close_together_beat_words_far_apart() -> None:
    apart = document("apart", f"The fare. {FILLER} The island. {FILLER} The ferry.")
    close = document("close", f"{FILLER} The fare of the island ferry. {FILLER}")
    assert order("island ferry fare", apart, close) == ["close", "apart"]


def test_the_engines_order_stays_where_the_texts_say_nothing() -> None:
    first, second = document("first", "nothing", 9.0), document("second", "nothing", 3.0)
    assert order("ferry", first, second) == ["first", "second"]
    assert order("ferry", document("a", "x", 0.0), document("b", "x", 0.0)) == ["a", "b"]


def test_a_part_of_an_identifier_is_no_rarer_than_the_identifier() -> None:
    """A text that writes "postgres" does not come before those that say "PostgreSQL" as the question does."""
    terms = terms_of("table limits of PostgreSQL", "en")
    texts = ["PostgreSQL tables.", "Limits of PostgreSQL.", "PostgreSQL.", "postgres"]
    rarity = dict(
        zip((one.stem for one in terms), rarity_of(terms, [traces_of(terms, one, "en") for one in texts]), strict=True)
    )
    assert rarity["postgr"] < rarity["postgresql"] < rarity["tabl"]


def test_words_in_their_order_and_in_the_title_speak() -> None:
    backwards = document("backwards", "Fare ferry. Ferry fare fare ferry. Of a fare, a ferry and an island.")
    forwards = document("forwards", "The island ferry. An island ferry fare, a ferry and an island fare.")
    assert order("island ferry", backwards, forwards)[0] == "forwards"
    plain, titled = document("plain", "About the ferry."), document("titled", "About the ferry.", title="Ferry")
    other = document("other", "Nothing.")
    assert order("ferry", plain, titled, other)[0] == "titled"


def test_the_questions_language_comes_first() -> None:
    french = Document("fr", "ferry", score=5.0, language="fr")
    assert order("ferry", french, document("en", "ferry")) == ["en", "fr"]


def test_coverage_says_how_much_of_the_question_is_there() -> None:
    (one,) = in_order("island ferry", document("a", "The ferry."))
    assert 0 < one.coverage < 1
    assert in_order("?", document("a", "x"))[0].coverage == 0
    assert in_order("ferry") == ()


def best_window(traces: TermPositions, rarity: Sequence[float], window_chars: int) -> float:
    return fullest(events_of(traces, rarity), rarity, window_chars)


def test_the_best_window_counts_a_repeated_term_ever_less() -> None:
    terms = terms_of("ferry island", "en")
    once = best_window(traces_of(terms, "ferry", "en"), (1.0, 1.0), 250)
    twice = best_window(traces_of(terms, "ferry ferry", "en"), (1.0, 1.0), 250)
    both = best_window(traces_of(terms, "ferry island", "en"), (1.0, 1.0), 250)
    far = best_window(traces_of(terms, f"ferry {FILLER} island", "en"), (1.0, 1.0), 250)
    assert once < twice < both
    assert far == once
    assert best_window(traces_of(terms, "nothing", "en"), (1.0, 1.0), 250) == 0


def test_a_text_full_of_one_word_is_still_searched_for_the_other() -> None:
    text = "ferry " * (MAX_EVENTS + 100) + "island"
    traces = traces_of(terms_of("ferry island", "en"), text, "en")
    assert best_window(traces, (1.0, 1.0), 250) == 1.0


SINGER = document("singer", "The Harbour Song was written by Ada Quill of the island choir.", 9.0, title="Harbour Song")


def test_a_document_that_the_best_one_names_comes_before_others() -> None:
    other = document("other", "The choir of the harbour has a song of its own.", 5.0, title="Harbour choir")
    named = document("named", "Born in 1931 on the mainland.", 3.0, title="Ada Quill (writer)")
    assert order("Where was the writer of the Harbour Song born?", SINGER, other, named) == ["singer", "named", "other"]


@pytest.mark.parametrize("title", ["Ada Quillon", "land choir", "song", "Ada", "", "Quill Ada"], ids=repr)
def test_a_title_that_is_no_name_in_the_best_document_changes_nothing(title: str) -> None:
    other = document("other", "The choir of the harbour has a song of its own.", 5.0)
    unnamed = document("unnamed", "Born in 1931 on the mainland.", 3.0, title=title)
    assert order("Where was the writer of the Harbour Song born?", SINGER, other, unnamed)[-1] == "unnamed"


def test_a_named_document_never_passes_the_one_that_names_it() -> None:
    near = document("near", "The Harbour Song of the island choir, written long ago.", 8.9, title="Ada Quill")
    (first, second) = in_order("the Harbour Song of the island choir", SINGER, near)
    assert first.score >= second.score


QUESTION = "How do I renew my library card?"
SHELF = "My library card renews my joy in the library, and how do I say it? Renew a card. " * 12


@pytest.mark.parametrize(
    "heading", [QUESTION, "## How do I renew my library card", "3.2 How Do I Renew My Library Card"]
)
def test_a_heading_that_is_the_question_wins_outright(heading: str) -> None:
    """Its words occur everywhere on the other page, close together, many times."""
    asked = document("asked", f"{FILLER}\n{heading}\nBring a letter with your address to the desk.\n{FILLER}", 4.0)
    found = in_order(QUESTION, document("shelf", SHELF, 5.0), asked)
    assert [one.document.id for one in found] == ["asked", "shelf"]
    assert found[1].heading is None and found[0].heading == asked.text.index(heading)


@pytest.mark.parametrize(
    "line", ["How do I renew my library card today?", "Renew my library card", "x " * 99 + QUESTION]
)
def test_a_line_that_is_not_the_question_is_no_such_heading(line: str) -> None:
    assert in_order(QUESTION, document("a", f"{FILLER}\n{line}\n{FILLER}"))[0].heading is None


def test_a_word_alone_is_no_question_that_a_heading_could_be() -> None:
    assert in_order("Leave", document("a", "Leave\nAll about leave."))[0].heading is None
