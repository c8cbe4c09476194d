import pytest

from datafari_rag.core.text.tokens import pieces_of, sought_in
from datafari_rag.core.text.words import words_of


def texts(text: str, language: str = "en") -> list[str]:
    return [word.text for word in words_of(text, language)]


@pytest.mark.parametrize(
    ("text", "language", "wanted"),
    [
        ("How do I install it?", "en", ["How", "do", "I", "install", "it"]),
        ("l'entretien d’embauche", "fr", ["entretien", "embauche"]),
        ("jusqu'à aujourd'hui", "fr", ["à", "aujourd'hui"]),
        ("dell'anno", "it", ["anno"]),
        ("l'entretien", "en", ["l", "entretien"]),
        ("the company's plan", "en", ["the", "company", "plan"]),
        ("drive-through", "en", ["drive", "through"]),
        ("pg_trgm.word_similarity_threshold", "en", ["pg_trgm.word_similarity_threshold"]),
        ("C++ and C#", "en", ["C++", "and", "C#"]),
        ("report-2024.pdf", "en", ["report-2024.pdf"]),
        ("2,500 or 3.5", "en", ["2", "500", "or", "3.5"]),
        ("2019年开始", "zh", ["2019", "年开始"]),
        ("", "en", []),
        ('*:* ( ) " && ||', "en", []),
    ],
    ids=repr,
)
def test_a_question_becomes_words(text: str, language: str, wanted: list[str]) -> None:
    assert texts(text, language) == wanted


def test_an_identifier_stays_whole_and_knows_its_parts() -> None:
    (word,) = words_of("firstTokenTimeout_s", "en")
    assert word.is_identifier
    assert word.parts == ("firstTokenTimeout", "first", "Token", "Timeout", "s")


def test_a_word_knows_its_place() -> None:
    text = "Où est l'entretien ?"
    assert [text[word.start :].startswith(word.text) for word in words_of(text, "fr")] == [True, True, True]


def test_a_script_without_spaces_is_taken_in_pieces() -> None:
    assert pieces_of("法国首都") == ("法国", "国首", "首都")
    assert pieces_of("首都") == ("首都",)
    assert pieces_of("都") == ("都",)
    assert pieces_of("ภาษา") == ("ภาษ", "าษา")


@pytest.mark.parametrize(
    ("text", "language", "wanted"),
    [
        ("法国的首都", "zh", ("法国", "国的", "的首", "首都")),
        ("IBM公司2019年", "zh", ("IBM", "公司", "2019", "年")),
        ("コンピュータの歴史", "ja", ("コンピュータ", "の歴", "歴史")),
        ("เกาะ ferry", "th", ("เกา", "กาะ", "ferry")),
        ("the island ferry", "en", ("the", "island", "ferry")),
        ("", "en", ()),
    ],
    ids=repr,
)
def test_an_index_is_asked_for_words_and_pieces(text: str, language: str, wanted: tuple[str, ...]) -> None:
    assert sought_in(text, language) == wanted


def test_vowel_signs_and_accents_of_their_own_are_part_of_a_word() -> None:
    assert texts("हिन्दी भाषा", "hi") == ["हिन्दी", "भाषा"]
    assert texts("e\u0301cole", "fr") == ["e\u0301cole"]
    assert texts("เมืองนี้", "th") == ["เมืองนี้"]
