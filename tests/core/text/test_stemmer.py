import pytest
from hypothesis import given
from hypothesis import strategies as st

from datafari_rag.core.text.language import LONG_UNITS, Remembered
from datafari_rag.core.text.tokens import stem_of


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", "install installs installed installing installation"),
        ("en", "study studies studied studying"),
        ("en", "plan plans planned planning"),
        ("fr", "demande demandes demandé demandée demander"),
        ("fr", "national nationale nationales"),
        ("de", "Versicherung Versicherungen"),
        ("es", "trabajo trabajos trabajar trabajando"),
        ("ru", "страна страны странах стране"),
    ],
)
def test_inflections_share_a_stem(language: str, words: str) -> None:
    assert len({stem_of(word.lower(), language) for word in words.split()}) == 1


@pytest.mark.parametrize(
    ("first", "second"), [("current", "cure"), ("note", "nine"), ("general", "generation's")], ids=str
)
def test_other_words_keep_stems_of_their_own(first: str, second: str) -> None:
    assert stem_of(first, "en") != stem_of(second, "en")


@pytest.mark.parametrize("word", ["c3po", "run", "x", "covid-19", "été"], ids=str)
def test_short_words_and_words_with_digits_stay_whole(word: str) -> None:
    assert stem_of(word, "fr") == word


def test_a_language_without_a_table_keeps_words() -> None:
    assert stem_of("taloissa", "fi") == "taloissa"


@given(st.text("abcdefghijklmnopqrstuvwxyzéèçñüß", max_size=20), st.sampled_from(["en", "fr", "de", "es", "it", "pt"]))
def test_a_stem_is_the_beginning_of_its_word(word: str, language: str) -> None:
    found = stem_of(word, language)
    assert word.startswith(found)
    assert bool(found) == bool(word)


def test_what_is_found_for_a_word_is_kept_and_for_a_long_text_never() -> None:
    asked: list[str] = []

    def upper(one: tuple[str, str]) -> str:
        asked.append(one[0])
        return "".join(one).upper()

    kept = Remembered(upper, 10)
    short, long = "a" * LONG_UNITS, "a" * (LONG_UNITS + 1)
    assert [kept[one, "!"] for one in (short, short, long, long)] == [
        one.upper() + "!" for one in (short,) * 2 + (long,) * 2
    ]
    assert asked == [short, long, long]


def test_a_bounded_number_of_words_is_kept_and_each_is_found_all_the_same() -> None:
    kept = Remembered(str.upper, 10)
    sizes = [(kept[f"a{number}"] == f"A{number}", len(kept)) for number in range(100)]
    assert all(is_right for is_right, _ in sizes)
    assert max(size for _, size in sizes) == 10
