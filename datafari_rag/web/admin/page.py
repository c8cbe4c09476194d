"""
`/admin`: the settings, what they are now, who changed them, and what a change would do; for `security.admins` alone.

Every POST carries this reader's own form token. Only rows that are declared for browsers can be changed here
(`core/settings/browser_guard.py`): nothing that decides who may see what, where anything is sent, or which file is
read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import orjson
from flask import Response, request

from datafari_rag.core.answer.prompt import Prompt
from datafari_rag.core.errors import BadRequest, NotAllowed, NotFound, RagError
from datafari_rag.core.messages import message, translated
from datafari_rag.core.settings.browser_guard import refusals
from datafari_rag.core.settings.parsing import Problem
from datafari_rag.ports import Ending
from datafari_rag.protocols.request import Incoming
from datafari_rag.web.admin.charts import charts_of, counts_of
from datafari_rag.web.admin.form import Shown, changes_in, groups_of
from datafari_rag.web.admin.form_notes import AT_START
from datafari_rag.web.admin.status import state_of
from datafari_rag.web.api.answers import Desk, answered, json_response
from datafari_rag.web.failure import failure
from datafari_rag.web.json_bytes import plain
from datafari_rag.web.pages.compressing import compressed
from datafari_rag.web.pages.messages import admin_words, chart_names, script_words
from datafari_rag.web.pages.reader import Reader, reader_of
from datafari_rag.web.pages.rendering import failure_page, page
from datafari_rag.web.pages.search import PAGE
from datafari_rag.web.request_values import headers_of
from datafari_rag.web.runtime import Keeper, Line
from datafari_rag.web.signing import TOKEN_FIELD, TOKEN_HEADER

Changes = Mapping[str, str | None]
MAX_BODY_BYTES = 1_000_000
HISTORY = 20


@dataclass(frozen=True, slots=True)
class Office:
    """An administrator at the settings file."""

    desk: Desk
    reader: Reader
    keeper: Keeper


def admin_page(desk: Desk) -> Response:
    """Return the page; anybody but an administrator gets the page of a refusal."""
    try:
        office = _office(desk)
    except RagError as error:
        return failure_page(desk, error)
    saved = request.args.get("saved", "")
    return _shown(office, Shown(office.keeper.written(), office.keeper.fixed()), saved=saved if saved.isdigit() else "")


def save(desk: Desk) -> Response:
    """Save what the form changed, or show it again with what is wrong."""
    try:
        office = _office(desk, is_form=True)
    except RagError as error:
        return failure_page(desk, error)
    written = office.keeper.written()
    changes = changes_in(request.form, written)
    if request.form.get("version") != _version(office.desk, written):
        stale = Problem(
            "", office.reader.translate("The file has changed in the meantime: review it, then save again.")
        )
        return _again(office, changes, (stale,))
    problems = problems_of(office, changes)
    if not problems and changes:
        problems = _saved(office, changes)
    if problems:
        return _again(office, changes, problems)
    later = "&later=1" if AT_START & changes.keys() else ""
    return Response(status=303, headers={"Location": f"/admin?saved={len(changes)}{later}"})


def check(desk: Desk) -> Response:
    """Return what is wrong with what was typed, as `datafari-rag check` would say it, by key."""
    return _as_json(desk, _checked)


def attempt(desk: Desk) -> Response:
    """Answer one question with the present settings and with those typed, both as the administrator himself."""
    return _as_json(desk, _attempted)


def probe(desk: Desk) -> Response:
    """Ask the model one short question; return how it ended and how long it took."""
    return _as_json(desk, _probed)


def now(desk: Desk) -> Response:
    """Return how the parts are and what was counted so far, over all workers; the page asks for it again and again."""
    try:
        office = _office(desk)
    except RagError as error:
        status, body = failure(error, desk.line().settings)
        return json_response(plain(body), status)
    state = [asdict(part) for part in state_of(desk, office.reader.translate)]
    exposition = desk.metrics.exposition()
    charts = asdict(charts_of(exposition, chart_names(office.reader.translate)))
    return json_response(plain({"state": state, "charts": charts, **asdict(counts_of(exposition))}))


def problems_of(office: Office, changes: Changes) -> tuple[Problem, ...]:
    """Return what forbids *changes*: what no browser may do, before anything else is looked at, then new errors."""
    refused = refusals(changes)
    if refused or not changes:
        return refused
    before = {(problem.key, problem.message) for problem in office.keeper.preview({}).problems}
    after = office.keeper.preview(changes)
    return tuple(
        problem
        for problem in after.problems
        if problem.severity == "error" and (problem.key, problem.message) not in before
    )


def _version(desk: Desk, written: Mapping[str, str]) -> str:
    """Return a word that changes with the file's settings; without our secret nobody can try texts against it."""
    return desk.signer.digest("settings", orjson.dumps(sorted(written.items())))


def _office(desk: Desk, *, is_form: bool = False) -> Office:
    """Return the administrator who sent this. Raises: NotAllowed, NotFound, or as `reader_of`."""
    reader = reader_of(desk)
    if not reader.is_admin:
        raise NotAllowed
    if desk.keeper is None:
        raise NotFound
    if is_form:
        request.max_content_length = MAX_BODY_BYTES
        headers = headers_of(request)
        token = headers.get(TOKEN_HEADER) or request.form.get(TOKEN_FIELD)
        if not desk.signer.is_own_form(reader.name or "", token, headers):
            raise NotAllowed
    return Office(desk, reader, desk.keeper)


def _saved(office: Office, changes: Changes) -> tuple[Problem, ...]:
    try:
        return office.keeper.save(changes, office.reader.name or "")
    except OSError:
        words = office.reader.translate("The settings file cannot be written by this service: change it on the server.")
        return (Problem("", words),)


def _again(office: Office, changes: Changes, problems: tuple[Problem, ...]) -> Response:
    shown = Shown(office.keeper.written(), office.keeper.fixed(), changes, problems)
    return _shown(office, shown, status=422)


def _shown(office: Office, shown: Shown, *, saved: str = "", status: int = 200) -> Response:
    desk, translate = office.desk, office.reader.translate
    groups, history = groups_of(shown, translate), office.keeper.history()
    keys = {field.key for group in groups for field in group.fields}
    values = {
        "groups": groups,
        "version": _version(desk, shown.written),
        "file": office.keeper.name,
        "saved": saved,
        "is_later": "later" in request.args,
        "general": [translated(problem.message, translate) for problem in shown.problems if problem.key not in keys],
        "has_problems": bool(shown.problems),
        "state": state_of(desk, translate),
        "charts": charts_of(desk.metrics.exposition(), chart_names(translate)),
        "history": history[:HISTORY],
        "latest": latest_of(history),
        "setup": orjson.dumps({"words": {**script_words(translate), **admin_words(translate)}}).decode(),
    }
    return compressed(page(desk, office.reader, "admin.html", values, status=status))


def latest_of(history: Sequence[Mapping[str, Any]]) -> Mapping[str, Mapping[str, str]]:
    """Return for each key who changed it last on this page, and when; *history* has the newest first."""
    latest: dict[str, Mapping[str, str]] = {}
    for entry in history:
        for change in entry.get("changes", ()):
            latest.setdefault(str(change.get("key")), {"who": str(entry.get("who")), "at": str(entry.get("at"))})
    return latest


def _as_json(desk: Desk, make: Callable[[Office], Mapping[str, object]]) -> Response:
    try:
        return json_response(plain(make(_office(desk, is_form=True))))
    except RagError as error:
        status, body = failure(error, desk.line().settings)
        return json_response(plain(body), status)


def _checked(office: Office) -> Mapping[str, object]:
    written = office.keeper.written()
    changes = changes_in(request.form, written)
    problems = problems_of(office, changes)
    return {
        "changes": list(changes),
        "problems": [
            {"key": problem.key, "message": translated(problem.message, office.reader.translate)}
            for problem in problems
        ],
    }


def _attempted(office: Office) -> Mapping[str, object]:
    written = office.keeper.written()
    changes = changes_in(request.form, written)
    question = request.form.get("try:question", "").strip()
    problems = problems_of(office, changes)
    if problems:
        raise BadRequest(translated(problems[0].message, office.reader.translate), field=problems[0].key)
    present = office.desk.line()
    lines = {"present": present, "changed": office.keeper.trial(changes, present)}
    return {name: _one_answer(office.desk, line, question) for name, line in lines.items()}


def _one_answer(desk: Desk, line: Line, question: str) -> Mapping[str, object]:
    headers = headers_of(request)
    incoming = Incoming("/", {"q": (question,)}, headers=headers)
    began = line.parts.clock()
    response = answered(desk, PAGE, line, incoming=incoming, peer=request.remote_addr or "")
    took_ms = (line.parts.clock() - began) * 1000
    body: Mapping[str, object] = orjson.loads(response.get_data())
    return {**body, "model": response.headers.get("X-RAG-Model", ""), "id": desk.new_id(), "wholeMs": took_ms}


def _probed(office: Office) -> Mapping[str, object]:
    line = office.desk.line()
    began = line.parts.clock()
    prompt = Prompt("Say OK.", (), None, line.parts.new_nonce(), model=line.settings.rag_model, max_tokens=5)
    ending = next(said for said in line.parts.model.generate(prompt, is_streamed=False) if isinstance(said, Ending))
    took_ms = (line.parts.clock() - began) * 1000
    problem = translated(message(ending.failure.reason), office.reader.translate) if ending.failure else ""
    return {"problem": problem, "took_ms": round(took_ms)}
