"""
How an answer was made, in the four steps that the chat protocols name (contract §7).

Everybody sees the question, the query, the documents used and sizes. Scores, the prompt, the candidates with reasons,
the kind of filter, the endpoint and the timings are added for administrators; ACL values are never here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from datafari_rag.core.ask import Ask
from datafari_rag.core.documents import Candidate, Extract, Reranking, Retrieval, stored_span
from datafari_rag.core.events import Event, Finished, ModelFacts, Sources, Thought
from datafari_rag.core.model.prompt import Prompt, document_message
from datafari_rag.core.proof.labels import title_of

EventT = TypeVar("EventT", bound=Event)

TITLES = ("Original user query", "Generated search query", "Results", "Prompt")


@dataclass(frozen=True, slots=True)
class SearchAttempt:
    """One search that was run: the step's name, what was sent, how many hits this user may see."""

    name: str
    query: str
    total: int


@dataclass(frozen=True, slots=True)
class Trace:
    """What the line noted while it made an answer; *timings_ms* are the stages before the model."""

    ask: Ask
    language: str
    tried: tuple[SearchAttempt, ...]
    extracts: tuple[Extract, ...]
    prompt: Prompt | None = None
    candidates: tuple[Candidate, ...] = ()
    access: str = ""
    endpoint: str = ""
    timings_ms: tuple[tuple[str, float], ...] = ()
    found_by: Retrieval = "words"
    reranking: Reranking | None = None


def thoughts_for(trace: Trace, *, is_admin: bool) -> tuple[Thought, ...]:
    """Return the four steps, in order; an administrator's hold more."""
    ask = trace.ask
    about_question: dict[str, object] = {"language": trace.language, "format": ask.answer_format}
    if ask.overrides:
        about_question["overrides"] = dict(ask.overrides)
    if ask.ignored:
        about_question["ignored"] = list(ask.ignored)
    last = trace.tried[-1] if trace.tried else SearchAttempt("none", "", 0)
    about_query: dict[str, object] = {
        "has_vector": trace.found_by != "words",
        "use_semantic_captions": ask.wants_captions,
        "steps": [{"step": tried.name, "query": tried.query, "found": tried.total} for tried in trace.tried],
    }
    if is_admin:
        about_query["filter"] = trace.access
    return (
        Thought(TITLES[0], ask.question, about_question),
        Thought(TITLES[1], last.query, about_query),
        _results(trace, is_admin=is_admin),
        _prompt(trace, is_admin=is_admin),
    )


def thinking_in(facts: ModelFacts) -> tuple[Thought, ...]:
    """Return a step that says how long the model thought before it answered, and none of it; () where it did not."""
    if not facts.has_thoughts:
        return ()
    props = {"chars": facts.thought_chars, "tokens": facts.thought_tokens, "took_ms": round(facts.thought_ms)}
    return (Thought("Thinking", "The model thought before it answered.", props),)


def _results(trace: Trace, *, is_admin: bool) -> Thought:
    used = [_extract_row(extract, is_admin=is_admin) for extract in trace.extracts]
    props: dict[str, object] = {"documents_used": len(used)}
    if trace.reranking is not None:
        props["reranker"] = {"passages": trace.reranking.passages, "failure": trace.reranking.failure}
    if is_admin:
        props["candidates"] = [_reason(candidate) for candidate in trace.candidates]
        props["passages"] = [
            {
                "label": extract.label,
                "document_chars": len(extract.document.text),
                "spans": [
                    list(stored_span(extract.document, passage.start, passage.end)) for passage in extract.passages
                ],
            }
            for extract in trace.extracts
        ]
    return Thought(TITLES[2], used, props)


def _extract_row(extract: Extract, *, is_admin: bool) -> Mapping[str, object]:
    score = {"score": round(extract.document.score, 4)} if is_admin else {}
    return {
        "label": extract.label,
        "title": title_of(extract.document),
        "rank": extract.number,
        **score,
        "chars": len(extract.text),
    }


def _reason(candidate: Candidate) -> Mapping[str, object]:
    reason: dict[str, object] = {
        "id": candidate.document_id,
        "rank": candidate.rank,
        "score": round(candidate.score, 4),
        "verdict": candidate.verdict,
    }
    if candidate.start is not None:
        reason["start"], reason["end"] = candidate.start, candidate.end
    return reason


def _prompt(trace: Trace, *, is_admin: bool) -> Thought:
    prompt = trace.prompt
    if prompt is None:
        return Thought(TITLES[3], "No prompt was made.", {"documents": 0, "chars": 0})
    chars = sum(len(extract.text) for extract in prompt.extracts)
    props: dict[str, object] = {
        "documents": len(prompt.extracts),
        "document_chars": chars,
        "turns": len(prompt.history),
    }
    if not is_admin:
        return Thought(TITLES[3], f"{len(prompt.extracts)} documents, {chars} characters.", props)
    props |= {
        "model": prompt.model,
        "temperature": prompt.temperature,
        "max_tokens": prompt.max_tokens,
        "endpoint": trace.endpoint,
        "timings_ms": {name: round(took, 2) for name, took in trace.timings_ms},
    }
    messages = [f"system: {prompt.instructions}"] if prompt.instructions is not None else []
    messages += [f"{turn.role}: {turn.text}" for turn in prompt.history]
    messages += [f"user: {document_message(extract, prompt.nonce)}" for extract in prompt.extracts]
    return Thought(TITLES[3], [*messages, f"user: {prompt.question}"], props)


LEAST_SCORE = "minimum_search_score"
"""The override that compares scores, by its name in the chat dialects."""

NOT_FOR_ALL = "Not in use: only administrators see scores."


def ranked(event: EventT) -> EventT:
    """
    Return *event* with 1, 1/2, 1/3… as the scores of its documents, best first, and of the passages of each.

    Whether the model thought, and how long, is for administrators too.
    """
    if isinstance(event, Finished) and event.facts.has_thoughts:
        event = replace(event, facts=replace(event.facts, thought_chars=0, thought_ms=0.0, thought_tokens=None))
    if isinstance(event, (Sources, Finished)) and event.extracts:
        return replace(event, extracts=tuple(map(_ranked, event.extracts)))
    return event


def without_least_score(ask: Ask) -> Ask:
    """Return *ask* without a least score of the caller's: what passes one, tried often enough, is the score."""
    if ask.min_score is None:
        return ask
    return replace(ask, min_score=None, overrides={**ask.overrides, LEAST_SCORE: NOT_FOR_ALL})


def page_in_ranks(page: Mapping[str, object], start: int) -> dict[str, object]:
    """
    Return Solr's own JSON of a plain search without scores.

    A hit that has a `score` gets `rank` instead, its place among all hits: 1 is the first. *start* is how many hits
    precede this page.
    """
    response = page.get("response")
    if not isinstance(response, Mapping):
        return dict(page)
    rows = [_row(row, start + place) for place, row in enumerate(response["docs"], 1)]
    rest = {name: value for name, value in response.items() if name != "maxScore"}
    return {**page, "response": {**rest, "docs": rows}}


def _ranked(extract: Extract) -> Extract:
    best_first = sorted(range(len(extract.passages)), key=lambda place: -extract.passages[place].score)
    ranks = {place: rank for rank, place in enumerate(best_first, 1)}
    passages = tuple(replace(passage, score=1 / ranks[place]) for place, passage in enumerate(extract.passages))
    return replace(extract, document=replace(extract.document, score=1 / extract.number), passages=passages)


def _row(row: Mapping[str, object], rank: int) -> dict[str, object]:
    return {("rank" if name == "score" else name): (rank if name == "score" else value) for name, value in row.items()}
