"""The passages that the model saw, as KAITO's clients know them: one node each (KAITO's RAG service)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from datafari_rag.core.answer.output_filter import target_of
from datafari_rag.core.citations.labels import title_of
from datafari_rag.core.documents import Extract, Passage, place_of, stored_span

Node = dict[str, object]


def nodes_of(extracts: Sequence[Extract]) -> list[Node]:
    """
    Return one node for each passage: documents best first, within one its best passage first.

    The protocol wants a number for a score: all passages of a document have that of the document, which is 1/rank for
    everybody but administrators.
    """
    return [node for extract in extracts for node in _nodes(extract)]


def _nodes(extract: Extract) -> Iterator[Node]:
    if extract.document.field == "highlighting" or not extract.passages:
        yield _node(extract, extract.text, start=0, end=len(extract.text))
        return
    for passage in sorted(extract.passages, key=lambda passage: -passage.score):
        text = _text_of(extract, passage)
        if text.strip():
            start, end = stored_span(extract.document, passage.start, passage.end)
            yield _node(extract, text, start=start, end=end)


def _node(extract: Extract, text: str, *, start: int, end: int) -> Node:
    document = extract.document
    where = place_of(document, start)
    return {
        "doc_id": document.id,
        "node_id": f"{document.id}#{start}-{end}",
        "text": text,
        "score": document.score,
        "metadata": {
            "label": extract.label,
            "number": extract.number,
            "title": title_of(document),
            "url": target_of(document),
            "field": document.field,
            "start": start,
            "end": end,
            "place": None if where is None else where.label(),
        },
    }


def _text_of(extract: Extract, passage: Passage) -> str:
    """Return what the model saw of *passage*: the characters of the extract that stem from it."""
    pieces = []
    for run in extract.origins.runs:
        first, last = max(run.stored, passage.start), min(run.stored + run.length, passage.end)
        if first < last:
            pieces.append(extract.text[run.start + first - run.stored : run.start + last - run.stored])
    return "".join(pieces)
