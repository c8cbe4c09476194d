"""
`/admin`: the settings, what they are now, who changed them, and what a change would do; for `security.admins` alone.

Every POST carries this reader's own form token. Only rows that are declared for browsers can be changed here
(`core/settings/parsing.py`): nothing that decides who may see what, where anything is sent, or which file is
read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import orjson
from flask import Response, request

from datafari_rag.core.errors import BadRequest, ModelError, NotAllowed, NotFound
from datafari_rag.core.messages import message, translated
from datafari_rag.core.model.prompt import Prompt, texts_of
from datafari_rag.core.model.servers import words_of
from datafari_rag.core.settings.parsing import Problem, refusals
from datafari_rag.core.settings.reference import GROUPS
from datafari_rag.core.settings.row import SettingRow
from datafari_rag.core.settings.table import ROWS, secrets_of, without_password
from datafari_rag.ports import Ending
from datafari_rag.protocols.request import Incoming
from datafari_rag.web.admin.status import charts_of, counts_of, state_of
from datafari_rag.web.api.answers import answered
from datafari_rag.web.api.exchange import Exchange, WorkerContext
from datafari_rag.web.pages.messages import admin_words, chart_names, script_words
from datafari_rag.web.pages.rendering import PageReader, Translate, compressed, page, reader_of
from datafari_rag.web.pages.search import PAGE
from datafari_rag.web.request_values import headers_of
from datafari_rag.web.responses import json_response, plain
from datafari_rag.web.runtime import EditableSettings, ServiceSnapshot
from datafari_rag.web.user import TOKEN_FIELD, TOKEN_HEADER

AT_START = frozenset(
    {
        *("server.host", "server.port", "server.workers"),
        *("server.secret", "log.level", "log.format", "log.file"),
    }
)
"""Keys that are read once, when the service starts."""


def _notes(row: SettingRow, state: FormState, _: Translate) -> Iterator[str]:
    """Yield the notes at the field of a row."""
    if row.key in state.fixed:
        yield _("Set on the command line.")
        return
    if not row.is_for_browsers:
        yield _(
            "It affects rights, identity, addresses, secrets, files or the server, so it cannot be changed in a "
            "browser: edit the settings file, then run datafari-rag check."
        )
    elif "${" in state.file_values.get(row.key, ""):
        yield _(
            "It contains a reference, which stays as it is; a new reference can only be written in the settings file."
        )
    if row.key in AT_START:
        yield _("Takes effect when the service is restarted.")


EMPTY = "empty:"
"""Before a key: the box that says that the empty text is meant, and not the default."""


@dataclass(frozen=True, slots=True)
class Field:
    """
    One setting of the form.

    *text* is what its input holds: empty for a secret, and for a setting that the file does not have. *is_written*:
    the file has it. *is_fixed*: it cannot be changed here, and *notes* say why.
    *can_be_empty*: the empty text differs from the default, and *is_empty* says that it is the one in the file.
    """

    key: str
    help: str
    kind: str
    choices: tuple[str, ...]
    text: str
    default: str
    is_secret: bool
    is_written: bool
    is_changed: bool
    is_fixed: bool
    notes: tuple[str, ...]
    can_be_empty: bool
    is_empty: bool
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """The settings of one subject."""

    name: str
    title: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class FormState:
    """What the form is made of: the file's texts, the keys that the command line decides, and what was typed."""

    file_values: Mapping[str, str]
    fixed: Collection[str] = ()
    typed: Mapping[str, str | None] | None = None
    problems: Sequence[Problem] = ()


def groups_of(state: FormState, translate: Translate) -> tuple[Group, ...]:
    """Return every setting in the order of the table; typed values replace those of the file."""
    fields = [_field(row, state, translate) for row in ROWS]
    members = {name: tuple(field for field in fields if field.key.partition(".")[0] == name) for name in GROUPS}
    return tuple(Group(name, translate(title), members[name]) for name, title in GROUPS.items() if members[name])


def changes_in(form: Mapping[str, str], file_values: Mapping[str, str]) -> dict[str, str | None]:
    """
    Return what *form* (key → text) wants changed: key → new text, None for the default.

    A key that the form does not have stays as it is. One that is closed to browsers is a change when it is not what
    was shown of it, whatever the file has: it will be refused.
    """
    rows = [row for row in ROWS if row.key in form]
    new_texts = {row.key: _text_after(row, form, file_values) for row in rows if row.is_for_browsers}
    return {
        **{key: text for key, text in new_texts.items() if text != file_values.get(key)},
        **{
            row.key: form[row.key].strip()
            for row in rows
            if not row.is_for_browsers and form[row.key].strip() != _visible(row, file_values)
        },
    }


def _text_after(row: SettingRow, form: Mapping[str, str], file_values: Mapping[str, str]) -> str | None:
    """Return what the file is to have for *row* after *form*, None for nothing: the default."""
    text, present = form[row.key].strip(), file_values.get(row.key)
    if not text and f"{EMPTY}{row.key}" in form:
        return present if _is_empty(row, file_values) else ""
    if text == _visible(row, file_values) and not _is_empty(row, file_values):
        return present
    return text or None


def _field(row: SettingRow, state: FormState, translate: Translate) -> Field:
    key, default = row.key, row.default_text
    text, value = _visible(row, state.file_values), state.file_values.get(key, "").strip()
    is_empty = _is_empty(row, state.file_values)
    if state.typed is not None and key in state.typed and not row.is_secret:
        text = state.typed[key] or ""
    return Field(
        key=key,
        help=translate(row.help),
        kind=row.check.kind,
        choices=row.check.choices,
        text=text,
        default=default,
        is_secret=row.is_secret,
        is_written=key in state.file_values,
        is_changed=is_empty or (bool(value) and (row.is_secret or value != default)),
        is_fixed=key in state.fixed or not row.is_for_browsers,
        notes=tuple(_notes(row, state, translate)),
        can_be_empty=_can_be_empty(row),
        is_empty=is_empty,
        problems=tuple(translated(problem.message, translate) for problem in state.problems if problem.key == key),
    )


def _can_be_empty(row: SettingRow) -> bool:
    return row.check.is_optional and bool(row.default_text) and row.is_for_browsers


def _is_empty(row: SettingRow, file_values: Mapping[str, str]) -> bool:
    return _can_be_empty(row) and row.key in file_values and not file_values[row.key].strip()


def _visible(row: SettingRow, file_values: Mapping[str, str]) -> str:
    return "" if row.is_secret else without_password(file_values.get(row.key, "").strip())


Changes = Mapping[str, str | None]
MAX_BODY_BYTES = 1_000_000
HISTORY = 20


@dataclass(frozen=True, slots=True)
class AdminRequest:
    """An administrator at the settings file."""

    worker: WorkerContext
    reader: PageReader
    keeper: EditableSettings


def admin_page(exchange: Exchange) -> Response:
    """Return the page; a caller who is not an administrator gets the page of a refusal."""
    admin = _admin(exchange)
    saved = request.args.get("saved", "")
    return _page(
        admin, FormState(admin.keeper.file_values(), admin.keeper.fixed()), saved=saved if saved.isdigit() else ""
    )


def save(exchange: Exchange) -> Response:
    """Save what the form changed, or show it again with what is wrong."""
    admin = _admin(exchange, is_form=True)
    file_values = admin.keeper.file_values()
    changes = changes_in(request.form, file_values)
    if request.form.get("version") != _version(admin.worker, file_values):
        stale = Problem("", admin.reader.translate("The file has changed in the meantime: review it, then save again."))
        return _again(admin, changes, (stale,))
    problems = problems_of(admin, changes)
    if not problems and changes:
        try:
            problems = admin.keeper.save(changes, admin.reader.name or "")
        except OSError:
            translate = admin.reader.translate
            words = translate("The settings file cannot be written by this service: change it on the server.")
            problems = (Problem("", words),)
    if problems:
        return _again(admin, changes, problems)
    later = "&later=1" if AT_START & changes.keys() else ""
    return Response(status=303, headers={"Location": f"/admin?saved={len(changes)}{later}"})


def now(exchange: Exchange) -> Response:
    """Return how the parts are and what was counted so far, over all workers; the page asks for it again and again."""
    admin, worker = _admin(exchange), exchange.worker
    state = [asdict(part) for part in state_of(worker, admin.reader.translate)]
    exposition = worker.metrics.exposition()
    charts = asdict(charts_of(exposition, chart_names(admin.reader.translate)))
    return json_response(plain({"state": state, "charts": charts, **asdict(counts_of(exposition))}))


def problems_of(admin: AdminRequest, changes: Changes) -> tuple[Problem, ...]:
    """Return what forbids *changes*: what no browser may do, before anything else is looked at, then new errors."""
    refused = refusals(changes)
    if refused or not changes:
        return refused
    before = {(problem.key, problem.message) for problem in admin.keeper.preview({}).problems}
    after = admin.keeper.preview(changes)
    return tuple(
        problem
        for problem in after.problems
        if problem.severity == "error" and (problem.key, problem.message) not in before
    )


def _version(worker: WorkerContext, file_values: Mapping[str, str]) -> str:
    """Return a word that changes with the file's settings; only this service's secret makes it."""
    return worker.signer.digest("settings", orjson.dumps(sorted(file_values.items())))


def _admin(exchange: Exchange, *, is_form: bool = False) -> AdminRequest:
    """Return the administrator who sent this. Raises: NotAllowed, NotFound, or as `reader_of`."""
    worker = exchange.worker
    reader = reader_of(worker)
    if not reader.is_admin:
        raise NotAllowed
    if worker.keeper is None:
        raise NotFound
    if is_form:
        request.max_content_length = MAX_BODY_BYTES
        headers = headers_of(request)
        token = headers.get(TOKEN_HEADER) or request.form.get(TOKEN_FIELD)
        if not worker.signer.is_own_form(reader.name or "", token, headers):
            raise NotAllowed
    return AdminRequest(worker, reader, worker.keeper)


def _again(admin: AdminRequest, changes: Changes, problems: tuple[Problem, ...]) -> Response:
    return _page(admin, FormState(admin.keeper.file_values(), admin.keeper.fixed(), changes, problems), status=422)


def _page(admin: AdminRequest, state: FormState, *, saved: str = "", status: int = 200) -> Response:
    worker, translate = admin.worker, admin.reader.translate
    groups, history = groups_of(state, translate), admin.keeper.history()
    keys = {field.key for group in groups for field in group.fields}
    # Who changed each key last on this page, and when: the history has the newest first.
    latest: dict[str, Mapping[str, str]] = {}
    for entry in history:
        changes: Any = entry.get("changes", ())
        for change in changes:
            latest.setdefault(str(change.get("key")), {"who": str(entry.get("who")), "at": str(entry.get("at"))})
    values = {
        "groups": groups,
        "version": _version(worker, state.file_values),
        "file": admin.keeper.name,
        "saved": saved,
        "is_later": "later" in request.args,
        "general": [translated(problem.message, translate) for problem in state.problems if problem.key not in keys],
        "has_problems": bool(state.problems),
        "state": state_of(worker, translate),
        "charts": charts_of(worker.metrics.exposition(), chart_names(translate)),
        "history": history[:HISTORY],
        "snapshot": worker.snapshot(),
        "latest": latest,
        "setup": orjson.dumps({"words": {**script_words(translate), **admin_words(translate)}}).decode(),
    }
    return compressed(page(worker, admin.reader, "admin.html", values, status=status))


def check(exchange: Exchange) -> Response:
    """Return what is wrong with what was typed, as `datafari-rag check` would say it, by key."""
    admin = _admin(exchange, is_form=True)
    changes = changes_in(request.form, admin.keeper.file_values())
    problems = problems_of(admin, changes)
    rows = [
        {"key": problem.key, "message": translated(problem.message, admin.reader.translate)} for problem in problems
    ]
    return json_response(plain({"changes": list(changes), "problems": rows}))


def attempt(exchange: Exchange) -> Response:
    """Answer one question with the current settings and with those typed, both with the administrator's own rights."""
    admin = _admin(exchange, is_form=True)
    changes = changes_in(request.form, admin.keeper.file_values())
    question = request.form.get("try:question", "").strip()
    problems = problems_of(admin, changes)
    if problems:
        raise BadRequest(translated(problems[0].message, admin.reader.translate), field=problems[0].key)
    present = admin.worker.snapshot()
    lines = {"present": present, "changed": admin.keeper.trial(changes, present)}
    answers = {name: _one_answer(admin.worker, snapshot, question) for name, snapshot in lines.items()}
    return json_response(plain(answers))


def _one_answer(worker: WorkerContext, snapshot: ServiceSnapshot, question: str) -> Mapping[str, object]:
    incoming = Incoming("/", {"q": (question,)}, headers=headers_of(request))
    began = snapshot.dependencies.clock()
    response = answered(worker, PAGE, incoming, snapshot)
    took_ms = (snapshot.dependencies.clock() - began) * 1000
    body: Mapping[str, object] = orjson.loads(response.get_data())
    return {**body, "model": response.headers.get("X-RAG-Model", ""), "id": worker.new_id(), "wholeMs": took_ms}


def probe(exchange: Exchange) -> Response:
    """Ask the model one short question; return how it ended and how long it took."""
    admin = _admin(exchange, is_form=True)
    snapshot = admin.worker.snapshot()
    began = snapshot.dependencies.clock()
    nonce, settings = snapshot.dependencies.new_nonce(), snapshot.settings
    prompt = Prompt(
        "Say OK.",
        (),
        None,
        nonce,
        model=settings.rag.model,
        temperature=settings.rag.temperature,
        max_tokens=settings.rag.max_tokens,
        spare_tokens=settings.llm.context_window // 2,
    )
    chunks = snapshot.dependencies.model.generate(prompt, is_streamed=False)
    ending = next(chunk for chunk in chunks if isinstance(chunk, Ending))
    took_ms = (snapshot.dependencies.clock() - began) * 1000
    failure = ending.failure
    problem = translated(message(failure.reason), admin.reader.translate) if failure else ""
    rejection = failure.rejection if isinstance(failure, ModelError) else None
    words = words_of(rejection, texts_of(prompt), secrets_of(settings))
    body = {"problem": f"{problem} «{words}»" if words else problem, "took_ms": round(took_ms)}
    return json_response(plain(body))
