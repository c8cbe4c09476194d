"""A text is checked sentence by sentence, by the same proof as citations."""

from __future__ import annotations

from itertools import islice, permutations

import pytest

from datafari_rag.core.answer.text_check import CheckedSentence, SentenceProof, checked, checked_against
from datafari_rag.core.citations.places import BLOCK_CHARS
from datafari_rag.core.citations.resolution import seen_of
from datafari_rag.core.citations.verification import CheckedExtract, ComparedText
from datafari_rag.core.documents import Document, Extract, Passage
from datafari_rag.core.errors import BadRequest
from datafari_rag.core.passages.extracts import extracts_for
from datafari_rag.core.text.sentences import spans

FERRY = "The ferry leaves at nine on Sundays. A ticket costs 12 euros.\nDogs are not allowed on deck."
HOUSE = "The museum opens at ten. The ferry leaves at nine on Sundays, weather and all."


def extracts(*texts: str) -> tuple[Extract, ...]:
    documents = [Document(f"d{number}", text, title=f"Page {number}") for number, text in enumerate(texts)]
    return extracts_for([(one, (Passage(0, len(one.text)),)) for one in documents], is_cleaned=True)


@pytest.mark.parametrize(
    ("text", "statuses"),
    [
        pytest.param("The ferry leaves at nine on Sundays.", ["verified"], id="a sentence"),
        pytest.param("The page says “the ferry leaves at nine on Sundays”.", ["verified"], id="the words"),
        pytest.param("The ferry leaves at ten on Sundays.", ["contradicted"], id="another number"),
        pytest.param("Dogs are allowed on deck.", ["contradicted"], id="the contrary"),
        pytest.param("A ticket costs 12 euros. The moon is cheese.", ["verified", "unsupported"], id="two sentences"),
        pytest.param("A ticket costs 12 euros [1]. See [Page 0].", ["verified"], id="marks are left out"),
        pytest.param(
            "A ticket, of course, costs 12 euros. Twelve euros.", ["near", "unsupported"], id="a word added, a fragment"
        ),
        pytest.param("Yes, the ferry leaves at nine on Sundays.", ["verified"], id="a word of assent"),
        pytest.param("Well the ferry leaves at nine on Sundays.", ["unsupported"], id="a word that may say more"),
        pytest.param("Does a ticket cost 12 euros?", [], id="a question"),
        pytest.param("… [1]", [], id="nothing is stated"),
        pytest.param("", [], id="nothing"),
    ],
)
def test_each_sentence_that_states_something_is_looked_for(text: str, statuses: list[str]) -> None:
    assert [one.status for one in checked(text, extracts(FERRY))] == statuses


def test_behind_a_full_stop_nothing_turns_a_sentence_in_small_letters() -> None:
    text = "It may rain on Mondays. the ferry leaves at nine. it is only said to be slow."
    said = "The ferry leaves at nine. Yes it is only said to be slow."
    assert [one.status for one in checked(said, extracts(text))] == ["verified", "verified"]


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
    claim, shorter = "The ferry leaves at nine.", "The ferry, a red ship, leaves at nine."
    (one,) = checked(claim, extracts(*[shorter] * 4, claim, *[claim] * 4))
    assert (one.status, [proof.document_id for proof in one.proofs]) == ("verified", ["d4", "d5", "d6"])
    (one,) = checked(claim, extracts(claim, *[shorter] * 4))
    assert [proof.status for proof in one.proofs] == ["verified", "supported", "supported"]
    assert [one.strength(proof) for proof in one.proofs] == [1.0, 0.8, 0.8]
    (one,) = checked("A ticket costs 15 euros.", extracts(*[FERRY] * 5))
    assert [place.document_id for place in one.against] == ["d0", "d1", "d2"]


def test_what_is_like_the_documents_is_near_and_no_proof() -> None:
    (one,) = checked("On Sundays at nine the ferry leaves.", extracts(FERRY, "No word of it."))
    assert (one.status, one.proofs, one.is_proved) == ("near", (), False)
    assert [place.document_id for place in one.close] == ["d0"]
    assert 0.6 <= one.likeness < 1


def test_a_sentence_proved_everywhere_takes_little_work() -> None:
    same = "The ferry is at the harbour gate. "
    found = checked(same * 99, extracts(*[same * 100] * 199))
    assert {(one.status, len(one.proofs)) for one in found} == {("verified", 3)}


def test_behind_three_documents_that_verify_a_sentence_none_is_looked_into() -> None:
    words = ("cats", "dogs", "birds", "fish", "cows", "goats")
    claims = " ".join(f"{' '.join(three).capitalize()}." for three in islice(permutations(words, 3), 15))
    long = f"{' '.join(words)} " * 5_000
    assert [one.status for one in checked(claims, extracts(*[claims] * 3, long))] == ["verified"] * 15
    with pytest.raises(BadRequest, match="too much work"):
        checked(claims, extracts(*[claims] * 2, long))


def test_work_is_bounded_however_much_claims_and_documents_have_in_common() -> None:
    claim = " ".join(f"a{number % 2} b{number % 3}" for number in range(60)) + " end."
    place = " ".join(f"a{number % 2} b{number % 3}" for number in range(1, 60)) + " stop."
    with pytest.raises(BadRequest, match="too much work"):
        checked(f"{claim} " * 90, extracts(*[f"{place} " * 40] * 150))


def test_behind_the_work_of_a_text_nothing_is_proved() -> None:
    (extract,) = extracts(FERRY)
    for most, status in ((10_000, "verified"), (10, "unsupported")):
        seen = CheckedExtract(extract, ComparedText("en", most))
        assert seen.finding("A ticket costs 12 euros.").status == status
        assert seen.text.is_over == (status != "verified")


DOGS = "Dogs ride free of any charge."


def test_work_that_ends_anywhere_leaves_the_whole_finding_or_nothing() -> None:
    (extract,) = extracts(f"The ferry leaves at nine. It is blue and old. {DOGS} The ferry leaves at nine. {DOGS}")
    whole = CheckedExtract(extract, ComparedText("en"))
    found = whole.finding(f"The ferry leaves at nine. {DOGS}")
    assert found.status == "verified"
    for most in range(whole.text.work):
        seen = CheckedExtract(extract, ComparedText("en", most))
        assert seen.finding(f"The ferry leaves at nine. {DOGS}").status == "unsupported"


TRIP = "The ferry leaves at nine. The fee is 12 euros for each of the bicycles on board. Dogs ride free of any charge."


@pytest.mark.parametrize(
    ("claim", "status", "place"),
    [
        pytest.param(TRIP[:80], "verified", TRIP[:80], id="neighbours are one stretch"),
        pytest.param(
            "The ferry leaves at nine. Dogs ride free of any charge.",
            "supported",
            "Dogs ride free of any charge.",
            id="others have something left out between them, and the longest is shown",
        ),
    ],
)
def test_two_sentences_of_a_document_prove_a_claim_of_two(claim: str, status: str, place: str) -> None:
    (extract,) = extracts(TRIP)
    found = CheckedExtract(extract, ComparedText("en")).finding(claim)
    assert found.place is not None
    assert (found.status, TRIP[slice(*found.place)], found.likeness) == (status, place, 1.0)


def test_a_sentence_that_was_compared_with_nothing_is_like_nothing() -> None:
    assert CheckedSentence(0, 1, None).likeness == 0.0


def test_a_sentence_is_looked_at_whole_however_long_it_is() -> None:
    """What a part of it says may be turned by what stands behind, as far away as it may be."""
    duties = " and ".join(f"keeps record {number} of all the parts" for number in range(60))
    long = f"The contractor delivers the goods to the harbour, {duties}, unless the harbour is closed."
    assert [one.status for one in checked(long, extracts(long))] == ["verified"]
    pieces = [long[start:end].rstrip(",") + "." for start, end in spans(long)]
    assert len(pieces) > 2
    assert not {one.status for piece in pieces for one in checked(piece, extracts(long))} & {"verified", "supported"}


def test_where_a_sentence_is_longer_than_a_block_no_edge_is_taken_for_its_own() -> None:
    clause = "il porto di prua e di poppa con mille vele bianche e rosse "
    whole = f"La nave lascia {clause * 200}ma non oggi."
    begun = whole[: whole.index(" ", BLOCK_CHARS)]
    assert {one.status for one in checked(begun, extracts(whole))}.isdisjoint(("verified", "supported"))


def test_what_is_foreign_to_a_text_takes_little_work() -> None:
    """Words are counted once in each document: no sentence of one that lacks them is cut, read or aligned."""
    text = ComparedText("en")
    places = [f"Paragraph {number} of a statute governs libraries and their budgets. " * 20 for number in (1, 2)]
    sentences = [f"The ferry to island {number} leaves at nine, says the harbour master." for number in range(10)]
    for seen in seen_of(extracts(*places), text):
        assert {seen.finding(one).status for one in sentences} == {"unsupported"}
    assert text.work < sum(map(len, places)) // 10


def test_more_sentences_than_are_looked_for_are_refused() -> None:
    with pytest.raises(BadRequest, match="501 sentences: at most 500"):
        checked("The cat sleeps. " * 501, extracts("The dog barks."))


def test_as_many_sentences_as_are_looked_for_are_taken() -> None:
    assert checked("Ab. " * 500, extracts("x")) == ()


def test_what_is_near_is_named_in_the_order_of_its_likeness() -> None:
    (one,) = checked(
        "The ferry leaves at nine on Sundays.",
        extracts(
            "On Sundays at nine the ferry goes.",
            "On Sundays at nine the ferry leaves.",
            "Nothing of that.",
            "On Sundays at nine the ferry goes.",
        ),
    )
    assert [place.document_id for place in one.close] == ["d1", "d0", "d3"]
    assert 0.6 < one.likeness < 1


def test_beside_a_contradiction_a_likeness_is_not_named() -> None:
    like = "A ticket to the island costs, as all know, 15 euros or so."
    (one,) = checked("A ticket costs 15 euros.", extracts(like, "A ticket costs 12 euros."))
    assert [place.document_id for place in one.against] == ["d1"]


def test_a_few_words_are_in_the_language_of_the_text_around_them() -> None:
    assert len(checked("Die Fähre fährt am Sonntag um neun. Als Quelle [1].", extracts(FERRY))) == 1


def test_what_contradicts_a_sentence_is_named_where_nothing_proves_it() -> None:
    (one,) = checked("A ticket costs 15 euros.", extracts("No word of it.", FERRY))
    assert [(place.document_id, place.quote) for place in one.against] == [("d1", "A ticket costs 12 euros.")]
    (one,) = checked("A ticket costs 15 euros.", extracts(FERRY, "A ticket costs 15 euros."))
    assert (one.status, one.against) == ("verified", ())


def test_a_claim_is_not_supported_by_a_copy_with_another_word() -> None:
    text = "Chemists include the classical liberalism defender Hayek. Nothing more."
    documents = [Document("d", text, title="University")]
    read = extracts_for([(one, (Passage(0, len(one.text)),)) for one in documents], is_cleaned=True)
    (one,) = checked("Chemists include the classical University defender Hayek.", read)
    assert one.status == "unsupported"


def test_a_claim_is_not_supported_by_pieces_of_two_sentences() -> None:
    far = "Members communicate needs early and in writing to whoever is in charge of them. Virtual visits help doctors."
    assert [one.status for one in checked("Members communicate visits help doctors.", extracts(far))] == ["near"]


def test_more_pairs_than_are_compared_are_refused() -> None:
    with pytest.raises(BadRequest, match="300 sentences against 70 texts"):
        checked("The cat sleeps. " * 300, extracts(*["The dog barks."] * 70))


def test_just_as_many_pairs_as_are_compared_are_taken() -> None:
    hundred = "Ab. " * 100
    assert checked(hundred, extracts(*["x"] * 200)) == ()
    with pytest.raises(BadRequest, match="at most 20000 pairs"):
        checked(hundred, extracts(*["x"] * 201))


def statuses_of(said: str, text: str) -> list[str | None]:
    return [one.status for one in checked(said, extracts(text))]


def test_a_number_with_another_unit_contradicts() -> None:
    """The unit of the claim need stand nowhere in the document."""
    assert statuses_of("It weighs 5 lb.", "It weighs 5 kg.") == ["contradicted"]


@pytest.mark.parametrize(("times", "status"), [(81, "verified"), (82, "unsupported")])
def test_a_claim_and_a_sentence_of_one_repeated_word_are_compared_up_to_a_bound(times: int, status: str) -> None:
    """81 places of 81 words are 20,000 cells."""
    said = f"Grass{' ab' * times}."
    assert statuses_of(said, said) == [status]


@pytest.mark.parametrize("sign", ["-", "(a)"])
def test_an_item_is_proved_with_a_label_that_stands_far_above_it(sign: str) -> None:
    others = "".join(f"{sign} a ticket for way {number} {'round and ' * 20}back\n" for number in range(9))
    known = "On Sundays these do not cost nothing, and they cost nothing on these Sundays."
    text = f"{known}\n\nOn Sundays these cost nothing:\n{others}{sign} the ferry to the island\n"
    assert statuses_of("On Sundays these cost nothing: the ferry to the island.", text) == ["verified"]


@pytest.mark.parametrize(("sign", "status"), [("", "verified"), ("- ", "unsupported")])
def test_an_item_and_the_sentence_behind_it_are_not_one_statement(sign: str, status: str) -> None:
    assert statuses_of("The ferry leaves at nine, it is slow.", f"{sign}The ferry leaves at nine. It is slow.") == [
        status
    ]


@pytest.mark.parametrize(("before", "status"), [(58, "verified"), (59, "verified"), (60, "unsupported")])
def test_sixty_places_of_the_rarest_word_are_looked_at(before: int, status: str) -> None:
    others = "At noon it sleeps, and the striped zebra, a zebra, at noon sleeps not at all there. " * (before // 2)
    more = "At noon the striped cat sleeps. " * 80
    text = f"{'A zebra. ' * (before % 2)}{others}The striped zebra sleeps at noon. {more}"
    assert statuses_of("The striped zebra sleeps at noon.", text) == [status]


def test_a_block_of_a_long_document_begins_where_a_sentence_does() -> None:
    """The second sentence that ends behind the least length of a block is not taken apart."""
    short = "The cat has gone to the house of the man. "
    filler = short * (BLOCK_CHARS // len(short))
    duties = ", ".join(f"keeps record {number} of all the parts" for number in range(58))
    long = f"The captain delivers the goods, {duties}, unless the harbour is closed."
    assert statuses_of(long, f"{filler}{short}{long} The end of it all is there.") == ["verified"]


def test_what_states_nothing_is_kept_apart() -> None:
    found = checked_against("See [1]. A ticket costs 12 euros.", [Document("d", FERRY)], is_cleaned=True)
    assert [one.status for one in found.sentences] == [None, "verified"]
    assert [one.status for one in found.stated] == ["verified"]


def test_without_documents_nothing_is_proved() -> None:
    assert [one.status for one in checked("The ferry leaves at nine.", ())] == ["unsupported"]


def test_sentences_of_an_answer_have_the_worst_status_of_what_they_state() -> None:
    proof = SentenceProof(extracts(FERRY), "en")
    assert proof.of("The ferry leaves at nine on Sundays [1].") == "verified"
    assert proof.of("See [1].") is None
    assert proof.of("The moon is made of cheese [1].") == "unsupported"


def test_behind_a_document_that_verifies_a_sentence_none_is_looked_into() -> None:
    proofs = [SentenceProof(read, "en") for read in (extracts(FERRY), extracts(FERRY, HOUSE))]
    assert [proof.of("The ferry leaves at nine on Sundays.") for proof in proofs] == ["verified"] * 2
    first, second = (proof.sources[0].text.work for proof in proofs)
    assert first == second


def test_behind_the_last_sentence_that_is_checked_nothing_is_proved() -> None:
    proof = SentenceProof(extracts(FERRY), "en")
    assert [proof.of("A ticket costs 12 euros.") for _ in range(501)][-2:] == ["verified", "unsupported"]


@pytest.mark.parametrize(
    "claim", ["\x00 \x00 \x00 the ferry leaves.", "\u200b \u2060 a b c.", "* * *", "\ufffe\ufffe x y z."]
)
def test_words_of_invisible_characters_stand_nowhere(claim: str) -> None:
    assert {one.status for one in checked(claim, extracts(f"{FERRY} \x00 \u200b"))} <= {"unsupported"}


def test_of_a_document_the_whole_is_read_without_the_paths_of_its_headings() -> None:
    text = "# Ferries\n\nThe ferry leaves at nine.\n\n# Fees\n\nDogs ride free."
    found = checked_against("The ferry leaves at nine. Dogs ride free.", [Document("d", text)], is_cleaned=True)
    assert [one.status for one in found.sentences] == ["verified", "verified"]
    assert [(one.paths, one.passages) for one in found.extracts] == [((), (Passage(0, len(text)),))]
