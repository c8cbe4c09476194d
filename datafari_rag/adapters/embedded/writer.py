"""
The writer into an index in a folder of this machine: one at a time, all or nothing at each commit.

Takes documents under Datafari's field names. A crash at any moment leaves the index as the last commit made it. Vectors
are written beside the index and before it: rows that no document names are found by nobody.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from tantivy import Document, Index, IndexWriter, Order, Query

from datafari_rag.adapters.embedded.schema import (
    CARD,
    DATE_FIELD,
    DOCUMENT,
    KEY,
    KIND,
    MAX_TERM_CHARS,
    NAME,
    NUMBER,
    PASSAGE,
    PASSAGE_WORDS,
    RAW_FIELDS,
    START,
    TEXT,
    TITLE,
    WORDS,
    created,
    last_number_in,
    seal,
    terms_in,
    translated,
)
from datafari_rag.adapters.private_files import made_private
from datafari_rag.core.access import ACL_FIELDS, NO_SECURITY
from datafari_rag.core.documents import FILE_FIELD, PLACES_FIELD, STAMP_FIELD, with_rows_at
from datafari_rag.core.errors import EmbeddingsGarbled, SearchUnavailable
from datafari_rag.core.evidence.parts import MAX_NUMBER, key_of
from datafari_rag.core.evidence.passages import pieces_of
from datafari_rag.core.meaning.near_search import PieceVector
from datafari_rag.core.query.dates import moment_of
from datafari_rag.core.text.cleaning import encodable, is_unicode
from datafari_rag.core.text.structure import MAX_DEPTH, Heading, headings_in
from datafari_rag.core.vectors import EmbeddingModel

if TYPE_CHECKING:
    from datafari_rag.adapters.embedded.vectors import VectorWriter

HEAP_BYTES = 150_000_000
"""What the writer collects before it writes a segment: with 30 MB the process needs less, and half as long again."""

MAX_SORT_CHARS = 200
"""How much of a title decides its place."""

PASSAGE_CHARS = 1000
"""
A passage is the shortest stretch of whole statements of so many characters. With 500 the answer was in 8,000 characters
for 85.7 % of the questions about contracts in place of 94.3: less of what stands around it is read.
"""

MAX_PASSAGE_CHARS = 8000
"""What no statement divides is cut here: a run of blanks, a line of a megabyte."""

SHOWN_FIELDS = ("title", "url", "preview_content", DATE_FIELD, PLACES_FIELD, FILE_FIELD, STAMP_FIELD, *RAW_FIELDS)
"""What is stored of a document besides its id and its text."""


class Cut(NamedTuple):
    """A passage: its place in the text, and the stretches above it that are looked for with it: heading, lead."""

    start: int
    end: int
    above: tuple[tuple[int, int], ...] = ()


class EmbeddedWriter:
    """A `ports.PassageWriter` into the index in *directory*, which is made when there is none."""

    def __init__(self, directory: Path) -> None:
        """Take the index for itself. Raises: SearchUnavailable: it is taken, damaged, or of another version."""
        self._directory = directory
        self._index: Index = created(directory)
        with translated(directory):
            self._writer: IndexWriter | None = self._index.writer(HEAP_BYTES, 1)
            # What a killed writer left may have the very name that a file of this one gets, which would be refused.
            self._writer.garbage_collect_files()
        self._vectors: VectorWriter | None = None
        self._number = 0

    def add(self, documents: Sequence[Mapping[str, object]]) -> None:
        """Take *documents* in place of those with the same ids. Raises: SearchUnavailable."""
        writer = self._open_writer()
        with translated(self._directory):
            for document in documents:
                self._add(writer, document, self._new_number(), cuts_of(_text(document, "exactContent")))

    def add_embedded(
        self,
        documents: Sequence[Mapping[str, object]],
        pieces: Mapping[str, Sequence[PieceVector]],
        model: EmbeddingModel,
    ) -> None:
        """Take *documents* with the vectors of their *pieces*. Raises: EmbeddingsGarbled, SearchUnavailable."""
        writer = self._open_writer()
        texts = {_id(document): _text(document, "exactContent") for document in documents}
        _check(texts, pieces)
        with translated(self._directory):
            vectors = self._open_vectors()
            numbers = {document_id: self._new_number() for document_id in texts}
            vectors.add({numbers[document_id]: own for document_id, own in pieces.items() if own}, model)
            for document in documents:
                own, text = pieces.get(_id(document), ()), texts[_id(document)]
                # One cut for both: row n of a document is its passage n.
                cuts = _tiled([Cut(piece.start, piece.end) for piece in own], len(text)) if own else cuts_of(text)
                self._add(writer, document, numbers[_id(document)], cuts)

    def unembedded(self, model: EmbeddingModel) -> int:
        """Return how many documents have vectors of other models than *model*. Raises: SearchUnavailable."""
        with translated(self._directory):
            return self._open_vectors().foreign(model, numbers_in(self._index))

    def stamps(self) -> dict[str, str]:
        """Return id → stamp of the documents that have one, as the last commit left them. Raises: SearchUnavailable."""
        with translated(self._directory):
            self._index.reload()
            searcher = self._index.searcher()
            documents = Query.term_query(self._index.schema, KIND, DOCUMENT)
            limit = max(1, searcher.num_docs)
            # In the order in which they are stored, each block is unpacked once.
            hits = searcher.search(documents, limit=limit, count=False, order_by_field=NUMBER, order=Order.Asc).hits
            cards = (json.loads(searcher.doc(place)[CARD][0]) for _, place in hits)
            return {card["id"]: card[STAMP_FIELD] for card in cards if STAMP_FIELD in card}

    def delete(self, ids: Sequence[str]) -> None:
        """Remove the documents with *ids*. Raises: SearchUnavailable."""
        writer = self._open_writer()
        with translated(self._directory):
            for document_id in filter(is_unicode, ids):
                writer.delete_documents_by_term("id", document_id)

    def commit(self) -> None:
        """Return when all can be found: readers see it at their next search. Raises: SearchUnavailable."""
        writer = self._open_writer()
        with translated(self._directory):
            if self._vectors is not None:
                # Before the index: a document that can be found must find its own.
                self._vectors.secure(numbers_in(self._index), self._number)
            writer.commit()
            if self._vectors is not None:
                self._vectors.tidy(numbers_in(self._index), self._number)
            seal(self._directory)
            made_private(self._directory)

    def close(self) -> None:
        """Give the index back; what was not committed is given up. Merges that run are waited for."""
        writer, self._writer = self._writer, None
        if self._vectors is not None:
            self._vectors.discard()
        if writer is not None:
            with translated(self._directory):
                writer.rollback()
                writer.wait_merging_threads()
                seal(self._directory)

    def _add(self, writer: IndexWriter, document: Mapping[str, object], number: int, cuts: Sequence[Cut]) -> None:
        """Write one document and its passages in place of the former ones. Raises: SearchUnavailable."""
        document_id, text, language = _id(document), _text(document, "exactContent"), _text(document, "language")
        rights = [(name, token) for name in ACL_FIELDS for token in _tokens(document, name)]
        # Passage by passage: none ends within a word, and one without odd signs is read in half the time.
        terms = [" ".join(terms_in(text[cut.start : cut.end], language)) for cut in cuts]
        above = {span: " ".join(terms_in(text[slice(*span)], language)) for cut in cuts for span in cut.above}
        writer.delete_documents_by_term("id", document_id)
        whole = _entry(DOCUMENT, document_id, number, rights)
        for name, value in ((WORDS, " ".join(terms)), *_names(document, language)):
            if value:
                whole.add_text(name, value)
        for name in RAW_FIELDS:
            if value := _text(document, name):
                whole.add_text(name, value)
        card = {name: value for name in SHOWN_FIELDS if (value := _text(document, name))}
        if moment := moment_of(card.get(DATE_FIELD, "")):
            whole.add_date(DATE_FIELD, moment)
        if PLACES_FIELD in card:
            card[PLACES_FIELD] = with_rows_at(card[PLACES_FIELD], text, [cut.start for cut in cuts])
        facts = {"id": document_id, "passages": len(cuts), "chars": len(text)}
        whole.add_bytes(CARD, json.dumps({**card, **facts}, ensure_ascii=False).encode())
        writer.add_document(whole)
        for place, cut in enumerate(cuts):
            entry = _entry(PASSAGE, document_id, number, rights)
            entry.add_unsigned(KEY, key_of(number, place))
            entry.add_unsigned(START, cut.start)
            entry.add_bytes(TEXT, text[cut.start : cut.end].encode())
            entry.add_text(PASSAGE_WORDS, " ".join([*(above[span] for span in cut.above), terms[place]]))
            writer.add_document(entry)

    def _new_number(self) -> int:
        """Return a number that no document ever had: above all in the index, and all that vectors were written for."""
        if not self._number:
            self._number = max((last_number_in(self._directory), *numbers_in(self._index)[-1:]))
        self._number += 1
        return self._number

    def _open_vectors(self) -> VectorWriter:
        if self._vectors is None:
            # Imported here: numpy, which only those with vectors need.
            from datafari_rag.adapters.embedded.vectors import VectorWriter

            self._vectors = VectorWriter(self._directory)
        return self._vectors

    def _open_writer(self) -> IndexWriter:
        if self._writer is None:
            raise SearchUnavailable("The search index is not open for writing any more.")
        return self._writer


def cuts_of(text: str) -> list[Cut]:
    """Return the passages of *text*, in order and without a gap, each with its headings and lead; empty for ""."""
    headings, path, at = headings_in(text), list[Heading](), 0
    pieces = pieces_of(text, PASSAGE_CHARS)
    cuts: list[Cut] = []
    for piece in pieces:
        while at < len(headings) and headings[at].end <= piece.start:
            while path and path[-1].level >= headings[at].level:
                path.pop()
            path.append(headings[at])
            at += 1
        above = [(heading.start, heading.end) for heading in path[-MAX_DEPTH:]]
        if piece.lead >= 0:
            above.append(pieces[piece.lead][:2])
        cuts.append(Cut(piece.start, piece.end, tuple(above)))
    return _tiled(cuts, len(text))


def _tiled(cuts: Sequence[Cut], length: int) -> list[Cut]:
    """Return *cuts* so that together they are all of a text of *length*, what is between two with the first."""
    starts = [0, *(cut.start for cut in cuts[1:])]
    tiles: list[Cut] = []
    for cut, start, end in zip(cuts or [Cut(0, length)], starts, [*starts[1:], length], strict=True):
        tiles += [
            cut._replace(start=at, end=min(at + MAX_PASSAGE_CHARS, end)) for at in range(start, end, MAX_PASSAGE_CHARS)
        ]
    return tiles


def numbers_in(index: Index) -> list[int]:
    """Return the numbers of the documents as the last commit left them, in order."""
    index.reload()
    searcher = index.searcher()
    documents = Query.term_query(index.schema, KIND, DOCUMENT)
    limit = max(1, searcher.num_docs)
    # The column of a field is read far faster than stored documents: 0.1 s for 100,000.
    hits = searcher.search(documents, limit=limit, count=False, order_by_field=NUMBER, order=Order.Asc).hits
    return [int(number) for number, _ in hits]


def _entry(kind: str, document_id: str, number: int, rights: Sequence[tuple[str, str]]) -> Document:
    entry = Document()
    entry.add_text(KIND, kind)
    entry.add_text("id", document_id)
    entry.add_unsigned(NUMBER, number)
    for name, token in rights:
        entry.add_text(name, token)
    return entry


def _names(document: Mapping[str, object], language: str) -> list[tuple[str, str]]:
    """Return what is looked for and sorted by besides the text: the title, and the address as it is read."""
    title, url = _text(document, "title"), _text(document, "url")
    # Without case and accents, as Solr's collation compares titles.
    apart = unicodedata.normalize("NFKD", title[:MAX_SORT_CHARS].casefold())
    return [
        (TITLE, " ".join(terms_in(title, language))),
        # "%20" would be a part of the word behind it.
        (NAME, " ".join(terms_in(encodable(unquote(url)), language))),
        ("title_sort", "".join(character for character in apart if not unicodedata.combining(character))),
    ]


def _check(texts: Mapping[str, str], pieces: Mapping[str, Sequence[PieceVector]]) -> None:
    """Check that *pieces* by id are stretches of *texts*. Raises: EmbeddingsGarbled."""
    for document_id, own in pieces.items():
        if document_id not in texts:
            raise EmbeddingsGarbled(log="pieces came without their document")
        if len(own) > MAX_NUMBER:
            raise EmbeddingsGarbled(log=f"a document of {len(own)} pieces")
        if any(not 0 <= piece.start < piece.end <= len(texts[document_id]) for piece in own):
            raise EmbeddingsGarbled(log="a piece is outside its document's text")


def _id(document: Mapping[str, object]) -> str:
    document_id = _text(document, "id")
    if not document_id or len(document_id) > MAX_TERM_CHARS:
        raise SearchUnavailable(f"An id has 1 to {MAX_TERM_CHARS} characters: the document is refused.")
    return document_id


def _text(document: Mapping[str, object], name: str) -> str:
    """Return the value of *name*, "" when there is none; of several the texts are joined by line ends."""
    value = document.get(name, "")
    if not isinstance(value, str):
        value = "\n".join(part for part in value if isinstance(part, str)) if isinstance(value, Sequence) else ""
    return encodable(value)


def _tokens(document: Mapping[str, object], name: str) -> Sequence[str]:
    """
    Return the raw terms of an ACL field, `__nosecurity__` when it is missing or empty.

    Raises:
        SearchUnavailable: a value that cannot be a term: a document is refused rather than opened.
    """
    value = document.get(name)
    tokens = [value] if isinstance(value, str) else value
    if tokens is None or tokens == [] or tokens == ():
        return (NO_SECURITY,)
    if not isinstance(tokens, Sequence) or not all(isinstance(token, str) for token in tokens):
        raise SearchUnavailable(f"The values of {name} are not texts: the document is refused.")
    if any(len(token) > MAX_TERM_CHARS or not is_unicode(token) for token in tokens):
        raise SearchUnavailable(f"A value of {name} cannot be a term: the document is refused.")
    return tokens
