"""
`make mutants`: whether the tests of a module notice when it is changed, change by change.

cosmic-ray makes the changes that `mutants.toml` names, in a copy of the tree, and keeps what came of each: a run that
was stopped is continued. What survived is tried again by each run, for a test may have been added. A mutant is
tried on the tests of its module's name first, then on those that import it, as `make test-for` does.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

from cosmic_ray.commands.init import init
from cosmic_ray.mutating import use_mutation
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_db import WorkDB
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkItem, WorkResult

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "var" / "mutants"
TREE = PLACE / "tree"
PROGRESS_EVERY = 10

Diff = tuple[str, str]
"""The lines that a mutant takes away and those it brings, without the space around them."""


@dataclass(frozen=True)
class Chosen:
    """Which mutants of a module are tried: those of *operators*, in the functions *within*, *sample* of them."""

    operators: list[str]
    within: list[str] | None
    sample: int | None
    seed: int

    def of(self, items: tuple[WorkItem, ...]) -> list[WorkItem]:
        """Return them in the order of the file; a sample is drawn by the seed."""
        named = re.compile(f"core/({'|'.join(self.operators)})")
        chosen = [
            item
            for item in items
            for one in item.mutations
            if named.fullmatch(one.operator_name) and (self.within is None or one.definition_name in self.within)
        ]
        chosen.sort(key=lambda item: (item.mutations[0].start_pos, item.mutations[0].operator_name))
        if self.sample is None:
            return chosen
        return Random(self.seed).sample(chosen, min(self.sample, len(chosen)))


def say(line: str) -> None:
    """Write *line* now."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Try the mutants; return 1 where one survived that is not listed as equivalent."""
    config = tomllib.loads(Path(__file__).with_name("mutants.toml").read_text("utf-8"))
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--part", nargs="*", default=list(config["parts"]), choices=list(config["parts"]))
    parser.add_argument("--module", help="this one alone, as core/access.py")
    parser.add_argument("--sample", type=int, help="so many mutants of each module, drawn by --seed")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    _copy_tree()
    os.chdir(TREE)
    has_survivor = False
    for module in (one for part in asked.part for one in config["parts"][part]):
        if asked.module not in (None, module):
            continue
        equivalent = {(one["was"], one["becomes"]) for one in config["equivalent"] if one["module"] == module}
        chosen = Chosen(config["operators"], config["within"].get(module), asked.sample, asked.seed)
        survivors = tried(module, chosen)
        left = {
            diff: text
            for diff, text in survivors.items()
            if diff not in equivalent and not any(_differ_in(one["pattern"], diff) for one in config["alike"])
        }
        for text in left.values():
            say(text)
        say(f"{module}: {len(survivors)} survived, {len(survivors) - len(left)} of them equivalent")
        if asked.sample is None:
            for was, becomes in sorted(equivalent - survivors.keys()):
                say(f"{module}: no longer a survivor: {was!r} as {becomes!r}")
        has_survivor |= bool(left)
    return int(has_survivor)


def _copy_tree() -> None:
    """Copy what git knows and what is new: cosmic-ray writes into the files that it changes."""
    shutil.rmtree(TREE, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (TREE / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, TREE / name)


def tried(module: str, chosen: Chosen) -> Mapping[Diff, str]:
    """Try the mutants of *module* and return the survivors with their texts."""
    path = Path("datafari_rag") / module
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
    sessions = WorkDB(PLACE / f"{module.replace('/', '.')}-{digest}.sqlite", WorkDB.Mode.create)
    if not sessions.num_work_items:
        init([path], sessions, {})
    tests = Tests(path)
    items = chosen.of(sessions.work_items)
    results: dict[str, WorkResult] = dict(sessions.results)
    killed = {job for job, one in results.items() if one.test_outcome is TestOutcome.KILLED}
    say(f"{module}: {len(items)} mutants, {sum(item.job_id in killed for item in items)} of them killed before")
    begun = time.monotonic()
    for number, item in enumerate(items, start=1):
        if item.job_id not in killed:
            results[item.job_id] = _result(item, tests)
            sessions.set_result(item.job_id, results[item.job_id])
        if number % PROGRESS_EVERY == 0 or number == len(items):
            survived = len(_survivors(items[:number], results))
            passed_s = time.monotonic() - begun
            say(f"{module}: {number} of {len(items)}, {survived} survived, {passed_s:.0f} s")
    sessions.close()
    tests.end()
    return _survivors(items, results)


def _survivors(items: list[WorkItem], results: Mapping[str, WorkResult]) -> dict[Diff, str]:
    ended = (results[item.job_id] for item in items)
    return {_lines(one.diff or ""): one.diff or "" for one in ended if one.test_outcome is not TestOutcome.KILLED}


def _lines(diff: str) -> Diff:
    """Return the changed lines of a unified *diff*."""
    lines = diff.splitlines()[2:]
    was, becomes = ([line[1:].strip() for line in lines if line.startswith(sign)] for sign in "-+")
    return " ".join(was), " ".join(becomes)


def _differ_in(pattern: str, diff: Diff) -> bool:
    """Say whether what was and what becomes of it are the same but for what *pattern* finds."""
    was, becomes = (re.sub(pattern, "", lines) for lines in diff)
    return was == becomes


def _result(item: WorkItem, tests: Tests) -> WorkResult:
    """Put the mutant in place and run the tests."""
    mutation = item.mutations[0]
    operator = get_operator(mutation.operator_name)(**mutation.operator_args)
    with use_mutation(mutation.module_path, operator, mutation.occurrence) as (original, mutated):
        diff = difflib.unified_diff(original.splitlines(), mutated.splitlines(), lineterm="", n=1)
        outcome = TestOutcome.SURVIVED if tests.pass_() else TestOutcome.KILLED
        return WorkResult(WorkerOutcome.NORMAL, test_outcome=outcome, diff="\n".join(diff))


class Tests:
    """The tests that concern the module at *path*, and the process that runs them (`tests/mutants/runner.py`)."""

    def __init__(self, path: Path) -> None:
        """Run them on the unchanged module, where they must pass."""
        python = str(ROOT / ".venv/bin/python")
        made = [python, "-m", "tests.concerning", str(path)]
        listed = subprocess.run(made, capture_output=True, text=True, check=True).stdout.split()
        named = [one for one in listed if Path(one).name.startswith(f"test_{path.stem}")]
        others = [one for one in listed if one not in named]
        stages = [files for files in (named, others) if files]
        command = [python, "-m", "tests.mutants.runner", json.dumps(stages)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if not self.pass_():
            sys.exit(f"the tests of {path} fail without any change: {' '.join(listed)}")

    def pass_(self) -> bool:
        """Say whether all of them pass."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self._process.stdout.readline() == "passed\n"

    def end(self) -> None:
        """End the process."""
        self._process.communicate()


if __name__ == "__main__":
    sys.exit(main())
