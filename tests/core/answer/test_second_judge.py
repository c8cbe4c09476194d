"""Only what the first judge is not sure of is sent on, and only the second judge's word changes what is said of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from datafari_rag.core.answer.text_check import (
    MAX_PREMISE_CHARS,
    MAX_PREMISES,
    Doubt,
    JudgeFailure,
    JudgeReport,
    TextCheck,
    Verdict,
    checked_against,
    doubtful_claims,
    judged_again,
)
from datafari_rag.core.documents import Document

FERRY = "The ferry leaves at nine on Sundays. A ticket costs 12 euros. Children below six travel without paying."
MUSEUM = "The museum opens at ten. Children love the old ferry in its garden."


@dataclass
class FakeJudge:
    said: Sequence[Verdict] | JudgeFailure
    doubts: list[Doubt] = field(default_factory=list)

    def judge(self, doubts: Sequence[Doubt]) -> Sequence[Verdict] | JudgeFailure:
        self.doubts.extend(doubts)
        return self.said


def check_of(text: str, *documents: str) -> TextCheck:
    read = [Document(f"d{number}", one, title=f"Page {number}") for number, one in enumerate(documents)]
    return checked_against(text, read, is_cleaned=True)


def judged(check: TextCheck, judge: FakeJudge, most: int = 20) -> tuple[TextCheck, JudgeReport]:
    return judged_again(check, doubtful_claims(check, "en", most), judge, "en")


REWORDED = "Small children ride on the ferry free of charge."


@pytest.mark.parametrize(
    ("text", "status"),
    [
        pytest.param("The ferry leaves at nine on Sundays.", "verified", id="proved"),
        pytest.param("The page says “the ferry leaves at nine on Sundays”.", "verified", id="quoted"),
        pytest.param("A ticket costs 15 euros.", "contradicted", id="contradicted"),
        pytest.param("The page says “the ferry sinks at nine on Sundays”.", "unsupported", id="a wrong quotation"),
        pytest.param("Volcanoes erupt.", "unsupported", id="no word of it is anywhere"),
        pytest.param("…", None, id="nothing is stated"),
    ],
)
def test_what_is_sure_is_never_sent(text: str, status: str | None) -> None:
    check = check_of(text, FERRY, MUSEUM)
    assert [one.status for one in check.sentences] == [status]
    judge = FakeJudge(JudgeFailure("judgeTimeout"))
    assert judged(check, judge) == (check, JudgeReport(0))
    assert judge.doubts == []


def test_a_proof_of_the_second_judge_names_its_places_and_is_a_weak_one() -> None:
    judge = FakeJudge([Verdict(proving=(0,), contradicting=(1,))])
    found, report = judged(check_of(REWORDED, FERRY, MUSEUM), judge)
    (one,) = found.sentences
    assert (one.status, one.is_by_second, report) == ("supported", True, JudgeReport(1, 1))
    (proof,) = one.proofs
    assert judge.doubts[0].claim == REWORDED
    assert judge.doubts[0].premises[0] == proof.quote
    assert one.strength(proof) == 0.6
    assert {"d0": FERRY, "d1": MUSEUM}[proof.document_id or ""][proof.start : proof.end] == proof.quote


def test_a_contradiction_of_the_second_judge_names_its_places() -> None:
    found, report = judged(check_of(REWORDED, FERRY), FakeJudge([Verdict(contradicting=(0,))]))
    (one,) = found.sentences
    assert (one.status, one.is_by_second, len(one.against), one.proofs) == ("contradicted", True, 1, ())
    assert report == JudgeReport(1, 1)
    assert [(place.answer_start, place.answer_end) for place in one.against] == [(0, 0)], "no mark names it"


@pytest.mark.parametrize("said", [[Verdict()], JudgeFailure("judgeUnavailable", "it answered 503")])
def test_without_its_word_the_first_judge_counts(said: Sequence[Verdict] | JudgeFailure) -> None:
    check = check_of(REWORDED, FERRY)
    found, report = judged(check, FakeJudge(said))
    assert found == check
    assert report == JudgeReport(1, failure=said if isinstance(said, JudgeFailure) else None)


def test_only_so_many_claims_and_places_are_sent() -> None:
    judge = FakeJudge([Verdict(), Verdict()])
    long = "The ferry goes far, " * 400
    judged(check_of(f"{REWORDED} " * 5, *[FERRY] * 5, long, "漢字"), judge, most=2)
    assert len(judge.doubts) == 2
    assert all(len(one.premises) == MAX_PREMISES for one in judge.doubts)
    assert all(len(premise) <= MAX_PREMISE_CHARS for one in judge.doubts for premise in one.premises)


def test_scripts_without_spaces_are_sent_too() -> None:
    judge = FakeJudge([Verdict(proving=(0,))])
    text = "员工每年有二十五天的带薪年假。办公室九点开门。"
    check = check_of("全体员工每年休假二十五天，工资照发。", text)
    found, _ = judged_again(check, doubtful_claims(check, "zh", 9), judge, "zh")
    assert [one.status for one in found.sentences] == ["supported"]
    assert judge.doubts[0].premises[0] in text


def test_the_likeliest_places_are_sent_up_to_a_length() -> None:
    claim, words = "Small children ride on the ferry with dogs.", "Small children ride on the ferry"
    sleeping = "Children sleep in houses and eat at tables all day long."
    documents = [sleeping, f"{words}{', and they' * 150} do.", "Small children ride.", f"{words}.", "Ferry."]
    judge = FakeJudge([Verdict(proving=(2,))])
    found, _ = judged(check_of(f"Volcanoes erupt. {claim}", *documents), judge)
    first, second, third = judge.doubts[0].premises
    assert {first[:200], second[:200]} == {f"{words}.", documents[1][:200]}
    assert (max(map(len, (first, second))), third) == (1_200, "Small children ride.")
    (proof,) = found.sentences[1].proofs
    assert (proof.document_id, proof.claim) == ("d2", claim)
