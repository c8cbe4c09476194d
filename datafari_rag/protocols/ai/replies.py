"""The whole reply of Datafari 7's AI API, and the parts that its events share: sources, documents, conversation."""

from __future__ import annotations

from collections.abc import Sequence

from datafari_rag.core.answer.conversations import KEY, title_from
from datafari_rag.core.answer.output_filter import target_of
from datafari_rag.core.citations.labels import title_of
from datafari_rag.core.documents import Extract
from datafari_rag.core.events import Answer, Finished, Sources
from datafari_rag.protocols.chat_reply_parts import activity, citation, is_state_issued, partial, session_state, support
from datafari_rag.protocols.request import ReplyContext

Json = dict[str, object]

SOURCE_CHARS, STREAMED_CHARS, FOUND_CHARS = 200, 400, 300
"""Most text of a document in a reply, in an event, and in the list of a search."""


def content_of(answer: Answer, context: ReplyContext) -> Json:
    """Return the `content` of a good reply."""
    sources, finished = answer.sources, answer.finished
    work = context.ask.work
    content: Json = {"message": finished.text}
    if work is not None and work.kind == "search":
        return content | {"docs": found(sources.extracts)} | partial(sources)
    if work is not None and work.is_estimate:
        return content | about(sources)
    content |= conversation(context, finished)
    content["sources"] = [source(extract, SOURCE_CHARS) for extract in sources.extracts]
    return content | about(sources) | proofs(finished) | partial(sources)


def proofs(finished: Finished) -> Json:
    """Return what is known after the answer: its citations, a cut, how much is proved, and the steps it took."""
    cut: Json = {"finish_reason": "length"} if finished.finish_reason == "length" else {}
    return {
        "citations": [citation(one) for one in finished.citations],
        **cut,
        **support(finished),
        **activity(finished),
    }


def about(sources: Sources) -> Json:
    """Return which of the named documents were left out, and what the work costs; nothing where neither is known."""
    told: Json = {}
    if sources.skipped:
        told["skipped"] = [{"id": one.id, "reason": one.reason} for one in sources.skipped]
    cost = sources.estimate
    if cost is not None:
        told["estimate"] = {
            "calls": cost.calls,
            "pieces": cost.pieces,
            "characters": cost.chars,
            "strategy": cost.strategy,
        }
    return told


def source(extract: Extract, most_chars: int) -> Json:
    """Return one document of an answer, with the beginning of what the answer was made from."""
    document = extract.document
    text = extract.text if len(extract.text) <= most_chars else extract.text[:most_chars] + "…"
    return {"id": document.id, "title": title_of(document), "url": target_of(document), "content": text}


def found(extracts: Sequence[Extract]) -> list[Json]:
    """Return the documents of a search."""
    rows = [source(extract, FOUND_CHARS) for extract in extracts]
    return [{"docId": row.pop("id"), **row} for row in rows]


def conversation(context: ReplyContext, finished: Finished) -> Json:
    """
    Return the conversation's id and title, nothing without one (`chat.store.folder`, `chat.memory.enabled`).

    Where nothing is stored the id is the conversation: its last turns, signed for this user.
    """
    kept = finished.kept
    if kept is not None:
        failed: Json = {} if kept.failure is None else {"conversationError": kept.failure}
        return {"conversationId": kept.id, "title": kept.title, **failed}
    if context.ask.work is not None or context.ask.conversation is not None or not is_state_issued(context):
        return {}
    state = session_state(context, finished.text)
    issued = state.get(KEY) if isinstance(state, dict) else None
    return {"conversationId": issued, "title": title_from(context.ask.question)}
