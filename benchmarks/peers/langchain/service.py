"""
The smallest RAG service of LangChain: retriever, prompt and chat model as one chain, served by FastAPI and uvicorn.

It filters by no rights, chooses no passages, resolves no citations: the documents go into the prompt as they are. It is
asynchronous from end to end, with one kept pool of connections to Solr.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from typing import Any

import httpx
from fastapi import FastAPI
from fastapi.responses import JSONResponse, Response, StreamingResponse
from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from langchain_openai import ChatOpenAI

PROMPT = (
    "Answer the question from the documents. Name the number of the document after each sentence.\n"
    "{documents}Question: {question}"
)


class SolrRetriever(BaseRetriever):
    """Ask Solr for three documents."""

    url: str
    pool: httpx.AsyncClient

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        raise NotImplementedError("this service is asynchronous")

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        reply = await self.pool.get(self.url, params={"q": query, "rows": 3})
        rows = reply.json()["response"]["docs"]
        return [Document(page_content=row["exactContent"][0], metadata={"id": row["id"]}) for row in rows]


def numbered(documents: list[Document]) -> str:
    """Return the texts of *documents* as the prompt has them."""
    return "".join(f"Document {number}. {one.page_content}\n" for number, one in enumerate(documents, 1))


retriever = SolrRetriever(
    url=os.environ["SOLR"], pool=httpx.AsyncClient(trust_env=False, limits=httpx.Limits(max_connections=None))
)
model = ChatOpenAI(model="stub", base_url=os.environ["MODEL"], api_key="none", max_retries=0)  # type: ignore[arg-type]
chain = (
    {"documents": retriever | numbered, "question": RunnablePassthrough()}
    | ChatPromptTemplate.from_template(PROMPT)
    | model
    | StrOutputParser()
)
app = FastAPI()


@app.post("/v1/chat/completions")
async def answer(body: dict[str, Any]) -> Response:
    """Answer the last question, as a stream when the body asks for one."""
    question = body["messages"][-1]["content"]
    if body.get("stream"):
        return StreamingResponse(_lines(question), media_type="text/event-stream")
    message = {"role": "assistant", "content": await chain.ainvoke(question)}
    return JSONResponse({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})


async def _lines(question: str) -> AsyncIterator[str]:
    async for text in chain.astream(question):
        yield f"data: {json.dumps({'choices': [{'index': 0, 'delta': {'content': text}}]})}\n\n"
    yield "data: [DONE]\n\n"
