"""Questions with known answers and claims with known labels, as JSON Lines; reading and checking them, nothing more."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

REWORDED = ("reworded", "no-shared-words")
"""
The groups of questions in other words, by the names of their files, counted separately: their questions already belong
to sets of their own. In the second no content word is shared with the sentence that answers, or with the title.
"""


class UnreadableQuestions(ValueError):
    """A file is not JSON Lines of questions, or of claims; the message says file, line and what is wrong."""


@dataclass(frozen=True, slots=True)
class Question:
    """
    One question: any of *answers* counts, any of *document_ids* is right.

    A question that the collection cannot answer has *is_answerable* False; one without verbatim answers has none;
    one that *needs_all* has found its document when it has found the last of them. *group* is the set that it is
    counted in, *language* what its file says of it, "" mostly. *unit* is the row, item or step that answers, as it
    is in the document, *kind* which of these it is; "" where the answer is in running text.
    """

    id: str
    group: str
    text: str
    answers: tuple[str, ...] = ()
    document_ids: frozenset[str] = frozenset()
    is_answerable: bool = True
    needs_all: bool = False
    language: str = ""
    unit: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class LeakReader:
    """A user with their tokens, for the count of leaks."""

    name: str
    tokens: frozenset[str]


def questions_in(path: Path, group: str | None = None) -> tuple[Question, ...]:
    """
    Return the questions of the file *path*, counted in *group* (default: the folder's name).

    Raises:
        UnreadableQuestions: a line is not a question.
        OSError: the file cannot be read.
    """
    name = group or path.resolve().parent.name
    return tuple(_question(row, name, where, path.parent) for where, row in rows_of(path))


def reworded_in(path: Path, known: Iterable[Question]) -> tuple[Question, ...]:
    """
    Return the questions of *path* in other words, with the answers and documents of those *known* that they go back to.

    A line is {set, source, question}; one whose source is not known is left out. The file's name is their group.

    Raises:
        UnreadableQuestions: a line is not a reworded question.
        OSError: the file cannot be read.
    """
    sources = {(one.group, one.id): one for one in known}
    found = []
    for where, row in rows_of(path):
        text = row.get("question")
        if not isinstance(text, str) or not text.strip():
            raise UnreadableQuestions(f"{where}: a question needs a text under 'question'")
        source = sources.get((str(row.get("set")), str(row.get("source"))))
        if source is not None:
            found.append(replace(source, id=f"{path.stem} {source.id}", group=path.stem, text=text))
    return tuple(found)


def readers_in(path: Path) -> tuple[LeakReader, ...]:
    """Return the users of the file *path*: lines of {user, tokens}. Raises: UnreadableQuestions, OSError."""
    readers: dict[str, frozenset[str]] = {}
    for where, row in rows_of(path):
        if not isinstance(row.get("user"), str):
            raise UnreadableQuestions(f"{where}: a user needs a name under 'user'")
        readers.setdefault(str(row["user"]), frozenset(map(str, _list(row, "tokens"))))
    return tuple(LeakReader(user, tokens) for user, tokens in readers.items())


def rights_in(path: Path) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """Return the ACL fields of the documents of *path* by their id. Raises: UnreadableQuestions, OSError."""
    return {
        str(row.get("id")): {key: tuple(map(str, _list(row, key))) for key in row if "_token_" in key}
        for _, row in rows_of(path)
    }


def _question(row: Mapping[str, object], group: str, where: str, folder: Path) -> Question:
    text = row.get("question")
    if not isinstance(text, str) or not text.strip():
        raise UnreadableQuestions(f"{where}: a question needs a text under 'question'")
    return Question(
        id=str(row.get("id", where)),
        group=str(row.get("set") or group),
        text=text,
        answers=tuple(map(str, _list(row, "answers"))),
        document_ids=frozenset(_identity(str(one), folder) for one in _list(row, "doc_ids")),
        is_answerable=not row.get("unanswerable", False),
        needs_all=row.get("need") == "all",
        language=str(row.get("language") or ""),
        unit=str(row.get("unit") or ""),
        kind=str(row.get("kind") or ""),
    )


def _identity(text: str, folder: Path) -> str:
    """Return the id of the document *text*: of a file in *folder*, and what is in it, the one that `index` gives it."""
    name, mark, member = text.partition("#")
    path = folder / name
    return f"{path.resolve().as_uri()}{mark}{member}" if path.is_file() else text


def _list(row: Mapping[str, object], key: str) -> list[object]:
    value = row.get(key) or []
    return value if isinstance(value, list) else [value]


def rows_of(path: Path) -> Iterable[tuple[str, Mapping[str, object]]]:
    """Yield the objects of the file *path* with file and line of each. Raises: UnreadableQuestions, OSError."""
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield f"{path}:{number}", _row(line, f"{path}:{number}")


def _row(line: str, where: str) -> Mapping[str, object]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise UnreadableQuestions(f"{where}: this is not JSON") from error
    if not isinstance(row, dict):
        raise UnreadableQuestions(f"{where}: this is not an object")
    return row


GROUPS = {"up": "liked", "down": "disliked"}


def questions_of_feedback(path: Path) -> tuple[Question, ...]:
    """
    Return one question for each question text in the feedback file *path*; the last thumb on it counts.

    The right documents of a liked answer are those it cited; a disliked one has none, so that only how it is answered
    is measured.

    Raises:
        UnreadableQuestions: a line is no thumb, or no line has a text (`feedback.text` is off).
        OSError: the file cannot be read.
    """
    found: dict[str, Question] = {}
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            question = _rated_question(line, f"{path}:{number}") if line.strip() else None
            if question is not None:
                found[question.text] = question
    if not found:
        raise UnreadableQuestions(f"{path}: it contains no questions; feedback.text=true stores them")
    return tuple(found.values())


def _rated_question(line: str, where: str) -> Question | None:
    try:
        row = json.loads(line)
        group = GROUPS[row["verdict"]]
        text = str(row.get("question") or "").strip()
        cited = frozenset(map(str, row.get("cited") or ()))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnreadableQuestions(f"{where}: this is not a reader's feedback") from error
    if not text:
        return None
    identity = str(row.get("request_id") or where)
    return Question(identity, group, text, document_ids=cited if group == "liked" else frozenset())
