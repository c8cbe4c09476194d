"""
The retriever over a real Solr: one node, several, or a SolrCloud known by its ZooKeeper.

Encodes searches with `core.solr`, sends each once, and reads the answer. It makes no filter of its own and has
no search without one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from datafari_rag.adapters.solr.client import DescribedCollection, RequestRejected, TooManyClauses
from datafari_rag.adapters.solr.passages import SolrPassages
from datafari_rag.adapters.solr.replies import document_of, hits_of, is_partial, page_of, snippets_of, took_ms
from datafari_rag.core.access import Filter
from datafari_rag.core.documents import Document, first_value
from datafari_rag.core.errors import EmbeddingError, SearchError, SearchUnavailable, UnfitValue
from datafari_rag.core.meaning.near_search import words_search_for
from datafari_rag.core.messages import message
from datafari_rag.core.search_request import Browse, Search, SearchResult
from datafari_rag.core.solr.handler_parameters import SENT
from datafari_rag.core.solr.parameters import (
    MAX_CLAUSES,
    NOTHING,
    Params,
    browse_params,
    fetch_params,
    search_params,
    text_field,
    texts_params,
)
from datafari_rag.core.solr.schema import Schema
from datafari_rag.core.text.folding import is_unicode

log = logging.getLogger(__name__)

LEAST_CLAUSES = 8
"""With fewer, one word is sent; a Solr that refuses this is not asked again."""


class SolrRetriever:
    """
    A `ports.Retriever` over a Solr collection.

    *tolerates_partial* takes an answer without some shards, and says so in it. *passages* are those beside the
    collection, if it may have some.
    """

    def __init__(
        self,
        collection: DescribedCollection,
        *,
        handler: str = "/select",
        tolerates_partial: bool = False,
        passages: SolrPassages | None = None,
    ) -> None:
        """Remember how to ask; nothing is sent yet."""
        self._nodes, self._schema = collection.nodes, collection.schema
        self._handler = handler.strip("/")
        self._tolerates_partial = tolerates_partial
        self.passages = passages
        self._has_texts = False

    def search(self, search: Search, access: Filter) -> SearchResult:
        """
        Return the best documents for one step; hits of equal score are in the order of their ids.

        Raises:
            SearchUnavailable: no connection, a refusal, an unreadable answer, or a missing shard.
            SearchTimeout: no answer within the limits.
            UnfitValue: a value to narrow by does not fit its field.
        """
        read = None if search.is_bare or search.is_whole else self._in_passages(search, access)
        if read is not None:
            return read
        schema = self._schema()
        params, reply = self._sought(
            lambda clauses: search_params(search, access, schema, clauses=clauses),
            is_narrowed=bool(search.restrictions),
        )
        total, rows = hits_of(reply)
        found = [self._document(row, reply, search, schema) for row in rows]
        if not search.is_bare and search.content == "exactContent":
            found = self._with_texts(found, search.language, access, schema)
        ranked = sorted((d for d in found if d.score >= search.min_score), key=lambda d: (-d.score, d.id))
        query = f"{search.step.rule}: {params.get('words', NOTHING)}"
        return SearchResult(tuple(ranked), total, is_partial(reply), took_ms(reply), query=query)

    def _in_passages(self, search: Search, access: Filter) -> SearchResult | None:
        """Return what `search` does, the texts read from passages; None where there are none that could be read."""
        passages = self.passages
        if passages is None or not passages.reads_texts(search):
            return None
        found = self.search(replace(search, is_bare=True), access)
        try:
            read = [*passages.compared(found.documents, words_search_for(search), access)]
        except (EmbeddingError, SearchError) as error:
            log.warning("passages could not be read: label=%s cause=%r", error.label, error.log or error.reason)
            return None
        return replace(found, documents=tuple(self._with_texts(read, search.language, access, self._schema())))

    def browse(self, browse: Browse, access: Filter) -> Mapping[str, object]:
        """Return Solr's own JSON for a plain search, ACL fields never in it. Raises as search."""
        schema = self._schema()
        _, reply = self._sought(
            lambda clauses: browse_params(browse, access, schema, clauses=clauses),
            is_narrowed=bool(browse.restrictions or browse.facet_fields),
        )
        return page_of(reply, browse, schema, is_incomplete=is_partial(reply))

    def fetch(self, document_id: str, field: str, access: Filter) -> Document | None:
        """
        Return one document with the stored text of *field*, "" where it has none; None when absent or not for them.

        *field* is one of the body and preview fields; any other is absent. Raises as search.
        """
        schema = self._schema()
        if not schema.is_text(field) or not is_unicode(document_id):
            return None
        reply = self._ask(fetch_params(document_id, field, access, schema), is_narrowed=False)
        row = next(iter(hits_of(reply)[1]), None)
        if row is None:
            return None
        found = document_of(row, field=field, text=first_value(row, field) or "", schema=schema)
        if field != schema.fields.exact_content:
            return found
        return self._with_texts([found], found.language or "", access, schema)[0]

    def probe(self) -> str | None:
        """Return None when a search would work now, else one sentence that says what is wrong."""
        try:
            return self._textless() if self._count() and not self._has_texts else None
        except SearchError as error:
            reason = message(error.reason)
            return message("{reason} ({cause})", reason=reason, cause=error.log) if error.log else reason

    def _textless(self) -> str | None:
        """Say that no document has a text where one is expected, None once one has. Raises as search."""
        schema = self._schema()
        named = [name for name in (schema.fields.exact_content, *schema.contents("")) if schema.has(name)]
        self._has_texts = bool(named) and self._count(" OR ".join(f"{name}:[* TO *]" for name in named)) > 0
        if self._has_texts:
            return None
        return message(
            "No document has a text in the field {field}: set exactContent in solr.fields.",
            field=schema.fields.exact_content,
        )

    def _count(self, narrowed: str = "*:*") -> int:
        return hits_of(self._ask({**SENT, "q": "*:*", "fq": narrowed, "rows": "0"}, is_narrowed=False))[0]

    def close(self) -> None:
        """Close the connections."""
        self._nodes.close()

    def _sought(self, params_within: Callable[[int], Params], *, is_narrowed: bool) -> tuple[Params, Mapping[str, Any]]:
        """Return what was sent and the answer; with half as many clauses as long as they are too many for Solr."""
        clauses = MAX_CLAUSES
        while True:
            params = params_within(clauses)
            try:
                return params, self._ask(params, is_narrowed=is_narrowed)
            except TooManyClauses:
                if clauses < LEAST_CLAUSES:
                    raise
                clauses //= 2

    def _ask(self, params: Params, *, is_narrowed: bool) -> Mapping[str, Any]:
        tolerant = "true" if self._tolerates_partial else "false"
        sent = {**params, "shards.tolerant": tolerant}
        try:
            reply = self._nodes.ask(lambda node: node.search(self._handler, sent))
        except TooManyClauses:
            raise
        except RequestRejected as error:
            if is_narrowed:
                raise UnfitValue(log=error.log) from error
            raise
        except UnicodeEncodeError:
            raise SearchUnavailable(log="a lone surrogate in a parameter") from None
        if is_partial(reply) and not self._tolerates_partial:
            raise SearchUnavailable(log="a part of the collection did not answer")
        return reply

    def _with_texts(self, documents: list[Document], language: str, access: Filter, schema: Schema) -> list[Document]:
        """Return *documents*, those without an exact text with the stemmed body that they have in its place."""
        ids = [document.id for document in documents if not document.text]
        if not ids or not schema.contents(language):
            return documents
        rows = hits_of(self._ask(texts_params(ids, language, access, schema), is_narrowed=False))[1]
        # A document that was replaced since is another one.
        stored = {(first_value(row, schema.fields.id), first_value(row, "_version_")): row for row in rows}
        return [
            _with_text(one, stored.get((one.id, one.version), {}), schema.contents(language)) if not one.text else one
            for one in documents
        ]

    def _document(self, row: Mapping[str, Any], reply: Mapping[str, Any], search: Search, schema: Schema) -> Document:
        if search.content == "highlighting":
            identifier = first_value(row, schema.fields.id) or ""
            names = (*schema.contents(search.language), schema.fields.exact_content)
            text, field = snippets_of(reply, identifier, names), "highlighting"
        else:
            field = text_field(search.content, schema)
            text = first_value(row, field) or ""
        return document_of(row, field=field, text=text, schema=schema)


def _with_text(document: Document, row: Mapping[str, Any], fields: Sequence[str]) -> Document:
    """Return *document* with the first text that *row* has in one of *fields*; as it is where there is none."""
    texts = ((name, first_value(row, name)) for name in fields)
    return next((replace(document, text=text, field=name) for name, text in texts if text), document)
