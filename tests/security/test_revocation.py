"""
A right that was taken away is out of reach on every path: with the next request after POST /admin/revoke, or with
`security.cache_s=0`; and a document that is deleted or closed in the index with the next one as well.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import jwt
import pytest

from datafari_rag.bootstrap import create_app
from tests.real_solr import Collection
from tests.security.worlds import JWT_SECRET, MCP_URL, embedded_engine
from tests.support.server import Asked, Reply, serving
from tests.support.waiting import until

SECRET = "zkquartz"
TEXT = f"The {SECRET} valve opens at nine bar. It was tested in May."
NS = "__nosecurity__"
QUESTION = f"At which pressure does the {SECRET} valve open?"
MEMORY = {"chat.memory.enabled": "true", "server.secret": "a secret for the memory of the chats"}


def document(number: int, text: str, token: str) -> dict[str, object]:
    levels = {f"{verb}_token_{level}": [NS] for verb in ("allow", "deny") for level in ("share", "parent", "document")}
    about = {"id": f"doc-{number}", "title": text[:20], "exactContent": text, "preview_content": text, "language": "en"}
    return {**about, "content_en": text, **levels, "allow_token_document": [token], "deny_token_document": ["dead"]}


DOCUMENTS = [document(1, TEXT, "s1"), document(2, "The menu of May has soup.", "all")]


@dataclass
class Place:
    """A running service and what gives rights to it."""

    client: Any
    tokens: dict[str, list[str]] = field(default_factory=dict)
    headers: Callable[[str], Mapping[str, str]] = lambda name: {"X-Remote-User": name}

    def sent(self, name: str, method: str, path: str, body: object = None, **headers: str) -> str:
        """Return the whole answer to *name*, its status in front."""
        answer = self.client.open(path, method=method, json=body, headers={**self.headers(name), **headers})
        return f"{answer.status_code} {answer.get_data(as_text=True)}"

    def revoke(self, user: str = "ann") -> str:
        return self.sent("root", "POST", "/admin/revoke", {"user": user})


def _messages(**more: object) -> dict[str, object]:
    return {"messages": [{"role": "user", "content": QUESTION}], **more}


def _tool(name: str, arguments: Mapping[str, object]) -> tuple[str, str, object]:
    call = {"name": name, "arguments": arguments}
    return "POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}


def _select(**parameters: str) -> tuple[str, str, object]:
    return "GET", f"/search/select?{urlencode(parameters)}", None


V1 = {"model": "datafari-rag", "index_name": "default"}

PATHS: Mapping[str, tuple[str, str, object]] = {
    "Datafari RagAPI": _select(action="rag", q=QUESTION),
    "Datafari RagAPI, streamed": _select(action="rag", q=QUESTION, stream="true"),
    "plain search": _select(q=SECRET),
    "facets of a plain search": _select(**{"q": SECRET, "facet": "true", "facet.field": "title", "hl": "true"}),
    "RAG chat protocol": ("POST", "/chat", _messages()),
    "RAG chat protocol, streamed": ("POST", "/chat/stream", _messages()),
    "chat completion": ("POST", "/ask", _messages(stream=False)),
    "AI Chat Protocol": ("POST", "/api/chat", _messages()),
    "AI Chat Protocol, streamed": ("POST", "/api/chat/stream", _messages()),
    "OpenAI chat completions": ("POST", "/v1/chat/completions", {**V1, **_messages()}),
    "OpenAI chat completions, streamed": ("POST", "/v1/chat/completions", {**V1, **_messages(stream=True)}),
    "OpenAI responses": ("POST", "/v1/responses", {"input": QUESTION, "store": True}),
    "one document": ("GET", "/documents?id=doc-1", None),
    "the page": ("GET", f"/?{urlencode({'q': QUESTION})}", None),
    "the page, a follow-up question": ("POST", "/talk", _messages()),
    "grounding check": ("POST", "/grounding/check", {"answerCandidate": TEXT, "documentIds": ["doc-1"]}),
    "MCP search": _tool("search", {"query": QUESTION}),
    "MCP fetch": _tool("fetch", {"id": "doc-1"}),
    "MCP answer": _tool("answer", {"question": QUESTION, "effort": "minimal"}),
    "MCP check": _tool("check", {"text": TEXT, "document_ids": ["doc-1"]}),
}
"""Every path on which a reader can reach a document."""

WORDS = {"grounding check": '"status":"verified"', "MCP check": '"status":"verified"'}
"""What proves on a path that the document was reached, where that is not its text."""


def reached(place: Place, name: str = "ann") -> dict[str, bool]:
    """Say for each path whether *name* reaches the document."""
    accept = {"Accept": "application/json, text/event-stream"}
    answers = {path: place.sent(name, *sent, **accept) for path, sent in PATHS.items()}
    assert [answer for answer in answers.values() if answer.startswith("5")] == []
    return {path: WORDS.get(path, "nine bar") in answer for path, answer in answers.items()}


@contextmanager
def running(folder: Path, url: str, **settings: str) -> Iterator[Place]:
    """Run a service over the engine at *url* whose rights come from an authority service."""
    tokens: dict[str, list[str]] = {"ann": ["s1", "all"], "bob": ["s1", "all"], "root": ["all"]}

    def acls(asked: Asked) -> Reply:
        lines = [f"TOKEN:{token}\n" for token in tokens.get(asked.query["username"][0], ())]
        return Reply(("AUTHORIZED:test\n" + "".join(lines)).encode())

    with serving(acls) as authority:
        conf = folder / "rag.properties"
        lines = {
            "solr.url": url,
            "rag.api.endpoint": "builtin:extractive",
            "security.identity": "header",
            "security.tokens": "authority",
            "security.authority.url": authority.url,
            "security.cache_s": "3600",
            "security.admins": "root",
            "audit.folder": str(folder / "audit"),
            **MEMORY,
            **settings,
        }
        conf.write_text("".join(f"{key}={text}\n" for key, text in lines.items()))
        conf.chmod(0o600)
        yield Place(create_app(conf).test_client(), tokens)


@pytest.fixture(params=["embedded", "solr"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Callable[..., None]]]:
    """Yield `solr.url` of an engine with the documents, and what replaces them."""
    if request.param == "solr":
        collection: Collection = request.getfixturevalue("solr_collection")
        collection.load(DOCUMENTS)
        yield request.getfixturevalue("solr_url"), collection.load
        return
    with embedded_engine(tmp_path / "index") as (url, load):
        load(DOCUMENTS)
        yield url, load


def test_a_revoked_right_is_out_of_reach_on_every_path_with_the_next_request(
    engine: tuple[str, Callable[..., None]], tmp_path: Path
) -> None:
    with running(tmp_path, engine[0]) as place:
        for name in ("ann", "bob"):
            assert reached(place, name) == dict.fromkeys(PATHS, True)
        place.tokens["ann"] = place.tokens["bob"] = ["all"]
        assert reached(place) == dict.fromkeys(PATHS, True), "what is remembered counts for security.cache_s"
        assert place.revoke().startswith("200 ")
        assert reached(place) == dict.fromkeys(PATHS, False)
        assert reached(place, "bob") == dict.fromkeys(PATHS, True), "no other user is affected"
        assert place.revoke("*").startswith("200 ")
        assert reached(place, "bob") == dict.fromkeys(PATHS, False)


def test_with_no_time_to_remember_rights_the_next_request_knows_of_their_end(
    engine: tuple[str, Callable[..., None]], tmp_path: Path
) -> None:
    with running(tmp_path, engine[0], **{"security.cache_s": "0"}) as place:
        assert reached(place) == dict.fromkeys(PATHS, True)
        place.tokens["ann"] = ["all"]
        assert reached(place) == dict.fromkeys(PATHS, False)


@pytest.mark.parametrize("change", ["closed", "deleted"])
def test_a_document_that_is_closed_or_deleted_in_the_index_is_out_of_reach(
    engine: tuple[str, Callable[..., None]], tmp_path: Path, change: str
) -> None:
    with running(tmp_path, engine[0]) as place:
        assert reached(place) == dict.fromkeys(PATHS, True)
        engine[1]([document(1, TEXT, "s2"), DOCUMENTS[1]] if change == "closed" else [DOCUMENTS[1]])
        assert reached(place) == dict.fromkeys(PATHS, False)


def test_claims_that_were_signed_before_a_revocation_are_refused_on_every_path(tmp_path: Path) -> None:
    """Also by a worker that was started later."""
    keys = {"iat": True}

    def bearer(name: str) -> Mapping[str, str]:
        claims = {"preferred_username": name, "groups": ["s1"], "exp": int(time.time()) + 600, "aud": MCP_URL}
        claims |= {"iat": int(time.time()) - 120} if keys["iat"] else {}
        return {"Authorization": "Bearer " + jwt.encode(claims, JWT_SECRET, "HS256")}

    signed = {
        "security.identity": "jwt",
        "security.tokens": "claims",
        "security.jwt.secret": JWT_SECRET,
        "security.revocations.file": str(tmp_path / "revocations"),
        "server.public_url": MCP_URL.removesuffix("/mcp"),
    }
    with embedded_engine(tmp_path / "index") as (url, load):
        load(DOCUMENTS)
        with running(tmp_path, url, **signed) as place:
            place.headers = bearer
            assert reached(place) == dict.fromkeys(PATHS, True)
            assert place.revoke().startswith("200 ")
        with running(tmp_path, url, **signed) as place:
            place.headers = bearer
            assert reached(place) == dict.fromkeys(PATHS, False)
            assert place.sent("ann", "GET", "/documents?id=doc-1", Accept="application/json").startswith("401 ")
            assert reached(place, "bob") == dict.fromkeys(PATHS, True)
            keys["iat"] = False
            assert reached(place) == dict.fromkeys(PATHS, False), "a token without its time may be an old one"


MEMORIES: Mapping[str, tuple[str, Callable[[Any], object]]] = {
    "RAG chat protocol": ("/chat", lambda answer: _messages(session_state=answer["session_state"])),
    "AI Chat Protocol": ("/api/chat", lambda answer: _messages(sessionState=answer["sessionState"])),
    "OpenAI responses": ("/v1/responses", lambda answer: {"input": QUESTION, "previous_response_id": answer["id"]}),
}


@pytest.mark.parametrize("path", MEMORIES)
@pytest.mark.parametrize("change", ["revoked", "other rights", "revoked, the same rights"])
def test_a_signed_memory_of_an_answer_with_other_rights_is_not_recalled(tmp_path: Path, path: str, change: str) -> None:
    address, again = MEMORIES[path]
    first = PATHS[path][2]
    with embedded_engine(tmp_path / "index") as (url, load):
        load(DOCUMENTS)
        with running(tmp_path, url, **{"security.cache_s": "0"}) as place:
            status, _, body = place.sent("ann", "POST", address, first).partition(" ")
            assert status == "200", body
            recalled = again(json.loads(body))
            assert place.sent("ann", "POST", address, recalled).startswith("200 ")
            if change != "revoked, the same rights":
                place.tokens["ann"] = ["all"]
            if change != "other rights":
                place.revoke()
            refused = place.sent("ann", "POST", address, recalled)
            assert refused.startswith("400 "), refused
            assert "nine bar" not in refused


CONVERSATIONS = "/rest/v2.0/users/conversations"


@pytest.mark.parametrize("how_many", ["one", "several"])
@pytest.mark.parametrize("change", ["revoked", "closed", "deleted"])
def test_a_stored_conversation_is_not_shown_or_taken_up_without_the_document_behind_it(
    engine: tuple[str, Callable[..., None]], tmp_path: Path, change: str, how_many: str
) -> None:
    with running(tmp_path, engine[0], **{"chat.store.folder": "chats"}) as place:
        named = {"id": "doc-1"} if how_many == "one" else {"filters": {"id": ["doc-1", "doc-2"]}}
        question = QUESTION if how_many == "one" else f"{QUESTION} And which soup is on the menu?"
        first = place.sent("ann", "POST", "/rest/v2.0/ai", {"query": question, **named}).partition(" ")[2]
        content = json.loads(first)["content"]
        own_id = content["conversationId"]
        assert "nine bar" in content["message"]
        # By one id and by several: both are filtered.
        assert len(content["sources"]) == (2 if how_many == "several" else 1)
        address = f"{CONVERSATIONS}?{urlencode({'conversationId': own_id})}"
        assert "nine bar" in place.sent("ann", "GET", address)
        assert "nine bar" not in place.sent("bob", "GET", address)
        if change == "revoked":
            place.tokens["ann"] = ["all"]
            assert place.revoke().startswith("200 ")
        else:
            engine[1]([document(1, TEXT, "s2"), DOCUMENTS[1]] if change == "closed" else [DOCUMENTS[1]])
        for method in ("GET", "POST"):
            opened = place.sent("ann", method, address)
            assert "nine bar" not in opened and '"hidden":' in opened, opened
        again = place.sent("ann", "POST", "/rest/v2.0/ai", {"query": "What has the soup?", "conversationId": own_id})
        assert "nine bar" not in again and '"status":"OK"' in again, again
        opened = json.loads(place.sent("ann", "GET", address).partition(" ")[2])["content"]
        assert (len(opened["messages"]), opened["hidden"]) == (2, 1)


STREAMS = [path for path in PATHS if path.endswith("streamed")]


@pytest.mark.parametrize("path", STREAMS)
def test_a_stream_that_was_open_at_a_revocation_ends_as_an_answer_and_the_next_one_finds_nothing(
    tmp_path: Path, path: str
) -> None:
    go_on = threading.Event()
    with embedded_engine(tmp_path / "index") as (url, load), serving(lambda asked: _slowly(go_on)) as model:
        load(DOCUMENTS)
        settings = {"rag.api.endpoint": f"{model.url}/v1/chat/completions", "security.cache_s": "0"}
        with running(tmp_path, url, **settings) as place:
            method, address, body = PATHS[path]
            stream = place.client.open(address, method=method, json=body, headers=place.headers("ann"), buffered=False)
            pieces = iter(stream.response)
            seen = ""
            while "opens at" not in seen:
                seen += next(pieces).decode()
            place.tokens["ann"] = ["all"]
            assert place.revoke().startswith("200 ")
            go_on.set()
            assert "canary" in b"".join(pieces).decode()
            stream.close()
            assert "nine bar" not in place.sent("ann", *PATHS[path])


def _slowly(go_on: threading.Event) -> Reply:
    """Say the first words of an answer, and the others when *go_on* is set."""

    def write(out: Any) -> None:
        for number, word in enumerate(["The valve ", "opens at ", "canary", "."]):
            if number == 2:
                go_on.wait(20)
            choice = {"index": 0, "delta": {"content": word}, "finish_reason": None}
            out.write(f"data: {json.dumps({'model': 'm', 'choices': [choice]})}\n\n".encode())
            out.flush()
        out.write(b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')

    return Reply(headers=[("Content-Type", "text/event-stream")], write=write, length=None)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Place]:
    with embedded_engine(tmp_path / "index") as (url, load):
        load(DOCUMENTS)
        with running(tmp_path, url) as place:
            yield place


def test_a_revocation_is_counted_and_audited(small: Place, tmp_path: Path) -> None:
    small.revoke("ann")
    small.revoke("*")
    counted = small.client.get("/metrics").get_data(as_text=True)
    assert 'datafari_rag_revocations_total{of="user"} 1.0' in counted
    assert 'datafari_rag_revocations_total{of="everybody"} 1.0' in counted
    assert "ann" not in counted

    def written() -> list[dict[str, object]]:
        texts = [path.read_text() for path in (tmp_path / "audit").glob("*.jsonl")]
        return [json.loads(line) for text in texts for line in text.splitlines() if '"revocation"' in line]

    until(lambda: len(written()) == 2, written)
    assert [(one["who"], one["whom"]) for one in written()] == [("root", "ann"), ("root", "*")]


def test_the_age_of_the_rights_used_is_in_the_metrics(small: Place) -> None:
    reached(small)
    counted = small.client.get("/metrics").get_data(as_text=True)
    (count,) = re.findall(r"^datafari_rag_rights_age_seconds_count (\S+)", counted, re.M)
    assert float(count) >= len(PATHS) - 1


@pytest.mark.parametrize(
    ("name", "body", "headers", "status"),
    [
        ("ann", {"user": "bob"}, {}, "403"),
        ("", {"user": "bob"}, {}, "403"),
        ("root", {"user": "bob"}, {"Sec-Fetch-Site": "cross-site"}, "403"),
        ("root", {"user": "bob"}, {"Sec-Fetch-Site": "same-site"}, "403"),
        ("root", {"user": "bob"}, {"Origin": "https://evil.example"}, "403"),
        ("root", {"user": "bob"}, {"Origin": "null"}, "403"),
        ("root", {}, {}, "400"),
        ("root", {"user": ""}, {}, "400"),
        ("root", {"user": ["ann"]}, {}, "400"),
        ("root", {"user": "a\nb"}, {}, "400"),
        ("root", {"user": "a" * 257}, {}, "400"),
        ("root", {"user": "a" * 20_000}, {}, "413"),
        ("root", [], {}, "403"),
        ("root", None, {}, "415"),
    ],
)
def test_nobody_else_revokes_and_nothing_else_is_revoked(
    small: Place, name: str, body: object, headers: dict[str, str], status: str
) -> None:
    small.tokens["bob"] = small.tokens["ann"]
    reached(small, "bob")
    asked = small.client.open("/admin/revoke", method="POST", json=body, headers={**_named(name), **headers})
    assert str(asked.status_code) == status, asked.get_data(as_text=True)
    assert "revocations_total{" not in small.client.get("/metrics").get_data(as_text=True)


def _named(name: str) -> dict[str, str]:
    return {"X-Remote-User": name} if name else {}


@pytest.mark.parametrize("headers", [{}, {"Origin": "null"}])
def test_a_form_revokes_nothing(small: Place, headers: dict[str, str]) -> None:
    answer = small.client.post("/admin/revoke", data={"user": "ann"}, headers=_named("root") | headers)
    assert answer.status_code == 415
