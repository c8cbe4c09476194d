"""
`/openapi.json`: every path of the service, described from its routes, its settings and its tables of errors.

Pages are listed without their forms. A stream's media type names the schema of a line: OpenAPI 3.1 has no word for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from flask import Response
from werkzeug.routing import Map, Rule

from datafari_rag.core.errors import leaves
from datafari_rag.core.query.select_parameters import READERS
from datafari_rag.core.settings.table import Settings
from datafari_rag.web.api.answers import WorkerContext, json_response
from datafari_rag.web.api.openapi_schemas import STRING, components, record, ref
from datafari_rag.web.json_bytes import plain

Json = dict[str, Any]

JSON_TYPE = "application/json"
TAGS = {
    "answers": "Questions and their answers.",
    "search": "Plain search and documents.",
    "service": "The service.",
    "pages": "For people.",
}
_HTTP = frozenset({405})
_EVERY = tuple(sorted({kind.code for kind in leaves()} - _HTTP))
_OF_CHAT = tuple(status for status in _EVERY if status != 422)
"""On the chat paths and /v1 a missing question is 400 (contract §4)."""


@dataclass(frozen=True, slots=True)
class Operation:
    """
    What one path does: *replies* and *lines* are names of schemas, *lines* one for each media type of a stream.

    *request* is the schema of a JSON body, *with_files* whether it may also come as multipart; *error* is the shape
    of a failure, *statuses* the HTTP statuses it may have; *has_page* says that people get a page in place of JSON.
    """

    summary: str
    replies: tuple[str, ...] = ()
    error: str = "PlainError"
    lines: tuple[tuple[str, str], ...] = ()
    request: str | None = None
    with_files: bool = False
    tag: str = "answers"
    parameters: tuple[str, ...] = ()
    statuses: tuple[int, ...] = _OF_CHAT
    has_page: bool = False


def openapi_view(worker: WorkerContext, rules: Map) -> Response:
    """Return the description under the settings of now."""
    return json_response(plain(description(rules, worker.service.snapshot().settings)))


def description(rules: Map, settings: Settings) -> Json:
    """Return the OpenAPI 3.1 document of all paths in *rules*."""
    paths: dict[str, Json] = {}
    for rule in rules.iter_rules():
        methods = sorted((rule.methods or set()) - {"HEAD", "OPTIONS"})
        paths.setdefault(_path(rule), {}).update({method.lower(): _operation(rule, method) for method in methods})
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "datafari_rag",
            "version": version("datafari-rag"),
            "description": "Answers from documents that their reader may see, with citations that can be checked.",
        },
        "tags": [{"name": name, "description": about} for name, about in TAGS.items()],
        "paths": paths,
        "components": {"schemas": components(settings)},
    }


def _path(rule: Rule) -> str:
    return re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule)


def _operation(rule: Rule, method: str) -> Json:
    path = _path(rule)
    known = OPERATIONS.get(path)
    operation_id = f"{method.lower()}_{path.strip('/').replace('/', '_').replace('.', '_')}".rstrip("_")
    if known is None:
        return {"operationId": operation_id, "tags": ["pages"], "parameters": _in_path(rule), **_page()}
    described: Json = {
        "operationId": operation_id,
        "summary": known.summary,
        "tags": [known.tag],
        "responses": _responses(known),
    }
    if rule.arguments:
        described["parameters"] = _in_path(rule)
    if known.parameters and method == "GET":
        described["parameters"] = [PARAMETERS[name] for name in known.parameters]
    if known.request is not None or method == "POST":
        described["requestBody"] = _body(known)
    return described


def _in_path(rule: Rule) -> list[Json]:
    return [{"name": name, "in": "path", "required": True, "schema": STRING} for name in sorted(rule.arguments)]


def _page() -> Json:
    good = {"description": "The page.", "content": {"text/html": {"schema": STRING}}}
    return {"summary": "A page.", "responses": {"200": good, "default": {"description": "Anything else."}}}


def _body(known: Operation) -> Json:
    if known.request is None:
        form = record(dict.fromkeys(known.parameters, STRING), optional=known.parameters)
        return {"content": {"application/x-www-form-urlencoded": {"schema": form}}}
    content: Json = {JSON_TYPE: {"schema": ref(known.request)}}
    if known.with_files:
        about = "The body as text in the part json, text files beside it."
        parts = record({"json": STRING | {"contentMediaType": JSON_TYPE}}, about=about)
        content["multipart/form-data"] = {"schema": parts}
    return {"required": True, "content": content}


def _responses(known: Operation) -> Json:
    good: Json = {JSON_TYPE: {"schema": _one_of(known.replies)}} if known.replies else {}
    for media_type, line in known.lines:
        about = f"A stream; each of its objects is a {line}: see components/schemas." if line else "Text."
        good[media_type] = {"schema": STRING | {"description": about}}
    responses: Json = {"200": {"description": "A good answer.", "content": good}}
    failure: Json = {JSON_TYPE: {"schema": ref(known.error)}}
    if known.has_page:
        failure["text/html"] = {"schema": STRING}
    for status in known.statuses:
        labels = sorted(kind.label for kind in leaves() if kind.code == status)
        responses[str(status)] = {"description": ", ".join(labels), "content": failure}
    return responses


def _one_of(names: Iterable[str]) -> Json:
    refs = [ref(name) for name in names]
    return refs[0] if len(refs) == 1 else {"anyOf": refs}


def _parameter(name: str, about: str, schema: Mapping[str, object] = STRING, *, is_required: bool = False) -> Json:
    return {"name": name, "in": "query", "required": is_required, "description": about, "schema": dict(schema)}


_ABOUT = {
    "q": "The question or the words.",
    "prompt": "Read as q when q is absent.",
    "action": "rag for an answer; absent or search for a plain search.",
    "format": "bulletpoint, text, stepbystep or default.",
    "linebreaks": "escaped, newline or html: how line breaks stand in the message; absent: rag.linebreaks.",
    "lang": "Language of the answer.",
    "stream": "true: events, one a line.",
    "trace": "true: the answer says how it was made.",
    "id": "A search session; not a document.",
    "fq": "field:value or field:[a TO b] on a field of solr.facets.",
    "start": "First hit.",
    "rows": "Hits of one page, at most 100.",
    "sort": "score, title or last_modified, asc or desc.",
    "facet": "true: count facet.field.",
    "facet.field": "A field of solr.facets.",
    "hl": "true: snippets.",
    "fl": "Stored fields.",
}
_OFFSET = {"type": "integer", "minimum": 0, "maximum": 10**12 - 1}

PARAMETERS: Mapping[str, Json] = {
    **{name: _parameter(name, f"{_ABOUT.get(name, '')} What does not fit is ignored.".strip()) for name in READERS},
    "document": _parameter("id", "The document.", is_required=True),
    "field": _parameter("field", "Which stored text.", {"enum": ["exactContent", "preview_content"]}),
    "from": _parameter("start", "First character of the passage.", _OFFSET),
    "to": _parameter("end", "Character after the passage.", _OFFSET),
}

_SELECT = Operation(
    "An answer with action=rag (Datafari RagAPI), else a plain search as Solr answers it, for what the user may see.",
    ("RagAnswer", "RagError", "SolrAnswer"),
    "SelectOrRagError",
    (("application/x-ndjson", "RagEvent"),),
    parameters=tuple(READERS),
    statuses=_EVERY,
)
_BOTH = Operation(
    "The RAG chat protocol without, the RAG chat protocol with choices with a stream key in the body.",
    ("ChatAnswer", "ChoicesAnswer"),
    "TextError",
    (("application/x-ndjson", "ChoicesChunk"),),
    "ChoicesRequest",
)

OPERATIONS: Mapping[str, Operation] = {
    "/Datafari/rest/v2.0/search/select": _SELECT,
    "/search/select": _SELECT,
    "/chat": _BOTH,
    "/ask": _BOTH,
    "/chat/stream": Operation(
        "The RAG chat protocol, streamed.", (), "TextError", (("application/json-lines", "ChatLine"),), "ChatRequest"
    ),
    "/api/chat": Operation(
        "The published client's dialect.", ("PublishedAnswer",), "ObjectError", (), "ChatRequest", with_files=True
    ),
    "/api/chat/stream": Operation(
        "The published client's dialect, streamed.",
        (),
        "ObjectError",
        (("application/jsonl", "PublishedLine"),),
        "ChatRequest",
        with_files=True,
    ),
    "/v1/chat/completions": Operation(
        "OpenAI-compatible; our own models and index_name (KAITO's RAG service) answer from documents.",
        ("Completion",),
        "OpenAIError",
        (("text/event-stream", "CompletionChunk"),),
        "CompletionRequest",
    ),
    "/v1/responses": Operation(
        "OpenAI's responses, from documents; what is not served is refused by its name.",
        ("Response",),
        "OpenAIError",
        (("text/event-stream", "ResponseEvent"),),
        "ResponseRequest",
    ),
    "/v1/models": Operation(
        "Models and indexes.", ("Models",), "OpenAIError", tag="service", statuses=(401, 500, 502, 504)
    ),
    "/v1/models/{name}": Operation(
        "One model.", ("Model",), "OpenAIError", tag="service", statuses=(401, 404, 500, 502, 504)
    ),
    "/documents": Operation(
        "The stored text of one document that the reader may see, as a page or as JSON.",
        ("StoredText",),
        lines=(("text/html", ""),),
        tag="search",
        parameters=("document", "field", "from", "to"),
        has_page=True,
    ),
    "/health/live": Operation("Whether this process lives.", ("Liveness",), tag="service", statuses=()),
    "/health/ready": Operation(
        "Whether questions would be answered now.", ("Readiness",), "Readiness", tag="service", statuses=(503,)
    ),
    "/metrics": Operation(
        "Prometheus' text, over all workers.", lines=(("text/plain", ""),), tag="service", statuses=()
    ),
    "/openapi.json": Operation("This description.", ("Description",), tag="service", statuses=()),
}
"""What each path does; a path that is not here is a page."""
