import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from datafari_rag.commands.index import index
from datafari_rag.web.pages.feedback import append, record_of
from datafari_rag_trials.evaluation.command import evaluate
from datafari_rag_trials.evaluation.questions import RESOURCES
from tests.model_server import model_server
from tests.settings import settings_with

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
    assert "Answer in the context" in result.output
    assert (tmp_path / "out" / "eval.png").stat().st_size > 1000


def test_settings_are_varied_side_by_side(tmp_path: Path, sets: Path) -> None:
    vary = ["--vary", "rag.extract=passages,head", "--vary", "rag.maxFiles=1", "--no-baselines"]
    result, report = run(tmp_path, "--sets", str(sets), "--engine", "embedded", *vary)

    assert result.exit_code == 0, result.output
    assert list(report["variants"]) == [
        "embedded, rag.extract=passages, rag.maxFiles=1",
        "embedded, rag.extract=head, rag.maxFiles=1",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "at least one file"),
        (["--vary", "rag.extract", "--sets", "."], "KEY=A,B"),
        (["--sets", "."], "holds none of the sets"),
    ],
    ids=["no questions", "a bad variation", "no sets"],
)
def test_what_cannot_be_measured_is_said(
    tmp_path: Path, arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result, _ = run(tmp_path, *arguments)
    assert result.exit_code != 0
    assert said in result.output


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text("{", encoding="utf-8")
    result, _ = run(tmp_path, str(path))
    assert result.exit_code == 1
    assert "questions.jsonl:1" in result.output


def test_a_page_is_written_between_its_marks_and_nowhere_else(tmp_path: Path, sets: Path) -> None:
    page = tmp_path / "page.md"
    marks = "<!-- measured: {0} -->\nstale\n<!-- end of {0} -->"
    page.write_text(
        f"Before\n\n{marks.format('tables')}\n\nbetween\n\n{marks.format('gate')}\n\nafter\n", encoding="utf-8"
    )
    result, _ = run(tmp_path, "--sets", str(sets), "--engine", "embedded", "--page", str(page))

    assert result.exit_code == 0, result.output
    text = page.read_text(encoding="utf-8")
    assert "stale" not in text
    assert "| squad | 3 | 100.0 / 100.0 / 100.0 / 100.0 |" in text
    assert [word for word in text.split() if word in ("Before", "between", "after")] == ["Before", "between", "after"]


def test_a_page_without_marks_is_left_alone(tmp_path: Path, sets: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Nothing to fill in.", encoding="utf-8")
    result, report = run(tmp_path, "--sets", str(sets), "--engine", "embedded", "--page", str(page))

    assert result.exit_code == 1
    assert report == {}, "found out before anything was measured"
    assert "<!-- measured: tables -->" in result.output
    assert page.read_text(encoding="utf-8") == "Nothing to fill in."


def command(folder: Path, *arguments: str) -> str:
    """Run the command as a user does, in a process of its own, and return what it printed."""
    line: Sequence[str] = (sys.executable, "-m", "datafari_rag", *arguments)
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_readers_thumbs_are_questions_for_the_command(tmp_path: Path, sets: Path) -> None:
    conf, thumbs = tmp_path / "rag.properties", tmp_path / "feedback.jsonl"
    conf.write_text(f"solr.url=embedded:{tmp_path / 'index'}\n", encoding="utf-8")
    conf.chmod(0o600)
    command(tmp_path, "index", str(sets / "squad" / "docs.jsonl"), "--conf", str(conf))
    settings = settings_with(feedback_text=True)
    for verdict, question, cited in (("up", QUESTIONS[0], ["ferry"]), ("down", QUESTIONS[1], ["crew"])):
        sent = {"verdict": verdict, "question": question["question"], "cited": cited, "documents": cited}
        append(thumbs, {"at": "2024-01-01T00:00:00+00:00", **record_of(sent, settings.feedback)})

    arguments = ("eval", "--from-feedback", str(thumbs), "--conf", str(conf), "--out", str(tmp_path / "out"))
    printed = command(tmp_path, *arguments, "--jobs", "2")

    report = json.loads((tmp_path / "out" / "eval.json").read_text(encoding="utf-8"))
    groups = report["variants"]["as configured"]["sets"]
    assert set(groups) == {"liked", "disliked", "all"}
    assert groups["liked"]["recall"] == {"1": 100.0, "3": 100.0, "5": 100.0, "10": 100.0}
    assert groups["disliked"]["recall"] == {"1": None, "3": None, "5": None, "10": None}
    assert groups["all"]["questions"] == 2
    assert "liked" in printed


def test_paths_of_the_settings_file_stay_relative_to_it(tmp_path: Path, sets: Path) -> None:
    conf = tmp_path / "rag.properties"
    conf.write_text("solr.url=embedded:index\n", encoding="utf-8")
    conf.chmod(0o600)
    written = CliRunner().invoke(index, [str(sets / "squad" / "docs.jsonl"), "--conf", str(conf)])
    assert written.exit_code == 0, written.output
    (tmp_path / "rag-instructions.txt").write_text("Answer in {language}.", encoding="utf-8")

    result, report = run(tmp_path, str(sets / "squad" / "questions.jsonl"), "--vary", "rag.maxFiles=1,2")

    assert result.exit_code == 0, result.output
    for variant in report["variants"].values():
        (summary,) = variant["sets"].values()
        assert summary["recall"]["1"] == 100.0


def test_the_set_of_structure_comes_with_the_package_and_is_counted_by_kind(tmp_path: Path, sets: Path) -> None:
    for name in ("tts-handbook", "debian-docs", "tech-docs"):
        lines(sets / name / "docs.jsonl", [{"id": name, "content": "Nothing of interest.", "title": name}])
    _, report = run(tmp_path, "--sets", str(sets), "--engine", "embedded", "--every", "20", "--no-baselines")

    groups = report["variants"]["embedded, structure alone"]["sets"]
    assert {"structure row", "structure item", "all"} <= set(groups)
    assert groups["structure row"]["whole"] is not None


def test_every_unit_of_structure_stands_in_its_document_at_its_place() -> None:
    folder = RESOURCES / "structure"
    documents = {
        row["id"]: row for row in map(json.loads, (folder / "docs.jsonl").read_text(encoding="utf-8").split("\n")[:-1])
    }
    questions = list(map(json.loads, (folder / "questions.jsonl").read_text(encoding="utf-8").split("\n")[:-1]))
    assert len(questions) >= 150
    assert len({question["id"] for question in questions}) == len(questions)
    for question in questions:
        assert question["kind"] in ("row", "item", "step", "slide")
        assert question["answers"][0] in question["unit"]
        document = documents.get(question["doc_ids"][0])
        if document is not None:
            assert document["content"][question["start"] : question["end"]] == question["unit"]


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
    conf.write_text(conf.read_text() + "rag.extract=head\nrag.maxJsonLength=1500\n")
    result, report = measured(tmp_path, *gate)
    assert result.exit_code == 1, result.output
    (against,) = report["variants"]["as configured"]["against"].values()
    lost = {one["measure"] for one in against["comparison"] if one["is_significant"]}
    assert "answer in reply" in lost
    assert "LOSS" in result.output
    assert measured(tmp_path, *gate[:2])[0].exit_code == 0, "without --gate it is only reported"


def test_questions_that_are_no_longer_asked_do_not_pass_the_gate(tmp_path: Path) -> None:
    measured(tmp_path)
    baseline = kept(tmp_path)
    result, _ = measured(tmp_path, "--baseline", str(baseline), "--gate", "--every", "2")
    assert result.exit_code == 1
    assert "8 of 16 questions of the baseline were not asked" in result.output


@pytest.mark.parametrize("text", ["{", "[]", '{"variants":{"a":{}}}', '{"variants":{"a":{"questions":{"q":{"m":3}}}}}'])
def test_a_baseline_that_is_none_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.json").write_text(text)
    result, _ = measured(tmp_path, "--baseline", str(tmp_path / "bad.json"))
    assert result.exit_code == 1
    assert "no eval.json" in result.output


def test_a_gate_needs_a_baseline(tmp_path: Path) -> None:
    assert measured(tmp_path, "--gate")[0].exit_code == 2


def test_shadow_settings_are_compared_with_those_of_the_file_question_by_question(tmp_path: Path) -> None:
    result, report = measured(tmp_path, "--vary", "rag.extract=head", "--vary", "rag.maxJsonLength=1500")
    assert result.exit_code == 0, result.output
    shadow = "as configured, rag.extract=head, rag.maxJsonLength=1500"
    assert list(report["variants"]) == ["as configured", shadow]
    found = report["variants"][shadow]["against"]["as configured"]["changes"]
    assert {one["question"].rpartition("/")[2] for one in found} == {one["id"] for one in MANY}
    assert all(one["is_loss"] for one in found if one["measure"] == "answer in reply")
    assert "was" in result.output


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


def test_other_settings_are_another_run_and_leave_what_the_first_one_kept(tmp_path: Path, sets: Path) -> None:
    arguments = ("--sets", str(sets), "--engine", "embedded", "--resume", "--no-baselines")
    run(tmp_path, *arguments)
    (tmp_path / "rag.properties").write_text("rag.maxFiles=1\n", encoding="utf-8")
    (tmp_path / "rag.properties").chmod(0o600)
    (kept,) = (tmp_path / "out" / "trials").iterdir()
    before = kept.read_text(encoding="utf-8").splitlines()

    run(tmp_path, *arguments)

    (other,) = set((tmp_path / "out" / "trials").iterdir()) - {kept}
    after = other.read_text(encoding="utf-8").splitlines()
    assert len(after) == len(before) and after[0] != before[0]
    assert kept.read_text(encoding="utf-8").splitlines() == before


def test_the_questions_of_one_set_alone_are_asked(tmp_path: Path, sets: Path) -> None:
    lines(sets / "cuad" / "docs.jsonl", [{"id": "lease", "title": "Lease", "content": "The lease ends in May."}])
    lines(sets / "cuad" / "questions.jsonl", [{"id": "c1", "question": "When does the lease end?", "answers": ["May"]}])
    _, report = run(tmp_path, "--sets", str(sets), "--engine", "embedded", "--only", "cuad", "--no-baselines")
    assert list(report["variants"]["embedded"]["sets"]) == ["cuad"]


def test_methods_of_search_are_written_side_by_side_into_their_part_of_a_page(tmp_path: Path, sets: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- measured: meaning -->\nstale\n<!-- end of meaning -->\n", encoding="utf-8")
    vary = ("--vary", "retrieval.method=bm25,hybrid", "--no-baselines", "--page", str(page), "--part", "meaning")
    result, _ = run(tmp_path, "--sets", str(sets), "--engine", "embedded", *vary)
    assert result.exit_code == 0, result.output
    assert "### Embedded: words / both" in page.read_text(encoding="utf-8")


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
    row = "| s | 2 | 1 | 1 | 100.0 | 100.0 | 100.0 | 0.0 | 100.0 | 0.0 |"
    assert row in result.output
    assert row in page.read_text(encoding="utf-8")
    report = json.loads((tmp_path / "out" / "grounding.json").read_text(encoding="utf-8"))
    assert report["sets"]["s"]["precision"] == 100.0
    assert [one["is_right"] for one in report["claims"]] == [True, False]


def test_claims_and_questions_are_two_measurements(tmp_path: Path, sets: Path) -> None:
    result, _ = run(tmp_path, "--grounding", str(tmp_path), "--sets", str(sets))
    assert result.exit_code == 2
    assert "--grounding FOLDER alone" in result.output


def test_answers_of_a_model_are_measured_alone(tmp_path: Path, sets: Path) -> None:
    """A right answer, a wrong one, and a refusal where there is none, by the known text of a server."""
    said = {
        "fare": "It is nine euros [1].",
        "bus": "It costs ten euros [1].",
        "paints": "The documents do not say who.",
    }

    def texts(body: Mapping[str, Any]) -> Sequence[str]:
        question = body["messages"][-1]["content"]
        return [next(text for word, text in said.items() if word in question)]

    conf = tmp_path / "rag.properties"
    conf.write_text("solr.url=embedded:index\n", encoding="utf-8")
    assert CliRunner().invoke(index, [str(sets / "squad" / "docs.jsonl"), "--conf", str(conf)]).exit_code == 0
    files = [str(sets / "squad" / name) for name in ("questions.jsonl", "unanswerable.jsonl")]
    out = tmp_path / "out"
    with model_server(texts=texts) as server:
        conf.write_text(f"solr.url=embedded:index\nrag.api.endpoint={server.url}\nrag.model=m\n", encoding="utf-8")
        options = ["--answers", "--conf", str(conf), "--out", str(out)]
        result = CliRunner().invoke(evaluate, [*files, *options])
    assert result.exit_code == 0, result.output
    report = json.loads((out / "answers.json").read_text(encoding="utf-8"))
    assert [one["outcome"] for one in report["questions"]] == ["right", "wrong", "refused"]
    rates = report["sets"]["squad"]
    assert (rates["right"], rates["refused_rightly"], rates["cited"], rates["tokens"]) == (50.0, 100.0, 100.0, 10)
    assert "| squad | 3 | 50.0 | 0.0 | 100.0 |" in result.output
    assert len(server.bodies) in (2, 3)  # nothing may be found for the third


def test_answers_need_files_of_questions(tmp_path: Path) -> None:
    result, _ = run(tmp_path, "--answers", "--sets", str(tmp_path))
    assert result.exit_code == 2
    assert "--answers needs files of questions" in result.output
