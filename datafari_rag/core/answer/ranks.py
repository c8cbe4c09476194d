"""
Ranks in place of scores, for everybody but administrators.

A score counts how many documents hold a word, those included that its reader may not see: from one visible document
and its exact score the number of hidden ones with a word could be derived. A rank in a list reveals no number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from datafari_rag.core.ask import Ask
from datafari_rag.core.documents import Extract
from datafari_rag.core.events import Event, Finished, Sources

LEAST_SCORE = "minimum_search_score"
"""The override that compares scores, by its name in the chat dialects."""

NOT_FOR_ALL = "Not in use: only administrators see scores."


def ranked(event: Event) -> Event:
    """
    Return *event* with 1, 1/2, 1/3… as the scores of its documents, best first, and of the passages of each.

    Whether the model thought, and how long, is for administrators too.
    """
    if isinstance(event, Finished) and event.facts.thought_chars:
        event = replace(event, facts=replace(event.facts, thought_chars=0, thought_ms=0.0))
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
    kept = {name: value for name, value in response.items() if name != "maxScore"}
    return {**page, "response": {**kept, "docs": rows}}


def _ranked(extract: Extract) -> Extract:
    best_first = sorted(range(len(extract.passages)), key=lambda place: -extract.passages[place].score)
    ranks = {place: rank for rank, place in enumerate(best_first, 1)}
    passages = tuple(replace(passage, score=1 / ranks[place]) for place, passage in enumerate(extract.passages))
    return replace(extract, document=replace(extract.document, score=1 / extract.number), passages=passages)


def _row(row: Mapping[str, object], rank: int) -> dict[str, object]:
    return {("rank" if name == "score" else name): (rank if name == "score" else value) for name, value in row.items()}
