"""
The tools that agents may call, one row each: their names, their texts, and the records of what they take and give.

The schemas that agents see are those of the records by which arguments are read. What a tool does is the edge's
(`web/api/mcp.py`). Every tool only reads, and reads as its caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from msgspec import UNSET, Struct, UnsetType

from datafari_rag.core.ask import (
    MAX_QUESTION_CHARS,
    Ask,
    ChatMessage,
    DocumentWork,
    Restriction,
    TokenBudget,
    WantedEffort,
    effort_of,
)
from datafari_rag.core.errors import BadRequest
from datafari_rag.core.query.filter_queries import MAX_FILTER_CHARS, facets_of, restriction_of
from datafari_rag.core.settings.checks import CONTROL
from datafari_rag.core.settings.table import Settings, SolrSettings
from datafari_rag.core.text.language import language_code
from datafari_rag.protocols.chat import history_for
from datafari_rag.protocols.chat_reply_parts import Json
from datafari_rag.protocols.records import DocumentId, DocumentIds, Question, about, distinct, schema_of, text_at
from datafari_rag.protocols.request import Incoming

RESULT_TOKENS = 2_000
"""Most tokens of one result of a tool: what an agent can read of several calls beside its own work."""

PASSAGE_SHARE = 0.6
"""Share of a search's result that its passages may take; the rest is for ids, titles, addresses and places."""

PASSAGE_TOKENS = 300
"""Most tokens of one passage of a search's result."""

MAX_ROWS = 50
MAX_CHECKED_CHARS = 20_000
"""Longest text that is checked against documents."""

MAX_CHECKED_DOCUMENTS = 10
MAX_COMPARED = 20
"""Most documents that are named for one comparison; `synthesis.maxFiles` of them are read."""

MAX_FILTERS = 20
MAX_TURNS = 100
MAX_LANGUAGE = 20
MAX_START = 2_000_000_000

READ_ONLY = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}

_IDS = {"must": "a list of ids of documents"}

Filters = Annotated[
    dict[str, str],
    about(
        "Narrows the search: a field and its value, or a range such as [2024-01-01T00:00:00Z TO *].",
        max_length=MAX_FILTERS,
    ),
]
Language = Annotated[
    str,
    about("Language of the text, such as en or fr. Default: that of the documents.", max_length=MAX_LANGUAGE),
]


class Narrowed(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What narrows a search."""

    filters: Filters = {}
    documents: Annotated[
        DocumentIds | UnsetType,
        about("The only documents to search, by their ids. An empty list finds nothing. Default: all."),
    ] = UNSET

    def narrowing(self, solr: SolrSettings) -> dict[str, Any]:
        """Return these filters and documents as an ask has them. Raises: BadRequest."""
        documents = None if self.documents is UNSET else distinct(self.documents)
        return {"restrictions": restrictions_of(self.filters, facets_of(solr)), "documents": documents}


class SearchArguments(Narrowed, frozen=True, forbid_unknown_fields=True):  # noqa: D101 # the row has its text
    query: Annotated[Question, about("The question, or the words to look for.")]
    rows: Annotated[int, about("Maximum number of documents.", ge=1, le=MAX_ROWS)] = 10

    def ask(self, settings: Settings) -> Ask:
        """Return what is searched: short passages of many documents. Raises: BadRequest."""
        budget = TokenBudget(int(RESULT_TOKENS * PASSAGE_SHARE), PASSAGE_TOKENS, self.rows)
        return Ask(self.query, token_budget=budget, max_documents=self.rows, **self.narrowing(settings.solr))


class FetchArguments(Struct, frozen=True, forbid_unknown_fields=True):  # noqa: D101 # as above
    id: Annotated[DocumentId, about("The document's id.")]
    start: Annotated[int, about("First character to read, in code points.", ge=0, le=MAX_START)] = 0
    end: Annotated[int, about("The character to stop before.", ge=0, le=MAX_START)] = MAX_START
    field: Annotated[
        Literal["exactContent", "preview_content"] | UnsetType,
        about("The field to read. Absent: the field that answers are made from."),
    ] = UNSET
    max_tokens: Annotated[
        int, about("Maximum number of tokens of text, within the limit of the service.", ge=1, le=MAX_START)
    ] = MAX_START


class Turn(Struct, frozen=True):
    """One message of a conversation."""

    role: Annotated[Literal["user", "assistant"], about("Author of the message.")]
    content: Annotated[str, about("Text of the message.")]


class AnswerArguments(Narrowed, frozen=True, forbid_unknown_fields=True):  # noqa: D101 # as above
    question: Annotated[Question, about("The question.")]
    effort: Annotated[
        WantedEffort | UnsetType,
        about(
            "How many steps the search takes. none: one search. minimal: up to three searches, no model; the answer "
            "consists of sentences from the documents. low: a model plans the searches. medium: as low. Default: the "
            "service's setting."
        ),
    ] = UNSET
    history: Annotated[
        list[Turn],
        about("The conversation before the question, the oldest turn first.", max_length=MAX_TURNS),
    ] = []

    def ask(self, incoming: Incoming, settings: Settings, *, is_streamed: bool) -> Ask:
        """Return the question. Raises: BadRequest, ContextTooLong."""
        effort, unread = effort_of(None if self.effort is UNSET else self.effort)
        said = [(turn.role, text_at(f"history[{n}].content", turn.content)) for n, turn in enumerate(self.history)]
        return Ask(
            question=text_at("question", self.question),
            accept_language=incoming.headers.get("accept-language"),
            history=history_for(
                [ChatMessage(*turn) for turn in said], self.question, incoming, llm=settings.llm, chat=settings.chat
            ),
            effort=effort,
            ignored=unread,
            is_streamed=is_streamed,
            **self.narrowing(settings.solr),
        )


class CheckArguments(Struct, frozen=True, forbid_unknown_fields=True):  # noqa: D101 # as above
    document_ids: Annotated[
        list[Annotated[DocumentId, about("An id that search returned.")]],
        about("The documents.", min_length=1, max_length=MAX_CHECKED_DOCUMENTS, extra=_IDS),
    ]
    text: Annotated[str, about("The text.", max_length=MAX_CHECKED_CHARS)]


class SummarizeArguments(Struct, frozen=True, forbid_unknown_fields=True):  # noqa: D101 # as above
    id: Annotated[DocumentId, about("The document's id.")]
    length: Annotated[Literal["short", "medium", "long"], about("How long: 3, 6 or 12 sentences.")] = "medium"
    language: Language = ""

    def ask(self, incoming: Incoming, settings: Settings, *, is_streamed: bool) -> Ask:
        """Return the work. Raises: BadRequest."""
        work = DocumentWork("summarize", self.length)
        return Ask("", language=_code_of(self.language), document_ids=(self.id,), work=work, is_streamed=is_streamed)


class CompareArguments(Struct, frozen=True, forbid_unknown_fields=True):  # noqa: D101 # as above
    ids: Annotated[
        list[Annotated[DocumentId, about("An id that search returned.")]],
        about("The documents.", min_length=1, max_length=MAX_COMPARED, extra=_IDS),
    ]
    question: Annotated[
        str,
        about("What is to be compared.", max_length=MAX_QUESTION_CHARS, extra={"too long": True}),
    ] = ""
    language: Language = ""

    def ask(self, incoming: Incoming, settings: Settings, *, is_streamed: bool) -> Ask:
        """Return the work. Raises: BadRequest."""
        is_bare = not self.question.strip()
        return Ask(
            "" if is_bare else text_at("question", self.question),
            accept_language=None if is_bare else incoming.headers.get("accept-language"),
            language=_code_of(self.language),
            document_ids=distinct(self.ids),
            work=DocumentWork("synthesize"),
            is_streamed=is_streamed,
        )


def _code_of(language: str) -> str | None:
    code = language_code(language)
    if language and code is None:
        raise BadRequest("language must be a code such as en or fr.", field="language")
    return code


def restrictions_of(filters: Mapping[str, str], facets: frozenset[str]) -> tuple[Restriction, ...]:
    """Return what narrows the search: a value or a range `[a TO b]` for some of *facets*. Raises: BadRequest."""
    restrictions = []
    for field, value in filters.items():
        if field not in facets:
            raise BadRequest(f"filters takes these fields: {', '.join(sorted(facets)) or 'none'}.", field="filters")
        if not 0 < len(value) <= MAX_FILTER_CHARS or CONTROL.search(value):
            raise BadRequest(f"Each part of filters must have 1 to {MAX_FILTER_CHARS} characters.", field="filters")
        is_range = value.startswith("[") and value.endswith("]")
        ranged = restriction_of(f"{field}:{value}", facets) if is_range else None
        restrictions.append(ranged or Restriction(field, value=value))
    return tuple(restrictions)


class _NamedDocument(TypedDict):
    id: Annotated[str, about("For fetch and check.")]
    title: Annotated[str, about("Its title.")]
    url: Annotated[str, about("Where a person can open it.")]


class _CitedDocument(_NamedDocument):
    label: Annotated[str, about("What a mark in the answer may call it.")]


class _PlaceOfText(TypedDict):
    field: Annotated[str, about("The field whose stored text is meant.")]
    start: Annotated[int, about("First character, in code points of the stored text.")]
    end: Annotated[int, about("The character after the last one.")]


class _FoundPassage(_PlaceOfText):
    text: Annotated[str, about("The passage.")]


class _FoundDocument(_NamedDocument):
    last_modified: NotRequired[Annotated[str | None, about("When it was changed last, in ISO 8601.")]]
    passages: Annotated[list[_FoundPassage], about("The passages that answer the query best.")]


class _Partial(TypedDict):
    truncated: Annotated[bool, about("Something was left out because the result was too large.")]
    partial_results: NotRequired[
        Annotated[bool, about("A part of the index did not respond: there may be better documents.")]
    ]


class _SearchOutput(_Partial):
    results: Annotated[list[_FoundDocument], about("The documents, best first.")]


class _FetchedPlace(_PlaceOfText):
    length: Annotated[int, about("Characters of the whole stored text.")]
    last_modified: NotRequired[Annotated[str | None, about("When the document was changed last, in ISO 8601.")]]
    language: NotRequired[Annotated[str | None, about("Its language, as two letters.")]]


class _FetchOutput(_NamedDocument):
    text: Annotated[str, about("The stored text from start to end.")]
    metadata: Annotated[_FetchedPlace, about("Where the text is in the document.")]
    truncated: Annotated[bool, about("There is more of the text.")]
    next_start: NotRequired[Annotated[int | None, about("The start of the next call; null at the end.")]]


class _ShownCitation(TypedDict):
    label: Annotated[str, about("The document's label in the answer.")]
    status: Annotated[
        Literal["verified", "quoted", "near", "unsupported", "unknown"],
        about("How far the document proves it: in these words, in part, or much the same."),
    ]
    document_id: NotRequired[Annotated[str | None, about("The document; null where the mark names none.")]]
    title: NotRequired[Annotated[str | None, about("The document's title.")]]
    url: NotRequired[Annotated[str | None, about("Where a person can open it.")]]
    field: NotRequired[Annotated[str | None, about("The field whose stored text is quoted.")]]
    start: NotRequired[Annotated[int | None, about("Where the quote begins in it, in code points.")]]
    end: NotRequired[Annotated[int | None, about("Where the quote ends in it.")]]
    quote: NotRequired[Annotated[str | None, about("Whole statements of the document.")]]
    context: NotRequired[Annotated[str | None, about("What introduces them: a line above a list, a header.")]]
    missing: NotRequired[Annotated[list[str], about("Words of a near sentence that the quote lacks.")]]
    added: NotRequired[Annotated[list[str], about("Words of the quote that a near sentence lacks.")]]
    answer_start: NotRequired[Annotated[int, about("Where the mark begins in the answer.")]]
    answer_end: NotRequired[Annotated[int, about("Where the mark ends in the answer.")]]


class _UnprovedSentence(TypedDict):
    start: Annotated[int, about("Start of the sentence, in code points.")]
    end: Annotated[int, about("End of the sentence, exclusive, in code points.")]


class _ShownSupport(TypedDict):
    """How much of what the model wrote the documents prove."""

    score: Annotated[float | None, about("The share that is verified, null if no sentence states a fact.")]
    checked: Annotated[int, about("How many sentences state a fact.")]
    verified: Annotated[int, about("How many of them are word for word in a document.")]
    quoted: Annotated[int, about("How many are a part of a statement, word for word.")]
    near: Annotated[int, about("How many say much the same as a document.")]
    policy: Annotated[str, about("mark or drop: what is done with the others.")]
    unsupported: Annotated[list[_UnprovedSentence], about("The sentences of the answer that no document proves.")]
    dropped: Annotated[int, about("How many sentences were left out.")]
    replaced: Annotated[str | None, about("nothing: all was left out, and the answer says that nothing was found.")]


class _AnswerOutput(_Partial):
    answer: Annotated[str, about("The answer; marks such as [1] or [title] cite the documents.")]
    citations: Annotated[list[_ShownCitation], about("One for each mark, in order, with the place that proves it.")]
    documents: Annotated[list[_CitedDocument], about("The documents whose text the model received, best first.")]
    finish_reason: Annotated[str, about("stop, or length if the answer was cut off.")]
    support: NotRequired[_ShownSupport]
    activity: NotRequired[
        Annotated[
            list[dict[str, Any]],
            about("The steps that were taken, in order; where the effort is more than none."),
        ]
    ]
    spent: NotRequired[Annotated[dict[str, Any], about("What the steps took together.")]]


class _LeftOut(TypedDict):
    id: Annotated[str, about("As it was given.")]
    reason: Annotated[str, about("notFound, empty or overLimit.")]


class _CostOfWork(TypedDict):
    """What the work took at most."""

    calls: Annotated[int, about("Most calls of the language model.")]
    pieces: Annotated[int, about("Pieces that the documents were worked on in.")]
    characters: Annotated[int, about("Characters of the documents.")]
    strategy: Annotated[str, about("refine, together, or extractive: without a model.")]


class _WorkOutput(_AnswerOutput):
    skipped: NotRequired[Annotated[list[_LeftOut], about("Documents that were named and are not in the result.")]]
    estimate: NotRequired[_CostOfWork]


class _ProvingPlace(_PlaceOfText):
    document_id: Annotated[str, about("The document that gives the status.")]
    quote: Annotated[str, about("Whole statements of the document.")]
    context: Annotated[str | None, about("What introduces them: a line above a list, the header of a table.")]
    missing: Annotated[list[str], about("Words of a near sentence that the place lacks.")]
    added: Annotated[list[str], about("Words of the place that a near sentence lacks.")]


class _CheckedClaim(TypedDict):
    text: Annotated[str, about("The sentence.")]
    start: Annotated[int, about("Where it begins in the text that was checked, in code points.")]
    end: Annotated[int, about("Where it ends there.")]
    status: Annotated[
        Literal["verified", "quoted", "near", "unsupported"],
        about(
            "verified: whole statements of a document, word for word. quoted: a part of one, word for word: read the "
            "rest. near: a document says much the same, with other words. unsupported: none of these."
        ),
    ]
    places: Annotated[list[_ProvingPlace], about("The places that give the status, one for each document.")]


class _CheckOutput(TypedDict):
    claims: Annotated[list[_CheckedClaim], about("The sentences of the text that state something, in order.")]
    documents: Annotated[list[_NamedDocument], about("The documents that were read.")]
    not_found: Annotated[list[str], about("Ids for which this user has no document.")]
    truncated: Annotated[bool, about("Something was left out because the result was too large.")]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: *takes* is the record of its arguments, *gives* that of its result."""

    title: str
    about: str
    takes: type[Struct]
    gives: type


TOOLS: dict[str, Tool] = {
    "search": Tool(
        "Search documents",
        "Search the organisation's documents that the current user may read. Returns the best documents with the "
        "passages that match the query and their places. Use fetch with a document's id to read more of it.",
        SearchArguments,
        _SearchOutput,
    ),
    "fetch": Tool(
        "Read a document",
        "Read the stored text of one document by the id that search returned. A long document is returned in parts: "
        "call again with start set to next_start.",
        FetchArguments,
        _FetchOutput,
    ),
    "answer": Tool(
        "Answer a question from documents",
        "Answer a question from the organisation's documents that the current user may read, with citations that were "
        "checked against the documents. Request progress to receive the answer's words as they are written.",
        AnswerArguments,
        _AnswerOutput,
    ),
    "check": Tool(
        "Check a text against documents",
        "Check, sentence by sentence, whether given documents prove a text. No language model is used: a sentence is "
        "proved only if its facts, or the words that it quotes, are in a document.",
        CheckArguments,
        _CheckOutput,
    ),
    "summarize": Tool(
        "Summarise a document",
        "Summarise one whole document, however long it is. Each sentence of the summary has a citation that was "
        "checked against the document. Use it in place of fetching a long document part by part.",
        SummarizeArguments,
        _WorkOutput,
    ),
    "compare": Tool(
        "Compare documents",
        "Put together what several documents say, of a question or as a whole: what they have in common and where "
        "they differ, with citations that were checked against them.",
        CompareArguments,
        _WorkOutput,
    ),
}


@cache
def listed() -> list[Json]:
    """Return every tool as `tools/list` has it; made once."""
    return [
        {
            "name": name,
            "title": tool.title,
            "description": tool.about,
            "inputSchema": schema_of(tool.takes),
            "outputSchema": schema_of(tool.gives),
            "annotations": {"title": tool.title, **READ_ONLY},
        }
        for name, tool in TOOLS.items()
    ]
