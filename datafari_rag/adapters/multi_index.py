"""Several search engines behind one port: `openai.indexes` with separate addresses."""

from __future__ import annotations

from collections.abc import Mapping

from datafari_rag.core.access import Filter
from datafari_rag.core.documents import Document
from datafari_rag.core.query.search_request import Browse, Search, SearchResult
from datafari_rag.ports import Retriever


class Indexes:
    """Sends a search to the index that it names; everything else goes to the one of `solr.url`."""

    def __init__(self, main: Retriever, others: Mapping[str, Retriever]) -> None:
        """Hold *main* and the *others* by their names."""
        self._main = main
        self._others = dict(others)

    @property
    def main(self) -> Retriever:
        """The index of `solr.url`."""
        return self._main

    def search(self, search: Search, access: Filter) -> SearchResult:
        """Search where `search.index` says. Raises as `ports.Retriever.search`; KeyError: no such index."""
        engine = self._main if search.index is None else self._others[search.index]
        return engine.search(search, access)

    def browse(self, browse: Browse, access: Filter) -> Mapping[str, object]:
        """Browse the index of `solr.url`."""
        return self._main.browse(browse, access)

    def fetch(self, document_id: str, field: str, access: Filter) -> Document | None:
        """Return the document from the first index in which this user may see it, that of `solr.url` first."""
        for engine in (self._main, *self._others.values()):
            document = engine.fetch(document_id, field, access)
            if document is not None:
                return document
        return None

    def probe(self) -> str | None:
        """Return what is wrong with the first index that could not be searched now."""
        return next((said for engine in (self._main, *self._others.values()) if (said := engine.probe())), None)
