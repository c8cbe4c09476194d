"""
`/admin/questions`: which questions found no good answer, and rows of an evaluation file from them.

For `security.admins` alone, and of documents only what the one who reads the report may see now: each document of it
is looked up under their rights first, and what is not found is not there.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from flask import Response, request
from jinja2 import Environment, FileSystemLoader

from datafari_rag import resources
from datafari_rag.core.access import User
from datafari_rag.core.answer.question_report import (
    MOST_JOINED,
    QuestionGroup,
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
    words_in,
    words_shown,
)
from datafari_rag.core.documents import first_value
from datafari_rag.core.errors import BadRequest, EmbeddingError, NotAllowed, NotFound, SearchError
from datafari_rag.core.meaning.vectors import Vector
from datafari_rag.core.query.dates import iso_at, moment_of
from datafari_rag.core.query.proposals import total_of
from datafari_rag.core.query.search_request import Browse, Step
from datafari_rag.core.settings.table import fields_of
from datafari_rag.pipeline import browse
from datafari_rag.ports import Meaning
from datafari_rag.web.api.exchange import Exchange, wants_json
from datafari_rag.web.pages.messages import problem_names
from datafari_rag.web.pages.reader import reader_of
from datafari_rag.web.pages.rendering import page
from datafari_rag.web.responses import json_response, plain
from datafari_rag.web.runtime import ServiceSnapshot
from datafari_rag.web.user import is_admin

log = logging.getLogger(__name__)

USUAL_DAYS, MOST_DAYS = 7, 366
USUAL_OLD_DAYS, MOST_OLD_DAYS = 365, 36_500
MOST_LOOKED_UP, LOOKED_UP_TOGETHER = 5_000, 500
"""Documents of one report, those of the latest questions; all others count as not readable. And of one search."""

_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class MadeReport:
    """The *report* of the questions since *since_s*, and the words of its texts that no document has."""

    report: QuestionReport
    missing: frozenset[str]
    since_s: float
    old_days: int

    def as_json(self) -> dict[str, object]:
        """Return the report as programs read it, and as the page and the command show it."""
        report = self.report
        lists = {"citedOften": report.cited_often, "neverCited": report.never_cited, "citedOld": report.cited_old}
        return {
            "since": iso_at(self.since_s),
            "oldDays": self.old_days,
            "questions": report.questions,
            "groups": [self._group(one) for one in report.groups],
            "documents": {name: _counted(counts) for name, counts in lists.items()},
        }

    def _group(self, group: QuestionGroup) -> dict[str, object]:
        counts = {"key": group.key, "asked": group.asked, "people": group.people, "problems": dict(group.problems)}
        texts, missing = [text for text, _ in group.texts], words_in(group, self.missing)
        return {**counts, "texts": texts, "cited": _counted(group.cited), "missingWords": missing}


def questions(exchange: Exchange) -> Response:
    """Return the report as JSON or as a page. Raises: RagError."""
    made = _made(exchange)
    report = made.as_json()
    if wants_json():
        return json_response(plain(report))
    reader = reader_of(exchange.worker)
    days = _number("days", USUAL_DAYS, MOST_DAYS)
    shown = {"report": report, "names": problem_names(reader.translate), "days": days}
    return page(exchange.worker, reader, "questions.html", shown)


def standalone_page(made: MadeReport) -> str:
    """Return the report as an HTML file, which needs no service."""
    templates = Environment(loader=FileSystemLoader(Path(resources.__file__).parent / "templates"), autoescape=True)
    return templates.get_template("report.html").render(_=str, report=made.as_json(), names=problem_names(str))


def evaluation_file(exchange: Exchange) -> Response:
    """Return the group `group` of the report as rows of an evaluation file. Raises: RagError."""
    groups = {group.key: group for group in _made(exchange).report.groups}
    group = groups.get(request.args.get("group", ""))
    rows = [] if group is None else evaluation_rows(group)
    if not rows:
        raise NotFound("There is no such group, or too few people asked it.")
    response = Response(b"".join(plain(row) + b"\n" for row in rows), mimetype="application/x-ndjson")
    response.headers["Cache-Control"] = "no-store"
    response.headers["Content-Disposition"] = 'attachment; filename="questions.jsonl"'
    return response


def _made(exchange: Exchange) -> MadeReport:
    """Return the report that the request wants, for an administrator. Raises: RagError."""
    if not is_admin(exchange.user_name, exchange.settings):
        raise NotAllowed
    days = _number("days", USUAL_DAYS, MOST_DAYS)
    old_days = _number("old", USUAL_OLD_DAYS, MOST_OLD_DAYS)
    since_s = exchange.now_s - days * _DAY_S
    return report_for(exchange.user(), exchange.snapshot, since_s=since_s, old_days=old_days)


def report_for(user: User, snapshot: ServiceSnapshot, *, since_s: float, old_days: int) -> MadeReport:
    """
    Return the report as the administrator *user* may read it.

    Raises:
        NotFound: no questions are kept.
        Overloaded: they cannot be read.
        SearchError: the documents cannot be looked up under the reader's rights; without that nothing is said.
    """
    if snapshot.questions is None:
        raise NotFound("No questions are kept here: report.store is empty.")
    kept = snapshot.questions.since(since_s)
    readable = _readable(documents_in(kept)[:MOST_LOOKED_UP], user, snapshot)
    parts = snapshot.dependencies

    chars = sum(len(one.text) for one in kept)
    asked = parts.offload(lambda: asked_under(kept, readable.keys()), chars)
    groups = groups_of(asked)
    vectors, spread = _vectors(groups[:MOST_JOINED], parts.meaning)
    report = parts.offload(
        lambda: report_of(asked, joined(groups, vectors, spread), readable, old_days=old_days),
        chars + len(vectors) * sum(map(len, vectors)),
    )
    missing = {word for word, language in words_shown(report).items() if not _is_found(word, language, user, snapshot)}
    return MadeReport(report, frozenset(missing), since_s, old_days)


def _readable(ids: Sequence[str], user: User, snapshot: ServiceSnapshot) -> dict[str, ReadableDocument]:
    """Return those of *ids* that *user* may see now. Raises: SearchError."""
    fields = fields_of(snapshot.settings.solr_fields)
    found: dict[str, ReadableDocument] = {}
    for start in range(0, len(ids), LOOKED_UP_TOGETHER):
        some = tuple(ids[start : start + LOOKED_UP_TOGETHER])
        wanted = Browse(None, rows=len(some), ids=some, fields=(fields.id, fields.title, fields.last_modified))
        looked_up = browse(wanted, user, settings=snapshot.settings, dependencies=snapshot.dependencies)
        response = looked_up["response"]
        for row in response["docs"] if isinstance(response, Mapping) else ():
            identity = first_value(row, fields.id)
            if identity in some:
                changed = moment_of(first_value(row, fields.last_modified) or "")
                title = first_value(row, fields.title) or identity
                found[identity] = ReadableDocument(identity, title, None if changed is None else changed.timestamp())
    return found


def _is_found(word: str, language: str, user: User, snapshot: ServiceSnapshot) -> bool:
    """Say whether a document that *user* may see has *word*. Raises: SearchError."""
    wanted = Browse(word, rows=0, fields=("id",), language=language, step=Step("one word", (word,)))
    return total_of(browse(wanted, user, settings=snapshot.settings, dependencies=snapshot.dependencies)) > 0


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


def _counted(counts: Sequence[tuple[ReadableDocument, int]]) -> list[dict[str, object]]:
    return [{"id": one.id, "title": one.title, "count": count} for one, count in counts]


def _number(name: str, usual: int, most: int) -> int:
    text = request.args.get(name, str(usual))
    if not (text.isascii() and text.isdigit() and len(text) < 6 and 1 <= int(text) <= most):
        raise BadRequest(f"{name} must be a number from 1 to {most}.", field=name)
    return int(text)
