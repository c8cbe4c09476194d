"""
Runs tests again and again for `make mutants`, each time in a process that has every library but nothing of ours.

Starting Python and importing libraries takes six times as long as the tests of most modules. A line of the standard
input is one run: how many seconds it may take, then the files of each stage. The answer is "passed" or "failed".
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Sequence

import pytest

MOST_BYTES = 3 << 30
"""Memory of one run: a mutant that never ends often gathers all there is."""

OURS = ("datafari_rag", "tests")

OPTIONS = ("-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore::pytest.PytestAssertRewriteWarning")
"""The first failure is enough; and what is imported before pytest looks at it is what this is for."""


def main() -> None:
    """Answer each line until there are no more."""
    # A mutant that only the last of hundreds of random cases shows is not worth their time with each of the others.
    os.environ.setdefault("PROPERTY_CASES", "60")
    importlib.import_module("tests.conftest")
    for name in [name for name in sys.modules if name.partition(".")[0].startswith(OURS)]:
        del sys.modules[name]
    for line in sys.stdin:
        limit_s, *stages = json.loads(line)
        sys.stdout.write("passed\n" if all(_passes(stage, limit_s) for stage in stages) else "failed\n")
        sys.stdout.flush()


def _passes(files: Sequence[str], limit_s: float) -> bool:
    """Run pytest in a child, which is ended with all that it started after *limit_s*."""
    child = os.fork()
    if child == 0:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(quiet, stream)
        os._exit(pytest.main([*OPTIONS, *files]))
    ends = time.monotonic() + limit_s
    while time.monotonic() < ends:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.01)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


if __name__ == "__main__":
    main()
