"""
The tools that agents may call: their names, texts and schemas, one row each.

What a tool does is the edge's (`web/api/mcp_tools.py`). Every tool only reads, and reads as its caller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from datafari_rag.core.ask import MAX_QUESTION_CHARS
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols.arguments import MAX_ID_CHARS, ROLES

Json = dict[str, object]

MAX_ROWS = 50
DEFAULT_ROWS = 10
MAX_CHECKED_CHARS = 20_000
"""Longest text that is checked against documents."""

MAX_CHECKED_DOCUMENTS = 10
MAX_COMPARED = 20
"""Most documents that are named for one comparison; `synthesis.maxFiles` of them are read."""

MAX_LANGUAGE = 20
LENGTHS = ("medium", "short", "long")
MAX_START = 2_000_000_000

FIELDS = ("exactContent", "preview_content")
"""Fields of a document whose stored text can be fetched."""

EFFORTS = ("none", "minimal", "low", "medium")
"""As `rag.effort`; with minimal no model is called for the answer either, which is sentences of the documents."""

READ_ONLY = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: *takes* are the properties of its arguments, *gives* those of its result."""

    name: str
    title: str
    about: str
    takes: Mapping[str, object]
    needs: tuple[str, ...]
    gives: Mapping[str, object]
    always: tuple[str, ...]
    """Properties that every result has."""


def listed(tool: Tool, settings: Settings) -> Json:
    """Return *tool* as `tools/list` has it, with the administrator's text instead of the default."""
    return {
        "name": tool.name,
        "title": tool.title,
        "description": _written_text(tool, settings) or tool.about,
        "inputSchema": {**_object(tool.takes, tool.needs), "additionalProperties": False},
        "outputSchema": _object(tool.gives, tool.always),
        "annotations": {"title": tool.title, **READ_ONLY},
    }


def _written_text(tool: Tool, settings: Settings) -> str:
    """Return what the administrator has written about *tool*, the empty text where nothing."""
    written = TEXTS.get(tool.name)
    return "" if written is None else written(settings)


def _object(properties: Mapping[str, object], required: tuple[str, ...]) -> Json:
    return {"type": "object", "properties": dict(properties), "required": list(required)}


def _text(about: str, **more: object) -> Json:
    return {"type": "string", "description": about, **more}


def _number(about: str, **more: object) -> Json:
    return {"type": "integer", "description": about, **more}


def _flag(about: str) -> Json:
    return {"type": "boolean", "description": about}


def _list(items: Json, about: str, **more: object) -> Json:
    return {"type": "array", "items": items, "description": about, **more}


_QUESTION: Json = {"minLength": 1, "maxLength": MAX_QUESTION_CHARS}
_ID: Json = {"minLength": 1, "maxLength": MAX_ID_CHARS}
_MAYBE_TEXT: Json = {"type": ["string", "null"]}
_MAYBE_NUMBER: Json = {"type": ["integer", "null"]}
_FILTERS: Json = {
    "type": "object",
    "additionalProperties": {"type": "string"},
    "description": "Narrows the search: a field and its value, or a range such as [2024-01-01T00:00:00Z TO *].",
}
_PARTIAL = _flag("A part of the index did not respond: there may be better documents.")
_TRUNCATED = _flag("Something was left out because the result was too large.")
_SUPPORT: Json = {
    **_object(
        {
            "score": {"type": ["number", "null"], "description": "The share, null if no sentence states a fact."},
            "checked": _number("How many sentences state a fact."),
            "proved": _number("How many of them the documents prove."),
            "policy": _text("mark, drop or hold: what is done with the others."),
            "unsupported": _list(
                _object({"start": _number("In code points."), "end": _number("Behind it.")}, ("start", "end")),
                "The sentences of the answer that no document proves.",
            ),
            "dropped": _number("How many sentences were left out."),
            "replaced": {**_MAYBE_TEXT, "description": "extractive or nothing: what replaced the answer."},
        },
        ("score", "checked", "proved", "policy", "unsupported", "dropped", "replaced"),
    ),
    "description": "How much of what the model wrote the documents prove.",
}

_DOCUMENT = _object(
    {"id": _text("For fetch and check."), "title": _text("Its title."), "url": _text("Where a person can open it.")},
    ("id", "title", "url"),
)
_CITED = _object(
    {
        "id": _text("For fetch and check."),
        "title": _text("Its title."),
        "url": _text("Where a person can open it."),
        "label": _text("What a mark in the answer may call it."),
    },
    ("id", "title", "url", "label"),
)
_PLACE: Json = {
    "field": _text("The field whose stored text is meant."),
    "start": _number("First character, in code points of the stored text."),
    "end": _number("The character after the last one."),
}
_PASSAGE = _object({**_PLACE, "text": _text("The passage.")}, ("field", "start", "end", "text"))
_RESULT = _object(
    {
        "id": _text("For fetch and check."),
        "title": _text("Its title."),
        "url": _text("Where a person can open it."),
        "last_modified": _MAYBE_TEXT,
        "passages": _list(_PASSAGE, "The passages that answer the query best."),
    },
    ("id", "title", "url", "passages"),
)
_CITATION = _object(
    {
        "label": _text("The document's label in the answer."),
        "status": _text("How far the document proves it.", enum=["verified", "supported", "unsupported", "unknown"]),
        "document_id": _MAYBE_TEXT,
        "title": _MAYBE_TEXT,
        "url": _MAYBE_TEXT,
        "field": _MAYBE_TEXT,
        "start": _MAYBE_NUMBER,
        "end": _MAYBE_NUMBER,
        "quote": _MAYBE_TEXT,
        "answer_start": _number("Where the mark begins in the answer."),
        "answer_end": _number("Where the mark ends in the answer."),
    },
    ("label", "status"),
)
_PROOF = _object(
    {
        "document_id": _text("The document that proves the sentence."),
        **_PLACE,
        "quote": _text("The words of the document at that place."),
    },
    ("document_id", "field", "start", "end", "quote"),
)
_CLAIM = _object(
    {
        "text": _text("The sentence."),
        "start": _number("Where it begins in the text that was checked, in code points."),
        "end": _number("Where it ends there."),
        "status": _text(
            "verified: the words that it quotes are there. supported: its facts are there. contradicted: the "
            "document gives another number, unit, date or name, or denies it. unsupported: none of these.",
            enum=["verified", "supported", "unsupported", "contradicted"],
        ),
        "proofs": _list(_PROOF, "The places that prove it, one for each document that does."),
        "against": _list(_PROOF, "The places that contradict it, if none proves it."),
    },
    ("text", "start", "end", "status", "proofs", "against"),
)

SEARCH = Tool(
    "search",
    "Search documents",
    "Search the organisation's documents that the current user may read. Returns the best documents with the "
    "passages that match the query and their places. Use fetch with a document's id to read more of it.",
    {
        "query": _text("The question, or the words to look for.", **_QUESTION),
        "rows": _number("Maximum number of documents.", minimum=1, maximum=MAX_ROWS, default=DEFAULT_ROWS),
        "filters": _FILTERS,
    },
    ("query",),
    {
        "results": _list(_RESULT, "The documents, best first."),
        "truncated": _TRUNCATED,
        "partial_results": _PARTIAL,
    },
    ("results", "truncated"),
)

FETCH = Tool(
    "fetch",
    "Read a document",
    "Read the stored text of one document by the id that search returned. A long document is returned in parts: "
    "call again with start set to next_start.",
    {
        "id": _text("The document's id.", **_ID),
        "start": _number("First character to read, in code points.", minimum=0, maximum=MAX_START, default=0),
        "end": _number("The character to stop before.", minimum=0, maximum=MAX_START),
        "field": _text("The field to read. Absent: the field that answers are made from.", enum=list(FIELDS)),
        "max_tokens": _number("Maximum number of tokens of text, within the limit of the service.", minimum=1),
    },
    ("id",),
    {
        "id": _text("The document's id."),
        "title": _text("Its title."),
        "text": _text("The stored text from start to end."),
        "url": _text("Where a person can open it."),
        "metadata": _object(
            {
                **_PLACE,
                "length": _number("Characters of the whole stored text."),
                "last_modified": _MAYBE_TEXT,
                "language": _MAYBE_TEXT,
            },
            ("field", "start", "end", "length"),
        ),
        "truncated": _TRUNCATED,
        "next_start": _MAYBE_NUMBER,
    },
    ("id", "title", "text", "url", "metadata", "truncated"),
)

_ANSWER: Mapping[str, object] = {
    "answer": _text("The answer; marks such as [1] or [title] cite the documents."),
    "citations": _list(_CITATION, "One for each mark, in order, with the place that proves it."),
    "documents": _list(_CITED, "The documents whose text the model received, best first."),
    "finish_reason": _text("stop, or length if the answer was cut off."),
    "truncated": _TRUNCATED,
    "partial_results": _PARTIAL,
    "support": _SUPPORT,
    "activity": _list({"type": "object"}, "The steps that were taken, in order; where the effort is more than none."),
    "spent": {"type": "object", "description": "What the steps took together."},
}

_ALWAYS = ("answer", "citations", "documents", "finish_reason", "truncated")
_COST = _object(
    {
        "calls": _number("Most calls of the language model."),
        "pieces": _number("Pieces that the documents were worked on in."),
        "characters": _number("Characters of the documents."),
        "strategy": _text("refine, mapreduce, together, or extractive: without a model."),
    },
    ("calls", "pieces", "characters", "strategy"),
)
_WORK: Mapping[str, object] = {
    **_ANSWER,
    "skipped": _list(
        _object({"id": _text("As it was given."), "reason": _text("notFound, empty or overLimit.")}, ("id", "reason")),
        "Documents that were named and are not in the result.",
    ),
    "estimate": {**_COST, "description": "What the work took at most."},
}
_LANGUAGE = _text("Language of the text, such as en or fr. Default: that of the documents.", maxLength=MAX_LANGUAGE)

ANSWER = Tool(
    "answer",
    "Answer a question from documents",
    "Answer a question from the organisation's documents that the current user may read, with citations that were "
    "checked against the documents. Request progress to receive the answer's words as they are written.",
    {
        "question": _text("The question.", **_QUESTION),
        "effort": _text(
            "How many steps the search takes. none: one search. minimal: up to three searches, no model; the answer "
            "consists of sentences from the documents. low: a model plans the searches. medium: the model plans again "
            "after it has seen the first results. Default: the service's setting.",
            enum=list(EFFORTS),
        ),
        "history": _list(
            _object(
                {"role": _text("Author of the message.", enum=list(ROLES)), "content": _text("What.")},
                ("role", "content"),
            ),
            "The conversation before the question, the oldest turn first.",
        ),
        "filters": _FILTERS,
    },
    ("question",),
    _ANSWER,
    _ALWAYS,
)

CHECK = Tool(
    "check",
    "Check a text against documents",
    "Check, sentence by sentence, whether given documents prove a text. No language model is used: a sentence is "
    "proved only if its facts, or the words that it quotes, are in a document.",
    {
        "text": _text("The text.", minLength=1, maxLength=MAX_CHECKED_CHARS),
        "document_ids": _list(
            _text("An id that search returned.", **_ID), "The documents.", minItems=1, maxItems=MAX_CHECKED_DOCUMENTS
        ),
    },
    ("text", "document_ids"),
    {
        "claims": _list(_CLAIM, "The sentences of the text that state something, in order."),
        "documents": _list(_DOCUMENT, "The documents that were read."),
        "not_found": _list(_text("An id."), "Ids for which this user has no document."),
        "truncated": _TRUNCATED,
    },
    ("claims", "documents", "not_found", "truncated"),
)

SUMMARIZE = Tool(
    "summarize",
    "Summarise a document",
    "Summarise one whole document, however long it is. Each sentence of the summary has a citation that was checked "
    "against the document. Use it in place of fetching a long document part by part.",
    {
        "id": _text("The document's id.", **_ID),
        "length": _text("How long: 3, 6 or 12 sentences. Default: medium.", enum=list(LENGTHS)),
        "language": _LANGUAGE,
    },
    ("id",),
    _WORK,
    _ALWAYS,
)

COMPARE = Tool(
    "compare",
    "Compare documents",
    "Put together what several documents say, of a question or as a whole: what they have in common and where they "
    "differ, with citations that were checked against them.",
    {
        "ids": _list(_text("An id that search returned.", **_ID), "The documents.", minItems=1, maxItems=MAX_COMPARED),
        "question": _text("What is to be compared.", maxLength=MAX_QUESTION_CHARS),
        "language": _LANGUAGE,
    },
    ("ids",),
    _WORK,
    _ALWAYS,
)

TOOLS: Mapping[str, Tool] = {tool.name: tool for tool in (SEARCH, FETCH, ANSWER, CHECK, SUMMARIZE, COMPARE)}

TEXTS: Mapping[str, Callable[[Settings], str]] = {
    "search": lambda settings: settings.mcp_search_description,
    "fetch": lambda settings: settings.mcp_fetch_description,
    "answer": lambda settings: settings.mcp_answer_description,
    "check": lambda settings: settings.mcp_check_description,
    "summarize": lambda settings: settings.mcp_summarize_description,
    "compare": lambda settings: settings.mcp_compare_description,
}
"""Where the administrator's text of a tool is."""
