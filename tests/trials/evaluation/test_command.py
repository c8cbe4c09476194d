import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from datafari_rag.commands.index import index
from datafari_rag_trials.evaluation.command import evaluate

FILLER = "Nothing of interest is said in this sentence at all. " * 40
DOCUMENTS = [
    {"id": "ferry", "title": "Ferry", "content": f"{FILLER}The fare of the island ferry is nine euros. {FILLER}"},
    {"id": "bus", "title": "Bus", "content": f"{FILLER}The bus to the harbour is free. {FILLER}"},
    {"id": "crew", "title": "Crew", "content": "The crew of the ferry earns much.", "allow_token_document": ["crew"]},
]
QUESTIONS: list[dict[str, Any]] = [
    {"id": "q1", "question": "What is the fare of the island ferry?", "answers": ["nine euros"], "doc_ids": ["ferry"]},
    {"id": "q2", "question": "Is the bus to the harbour free?", "answers": ["is free"], "doc_ids": ["bus"]},
    {"id": "q3", "question": "Who paints the lighthouse?", "answers": [], "doc_ids": [], "unanswerable": True},
]


def lines(path: Path, rows: list[dict[str, object]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def sets(tmp_path: Path) -> Path:
    lines(tmp_path / "sets" / "squad" / "docs.jsonl", DOCUMENTS)  # type: ignore[arg-type]
    lines(tmp_path / "sets" / "squad" / "questions.jsonl", QUESTIONS[:2])
    lines(tmp_path / "sets" / "squad" / "unanswerable.jsonl", QUESTIONS[2:])
    lines(tmp_path / "sets" / "squad" / "users.jsonl", [{"user": "ann", "tokens": []}])
    return tmp_path / "sets"


def run(tmp_path: Path, *arguments: str) -> tuple[Result, dict[str, Any]]:
    out = tmp_path / "out"
    conf = tmp_path / "rag.properties"
    result = CliRunner().invoke(evaluate, [*arguments, "--conf", str(conf), "--out", str(out), "--jobs", "1"])
    report = out / "eval.json"
    return result, json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}


def test_sets_are_indexed_and_measured_with_the_baselines_beside(tmp_path: Path, sets: Path) -> None:
    result, report = run(tmp_path, "--sets", str(sets), "--engine", "embedded")

    assert result.exit_code == 0, result.output
    (summary,) = report["variants"]["embedded"]["sets"].values()
    assert summary["questions"] == 3
    assert summary["recall"] == {"1": 100.0, "3": 100.0, "5": 100.0, "10": 100.0}
    assert summary["in_context"]["passages"] == [100.0] * 4
    assert set(summary["in_context"]) == {"passages", "head", "highlighting"}
    assert summary["in_reply"] == 100.0
    assert summary["leaks"] == 0
    assert "| squad | 3 | 100.0 / 100.0 / 100.0 / 100.0 |" in result.output


def command(folder: Path, *arguments: str) -> str:
    """Run the command as a user does, in a process of its own, and return what it printed."""
    line: Sequence[str] = (sys.executable, "-m", "datafari_rag", *arguments)
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


MANY = [{**QUESTIONS[at % 2], "id": f"q{at}"} for at in range(16)]


def measured(tmp_path: Path, *arguments: str) -> tuple[Result, dict[str, Any]]:
    """Measure 16 questions over an embedded index."""
    documents = lines(tmp_path / "docs.jsonl", DOCUMENTS)
    if not (tmp_path / "index").exists():
        conf = tmp_path / "rag.properties"
        conf.write_text(f"solr.url=embedded:{tmp_path / 'index'}\n")
        assert CliRunner().invoke(index, [str(documents), "--conf", str(conf)]).exit_code == 0
    return run(tmp_path, str(lines(tmp_path / "many.jsonl", MANY)), "--no-baselines", *arguments)


def kept(tmp_path: Path) -> Path:
    return (tmp_path / "out" / "eval.json").rename(tmp_path / "accepted.json")


def test_a_run_like_its_baseline_passes_the_gate_and_one_that_lost_fails_it(tmp_path: Path) -> None:
    assert measured(tmp_path)[0].exit_code == 0
    gate = ("--baseline", str(kept(tmp_path)), "--gate")
    result, report = measured(tmp_path, *gate)
    assert result.exit_code == 0, result.output
    (against,) = report["variants"]["as configured"]["against"].values()
    assert against["changes"] == []
    # Only the heads of the documents are read, which contain no answer.
    conf = tmp_path / "rag.properties"
    conf.write_text(conf.read_text() + "rag.solrField=preview_content\n")
    result, report = measured(tmp_path, *gate)
    assert result.exit_code == 1, result.output
    (against,) = report["variants"]["as configured"]["against"].values()
    lost = {one["measure"] for one in against["comparison"] if one["is_significant"]}
    assert "answer in reply" in lost
    assert "LOSS" in result.output
    assert measured(tmp_path, *gate[:2])[0].exit_code == 0, "without --gate it is only reported"


def test_a_run_that_was_stopped_is_continued_with_its_indexes_and_outcomes(tmp_path: Path, sets: Path) -> None:
    arguments = ("--sets", str(sets), "--engine", "embedded", "--collection", "merged", "--resume", "--no-baselines")
    _, first = run(tmp_path, *arguments)
    (kept,) = (tmp_path / "out" / "trials").iterdir()
    (index_mark,) = (tmp_path / "out" / "indexes").glob("merged-*.indexed")
    begun = index_mark.with_suffix("").stat().st_mtime_ns
    whole = kept.read_text(encoding="utf-8")
    kept.write_text("".join(whole.splitlines(keepends=True)[:2]) + "{", encoding="utf-8")

    result, second = run(tmp_path, *arguments)

    assert result.exit_code == 0, result.output
    assert [line.split('"ms"')[0] for line in kept.read_text(encoding="utf-8").splitlines()] == [
        line.split('"ms"')[0] for line in whole.splitlines()
    ]
    assert second["variants"]["embedded"]["questions"] == first["variants"]["embedded"]["questions"]
    assert second["took_s"] is None, "earlier runs took time as well"
    assert index_mark.with_suffix("").stat().st_mtime_ns == begun, "the index is taken as it is"


def test_labelled_claims_are_measured_and_written_into_their_part_of_a_page(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"id": "a", "set": "s", "claim": text, "references": ["The crew earns much."], "label": label}
        for text, label in (("The crew earns much.", "supported"), ("The moon is made of cheese.", "unsupported"))
    ]
    lines(tmp_path / "claims" / "claims.jsonl", rows)
    page = tmp_path / "page.md"
    page.write_text("<!-- measured: claims -->\n<!-- end of claims -->\n", encoding="utf-8")

    result, _ = run(tmp_path, "--grounding", str(tmp_path / "claims"), "--page", str(page), "--part", "claims")

    assert result.exit_code == 0, result.output
    row = "| s | 2 | 1 | 1 | 100.0 | 100.0 | 100.0 | 0.0 | 100.0 |"
    assert row in result.output
    assert row in page.read_text(encoding="utf-8")
    report = json.loads((tmp_path / "out" / "grounding.json").read_text(encoding="utf-8"))
    assert report["sets"]["s"]["precision"] == 100.0
    assert [one["is_right"] for one in report["claims"]] == [True, False]
