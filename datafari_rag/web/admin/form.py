"""
The settings as one form: what is shown of each row, and what a form that came back wants changed.

No secret's text is ever in what is shown, and an address is shown without its password. What a form sends for a row
that is closed to browsers is never compared with what the file has: that would confirm a correct guess.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from datafari_rag.core.messages import translated
from datafari_rag.core.settings.parsing import Problem
from datafari_rag.core.settings.reference import GROUPS
from datafari_rag.core.settings.row import SettingRow
from datafari_rag.core.settings.table import BY_KEY, ROWS, without_password
from datafari_rag.web.admin.form_notes import notes_for
from datafari_rag.web.pages.locale import Translate

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

    written: Mapping[str, str]
    fixed: Collection[str] = ()
    typed: Mapping[str, str | None] | None = None
    problems: Sequence[Problem] = ()


def groups_of(shown: FormState, translate: Translate) -> tuple[Group, ...]:
    """Return every setting in the order of the table; typed values replace those of the file."""
    fields = [_field(row, shown, translate) for row in ROWS]
    members = {name: tuple(field for field in fields if field.key.partition(".")[0] == name) for name in GROUPS}
    return tuple(Group(name, translate(title), members[name]) for name, title in GROUPS.items() if members[name])


def changes_in(form: Mapping[str, str], written: Mapping[str, str]) -> dict[str, str | None]:
    """
    Return what *form* (key → text) wants changed: key → new text, None for the default.

    A key that the form does not have stays as it is. One that is closed to browsers is a change when it is not what
    was shown of it, whatever the file has: it will be refused.
    """
    rows = [row for row in ROWS if row.key in form]
    wanted = {row.key: _wanted(row, row.key, form, written) for row in rows if row.is_for_browsers}
    closed = {row.key: form[row.key].strip() for row in rows if not row.is_for_browsers}
    return {
        **{key: text for key, text in wanted.items() if text != written.get(key)},
        **{key: text for key, text in closed.items() if text != _visible(BY_KEY[key], key, written)},
    }


def _wanted(row: SettingRow, key: str, form: Mapping[str, str], written: Mapping[str, str]) -> str | None:
    """Return what the file is to have for *key* after *form*, None for nothing: the default."""
    text, present = form[key].strip(), written.get(key)
    if not text and f"{EMPTY}{key}" in form:
        return present if _is_empty(row, key, written) else ""
    if text == _visible(row, key, written) and not _is_empty(row, key, written):
        return present
    return text or None


def _field(row: SettingRow, shown: FormState, translate: Translate) -> Field:
    key = row.key
    text = _visible(row, key, shown.written)
    if shown.typed is not None and key in shown.typed and not row.is_secret:
        text = shown.typed[key] or ""
    default = row.default_text
    return Field(
        key=key,
        help=translate(row.help),
        kind=row.check.kind,
        choices=row.check.choices,
        text=text,
        default=default,
        is_secret=row.is_secret,
        is_written=key in shown.written,
        is_changed=_is_changed(row, key, shown.written, default=default),
        is_fixed=key in shown.fixed or not row.is_for_browsers,
        notes=_notes(row, key, shown, translate),
        can_be_empty=_can_be_empty(row),
        is_empty=_is_empty(row, key, shown.written),
        problems=tuple(translated(problem.message, translate) for problem in shown.problems if problem.key == key),
    )


def _can_be_empty(row: SettingRow) -> bool:
    return row.check.is_optional and bool(row.default_text) and row.is_for_browsers


def _is_empty(row: SettingRow, key: str, written: Mapping[str, str]) -> bool:
    return _can_be_empty(row) and key in written and not written[key].strip()


def _is_changed(row: SettingRow, key: str, written: Mapping[str, str], *, default: str) -> bool:
    text = written.get(key, "").strip()
    return _is_empty(row, key, written) or (bool(text) and (row.is_secret or text != default))


def _visible(row: SettingRow, key: str, written: Mapping[str, str]) -> str:
    return "" if row.is_secret else without_password(written.get(key, "").strip())


def _notes(row: SettingRow, key: str, shown: FormState, translate: Translate) -> tuple[str, ...]:
    if key in shown.fixed:
        return (translate("Set on the command line."),)
    return notes_for(row, key, shown.written, translate)
