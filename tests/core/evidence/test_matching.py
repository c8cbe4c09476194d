import pytest

from datafari_rag.core.evidence.matching import MAX_HITS, MAX_TERMS, hits_in, terms_of


def stems(question: str, language: str = "en") -> list[str]:
    return [term.stem for term in terms_of(question, language)]


def hits(question: str, text: str, language: str = "en") -> list[tuple[int, ...]]:
    return list(hits_in(text, terms_of(question, language), language))


def test_words_that_only_ask_are_not_looked_for_unless_there_are_no_others() -> None:
    assert stems("What is the fare of the ferry?") == ["far", "fer"]
    assert stems("what is it?") != []
    assert stems("?!") == []


def test_a_run_of_names_is_one_thing_and_counts_less_than_a_word() -> None:
    found = {term.stem: term for term in terms_of("the fare to Port Marlin", "en")}
    assert found["far"].weight == 1.0
    assert found["marlin"].weight == pytest.approx(0.6 / 2**0.75)
    assert found["marlin"].is_name and found["marlin"].share == pytest.approx(1 / 2**0.75)


@pytest.mark.parametrize(
    ("question", "language"),
    [
        pytest.param("Was kostet die Insel?", "de", id="German, where every noun is capital"),
        pytest.param("of Port Marlin", "en", id="nothing but names"),
    ],
)
def test_where_all_words_are_capital_none_is_a_name(question: str, language: str) -> None:
    assert not any(term.is_name for term in terms_of(question, language))


@pytest.mark.parametrize(
    ("question", "text", "language", "expected"),
    [
        pytest.param("animals", "An animal. Animals!", "en", [(3, 11)], id="another ending"),
        pytest.param("cats", "a cat in a category", "en", [(2,)], id="no word that only begins alike"),
        pytest.param("été", "En ÉTÉ, en ete.", "fr", [(3, 11)], id="whatever case and accents"),
        pytest.param("ferry", "aferry ferryboat", "en", [()], id="a part of a word is none"),
        pytest.param("大桥", "这座大桥", "zh", [(2,)], id="a script without blanks"),
        pytest.param("مدرسة", "المدرسة مدرسه", "ar", [(8,)], id="a script read as tokens"),
        pytest.param("Wertpapier", "Ein Wert\u00adpa\u00adpier, ein Wertpapier", "de", [(4, 22)], id="soft hyphens"),
        pytest.param("wert", "Wert\u00adpapier", "de", [()], id="a part of a word with a soft hyphen"),
        pytest.param("zero", "a ze\u200bro", "en", [(2,)], id="a blank of no width"),
        pytest.param("PPR-9087", "番号ＰＰＲ－９０８７の在庫", "ja", [(2,), (6,)], id="full width between signs"),
        pytest.param("ガイド", "ｶﾞｲﾄﾞ", "ja", [(0,), (2,)], id="half width"),
        pytest.param("1.5", "Ａ１．５", "ja", [()], id="a part of a number"),
        pytest.param("files", "The ﬁle", "en", [(4,)], id="a ligature"),
        pytest.param("Strasse", "Die Straße", "de", [(4,)], id="two letters for one"),
        pytest.param("été", "en e\u0301te\u0301", "fr", [(3,)], id="accents apart"),
        pytest.param("αθηνα", "Στην Αθήνα", "el", [(5,)], id="accents of Greek"),
        pytest.param("col·lectiu", "El col·lectiu · lliure", "ca", [(3,)], id="a point between letters"),
        pytest.param("п'ять", "це п’ять", "uk", [(3,)], id="an apostrophe of another keyboard"),
        pytest.param("احمد", "السيد أحمد", "ar", [(6,)], id="another alef"),
        pytest.param("서울", "겨울 서울에서", "ko", [(3,)], id="a particle"),
        pytest.param("istanbul", "İSTANBUL ofisi", "tr", [(0,)], id="a capital i with its dot"),
    ],
)
def test_a_term_stands_where_its_word_does(
    question: str, text: str, language: str, expected: list[tuple[int, ...]]
) -> None:
    assert hits(question, text, language) == expected


def test_what_is_looked_for_and_found_is_bounded() -> None:
    assert len(terms_of(" ".join(f"word{number}" for number in range(99)), "en")) == MAX_TERMS
    assert len(hits("ferry", "ferry " * (MAX_HITS + 9))[0]) == MAX_HITS
