from __future__ import annotations

import pytest

from datafari_rag.core.citations.alignment import Alignment, UnitRow, aligned, cells
from datafari_rag.core.citations.units import units_in
from datafari_rag.core.text.language import Language, spoken

ENGLISH, FRENCH, GERMAN = spoken("en"), spoken("fr"), spoken("de")


def row(text: str, language: Language = ENGLISH, *, begins: bool = True, ends: bool = True) -> UnitRow:
    return UnitRow(units_in(text, 0, len(text), language), language, begins=begins, ends=ends)


def pair(text: str) -> UnitRow:
    return UnitRow(units_in(text, 0, len(text), ENGLISH), ENGLISH, is_pair=True)


def proof(place: str, claim: str) -> tuple[str, int] | None:
    """Return the stretch of *place* that says *claim*, and how often something was left out of it."""
    there = row(place)
    found = aligned(row(claim), there)
    if found is None:
        return None
    assert found.edits == 0
    return place[there.units[found.first].start : there.units[found.last].end], found.gaps


@pytest.mark.parametrize(
    ("place", "claim", "stretch"),
    [
        pytest.param("Dogs bark", "dogs bark", "Dogs bark", id="all of it"),
        pytest.param("Dogs bark, cats sleep", "Cats sleep", "cats sleep", id="behind a comma"),
        pytest.param("Dogs bark, cats sleep", "Dogs bark", "Dogs bark", id="before a comma"),
        pytest.param("Pets: cats sleep", "Cats sleep", None, id="behind a colon"),
        pytest.param("Bern | cats sleep", "Cats sleep", None, id="in a cell"),
        pytest.param("Pets: cats sleep", "pets: cats sleep", "Pets: cats sleep", id="with what is before a colon"),
        pytest.param("Also cats sleep", "Cats sleep", "cats sleep", id="behind a word that may be left out"),
        pytest.param("In addition cats sleep", "Cats sleep", "cats sleep", id="behind two such words"),
        pytest.param("Thus cats in addition cats sleep", "Cats sleep", None, id="behind those inside of a clause"),
        pytest.param("Dogs bark, and also cats sleep", "Cats sleep", "cats sleep", id="behind a conjunction too"),
        pytest.param("Dogs bark and cats sleep", "Dogs bark", "Dogs bark", id="before a conjunction"),
        pytest.param("Dogs bark and cats sleep", "Cats sleep", None, id="behind a conjunction without a comma"),
        pytest.param("Dogs bark at cats", "Dogs bark", None, id="cut off at its end"),
        pytest.param("Dogs bark loudly", "Dogs bark", None, id="cut off before its last word"),
        pytest.param("Dogs bark and", "Dogs bark", "Dogs bark", id="a conjunction behind which nothing is"),
        pytest.param("It costs ten euros and 50 cents", "It costs ten euros", None, id="half of an amount"),
        pytest.param("Big dogs bark", "Dogs bark", None, id="cut off at its beginning"),
        pytest.param("Dogs bark", "Dogs bark loudly", None, id="a word more"),
        pytest.param("Dogs bark", "Loudly dogs bark", None, id="a word more at the beginning"),
        pytest.param("Dogs dogs bark", "Dogs bark", None, id="a word that is there twice"),
        pytest.param("(For members) it is free", "It is free", "it is free", id="behind an aside"),
        pytest.param("If dogs bark, cats run", "Cats run", None, id="behind a condition"),
        pytest.param("Cats run, if dogs bark", "Cats run", None, id="before a condition"),
        pytest.param("Cats run, said she", "Cats run", None, id="before who says it"),
        pytest.param("Dogs bark, no cats run", "Dogs bark", None, id="before a denial"),
        pytest.param("No dogs bark, cats run", "No dogs bark", None, id="a denial that goes on behind a comma"),
        pytest.param("Dogs bark not, cats run", "Dogs bark not", None, id="a denial at the end of its clause"),
        pytest.param(
            "Dogs are free, of course", "Dogs are free", "Dogs are free", id="what a comma keeps from denying"
        ),
        pytest.param("No dogs bark, but cats run", "No dogs bark", "No dogs bark", id="a denial that has ended"),
        pytest.param("No dogs bark", "No dogs bark", "No dogs bark", id="a denial"),
    ],
)
def test_a_claim_is_said_from_the_beginning_of_a_clause_to_the_end_of_one(
    place: str, claim: str, stretch: str | None
) -> None:
    assert proof(place, claim) == (None if stretch is None else (stretch, 0))


@pytest.mark.parametrize(
    ("place", "claim", "gaps"),
    [
        pytest.param("Dogs also bark at cats", "Dogs bark at cats", 1, id="a word that says nothing"),
        pytest.param("Dogs as well bark at cats", "Dogs bark at cats", 1, id="two such words together"),
        pytest.param("Dogs also bark really at cats", "Dogs bark at cats", 2, id="two such words apart"),
        pytest.param("Dogs also really bark", "Dogs bark", 1, id="two such words in a row"),
        pytest.param("Dogs often bark", "Dogs bark", None, id="a word that turns"),
        pytest.param("Dogs not very big bark", "Dogs not big bark", None, id="less behind a word that turns says more"),
        pytest.param("Not very big dogs bark", "Not big dogs bark", None, id="nor behind one that begins a clause"),
        pytest.param("Dogs (big ones) bark", "Dogs bark", 1, id="an aside"),
        pytest.param("Dogs (big, old ones) bark", "Dogs bark", 1, id="an aside of two parts"),
        pytest.param("Dogs (big ones) bark (at cats)", "Dogs bark (at cats)", 1, id="an aside before another"),
        pytest.param("Dogs (big old ones) bark", "Dogs (big ones) bark", None, id="a word of an aside"),
        pytest.param("Dogs (if big) bark", "Dogs bark", None, id="an aside that turns"),
        pytest.param("(For members) it is free", "For it is free", None, id="half an aside at the beginning"),
        pytest.param("Dogs, big or old, bark", "Dogs bark", 1, id="a stretch between commas"),
        pytest.param("Dogs, if big, bark", "Dogs bark", None, id="a stretch that turns"),
        pytest.param("Dogs, big, old, bark", "Dogs bark", None, id="two stretches at once"),
        pytest.param("Dogs, big, bark, often heard, at cats", "Dogs bark", None, id="nothing behind what turns"),
        pytest.param("Dogs, big, bark (loud) at cats", "Dogs bark at cats", 2, id="a stretch and an aside apart"),
        pytest.param("Dogs, big (old), bark", "Dogs bark", 1, id="a stretch with an aside in it"),
        pytest.param("Dogs, also, bark", "Dogs bark", 1, id="a word between commas"),
        pytest.param("Dogs, big, really bark", "Dogs bark", 1, id="a stretch and a word"),
        pytest.param("Dogs big, bark", "Dogs bark", None, id="half a stretch"),
        pytest.param("Dog | brown | barks", "Dog | barks", 1, id="a cell"),
        pytest.param("Dog: brown: barks", "Dog: barks", None, id="a label"),
    ],
)
def test_what_says_nothing_of_a_claim_may_be_left_out_of_its_place(place: str, claim: str, gaps: int | None) -> None:
    found = proof(place, claim)
    assert (None if found is None else found[1]) == gaps


def test_of_equally_good_alignments_the_shortest_is_returned() -> None:
    assert proof("Dogs, dogs (in Rome), bark", "Dogs bark") == ("dogs (in Rome), bark", 1)


def test_an_alignment_with_nothing_left_out_is_better() -> None:
    assert proof("Dogs, dogs, bark", "Dogs bark") == ("dogs, bark", 0)
    assert proof("Dogs, big, bark, dogs bark", "Dogs bark") == ("dogs bark", 0)
    assert proof("Dogs bark, dogs, big, bark", "Dogs bark") == ("Dogs bark", 0)


def test_of_two_sentences_nothing_is_left_out() -> None:
    assert aligned(row("Dogs bark at cats"), pair("Dogs also bark at cats")) is None
    assert aligned(row("Dogs bark at cats"), pair("Dogs bark at cats, mice hide")) == Alignment(0, 3)
    assert aligned(row("Mice hide"), pair("Dogs bark at cats, mice hide")) == Alignment(4, 5)


def test_in_a_language_of_which_nothing_is_known_a_place_says_nothing_besides() -> None:
    place, claim = row("Hunde bellen, Katzen schlafen", GERMAN), row("Hunde bellen", GERMAN)
    assert not GERMAN.is_known
    assert aligned(claim, place) is None
    assert aligned(row("Katzen schlafen", GERMAN), place) is None
    assert aligned(place, place) == Alignment(0, 3)
    assert aligned(row("Hunde bellen laut", GERMAN), row("Hunde bellen auch laut", GERMAN)) is None
    assert row("Auch Hunde bellen", GERMAN).starts == {0}


def test_the_edges_of_a_cut_text_are_none() -> None:
    assert aligned(row("Dogs bark"), row("dogs bark", begins=False)) is None
    assert aligned(row("Dogs bark"), row("Dogs bark", ends=False)) is None
    assert aligned(row("Dogs bark"), row("Also dogs bark", begins=False)) is None
    assert aligned(row("Cats run"), row("Dogs bark, cats run", begins=False)) == Alignment(2, 3)
    assert aligned(row("Dogs bark"), row("Dogs bark, cats run", ends=False)) == Alignment(0, 1)


def test_a_claim_that_was_cut_ends_where_its_place_was_cut() -> None:
    cut = row("Dogs bark", ends=False)
    assert aligned(cut, row("Dogs bark", ends=False)) == Alignment(0, 1)
    assert aligned(cut, row("Dogs bark at", ends=False)) is None


def contradiction(place: str, claim: str) -> Alignment | None:
    there, said = row(place), row(claim)
    assert aligned(said, there) is None
    return aligned(said, there, edits=1)


@pytest.mark.parametrize(
    ("place", "claim"),
    [
        pytest.param("It costs 5 euros", "It costs 6 euros", id="another number"),
        pytest.param("5 dogs bark", "6 dogs bark", id="another number at the beginning"),
        pytest.param("It weighs 12.50 t", "It weighs 13.50 t", id="a number with two decimals"),
        pytest.param("It weighs 1.2345 t", "It weighs 1.2346 t", id="a number with four decimals"),
        pytest.param("It costs 1500 euros", "It costs 1600 euros", id="a number of four digits"),
        pytest.param("The limit is 5 min a day", "The limit is 5 sec a day", id="another unit"),
        pytest.param("5 kg of rice", "5 mg of rice", id="another unit near the beginning"),
        pytest.param("The ferry to Rome leaves", "The ferry to Bern leaves", id="another name"),
        pytest.param("Dogs do not bark", "Dogs do bark", id="a denial less"),
        pytest.param("Dogs no longer bark", "Dogs bark", id="a denial of two words less"),
        pytest.param("Dogs bark", "Dogs never bark", id="a denial more"),
        pytest.param("It is no 5 of 9", "It is 5 of 9", id="a denial less before a number"),
    ],
)
def test_one_difference_that_cannot_be_true_as_well_is_a_contradiction(place: str, claim: str) -> None:
    assert contradiction(place, claim) == Alignment(0, len(row(place).units) - 1, edits=1)


@pytest.mark.parametrize(
    ("place", "claim"),
    [
        pytest.param("Dogs bark at cats", "Dogs bark at mice", id="another word"),
        pytest.param("It costs 1,500 euros", "It costs 1,501 euros", id="numbers that can be read in two ways"),
        pytest.param("It costs 1.500 euros", "It costs 1.2 euros", id="a number that can be read in two ways"),
        pytest.param("It costs 1.2 euros", "It costs 1.500 euros", id="a claim that can be read in two ways"),
        pytest.param("It takes 5 days now", "It takes 5 week now", id="words of four letters behind a number"),
        pytest.param("It takes 5 min now", "It takes 5 hours now", id="a longer word behind a number"),
        pytest.param("It takes 5 hours now", "It takes 5 min now", id="a shorter word behind a number"),
        pytest.param("It costs 5 euros", "It costs 6 pounds", id="two differences"),
        pytest.param("The ferry to Rome leaves", "The ferry to us leaves", id="a name and a word"),
        pytest.param("The ferry to us leaves", "The ferry to Rome leaves", id="a word and a name"),
        pytest.param("It has 5 of us", "It has of of us", id="a number and a word"),
        pytest.param("It has of of us", "It has 5 of us", id="a word and a number"),
        pytest.param("Dogs bark loudly", "Cats bark loudly", id="words that begin sentences"),
        pytest.param("Dogs of a bad sort bark", "Dogs of a big sort bark", id="short words"),
        pytest.param("It is red or 5", "He is red or 5", id="the first word of a claim"),
        pytest.param("Dogs bark", "Dogs bark often", id="a word more at the end"),
        pytest.param("Dogs never run", "Dogs bark", id="a denial of something else"),
        pytest.param("Dogs do not", "Dogs do bark", id="a denial of nothing"),
    ],
)
def test_any_other_difference_is_no_contradiction(place: str, claim: str) -> None:
    assert contradiction(place, claim) is None


def test_a_contradiction_is_looked_for_where_it_is_asked_for_alone() -> None:
    assert aligned(row("It costs 6 euros"), row("It costs 5 euros")) is None
    assert aligned(row("6 dogs bark"), row("5 dogs bark")) is None


def test_a_proof_is_better_than_a_contradiction() -> None:
    place = row("It costs 5 euros, it costs 6 euros")
    assert aligned(row("It costs 5 euros"), place, edits=1) == Alignment(0, 3)
    assert aligned(row("It costs 6 euros"), place, edits=1) == Alignment(4, 7)


def test_denials_that_belong_together_are_one_difference() -> None:
    place = row("Il n'est pas libre", FRENCH)
    assert aligned(row("Il est libre", FRENCH), place, edits=1) == Alignment(0, 4, edits=1)
    assert aligned(place, row("Il est libre", FRENCH), edits=1) == Alignment(0, 2, edits=1)


def test_the_content_of_a_row_is_what_says_something_by_itself_each_once() -> None:
    assert row("The dogs and the dog pay 5 € x").content == ["dog", "pay", "5", "x"]
    assert row("की किताब", spoken("hi")).content == ["की", "किताब"], "a vowel sign ends a word"


def test_words_that_a_place_must_have_are_all_but_numbers_the_longest_first() -> None:
    assert row("The dog pays 5 euros per £ Dog b12").words_needed(0) == ["euro", "dog", "pay", "per", "b12"]


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        pytest.param("Dogs in Rome bark", ["bark", "dog", "in"], id="but a name"),
        pytest.param("It weighs 5 kg here", ["weigh", "here", "it"], id="but a unit"),
        pytest.param("5 kg weigh much", ["weigh", "much"], id="but a unit near the beginning"),
        pytest.param("It takes 5 min", ["tak", "it"], id="but a unit of three letters"),
        pytest.param("It takes 5 days", ["tak", "day", "it"], id="a longer word behind a number"),
        pytest.param("Now it costs 5", ["cost", "now", "it"], id="a short word at the beginning"),
        pytest.param("Dogs never bark", ["bark", "dog"], id="but a denial"),
    ],
)
def test_words_that_a_place_must_have_for_a_contradiction_are_those_that_nothing_contradicts(
    text: str, needed: list[str]
) -> None:
    assert row(text).words_needed(1) == needed


def test_the_most_that_a_likeness_can_be_counts_content_by_length_and_all_units() -> None:
    claim = row("Dogs and dogs pay 5")
    assert claim.most_likeness(lambda word: True) == 1.0
    assert claim.most_likeness(lambda word: False) == (1 / 7 + 1 / 5) / 2, "a number may be spelled otherwise"
    assert claim.most_likeness({"dog"}.__contains__) == (4 / 7 + 3 / 5) / 2
    assert row("Pay b12").most_likeness({"pay"}.__contains__) == (3 / 6 + 1 / 2) / 2


def test_a_row_says_where_words_turn() -> None:
    turning = row("Dogs never bark, if fed")
    stretches = ((0, 4), (1, 3), (0, 2), (2, 4))
    assert [turning.is_turned(*stretch) for stretch in stretches] == [False, False, True, True]
    assert turning.turned == {"never", "if"}


def test_the_work_of_an_alignment_is_counted_by_equal_units() -> None:
    assert cells(row("Dogs bark at dogs"), row("A dog, dogs here")) == 3 * 4 + 4 + 3
