"""
Parts of a reply that several dialects have: data points, thoughts, citations, session state, names of the model.

Plain values only. A line that opens a stream is kept under a size that every known client takes in one piece.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import cast

from datafari_rag.core.answer import conversations
from datafari_rag.core.answer.output_filter import neutral
from datafari_rag.core.ask import ActivityStep, ChatMessage, StepKind
from datafari_rag.core.documents import Citation, Extract
from datafari_rag.core.errors import RagError
from datafari_rag.core.events import Finished, Sources, Thought
from datafari_rag.core.settings.table import ChatSettings
from datafari_rag.core.text.sizes import longest_prefix
from datafari_rag.protocols.request import ReplyContext

Json = dict[str, object]

MAX_LINE_BYTES = 130_000
"""The published client copies a line once for each piece it comes in: above about 200 kB it stalls (measured).
The rest is for the client's own session state, which may be in the same line."""

ACTIVITY_TYPES: Mapping[StepKind, str] = {
    "search": "searchIndex",
    "plan": "modelQueryPlanning",
    "answer": "answerSynthesis",
}
"""What each kind of step is called in a reply; as agentic retrieval services do."""

_CITATION_KEYS = tuple(field.name for field in fields(Citation) if field.name != "index")
_TOO_LARGE = "Left out: too large for one event of a stream."
_AS_BAD_REQUEST = frozenset({413, 422})


def opening_context(sources: Sources) -> Json:
    """Return the `context` that is known before the answer."""
    return {
        "data_points": data_points(sources.extracts),
        "thoughts": [thought(step) for step in sources.thoughts],
        "followup_questions": None,
        **partial(sources),
    }


def partial(sources: Sources) -> Json:
    """Return the keys for what readers should know of the documents, where it is so (contract §4)."""
    flags = {
        "partial_results": sources.is_partial,
        "few_words": sources.has_few_words,
        "other_language": sources.is_in_other_language,
    }
    return {key: True for key, is_so in flags.items() if is_so}


def of_work(sources: Sources) -> Json:
    """Return which of the named documents were left out, and what the work costs; nothing where neither is known."""
    keys: Json = {}
    if sources.skipped:
        keys["skipped"] = [{"id": document.id, "reason": document.reason} for document in sources.skipped]
    cost = sources.estimate
    if cost is not None:
        keys["estimate"] = {
            "calls": cost.calls,
            "pieces": cost.pieces,
            "characters": cost.chars,
            "strategy": cost.strategy,
        }
    return keys


def proofs(finished: Finished, sources: Sources) -> Json:
    """
    Return what is known after the answer: its citations, what to know of its *sources*, its support, and the steps.

    `support` says how much of the answer is proved, and what was changed for that; places are code points of the answer
    with real line breaks, as those of citations. `activity` and `spent` are there where one search was not all.
    """
    keys: Json = {"citations": [citation(mark) for mark in finished.citations], **partial(sources)}
    if (result := finished.support) is not None:
        keys["support"] = {
            "score": result.share,
            "checked": result.checked,
            "verified": result.verified,
            "quoted": result.quoted,
            "near": result.near,
            "policy": result.policy,
            "unsupported": [{"start": start, "end": end} for start, end in result.unsupported],
            "dropped": result.dropped,
            "replaced": "nothing" if result.is_replaced else None,
        }
    if finished.activity is not None:
        spent = finished.activity.spent
        keys["activity"] = [_activity_step(step) for step in finished.activity.steps]
        keys["spent"] = {
            "effort": finished.activity.effort,
            "searches": spent.searches,
            "modelCalls": spent.model_calls,
            "inputTokens": spent.input_tokens,
            "outputTokens": spent.output_tokens,
            "elapsedMs": round(spent.elapsed_ms, 2),
        }
    return keys


def _activity_step(step: ActivityStep) -> Json:
    keys: Json = {"type": ACTIVITY_TYPES[step.kind]}
    if step.kind == "search":
        keys |= {"query": neutral(step.text), "count": step.count, "searches": step.searches}
    if step.kind == "plan":
        keys |= {"queries": [neutral(query) for query in step.queries]}
    if step.model_calls:
        keys |= {"inputTokens": step.input_tokens, "outputTokens": step.output_tokens}
    keys["elapsedMs"] = round(step.elapsed_ms, 2)
    return keys if step.failure is None else keys | {"error": step.failure}


def closing_context(finished: Finished) -> Json:
    """Return the `context` that is known after the answer."""
    followups = None if finished.followups is None else list(finished.followups)
    # Citations come first, as `proofs` has them.
    beside = {"citations": None, "followup_questions": followups, "finish_reason": finished.finish_reason}
    return beside | proofs(finished, Sources(()))


def data_points(extracts: Sequence[Extract]) -> Json:
    """
    Return one `label: text` for each document, best first, on one line each.

    Clients split it at the first colon and space, which no label has.
    """
    texts = [f"{extract.label}: {' '.join(extract.text.splitlines())}" for extract in extracts]
    return {"text": texts, "images": [], "citations": [extract.label for extract in extracts]}


def thought(step: Thought) -> Json:
    """Return one step as the RAG chat protocols spell it."""
    return {
        "title": step.title,
        "description": step.description,
        "props": None if step.props is None else dict(step.props),
    }


def citation(mark: Citation) -> Json:
    """Return one resolved mark with all its keys (`asdict`, which copies what is in it, takes five times as long)."""
    return {key: getattr(mark, key) for key in _CITATION_KEYS} | {"missing": [*mark.missing], "added": [*mark.added]}


def memory_limits(chat: ChatSettings) -> conversations.StateLimits:
    """Return how much a memory may carry."""
    limits = chat.limits
    return conversations.StateLimits(limits.messages, limits.memory_bytes, float(limits.memory_age_s))


def session_state(context: ReplyContext, text: str | None) -> object:
    """
    Return the state that goes back: a signed memory of the last turns where one is issued, else the client's own.

    *text* is the whole answer; None before it is known, when no memory can be issued. A client with its own state
    keeps it.
    """
    if not is_state_issued(context):
        return context.ask.session_state
    if text is None:
        return None
    turns = (*context.ask.history, ChatMessage("user", context.ask.question), ChatMessage("assistant", text))
    limits = memory_limits(context.settings.chat)
    return conversations.issued(turns, context.signing, now_s=context.now_s, limits=limits)


def is_state_issued(context: ReplyContext) -> bool:
    """Return whether the state is made here, and known only after the answer."""
    state = context.ask.session_state
    return context.settings.chat.memory_enabled and (state is None or conversations.is_ours(state))


def completion_head(context: ReplyContext, kind: str) -> Json:
    """Return how a completion, or a chunk of one, begins: by the id, time and name that the model gave, else ours."""
    facts = context.facts
    return {
        "id": facts.id or f"chatcmpl-{context.id}",
        "object": kind,
        "created": facts.created or int(context.now_s),
        "model": facts.name or context.ask.model or context.settings.rag.model,
    }


def status_of(error: RagError) -> int:
    """Return the HTTP status on the chat paths and /v1: what is wrong with the question is 400 (contract §4)."""
    return 400 if error.code in _AS_BAD_REQUEST and error.label in ("noQuery", "queryTooLong") else error.code


def dated_event(kind: str, data: Mapping[str, object], context: ReplyContext) -> Json:
    """Return one event of a stream as Datafari 7 has it: `{type, data, ts}`, the time in milliseconds."""
    now_s = context.clock() if context.clock is not None else context.now_s
    return {"type": kind, "data": dict(data), "ts": int(now_s * 1000)}


def size_of(line: Mapping[str, object]) -> int:
    """Return how many bytes *line* has when it is written with ASCII escapes."""
    return len(json.dumps(line, default=str))


def fitted_context(sources: Sources, *, room: int = MAX_LINE_BYTES) -> Json:
    """
    Return `opening_context` in at most about *room* bytes: large thoughts are left out first, then texts are cut alike.

    Labels, titles and the number of data points and thoughts stay.
    """
    whole = opening_context(sources)
    if size_of(whole) <= room:
        return whole
    each = room // (4 * max(1, len(sources.thoughts)))
    lighter = whole | {"thoughts": [_lightened(thought(step), each) for step in sources.thoughts]}
    if size_of(lighter) <= room:
        return lighter
    points = data_points(sources.extracts)
    texts = cast("list[str]", points["text"])
    rest = room - size_of(lighter | {"data_points": points | {"text": []}})
    share = rest // max(1, len(texts)) - 4
    return lighter | {"data_points": points | {"text": [_cut(text, share) for text in texts]}}


def _lightened(step: Json, room: int) -> Json:
    if size_of(step) <= room:
        return step
    props = step["props"] if isinstance(step["props"], dict) and size_of(step["props"]) <= room // 2 else {}
    return {**step, "description": _TOO_LARGE, "props": {**props, "is_shortened": True}}


def _cut(text: str, room: int) -> str:
    """Return the longest head of *text* that has at most *room* bytes when escaped."""
    if len(json.dumps(text)) <= room:
        return text
    return text[: longest_prefix(text, room, lambda head: len(json.dumps(head)) + 8, room)] + " …"
