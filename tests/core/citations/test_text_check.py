"""A text is checked sentence by sentence, by the same proof as citations."""

from __future__ import annotations

import pytest

from datafari_rag.core.citations.text_check import checked
from datafari_rag.core.documents import Document, Extract, Passage
from datafari_rag.core.passages.extracts import extracts_for

FERRY = "The ferry leaves at nine on Sundays. A ticket costs 12 euros.\nDogs are not allowed on deck."
HOUSE = "The museum opens at ten. The ferry leaves at nine on Sundays, as the museum's page says."


def extracts(*texts: str) -> tuple[Extract, ...]:
    documents = [Document(f"d{number}", text, title=f"Page {number}") for number, text in enumerate(texts)]
    return extracts_for([(one, (Passage(0, len(one.text)),)) for one in documents], is_cleaned=True)


@pytest.mark.parametrize(
    ("text", "statuses"),
    [
        pytest.param("The ferry leaves at nine on Sundays.", ["supported"], id="the facts"),
        pytest.param("The page says “the ferry leaves at nine on Sundays”.", ["verified"], id="the words"),
        pytest.param("The ferry leaves at ten on Sundays.", ["unsupported"], id="another number"),
        pytest.param("Dogs are allowed on deck.", ["unsupported"], id="the contrary"),
        pytest.param("A ticket costs 12 euros. The moon is cheese.", ["supported", "unsupported"], id="two sentences"),
        pytest.param("A ticket costs 12 euros [1]. See [Page 0].", ["supported"], id="marks are left out"),
        pytest.param("… [1]", [], id="nothing is stated"),
        pytest.param("", [], id="nothing"),
    ],
)
def test_each_sentence_that_states_something_is_looked_for(text: str, statuses: list[str]) -> None:
    assert [one.status for one in checked(text, extracts(FERRY))] == statuses


def test_places_are_those_of_the_sentence_and_of_the_stored_text() -> None:
    text = "  A ticket costs 12 euros.  "
    (one,) = checked(text, extracts(FERRY))
    assert text[one.start : one.end] == text.strip()
    (proof,) = one.proofs
    assert FERRY[proof.start : proof.end] == proof.quote


def test_every_document_that_proves_a_sentence_is_named() -> None:
    (one,) = checked("The ferry leaves at nine on Sundays.", extracts(FERRY, HOUSE, "Nothing of that."))
    assert [proof.document_id for proof in one.proofs] == ["d0", "d1"]


def test_without_documents_nothing_is_proved() -> None:
    assert [one.status for one in checked("The ferry leaves at nine.", ())] == ["unsupported"]
