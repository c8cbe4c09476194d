"""The retriever: the passages of one answer (`/retrieve`) for each question, as the user whom its headers prove."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import httpx
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field

Headers = Mapping[str, str]


class DatafariRetriever(BaseRetriever):
    """
    Finds passages as one user.

    *headers* prove the user to the service, or are a function that returns them for each search; nothing else does.
    *documents* are the ids of the only documents that are searched, None for all.
    """

    url: str
    headers: Headers | Callable[[], Headers] = Field(default_factory=dict, repr=False)
    k: int = 4
    documents: list[str] | None = None
    timeout_s: float = 30.0

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        """Return at most *k* passages, best first. Raises: httpx.HTTPError, when the search failed."""
        headers = self.headers() if callable(self.headers) else self.headers
        body = {"question": query, "passages": self.k if k is None else k, "documents": self.documents}
        address = f"{self.url.rstrip('/')}/retrieve"
        reply = httpx.post(address, json=body, headers=dict(headers), timeout=self.timeout_s)
        reply.raise_for_status()
        return [_document(one, rank) for rank, one in enumerate(reply.json()["passages"], 1)]


def _document(passage: dict[str, Any], rank: int) -> Document:
    about = passage["document"]
    place = {name: passage[name] for name in ("field", "start", "end", "place")}
    metadata = {"id": about["id"], "title": about["title"], "url": about["url"] or "", "file_name": about["fileName"]}
    name = f"{about['id']}#{passage['start']}-{passage['end']}"
    return Document(page_content=passage["text"], metadata={**metadata, **place, "rank": rank}, id=name)
