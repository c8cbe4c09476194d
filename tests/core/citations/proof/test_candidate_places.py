"""A claim is found wherever it stands: words that a document has often lead to its place all the same."""

from __future__ import annotations

from itertools import product

import pytest

from datafari_rag.core.citations.proof.candidate_places import MAX_HELD_CHARS, MAX_VISITED
from datafari_rag.core.citations.proof.seen_text import WHOLE_CHARS
from datafari_rag.core.citations.text_check import checked
from datafari_rag.core.documents import Document, Extract, Passage
from datafari_rag.core.passages.extracts import extracts_for


def extracts(*texts: str) -> tuple[Extract, ...]:
    documents = [Document(f"d{number}", text, title=f"Page {number}") for number, text in enumerate(texts)]
    return extracts_for([(one, (Passage(0, len(one.text)),)) for one in documents], is_cleaned=True)


def statuses(text: str, *documents: str) -> list[str | None]:
    return [one.status for one in checked(text, extracts(*documents))]


GATES = " ".join(f"Gate {number} opens near harbour hall." for number in range(20, 420))
ROADS = ["oak", "elm", "ash", "fir", "yew", "pine", "lime", "plum", "pear", "fig", "palm", "rose"]
CROSSINGS = " ".join(f"The {one} road crosses the {other} lane." for one in ROADS for other in ROADS)


@pytest.mark.parametrize(
    ("claim", "document", "status"),
    [
        pytest.param("Gate 300 opens near harbour hall.", GATES, "supported", id="a number among 400"),
        pytest.param("Gate 419 opens near harbour hall.", GATES, "supported", id="the last of them"),
        pytest.param("Gate 700 opens near harbour hall.", GATES, "contradicted", id="a number that is not there"),
        pytest.param("The rose road crosses the palm lane.", CROSSINGS * 2, "supported", id="words that are common"),
        pytest.param("Doors open at 9 daily.", "Doors open at 8 daily. " * 500 + "Doors open at 9 daily.", "supported",
                     id="behind 500 that are alike"),
    ],
)  # fmt: skip
def test_words_that_stand_in_hundreds_of_places_are_looked_for_in_all_of_them(
    claim: str, document: str, status: str
) -> None:
    assert len(document) > WHOLE_CHARS
    assert statuses(claim, document) == [status]


def test_a_claim_whose_words_are_in_more_places_than_are_looked_at_is_never_contradicted() -> None:
    wards = ["".join(letters) for letters in product("bcdfghjklmnprst", repeat=3)]
    many = " ".join(f"Doors of ward {ward} open at 8 daily." for ward in wards[: MAX_HELD_CHARS // 30])
    assert statuses("Doors of ward open at 9 daily.", many) == ["unsupported"]
    few = " ".join(f"Doors of ward {ward} open at 8 daily." for ward in wards[:5])
    assert statuses("Doors of ward open at 9 daily.", few) == ["contradicted"]


def test_a_claim_whose_words_are_near_each_other_in_too_many_places_is_never_contradicted() -> None:
    apart = "The ward is new. It is clean. It is warm. Doors open at 8. " * (MAX_VISITED + 1)
    assert statuses("The doors of the ward open at 9.", "The doors of the ward open at 8. " + apart) == ["unsupported"]
    assert statuses("The doors of the ward open at 9.", "The doors of the ward open at 8.") == ["contradicted"]


def test_what_is_open_in_one_document_is_not_contradicted_by_another() -> None:
    apart = "The ward is new. It is clean. It is warm. Doors open at 8. " * (MAX_VISITED + 1)
    assert statuses("The doors of the ward open at 9.", apart, "The doors of the ward open at 8.") == ["unsupported"]


def test_words_far_from_each_other_lead_nowhere() -> None:
    nothing = "Nothing is here. " * 600
    far = f"Ferries are blue. {nothing}Some carry sheep. {nothing}Ferries are red. {nothing}"
    assert statuses("Ferries carry sheep.", far) == ["unsupported"]
    assert statuses("Ferries carry sheep.", far + "Ferries carry sheep.") == ["supported"]


def test_a_sign_inside_of_a_word_ends_the_search_too() -> None:
    assert statuses("It is 500 %.", "1%" * 50) == ["unsupported"]
    assert statuses("It is 500 %.", "It is 1% or 500%.") == ["supported"]


def test_a_word_that_begins_nowhere_is_passed_over() -> None:
    assert statuses("Ferries sink.", "xferries sink" + "ferries" * 50) == ["unsupported"]


def test_a_contradiction_is_looked_for_in_so_many_sentences_and_no_more() -> None:
    apart = "The ward is new. It is clean. It is warm. Doors open at 8. " * (MAX_VISITED + 1)
    behind = "The doors of the ward open at 8."
    assert statuses("The doors of the ward open at 19.", apart + behind) == ["unsupported"]
    assert statuses("The doors of the ward open at 19.", behind + apart) == ["contradicted"]


TABLE = "| Place | Opens | Hall |\n|---|---|---|\n| Harbour | nine | 4 |\n| Market | ten | 7 |\n"


@pytest.mark.parametrize(
    ("claim", "status"),
    [
        pytest.param("The hall of the market place is 7.", "supported", id="a cell with its names"),
        pytest.param("The hall of the harbour place is 7.", "unsupported", id="a cell of another row"),
    ],
)
def test_the_cell_of_a_table_carries_a_claim_with_the_names_of_its_row_and_column(claim: str, status: str) -> None:
    assert statuses(claim, TABLE) == [status]
