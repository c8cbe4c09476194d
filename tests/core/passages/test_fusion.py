from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datafari_rag.core.documents import Document, Nearness
from datafari_rag.core.errors import EmbeddingsGarbled
from datafari_rag.core.meaning.result_list import joined, near_search_for, uses_meaning
from datafari_rag.core.passages.reranking import (
    DOCUMENT,
    FULL_CHARS,
    LEAST_COVERAGE,
    PAIRS,
    SENTENCE,
    by_ranks,
    gains_of,
    ranked,
    scaled,
    spread_of,
)
from datafari_rag.core.passages.selection import Limit, select
from datafari_rag.core.passages.term_matching import terms_of
from datafari_rag.core.search_request import Search, Step
from datafari_rag.core.settings.answers import SearchChoice
from datafari_rag.core.vectors import EmbeddingModel, Purpose, Vector, unit_vector
from tests.settings import parsed, settings_with


def near(*cosines: float) -> tuple[Nearness, ...]:
    return tuple(Nearness(100 * n, 100 * n + 99, cosine) for n, cosine in enumerate(cosines))


def doc(name: str, *cosines: float, text: str = "words", score: float = 1.0) -> Document:
    return Document(name, text, score=score, near=near(*cosines))


# --- gains ------------------------------------------------------------------------------------------------------------


def test_without_anything_compared_there_is_no_gain() -> None:
    assert gains_of([], 0.5) is None
    assert gains_of([doc("a"), doc("b")], 0.5) is None


def test_the_nearest_document_loses_nothing_and_the_others_by_their_distance() -> None:
    gains = gains_of([doc("a", 8.0, 10.0), doc("b", 9.0)], coverage=1.0)
    assert gains is not None and [gain.score for gain in gains] == pytest.approx([0.0, -DOCUMENT])


@pytest.mark.parametrize(("coverage", "heavier"), [(1.0, 1.0), (0.5, 4.0), (0.1, 100.0), (0.0, LEAST_COVERAGE**-2)])
def test_meaning_counts_more_by_the_square_of_what_the_words_leave_uncovered(coverage: float, heavier: float) -> None:
    documents = [doc("a", 10.0), doc("b", 9.0)]
    full, less = gains_of(documents, 1.0), gains_of(documents, coverage)
    assert full is not None and less is not None
    assert less[1].score == pytest.approx(full[1].score * heavier)
    assert less[1].of(0) == pytest.approx(full[1].of(0) * heavier)


def test_a_document_that_was_not_compared_counts_as_the_farthest_that_was() -> None:
    gains = gains_of([doc("a", 10.0), doc("b", 8.0), doc("c")], 1.0)
    assert gains is not None and gains[2].score == gains[1].score
    assert gains[2].of(0) == pytest.approx(SENTENCE * -2)


def test_a_sentence_gains_what_the_piece_gains_that_it_begins_in() -> None:
    (gain,) = gains_of([doc("a", 8.0, 10.0)], 1.0) or []
    assert [gain.of(start) for start in (0, 98, 99, 150, 199)] == pytest.approx(
        [-2 * SENTENCE, -2 * SENTENCE, 0.0, 0.0, -2 * SENTENCE]
    )


def test_cosines_are_scaled_by_the_spread() -> None:
    assert [one.cosine for one in scaled(near(0.5, 0.25), 0.05)] == pytest.approx([10.0, 5.0])


@pytest.mark.parametrize("spread", [None, 0.0])
def test_cosines_without_a_spread_have_no_unit_and_are_left_out(spread: float | None) -> None:
    assert scaled(near(0.5, 0.25), spread) == ()


# --- in the order and in the selection --------------------------------------------------------------------------------

OFF = "Employees on leave get their salary paid. Holidays count as well."
LEAVE = "The firm has a car park. Mothers stay at home for twenty weeks after a birth. Bicycles stand behind the gate."


def test_the_nearer_document_comes_first_where_words_say_little() -> None:
    question = "how long do new mothers get off work"
    documents = [doc("pay", 9.0, text=OFF, score=3.0), doc("leave", 14.0, text=LEAVE, score=0.0)]
    terms = terms_of(question, "en")
    by_words = ranked(question, [doc("pay", text=OFF, score=3.0)], language="en", terms=terms)
    assert by_words[0].gain is None
    assert [one.document.id for one in ranked(question, documents, language="en", terms=terms)] == ["leave", "pay"]
    assert ranked(question, [], language="en", terms=terms) == ()


def test_the_nearer_sentence_is_chosen() -> None:
    text = " ".join(f"Place {number} in the garage belongs to the visitors of the firm." for number in range(100, 300))
    start, end = text.index("Place 250"), text.index("Place 251")
    pieces = (Nearness(0, start, 5.0), Nearness(start, end, 9.0), Nearness(end, len(text), 5.0))
    limit = Limit(FULL_CHARS, 1)

    def chosen(document: Document) -> bool:
        ((_, passages),) = select("parental absence", [document], limit=limit, language="en").chosen
        return any("Place 250" in text[passage.start : passage.end] for passage in passages)

    assert chosen(Document("a", text, near=pieces)) and not chosen(Document("a", text))


def test_a_sentence_without_a_word_of_the_question_is_chosen_before_those_with_some_that_are_farther() -> None:
    """The question is in other words than its answer: what has its words is about something else."""
    wordy = " ".join(f"Mothers get work at gate {number} of the long car park." for number in range(100, 300))
    answer = "A parental absence lasts twenty weeks."
    text = f"{wordy} {answer} {wordy.replace('gate', 'door')}"
    start, end = text.index(answer), text.index(answer) + len(answer) + 1
    pieces = (Nearness(0, start, 5.0), Nearness(start, end, 9.0), Nearness(end, len(text), 5.0))
    found = select(
        "How long do new mothers get off work?",
        [Document("a", text, near=pieces)],
        limit=Limit(FULL_CHARS, 1),
        language="en",
    )
    ((_, passages),) = found.chosen
    assert any(answer in text[passage.start : passage.end] for passage in passages)


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 9), st.floats(0, 30)), min_size=4, max_size=25))
def test_meaning_never_takes_what_words_have_among_three_with_all_words_out_of_the_first_ten(
    made: list[tuple[bool, float, float]],
) -> None:
    question = "how long is parental leave"
    documents = [
        doc(f"d{n}", cosine, text=f"{'Parental leave is long.' if is_full else 'Long texts.'} {n}", score=score)
        for n, (is_full, score, cosine) in enumerate(made)
    ]
    terms = terms_of(question, "en")
    by_words = ranked(question, [replace(one, near=()) for one in documents], language="en", terms=terms)
    order = ranked(question, documents, language="en", terms=terms)
    wanted = {one.document.id for one in by_words[:3] if one.coverage == 1.0}
    assert wanted <= {one.document.id for one in order[:10]}
    assert {one.document.id for one in order} == {one.id for one in documents}
    assert [one.score for one in order] == sorted((one.score for one in order), reverse=True)


# --- one list of two --------------------------------------------------------------------------------------------------


def test_ranks_are_fused_as_the_oracle_of_one_line_has_it() -> None:
    words, nearest = [doc(name) for name in "abcd"], [doc(name, 1.0) for name in "dbxa"]
    oracle = {
        name: sum(1 / (60 + [one.id for one in documents].index(name) + 1) for documents in (words, nearest)
                  if name in [one.id for one in documents])
        for name in "abcdx"
    }  # fmt: skip
    found = by_ranks(words, nearest, constant=60, most=4)
    assert [one.id for one in found] == sorted(oracle, key=lambda name: (-oracle[name], name))[:4]
    assert [one.score for one in found] == pytest.approx([oracle[one.id] for one in found])
    assert all(one.near == () for one in found)


def search(**more: object) -> Search:
    return Search("q", Step("asked", ("q",)), 20, **more)  # type: ignore[arg-type]


FOUND = (doc("a", score=2.0), doc("b", score=1.0))
NEAREST = (doc("b", 0.9), doc("c", 0.8))


def fused(spread: float | None = 0.1, most: int = 2, **more: object) -> list[Document]:
    settings = settings_with(**more)
    return joined(FOUND, NEAREST, settings=settings, spread=spread, most=most)


def test_hybrid_has_all_documents_once_and_knows_which_meaning_alone_found() -> None:
    assert [(one.id, bool(one.near)) for one in fused()] == [("a", False), ("b", False), ("c", True)]


def test_a_least_score_of_words_keeps_out_what_words_did_not_find() -> None:
    assert [one.id for one in fused(rag_search=SearchChoice(min_score=0.5))] == ["a", "b"]


@pytest.mark.parametrize("spread", [None, 0.0])
def test_ranks_are_fused_where_the_spread_is_not_known(spread: float | None) -> None:
    assert [one.id for one in fused(spread)] == ["b", "a"]
    assert [one.id for one in fused(spread, most=3)] == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("changes", "more", "is_wanted"),
    [
        pytest.param({}, {}, True, id="as shipped"),
        pytest.param({"method": "bm25"}, {}, False, id="words alone are wanted"),
        pytest.param({}, {"language": "fr"}, False, id="a language that the model does not know"),
        pytest.param({}, {"index": "default"}, True, id="another name of the main index"),
        pytest.param({"indexes": {"x": "embedded:x"}}, {"index": "x"}, False, id="an index of its own"),
    ],
)
def test_meaning_is_used_where_the_model_can_help(
    changes: dict[str, object], more: dict[str, object], is_wanted: bool
) -> None:
    model = EmbeddingModel("m", "k", 4, frozenset({"en"}))
    assert uses_meaning(search(**more), model, **{"method": "hybrid", "indexes": {}, **changes}) is is_wanted  # type: ignore[arg-type]


def test_half_as_many_documents_are_asked_for_by_meaning() -> None:
    wanted = near_search_for(search(), unit_vector([1.0]), settings=settings_with(), model_key="k")
    assert (wanted.documents, wanted.model_key, wanted.content) == (10, "k", "exactContent")


# --- the spread, and the settings -------------------------------------------------------------------------------------


def embed(texts: list[str], purpose: Purpose) -> list[Vector]:
    """Give every text a direction by its length; questions turn more slowly than texts."""
    turn = 0.01 if purpose == "query" else 0.02
    return [unit_vector([math.cos(turn * len(text)), math.sin(turn * len(text))]) for text in texts]


def test_the_spread_is_the_deviation_over_texts_that_do_not_answer() -> None:
    cosines = [
        math.cos(0.01 * len(question) - 0.02 * len(text))
        for question, answer in PAIRS
        for _, text in PAIRS
        if text != answer
    ]
    mean = sum(cosines) / len(cosines)
    deviation = math.sqrt(sum((cosine - mean) ** 2 for cosine in cosines) / len(cosines))
    assert spread_of(embed) == pytest.approx(deviation, abs=1e-6)  # type: ignore[arg-type]


def endpoint(text: str) -> tuple[object, bool]:
    settings, problems = parsed({"embeddings.endpoint": text}, folder="/etc/rag")
    return settings.embeddings.endpoint, bool(problems)


def test_an_endpoint_is_an_address_or_a_folder_beside_the_file() -> None:
    assert endpoint("https://models/v1/embeddings") == ("https://models/v1/embeddings", False)
    assert endpoint("onnx: models/bge") == ("onnx:/etc/rag/models/bge", False)
    assert endpoint("") == ("", False)
    assert [endpoint(text)[1] for text in ("models/bge", "onnx:", "onnx: \x07", "ftp://x/", "http://")] == [True] * 5


def test_languages_are_two_letter_codes() -> None:
    assert parsed({"embeddings.options.languages": "en, fr"})[0].embeddings.options.languages == ("en", "fr")
    assert parsed({"embeddings.options.languages": "english"})[1]


def test_an_embedding_error_says_whether_a_repeat_may_help() -> None:
    assert not EmbeddingsGarbled().can_repeat and EmbeddingsGarbled(can_repeat=True).can_repeat
