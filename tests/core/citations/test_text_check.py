"""A text is checked sentence by sentence, by the same proof as citations."""

from __future__ import annotations

import pytest

from datafari_rag.core.citations.text_check import checked, checked_against
from datafari_rag.core.documents import Document, Extract, Passage
from datafari_rag.core.errors import BadRequest
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
        pytest.param("The ferry leaves at ten on Sundays.", ["contradicted"], id="another number"),
        pytest.param("Dogs are allowed on deck.", ["contradicted"], id="the contrary"),
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


def test_the_strongest_proofs_are_named_and_no_more() -> None:
    claim = "The page says “the ferry leaves at nine”."
    spelled = "The ferry, leaves at nine."
    quoting = "Here the ferry leaves at nine."
    (one,) = checked(claim, extracts(*[spelled] * 4, quoting, *[quoting] * 4))
    assert (one.status, [proof.document_id for proof in one.proofs]) == ("verified", ["d4", "d5", "d6"])
    (one,) = checked(claim, extracts(quoting, *[spelled] * 4))
    assert [proof.status for proof in one.proofs] == ["verified", "supported", "supported"]
    (one,) = checked("A ticket costs 15 euros.", extracts(*[FERRY] * 5))
    assert [place.document_id for place in one.against] == ["d0", "d1", "d2"]


def test_a_sentence_proved_everywhere_takes_little_work() -> None:
    same = "Ferry gate harbour. "
    found = checked(same * 99, extracts(*[same * 200] * 199))
    assert {(one.status, len(one.proofs)) for one in found} == {("supported", 3)}


@pytest.mark.parametrize(
    ("claim", "place"),
    [
        pytest.param("Ferry gate and harbour hall. ", "Ferry gate. Harbour hall. ", id="proved by two sentences"),
        pytest.param("Ferry hall gate harbour 15. ", "Ferry hall gate harbour door. ", id="nearly contradicted"),
    ],
)
def test_places_that_all_look_like_proof_are_not_compared_without_end(claim: str, place: str) -> None:
    with pytest.raises(BadRequest, match="too much in common"):
        checked(claim * 99, extracts(*[place * 40] * 199))


def test_more_sentences_than_are_looked_for_are_refused() -> None:
    with pytest.raises(BadRequest, match="501 sentences: at most 500"):
        checked("The cat sleeps. " * 501, extracts("The dog barks."))


def test_what_contradicts_a_sentence_is_named_where_nothing_proves_it() -> None:
    (one,) = checked("A ticket costs 15 euros.", extracts("No word of it.", FERRY))
    assert [(place.document_id, place.quote) for place in one.against] == [("d1", "A ticket costs 12 euros.")]
    (one,) = checked("A ticket costs 15 euros.", extracts(FERRY, "A ticket costs 15 euros."))
    assert (one.status, one.against) == ("supported", ())


def test_only_so_many_places_are_held_against_a_sentence() -> None:
    text = " ".join(f"A ticket number {place} leaves." for place in range(50)) + " A ticket costs 12 euros."
    assert [one.status for one in checked("A ticket costs 15 euros.", extracts(text))] == ["contradicted"]
    text = (
        " ".join(f"A ticket costs much of {'x' * place} euros." for place in range(3, 60)) + " A ticket costs 12 euros."
    )
    assert [one.status for one in checked("A ticket costs 15 euros.", extracts(text))] == ["unsupported"]


def test_a_claim_is_not_supported_by_a_copy_with_another_word() -> None:
    text = "Chemists include the classical liberalism defender Hayek. Nothing more."
    documents = [Document("d", text, title="University")]
    read = extracts_for([(one, (Passage(0, len(one.text)),)) for one in documents], is_cleaned=True)
    (one,) = checked("Chemists include the classical University defender Hayek.", read)
    assert one.status != "supported"


def test_a_claim_is_not_supported_by_pieces_of_two_sentences() -> None:
    far = "Members communicate needs early and in writing to whoever is in charge of them. Virtual visits help doctors."
    assert [one.status for one in checked("Members communicate visits help doctors.", extracts(far))] == ["unsupported"]


def test_places_that_do_not_agree_are_tried_only_so_often() -> None:
    claim = "Chemists include the classical University defender Hayek."
    for altered, status in ((3, "supported"), (30, "unsupported")):
        wrong = [claim.replace("University", "y" * place) for place in range(4, 4 + altered)]
        text = "\n\n".join((*wrong, claim))
        read = extracts_for([(Document("d", text, title="University"), (Passage(0, len(text)),))], is_cleaned=True)
        assert [one.status for one in checked(claim, read)] == [status]


def test_more_pairs_than_are_compared_are_refused() -> None:
    with pytest.raises(BadRequest, match="300 sentences against 70 texts"):
        checked("The cat sleeps. " * 300, extracts(*["The dog barks."] * 70))


def test_what_states_nothing_is_kept_apart() -> None:
    found = checked_against("… A ticket costs 12 euros.", [Document("d", FERRY)], is_cleaned=True)
    assert [one.status for one in found.stated] == ["supported"]


def test_without_documents_nothing_is_proved() -> None:
    assert [one.status for one in checked("The ferry leaves at nine.", ())] == ["unsupported"]
