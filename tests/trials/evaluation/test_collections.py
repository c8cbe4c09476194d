"""The sets of a folder as questions, counted in the groups that readers of the report see."""

import json
from pathlib import Path

import pytest

from datafari_rag_trials.evaluation.questions import ACROSS, questions_of


def put(folder: Path, name: str, *rows: dict[str, object]) -> None:
    (folder / name).mkdir()
    (folder / name / "docs.jsonl").write_text("")
    (folder / name / "questions.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def test_claims_without_evidence_are_counted_apart(tmp_path: Path) -> None:
    put(
        tmp_path,
        "scifact",
        {"id": "a", "question": "Why?", "answers": ["So."], "doc_ids": ["d"]},
        {"id": "b", "question": "How?", "answers": [], "doc_ids": ["d"]},
    )
    assert [one.group for one in questions_of(tmp_path, ("scifact",))] == ["scifact", "scifact without evidence"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("xquad", [("en-1", "xquad en", ("ten",), {"en"}), ("de-1", "xquad de", ("zehn",), {"de"})]),
        (ACROSS, [("de-1", "xquad-across de", ("ten",), {"en"})]),
    ],
)
def test_questions_across_languages_have_the_english_answers_and_documents(
    tmp_path: Path, name: str, expected: list[tuple[object, ...]]
) -> None:
    put(
        tmp_path,
        "xquad",
        {"id": "en-1", "question": "How many?", "answers": ["ten"], "doc_ids": ["en"], "language": "en"},
        {"id": "de-1", "question": "Wie viele?", "answers": ["zehn"], "doc_ids": ["de"], "language": "de"},
    )
    found = [(one.id, one.group, one.answers, {*one.document_ids}) for one in questions_of(tmp_path, (name,))]
    assert found == expected
