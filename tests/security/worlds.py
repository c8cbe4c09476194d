"""The whole service over HTTP, with everything it could leak to written down: its log, its model, its metrics."""

from __future__ import annotations

import http.client
import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jwt

from datafari_rag.adapters.embedded.writer import EmbeddedWriter
from datafari_rag.bootstrap import create_app
from tests.security.corpora import Corpus
from tests.support.server import Asked, Loopback, Reply, listening, serving

JWT_SECRET = "a secret that the tests share with the service"

MCP_URL = "https://search.example/mcp"
"""What a token for /mcp names as its audience."""

DIALECTS = (
    "ragapi",
    "select",
    "choices",
    "chat",
    "published",
    "openai",
    "documents",
    "page",
    "mcp",
    "grounding",
    "ai",
    "retrieve",
)

VARIANTS: Mapping[str, Mapping[str, str]] = {
    # Each variant reads identity, rights and text in another way; all see the same index.
    "header, file, body": {
        "security.identity": "header",
        "security.tokens": "file",
        "rag.solrField": "exactContent",
    },
    "jwt, claims, snippets": {
        "security.identity": "jwt",
        "security.jwt.secret": JWT_SECRET,
        "security.tokens": "claims",
        "server.public_url": MCP_URL.removesuffix("/mcp"),
        "rag.solrField": "highlighting",
        "rag.operator": "OR",
    },
    "header, authority, preview": {
        "security.identity": "header",
        "security.tokens": "authority",
        "security.cache_s": "0",
        "rag.solrField": "preview_content",
        "rag.enable.logs": "true",
        "chat.memory.enabled": "true",
        "server.secret": "a secret for the memory of the chats",
    },
}
"""Settings of the three services over one index."""


class Ears(logging.Handler):
    """Keeps every line of every log, with what an exception would print."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.setFormatter(logging.Formatter("%(name)s %(levelname)s %(message)s"))
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        # Libraries are heard from WARNING on; werkzeug is the test's own server, which logs every address.
        if record.name.startswith("datafari_rag") or record.levelno >= logging.WARNING:
            self.lines.append(self.format(record))

    def drain(self) -> str:
        """Return what was logged since the last call."""
        lines, self.lines = self.lines, []
        return "\n".join(lines)


@dataclass
class Service:
    """One running service and the way to it."""

    address: tuple[str, int]
    variant: str
    connection: http.client.HTTPConnection | None = None

    def send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, str, bytes]:
        """Return status, all headers and the body of one request."""
        if self.connection is None:
            self.connection = http.client.HTTPConnection(*self.address, timeout=60)
        try:
            self.connection.request(method, path, body, dict(headers))
            response = self.connection.getresponse()
            data = response.read()
        except (http.client.HTTPException, OSError):
            self.connection.close()
            raise
        return response.status, str(response.headers), data

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()


@dataclass
class World:
    """One engine with an index, three services over it, the model that repeats its prompt, and what records them."""

    engine: str
    load_documents: Callable[[Sequence[Mapping[str, object]]], None]
    services: Mapping[str, Service]
    model: Loopback
    ears: Ears
    users_file: Path
    tokens: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def load(self, corpus: Corpus) -> None:
        """Make *corpus* all that is there, its users known to every source of rights."""
        self.load_documents([doc.fields() for doc in corpus.docs])
        self.tokens.clear()
        self.tokens.update(corpus.users)
        self.users_file.write_text(json.dumps(corpus.users))

    def credentials(self, service: Service, user: str | None) -> dict[str, str]:
        """Return the headers that prove *user* to *service*; none for the anonymous."""
        if user is None:
            return {}
        if "jwt" not in service.variant:
            return {"X-Remote-User": user.encode().decode("latin-1")}
        claims = {"preferred_username": user, "groups": list(self.tokens.get(user, ())), "exp": int(time.time()) + 600}
        claims["aud"] = MCP_URL
        return {"Authorization": "Bearer " + jwt.encode(claims, JWT_SECRET, "HS256")}

    def metrics(self) -> str:
        """Return what all services count."""
        answers = [one.send("GET", "/metrics", None, {}) for one in self.services.values()]
        return "\n".join(body.decode() for _, _, body in answers)

    def overheard(self) -> tuple[str, str]:
        """Return the log and the prompts since the last call."""
        asked, self.model.asked[:] = list(self.model.asked), []
        return self.ears.drain(), "\n".join(one.body.decode("utf-8", "replace") for one in asked)


def repeating(asked: Asked) -> Reply:
    """Answer as a model that repeats its prompt, whole or as a stream."""
    body = json.loads(asked.body)
    told = " ".join(str(message.get("content")) for message in body["messages"])
    if not body.get("stream"):
        choice = {"index": 0, "message": {"role": "assistant", "content": told}, "finish_reason": "stop"}
        reply = {"id": "m1", "object": "chat.completion", "model": "echo", "choices": [choice]}
        return Reply(json.dumps(reply).encode(), headers=[("Content-Type", "application/json")])
    pieces = [told[at : at + 200] for at in range(0, len(told), 200)]
    chunks: list[dict[str, Any]] = [{"delta": {"content": piece}, "finish_reason": None} for piece in pieces]
    chunks.append({"delta": {}, "finish_reason": "stop"})
    lines = [json.dumps({"model": "echo", "choices": [{"index": 0, **chunk}]}) for chunk in chunks]
    data = "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode()
    return Reply(data, headers=[("Content-Type", "text/event-stream")])


@contextmanager
def embedded_engine(folder: Path) -> Iterator[tuple[str, Callable[[Sequence[Mapping[str, object]]], None]]]:
    """Yield the embedded index's `solr.url`, and what replaces all its documents."""
    ids: list[str] = []

    def load(documents: Sequence[Mapping[str, object]]) -> None:
        with closing(EmbeddedWriter(folder)) as writer:
            writer.delete(ids)
            writer.add(documents)
            writer.commit()
        ids[:] = [str(document["id"]) for document in documents]

    load([])
    yield f"embedded:{folder}", load


@contextmanager
def world(
    folder: Path, engine: str, url: str, load: Callable[[Sequence[Mapping[str, object]]], None]
) -> Iterator[World]:
    """Run three services over the engine at *url* until the block ends."""
    tokens: dict[str, tuple[str, ...]] = {}
    ears = Ears()
    # As adapters.logs has it, but with everything that our own code says.
    root, ours = logging.getLogger(), logging.getLogger("datafari_rag")
    root.addHandler(ears)
    ours.setLevel(logging.DEBUG)
    with ExitStack() as stack:
        stack.callback(root.removeHandler, ears)
        stack.callback(ours.setLevel, logging.NOTSET)
        model = stack.enter_context(serving(repeating))
        authority = stack.enter_context(serving(lambda asked: _acls(asked, tokens)))
        users_file = folder / "users.json"
        users_file.write_text("{}")
        common = {
            "solr.url": url,
            "rag.api.endpoint": f"{model.url}/v1/chat/completions",
            "llm.limits.retries": "0",
            "security.tokens.file": str(users_file),
            "security.authority.url": authority.url,
            "security.admins": "bob",
            "audit.folder": str(folder / "audit"),
        }
        services = {
            name: stack.enter_context(_service(folder, name, {**common, **settings}))
            for name, settings in VARIANTS.items()
        }
        yield World(engine, load, services, model, ears, users_file, tokens)


def _acls(asked: Asked, tokens: Mapping[str, Sequence[str]]) -> Reply:
    """Answer as ManifoldCF's authority service does."""
    name = asked.query["username"][0]
    lines = [f"TOKEN:{token}" for token in tokens[name]] if name in tokens else ["USERNOTFOUND:test"]
    return Reply("".join(f"{line}\n" for line in lines).encode())


UNLIMITED = {"server.rate.work": "0"}
"""For many thousand searches of one address a minute."""


@contextmanager
def _service(folder: Path, name: str, settings: Mapping[str, str]) -> Iterator[Service]:
    conf = folder / f"{name.replace(', ', '-')}.properties"
    conf.write_text("")
    conf.chmod(0o600)
    with listening(create_app(conf, {**UNLIMITED, **settings})) as port:
        service = Service(("127.0.0.1", port), name)
        try:
            yield service
        finally:
            service.close()
