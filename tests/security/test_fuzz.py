"""
Every string of the collection of query strings that break things, through every dialect, on both engines.

An answer or a clean refusal of its dialect: never a 5xx, never a word of a parser, never HTML from an API.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from urllib.parse import urlencode

import pytest

from tests.hostile_texts import QUERIES
from tests.real_solr import Collection
from tests.security.asking import Request
from tests.security.corpora import NS, Corpus, Doc
from tests.security.telling import Record, tell
from tests.security.worlds import DIALECTS, World, embedded_engine, world

OPEN = {f"{verb}_token_{level}": (NS,) for verb in ("allow", "deny") for level in ("share", "parent", "document")}
CORPUS = Corpus((Doc("doc 1", "zkopen", "zxopen", OPEN), Doc("doc 2", "zkhidden", "zxhidden",
    {**OPEN, "allow_token_document": ("s1",)})), {"ann": ("s1",), "eve": ()})  # fmt: skip

PARSERS = (
    "SyntaxError",
    "ParseException",
    "org.apache",
    "solr.",
    "Traceback",
    "Cannot parse",
    "undefined field",
    "tantivy",
)


@pytest.fixture(scope="module")
def embedded_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Run the services over the embedded index."""
    folder = tmp_path_factory.mktemp("embedded")
    with embedded_engine(folder / "index") as (url, load), world(folder, "embedded", url, load) as running:
        fill(running)
        yield running


@pytest.fixture(scope="module")
def solr_world(tmp_path_factory: pytest.TempPathFactory, solr_url: str, solr_collection: Collection) -> Iterator[World]:
    """Run the services over the real Solr."""
    folder = tmp_path_factory.mktemp("solr-world")
    with world(folder, "solr", solr_url, solr_collection.load) as running:
        fill(running)
        yield running


def fill(running: World) -> None:
    """Load an open and a hidden document, and one open document that holds each of the strings."""
    running.load(CORPUS)
    fields = [doc.fields() for doc in CORPUS.docs]
    texts = [query[:20_000].encode("utf-8", "replace").decode() for query in QUERIES]
    found = [{**fields[0], "id": f"fuzz {number}", "exactContent": text} for number, text in enumerate(texts)]
    running.load_documents([*fields, *({**one, "content_en": one["exactContent"]} for one in found)])


def requests_for(text: str) -> Mapping[str, Request]:
    """Return one request of each dialect with *text* as its question."""
    form = {"Content-Type": "application/x-www-form-urlencoded"}

    def posted(path: str, body: Mapping[str, object]) -> Request:
        return Request("POST", path, json.dumps(body).encode(), {"Content-Type": "application/json"})

    def encoded(**values: str) -> str:
        return urlencode(values, errors="surrogatepass")

    messages = [{"role": "user", "content": text}]
    whole: list[dict[str, object]] = [
        {"query": text, "lang": text, "history": [{"role": "user", "message": text}], "agent": text},
        {"action": "summarize", "id": text, "lang": text},
        {"action": "synthesize", "query": text, "filters": {"id": [text, "fuzz 1"]}},
    ]
    called = {"name": "search", "arguments": {"query": text}}
    return dict(
        zip(
            DIALECTS,
            (
                Request("POST", "/search/select", encoded(q=text, action="rag").encode(), form),
                Request(
                    "POST", "/search/select", encoded(q=text, fq=text, sort=text, fl=text, rows=text).encode(), form
                ),
                posted("/ask", {"messages": messages, "stream": len(text) % 2 == 0}),
                posted("/chat", {"messages": messages, "context": {"overrides": {"exclude_category": text}}}),
                posted("/api/chat", {"messages": messages, "sessionState": text}),
                posted("/v1/chat/completions", {"model": "m", "index_name": "default", "messages": messages}),
                Request("GET", "/documents?" + encoded(id=text[:8000]), None, {"Accept": "application/json"}),
                Request("GET", "/?" + encoded(q=text[:15_000]), None, {"Accept": "text/html"}),
                posted("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": called}),
                posted("/retrieve", {"question": text, "documents": [text, "doc 1"]}),
                posted("/grounding/check", {"answerCandidate": f"{text} is common.", "documentIds": [text, "doc 1"]}),
                posted("/rest/v2.0/ai", whole[len(text) % 3]),
            ),
            strict=True,
        )
    )


def verdict(status: int, head: str, body: bytes) -> str:
    """Return "answer", or the label of a refusal; fail on anything that is neither."""
    assert status < 500, f"{status} {body[:300]!r}"
    if "text/html" in head:
        return f"page {status}"
    assert "application/json" in head or "application/x-ndjson" in head, head
    assert not [word for word in PARSERS if word.encode() in body], body[:300]
    first = json.loads(body.splitlines()[0])
    if first.get("status") == "ERROR":
        error = first["content"]["error"]
        assert int(error["code"]) < 500, error
        return str(error["label"])
    return "answer" if status == 200 else str(status)


def fuzz(running: World, each: int, *, first: int = 0) -> str:
    """Send every string through *each* dialects in turn, from the *first* on, and return what came of it."""
    counted: Counter[tuple[str, str]] = Counter()
    services = list(running.services.values())
    for number, query in enumerate(QUERIES):
        chosen = {DIALECTS[(first + number * each + place) % len(DIALECTS)] for place in range(each)}
        for dialect, request in requests_for(query).items():
            if dialect not in chosen:
                continue
            service = services[number % len(services)]
            headers = {**request.headers, **running.credentials(service, "eve")}
            status, head, body = service.send(request.method, request.path, request.body, headers)
            log, told = running.overheard()
            counted[(dialect, verdict(status, head, body))] += 1
            assert b"zxhidden" not in body and "zxhidden" not in log + told
            assert "incident" not in log, f"{number} {dialect}: {log[-500:]}"
    assert sum(counted.values()) == len(QUERIES) * each
    lines = [f"FUZZ {running.engine}: {len(QUERIES)} strings, each through {each} of {len(DIALECTS)} dialects"]
    for dialect in DIALECTS:
        row = {name: number for (one, name), number in sorted(counted.items()) if one == dialect}
        lines.append(f"  {dialect:10} {row}")
    return "\n".join(lines)


EACH = [1, pytest.param(len(DIALECTS), marks=pytest.mark.slow)]
"""
Through how many dialects each string goes, another one on each engine: all of them take minutes and show again what
their neighbours show.
"""


@pytest.mark.parametrize("each", EACH)
def test_every_string_gets_an_answer_or_a_clean_refusal_embedded(
    embedded_world: World, each: int, record_property: Record
) -> None:
    tell(record_property, fuzz(embedded_world, each))


@pytest.mark.solr
@pytest.mark.parametrize("each", EACH)
def test_every_string_gets_an_answer_or_a_clean_refusal_solr(
    solr_world: World, each: int, record_property: Record
) -> None:
    tell(record_property, fuzz(solr_world, each, first=len(DIALECTS) // 2))
