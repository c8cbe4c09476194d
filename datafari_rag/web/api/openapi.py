"""
`/openapi.json`: every path of the service, made of its routes, the records of what callers send, settings, errors, and
what is written down in `resources/openapi.json`.

Pages are listed without their forms. A stream's media type names the schema of a line: OpenAPI 3.1 has no word for it.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson
from flask import Response
from werkzeug.routing import Map, Rule

from datafari_rag import resources
from datafari_rag.core.errors import leaves
from datafari_rag.core.query.select_parameters import READERS
from datafari_rag.core.settings.table import ChatSettings, OpenaiSettings, SecuritySettings, Settings
from datafari_rag.protocols.ai import AiRequest
from datafari_rag.protocols.ai_conversations import ConversationTitle
from datafari_rag.protocols.chat import IGNORED, ChatRequest, ChoicesRequest, Overrides
from datafari_rag.protocols.grounding import GroundingRequest
from datafari_rag.protocols.openai.chat_completions import CompletionRequest
from datafari_rag.protocols.openai.responses import ResponseRequest
from datafari_rag.protocols.records import schemas_of
from datafari_rag.protocols.retrieval import RetrieveRequest
from datafari_rag.web.responses import json_response, plain
from datafari_rag.web.turn import Turn

Json = dict[str, Any]

JSON_TYPE = "application/json"
STRING: Json = {"type": "string"}

_EVERY = tuple(sorted({kind.code for kind in leaves()}))
_OF_CHAT = tuple(status for status in _EVERY if status != 422)
"""On the chat paths and /v1 a missing question is 400 (contract §4)."""


class OpenApiView:
    """The description of the paths in *rules* as a reply, made once for the settings in force."""

    def __init__(self, rules: Map) -> None:
        """Make nothing yet."""
        self._rules = rules
        self._made: tuple[Settings, bytes] | None = None

    def __call__(self, turn: Turn) -> Response:
        """Return the description under the settings of now."""
        settings, made = turn.settings, self._made
        if made is None or made[0] is not settings:
            made = self._made = (settings, plain(description(self._rules, settings)))
        return json_response(made[1])


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
            "description": "Answers from documents that the user may see, with citations that can be checked.",
        },
        **({"servers": [{"url": settings.server.public_url}]} if settings.server.public_url else {}),
        "tags": source()["tags"],
        "paths": paths,
        "components": {
            "schemas": _schemas(settings.chat, settings.openai),
            "securitySchemes": _schemes(settings.security),
        },
        "security": [{name: []} for name in _schemes(settings.security)] + [{}],
    }


def _schemes(security: SecuritySettings) -> Json:
    """Return how callers authenticate; paths that need no user are open."""
    if security.identity == "jwt":
        return {"token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}}
    if security.identity == "header":
        return {"proxy": {"type": "apiKey", "in": "header", "name": security.header}}
    return {}


@cache
def source() -> Json:
    """
    Return the part that is written down: tags, operations, parameters, schemas of replies.

    An operation stands under all paths that it is the same for. Its *replies* and *lines* name schemas, *lines* one for
    each media type of a stream; *request* names the record of a JSON body, *with_files* whether it may also come as
    multipart; *page* is the media type of what a page or its scripts get; *error* is the shape of a failure, *statuses*
    the HTTP statuses it may have; *has_page* says that people get a page in place of JSON, *has_receipt* that some
    requests have no reply but that they came (202); *methods* what is different for a method.

    In a schema a reference is a name, properties are required unless *optional* names them or is true, and *also* names
    a schema whose properties may be there too.
    """
    content: Json = orjson.loads((Path(resources.__file__).parent / "openapi.json").read_bytes())
    operations = {path: operation for paths, operation in content["operations"].items() for path in paths.split()}
    schemas = {name: _expanded(schema, content["schemas"]) for name, schema in content["schemas"].items()}
    return {**content, "operations": operations, "schemas": schemas}


def _expanded(schema: Any, schemas: Json) -> Any:
    """Return *schema* with the types and required names that its short form leaves out, and whole references."""
    if isinstance(schema, list):
        return [_expanded(inner, schemas) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _ref(schema["$ref"])
    whole = {key: _expanded(value, schemas) for key, value in schema.items() if key not in ("optional", "also")}
    if "properties" not in schema:
        return whole
    optional = schema.get("optional", [])
    required = [name for name in whole["properties"] if optional is not True and name not in optional]
    more = _expanded(schemas[schema["also"]], schemas)["properties"] if "also" in schema else {}
    whole["properties"] = {**whole["properties"], **more}
    return {"type": "object", **whole, **({"required": required} if required else {})}


@cache
def requests() -> Json:
    """Return the schemas of what callers send, made of the records that read it."""
    return schemas_of(*RECORDS, ref_template=REF)


def _schemas(chat: ChatSettings, openai: OpenaiSettings) -> Json:
    """Return the schemas that are written down with what the settings and the table of overrides decide."""
    schemas: Json = {**source()["schemas"], **requests()}
    properties = schemas["Overrides"]["properties"]
    top = {"type": ["integer", "null"], "minimum": 1, "maximum": chat.limits.top}
    ignored = {name: {"description": sentence} for name, sentence in IGNORED.items()}
    schemas["Overrides"] |= {
        "properties": properties | {"top": {"description": properties["top"]["description"]} | top} | ignored
    }
    completion = schemas["CompletionRequest"]
    index = completion["properties"]["index_name"] | {"enum": [*openai.indexes, None]}
    schemas["CompletionRequest"] = completion | {"properties": completion["properties"] | {"index_name": index}}
    return schemas


def _path(rule: Rule) -> str:
    return re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule)


def _operation(rule: Rule, method: str) -> Json:
    path = _path(rule)
    operation = source()["operations"][path]
    operation = {**operation, **operation.get("methods", {}).get(method, {})}
    names = operation.get("parameters", ())
    names = tuple(READERS) if names == "select" else names
    page = {"description": "Success.", "content": {operation.get("page", "text/html"): {}}}
    is_page = operation.get("tag") == "pages"
    described: Json = {
        "operationId": f"{method.lower()}_{path.strip('/').replace('/', '_').replace('.', '_')}".rstrip("_"),
        "summary": operation["summary"],
        "tags": [operation.get("tag", "answers")],
        "responses": {"200": page, "default": {"description": "Anything else."}} if is_page else _responses(operation),
    }
    if rule.arguments:
        described["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": STRING} for name in sorted(rule.arguments)
        ]
    if names and method in ("GET", "DELETE"):
        rows = {name: {"name": name, "description": f"{row.says} {row.refused}"} for name, row in READERS.items()}
        facts = [rows.get(name) or source()["parameters"][name] for name in names]
        described["parameters"] = [{"in": "query", "required": False, "schema": STRING, **each} for each in facts]
    if "request" in operation:
        content: Json = {JSON_TYPE: {"schema": _ref(operation["request"])}}
        if operation.get("with_files"):
            about = "The JSON body in the part json, text files in other parts."
            json_part = {"json": STRING | {"contentMediaType": JSON_TYPE}}
            parts = {"type": "object", "properties": json_part, "required": ["json"], "description": about}
            content["multipart/form-data"] = {"schema": parts}
        described["requestBody"] = {"required": True, "content": content}
    elif names and method == "POST":
        form = {"type": "object", "properties": dict.fromkeys(names, STRING)}
        described["requestBody"] = {"content": {"application/x-www-form-urlencoded": {"schema": form}}}
    return described


def _responses(operation: Json) -> Json:
    refs = [_ref(name) for name in operation.get("replies", ())]
    good: Json = {JSON_TYPE: {"schema": refs[0] if len(refs) == 1 else {"anyOf": refs}}} if refs else {}
    for media_type, line in operation.get("lines", {}).items():
        whole = "A picture." if media_type.startswith("image/") else "Text."
        about = f"A stream of {line} objects: see components/schemas." if line else whole
        # Readers of server-sent events check each event against this, and an event is no string.
        kind = {} if media_type == "text/event-stream" else STRING
        good[media_type] = {"schema": kind | {"description": about}}
    responses: Json = {"200": {"description": "Success.", "content": good}}
    if operation.get("has_receipt"):
        responses["202"] = {"description": "Accepted; there is no reply."}
    failure: Json = {JSON_TYPE: {"schema": _ref(operation.get("error", "PlainError"))}}
    if operation.get("has_page"):
        failure["text/html"] = {"schema": STRING}
    statuses = operation.get("statuses", _OF_CHAT)
    for status in _EVERY if statuses == "every" else statuses:
        labels = sorted(kind.label for kind in leaves() if kind.code == status)
        responses[str(status)] = {"description": ", ".join(labels), "content": failure}
    return responses


def _ref(name: str) -> Json:
    return {"$ref": REF.format(name=name)}


REF = "#/components/schemas/{name}"

RECORDS = (
    AiRequest,
    ChatRequest,
    ChoicesRequest,
    CompletionRequest,
    ConversationTitle,
    GroundingRequest,
    Overrides,
    ResponseRequest,
    RetrieveRequest,
)
"""The bodies that callers send."""
