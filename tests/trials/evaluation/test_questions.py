import json
from pathlib import Path

import pytest

from datafari_rag_trials.evaluation.questions import (
    RESOURCES,
    REWORDED,
    Question,
    UnreadableQuestions,
    questions_in,
    readers_in,
    reworded_in,
    rights_in,
)


def written(folder: Path, text: str) -> Path:
    path = folder / "set" / "questions.jsonl"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    return path


def test_a_document_may_be_named_by_its_file_beside_the_questions(tmp_path: Path) -> None:
    (tmp_path / "ferry times.zip").touch()
    file = tmp_path / "questions.jsonl"
    file.write_text('{"question": "Fare?", "doc_ids": ["ferry times.zip#a%20b.txt", "ferry times.zip", "no file"]}\n')

    place = (tmp_path / "ferry times.zip").as_uri()
    assert questions_in(file)[0].document_ids == {f"{place}#a%20b.txt", place, "no file"}


@pytest.mark.parametrize("line", ["{", "[]", "{}", '{"question": " "}', '{"question": 5}'], ids=repr)
def test_a_line_that_is_no_question_is_named(tmp_path: Path, line: str) -> None:
    with pytest.raises(UnreadableQuestions, match=r"questions\.jsonl:1"):
        questions_in(written(tmp_path, line))


def test_users_and_rights(tmp_path: Path) -> None:
    path = written(tmp_path, '{"user": "ann", "tokens": ["g"]}\n{"user": "ann", "tokens": []}\n{"user": "bob"}\n')
    assert [(one.name, one.tokens) for one in readers_in(path)] == [("ann", frozenset({"g"})), ("bob", frozenset())]
    path.write_text('{"tokens": []}', encoding="utf-8")
    with pytest.raises(UnreadableQuestions, match="name"):
        readers_in(path)
    path.write_text('{"id": "a", "allow_token_document": ["g"], "title": "t"}\n{"id": "b"}', encoding="utf-8")
    assert rights_in(path) == {"a": {"allow_token_document": ("g",)}, "b": {}}


def test_a_question_in_other_words_has_the_answers_of_the_one_it_goes_back_to(tmp_path: Path) -> None:
    known = (Question("q1", "a set", "old words", ("yes",), frozenset({"d1"})),)
    rows = [
        {"set": "a set", "source": "q1", "question": "new words"},
        {"set": "another set", "source": "q1", "question": "not known"},
    ]
    (tmp_path / "reworded.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (found,) = reworded_in(tmp_path / "reworded.jsonl", known)
    assert found == Question("reworded q1", REWORDED[0], "new words", ("yes",), frozenset({"d1"}))


def shipped(name: str) -> list[dict[str, str]]:
    text = (RESOURCES / "reworded" / f"{name}.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_the_shipped_questions_in_other_words_are_distinct_and_hold_nothing_of_others() -> None:
    older, newer = map(shipped, REWORDED)
    assert len(older) >= 150
    assert len(newer) >= 300
    assert all({*row} == {"set", "source", "question", "by"} for row in older)
    assert all({*row} == {"set", "source", "question", "language", "half"} for row in newer)
    assert sum(row["language"] == "fr" for row in newer) >= 100
    assert abs(sum(1 if row["half"] == "held" else -1 for row in newer)) <= len({row["set"] for row in newer})
    rows = older + newer
    assert len({(row["set"], row["source"]) for row in rows}) == len({row["question"] for row in rows}) == len(rows)
