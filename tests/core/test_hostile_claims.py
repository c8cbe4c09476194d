"""What a document does not say is proved in no kind of claim, and what it says is, in every kind and language."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

from datafari_rag.core.documents import Document, Passage
from datafari_rag.core.evidence.extracts import extracts_for
from datafari_rag.core.proof.checking import resolve
from tests.core.hostile_claims import FILES, PROVED, Case, generated, table, written

HANDBOOK = "The ferry leaves at nine. The report is public. Everybody may read the handbook of the company."
ANSWERS = (FILES / "marks.txt").read_text(encoding="utf-8").splitlines()[1:]
SPELLINGS = ("en", "EN", "en-US", "en_GB", "fr", "fr-CA", "de", "xx", "", "zh-Hant")


def by_kind(*, is_said: bool) -> dict[str, list[Case]]:
    found = defaultdict(list)
    for case in written():
        if case.is_said is is_said:
            found[case.kind].append(case)
    return found


WORD_FOR_WORD = ("verified", "quoted")
UNSAID, SAID = by_kind(is_said=False), by_kind(is_said=True)


def test_there_are_as_many_claims_as_an_attack_wrote() -> None:
    assert len({(case.claim, case.document.text) for case in written() if not case.is_said}) > 253


@pytest.mark.parametrize("kind", UNSAID)
def test_what_a_document_does_not_say_is_not_proved(kind: str) -> None:
    assert [(case.claim, case.document.text) for case in UNSAID[kind] if case.status in PROVED] == []


@pytest.mark.parametrize("kind", SAID)
def test_what_a_document_says_is_proved_whatever_is_harmless_about_it(kind: str) -> None:
    assert [(case.claim, case.document.text) for case in SAID[kind] if case.status not in WORD_FOR_WORD] == []


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_mark_is_proved_where_all_of_its_sentence_is(answer: str) -> None:
    text = answer.replace("\\n", "\n")
    wanted = [sign == "+" for sign in re.findall(r"\[1([+-])\]", text)]
    extracts = extracts_for([(Document("d", HANDBOOK, title="Note"), (Passage(0, len(HANDBOOK)),))], is_cleaned=True)
    citations = resolve(re.sub(r"\[1[+-]\]", "[1]", text), extracts, language="en")
    assert [one.status in WORD_FOR_WORD for one in citations] == wanted


@pytest.mark.parametrize("language", SPELLINGS)
def test_no_spelling_of_the_language_hides_a_denial(language: str) -> None:
    said, denied = "The company reimburses the cost of taxis", "The company does not reimburse the cost of taxis"
    document = Document("d", f"{denied}.", title="Note")
    extracts = extracts_for([(document, (Passage(0, len(document.text)),))], is_cleaned=True)
    statuses = {
        claim: [one.status for one in resolve(f"{claim} [1].", extracts, language=language)]
        for claim in (said, f"“{said}”", "The company does reimburse the cost of taxis", denied, f"“{denied}”")
    }
    assert [claim for claim, (status,) in statuses.items() if status in WORD_FOR_WORD] == [denied, f"“{denied}”"]


@pytest.mark.parametrize("part", ("said", "unsaid"))
def test_sentences_of_real_texts_are_proved_and_altered_ones_are_not(part: str) -> None:
    counts, _ = table(case for case in generated() if case.is_said is (part == "said"))
    for kind, one in counts.items():
        assert kind != "ALL unsaid" or one["unsaid proved"] == 0
        assert one["said proved"] + one["said quoted"] >= 0.94 * one["said"]
    assert sum(one["unsaid"] + one["said"] for one in counts.values()) > 10


def test_hardly_any_altered_number_is_near() -> None:
    counts, _ = table(case for case in generated() if case.kind[11:] == "number changed")
    unsaid = counts["ALL unsaid"]
    assert unsaid["unsaid near"] + unsaid["unsaid quoted"] <= 0.05 * unsaid["unsaid"]
