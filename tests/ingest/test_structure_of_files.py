"""Files with tables as people write them, from the file to the quoted row."""

from __future__ import annotations

from pathlib import Path

import docx
import pytest

from datafari_rag.core.documents import Document
from datafari_rag.core.evidence.answer import answer
from datafari_rag.core.evidence.choice import Limit, select
from datafari_rag.core.evidence.extracts import extracts_for
from datafari_rag.core.proof.checking import resolve
from datafari_rag.core.text.structure import cells_of, tables_in
from tests.ingest.parsers.test_registry import parse

POLICY = """# Travel policy

Keep all receipts: without a receipt no money that you spend on a trip is paid back.

## Hotels

In Paris you can spend more on a hotel during trade fairs.

| City | Limit per night |
|---|---|
| London | 210 GBP |
| Berlin | 150 EUR |
| Paris | 190 EUR |
"""
GAPS = "City,Summer,Winter\nOslo,100,80\nRome,90,\n,70,60\n"
"""A table whose first or last cells are empty."""

LEAVE = "Leave\n\nDays that are left over must be taken by 31 March of the following year.\n"


def guide_in(path: Path) -> Path:
    document = docx.Document()
    document.add_heading("Guide to remote access", 0)
    document.add_paragraph("Every region has a gateway of its own. The table shows the gateway for each region.")
    rows = (("Region", "Gateway"), ("Europe", "eu.vpn.example.org"), ("Asia", "sg.vpn.example.org"))
    table = document.add_table(len(rows), 2)
    for number, row in enumerate(rows):
        table.cell(number, 0).text, table.cell(number, 1).text = row
    document.save(str(path))
    return path


@pytest.mark.parametrize("max_chars", [400, 4000])
@pytest.mark.parametrize(
    ("question", "row"),
    [
        pytest.param("How much can I spend on a hotel in Berlin?", "Berlin | 150 EUR", id="a Markdown table"),
        pytest.param("What is the gateway for Asia?", "Asia | sg.vpn.example.org", id="a table of a Word file"),
    ],
)
def test_a_question_is_answered_by_its_row(tmp_path: Path, question: str, row: str, max_chars: int) -> None:
    (tmp_path / "policy.md").write_text(POLICY)
    (tmp_path / "leave.txt").write_text(LEAVE)
    files = [tmp_path / "policy.md", guide_in(tmp_path / "guide.docx"), tmp_path / "leave.txt"]
    documents = [Document(path.name, found.text, title=found.title) for path in files for found in (parse(path),)]

    chosen = select(question, documents, limit=Limit(max_chars, 3), language="en").chosen
    extracts = extracts_for(chosen, is_cleaned=True)
    assert any(row in extract.text.split("\n") for extract in extracts)

    reply = answer(question, extracts, language="en")
    first = resolve(reply, extracts)[0]
    stored = {document.id: document.text for document in documents}[first.document_id or ""]
    assert (first.status, first.quote) == ("verified", row)
    assert stored[first.start : first.end] == row


def test_a_row_with_an_empty_cell_at_its_edge_keeps_its_columns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(GAPS)
    text = parse(tmp_path / "a.csv").text
    (table,) = tables_in(text)
    assert table.header is not None
    cells = [[text[slice(*cell)] for cell in cells_of(text, row, table.header)] for row in table.rows]
    assert cells == [["City", "Summer", "Winter"], ["Oslo", "100", "80"], ["Rome", "90", ""], ["", "70", "60"]]
