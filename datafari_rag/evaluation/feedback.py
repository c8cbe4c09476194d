"""Readers' feedback as questions: good answers must stay right, bad ones are tried again."""

from __future__ import annotations

import json
from pathlib import Path

from datafari_rag.evaluation.questions import Question, UnreadableQuestions

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
            question = _question(line, f"{path}:{number}") if line.strip() else None
            if question is not None:
                found[question.text] = question
    if not found:
        raise UnreadableQuestions(f"{path}: it contains no questions; feedback.text=true stores them")
    return tuple(found.values())


def _question(line: str, where: str) -> Question | None:
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
