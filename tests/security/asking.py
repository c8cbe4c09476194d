"""How each dialect is asked: the same question as each of them spells it, with what a hostile caller would add."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from hypothesis import strategies as st

from datafari_rag.core.access import ACL_FIELDS
from tests.security.worlds import DIALECTS, VARIANTS


@dataclass(frozen=True)
class Request:
    """One HTTP request without the user's proof."""

    method: str
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """
    One random case: who asks what in which dialect of which service, with which extras.

    *target* chooses a document by its place; *words* says which words are asked for.
    """

    dialect: str
    variant: str
    user: str | None
    target: int
    words: str
    is_streamed: bool
    extras: tuple[tuple[str, str], ...]
    overrides: Mapping[str, Any]


FORGERIES = (
    ("mcf", "false"), ("AuthenticatedUserName", "ann"), ("AuthenticatedUserName_0", "ann"),
    ("AuthenticatedUserDomain", "x"), ("UserTokens", "s1"), ("UserTokens", "s2"), ("shards", "127.0.0.1:1/solr/x"),
    ("shards.qt", "/get"), ("qt", "/get"), ("collection", "FileShare"), ("debugQuery", "true"), ("defType", "lucene"),
    ("fq", "{!terms f=allow_token_document}s1"), ("fq", "*:* OR {!v=x}"), ("fq", "allow_token_document:s1"),
    ("fq", "-allow_token_share:s1"), ("fl", "*,allow_token_document,deny_token_share,[explain],x:id"),
    ("fl", "allow_token_document"), ("sort", "allow_token_document asc"), ("sort", "title asc"),
    ("sort", "last_modified desc"), ("facet.query", "allow_token_document:s1"), ("facet", "true"),
    ("facet.field", "allow_token_document"), ("facet.field", "source"), ("facet.field", "extension"),
    ("facet.mincount", "0"), ("hl", "true"), ("hl.fl", "*"), ("rows", "1000"), ("start", "0"), ("wt", "python"),
    ("spellcheck", "true"), ("terms.fl", "source"), ("q.op", "OR"), ("q.alt", "*:*"), ("uf", "*"), ("bq", "*:*"),
    ("json.filter", "*:*"), ("stream.body", "<x/>"), ("trace", "true"), ("lang", "fr"), ("format", "bulletpoint"),
    ("X-Remote-User", "ann"), ("user", "ann"), ("id", "ann"),
)  # fmt: skip
"""Parameters with which a caller might try to see more, or that only look as if he could."""

OVERRIDES: Mapping[str, st.SearchStrategy[Any]] = {
    "top": st.integers(1, 50),
    "retrieval_mode": st.sampled_from(["text", "vectors", "hybrid"]),
    "semantic_captions": st.booleans(),
    "semantic_ranker": st.booleans(),
    "suggest_followup_questions": st.booleans(),
    "exclude_category": st.sampled_from(["nothing", "{!x}", '" OR *:*', "allow_token_document"]),
    "include_category": st.sampled_from(["", "{!x}"]),
    "prompt_template": st.sampled_from(["{query_str} {context}", ">>>{0} {documents}", "%s {{7*7}}"]),
    "use_oid_security_filter": st.booleans(),
    "use_groups_security_filter": st.booleans(),
    "minimum_search_score": st.just(0),
    "language": st.sampled_from(["en", "fr"]),
    "auth_claims": st.just({"oid": "ann", "groups": ["s1", "s2"]}),
    "documents": st.sampled_from([[], ["TARGET"], ["TARGET", "nothing", "TARGET"]]),
    "no_such_override": st.just("x"),
}


def cases(dialect: str) -> st.SearchStrategy[Case]:
    """Return random cases of one dialect."""
    return st.builds(
        Case,
        dialect=st.just(dialect),
        variant=st.sampled_from(sorted(VARIANTS)),
        user=st.sampled_from([None, "ann", "bob", "zoé", "eve", "nobody"]),
        target=st.integers(0, 19),
        words=st.sampled_from(["key", "key", "key", "common", "both", "title", "all", "canary", "absent"]),
        is_streamed=st.booleans(),
        extras=st.lists(st.sampled_from(FORGERIES), max_size=4).map(tuple),
        overrides=st.dictionaries(st.sampled_from(sorted(OVERRIDES)), st.none(), max_size=3).flatmap(
            lambda names: st.fixed_dictionaries({name: OVERRIDES[name] for name in names})
        ),
    )


def request_for(case: Case, text: str, document_id: str) -> Request:
    """Return the request of *case* with *text* as its question; *document_id* is the one to open."""
    return REQUESTS[case.dialect](case, text, document_id)


def basket_of(case: Case, document_id: str) -> dict[str, Any]:
    """Return the only documents that *case* asks of, by the name that most dialects have for them; {} for any."""
    named = case.overrides.get("documents")
    return {} if named is None else {"documents": [document_id if one == "TARGET" else one for one in named]}


def _ragapi(case: Case, text: str, document_id: str) -> Request:
    pairs = [("q", text), ("action", "rag"), ("stream", str(case.is_streamed).lower()), *case.extras]
    pairs += [("documents", one) for named in basket_of(case, document_id).values() for one in named or [""]]
    return _selected(case, pairs)


def _select(case: Case, text: str, document_id: str) -> Request:
    counted = [("facet", "true"), ("facet.field", "source"), ("facet.field", "extension"), ("hl", "true")]
    named = [("documents", one) for named in basket_of(case, document_id).values() for one in named or [""]]
    return _selected(case, [("q", text), *named, *(counted if case.is_streamed else []), *case.extras])


def _selected(case: Case, pairs: list[tuple[str, str]]) -> Request:
    path = "/Datafari/rest/v2.0/search/select" if case.target % 2 else "/search/select"
    if case.target % 3:
        return Request("GET", f"{path}?{urlencode(pairs)}")
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    return Request("POST", path, urlencode(pairs).encode(), form)


def _posted(path: str, body: Mapping[str, Any], case: Case) -> Request:
    forged = {name: value for name, value in case.extras if "." not in name}
    query = "?" + urlencode(case.extras) if case.extras else ""
    data = json.dumps({**forged, **body}).encode()
    return Request("POST", path + query, data, {"Content-Type": "application/json", "AuthenticatedUserName": "ann"})


def _messages(case: Case, text: str, document_id: str) -> dict[str, Any]:
    context = {
        "overrides": {**case.overrides, **basket_of(case, document_id)},
        "auth_claims": {"oid": "ann", "groups": ["s1"]},
    }
    return {"messages": [{"role": "user", "content": text}], "context": context, "session_state": {"user": "ann"}}


def _choices(case: Case, text: str, document_id: str) -> Request:
    return _posted(
        "/ask" if case.target % 2 else "/chat", {**_messages(case, text, document_id), "stream": case.is_streamed}, case
    )


def _chat(case: Case, text: str, document_id: str) -> Request:
    return _posted("/chat/stream" if case.is_streamed else "/chat", _messages(case, text, document_id), case)


def _published(case: Case, text: str, document_id: str) -> Request:
    return _posted("/api/chat/stream" if case.is_streamed else "/api/chat", _messages(case, text, document_id), case)


def _openai(case: Case, text: str, document_id: str) -> Request:
    body = {
        "model": "echo",
        "index_name": "default",
        "messages": [{"role": "user", "content": text}],
        "stream": case.is_streamed,
        "user": "ann",
        **basket_of(case, document_id),
    }
    return _posted("/v1/chat/completions", body, case)


def _documents(case: Case, text: str, document_id: str) -> Request:
    field_name = "preview_content" if case.target % 4 == 0 else "exactContent"
    own = [("id", document_id), ("field", field_name), ("start", "0"), ("end", "12")]
    extras = [(name, value) for name, value in case.extras if name not in ("id", "start")]
    accept = "application/json" if case.is_streamed else "text/html"
    return Request("GET", f"/documents?{urlencode(own + extras)}", None, {"Accept": accept})


def _page(case: Case, text: str, document_id: str) -> Request:
    extras = [(name, value) for name, value in case.extras if name != "id"]
    return Request("GET", f"/?{urlencode([('q', text), *extras])}", None, {"Accept": "text/html"})


def tool_of(case: Case) -> str:
    """Return the tool of /mcp that *case* calls."""
    return ("search", "fetch", "answer", "check")[case.target % 4]


def _mcp(case: Case, text: str, document_id: str) -> Request:
    tool = tool_of(case)
    calls: dict[str, dict[str, Any]] = {
        "search": {"query": text, "rows": 50},
        "fetch": {"id": document_id},
        "answer": {"question": text, "effort": "low" if case.target % 3 else "minimal"},
        "check": {"text": f"The {text} is common.", "document_ids": [document_id, "nothing"]},
    }
    arguments = calls[tool]
    if case.overrides.get("include_category") is not None and tool in ("search", "answer"):
        arguments["filters"] = {"allow_token_document": "s1"}
    if tool in ("search", "answer"):
        arguments |= basket_of(case, document_id)
    meta = {**dict(case.extras), **({"progressToken": 1} if case.is_streamed else {}), "user": "ann"}
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    if case.variant.startswith("header"):
        meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28"
        meta["io.modelcontextprotocol/clientCapabilities"] = {}
        headers |= {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool}
    params = {"name": tool, "arguments": arguments, "_meta": meta, "AuthenticatedUserName": "ann"}
    body = json.dumps({"jsonrpc": "2.0", "id": case.target, "method": "tools/call", "params": params}).encode()
    return Request("POST", "/mcp", body, {**headers, "AuthenticatedUserName": "ann"})


def _grounding(case: Case, text: str, document_id: str) -> Request:
    body = {"answerCandidate": f"The {text} is common.", "documentIds": [document_id, "nothing"], "user": "ann"}
    return _posted("/grounding/check", body, case)


def action_of(case: Case) -> str:
    """Return the action of Datafari 7 that *case* asks for."""
    return ("rag", "summarize", "synthesize", "search", "agentic")[case.target % 5]


def _ai(case: Case, text: str, document_id: str) -> Request:
    action = action_of(case)
    body: dict[str, Any] = {"action": action, "query": text, "agent": "generic", "memoryId": "X"}
    if action == "summarize":
        body = {"action": action, "id": document_id, "length": ("short", "long")[case.target % 2]}
    elif action == "synthesize":
        body = {"action": action, "filters": {"id": [document_id, "nothing"]}}
        body |= {"query": f"common {text}"} if case.target % 2 else {}
    elif "documents" in case.overrides:
        body |= {"filters": {"id": basket_of(case, document_id)["documents"]}}
    elif case.overrides.get("include_category") is not None:
        body |= {"id": document_id}
    elif case.overrides.get("exclude_category") is not None:
        body |= {"filters": {"fq": ["allow_token_document:s1"], "UserTokens": ["s1"]}}
    prefix, end = ("/Datafari" if case.target % 2 else ""), ("/stream" if case.is_streamed else "")
    return _posted(f"{prefix}/rest/v2.0/ai{end}", body, case)


def _retrieve(case: Case, text: str, document_id: str) -> Request:
    body: dict[str, Any] = {"question": text, "passages": 100, **basket_of(case, document_id)}
    if case.overrides.get("include_category") is not None:
        body["filters"] = {"allow_token_document": "s1"}
    return _posted("/retrieve", body, case)


REQUESTS: Mapping[str, Callable[[Case, str, str], Request]] = dict(
    zip(
        DIALECTS,
        (_ragapi, _select, _choices, _chat, _published, _openai, _documents, _page, _mcp, _grounding, _ai, _retrieve),
        strict=True,
    )
)

ACL_NAMES = ACL_FIELDS
