import pytest

from datafari_rag.core.text.sizes import cut_at, longest_prefix, word_end


@pytest.mark.parametrize(
    ("text", "end", "cut"),
    [
        ("One two. Three four five.", 99, "One two. Three four five."),
        ("One two three. Four five.", 20, "One two three."),
        ("One. " + "word " * 20, 60, ("One. " + "word " * 20)[:59]),
        ("abc", 0, ""),
        ("abc", -1, ""),
        ("x" * 50, 20, "x" * 20),
    ],
    ids=[
        "fits",
        "at a sentence",
        "at a space, when a sentence costs too much",
        "no room",
        "less than none",
        "no space",
    ],
)
def test_a_text_is_cut_where_it_hurts_least(text: str, end: int, cut: str) -> None:
    assert text[: cut_at(text, end)] == cut


@pytest.mark.parametrize(
    ("text", "offset", "place"),
    [
        ("abc", 2, 2),
        ("xe\u0301a", 2, 1),
        ("x👩\u200d👩\u200d👧!", 4, 1),
        ("x👍🏽!", 2, 1),
        ("x❤\ufe0f!", 2, 1),
        ("x🇫🇷!", 2, 1),
    ],
    ids=["letters", "accent", "family", "skin", "heart", "flag"],
)
def test_no_character_is_cut_as_a_reader_sees_it(text: str, offset: int, place: int) -> None:
    assert word_end(text, 0, offset) == place


def test_the_longest_prefix_is_measured_in_any_unit() -> None:
    def words(text: str) -> int:
        return len(text.split())

    text = "one two three four"
    assert text[: longest_prefix(text, 99, words, 2)].split() == ["one", "two"]
    assert longest_prefix(text, 5, words, 9) == 5
    assert longest_prefix(text, -3, words, 9) == 0
    assert longest_prefix(text, 99, words, 0) == 0


@pytest.mark.parametrize("text", ["aB" * 400, "a" * 700 + "B" * 100, "B" * 20 + "a" * 780, "a" * 799 + "B", "B"])
@pytest.mark.parametrize("size", [0, 1, 7, 100, 799, 5000])
def test_the_longest_prefix_is_the_longest_however_the_size_is_spread(text: str, size: int) -> None:
    asked = 0

    def weight(text: str) -> int:
        nonlocal asked
        asked += 1
        return len(text) + 90 * text.count("B")

    found = longest_prefix(text, len(text), weight, size)
    assert found == max(end for end in range(len(text) + 1) if weight(text[:end]) <= size)
    assert asked <= len(text) + 1 + 12


def test_a_word_is_not_cut_unless_it_is_one_character_from_the_start_on() -> None:
    assert word_end("one two three", 0, 9) == 7
    assert word_end("one two", 0, 3) == 3
    assert word_end("one two", 0, 99) == 99
    family = "\U0001f468\u200d\U0001f469\u200d" * 9
    assert word_end(family, 4, 20) == 20
