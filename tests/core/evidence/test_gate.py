from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import log

import pytest

from datafari_rag.core.ask import Ask
from datafari_rag.core.documents import Document, Nearness
from datafari_rag.core.evidence.budget import NO_EVIDENCE, Selected, answering_for
from datafari_rag.core.evidence.gate import AUTO, FEW, Signals, evidence_of, least_evidence, signals_in
from datafari_rag.core.evidence.scoring import weigh
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from datafari_rag.core.settings.table import Settings
from tests.settings import parsed, settings_with

QUESTION = "What is the fare of the island ferry?"
TOGETHER = "The fare of the ferry to the island is nine euros."
APART = "The ferry is blue." + " Nothing is said." * 40 + " The fare is due. It is an island."
OTHERS = tuple(
    Document(f"o{number}", f"The garden has {number} roses and a wall of old bricks.") for number in range(5)
)
WORDLESS = settings_with(rag_api_endpoint=BUILTIN_MODEL)


def signals(*documents: Document, question: str = QUESTION, language: str = "en", most: int = 0) -> Signals | None:
    return signals_in(weigh(question, documents, language=language), language=language, most=most)


def evidence(text: str, *, question: str = QUESTION, language: str | None = "en") -> float:
    return evidence_of(signals(Document("d", text, language=language), *OTHERS, question=question))


def test_evidence_is_the_words_there_and_close_together() -> None:
    together, apart, one, none = map(evidence, (TOGETHER, APART, "The ferry is blue.", "Nothing at all."))
    assert 1 >= together > apart > one > none >= 0
    assert together >= AUTO > none


@pytest.mark.parametrize("question", ["ferry", "ferry fare", "Is it the island ferry's fare?", QUESTION])
@pytest.mark.parametrize("language", ["en", "fr", None])
def test_a_question_all_of_whose_words_stand_together_passes(question: str, language: str | None) -> None:
    assert evidence(TOGETHER, question=question, language=language) >= AUTO


NOTHING = Signals(base=1.0, missing=0.0, fullness=0.0, pairs=0.0, foreign=0.0, unnamed=0.0, nearness=0.0)


@pytest.mark.parametrize(
    ("seen", "chance"),
    [
        pytest.param(NOTHING, 0.908, id="nothing is missing"),
        pytest.param(replace(NOTHING, missing=2.0), 0.6295, id="half is missing in fifty stretches"),
        pytest.param(replace(NOTHING, fullness=1.0), 0.935, id="a rare word"),
        pytest.param(replace(NOTHING, pairs=0.5), 0.977, id="half a pair"),
        pytest.param(replace(NOTHING, foreign=0.5), 0.672, id="half is missing in another language"),
        pytest.param(replace(NOTHING, unnamed=0.5), 0.663, id="a name that is nowhere"),
        pytest.param(replace(NOTHING, nearness=1.0), 0.978, id="a passage that stands out"),
    ],
)
def test_each_signal_counts_what_was_fitted(seen: Signals, chance: float) -> None:
    assert evidence_of(seen) == pytest.approx(chance, abs=0.0005)


def test_a_word_is_worth_its_idf_over_stretches_and_one_where_it_is_nowhere() -> None:
    # log(1 + 49.5 / 1.5) / log(1 + 50.5 / 0.5) for a word that is there once.
    both, one = (signals(Document("d", text), question="ferry fare") for text in ("The ferry fare.", "The ferry."))
    assert both is not None and one is not None
    assert (both.fullness, both.missing) == (pytest.approx(2 * 0.76246, abs=0.00005), 0)
    assert one.fullness == pytest.approx(0.76246, abs=0.00005)
    assert one.missing == pytest.approx(log(50) / 1.76246, abs=0.0005)


def test_a_name_that_is_nowhere_counts_as_its_share_of_the_question() -> None:
    found = signals(Document("d", "The fare."), question="fare to Marlin")
    assert found is not None and found.unnamed == pytest.approx(1 / 1.76246, abs=0.00005)


def test_a_pair_counts_what_the_smaller_of_the_two_is_worth() -> None:
    found = signals(Document("d", "ferry fare. Ferry."), question="ferry fare")
    assert found is not None and found.pairs == pytest.approx(0.65201, abs=0.0005)


def test_words_in_their_order_are_more_evidence_than_the_same_in_another() -> None:
    assert evidence("The island ferry.", question="Any island ferry tunnel?") > evidence(
        "A ferry, an island.", question="Any island ferry tunnel?"
    )


@pytest.mark.parametrize(
    ("question", "named"),
    [
        pytest.param("What is the fare to Atlantis?", 1, id="a name"),
        pytest.param("What is the fare to atlantis?", 0, id="in small letters"),
        pytest.param("What Is The Fare To Atlantis?", 0, id="a heading"),
        pytest.param("Atlantis: what is the fare?", 0, id="at the beginning"),
    ],
)
def test_a_name_that_no_document_has_is_evidence_against_them(question: str, named: int) -> None:
    without, with_it = (
        signals(Document("d", text, language="en"), question=question) for text in (TOGETHER, "Atlantis")
    )
    assert without is not None and with_it is not None
    assert (without.unnamed > 0, with_it.unnamed) == (bool(named), 0)
    assert (evidence_of(without) < evidence_of(replace(without, unnamed=0.0))) == bool(named)


def test_in_german_a_capital_letter_makes_no_name() -> None:
    found = signals(Document("d", "Die Fähre fährt.", language="de"), question="Was kostet die Insel?", language="de")
    assert found is not None and found.unnamed == 0


def test_documents_in_another_language_need_more_words_and_unknown_languages_none() -> None:
    english, french, unknown = (
        evidence_of(signals(Document("d", "The ferry fare.", language=code))) for code in ("en", "fr", None)
    )
    assert english == unknown > french


def test_the_documents_that_are_answered_from_are_looked_at_and_no_others() -> None:
    far, near = Document("d", "The wall.", score=9.0, rated=9.0), Document("e", TOGETHER, score=1.0, rated=1.0)
    assert evidence_of(signals(far, near, most=1)) < evidence_of(signals(far, near))


def test_without_document_or_word_there_is_no_evidence() -> None:
    assert signals() is None and signals(Document("d", "text"), question="?!") is None
    assert evidence_of(None) == 0


def compared(text: str, *cosines: float) -> Document:
    near = tuple(Nearness(10 * number, 10 * number + 10, cosine) for number, cosine in enumerate(cosines))
    return Document("d", text, near=near)


def test_a_passage_that_stands_out_by_meaning_is_evidence_in_other_words() -> None:
    flat, outstanding = compared("A crossing is nine euros.", 5.0, 5.0, 5.0), compared("A crossing.", 12.0, 5.0, 5.0)
    assert evidence_of(signals(flat)) < AUTO <= evidence_of(signals(outstanding))


def test_vectors_never_leave_out_what_words_alone_would_answer() -> None:
    for text in (TOGETHER, APART):
        alone = evidence_of(signals(Document("d", text)))
        assert evidence_of(signals(compared(text, 5.0, 5.0, 5.0))) == alone


@pytest.mark.parametrize(
    ("text", "endpoint", "least"),
    [
        pytest.param("", BUILTIN_MODEL, AUTO, id="no number, without a model"),
        pytest.param("", "https://llm.example/v1", 0.0, id="no number, with one"),
        pytest.param("auto", "https://llm.example/v1", AUTO, id="the measured one, with a model"),
        pytest.param("0.7", "https://llm.example/v1", 0.7, id="a number, with one"),
        pytest.param("0", BUILTIN_MODEL, 0.0, id="off, without one"),
    ],
)
def test_the_threshold_is_the_measured_one_without_a_model_and_off_with_one(
    text: str, endpoint: str, least: float
) -> None:
    settings, problems = parsed({"rag.evidence.min": text, "rag.api.endpoint": endpoint})
    assert (least_evidence(settings.rag), problems) == (least, ())


@pytest.mark.parametrize("text", ["automatic", "1.1", "-1", "nan", "AUTO"])
def test_what_is_neither_a_number_nor_auto_is_refused(text: str) -> None:
    settings, problems = parsed({"rag.evidence.min": text})
    assert [one.key for one in problems] == ["rag.evidence.min"]
    assert problems[0].sentence.endswith('"auto" or a number between 0 and 1 is expected.')
    assert settings.rag.evidence_min is None


def answered(ask: Ask, documents: Sequence[Document], settings: Settings) -> Selected:
    return answering_for(ask, documents, language="en", rag=settings.rag, window=settings.window, count=len)


def test_a_shut_gate_leaves_all_out_and_says_why() -> None:
    selected = answered(Ask("Who won the cup?"), OTHERS, WORDLESS)
    assert selected.extracts == () and selected.evidence is not None and selected.evidence < AUTO <= FEW
    assert {one.verdict for one in selected.candidates} == {NO_EVIDENCE}
    assert [one.rank for one in selected.candidates] == [1, 2, 3, 4, 5]


def test_an_open_gate_changes_nothing_of_what_is_chosen() -> None:
    documents = (Document("d", TOGETHER, language="en"), *OTHERS)
    gated, free = (
        answered(Ask(QUESTION), documents, settings)
        for settings in (WORDLESS, settings_with(WORDLESS, rag_evidence_min=0.0))
    )
    assert gated.extracts == free.extracts and gated.candidates == free.candidates
    assert gated.evidence is not None and free.evidence is None


@pytest.mark.parametrize("is_pooled", [pytest.param(False, id="one search"), pytest.param(True, id="in steps")])
def test_a_reranker_that_turns_the_order_round_takes_no_evidence_away(is_pooled: bool) -> None:
    documents = (Document("d", TOGETHER, score=9.0, language="en"), *OTHERS)
    turned = [
        replace(one, reranked=(Nearness(0, len(one.text), 90.0 * place),), rated=90.0 * place if is_pooled else None)
        for place, one in enumerate(documents)
    ]
    settings = settings_with(WORDLESS, rag_max_files=1)
    plain, after = (answered(Ask(QUESTION), found, settings) for found in (documents, turned))
    assert after.evidence == plain.evidence and after.evidence is not None and after.evidence > FEW
    assert [one.document.id for one in after.extracts] == [documents[-1].id], "the order is the reranker's"


def test_just_as_much_evidence_as_is_wanted_is_enough() -> None:
    documents = (Document("d", APART, language="en"), *OTHERS)

    def selected(least: float) -> Selected:
        settings = settings_with(WORDLESS, rag_evidence_min=least)
        return answered(Ask(QUESTION), documents, settings)

    there = selected(0.0001).evidence or 0.0
    enough, short = selected(there), selected(there + 0.0001)
    assert enough.extracts != () and short.extracts == ()


def test_a_question_that_names_a_file_is_answered_from_it() -> None:
    url = "file:///people/Runa%20Holm.txt"
    note = Document("n", "Room: C 14. It is the last one on the left.", title="Room C 14", url=url)
    named, unnamed = (
        evidence_of(signals(document, *OTHERS, question="Where does Runa Holm sit?"))
        for document in (note, replace(note, url="file:///people/other.txt"))
    )
    assert unnamed < AUTO < named


def test_the_name_of_a_file_counts_in_whatever_form_a_system_writes_it() -> None:
    (composed, decomposed) = (
        weigh("Prüfbericht Kessel", [Document("d", "Nothing.", url=f"file:///{name}.txt")], language="de").order[0]
        for name in ("Pr%C3%BCfbericht%20Kessel", "Pru%CC%88fbericht_Kessel")
    )
    assert composed.named == decomposed.named == (True, True)
