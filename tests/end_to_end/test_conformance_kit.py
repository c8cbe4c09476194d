"""The kit against a fresh demo service: every promise is kept at every door; and what its command prints."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from importlib import resources

import pytest
from click.testing import CliRunner

from datafari_rag.commands.demo.index import build_demo_index
from datafari_rag_trials.conformance.command import conformance
from datafari_rag_trials.conformance.doors import DOORS
from datafari_rag_trials.conformance.promises import PROMISES
from tests.end_to_end.processes import Running, free_port, running


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("kit")
    build_demo_index(folder / "index")
    for name in ("rag.properties", "users.json"):
        with resources.as_file(resources.files("datafari_rag.resources") / "demo" / name) as source:
            shutil.copyfile(source, folder / name)
            (folder / name).chmod(0o600)
    port = free_port()
    command = ("serve", "--conf", str(folder / "rag.properties"), "--port", str(port), "--workers", "1")
    with running(folder, "serve", *command, port=port, health="/health/live") as service:
        yield service


def test_every_promise_is_kept_at_every_door(demo: Running) -> None:
    ran = CliRunner().invoke(conformance, [demo.url, "--json"])
    told = json.loads(ran.output)
    assert [row for row in told["promises"] if row["problem"] is not None] == []
    assert ran.exit_code == 0
    asked = {(row["door"], row["promise"]) for row in told["promises"]}
    left_out = sum(
        len({promise.__name__.replace("_", " ") for promise in PROMISES} & door.cannot.keys()) for door in DOORS
    )
    assert len(asked) == told["kept"] == len(PROMISES) * len(DOORS) - left_out


def test_a_broken_promise_is_named_with_its_door(demo: Running) -> None:
    """The documents of this service have an answer to what should have none."""
    ran = CliRunner().invoke(conformance, [demo.url, "--door", "chat", "--set", "nothing=How do I copy a file?"])
    assert ran.exit_code == 1
    assert "chat whole: Where nothing is found, a sentence says so, and nothing is cited." in ran.output


@pytest.mark.parametrize(
    "arguments",
    [["--set", "wings=two"], ["--set", "question"], ["--door", "carrier pigeon"]],
    ids=["name", "no value", "door"],
)
def test_wrong_usage(arguments: list[str]) -> None:
    assert CliRunner().invoke(conformance, ["http://127.0.0.1:9", *arguments]).exit_code == 2


def test_nothing_answers() -> None:
    ran = CliRunner().invoke(conformance, ["http://127.0.0.1:9"])
    assert (ran.exit_code, ran.output) == (1, "Error: Nothing answers at http://127.0.0.1:9.\n")
