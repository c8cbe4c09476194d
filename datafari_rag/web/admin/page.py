"""`/admin`: the state of the parts, a question to try, and the settings, secrets never; for `security.admins` alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from flask import Response

from datafari_rag.core.errors import NotAllowed
from datafari_rag.core.messages import translated
from datafari_rag.core.settings.table import HIDDEN, ROWS, without_password
from datafari_rag.web.ops.health import parts_of
from datafari_rag.web.pages.messages import part_names, title_and_hint
from datafari_rag.web.pages.rendering import Translate, page, reader_of
from datafari_rag.web.turn import Turn


@dataclass(frozen=True, slots=True)
class PartStatus:
    """One part: *problem* is what is wrong with it now, empty for nothing; *last* its last failure, empty for none."""

    name: str
    problem: str
    last: str


@dataclass(frozen=True, slots=True)
class ShownSetting:
    """One setting: its text in the file or on the command line, its default where it has none, never a secret."""

    key: str
    text: str
    default: str
    is_changed: bool


def admin_page(turn: Turn) -> Response:
    """Return the page. Raises: NotAllowed: this reader is no administrator."""
    reader = reader_of(turn)
    if not reader.is_admin:
        raise NotAllowed
    values = {
        "snapshot": turn.snapshot,
        "settings": tuple(settings_in(turn.snapshot.written)),
        "state": tuple(state_of(turn, reader.translate)),
    }
    return page(turn, reader, "admin.html", values)


def settings_in(written: Mapping[str, str]) -> Iterator[ShownSetting]:
    """Yield every setting in the order of the table; *written* has the texts by key, references unresolved."""
    for row in ROWS:
        text = written.get(row.key, "").strip()
        is_changed = row.key in written and text != row.default_text
        shown = HIDDEN if row.check.is_secret and text else without_password(text)
        yield ShownSetting(row.key, shown if row.key in written else row.default_text, row.default_text, is_changed)


def state_of(turn: Turn, translate: Translate) -> Iterator[PartStatus]:
    """Yield every part with its state, in the order of readiness."""
    names = part_names(translate)
    for part in parts_of(turn, turn.worker.service.problems()):
        what, problem, failure = str(part["what"]), part["problem"], turn.worker.failures.latest(str(part["what"]))
        idle = "" if part["ok"] else translate("not used for a while after repeated failures")
        text = translated(problem, translate) if isinstance(problem, str) else idle
        last = "" if failure is None else f"{title_and_hint(failure['label'], translate)[0]} ({failure['at']})"
        yield PartStatus(names.get(what, what), text, last)
