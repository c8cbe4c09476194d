"""A word is found in whatever form it is written: what public reports of other products name, over the index itself."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from datafari_rag.adapters.embedded.retriever import EmbeddedRetriever
from datafari_rag.adapters.embedded.writer import EmbeddedWriter
from datafari_rag.core.access import ANONYMOUS, filter_for
from datafari_rag.core.query.plan import steps_for
from datafari_rag.core.search_request import Search
from datafari_rag.core.text.language import detect

TEXTS = {
    "hr": (
        "HR policy\n\nThe policy of the group applies to the policy of holidays. Holidays are approved by the group. "
        "The policy is the policy of the policy group."
    ),
    "it": "IT policy\n\nLaptops are encrypted. The password is changed every 90 days.",
    "us": "The US office opens at 9. The UK office opens at 8. The WHO visits in May.",
    "fire": "Das Ge\u00adsamt\u00adkon\u00adzept wurde am 4. Mai freigegeben.",
    "safi": "يقع مكتب آسفي في شارع الميناء.",
    "order": "部品番号ＰＰＲ－９０８７の在庫は１２個です。担当はｻﾄｳです。",
    "store": "창고는 부산에 있습니다.",
    "print": "The oﬃce of the ﬁrst ﬂoor.",
    "city": "İSTANBUL ofisi kapalı.",
    "pump": "Die Kreiselpumpen der Anlage wurden im Mai überprüft, und sie stehen jetzt nicht mehr still.",
}


@pytest.fixture(scope="module")
def retriever(tmp_path_factory: pytest.TempPathFactory) -> EmbeddedRetriever:
    folder: Path = tmp_path_factory.mktemp("terms")
    with closing(EmbeddedWriter(folder)) as writer:
        writer.add([{"id": name, "exactContent": text, "language": detect(text)} for name, text in TEXTS.items()])
        writer.commit()
    return EmbeddedRetriever(folder)


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("What does the IT policy say?", "it"),
        ("the US", "us"),
        ("Was ist das Gesamtkonzept?", "fire"),
        ("GESAMTKONZEPT", "fire"),
        ("اسفي", "safi"),
        ("أين مكتب الـميناء؟", "safi"),
        ("PPR-9087", "order"),
        ("PPR-9087の在庫は12個ですか", "order"),
        ("サトウ", "order"),
        ("창고", "store"),
        ("창고에 부산", "store"),
        ("office on the first floor", "print"),
        ("istanbul", "city"),
        ("İstanbul", "city"),
        ("ISTANBUL", "city"),
        ("Kreiselpumpe", "pump"),
    ],
)
def test_a_word_in_another_form_finds_its_document_first(
    retriever: EmbeddedRetriever, question: str, first: str
) -> None:
    language = detect(question)
    steps = steps_for(question, language=language, operator="AND")
    anybody = filter_for(ANONYMOUS, mode="tokens", anonymous="public")
    found = (retriever.search(Search(question, step, 5, language=language), anybody).documents for step in steps)
    assert next((documents[0].id for documents in found if documents), None) == first
