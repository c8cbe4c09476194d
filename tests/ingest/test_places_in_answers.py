"""From a file in a folder to a citation with the place of the quote in it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from datafari_rag.adapters.embedded.retriever import EmbeddedRetriever
from datafari_rag.adapters.embedded.writer import EmbeddedWriter
from datafari_rag.core.access import ANONYMOUS, filter_for
from datafari_rag.core.documents import Place, PlaceMark, mark_text
from datafari_rag.core.evidence.choice import Limit, select
from datafari_rag.core.evidence.extracts import extracts_for
from datafari_rag.core.proof.checking import resolve
from datafari_rag.core.search_request import Browse, Search, Step
from datafari_rag.ingest.documents import Rights, from_file, from_line
from datafari_rag.protocols.chat_reply_parts import citation
from datafari_rag.protocols.openai.renderings import nodes_of
from tests.ingest.parsers.test_registry import parse
from tests.ingest.parsers.written import ROW, WRITERS

EVERYBODY = filter_for(ANONYMOUS, mode="tokens", anonymous="public")


@pytest.mark.parametrize(
    ("kind", "place", "page"),
    [("pdf", "p. 2", 2), ("pptx", "Slide 2", None), ("xlsx", "Sheet Q3, row 14", None), ("docx", None, None)],
)
def test_a_citation_names_the_place_of_its_row(tmp_path: Path, kind: str, place: str | None, page: int | None) -> None:
    path = tmp_path / f"a.{kind}"
    WRITERS[kind](path)
    stored = from_file(path, parse(path), modified_s=0, source="x", rights=Rights())
    with closing(EmbeddedWriter(tmp_path / "index")) as writer:
        writer.add([stored])
        writer.commit()
    retriever = EmbeddedRetriever(tmp_path / "index")
    document = retriever.fetch(str(stored["id"]), "exactContent", EVERYBODY)
    # A passage that begins within the rows of a sheet has a mark of its own.
    marks = str(stored.get("place_marks") or "").splitlines()
    assert document is not None and {*marks} <= {*(document.places or "").splitlines()}

    chosen = select("What is the gateway for South Asia?", [document], limit=Limit(400, 3), language="en").chosen
    extracts = extracts_for(chosen, is_cleaned=True)
    (found,) = resolve(f'"{ROW}" [1].', extracts)
    assert (found.quote, found.place, found.page) == (ROW, place, page)
    wire = citation(found)
    assert (wire["place"], wire["page"]) == (place, page)
    metadata = nodes_of(extracts)[0]["metadata"]
    assert isinstance(metadata, dict) and (metadata["place"] is None) == (place is None)

    page_of_hits = retriever.browse(Browse(None), EVERYBODY)
    assert "place_marks" not in str(page_of_hits)


def test_a_document_without_marks_has_no_places(tmp_path: Path) -> None:
    with closing(EmbeddedWriter(tmp_path / "index")) as writer:
        writer.add([from_line({"id": "a", "content": "words"}, Rights())])
        writer.commit()
    document = EmbeddedRetriever(tmp_path / "index").fetch("a", "exactContent", EVERYBODY)
    assert document is not None and document.places is None


def test_a_row_of_a_long_sheet_of_which_parts_are_read_has_its_number(tmp_path: Path) -> None:
    rows = [
        f"Hall {number} | valve | checked and found to be in order by the people of hall {number}"
        for number in range(2, 6000)
    ]
    rows[4709] = "Hall 4711 | zephyr valve | it leaks, and was closed by hand by the people of the next hall"
    content = "Name | Part | State\n" + "\n".join(rows)
    marks = mark_text([PlaceMark(0, Place("row", 1, "Q3"))])
    with closing(EmbeddedWriter(tmp_path / "index")) as writer:
        writer.add([{"id": "a", "exactContent": content, "language": "en", "place_marks": marks}])
        writer.commit()
    asked = Search("zephyr valve", Step("asked", ("zephyr", "valve")), 5)
    (found,) = EmbeddedRetriever(tmp_path / "index").search(asked, EVERYBODY).documents

    chosen = select("zephyr valve", [found], limit=Limit(400, 3), language="en").chosen
    (citation_of_row,) = resolve(f'"{rows[4709]}" [1].', extracts_for(chosen, is_cleaned=True))
    assert len(found.text) < len(content) / 4 and citation_of_row.place == "Sheet Q3, row 4711"
