"""
The shapes of requests and replies as JSON Schema, for `/openapi.json`; from the code's own tables where it has any.

What a schema cannot say (the last message is the user's, a question is not blank) stands in its description.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Union, get_args, get_origin, get_type_hints

from datafari_rag.core.answer.token_budget import RATIO_HIGHEST, RATIO_LOWEST
from datafari_rag.core.ask import MAX_QUESTION_CHARS
from datafari_rag.core.documents import Citation
from datafari_rag.core.query.chat_overrides import OVERRIDES
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols.chat_request import ROLES
from datafari_rag.protocols.openai.responses_request import MAX_METADATA, RESULTS

Schema = dict[str, Any]

STRING: Schema = {"type": "string"}
ANY: Schema = {}
_NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}

_CITATION = "One mark of the answer, answer[answer_start:answer_end] in code points; text[start:end] is the quote."

PARTIAL: Mapping[str, Schema] = {
    "partial_results": {"const": True, "description": "A shard did not answer (solr.shards.tolerant)."}
}
"""Stands beside the documents where not all of the collection was searched."""


def ref(name: str) -> Schema:
    """Return a reference to a schema of `components`."""
    return {"$ref": f"#/components/schemas/{name}"}


def record(properties: Mapping[str, Schema], *, optional: tuple[str, ...] = (), about: str = "") -> Schema:
    """Return an object with *properties*, all required but *optional*; more keys may come."""
    required = [name for name in properties if name not in optional]
    schema: Schema = {"type": "object", "properties": dict(properties)}
    if required:
        schema["required"] = required
    return schema | ({"description": about} if about else {})


def listed(items: Schema) -> Schema:
    """Return an array of *items*."""
    return {"type": "array", "items": items}


def nullable(schema: Schema) -> Schema:
    """Return what *schema* allows, or null: in requests null is the same as absent."""
    if "enum" in schema:
        return schema | {"enum": [*schema["enum"], None]}
    if "type" not in schema:
        return schema if schema == ANY else {"anyOf": [schema, {"type": "null"}]}
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return schema | {"type": [*kinds, "null"]}


def schema_of(kind: type) -> Schema:
    """Return the schema of a frozen record of plain values."""
    hints = get_type_hints(kind)
    return record({field.name: {"type": _kinds(hints[field.name])} for field in fields(kind)})


def components(settings: Settings) -> dict[str, Schema]:
    """Return every named schema."""
    return {**_errors(), **_parts(), **_requests(settings), **_replies(), **_lines()}


def _kinds(hint: Any) -> str | list[str]:
    if get_origin(hint) in (Union, types.UnionType):
        return [_NAMES[one] for one in get_args(hint)]
    return _NAMES[hint]


def _errors() -> dict[str, Schema]:
    failure = {"code": {"type": "integer"}, "reason": STRING, "label": STRING}
    inner = {"message": STRING, "type": STRING, "param": {"type": ["string", "null"]}, "code": STRING}
    return {
        "TextError": record({"error": STRING}, about="the RAG chat protocols."),
        "ObjectError": record({"error": record({"code": STRING, "message": STRING})}, about="The published client's."),
        "OpenAIError": record({"error": record(inner)}, about="As OpenAI's clients read it."),
        "SelectError": record({"error": record({"code": {"type": "integer"}, "msg": STRING})}, about="Plain search."),
        "SelectOrRagError": {"anyOf": [ref("SelectError"), ref("RagError")]},
        "PlainError": record({"error": record(failure)}, about="Where no dialect has a shape."),
        "RagError": record(
            {"status": {"const": "ERROR"}, "content": record({"error": record(failure)})},
            about="Datafari RagAPI; the HTTP status is 200 unless rag.http.errors is on.",
        ),
    }


def _parts() -> dict[str, Schema]:
    opening = {"data_points": ref("DataPoints"), "thoughts": listed(ref("Thought"))}
    followups = {"followup_questions": {"type": ["array", "null"], "items": STRING}}
    closing = {"citations": listed(ref("Citation")), **followups, "finish_reason": STRING}
    said = {"type": ["null", "object", "array"]}
    message = {"role": {"const": "assistant"}, "content": STRING, "function_call": said, "tool_calls": said}
    score = {"type": "number", "description": "For administrators the engine's score, for all others 1/rank."}
    node = {"doc_id": STRING, "node_id": STRING, "text": STRING, "score": score, "metadata": record({})}
    return {
        "Citation": schema_of(Citation) | {"description": _CITATION},
        "Document": record({"id": STRING, "url": STRING, "title": STRING, "content": STRING}),
        "SourceNode": record(node, about="One passage that the model saw."),
        "UrlCitation": record(
            {
                **{name: {"type": "integer"} for name in ("start_index", "end_index")},
                **dict.fromkeys(("title", "url", "x_status", "x_document_id"), STRING),
                **{name: {"type": ["string", "null"]} for name in ("x_quote", "x_field")},
                **{name: {"type": ["integer", "null"]} for name in ("x_start", "x_end")},
            },
            about="One mark of the answer, answer[start_index:end_index] in code points.",
        ),
        "SearchResult": record(
            {"title": STRING, "url": STRING, "date": {"type": ["string", "null"]}, "snippet": STRING}
        ),
        "DataPoints": record({"text": listed(STRING), "images": listed(ANY), "citations": listed(STRING)}),
        "Thought": record({"title": STRING, "description": ANY, "props": {"type": ["object", "null"]}}),
        "Message": record(message),
        "Context": record({**opening, **closing, **PARTIAL}, optional=tuple(PARTIAL)),
        "OpeningContext": record({**opening, **followups, **PARTIAL}, optional=tuple(PARTIAL)),
        "ClosingContext": record(closing),
    }


def _requests(settings: Settings) -> dict[str, Schema]:
    overrides = {name: nullable(dict(row.kind.schema)) | {"description": row.says} for name, row in OVERRIDES.items()}
    overrides["top"] |= {"maximum": settings.chat_top_max}
    message = record({"role": {"enum": list(ROLES)}, "content": STRING})
    about = f"The last message is the user's question: not blank, at most {MAX_QUESTION_CHARS} characters."
    chat = {
        "messages": {"type": "array", "items": message, "minItems": 1, "description": about},
        "context": nullable(record({"overrides": nullable(ref("Overrides"))}, optional=("overrides",))),
        "session_state": ANY | {"description": "Echoed, or the signed memory that an earlier answer issued."},
        "sessionState": ANY | {"description": "The later spelling of session_state; both are read everywhere."},
    }
    optional = ("context", "session_state", "sessionState", "stream")
    stream = nullable({"type": "boolean"}) | {"description": "Present: the reply has choices."}
    return {
        "Overrides": record(overrides, optional=tuple(overrides), about="Unknown keys never fail."),
        "ChatRequest": record(chat, optional=optional),
        "ChoicesRequest": record({**chat, "stream": stream}, optional=optional),
        "CompletionRequest": _completion_request(settings),
        "ResponseRequest": _response_request(),
    }


def _completion_request(settings: Settings) -> Schema:
    ratio = {"type": "number", "minimum": RATIO_LOWEST, "maximum": RATIO_HIGHEST}
    wanted: dict[str, Schema] = {
        "index_name": {"enum": [*settings.openai_indexes, None], "description": "Turns documents on."},
        "context_token_ratio": nullable(ratio) | {"description": "Share of the free room that documents get."},
        "model": nullable(STRING) | {"description": "Absent: the service's own."},
        "messages": {
            "type": "array",
            "minItems": 1,
            "items": record({"role": STRING, "content": ANY}, optional=("content",)),
            "description": "Roles user, assistant, system, developer; any other is passed through to the model.",
        },
        "temperature": nullable({"type": "number", "minimum": 0, "maximum": 2}),
        "max_tokens": nullable({"type": "integer", "minimum": 1}),
        "n": nullable({"type": "integer", "minimum": 1, "maximum": 1}),
        "stream": nullable({"type": "boolean"}),
    }
    about = "OpenAI's request. Without index_name it goes to the model as it came; types are then the model's to check."
    return record(wanted, optional=tuple(name for name in wanted if name != "messages"), about=about)


def _response_request() -> Schema:
    wanted: dict[str, Schema] = {
        "model": nullable(STRING) | {"description": "A model of ours. Absent: the main one."},
        "input": {"type": ["string", "array"], "description": "The question, or items of type message."},
        "instructions": nullable(STRING),
        "stream": nullable({"type": "boolean"}),
        "temperature": nullable({"type": "number", "minimum": 0, "maximum": 2}),
        "top_p": nullable({"type": "number", "minimum": 0, "maximum": 1}),
        "max_output_tokens": nullable({"type": "integer", "minimum": 1}),
        "text": nullable(record({}, about="format: text, json_object or json_schema.")),
        "metadata": nullable({"type": "object", "maxProperties": MAX_METADATA}),
        "include": nullable(listed({"const": RESULTS})),
        "store": nullable({"type": "boolean"}) | {"description": "true needs chat.memory.enabled."},
        "previous_response_id": nullable(STRING) | {"description": "Needs chat.memory.enabled."},
    }
    about = "OpenAI's request for a response. Any other parameter that would change the answer is refused by its name."
    return record(wanted, optional=tuple(name for name in wanted if name != "input"), about=about)


def _replies() -> dict[str, Schema]:
    choice = {"index": {"type": "integer"}, "message": ref("Message"), "finish_reason": STRING}
    with_context = {**choice, "context": ref("Context"), "session_state": ANY}
    completion = {"id": STRING, "object": {"const": "chat.completion"}, "created": {"type": "integer"}, "model": STRING}
    told = {"usage": {"type": ["object", "null"]}, "system_fingerprint": {"type": ["string", "null"]}}
    content = {"message": STRING, "documents": {"type": ["array", "object"]}, "citations": listed(ref("Citation"))}
    cited = {"annotations": listed(record({"type": {"const": "url_citation"}, "url_citation": ref("UrlCitation")}))}
    spoken = record({"role": {"const": "assistant"}, "content": STRING, "refusal": ANY, **cited}, optional=tuple(cited))
    nodes = {"source_nodes": {"type": ["array", "null"], "items": ref("SourceNode")}}
    model = {"id": STRING, "object": {"const": "model"}, "created": {"type": "integer"}, "owned_by": STRING}
    return {
        "ChatAnswer": record({"message": ref("Message"), "context": ref("Context"), "session_state": ANY}),
        "PublishedAnswer": record({"message": ref("Message"), "context": ref("Context"), "sessionState": ANY}),
        "ChoicesAnswer": record({**completion, "choices": listed(record(with_context)), **told}),
        "RagAnswer": record(
            {"status": {"const": "OK"}, "content": record({**content, **PARTIAL}, optional=tuple(PARTIAL))}
        ),
        "SolrAnswer": record({"response": record({"numFound": {"type": "integer"}, "docs": listed(record({}))})}),
        "Completion": record(
            {**completion, "choices": listed(record({**choice, "message": spoken})), **told, **nodes, **PARTIAL},
            optional=("usage", "system_fingerprint", "citations", "search_results", *PARTIAL),
        ),
        "Models": record({"object": {"const": "list"}, "data": listed(ref("Model")), "indexes": listed(STRING)}),
        "Model": record(model),
        "Response": record(
            {
                "id": STRING,
                "object": {"const": "response"},
                "created_at": {"type": "integer"},
                "status": {"enum": ["completed", "incomplete", "in_progress", "failed"]},
                "model": STRING,
                "output": listed(record({"id": STRING, "type": {"enum": ["message", "file_search_call"]}})),
                "error": {"type": ["object", "null"]},
                "usage": {"type": ["object", "null"]},
                "citations": listed(ref("Citation")),
                "search_results": listed(ref("SearchResult")),
                **PARTIAL,
            },
            optional=("citations", "search_results", *PARTIAL),
        ),
        "StoredText": record(
            {
                **dict.fromkeys(("id", "title", "url", "field", "text"), STRING),
                **{key: {"type": ["integer", "null"]} for key in ("start", "end")},
            }
        ),
        "Description": record({"openapi": STRING, "paths": record({})}),
        "Readiness": record({"status": STRING, "problems": listed(record({"what": STRING, "problem": STRING}))}),
        "Liveness": record({"status": STRING}),
    }


def _lines() -> dict[str, Schema]:
    delta = record({"role": STRING, "content": {"type": ["string", "null"]}}, optional=("role", "content"))
    context = {"anyOf": [ref("OpeningContext"), ref("ClosingContext")]}
    line: dict[str, Schema] = {"delta": delta, "context": context, "session_state": ANY, "sessionState": ANY}
    optional = ("context", "session_state", "sessionState")
    choice = {"index": {"type": "integer"}, "delta": delta, "finish_reason": {"type": ["string", "null"]}}
    chunk = {
        "id": STRING,
        "object": {"const": "chat.completion.chunk"},
        "created": {"type": "integer"},
        "model": STRING,
    }
    in_choice = record({**choice, "context": context, "session_state": ANY}, optional=("context", "session_state"))
    ended = {
        "source_nodes": listed(ref("SourceNode")),
        "citations": listed(ref("Citation")),
        "search_results": listed(ref("SearchResult")),
        "event": record({"type": {"enum": ["source", "status"]}, "data": record({})}, about="For Open WebUI."),
        **PARTIAL,
    }
    kinds = ["stream.started", "sources.final", "message.delta", "message.final", "stream.completed", "error"]
    return {
        "ChatLine": {"anyOf": [record(line, optional=optional), ref("TextError")]},
        "PublishedLine": {"anyOf": [record(line, optional=optional), ref("ObjectError")]},
        "ChoicesChunk": {"anyOf": [record({**chunk, "choices": listed(in_choice)}), ref("TextError")]},
        "CompletionChunk": {
            "anyOf": [
                record({**chunk, "choices": listed(record(choice)), **ended}, optional=tuple(ended)),
                ref("OpenAIError"),
            ]
        },
        "ResponseEvent": record({"type": STRING, "sequence_number": {"type": "integer"}}),
        "RagEvent": record({"type": {"enum": kinds}, "data": record({}), "ts": {"type": "integer"}}),
    }
