"""
The README stays true: every fenced shell block is run unchanged in a copy of the checkout, and what it shows is
compared with the block after it (times, ids and addresses masked). README_UPDATE=1 writes what was seen.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from datafari_rag.bootstrap import create_app
from tests.end_to_end.processes import free_port
from tests.support.waiting import until

ROOT = Path(__file__).parents[1]
PORT = free_port()
"""In place of 8080, which another program may have."""

SHOWN, OURS = "127.0.0.1:8080", f"127.0.0.1:{PORT}"
README = ROOT / "README.md"
FENCE = re.compile(r"^```shell\n(.*?)^```\n(?:\n```(?:text|json)\n(.*?)^```\n)?", re.M | re.S)
MASKS = (
    (re.compile(r"\b[0-9a-f]{32}\b"), "ID"),
    (re.compile(r"\b\d+(?:\.\d+)? ?m?s\b"), "TIME"),
    (re.compile(r"127\.0\.0\.1:(?!8080)\d+"), "127.0.0.1:PORT"),
)


@dataclass(frozen=True)
class Block:
    """A fenced shell block, the output shown after it (None: none), and where that is."""

    command: str
    shown: str | None
    span: tuple[int, int]


def blocks() -> list[Block]:
    text = README.read_text(encoding="utf-8")
    return [Block(found[1], found[2], found.span(2)) for found in FENCE.finditer(text)]


def masked(text: str) -> str:
    for pattern, mask in MASKS:
        text = pattern.sub(mask, text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of what the repository holds, as a newcomer gets it; new files that are not ignored count."""
    place = tmp_path_factory.mktemp("readme") / "datafari_rag"
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, check=True
    )
    for name in listed.stdout.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, place / name)
    return place


@pytest.fixture(scope="module")
def served(checkout: Path) -> Iterator[Path]:
    """Run the first block, `make run`, until the tests of this module are over."""
    log = checkout.parent / "run.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["bash", "-euc", f"{blocks()[0].command.strip()} PORT={PORT}"],
            cwd=checkout,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # pip would compile 3,300 modules, of which this one start imports some 700.
            env={**os.environ, "PIP_COMPILE": "0"},
        )
    try:
        until(lambda: "Ctrl-C" in log.read_text(encoding="utf-8") or process.poll() is not None)
        assert process.poll() is None, log.read_text(encoding="utf-8")
        yield checkout
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)


def test_the_first_block_is_the_one_command_a_newcomer_needs() -> None:
    assert blocks()[0].command == "make run\n"


@pytest.mark.slow
def test_make_run_prints_lines_that_work_as_they_stand(served: Path) -> None:
    log = (served.parent / "run.log").read_text(encoding="utf-8")
    lines = re.findall(r"^curl .*$", log, re.M)
    answers = [subprocess.run(["bash", "-euc", line], capture_output=True, text=True, check=True) for line in lines]

    assert len(lines) == 3
    assert ['"status":"OK"' in answer.stdout for answer in answers[:2]] == [True, True]
    assert "py-howto-enum" in answers[1].stdout
    assert "py-howto-enum" not in answers[2].stdout

    (ask,) = re.findall(r"terminal: (.*)$", log, re.M)
    done = subprocess.run(["bash", "-euc", ask], cwd=served, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout


def run(block: Block, place: Path) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.command.replace(SHOWN, OURS)],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, f"{block.command}\n{done.stdout}\n{done.stderr}"
    return done.stdout.replace(str(place), "/home/you/datafari_rag").replace(OURS, SHOWN)


@pytest.mark.slow
def test_every_other_block_runs_and_shows_what_the_readme_shows(served: Path) -> None:
    seen = [(block, run(block, served)) for block in blocks()[1:]]
    if os.environ.get("README_UPDATE"):
        update(seen)
        return
    for block, output in seen:
        assert block.shown is None or masked(output) == masked(block.shown)


def update(seen: list[tuple[Block, str]]) -> None:
    text = README.read_text(encoding="utf-8")
    for block, output in reversed(seen):
        if block.shown is not None:
            text = text[: block.span[0]] + output.strip() + "\n" + text[block.span[1] :]
    README.write_text(text, encoding="utf-8")


def doors_in(text: str) -> set[str]:
    return set(re.findall(r"`(/[a-z0-9_./]*)(?=[?`\[])", text))


def test_every_door_of_the_readme_is_one_of_the_service_and_the_contract_names_them_all() -> None:
    rules = {rule.rule for rule in create_app(None).url_map.iter_rules()}
    inner = re.compile(r"/Datafari|/static|/admin/|/demo/|/\.well-known|.*<")
    doors = {rule for rule in rules if not inner.match(rule)}
    shown = doors_in(README.read_text(encoding="utf-8"))
    contract = (ROOT / "docs" / "contract.md").read_text(encoding="utf-8")

    assert shown and shown - rules == set()
    assert {"/rest/v2.0/ai", "/chat", "/v1/chat/completions", "/v1/responses", "/mcp", "/grounding/check"} <= shown
    assert doors - doors_in(contract.partition("## 2.")[2].partition("\n## 3.")[0]) == set()
