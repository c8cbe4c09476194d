"""The places of a document: sentences, items, rows, and what belongs to each of them."""

from __future__ import annotations

from bisect import bisect_left

import pytest

from datafari_rag.core.citations.alignment import UnitRow
from datafari_rag.core.citations.places import SourceText
from datafari_rag.core.citations.units import units_in
from datafari_rag.core.documents import HIGHLIGHTING, Document, Extract, OffsetMap, OffsetRun
from datafari_rag.core.text.language import spoken

ENGLISH, GREEK = spoken("en"), spoken("el")


def source(text: str, *, title: str = "", field: str = "exactContent", seen: tuple[OffsetRun, ...] = ()) -> SourceText:
    return SourceText(Extract(1, "Page", Document("d", text, field, title), (), text, OffsetMap(seen)))


def said(row: UnitRow) -> str:
    """Return the units of *row* with the signs in front of them, and a bar where it begins or ends at no edge."""
    units = " ".join(f"{unit.before} {unit.key}".strip() for unit in row.units)
    return f"{'' if row.begins else '|'}{units}{'' if row.ends else '|'}"


def own(text: str, number: int, *, title: str = "") -> list[str]:
    """Return the rows of the sentence *number* of *text*."""
    return [said(row) for row in source(text, title=title).rows(0, number, ENGLISH)]


def kinds(text: str) -> list[str]:
    """Return the sentences of *text*, the words of items behind a dash, and rows of tables behind a bar."""
    return [
        f"{'- ' * sentence.is_item}{'| ' * sentence.is_row}{text[sentence.mark : sentence.end]}"
        for sentence in source(text).sentences(0)
    ]


@pytest.mark.parametrize("place", [0, 1, 19_997, 19_999, 20_000, 20_001, 39_999])
def test_a_word_is_found_once_wherever_it_stands_in_a_long_text(place: int) -> None:
    seen = source("." * place + "cat" + "." * 20_000)
    assert (seen.count("cat"), seen.has("Cat"), list(seen.around("cat"))) == (1, True, [place])


def test_a_word_is_counted_inside_of_others_and_what_is_invisible_nowhere() -> None:
    seen = source("Cats concur, as a cat.\u200b")
    assert (seen.count("cat"), seen.count("dog"), seen.count("")) == (2, 0, 0)
    assert (seen.has("A CAT"), seen.has("dog"), seen.has("\u200b")) == (True, False, False)


@pytest.mark.parametrize(
    ("text", "word", "places"),
    [
        ("cat concat cats (cat", "cat", [0, 11, 17]),
        ("a bad idea", "a", [0]),
        ("al' l'a", "l'", [4]),
        ("x'tis", "'tis", [1]),
        ("กก", "ก", [0, 1]),
        ("xaก aก", "aก", [4]),
    ],
    ids=["where a word begins", "a letter", "an elided word", "a sign", "a script without blanks", "its first letter"],
)
def test_a_word_is_looked_for_where_one_may_begin(text: str, word: str, places: list[int]) -> None:
    assert list(source(text).around(word)) == places


@pytest.mark.parametrize(
    ("text", "is_near"),
    [
        (f"x {'.' * 1_498}cat", True),
        (f"x {'.' * 1_499}cat", False),
        (f"cat{'.' * 1_496}x", True),
        (f"cat{'.' * 1_497}x", False),
    ],
    ids=["before it", "too far before it", "behind it", "too far behind it"],
)
def test_other_words_must_be_near(text: str, *, is_near: bool) -> None:
    assert list(source(text).around("cat", ["x"])) == ([text.index("cat")] if is_near else [])


def test_other_words_may_stand_in_the_title() -> None:
    assert list(source("A cat sleeps.", title="The Zebra").around("cat", ["sleeps", "zebra"])) == [2]
    assert list(source("A cat sleeps.", title="The Zebra").around("cat", ["zebra", "dog"])) == []


@pytest.mark.parametrize(
    ("text", "is_apart"),
    [
        ("- a cat", True),
        ("1) a cat", True),
        ("a|cat", True),
        ("a\tcat", True),
        ("a cat|b", True),
        ("a cat", False),
        ("- a\na cat\n|", False),
        ("|\n- a cat", True),
        (f"|{'.' * 1_499}cat", True),
        (f"|{'.' * 1_500}cat", False),
        (f"cat{'.' * 1_496}|", True),
        (f"cat{'.' * 1_497}|", False),
    ],
)
def test_near_an_item_or_a_row_no_other_word_need_be(text: str, *, is_apart: bool) -> None:
    assert list(source(text).around("cat", ["zebra"])) == ([text.index("cat")] if is_apart else [])


def test_no_more_than_sixty_places_of_a_word_and_5000_of_its_letters_are_looked_at() -> None:
    assert list(source("cat " * 61).around("cat")) == list(range(0, 240, 4))
    assert list(source("xcat " * 4_999 + "cat").around("cat")) == [24_995]
    assert list(source("xcat " * 5_000 + "cat").around("cat")) == []


def test_a_letter_has_up_to_three_marks_apart_from_it() -> None:
    marks = "\u0323\u0331\u032d\u0324"
    assert list(source(f"ﬁ q{marks[:3]} q{marks}").around("q")) == [2]
    assert list(source("ﬁ q").around("q")) == [2]
    assert list(source("- ﬁ").around("fi")) == [2]


@pytest.mark.parametrize(("chars", "block"), [(6_000, 0), (6_001, 1)])
def test_a_text_of_6000_characters_is_one_block(chars: int, block: int) -> None:
    seen = source(("The cat has slept. " * 320)[: chars - 1] + ".")
    assert seen.sentence_at(chars - 1)[0] == block


def block_starts(text: str) -> list[int]:
    """Return where the blocks of *text* begin behind the first."""
    seen, places = source(text), range(len(text))
    last = seen.sentence_at(len(text))[0]
    return [bisect_left(places, number, key=lambda at: seen.sentence_at(at)[0]) for number in range(1, last + 1)]


WORDS = "ab " * 4_000


@pytest.mark.parametrize(("place", "is_there"), [(3_999, False), (4_000, True), (5_998, True), (5_999, False)])
def test_a_block_ends_with_a_paragraph_where_one_ends(place: int, *, is_there: bool) -> None:
    (start,) = block_starts(f"{WORDS[:place]}\n\n{WORDS[:2_500]}")
    assert (start == place + 1) is is_there


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("The cat has gone. " * 360, [4_014]),
        ("The cat has gone by. " * 620, [4_011, 8_022]),
        (WORDS, [4_002, 8_004]),
        ("a" * 6_500, [6_000]),
        (f"{'a' * 5_990}   bc{'a' * 20}", [5_993]),
    ],
    ids=["at a sentence", "at each", "between words", "anywhere", "behind blanks"],
)
def test_a_block_begins_at_a_sentence_else_at_a_word(text: str, starts: list[int]) -> None:
    assert block_starts(text) == starts


def test_the_sentences_of_all_blocks_are_those_of_the_text() -> None:
    text = "The cat sleeps.\n- a dog\n\n| a | b |\n| c | d |\n\n" * 300
    seen = source(text)
    last = seen.sentence_at(len(text))[0]
    sentences = [sentence for block in range(last + 1) for sentence in seen.sentences(block)]
    assert last == 2
    assert [text[sentence.mark : sentence.end] for sentence in sentences] == [
        "The cat sleeps.", "a dog", "| a | b |", "| c | d |",
    ] * 300  # fmt: skip


def test_what_is_behind_a_sentence_is_counted_to_it() -> None:
    seen = source("  The cat sleeps. The dog barks.  ")
    assert [seen.sentence_at(at) for at in (0, 2, 16, 17, 18, 40)] == [(0, 0)] * 4 + [(0, 1)] * 2


LINE = "the ferry leaves the isle soon"


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (f"{LINE[:29]}\nslow", [LINE[:29], "slow"]),
        (f"{LINE}\nslow", [f"{LINE}\nslow"]),
        (f"\n{LINE[:29]}\nslow", [LINE[:29], "slow"]),
        ("The boat is slow and blue. Ferry\nslow", ["The boat is slow and blue.", "Ferry\nslow"]),
        ("The boat is blue. Ferry\nslow", ["The boat is blue.", "Ferry", "slow"]),
        ("the ferry leaves\nat nine.", ["the ferry leaves\nat nine."]),
        ("the ferry leaves\nat nine!", ["the ferry leaves\nat nine!"]),
        ("the ferry leaves\n9 times.", ["the ferry leaves", "9 times."]),
        ("the ferry: leaves\nat nine.", ["the ferry: leaves", "at nine."]),
        (f"{LINE}\n- slow", [LINE, "- slow"]),
        (f"{LINE}\nb) slow", [LINE, "- b) slow"]),
        (f"{LINE}\n> slow", [LINE, "- slow"]),
        (f"{LINE}, or\nb) slow", [f"{LINE}, or", "- b) slow"]),
        ("- The cat sleeps", ["- The cat sleeps"]),
        ("1. The cat sleeps", ["- 1. The cat sleeps"]),
        ("The cat sleeps. the dog barks.", ["The cat sleeps.", "the dog barks."]),
        ("| a | b |\n| c | d |", ["| | a | b |", "| | c | d |"]),
        ("The cat sleeps.\n\n| a | b |\n| c | d |", ["The cat sleeps.", "| | a | b |", "| | c | d |"]),
    ],
)
def test_sentences_items_and_rows_are_told_apart(text: str, sentences: list[str]) -> None:
    assert kinds(text) == sentences


def test_the_first_row_of_a_table_names_its_columns() -> None:
    seen = source("| a | b |\n| c | d |\n\nThe cat sleeps.")
    assert [seen.names_columns(0, number) for number in range(3)] == [True, False, False]


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("The cat sleeps. The dog barks. It rains.", False),
        ("The cat sleeps. The zebra barks. It rains.", True),
        ("The cat sleeps. The dog barks. The zebra rains.", False),
        ("The cat sleeps: The dog barks. It rains.", True),
        ("The cat sleeps soundly.\n- the dog", False),
        ("- The cat\n- the dog", True),
        ("| The cat | 1 |\n| the dog | 2 |", True),
    ],
)
def test_a_sentence_may_say_what_it_and_its_neighbours_have(text: str, *, may: bool) -> None:
    seen = source(text, title="The goat")
    assert seen.may_say(0, 0, ["cat", "zebra"]) is may
    assert seen.may_say(0, 0, ["cat", "goat"]) is True


def test_neighbours_are_within_the_block() -> None:
    seen = source("The cat sleeps. The dog barks. It rains. It snows.")
    assert seen.beside(0, 0, 1) == range(2)
    assert seen.beside(0, 1, 1) == range(3)
    assert seen.beside(0, 3, 1) == range(2, 4)
    assert seen.beside(0, 2, 9) == range(4)


def test_no_word_is_put_together_of_two_sentences() -> None:
    seen = source("- Cats\n- DOGS\n- mice")
    assert seen.folded_text(0, range(2)) == "- cats - dogs"


@pytest.mark.parametrize(
    ("stretch", "is_seen"), [((10, 30), True), ((9, 30), False), ((10, 31), False), ((40, 50), True), ((12, 45), False)]
)
def test_what_the_model_saw_is_one_stretch(stretch: tuple[int, int], *, is_seen: bool) -> None:
    seen = source("." * 60, seen=(OffsetRun(0, 10, 20), OffsetRun(23, 40, 10)))
    assert seen.is_seen(*stretch) is is_seen


def test_of_snippets_the_model_saw_all() -> None:
    snippets = Extract(1, "Page", Document("d", "<b>The cat</b>", HIGHLIGHTING), (), "The cat")
    seen = SourceText(snippets)
    assert seen.text == "The cat"
    assert [seen.is_seen(0, end) for end in (7, 8)] == [True, False]


@pytest.mark.parametrize(
    ("text", "number", "row"),
    [
        ("The cat sleeps. Dogs bark.", 0, "cat sleeps"),
        ("… The cat sleeps.", 1, "|cat sleeps"),
        ("Dogs bark … The cat sleeps.", 1, "|cat sleeps"),
        ("Dogs bark ...  The cat sleeps.", 1, "|cat sleeps"),
        ("Dogs bark ...   The cat sleeps.", 1, "cat sleeps"),
        ("Dogs bark...  The cat sleeps.", 1, "cat sleeps"),
        ("Dogs bark ...) Cats sleep.", 0, "Dogs bark ...|"),
        ("Dogs bark …", 0, "Dogs bark ...|"),
    ],
)
def test_beside_dots_that_stand_apart_a_sentence_has_no_edge(text: str, number: int, row: str) -> None:
    assert own(text, number) == [row]


@pytest.mark.parametrize(
    ("snippet", "row"),
    [
        ("The cat sleeps.", "cat sleeps"),
        ("cat sleeps.", "|cat sleeps"),
        ("- cats sleep.", "|cats sleep"),
        ("The cat sleeps", "cat sleeps|"),
        ("The cat (sleeps)", "cat , sleeps"),
        ("The cat sleeps …", "cat sleeps ...|"),
    ],
)
def test_a_snippet_may_be_cut_out_of_a_sentence(snippet: str, row: str) -> None:
    seen = source(snippet, field=HIGHLIGHTING)
    assert [said(one) for one in seen.rows(0, 0, ENGLISH)] == [row]


def test_behind_dots_a_snippet_begins_with_a_capital_letter_and_has_no_edge() -> None:
    (row,) = source("Dogs … Cats sleep.", field=HIGHLIGHTING).rows(0, 1, ENGLISH)
    assert said(row) == "|Cats sleep"


def test_a_sentence_longer_than_a_block_has_no_edges() -> None:
    seen = source(WORDS)
    for block in range(3):
        (row,) = seen.rows(block, 0, ENGLISH)
        assert (row.begins, row.ends) == (False, False)
        assert seen.run(row, seen.text, block, 0) is None


@pytest.mark.parametrize("text", ["Do cats sleep?", "“Do cats sleep?”", "眠りますか？", "(!)"])
def test_what_asks_and_what_has_no_words_says_nothing(text: str) -> None:
    assert own(text, 0) == []


def test_the_sign_of_a_greek_question_is_one_in_greek_alone() -> None:
    seen = source("It sleeps;")
    assert [said(row) for row in seen.rows(0, 0, ENGLISH)] == ["It sleeps"]
    assert seen.rows(0, 0, GREEK) == []


ITEMS = "Free are:\n- the cats\n- dogs\nBirds are not."


def test_an_item_is_said_with_its_label() -> None:
    assert [own(ITEMS, number) for number in range(4)] == [
        ["Free are"],
        ["Free are : cats"],
        ["Free are : dogs"],
        ["Birds are not"],
    ]
    assert own("**Free are:**\n- cats", 1) == ["Free are : cats"]
    assert own("免费：\n- cats", 1) == ["免 费 : cats"]
    (row,) = source("Free are:\n- Cats").rows(0, 1, ENGLISH)
    assert [unit.is_first for unit in row.units] == [True, False, True]


def test_of_a_label_the_last_forty_words_are_said() -> None:
    (row,) = source(f"First{' word' * 40}:\n- cats").rows(0, 1, ENGLISH)
    assert said(row) == f"{'word ' * 40}: cats"


def test_items_are_under_their_label_and_nothing_else_is() -> None:
    seen = source(ITEMS)
    assert [list(seen.under(0, number)) for number in range(4)] == [[0, 1, 2], [1], [2], [3]]
    assert [seen.label_at(ITEMS.index(word)) for word in ("Free", "the", "dogs", "Birds")] == [
        "", "Free are:", "Free are:", "",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ["- Free are:\n- cats", "- cats\n- dogs", "Free are: cats.\nDogs bark.", "Fees:\n\n| cats | 5 |\n| dogs | 6 |"],
    ids=["an item is no label", "no label", "one in a sentence", "a table has none"],
)
def test_what_has_no_label_above_it_has_none(text: str) -> None:
    assert source(text).label_at(len(text)) == ""


def test_a_sentence_behind_a_label_is_under_it() -> None:
    text = "Dogs bark. Note:\nThe cats sleep. Birds sing."
    assert [source(text).label_at(text.index(word)) for word in ("Note", "The", "Birds")] == ["", "Note:", ""]
    assert source("Dogs bark. Note:").label_at(0) == ""
    assert source("Fees:\n\n| cats | 5 |\n| dogs | 6 |").label_at(9) == ""


def test_a_stretch_is_parted_at_the_line_ends_of_its_items() -> None:
    text = f"Dogs bark. Birds sing.\nFree are:\n  - the cats\n- dogs and {LINE}\nslow.\nDone."
    start, end = text.index("Free"), text.index("\nDone")
    assert [text[slice(*stretch)] for stretch in source(text).lines(start, end)] == [
        "Free are:",
        "- the cats",
        f"- dogs and {LINE}\nslow.",
    ]
    assert source(text).lines(0, 22) == [(0, 22)]
    assert source(text).lines(0, 23) == [(0, 23)]


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("Cats sleep. Dogs bark. Birds sing.", ["Cats sleep , Dogs bark", "Dogs bark , Birds sing"]),
        ("Fish swim. Dogs bark. Birds … sing …", ["Fish swim , Dogs bark", "Dogs bark , Birds ... sing ...|"]),
        ("Fish swim … Dogs bark. Birds sing.", ["Fish swim ... , Dogs bark", "|Dogs bark , Birds sing"]),
        ("- Cats sleep. Dogs bark. Birds sing.", ["Dogs bark , Birds sing"]),
        ("Cats sleep. Dogs bark.\nBirds sing.", ["Cats sleep , Dogs bark"]),
        ("Cats sleep. Dogs bark? Birds sing.", ["Cats sleep , Dogs bark"]),
        ("Cats sleep. Cat | 5 | 6. Birds sing.", []),
        ("Cats sleep. 12) dogs bark. Birds sing.", []),
    ],
)
def test_neighbours_of_one_paragraph_are_said_together(text: str, pairs: list[str]) -> None:
    rows = source(text).pairs(0, 1, ENGLISH)
    assert [said(row) for row in rows] == pairs
    assert all(row.is_pair for row in rows)


def test_sentences_around_one_are_said_as_one_row() -> None:
    row = source("Cats sleep. Dogs bark. Birds sing.").window(0, range(1, 3), ENGLISH)
    assert said(row) == "Dogs bark Birds sing"


def test_a_row_is_said_alone_and_with_the_names_of_its_columns() -> None:
    table = "| Town | Fee | Year |\n|---|---|---|\n| Bern | 5 | 1904 |\n| Basel | | 1906 |"
    assert [own(table, number) for number in range(3)] == [
        ["| Town | Fee | Year"],
        ["| Bern | 5 | 1904", "Bern | Fee : 5 | Year : 1904"],
        ["| Basel | 1906", "Basel | Year : 1906"],
    ]


HEADED = "# Ports\n\n## Boats\n\n### Ferries\n\n"
FERRIES, BELOW_DOGS = f"Ferries\n\n{'.' * 4_000}", f"Dogs\n# Ferries\n{'.' * 4_000}"


@pytest.mark.parametrize(
    ("text", "row"),
    [
        (f"{HEADED}It leaves at noon.", "Ferries leaves at noon"),
        (f"{HEADED}Cats like it.", None),
        (f"{HEADED}Yes it leaves.", None),
        (f"{HEADED}Price: 12 euros", "Ferries Price : 12 euros"),
        (f"{HEADED}It costs: 12 euros", "Ferries costs : 12 euros"),
        (f"{HEADED}At 12:30 cats sleep.", None),
        (f"{HEADED}The {LINE}\nfor this price: 12 euros", None),
        (f"{HEADED}Dogs bark. It leaves.", None),
        (f"{HEADED}Dogs bark.\n\nPrice: 12 euros", "Ferries Price : 12 euros"),
        ("It leaves at noon.", "Isle leaves at noon"),
        ("Price: 12 euros", "Isle Price : 12 euros"),
        ("Dogs bark. It leaves.", None),
        ("✓\n\nIt leaves.", None),
        (f"# Ferries\n{'Dogs bark. ' * 400}Price: 12 euros", "Ferries Price : 12 euros"),
        (f"{FERRIES[:3_998]}\n\nPrice: 12 euros", "Ferries Price : 12 euros"),
        (f"{FERRIES[:3_999]}\n\nPrice: 12 euros", "Isle Price : 12 euros"),
        (f"{BELOW_DOGS[:4_002]}\n\nPrice: 12 euros", "Ferries Price : 12 euros"),
        (f"{BELOW_DOGS[:4_003]}\n\nPrice: 12 euros", "Isle Price : 12 euros"),
    ],
)
def test_a_value_and_a_pronoun_are_about_the_heading_or_the_title(text: str, row: str | None) -> None:
    seen = source(text, title="The Isle")
    block, number = seen.sentence_at(len(text))
    _, *others = seen.rows(block, number, ENGLISH)
    assert [said(other) for other in others] == [row] * (row is not None)
    start = seen.sentences(block)[number].start
    assert {unit.start for other in others for unit in other.units[:1]} <= {start}


def run(text: str, claim: str, first: int = 0) -> str | None:
    row = UnitRow(units_in(claim, 0, len(claim), ENGLISH), ENGLISH)
    place = source(text).run(row, claim, 0, first)
    return None if place is None else text[slice(*place)]


@pytest.mark.parametrize(
    ("text", "claim", "first", "place"),
    [
        ("Cats sleep. Dogs bark. Birds sing.", "Cats sleep. Dogs bark.", 0, "Cats sleep. Dogs bark."),
        ("Cats sleep. Dogs bark. Birds sing.", "Dogs bark. Birds sing.", 1, "Dogs bark. Birds sing."),
        ("Cats sleep. Dogs bark. Birds sing.", "Dogs bark. Birds sing.", 0, None),
        ("Cats sleep. Dogs bark. Birds sing.", "Cats sleep. Dogs run.", 0, None),
        ("Cats sleep. Dogs bark. Birds sing. Cows eat.", "Cats sleep. Dogs bark. Birds", 0, None),
        ("Cats sleep. Dogs bark. Birds sing.", "Birds sing. Cows eat.", 2, None),
        ("- Cats sleep\n- Dogs bark", "Cats sleep\n- Dogs bark", 0, "Cats sleep\n- Dogs bark"),
        ("- Cats sleep\n- Dogs bark", "Cats sleep. Dogs bark", 0, None),
        ("Cats sleep. Dogs bark.", "Cats sleep.\nDogs bark.", 0, None),
        ("Cats\nsleep. Dogs bark.", "Cats sleep. Dogs bark.", 0, "Cats\nsleep. Dogs bark."),
        ("Cats sleep. Dogs bark.", "Cats\nsleep. Dogs\nbark.", 0, "Cats sleep. Dogs bark."),
        ("Cats sleep.\n\n(!)\n\nDogs bark.", "Cats sleep.\nDogs bark.", 0, "Cats sleep.\n\n(!)\n\nDogs bark."),
        ("Free are:\n- cats\n- dogs", "cats\ndogs", 1, None),
    ],
)
def test_a_claim_may_be_whole_sentences_one_behind_the_other(
    text: str, claim: str, first: int, place: str | None
) -> None:
    assert run(text, claim, first) == place
