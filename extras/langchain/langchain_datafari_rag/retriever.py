"""The retriever: one secure plain search (`/search/select`) for each question, as the user whom its headers prove."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from typing import Any

import httpx
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field

Headers = Mapping[str, str]

_TAGS = re.compile(r"</?em>")


class DatafariRetriever(BaseRetriever):
    """
    Finds documents as one user.

    *headers* prove the user to the service, or are a function that returns them for each search; nothing else does.
    """

    url: str
    headers: Headers | Callable[[], Headers] = Field(default_factory=dict, repr=False)
    k: int = 4
    whole_text: bool = False
    timeout_s: float = 30.0

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        """Return at most *k* documents, best first. Raises: httpx.HTTPError, when the search failed."""
        headers = self.headers() if callable(self.headers) else self.headers
        form = {"q": query, "rows": str(self.k if k is None else k), "hl": "true"}
        address = f"{self.url.rstrip('/')}/search/select"
        reply = httpx.post(address, data=form, headers=dict(headers), timeout=self.timeout_s)
        reply.raise_for_status()
        found = reply.json()
        snippets = found.get("highlighting", {})
        rows = enumerate(found["response"]["docs"], 1)
        return [self._document(row, snippets.get(row["id"], {}), rank) for rank, row in rows]

    def _document(self, row: dict[str, Any], snippets: dict[str, list[str]], rank: int) -> Document:
        texts = [html.unescape(_TAGS.sub("", text)) for field in snippets.values() for text in field]
        whole = "\n".join(_all(row.get("exactContent")))
        about = {name: next(iter(_all(row.get(name))), "") for name in ("title", "url")}
        content = whole if self.whole_text or not texts else " … ".join(texts)
        return Document(page_content=content, metadata={"id": row["id"], **about, "rank": rank}, id=row["id"])


def _all(value: object) -> list[str]:
    """Return the texts of a stored field: one, several, or none."""
    return [str(one) for one in value] if isinstance(value, list) else [] if value is None else [str(value)]
