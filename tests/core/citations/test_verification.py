"""What one document says of a claim, rule by rule, each at its bound; whole answers are in `test_resolution`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from datafari_rag.core.citations.alignment import UnitRow
from datafari_rag.core.citations.places import NEAR_CHARS
from datafari_rag.core.citations.units import Unit, units_in
from datafari_rag.core.citations.verification import (
    NOTHING,
    CheckedExtract,
    ClaimFinding,
    ComparedText,
    WorkIsOver,
    _frames,
    _naming,
    is_altered,
    likeness,
    unframed,
)
from datafari_rag.core.documents import Document, Passage
from datafari_rag.core.passages.extracts import extracts_for
from datafari_rag.core.text.language import spoken


def source(text: str, *seen: Passage, title: str | None = None, most: int = 2_000_000) -> CheckedExtract:
    document = Document("d", text, title=title)
    (extract,) = extracts_for([(document, seen or (Passage(0, len(text)),))], is_cleaned=True)
    return CheckedExtract(extract, ComparedText("en", most))


def found(text: str, claim: str) -> tuple[str, str | None]:
    """Return the status of *claim* in *text*, and the place that is shown."""
    finding = source(text).finding(claim)
    return finding.status, None if finding.place is None else text[slice(*finding.place)]


def units(text: str, code: str = "en") -> list[Unit]:
    return units_in(text, 0, len(text), spoken(code))


def row(text: str) -> UnitRow:
    return UnitRow(units(text), spoken("en"))


def test_work_is_over_behind_its_limit() -> None:
    text = ComparedText("en", 5)
    text.add(5)
    assert not text.is_over
    with pytest.raises(WorkIsOver):
        text.add(1)
    assert text.is_over


def test_a_text_may_cost_two_million_steps() -> None:
    text = ComparedText()
    text.add(2_000_000)
    with pytest.raises(WorkIsOver):
        text.add(1)


@pytest.mark.parametrize(("chars", "work"), [(0, 1), (99, 1), (100, 2), (250, 3)])
def test_a_hundred_characters_are_looked_through_in_a_step(chars: int, work: int) -> None:
    text = ComparedText()
    text.scan("x" * chars)
    assert text.work == work


def test_words_are_looked_for_as_long_as_there_is_work() -> None:
    seen = source("Cats sleep.", most=1)
    assert [seen.has("cats"), seen.has("cats")] == [True, False]
    assert not source("Cats sleep.").has("dogs")


def test_each_place_that_a_word_leads_to_is_looked_around() -> None:
    """The text on both sides of it is looked through for the other words."""
    text = "Zebras run. Cats do. They sleep. Cats do. At noon. Cats do. "

    def work(times: int) -> int:
        seen = source(text * times + "x" * len(text) * (9 - times))
        assert seen.proving("Zebras sleep at noon.") == NOTHING
        return seen.text.work

    assert work(9) - work(2) == 7 * 2 * NEAR_CHARS // 100


def test_the_likeliest_place_is_compared_first_and_none_that_cannot_be_liker() -> None:
    """However long they are, and wherever they stand."""
    unlike = "A ferry may once have left an island, {}. Cats sleep. Dogs bark. "
    others = "".join(unlike.format(f"{word} " * 900) for word in ("pa", "pe", "pi", "po"))
    seen = source(f"{others}In the morning at nine the ferry to the island leaves. Cats sleep.")
    finding = seen.finding("The ferry to the island leaves at nine in the morning.")
    assert finding.status == "near"
    assert len(others) > 10_000 > seen.text.work > 100


def test_what_is_altered_is_looked_for_at_the_cost_of_both_rows() -> None:
    seen = source("Cats sleep.")
    assert not seen._is_altered(row("ab " * 30), [(0, 0)])
    assert seen.text.work == 2 + 30


@pytest.mark.parametrize(
    ("text", "is_stated"),
    [
        pytest.param("The ferry leaves.", True, id="a sentence"),
        pytest.param("See the manual.", False, id="a source that is named"),
        pytest.param("No.", True, id="a denial"),
        pytest.param("Does the ferry leave?", False, id="a question"),
        pytest.param("“Does the ferry leave?”", False, id="a question that is quoted"),
        pytest.param("* * *", False, id="signs"),
        pytest.param("", False, id="nothing"),
    ],
)
def test_some_words_state_something(text: str, is_stated: bool) -> None:
    assert ComparedText("en").states(text) == is_stated


def test_the_language_around_some_words_is_theirs() -> None:
    """Dutch "want" says nothing by itself: it is "because"."""
    assert ComparedText().states("Want.")
    assert not ComparedText().states("Want.", "nl")
    assert not ComparedText("nl").states("Want.")


@pytest.mark.parametrize(
    ("text", "is_claim"),
    [
        pytest.param("Ferry leaves nine", True, id="three units"),
        pytest.param("Ferry leaves", False, id="two units"),
        pytest.param("Opened: 1904", True, id="a value of something"),
        pytest.param("Asia | Europe", True, id="cells"),
        pytest.param(": Opened 1904", False, id="a value of nothing"),
        pytest.param("Ferry. Ship leaves now.", True, id="a fragment beside a claim"),
        pytest.param("", False, id="nothing"),
    ],
)
def test_a_claim_states_something_of_something(text: str, is_claim: bool) -> None:
    assert source("Cats sleep.").is_claim(text) == is_claim


def test_two_words_that_say_something_are_like_nothing() -> None:
    assert found("The harbour of the ferry.", "The ferry of the harbour.") == ("unsupported", None)
    assert found("The ferry of the harbour leaves.", "The harbour ferry leaves.")[0] == "near"


def test_a_sentence_that_is_cut_off_is_proved_by_what_is_cut_off_as_well() -> None:
    cut = "The ferry leaves at nine …"
    assert source(cut).proving(cut).status == "verified"
    assert source("The ferry leaves at nine from the harbour.").proving(cut) == NOTHING


@pytest.mark.parametrize("title", ["Harbour Guide", None])
def test_the_name_of_a_document_is_no_part_of_a_claim(title: str | None) -> None:
    seen = source("The ferry leaves at nine.", title=title)
    said = ("Harbour Guide: the ferry leaves at nine.", "According to Harbour Guide the ferry leaves at nine.")
    expected = "unsupported" if title is None else "verified"
    assert [seen.proving(claim).status for claim in said] == [expected] * 2


def test_a_document_is_named_by_its_title_where_its_label_is_another_one() -> None:
    seen = source("The ferry leaves at nine.", title="Harbour Guide")
    other = CheckedExtract(replace(seen.extract, label="Doc 1"), ComparedText("en"))
    for claim in ("Harbour Guide: the ferry leaves at nine.", "Doc 1: the ferry leaves at nine."):
        assert other.proving(claim).status == "verified"


TWICE = "The ferry leaves at nine, and it is slow."


@pytest.mark.parametrize(
    ("text", "claim", "status", "place"),
    [
        pytest.param(TWICE, "The ferry leaves at nine.", "verified", "ferry leaves at nine", id="the front of it"),
        pytest.param(TWICE, "It is slow.", "verified", "it is slow", id="its end"),
        pytest.param(TWICE, TWICE, "verified", TWICE, id="all of it"),
        pytest.param(
            "Cats run. The ferry leaves at nine. It is slow. Dogs bark.",
            "The ferry leaves at nine, it is slow.",
            "verified",
            "ferry leaves at nine. It is slow",
            id="two sentences",
        ),
        pytest.param(
            "In June the bus is blue, and the ferry leaves at nine. It is slow.",
            "The ferry leaves at nine, it is slow.",
            "verified",
            "ferry leaves at nine. It is slow",
            id="the end of a sentence and another",
        ),
        pytest.param(
            "Cats run. The ferry leaves at nine. It is lackadaisical.",
            "The ferry leaves at nine, it is lackadaisical.",
            "verified",
            "ferry leaves at nine. It is lackadaisical",
            id="two sentences, found by a word of the second",
        ),
        pytest.param(
            "Fees:\n- cats pay nothing, and dogs bark\n",
            "Fees: cats pay nothing.",
            "verified",
            "- cats pay nothing",
            id="a part of an item, without its label",
        ),
        pytest.param(
            "| City | Planetarium |\n|---|---|\n| Zurich | open |\n| Geneva | closed |\n| Zurich Zoo | closed |\n",
            "Zurich, Planetarium: open.",
            "verified",
            "| Zurich | open |",
            id="a row, with the name of a column",
        ),
        pytest.param("Codes: 12 34 56 78. Cats.", "Codes: 12 34 56 78.", "verified", "Codes: 12 34 56 78.", id="codes"),
        pytest.param("12, 34, 56. Cats sleep.", "12, 34, 56.", "verified", "12, 34, 56.", id="numbers alone"),
    ],
)
def test_the_place_of_a_proof_is_what_says_the_claim(text: str, claim: str, status: str, place: str | None) -> None:
    assert found(text, claim) == (status, place)


def test_one_denial_is_a_contradiction_and_two_are_something_else() -> None:
    text = "Dogs are allowed on deck."
    said = ("Dogs are never allowed on deck.", "Dogs are never not allowed on deck.")
    assert [found(text, claim)[0] for claim in said] == ["contradicted", "unsupported"]


LONG, SHORT = "The ferry, a red ship, leaves at nine.", "The ferry leaves at nine."


@pytest.mark.parametrize(
    ("text", "status", "place"),
    [
        pytest.param(f"{LONG}\n\n{SHORT}", "verified", SHORT, id="the last"),
        pytest.param(f"{SHORT} {LONG}", "verified", SHORT, id="the first"),
        pytest.param(f"{LONG} {LONG.replace('red', 'blue')}", "supported", LONG, id="the first of two"),
    ],
)
def test_the_best_proof_is_taken_and_the_first_of_equal_ones(text: str, status: str, place: str) -> None:
    assert found(text, SHORT) == (status, place)


def test_a_better_proof_that_the_model_did_not_see_hides_none_that_it_saw() -> None:
    text = f"{LONG} {SHORT} Cats sleep all day. {SHORT}"
    seen = source(text, Passage(0, len(LONG)), Passage(text.index("Cats"), len(text)))
    assert seen.proving(SHORT) == ClaimFinding("verified", (text.rindex("The"), len(text)), 1.0)


def test_the_fortieth_place_that_a_word_leads_to_is_the_last() -> None:
    fees = "Planetarium fees:\n" + "".join(f"- a ticket for child {number}\n" for number in range(60))
    said = [f"Planetarium fees: a ticket for child {number}." for number in (0, 38, 39)]
    assert [source(fees).proving(claim).status for claim in said] == ["verified", "verified", "unsupported"]
    said = [f"{'Cats. ' * times}{'A zebra. ' * 39}The striped zebra sleeps at noon." for times in (0, 1)]
    assert [source(text).proving("The striped zebra sleeps at noon.").status for text in said] == ["verified"] * 2


def test_other_words_than_the_rarest_lead_nowhere() -> None:
    """Of the 40 places the last is beside the sentence, and looked at with it."""
    claim = "The striped zebra sleeps at noon."
    for before, status in ((40, "verified"), (41, "unsupported")):
        text = f"{'A zebra. ' * before}{claim} {'Striped cats sleep at noon. ' * 50}"
        assert source(text).proving(claim).status == status


@pytest.mark.parametrize(
    ("more", "behind", "status"),
    [(30, "", "verified"), (29, ", sea", "verified"), (30, ", sea", "unsupported"), (31, "", "unsupported")],
)
def test_twenty_thousand_cells_are_aligned_and_not_one_more(more: int, behind: str, status: str) -> None:
    claim = (
        f"Grass{' cat' * 81} {' '.join(f'z{chr(97 + number // 26)}{chr(97 + number % 26)}' for number in range(more))}"
    )
    assert source(f"{claim}{behind}.").proving(f"{claim}.").status == status


@pytest.mark.parametrize(
    ("text", "claim", "status", "place"),
    [
        pytest.param(
            f"{SHORT} Dogs bark. They pay for it.", f"They pay for it. {SHORT}", "supported", SHORT, id="apart"
        ),
        pytest.param(
            "我们今天开会。你们明天来。",
            "我们今天开会。你们明天来。",
            "verified",
            "我们今天开会。你们明天来。",
            id="nothing between them",
        ),
        pytest.param(
            "The ferry leaves at nine。It is slow, and dogs bark.",
            "The ferry leaves at nine。It is slow.",
            "verified",
            "The ferry leaves at nine。It is slow",
            id="nothing between a sentence and a clause",
        ),
        pytest.param(TWICE, f"{SHORT} {TWICE}", "supported", TWICE, id="one within the other"),
        pytest.param(TWICE, f"{TWICE} {SHORT}", "supported", TWICE, id="the other within the one"),
        pytest.param(SHORT, f"{SHORT} {SHORT}", "verified", SHORT, id="the same"),
        pytest.param(
            "Dogs bark loudly. In the morning at nine the bus to the island leaves.",
            "Dogs bark loudly. The bus to the island leaves at nine in the morning.",
            "near",
            "Dogs bark loudly. In the morning at nine the bus to the island leaves.",
            id="the second only near",
        ),
        pytest.param(
            f"Cats run. {SHORT} A ticket costs 12 euros. Cows fly.",
            f"{SHORT} A ticket costs 13 euros.",
            "contradicted",
            f"{SHORT} A ticket costs 12 euros.",
            id="the second contradicted",
        ),
        pytest.param(
            "A ticket costs 12 euros. In the morning at nine the bus to the island leaves.",
            "A ticket costs 13 euros. The bus to the island leaves at nine in the morning.",
            "contradicted",
            "A ticket costs 12 euros. In the morning at nine the bus to the island leaves.",
            id="one contradicted, and one near",
        ),
        pytest.param(SHORT, f"{SHORT} The moon is made of cheese.", "unsupported", None, id="the second unsupported"),
        pytest.param(
            "A ticket costs 12 euros.",
            "The moon is made of cheese. A ticket costs 13 euros.",
            "contradicted",
            "A ticket costs 12 euros.",
            id="one unsupported, and one contradicted",
        ),
    ],
)
def test_sentences_have_the_worst_finding_of_one(text: str, claim: str, status: str, place: str | None) -> None:
    assert found(text, claim) == (status, place)


@pytest.mark.parametrize(
    ("before", "status"),
    [("", "verified"), ("No. ", "verified"), ("No. No. ", "unsupported")],
)
def test_a_run_begins_two_sentences_before_a_word_of_its_claim_or_later(before: str, status: str) -> None:
    """The longest word of what is stated, which leads to the run, is in its second line."""
    run = f"{before}Opening days\nof the planetarium"
    assert found(f"Cats sleep.\n\n{run}\n\nDogs bark.", run) == (status, run if status == "verified" else None)


def test_a_run_is_wholly_proved_and_wholly_seen() -> None:
    run, text = "No. The guide is free too.", "Is it free? No. The guide is free too."
    place = (text.index("No"), len(text))
    assert source(text).finding(run) == source(text).proving(run) == ClaimFinding("verified", place, 1.0)
    assert source(text, Passage(0, 11), Passage(16, len(text))).proving(run).status != "verified"


def test_a_run_is_led_to_by_what_it_states_and_not_by_its_fragments() -> None:
    said = "No. The guide is free too."
    assert source(f"{'Is it? No. Cats sleep. ' * 70}{said}").proving(said).status == "verified"


def test_a_run_is_led_to_by_the_name_in_it() -> None:
    run = "No. Our cats love Zanzibar."
    assert source(f"{'All our cats love dogs. ' * 70}{run}").proving(run).status == "verified"


def test_a_question_is_no_proof_of_itself() -> None:
    question = "Is the museum free on Sundays?"
    assert source(question).proving(question) == NOTHING


def test_the_first_of_two_runs_is_shown() -> None:
    run = "No. Opening days\nof the planetarium"
    assert source(f"{run}\n\nCats.\n\n{run}").proving(run).place == (0, len(run))


def test_a_likeness_of_half_its_words_and_half_its_order_is_near() -> None:
    """49 of 100 characters and five of ten words in their order are a likeness of just so much."""
    shared = [letter * 10 for letter in "abcd"] + ["eeeeeeeee"]
    others = [letter * 10 for letter in "fghi"] + ["jjjjjjjjjjj"]
    claim = " ".join(word for pair in zip(shared, others, strict=True) for word in pair)
    for words, status in ((shared, "near"), ([*shared[:4], "eeeeeeee"], "unsupported")):
        assert source(" k ".join(words)).finding(claim).status == status


def test_what_makes_four_of_five_steps_with_sentences_is_put_together_of_them() -> None:
    text = "Red ships carry people here. Old tired sailors drink water."
    apart = text.replace("tired sailors", "tired blue sailors")
    said = "Red ships carry tired sailors drink."
    assert (found(text, said), found(apart, said)) == (("unsupported", None), ("near", apart))


def test_the_likest_place_is_near_and_not_the_one_with_most_of_the_words() -> None:
    claim = "Red ships carry eleven tired sailors across cold northern water every night."
    like = "Red ships bring eleven sad sailors across cold southern water every night."
    backwards = "Night every water northern cold across sailors tired eleven carry ships red."
    text = f"{backwards} Cats sleep. Dogs bark. Cows moo. {like}"
    assert found(text, claim) == ("near", f"Cows moo. {like}")


def test_what_is_nearest_is_eight_stretches_around_the_six_rarest_words_at_most() -> None:
    words = ["zebra", "yak", "walrus", "viper", "urchin", "tiger", "snake"]
    text = "Men row. Men sing. " + "".join(f"Men eat. One {word} lives. Men row. Men sing. " for word in words)
    seen = source(text)
    nearest = [text[slice(*place)] for _, place in seen.nearest(f"A {' '.join(words)}.")]
    assert len(nearest) == 8
    assert {f"Men eat. One {word} lives. Men row." for word in words[1:]}.issubset(nearest)
    assert not any("zebra" in place for place in nearest)
    likenesses = [one for one, _ in seen.nearest(f"A {' '.join(words)}.")]
    assert likenesses == sorted(likenesses, reverse=True)


def test_a_sentence_between_two_with_a_word_is_as_near_as_one_with_it() -> None:
    pairs = [("snake", "tiger"), ("urchin", "viper"), ("walrus", "yak")]
    text = "".join(f"Men eat. One {one} lives. Men row. One {other} lives. Men sing. " for one, other in pairs)
    nearest = [text[slice(*place)] for _, place in source(text).nearest("A snake, tiger, urchin, viper, walrus, yak.")]
    assert {f"One {one} lives. Men row. One {other} lives." for one, other in pairs[:2]}.issubset(nearest)


def test_a_sentence_with_three_words_is_nearer_than_one_that_has_five_beside_it() -> None:
    beside = "One snake, one tiger live. Men row. One snake, one tiger, one urchin live. "
    text = beside + "Men eat. One snake, one tiger, one urchin live. Men sing. " * 9
    nearest = [text[slice(*place)] for _, place in source(text).nearest("A snake, tiger, urchin.")]
    assert len(nearest) == 8
    assert beside.strip() not in nearest


def test_nothing_is_near_a_claim_of_which_nothing_is_there() -> None:
    assert source("Cats sleep.").nearest("Dogs bark at the moon.") == []
    assert source("Cats sleep.").nearest("It is.") == []
    assert source("Cats sleep.").finding("Dogs bark at the moon.") == ClaimFinding("unsupported", None, 0.0)


@pytest.mark.parametrize(
    ("claim", "place", "expected"),
    [
        pytest.param("Cats pay tax", "Cats pay tax.", 1.0, id="all of it"),
        pytest.param("Cats pay twelvefold tax", "tax pay", (6 / 19 + 1 / 4) / 2, id="some words in another order"),
        pytest.param("Cats pay 12 euros", "Cats pay 13 euros", 0.0, id="another number"),
        pytest.param("Cats never pay", "Cats pay", 0.0, id="without a word that turns it"),
        pytest.param("Cats pay", "Cats never pay 13 euros", 1.0, id="with more than it says"),
    ],
)
def test_a_likeness_is_half_the_words_and_half_their_order(claim: str, place: str, expected: float) -> None:
    assert likeness(row(claim), row(place)) == expected


PLACE = "Red ships carry eleven tired sailors across cold northern water"


@pytest.mark.parametrize(
    ("claim", "place", "expected"),
    [
        pytest.param(PLACE, PLACE, False, id="the same"),
        pytest.param("Red ships carry eleven tired", PLACE, False, id="cut out of it"),
        pytest.param(PLACE.replace("Red", "Blue"), PLACE, True, id="the first word"),
        pytest.param(f"And {PLACE}", PLACE, False, id="a word that says nothing before it"),
        pytest.param(PLACE.replace("water", "ice"), PLACE, True, id="the last word"),
        pytest.param(PLACE.replace("tired", "happy"), PLACE, True, id="a word within"),
        pytest.param(PLACE.replace("tired ", ""), PLACE, True, id="a word left out"),
        pytest.param(PLACE.replace("ships", "x").replace("northern", "y"), PLACE, False, id="two words"),
        pytest.param(
            PLACE.replace("ships", "x").replace("northern", "ships").replace("x", "northern"),
            PLACE,
            True,
            id="two words exchanged",
        ),
        pytest.param(PLACE.replace("cold northern water", "x y z"), PLACE, True, id="seven of ten from there"),
        pytest.param(PLACE.replace("across cold northern water", "x y z q"), PLACE, None, id="six of ten"),
        pytest.param(PLACE.replace("Red ships carry eleven", "x y z q"), PLACE, None, id="the last six of ten"),
        pytest.param(PLACE, f"{PLACE} perhaps", True, id="without a word that turns it"),
    ],
)
def test_what_is_taken_from_a_place_with_one_change_is_altered(claim: str, place: str, expected: bool | None) -> None:
    assert is_altered(row(claim), row(place)) is expected


NAMES = (("ferry", "guide"),)


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        pytest.param("According to the manual, the Ferry leaves.", "Ferry leaves", id="a source"),
        pytest.param("According to the manual the ferry leaves.", "ferry leaves", id="without a comma"),
        pytest.param("According to the Ferry Guide the ship leaves.", "ship leaves", id="the name of the document"),
        pytest.param("According to, the ferry leaves.", "ferry leaves", id="a mark that is taken out"),
        pytest.param("The manual says that the ferry leaves.", "ferry leaves", id="a source at the beginning"),
        pytest.param("It is stated in the guide that ships leave.", "ships leave", id="a source within"),
        pytest.param("Laut dem Handbuch kostet es nichts.", "kostet es nichts", id="another language"),
        pytest.param("Yes, the Ferry leaves.", "Ferry leaves", id="assent"),
        pytest.param("Yes it is so.", "it is so", id="assent before a pronoun"),
        pytest.param("Ferry Guide: ships leave.", "ships leave", id="a name and a sign"),
        pytest.param("The ferry leaves (see the handbook).", "ferry leaves", id="a source in brackets"),
        pytest.param("The ferry leaves (Ferry Guide).", "ferry leaves", id="a name in brackets"),
    ],
)
def test_what_only_names_a_source_is_no_part_of_a_claim(text: str, rest: str) -> None:
    found = unframed(units(text), NAMES)
    assert " ".join(unit.key for unit in found) == rest
    assert not found[0].before
    assert found[0].is_first == (not text.endswith(")."))
    assert not any(unit.is_first for unit in found[1:])


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("According to nobody, the ferry leaves.", id="no source"),
        pytest.param("According to", id="no more than the beginning of a frame"),
        pytest.param("It is stated in", id="without its source and its end"),
        pytest.param("According to the manual.", id="no more than a frame"),
        pytest.param("Laut dem", id="no more than an article"),
        pytest.param("Yes.", id="no more than assent"),
        pytest.param("Yes men bark.", id="a word that may say more"),
        pytest.param("The Ferry sails in May.", id="a frame that begins within"),
        pytest.param("That is what everybody says.", id="a frame that begins at the end"),
        pytest.param(", says the ferry.", id="no source behind a sign"),
        pytest.param("Ferry Guide leaves now.", id="a name without a sign"),
        pytest.param("Ferry Guide.", id="no more than a name"),
        pytest.param("Ferry leaves: ships too.", id="no name before a sign"),
        pytest.param("(See the handbook.)", id="no more than brackets"),
        pytest.param("The ferry leaves (at nine).", id="brackets that say something"),
        pytest.param("The ferry leaves (daily) (see the manual).", id="some brackets that say something"),
        pytest.param("See the handbook.", id="a source without brackets"),
        pytest.param("", id="nothing"),
    ],
)
def test_what_names_no_source_is_left_as_it_is(text: str) -> None:
    assert unframed(units(text), NAMES) == units(text)


def test_the_words_of_frames_and_sources_are_gathered_once() -> None:
    assert _frames() is _frames()
    assert _naming() is _naming()
