"""
The smallest RAG service of Haystack: search, prompt, model; asked as `make bench` asks every peer.

It filters by no rights, chooses no passages, resolves no citations: the documents go into the prompt as they are. It is
asynchronous from end to end, with one kept pool of connections to Solr, as its makers advise for many callers.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from typing import Any

import httpx
from hayhooks import BasePipelineWrapper, async_streaming_generator, get_last_user_message
from haystack import Document, Pipeline, component
from haystack.components.builders import ChatPromptBuilder
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.utils import Secret

PROMPT = (
    "Answer the question from the documents. Name the number of the document after each sentence.\n"
    "{% for document in documents %}Document {{ loop.index }}. {{ document.content }}\n{% endfor %}"
    "Question: {{ question }}"
)


@component
class SolrRetriever:
    """Ask Solr for three documents."""

    def __init__(self, url: str) -> None:
        """Remember where Solr is; the pool is made in the worker that uses it."""
        self.url = url
        self.pool: httpx.AsyncClient | None = None

    @component.output_types(documents=list[Document])
    def run(self, question: str) -> dict[str, Any]:
        """Ask, blocking; not used here."""
        return self._documents(httpx.get(self.url, params={"q": question, "rows": 3}, trust_env=False))

    @component.output_types(documents=list[Document])
    async def run_async(self, question: str) -> dict[str, Any]:
        """Ask."""
        if self.pool is None:
            self.pool = httpx.AsyncClient(trust_env=False, limits=httpx.Limits(max_connections=None))
        return self._documents(await self.pool.get(self.url, params={"q": question, "rows": 3}))

    def _documents(self, reply: httpx.Response) -> dict[str, Any]:
        rows = reply.json()["response"]["docs"]
        return {"documents": [Document(id=row["id"], content=row["exactContent"][0]) for row in rows]}


class PipelineWrapper(BasePipelineWrapper):
    """The pipeline, as Hayhooks serves it under /v1/chat/completions."""

    def setup(self) -> None:
        """Connect the three steps."""
        self.pipeline = Pipeline()
        self.pipeline.add_component("retriever", SolrRetriever(os.environ["SOLR"]))
        self.pipeline.add_component(
            "prompt", ChatPromptBuilder([ChatMessage.from_user(PROMPT)], required_variables=["documents", "question"])
        )
        self.pipeline.add_component(
            "llm",
            OpenAIChatGenerator(
                model="stub", api_key=Secret.from_token("none"), api_base_url=os.environ["MODEL"], max_retries=0
            ),
        )
        self.pipeline.connect("retriever.documents", "prompt.documents")
        self.pipeline.connect("prompt.prompt", "llm.messages")

    async def run_chat_completion_async(
        self, model: str, messages: list[dict[str, Any]], body: dict[str, Any]
    ) -> AsyncGenerator[Any, None] | str:
        """Answer the last question, as a stream when the body asks for one."""
        question = get_last_user_message(messages)
        asked = {"retriever": {"question": question}, "prompt": {"question": question}}
        if body.get("stream"):
            return async_streaming_generator(pipeline=self.pipeline, pipeline_run_args=asked)
        found = await self.pipeline.run_async(asked)
        return str(found["llm"]["replies"][0].text)
