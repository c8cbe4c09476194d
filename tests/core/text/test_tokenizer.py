"""The words of a question as an index is asked for them."""

import pytest

from datafari_rag.core.text.tokens import sought_in


@pytest.mark.parametrize(
    ("text", "language", "wanted"),
    [
        ("How do I install it?", "en", "How do I install it"),
        ("l'entretien d’embauche", "fr", "entretien embauche"),
        ("jusqu'à aujourd'hui", "fr", "à aujourd'hui"),
        ("dell'anno", "it", "anno"),
        ("l'entretien", "en", "l'entretien"),
        ("the company's plan", "en", "the company plan"),
        ("O'Brien of the co-op's shop", "en", "O'Brien of the co op shop"),
        ("drive-through", "en", "drive through"),
        ("pg_trgm.word_similarity_threshold", "en", "pg_trgm.word_similarity_threshold"),
        ("std::vector or a::b", "en", "std::vector or a::b"),
        ("C++ and C#", "en", "C++ and C#"),
        ("report-2024.pdf", "en", "report-2024.pdf"),
        ("2,500 or 3.5", "en", "2,500 or 3.5"),
        ("П’ять осіб", "uk", "П’ять осіб"),
        ("צה״ל הודיע", "he", "צה״ל הודיע"),
        ("हिन्दी भाषा", "hi", "हिन्दी भाषा"),
        ("e\u0301cole", "fr", "e\u0301cole"),
        ("法国的首都", "zh", "法国 国的 的首 首都"),
        ("首都 都", "zh", "首都 都"),
        ("IBM公司2019年", "zh", "IBM 公司 2019 年"),
        ("コンピュータの歴史", "ja", "コンピュータ の歴 歴史"),
        ("ｻﾄｳの", "ja", "ｻﾄｳ の"),
        ("เกาะ ferry", "th", "เกา กาะ ferry"),
        ("창고는 커요", "ko", "창고는 커요"),
        ("the island ferry", "en", "the island ferry"),
        ("5 % > +7 €", "en", "5 7"),
        ("", "en", ""),
        ('*:* ( ) " && ||', "en", ""),
    ],
    ids=repr,
)
def test_a_question_becomes_words_and_pieces(text: str, language: str, wanted: str) -> None:
    assert sought_in(text, language) == tuple(wanted.split())
