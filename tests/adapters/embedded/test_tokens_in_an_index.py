"""An index of tokens, beside the one that is searched today: what its analysers miss is found, on one rule for all."""

from __future__ import annotations

from pathlib import Path

import pytest
from tantivy import Document, Index, Occur, Query, SchemaBuilder, TextAnalyzerBuilder, Tokenizer

from datafari_rag.core.text.tokens import tokens

TEXTS = {
    "hr": "HR policy\n\nHolidays are approved by the group. The policy is the policy of the policy group.",
    "it": "IT policy\n\nLaptops are encrypted. The password is changed every 90 days.",
    "us": "The US office opens at 9. The UK office opens at 8. The WHO visits in May.",
    "fire": "Das Ge\u00adsamt\u00adkon\u00adzept wurde am 4. Mai freigegeben.",
    "safi": "يقع مكتب آسفي في شارع الميناء.",
    "order": "部品番号ＰＰＲ－９０８７の在庫は１２個です。担当はｻﾄｳです。",
    "store": "창고는 부산에 있습니다.",
    "print": "The oﬃce of the ﬁrst ﬂoor.",
    "city": "İSTANBUL ofisi kapalı.",
}


def terms(text: str) -> str:
    return " ".join(token.stem for token in tokens(text) if token.stem)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    builder = SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw")
    builder.add_text_field("terms", tokenizer_name="terms")
    made = Index(builder.build(), path=str(Path(tmp_path_factory.mktemp("terms"))))
    made.register_tokenizer("terms", TextAnalyzerBuilder(Tokenizer.whitespace()).build())
    writer = made.writer(15_000_000, 1)
    for name, text in TEXTS.items():
        writer.add_document(Document(id=name, terms=terms(text)))
    writer.commit()
    writer.wait_merging_threads()
    made.reload()
    return made


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("the IT policy", "it"),
        ("US", "us"),
        ("Gesamtkonzept", "fire"),
        ("اسفي", "safi"),
        ("الـميناء", "safi"),
        ("PPR-9087", "order"),
        ("サトウ", "order"),
        ("창고", "store"),
        ("office floor", "print"),
        ("istanbul", "city"),
    ],
)
def test_a_word_in_another_form_finds_its_document_first(index: Index, question: str, first: str) -> None:
    words = [Query.term_query(index.schema, "terms", word) for word in terms(question).split()]
    searcher = index.searcher()
    hits = searcher.search(Query.boolean_query([(Occur.Should, word) for word in words]), 3).hits
    assert searcher.doc(hits[0][1])["id"] == [first]
