from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datafari_rag.core.text.sentences import MAX_CHARS, blocks, bounds_around, spans
from tests.core.sentence_samples import SAMPLES

MAX_ERRORS = {"en": 1, "fr": 0, "de": 0, "es": 0, "ru": 0, "ar": 0, "zh": 0}
"""Boundaries wrong, missing or too many, of 17 / 15 / 12 / 10 / 11 / 10 / 10. The one: "Co. Ltd." at a line end."""


def hand_split(sample: str) -> tuple[str, set[int]]:
    """Return the text without its bars, and where sentences end in it."""
    text, ends = "", set()
    for piece in sample.split("|"):
        text += piece
        ends.add(len(text.rstrip()))
    return text, ends - {0}


@pytest.mark.parametrize("language", SAMPLES)
def test_hand_split_samples_are_split_with_few_errors(language: str) -> None:
    text, wanted = hand_split(SAMPLES[language])
    found = {end for _, end in spans(text)}
    errors = sorted(wanted ^ found)
    assert len(errors) <= MAX_ERRORS[language], [text[max(0, end - 20) : end + 10] for end in errors]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("One.Two is a name. 3.14 is not.", ["One.Two is a name.", "3.14 is not."]),
        ("It ended.[12] Then it began.", ["It ended.[12]", "Then it began."]),
        ("It ended.\n\n[81] Then it began.", ["It ended.", "[81] Then it began."]),
        ("He left... and came back.", ["He left... and came back."]),
        ("A\n\nB", ["A", "B"]),
        ("Title\nText of it", ["Title", "Text of it"]),
        ("lower case\ngoes on", ["lower case\ngoes on"]),
        ("It was built. Also,\nPostgres95 ran.", ["It was built.", "Also,\nPostgres95 ran."]),
        ("The default is ten.\nother_age (integer)", ["The default is ten.", "other_age (integer)"]),
        ("It is set in the\n/etc/motd file. Good.", ["It is set in the\n/etc/motd file.", "Good."]),
        ("Items:\n- one\n- two", ["Items:", "- one", "- two"]),
        ("1. First\n2. Second", ["1. First", "2. Second"]),
        ("  \n ", []),
        ("", []),
        ("no end", ["no end"]),
    ],
    ids=repr,
)
def test_a_text_becomes_sentences(text: str, sentences: list[str]) -> None:
    assert [text[start:end] for start, end in spans(text)] == sentences


@given(st.text("aB. \n!?。-1(\"'", max_size=300))
def test_sentences_are_in_order_and_lose_nothing_but_white_space(text: str) -> None:
    found = spans(text)
    assert all(start < end for start, end in found)
    assert all(before[1] <= after[0] for before, after in pairwise(found))
    kept = "".join(text[start:end] for start, end in found)
    assert "".join(kept.split()) == "".join(text.split())


def test_text_without_an_end_is_cut_at_a_space() -> None:
    text = "word " * 1000
    found = spans(text)
    assert all(end - start <= MAX_CHARS for start, end in found)
    assert all(set(text[start:end].split()) == {"word"} for start, end in found)


def test_text_without_a_space_is_cut_all_the_same() -> None:
    assert [end - start for start, end in spans("x" * 1500)] == [MAX_CHARS, MAX_CHARS, 100]


def test_blocks_hold_the_whole_text_and_end_with_sentences() -> None:
    text = "".join(f"This is sentence number {number}, e.g. of a text.\n\n" for number in range(50))
    found = blocks(text, 200)
    ends = [end for _, end in spans(text)]
    assert all(end in ends and 200 <= end + len("\n\n") - start < 260 for start, end in found[:-1])
    assert found[-1][1] == ends[-1]
    assert [piece for start, end in found for piece in text[start:end].split()] == text.split()


@pytest.mark.parametrize("text", ["", " \n ", "x", "x" * 5000, "word " * 1000, "One. Two."])
def test_blocks_of_anything_lose_nothing_but_white_space(text: str) -> None:
    kept = "".join(text[start:end] for start, end in blocks(text, 300))
    assert "".join(kept.split()) == "".join(text.split())
    assert all(end - start <= MAX_CHARS + 300 for start, end in blocks(text, 300))


def test_around_a_place_the_sentences_are_those_of_the_whole_text() -> None:
    text = "".join(f"This is sentence number {number} of a long text.\n" for number in range(2000))
    place = text.index("number 1000 ")
    around = bounds_around(text, place, place + 10)
    assert set(around[1:-1]) <= set(spans(text))
    assert any(start <= place < end for start, end in around)
    assert len(around) < 100


def test_a_row_is_one_sentence_whatever_stands_in_its_cells() -> None:
    text = "Contacts. Call us.\nName | Note\nFirst desk | Open. Call 5. Or write!\nSecond | no\nThat is all. Really."
    assert [text[start:end] for start, end in spans(text)] == [
        "Contacts.",
        "Call us.",
        "Name | Note",
        "First desk | Open. Call 5. Or write!",
        "Second | no",
        "That is all.",
        "Really.",
    ]


def test_blocks_keep_the_header_of_a_table_apart_and_rows_whole() -> None:
    rows = [f"Row {number} | {'x' * 30}" for number in range(5)]
    text = "\n".join(("Before it. Words. " * 3, "Name | Note", *rows, "Behind it."))
    found = [text[start:end] for start, end in blocks(text, 60)]
    assert "Name | Note" in found
    assert "\n".join(rows[:2]) in found
    assert rows[4] in found
    even = "\n".join(("Name | Note", *rows[:4]))
    assert [even[start:end] for start, end in blocks(even, 60)][1:] == ["\n".join(rows[:2]), "\n".join(rows[2:4])]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("Table 8.2. Numeric Types", id="the number of a table"),
        pytest.param("Abbildung 3. Zwei Räder", id="of a figure, in German"),
        pytest.param("### 8.8.7. Circles", id="of a marked heading"),
    ],
)
def test_the_number_of_a_caption_stays_with_its_words(text: str) -> None:
    assert spans(text) == [(0, len(text))]


def test_the_first_sentences_are_those_of_the_whole_text() -> None:
    text = "One is here. Two is there.\n\n| a | b |\n|---|---|\n| c | d |\n\nThree is nowhere."
    assert len(spans(text)) == 5
    for number in range(7):
        assert spans(text, most=number) == spans(text)[:number]
