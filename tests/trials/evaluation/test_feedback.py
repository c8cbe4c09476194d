"""Readers' thumbs as questions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from datafari_rag_trials.evaluation.questions import UnreadableQuestions, questions_of_feedback


def file_of(tmp_path: Path, *rows: object) -> Path:
    path = tmp_path / "feedback.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + "\n", encoding="utf-8")
    return path


def test_liked_answers_say_which_documents_are_right(tmp_path: Path) -> None:
    rows = [
        {"request_id": "a", "verdict": "up", "question": "When?", "cited": ["d1"]},
        {"request_id": "b", "verdict": "down", "question": "Why?", "cited": ["d2"]},
        {"request_id": "c", "verdict": "up", "cited": ["d3"]},
    ]
    first, second = questions_of_feedback(file_of(tmp_path, *rows))

    assert (first.id, first.group, first.text, first.document_ids) == ("a", "liked", "When?", frozenset({"d1"}))
    assert (second.group, second.document_ids) == ("disliked", frozenset())


def test_the_last_thumb_on_a_question_counts(tmp_path: Path) -> None:
    rows = [{"verdict": "up", "question": "When?"}, {"verdict": "down", "question": "When?"}]
    assert [one.group for one in questions_of_feedback(file_of(tmp_path, *rows))] == ["disliked"]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        pytest.param({"verdict": "up"}, "feedback.text=true", id="ids only"),
        pytest.param({"question": "When?"}, ":1: this is not a reader's feedback", id="no verdict"),
        pytest.param([1], ":1: this is not a reader's feedback", id="no object"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(tmp_path: Path, row: object, words: str) -> None:
    with pytest.raises(UnreadableQuestions, match=words):
        questions_of_feedback(file_of(tmp_path, row))
