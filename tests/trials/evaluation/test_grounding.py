from pathlib import Path

import pytest

from datafari_rag_trials.evaluation.grounding import (
    CheckedClaim,
    ClaimRates,
    LabelledClaim,
    check,
    claims_in,
    grounding_table,
    rates_by_set,
)
from datafari_rag_trials.evaluation.questions import UnreadableQuestions

FERRY = "The ferry leaves at nine on Sundays. A ticket costs 12 euros."


def claim(text: str, *, is_right: bool = True, group: str = "a") -> LabelledClaim:
    return LabelledClaim("1", group, text, ("The bank is open.", FERRY), is_right)


def checked(group: str, *, is_right: bool, status: str, times: int = 1) -> list[CheckedClaim]:
    return [CheckedClaim(claim("", is_right=is_right, group=group), status)] * times


def test_claims_are_read_from_every_folder_in_order(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "claims.jsonl").write_text(
        '{"id": "z", "set": "own", "claim": "No.", "references": [], "label": "unsupported"}\n', encoding="utf-8"
    )
    (tmp_path / "b" / "claims.jsonl").write_text(
        '{"claim": "Yes.", "references": ["Yes."], "label": "supported"}\n', encoding="utf-8"
    )
    first, second = claims_in(tmp_path)
    assert first == LabelledClaim(f"{tmp_path}/b/claims.jsonl:1", "claims", "Yes.", ("Yes.",), is_right=True)
    assert second == LabelledClaim("z", "own", "No.", (), is_right=False)


@pytest.mark.parametrize(
    "line",
    ["[]", '{"claim": "x", "label": "supported"}', '{"claim": "x", "references": [], "label": "partly"}'],
)
def test_a_line_that_is_no_claim_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "claims.jsonl").write_text(line, encoding="utf-8")
    with pytest.raises(UnreadableQuestions, match=r"claims\.jsonl:1"):
        claims_in(tmp_path)


def test_a_folder_without_claims_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnreadableQuestions, match="holds no claims"):
        claims_in(tmp_path)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("The ferry leaves at nine on Sundays.", "verified"),
        ("“The ferry leaves at nine on Sundays.”", "verified"),
        ("The ferry leaves at nine on Sundays. The moon is made of cheese.", "unsupported"),
        ("The ferry leaves at nine on Sundays. A ticket costs 15 euros.", "unsupported"),
        ("", "unsupported"),
    ],
)
def test_a_claim_is_what_its_worst_sentence_is(text: str, status: str) -> None:
    assert check(claim(text)).status == status


def test_shares_are_of_the_right_of_the_wrong_and_of_the_proved() -> None:
    found = rates_by_set(
        [
            *checked("a", is_right=True, status="verified"),
            *checked("a", is_right=True, status="near"),
            *checked("a", is_right=True, status="unsupported"),
            *checked("a", is_right=True, status="unsupported"),
            *checked("a", is_right=False, status="quoted"),
            *checked("a", is_right=False, status="unsupported", times=3),
        ]
    )
    assert found == {"a": ClaimRates(8, 4, 2, 50.0, 25.0, 50.0, 25.0, 62.5)}


def test_all_counts_claims_together_and_gives_each_set_the_same_weight_in_balanced_accuracy() -> None:
    found = rates_by_set(
        [
            *checked("a", is_right=True, status="quoted"),
            *checked("a", is_right=False, status="unsupported"),
            *checked("b", is_right=True, status="unsupported", times=7),
            *checked("b", is_right=False, status="unsupported"),
        ]
    )
    assert [found[name].balanced for name in ("a", "b", "all")] == [100.0, 50.0, 75.0]
    assert (found["all"].claims, found["all"].right, found["all"].coverage) == (10, 8, 12.5)


def test_a_share_of_nothing_is_a_dash() -> None:
    found = rates_by_set(checked("a", is_right=False, status="near", times=1200))
    assert found["a"].balanced is None
    assert grounding_table(found).splitlines()[2] == "| a | 1,200 | 0 | 0 | – | – | – | 100.0 | – |"
