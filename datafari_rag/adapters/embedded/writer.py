"""
The writer into an index in a folder of this machine: one at a time, all or nothing at each commit, vectors included.

Takes documents under Datafari's field names. A crash at any moment leaves the index as the last commit made it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from tantivy import Document, Index, IndexWriter, Occur, Query, Searcher

from datafari_rag.adapters.embedded.passage_texts import CARD_FIELDS, PassageText, PassageTextWriter, card_of
from datafari_rag.adapters.embedded.queries import blocks_of, narrowed
from datafari_rag.adapters.embedded.replies import stored_of, text_of
from datafari_rag.adapters.embedded.schema import (
    BLOCK_FIELD,
    LANGUAGES,
    MAX_TERM_CHARS,
    RAW_FIELDS,
    SHOWN_FIELDS,
    created,
    translated,
)
from datafari_rag.adapters.private_files import made_private
from datafari_rag.core.access import ACL_FIELDS, NO_SECURITY
from datafari_rag.core.documents import PLACES_FIELD, with_rows_at
from datafari_rag.core.errors import SearchUnavailable
from datafari_rag.core.evidence.parts import held_ends, passages_in
from datafari_rag.core.meaning.near_search import PieceVector
from datafari_rag.core.query.dates import moment_of
from datafari_rag.core.text.folding import encodable, is_unicode
from datafari_rag.core.vectors import EmbeddingModel

if TYPE_CHECKING:
    from datafari_rag.adapters.embedded.vector_files import VectorWriter

HEAP_BYTES = 150_000_000
"""
What the writer collects before it writes a segment. Measured with 100,000 documents of 2 KB: the process peaks at
340 MB with 30 MB and at 400 MB with this, which needs two thirds of the time, since nothing has to be merged.
"""

MAX_SORT_CHARS = 200
"""How much of a title decides its place."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """How many *documents* were written again, and how many are the *rest* because their rights cannot be read."""

    documents: int = 0
    rest: int = 0


class EmbeddedWriter:
    """A `ports.Writer` into the index in *directory*, which is made when there is none."""

    def __init__(self, directory: Path) -> None:
        """Take the index for itself. Raises: SearchUnavailable: it is taken, damaged, or of another version."""
        self._directory = directory
        self._index: Index = created(directory)
        with translated(directory):
            self._writer: IndexWriter | None = self._index.writer(HEAP_BYTES, 1)
        self._vectors: VectorWriter | None = None
        self._texts: PassageTextWriter | None = None

    def add(self, documents: Sequence[Mapping[str, object]]) -> None:
        """Take *documents* in place of those with the same ids. Raises: SearchUnavailable."""
        writer, texts = self._open_writer(), self._open_texts()
        with translated(self._directory):
            for document in documents:
                self._add(document, writer, texts, passages_in(_text(document, "exactContent")), None)

    def _add(
        self,
        document: Mapping[str, object],
        writer: IndexWriter,
        texts: PassageTextWriter,
        bounds: Sequence[tuple[int, int]],
        block: int | None,
    ) -> None:
        """Write one document and its passages, which *bounds* are where they begin and end."""
        stored = _stored(document)
        if bounds:
            number = texts.new_block() if block is None else block
            stored.add_unsigned(BLOCK_FIELD, number)
            text = _text(document, "exactContent")
            passages = [PassageText(start, text[start:end]) for start, end in bounds]
            fields = {name: _text(document, name) for name in CARD_FIELDS}
            fields[PLACES_FIELD] = with_rows_at(fields[PLACES_FIELD], text, [start for start, _ in bounds])
            texts.add(number, card_of(fields), passages)
        writer.delete_documents_by_term("id", _id(document))
        writer.add_document(stored)

    def add_embedded(
        self,
        documents: Sequence[Mapping[str, object]],
        pieces: Mapping[str, Sequence[PieceVector]],
        model: EmbeddingModel,
    ) -> None:
        """Take *documents* with the vectors of their *pieces*. Raises: EmbeddingsGarbled, SearchUnavailable."""
        writer, vectors, texts = self._open_writer(), self._open_vectors(), self._open_texts()
        with translated(self._directory):
            lengths = {_id(document): len(_text(document, "exactContent")) for document in documents}
            blocks = {key: texts.new_block() for key, own in pieces.items() if own}
            vectors.add(lengths, pieces, model, blocks)
            for document in documents:
                own = [(piece.start, piece.end) for piece in pieces.get(_id(document), ())]
                bounds = list(zip([start for start, _ in own], held_ends(own, lengths[_id(document)]), strict=True))
                bounds = bounds or passages_in(_text(document, "exactContent"))
                self._add(document, writer, texts, bounds, blocks.get(_id(document)))

    def rebuild(self) -> Rebuilt:
        """
        Write the documents that have no passages again, from what is stored of them, and commit.

        Readers have the old ones until then. A document whose rights cannot be read stays as it is. Raises:
        SearchUnavailable.
        """
        with translated(self._directory):
            self._index.reload()
            searcher, count, rest = self._index.searcher(), 0, 0
            # The documents that have no text, or that an earlier version wrote.
            cut = Query.exists_query(BLOCK_FIELD)
            old = Query.boolean_query([(Occur.Must, Query.all_query()), (Occur.MustNot, cut)])
            rights = [(name, _tokens_by_place(name, old, searcher, self._index)) for name in ACL_FIELDS]
            for _, place in searcher.search(old, limit=max(1, searcher.num_docs), count=False).hits:
                stored = stored_of(searcher.doc(place))
                fields = {name: values[0] for name, values in stored.items()}
                if isinstance(moment := fields.get("last_modified"), datetime):
                    fields["last_modified"] = moment.isoformat()
                tokens = {field: by_place.get((place.segment_ord, place.doc), []) for field, by_place in rights}
                document = {**fields, "exactContent": text_of(stored, "exactContent") or "", **tokens}
                if not document["exactContent"]:
                    continue
                if all(document[name] for name in ACL_FIELDS):
                    self.add([document])
                    count += 1
                else:
                    rest += 1
        self.commit()
        return Rebuilt(count, rest)

    def unembedded(self, model: EmbeddingModel) -> int:
        """Return how many documents have vectors of other models than *model*. Raises: SearchUnavailable."""
        with translated(self._directory):
            return self._open_vectors().foreign(model, live_blocks(self._index))

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
            # Vectors and passages first: a document that can be found must find its own, and those without a document
            # harm nothing.
            if self._vectors is not None:
                self._vectors.secure()
            if self._texts is not None:
                self._texts.commit()
            writer.commit()
            if self._vectors is not None:
                self._vectors.tidy(lambda: live_blocks(self._index))
            self._remove_strays()
            made_private(self._directory)

    def _remove_strays(self) -> None:
        """Remove passages that no document names any more, where they are many."""
        if self._texts is None:
            return
        self._index.reload()
        if self._texts.has_strays(self._index.searcher().num_docs):
            self._texts.keep_only(live_blocks(self._index))

    def close(self) -> None:
        """Give the index back; what was not committed is given up. Merges that run are waited for."""
        writer, self._writer = self._writer, None
        if self._vectors is not None:
            self._vectors.discard()
        texts, self._texts = self._texts, None
        if writer is not None:
            with translated(self._directory):
                if texts is not None:
                    texts.close()
                writer.rollback()
                writer.wait_merging_threads()

    def _open_vectors(self) -> VectorWriter:
        if self._vectors is None:
            # Imported here: numpy, which only those with vectors need.
            from datafari_rag.adapters.embedded.vector_files import VectorWriter

            self._vectors = VectorWriter(self._directory)
        return self._vectors

    def _open_texts(self) -> PassageTextWriter:
        if self._texts is None:
            # Also where the folder of the passages was removed no number is given twice.
            self._texts = PassageTextWriter(self._directory, max(live_blocks(self._index), default=0) + 1)
        return self._texts

    def _open_writer(self) -> IndexWriter:
        if self._writer is None:
            raise SearchUnavailable("The search index is not open for writing any more.")
        return self._writer


def live_blocks(index: Index) -> list[int]:
    """Return the blocks that documents name as the last commit left them, in order."""
    index.reload()
    return blocks_of(index.searcher(), Query.all_query())


def _tokens_by_place(field: str, among: Query, searcher: Searcher, index: Index) -> dict[tuple[int, int], list[str]]:
    """Return the terms of *field* of each document that *among* finds: they are indexed and not stored."""
    tokens: dict[tuple[int, int], list[str]] = {}
    for token, _ in searcher.terms_with_prefix(field, ""):
        holding = narrowed(Query.term_query(index.schema, field, token), [among])
        for _, place in searcher.search(holding, limit=max(1, searcher.num_docs), count=False).hits:
            tokens.setdefault((place.segment_ord, place.doc), []).append(token)
    return tokens


def _stored(document: Mapping[str, object]) -> Document:
    text, title, url = (_text(document, name) for name in ("exactContent", "title", "url"))
    language = _text(document, "language")
    stored = Document()
    stored.add_text("id", _id(document))
    for name in RAW_FIELDS:
        if value := _text(document, name):
            stored.add_text(name, value)
    for name in SHOWN_FIELDS:
        if value := _text(document, name):
            stored.add_bytes(name, value.encode())
    for name, value in (("exactContent", text), (f"content_{language}", text)):
        if value and (name == "exactContent" or language in LANGUAGES):
            stored.add_text(name, value)
    _add_title(stored, title)
    if url:
        # As it is read: "%20" would be a part of the word behind it.
        stored.add_text("url_search", encodable(unquote(url)))
    if moment := moment_of(_text(document, "last_modified")):
        stored.add_date("last_modified", moment)
    for name in ACL_FIELDS:
        for token in _tokens(document, name):
            stored.add_text(name, token)
    return stored


def _id(document: Mapping[str, object]) -> str:
    document_id = _text(document, "id")
    if not document_id or len(document_id) > MAX_TERM_CHARS:
        raise SearchUnavailable(f"An id has 1 to {MAX_TERM_CHARS} characters: the document is refused.")
    return document_id


def _add_title(stored: Document, title: str) -> None:
    if not title:
        return
    for name in ("exactTitle", *(f"title_{code}" for code in LANGUAGES)):
        stored.add_text(name, title)
    # Without case and accents, as Solr's collation compares titles.
    apart = unicodedata.normalize("NFKD", title[:MAX_SORT_CHARS].casefold())
    stored.add_text("title_sort", "".join(character for character in apart if not unicodedata.combining(character)))


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
