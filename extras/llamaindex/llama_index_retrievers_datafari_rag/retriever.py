"""The retriever: the passages of one answer (`/retrieve`) for each question, as the user whom its headers prove."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import httpx
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode

Headers = Mapping[str, str]

TIMEOUT_S = 30.0


class DatafariRetriever(BaseRetriever):
    """Finds passages as one user."""

    def __init__(
        self,
        url: str,
        *,
        headers: Headers | Callable[[], Headers] | None = None,
        top_k: int = 4,
        documents: Sequence[str] | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """
        Search at *url*.

        *headers* prove the user to the service, or are a function that returns them for each search; nothing else does.
        *documents* are the ids of the only documents that are searched, None for all.
        """
        super().__init__()
        self._address = f"{url.rstrip('/')}/retrieve"
        self._headers = headers or {}
        self._wanted = {"passages": top_k, "documents": None if documents is None else list(documents)}
        self._timeout_s = timeout_s

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Return at most *top_k* passages, best first. Raises: httpx.HTTPError, when the search failed."""
        return _nodes(httpx.post(self._address, **self._request(query_bundle)))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        async with httpx.AsyncClient() as client:
            return _nodes(await client.post(self._address, **self._request(query_bundle)))

    def _request(self, query_bundle: QueryBundle) -> dict[str, Any]:
        headers = self._headers() if callable(self._headers) else self._headers
        body = {"question": query_bundle.query_str, **self._wanted}
        return {"json": body, "headers": dict(headers), "timeout": self._timeout_s}


def _nodes(reply: httpx.Response) -> list[NodeWithScore]:
    reply.raise_for_status()
    return [_node(one, rank) for rank, one in enumerate(reply.json()["passages"], 1)]


def _node(passage: dict[str, Any], rank: int) -> NodeWithScore:
    about = passage["document"]
    place = {name: passage[name] for name in ("field", "place")}
    metadata = {"id": about["id"], "title": about["title"], "url": about["url"] or "", "file_name": about["fileName"]}
    node = TextNode(
        id_=f"{about['id']}#{passage['start']}-{passage['end']}",
        text=passage["text"],
        start_char_idx=passage["start"],
        end_char_idx=passage["end"],
        metadata={**metadata, **place, "rank": rank},
        # What a model is shown besides the text.
        excluded_llm_metadata_keys=["id", "field", "rank"],
        excluded_embed_metadata_keys=["id", "url", "field", "place", "rank"],
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=about["id"])},
    )
    return NodeWithScore(node=node, score=passage.get("score"))
