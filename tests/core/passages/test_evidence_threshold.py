import pytest

from datafari_rag.core.documents import Candidate, Document, Extract, Nearness, Passage
from datafari_rag.core.passages.evidence_threshold import NO_EVIDENCE, evidence_in, is_passed, stopped
from datafari_rag.core.passages.selection import CHOSEN, RANK

QUESTION = "What is the fare of the island ferry?"


def extract(text: str) -> Extract:
    return Extract(1, "label", Document("d", text), (), text)


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("The fare of the ferry to the island is nine euros.", 0.99, 1.0),
        ("The ferry is blue." + " Nothing is said." * 40 + " The fare is due. It is an island.", 0.5, 0.9),
        ("The ferry is blue.", 0.3, 0.4),
        ("Nothing at all.", 0.0, 0.0),
        ("", 0.0, 0.0),
    ],
    ids=["all words together", "all words far apart", "one word of three", "no word", "empty"],
)
def test_evidence_is_the_words_there_and_close_together(text: str, low: float, high: float) -> None:
    assert low <= evidence_in(QUESTION, [extract(text)], language="en") <= high


def test_the_best_extract_counts() -> None:
    poor, good = extract("Nothing."), extract("The fare of the island ferry.")
    assert evidence_in(QUESTION, [poor, good], language="en") == evidence_in(QUESTION, [good], language="en")


def test_without_extract_or_word_there_is_no_evidence() -> None:
    assert evidence_in(QUESTION, [], language="en") == 0
    assert evidence_in("?!", [extract("text")], language="en") == 0


@pytest.mark.parametrize(("least", "passes"), [(0.0, True), (0.3, True), (0.5, False)])
def test_the_gate_is_open_at_zero_and_shut_below_its_threshold(least: float, passes: bool) -> None:
    assert is_passed(QUESTION, [extract("The ferry is blue.")], language="en", least=least) is passes


def test_a_shut_gate_says_so_of_what_was_chosen() -> None:
    candidates = (Candidate("a", 1, 1.0, CHOSEN, 0, 5), Candidate("b", 2, 0.5, RANK))
    assert [one.verdict for one in stopped(candidates)] == [NO_EVIDENCE, RANK]


def compared(text: str, *cosines: float, shown: int = 0) -> Extract:
    """Return an extract of the passage number *shown* of those of ten characters that were compared."""
    near = tuple(Nearness(10 * n, 10 * n + 10, cosine) for n, cosine in enumerate(cosines))
    passages = (Passage(10 * shown, 10 * shown + 10),)
    return Extract(1, "label", Document("d", text, near=near), passages, text)


def evidence(one: Extract, *documents: Document) -> float:
    return evidence_in(QUESTION, [one], language="en", documents=[one.document, *documents])


def test_meaning_counts_as_much_as_words_where_passages_were_compared() -> None:
    worded, other = "The fare of the ferry to the island is nine euros.", "A crossing costs nine euros in summer now."
    out = (10.0, 5.0, 5.0)
    assert evidence(compared(worded, *out)) == pytest.approx(1.0)
    assert evidence(compared(other, *out)) == pytest.approx(0.5)
    assert evidence(compared(worded, 5.0, 5.0, 5.0)) == pytest.approx(0.5)
    assert evidence(compared(other, 7.5, 5.0, 5.0)) == pytest.approx(0.25)


def test_only_a_passage_that_is_shown_is_evidence() -> None:
    assert evidence(compared("A crossing costs nine euros.", 5.0, 10.0, 5.0, shown=0)) == 0.0
    assert evidence(compared("A crossing costs nine euros.", 5.0, 10.0, 5.0, shown=1)) == pytest.approx(0.5)


def test_what_stands_out_stands_out_among_all_candidates() -> None:
    near = tuple(Nearness(10 * n, 10 * n + 10, 10.0) for n in range(9))
    assert evidence(compared("A crossing.", 10.0, 5.0, 5.0), Document("e", "", near=near)) == 0.0


def test_a_question_in_other_words_than_its_answer_passes_the_gate() -> None:
    one = compared("A crossing costs nine euros.", 10.0, 5.0, 5.0)
    assert not is_passed(QUESTION, [one], language="en", least=0.4)
    assert is_passed(QUESTION, [one], language="en", least=0.4, documents=[one.document])
