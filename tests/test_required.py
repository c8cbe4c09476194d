"""A missing part: a skip on a developer's machine, a failure on CI."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests import required

MISSING: dict[str, Callable[[], object]] = {
    "a program": lambda: required.program("no-such-program", "install it"),
    "a library": lambda: required.library("no_such_library", "install it"),
    "a folder": lambda: required.present(Path("no such folder"), "make it"),
}


@pytest.mark.parametrize("ask", MISSING.values(), ids=MISSING.keys())
@pytest.mark.parametrize(("ci", "outcome"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)])
def test_what_is_missing_is_a_skip_and_on_ci_a_failure(
    ask: Callable[[], object], ci: str, outcome: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", ci)

    with pytest.raises(outcome, match=r"NOT TESTED: .* is missing; "):
        ask()


def test_what_is_there_is_no_matter_of_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")

    assert required.program("python3", "install it").endswith("python3")
    required.library("json", "install it")
