"""
What every path replies, to the letter: one file beside this one for each exchange, made by the real application.

The service runs over an embedded index of four documents with the stub model. A reply that differs from its file fails
with the difference. Where it is meant, `GOLDEN_UPDATE=1 pytest tests/golden` writes the files again, and the commit
shows what callers will see. Ids, times, dates and numbers
of tokens, which depend on a random word of the prompt, are masked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from datafari_rag.adapters.embedded.writer import EmbeddedWriter
from datafari_rag.bootstrap import create_app
from tests.golden.files import compare
from tests.support.stub import running_stub

HERE = Path(__file__).parent

QUESTION = "How many days of paid leave do employees get?"
NOTHING = "qzxwvut"
DOCUMENTS = (
    {
        "id": "leave",
        "title": "Leave.pdf",
        "url": "https://intranet.example.org/leave.pdf",
        "source": "hr",
        "language": "en",
        "exactContent": "Leave\n\nEmployees get 25 days of paid leave. It is asked for in writing, two weeks before.",
    },
    {
        "id": "parents",
        "title": "Parents.docx",
        "url": "file://share/hr/parents.docx",
        "source": "hr",
        "language": "en",
        "exactContent": "| leave | days |\n|---|---|\n| parental leave | 30 |\n| care of a sick child | 10 |\n",
    },
    {
        "id": "conges",
        "title": "Congés",
        "url": "javascript:alert(1)",
        "source": "rh",
        "language": "fr",
        "exactContent": "Les salariés ont 25 jours de congés payés. “Les congés se demandent par écrit.”",
    },
    {
        "id": "board",
        "title": "Board.pdf",
        "url": "https://intranet.example.org/board.pdf",
        "source": "board",
        "language": "en",
        "exactContent": "The board decides that employees get 40 days of paid leave from next year.",
        "allow_token_document": ["board"],
    },
)


@dataclass(frozen=True)
class Exchange:
    """
    One request; without *user* the caller is anonymous.

    *model* is the stub model that answers, in one piece: how many arrive together depends on the machine.
    """

    path: str
    json: Any = None
    form: dict[str, str] | None = None
    model: str = "quote-chars-1000"
    user: str | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def send(self, client: FlaskClient) -> TestResponse:
        headers = {**self.headers, **({"X-Remote-User": self.user} if self.user else {})}
        if self.json is None and self.form is None:
            return client.get(self.path, headers=headers)
        return client.post(self.path, json=self.json, data=self.form, headers=headers)

    def __str__(self) -> str:
        shown = [f"{'GET' if self.json is None and self.form is None else 'POST'} {self.path}"]
        shown += [f"{name}: {value}" for name, value in self.headers.items()]
        shown += [f"user: {self.user}"] * bool(self.user)
        body = self.form if self.json is None else self.json
        return "\n".join([*shown, *([pretty(body)] if body is not None else [])])


def select(**query: str) -> Exchange:
    return Exchange("/search/select", form={"action": "rag", "q": QUESTION, **query})


def ai(action: str, *, stream: bool = False, **body: object) -> Exchange:
    return Exchange(f"/rest/v2.0/ai{'/stream' if stream else ''}", {"action": action, **body})


def chat(path: str, **more: Any) -> Exchange:
    return Exchange(path, {"messages": [{"role": "user", "content": QUESTION}], **more})


def tool(name: str, *, streamed: bool = False, **arguments: object) -> Exchange:
    params: dict[str, object] = {"name": name, "arguments": arguments}
    if streamed:
        params["_meta"] = {"progressToken": "p"}
    return mcp("tools/call", **params)


def mcp(method: str, **params: object) -> Exchange:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return Exchange("/mcp", body, headers={"Accept": "application/json, text/event-stream"})


V1 = "/v1/chat/completions"
FAILING = {"messages": [{"role": "user", "content": QUESTION}]}
FACTS = [{"factText": "Employees get 25 days of paid leave.", "attributes": {"title": "Leave"}}]

EXCHANGES: dict[str, Exchange] = {
    "select": select(),
    "select-stream": select(stream="true"),
    "select-french": select(q="Combien de jours de congés payés ont les salariés ?", lang="fr"),
    "select-steps": select(effort="minimal"),
    "select-nothing": select(q=NOTHING),
    "select-model-down": Exchange("/search/select", form={"action": "rag", "q": QUESTION}, model="status-500"),
    "select-model-breaks": Exchange(
        "/search/select", form={"action": "rag", "q": QUESTION, "stream": "true"}, model="words-40-chars-20-cut-after-1"
    ),
    "select-blank": select(q=" "),
    "select-plain": Exchange("/search/select?q=paid+leave&fl=id,title,url,score"),
    "select-plain-admin": Exchange("/search/select?q=paid+leave&fl=id,title,url", user="admin"),
    "select-refused": Exchange("/search/select?q=paid+leave&rows=x"),
    "ai-rag": ai("rag", query=QUESTION),
    "ai-rag-stream": ai("rag", stream=True, query=QUESTION),
    "ai-rag-of-one": ai("rag", query=QUESTION, id="parents"),
    "ai-agentic": ai("agentic", query=QUESTION),
    "ai-summarize": ai("summarize", id="leave", length="short"),
    "ai-summarize-stream": ai("summarize", stream=True, id="leave"),
    "ai-summarize-hidden": ai("summarize", id="board"),
    "ai-synthesize": ai("synthesize", filters={"id": ["leave", "parents", "board"]}, query=QUESTION),
    "ai-estimate": ai("summarize", id="leave", estimate=True),
    "ai-search": ai("search", query="paid leave"),
    "ai-nothing": ai("rag", query=NOTHING),
    "ai-refused": ai("dance", query=QUESTION),
    "chat": chat("/chat"),
    "chat-of-a-member": Exchange("/chat", FAILING, user="ann"),
    "chat-overrides": chat(
        "/chat",
        context={"overrides": {"top": 2, "temperature": 0.2, "retrieval_mode": "vectors", "language": "fr", "x": 1}},
        session_state={"a": 1},
    ),
    "chat-effort": chat("/chat", context={"overrides": {"effort": "low"}}),
    "chat-follow-up": Exchange(
        "/chat",
        {
            "messages": [
                {"role": "user", "content": QUESTION},
                {"role": "assistant", "content": "25 days [1]."},
                {"role": "user", "content": "And parental leave?"},
            ]
        },
    ),
    "chat-followup-questions": Exchange(
        "/chat",
        {**FAILING, "context": {"overrides": {"suggest_followup_questions": True}}},
        model="followups-chars-1000",
    ),
    "chat-nothing": Exchange("/chat", {"messages": [{"role": "user", "content": NOTHING}]}),
    "chat-hostile-model": Exchange("/chat", FAILING, model="links"),
    "chat-miscited": Exchange("/chat", FAILING, model="miscite"),
    "chat-cut": Exchange("/chat", FAILING, model="quote-length-chars-1000"),
    "chat-model-down": Exchange("/chat", FAILING, model="status-503-retry-7"),
    "chat-refused": chat("/chat", context={"overrides": {"top": "many"}}),
    "chat-stream": chat("/chat/stream"),
    "chat-stream-breaks": Exchange("/chat/stream", FAILING, model="words-40-chars-20-cut-after-1"),
    "choices": chat("/ask", stream=False),
    "choices-stream": chat("/ask", stream=True),
    "published": chat("/api/chat"),
    "published-stream": chat("/api/chat/stream"),
    "published-refused": Exchange("/api/chat", {"messages": []}),
    "openai": chat(V1, index_name="default"),
    "openai-stream": chat(V1, index_name="default", stream=True),
    "openai-our-model": chat(V1, model="datafari"),
    "openai-relayed": chat(V1, model="echo"),
    "openai-nothing": Exchange(V1, {"index_name": "default", "messages": [{"role": "user", "content": NOTHING}]}),
    "openai-refused": chat(V1, index_name="nowhere"),
    "openai-model-down": Exchange(V1, {**FAILING, "index_name": "default"}, model="status-500"),
    "responses": Exchange("/v1/responses", {"input": QUESTION}),
    "responses-stream": Exchange("/v1/responses", {"input": QUESTION, "stream": True}),
    "responses-refused": Exchange("/v1/responses", {"input": QUESTION, "tools": [{"type": "web_search"}]}),
    "models": Exchange("/v1/models"),
    "models-one": Exchange("/v1/models/datafari"),
    "models-unknown": Exchange("/v1/models/nobody"),
    "retrieve": Exchange("/retrieve", {"question": QUESTION}),
    "retrieve-nothing": Exchange("/retrieve", {"question": NOTHING}),
    "retrieve-refused": Exchange("/retrieve", {"question": QUESTION, "top": -1}),
    "grounding": Exchange(
        "/grounding/check",
        {"answerCandidate": "Employees get 25 days of paid leave. They get 30 days of pay.", "facts": FACTS},
    ),
    "grounding-refused": Exchange("/grounding/check", {"answerCandidate": "x", "facts": []}),
    "documents": Exchange("/documents?id=leave", headers={"Accept": "application/json"}),
    "documents-hidden": Exchange("/documents?id=board", headers={"Accept": "application/json"}),
    "mcp-initialize": mcp(
        "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "t", "version": "1"}
    ),
    "mcp-tools": mcp("tools/list"),
    "mcp-answer": tool("answer", question=QUESTION),
    "mcp-answer-stream": tool("answer", streamed=True, question=QUESTION),
    "mcp-search": tool("search", query=QUESTION),
    "mcp-fetch": tool("fetch", id="leave"),
    "mcp-fetch-hidden": tool("fetch", id="board"),
    "mcp-check": tool("check", text="Employees get 25 days of paid leave. They get 30.", document_ids=["leave"]),
    "mcp-summarize": tool("summarize", id="leave"),
    "mcp-compare": tool("compare", ids=["leave", "parents"], question=QUESTION),
    "mcp-unknown-tool": tool("dance"),
    "not-there": Exchange("/nowhere"),
    "not-json": Exchange("/chat", form={"a": "b"}),
    "wrong-method": Exchange("/v1/responses"),
}

HEADERS = ("Retry-After", "Allow", "X-RAG-Ignored", "X-RAG-Support", "WWW-Authenticate", "Location")
"""Those of a reply that a caller decides by."""

MASKS = (
    (re.compile(r"\b(chatcmpl|resp|msg|rs|call)[-_][0-9a-f]{16,}\b"), r"\1-ID"),
    (re.compile(r"\b[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}\b"), "ID"),
    (
        re.compile(r'("(?:elapsedMs|QTime|ts|created|created_at|completed_at)": )\d+(?:\.\d+)?\b'),
        r"\1TIME",
    ),
    (re.compile(r"\b\d+(?:\.\d+)? (ms|s)\b"), r"TIME \1"),
    (re.compile(r'("memoryId": ")\w+"'), r'\1ID"'),
    (re.compile(r'("\w*[tT]okens\w*": )\d+'), r"\1NUMBER"),
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:PORT"),
    (re.compile(r"\b20\d\d-\d\d-\d\dT[\d:.]+Z"), "DATE"),
)


def pretty(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


def event_of(line: str) -> str:
    """Return one line of a stream with its JSON spread over lines."""
    begun = line.find("{")
    try:
        return line[:begun] + pretty(json.loads(line[begun:])) if begun >= 0 else line
    except ValueError:
        return line


def seen(exchange: Exchange, client: FlaskClient) -> str:
    """Return the exchange as its file has it."""
    reply = exchange.send(client)
    body = "\n".join(map(event_of, reply.get_data(as_text=True).rstrip("\n").split("\n")))
    head = [f"{reply.status_code} {reply.mimetype}"]
    head += [f"{name}: {reply.headers[name]}" for name in HEADERS if name in reply.headers]
    text = f"{exchange}\n\n" + "\n".join(head) + f"\n\n{body}\n"
    for pattern, mask in MASKS:
        text = pattern.sub(mask, text)
    return text


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, FlaskClient]]:
    """One application for each name of a model, over the same index."""
    folder = tmp_path_factory.mktemp("golden")
    with closing(EmbeddedWriter(folder / "index")) as writer:
        writer.add(list(DOCUMENTS))
        writer.commit()
    (folder / "users.json").write_text('{"ann": ["board"], "admin": []}')
    conf = folder / "rag.properties"
    with running_stub() as stub:
        settings = {
            "solr.url": f"embedded:{folder / 'index'}",
            "rag.api.endpoint": stub.url,
            "llm.limits.retries": "0",
            "security.identity": "header",
            "security.tokens": "file",
            "security.tokens.file": str(folder / "users.json"),
            "security.admins": "admin",
            "server.rate.work": "0",
        }
        conf.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        conf.chmod(0o600)
        models = {exchange.model for exchange in EXCHANGES.values()}
        yield {model: create_app(conf, {"rag.model": model}).test_client() for model in models}


@pytest.mark.parametrize("name", EXCHANGES)
def test_a_reply_is_what_its_file_says(clients: dict[str, FlaskClient], name: str) -> None:
    exchange = EXCHANGES[name]
    compare(HERE / f"{name}.txt", seen(exchange, clients[exchange.model]))


def test_no_file_is_left_of_an_exchange_that_is_gone() -> None:
    assert {file.stem for file in HERE.glob("*.txt")} == {*EXCHANGES}
