"""
`/admin/questions`: which questions found no good answer, and rows of an evaluation file from them.

For `security.admins` alone, and of documents only what the one who reads the report may see now: each document of it
is looked up under their rights first, and what is not found is not there.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from flask import Response, request
from jinja2 import Environment, FileSystemLoader

from datafari_rag import resources
from datafari_rag.core.access import User
from datafari_rag.core.accounts import BY, CostTotal, days_before, money_text, totals
from datafari_rag.core.answer.question_report import (
    MOST_JOINED,
    QuestionReport,
    ReadableDocument,
    SameWords,
    asked_under,
    documents_in,
    evaluation_rows,
    groups_of,
    joined,
    report_of,
    text_of,
)
from datafari_rag.core.documents import first_value
from datafari_rag.core.errors import BadRequest, EmbeddingError, NotAllowed, NotFound, SearchError
from datafari_rag.core.query.dates import moment_of
from datafari_rag.core.query.proposals import total_of
from datafari_rag.core.search_request import Browse, Step
from datafari_rag.core.settings.table import fields_of
from datafari_rag.core.vectors import Vector
from datafari_rag.pipeline import browse
from datafari_rag.ports import Meaning
from datafari_rag.web.api.exchange import Exchange, wants_json
from datafari_rag.web.pages.messages import cost_names, problem_names
from datafari_rag.web.pages.rendering import page, reader_of
from datafari_rag.web.request_values import number_wanted
from datafari_rag.web.responses import json_response, plain
from datafari_rag.web.runtime import ServiceSnapshot
from datafari_rag.web.user import is_admin

log = logging.getLogger(__name__)

USUAL_DAYS, MOST_DAYS = 7, 366
USUAL_OLD_DAYS, MOST_OLD_DAYS = 365, 36_500
MOST_LOOKED_UP, LOOKED_UP_TOGETHER = 5_000, 500
"""Documents of one report, those of the latest questions; all others count as not readable. And of one search."""


def questions(exchange: Exchange) -> Response:
    """Return the report as JSON or as a page. Raises: RagError."""
    report = _report(exchange).as_json()
    if wants_json():
        return json_response(plain(report))
    reader = reader_of(exchange.worker)
    days = number_wanted("days", USUAL_DAYS, MOST_DAYS)
    values = {"report": report, "names": problem_names(reader.translate), "days": days}
    return page(exchange.worker, reader, "questions.html", values)


def standalone_page(report: QuestionReport) -> str:
    """Return the report as an HTML file, which needs no service."""
    templates = Environment(loader=FileSystemLoader(Path(resources.__file__).parent / "templates"), autoescape=True)
    return templates.get_template("report.html").render(_=str, report=report.as_json(), names=problem_names(str))


def evaluation_file(exchange: Exchange) -> Response:
    """Return the group `group` of the report as rows of an evaluation file. Raises: RagError."""
    groups = {group.key: group for group in _report(exchange).groups}
    group = groups.get(request.args.get("group", ""))
    rows = [] if group is None else evaluation_rows(group)
    if not rows:
        raise NotFound("There is no such group, or too few people asked it.")
    headers = {"Cache-Control": "no-store", "Content-Disposition": 'attachment; filename="questions.jsonl"'}
    return Response([plain(row) + b"\n" for row in rows], mimetype="application/x-ndjson", headers=headers)


def _report(exchange: Exchange) -> QuestionReport:
    """Return the report that the request wants, for an administrator. Raises: RagError."""
    if not is_admin(exchange.user_name, exchange.settings.security):
        raise NotAllowed
    days = number_wanted("days", USUAL_DAYS, MOST_DAYS)
    old_days = number_wanted("old", USUAL_OLD_DAYS, MOST_OLD_DAYS)
    return report_for(exchange.user(), exchange.snapshot, since_s=exchange.now_s - days * 86_400, old_days=old_days)


def report_for(user: User, snapshot: ServiceSnapshot, *, since_s: float, old_days: int) -> QuestionReport:
    """
    Return the report as the administrator *user* may read it.

    Raises:
        NotFound: no questions are kept.
        Overloaded: they cannot be read.
        SearchError: the documents cannot be looked up under the reader's rights; without that nothing is said.
    """
    if snapshot.questions is None:
        raise NotFound("No questions are kept here: report.store is empty.")
    kept_questions = snapshot.questions.since(since_s)
    readable = _readable(documents_in(kept_questions)[:MOST_LOOKED_UP], user, snapshot)
    parts = snapshot.dependencies

    chars = sum(len(question.text) for question in kept_questions)
    rows = parts.offload(lambda: asked_under(kept_questions, readable.keys()), chars)
    groups = groups_of(rows)
    vectors, spread = _vectors(groups[:MOST_JOINED], parts.meaning)
    report = parts.offload(
        lambda: report_of(rows, joined(groups, vectors, spread), readable, since_s=since_s, old_days=old_days),
        chars + len(vectors) * sum(map(len, vectors)),
    )
    missing = {word for word, language in report.words.items() if not _is_found(word, language, user, snapshot)}
    return replace(report, missing=missing)


def _readable(ids: Sequence[str], user: User, snapshot: ServiceSnapshot) -> dict[str, ReadableDocument]:
    """Return those of *ids* that *user* may see now. Raises: SearchError."""
    fields = fields_of(snapshot.settings.solr.fields)
    by_id: dict[str, ReadableDocument] = {}
    for start in range(0, len(ids), LOOKED_UP_TOGETHER):
        some = tuple(ids[start : start + LOOKED_UP_TOGETHER])
        search = Browse(None, rows=len(some), ids=some, fields=(fields.id, fields.title, fields.last_modified))
        looked_up = browse(search, user, settings=snapshot.settings, dependencies=snapshot.dependencies)
        response = looked_up["response"]
        for row in response["docs"] if isinstance(response, Mapping) else ():
            identity = first_value(row, fields.id)
            if identity in some:
                changed = moment_of(first_value(row, fields.last_modified) or "")
                title = first_value(row, fields.title) or identity
                by_id[identity] = ReadableDocument(identity, title, None if changed is None else changed.timestamp())
    return by_id


def _is_found(word: str, language: str, user: User, snapshot: ServiceSnapshot) -> bool:
    """Say whether a document that *user* may see has *word*. Raises: SearchError."""
    search = Browse(word, rows=0, fields=("id",), language=language, step=Step("one word", (word,)))
    return total_of(browse(search, user, settings=snapshot.settings, dependencies=snapshot.dependencies)) > 0


def _vectors(groups: Sequence[SameWords], meaning: Meaning | None) -> tuple[Sequence[Vector], float | None]:
    """Return the vectors of *groups* and the spread of their model; neither where they cannot be had."""
    if meaning is None or not groups:
        return (), None
    try:
        spread = meaning.passages.spread(meaning.embedder.model)
        texts = [text_of(group)[0] for group in groups]
        return (meaning.embedder.embed(texts, "query"), spread) if spread else ((), None)
    except (EmbeddingError, SearchError) as error:
        log.warning("the report has groups by words alone: label=%s", error.label)
        return (), None


USUAL_COST_DAYS, MOST_COST_DAYS = 30, 731
MOST_ROWS = 1_000
"""Most rows that are shown; the command prints all."""


def costs(exchange: Exchange) -> Response:
    """Return the totals of the last `days` by `by`, as JSON or as a page. Raises: RagError."""
    worker = exchange.worker
    reader = reader_of(worker)
    if not reader.is_admin:
        raise NotAllowed
    ledger = worker.snapshot().accounts
    if ledger is None:
        raise NotFound("Nothing is counted here: limits.store is empty.")
    days = number_wanted("days", USUAL_COST_DAYS, MOST_COST_DAYS)
    by = next((key for key in BY if key == request.args.get("by", "user")), None)
    if by is None:
        raise BadRequest(f"by must be one of {', '.join(BY)}.", field="by")
    since = days_before(worker.now(), days)
    sums = totals(ledger.costs(since), by)
    if wants_json():
        return json_response(plain({"since": since, "by": by, "totals": [as_json(row) for row in sums]}))
    rows = [(row, money_text(row.money)) for row in sums[:MOST_ROWS]]
    values = {"rows": rows, "by": by, "all_by": BY, "names": cost_names(reader.translate), "days": days}
    return page(worker, reader, "costs.html", {**values, "left_out": len(sums) - len(rows)})


def as_json(total: CostTotal) -> dict[str, object]:
    """Return one total as programs read it; `money` is a decimal text, null where a price is missing."""
    return {
        "name": total.name,
        "calls": total.calls,
        "estimatedCalls": total.estimated,
        "inputTokens": total.use.input,
        "cachedTokens": total.use.cached,
        "outputTokens": total.use.output,
        "money": None if total.money is None else money_text(total.money),
    }
