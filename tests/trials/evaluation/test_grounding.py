import pytest

from datafari_rag_trials.evaluation.grounding import (
    CheckedClaim,
    ClaimRates,
    LabelledClaim,
    check,
    rates_by_set,
)

FERRY = "The ferry leaves at nine on Sundays. A ticket costs 12 euros."


def claim(text: str, *, is_right: bool = True, group: str = "a") -> LabelledClaim:
    return LabelledClaim("1", group, text, ("The bank is open.", FERRY), is_right)


def checked(group: str, *, is_right: bool, status: str, times: int = 1) -> list[CheckedClaim]:
    return [CheckedClaim(claim("", is_right=is_right, group=group), status)] * times


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
