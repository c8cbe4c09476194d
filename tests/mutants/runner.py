"""
Runs tests again and again for `make mutants`, each time in a process that has every library but nothing of ours.

Starting Python, importing libraries and loading the plugins of pytest takes six times as long as the tests of most
modules: a first collection does it for all runs. The argument is a list of stages in JSON, each a list of files. A line
of the standard input is one run, and its answer is "passed" or "failed". The first run, where all of them pass, shows
how many seconds of CPU each stage may take.
"""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import sys
import time
from collections.abc import Sequence

import pytest

MOST_BYTES = 3 << 30
"""Memory of one run: a mutant that never ends often gathers all there is."""

MOST_S = 600
"""After which a run is ended that waits for what never comes."""

OURS = ("datafari_rag", "tests")

OPTIONS = ("-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore::pytest.PytestAssertRewriteWarning")
"""The first failure is enough; and what is imported before pytest looks at it is what this is for."""


def main() -> None:
    """Answer each line until there are no more."""
    # A mutant that only the last of hundreds of random cases shows is not worth their time with each of the others.
    os.environ.setdefault("PROPERTY_CASES", "60")
    stages: list[list[str]] = json.loads(sys.argv[1])
    answers = os.fdopen(os.dup(1), "w")
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in range(1, 3):
        os.dup2(quiet, stream)
    pytest.main([*OPTIONS, "--collect-only", *(name for stage in stages for name in stage)])
    for name in [name for name in sys.modules if name.partition(".")[0].startswith(OURS)]:
        del sys.modules[name]
    # What is compiled is known by its time in seconds and its size: two mutants of one second could be the same file.
    sys.dont_write_bytecode = True
    most_cpu_s: dict[int, int] = {}
    for _ in sys.stdin:
        for number, stage in enumerate(stages):
            has_passed, cpu_s = _run(stage, most_cpu_s.get(number, MOST_S))
            most_cpu_s.setdefault(number, math.ceil(2 + 3 * cpu_s))
            if not has_passed:
                break
        answers.write("passed\n" if has_passed else "failed\n")
        answers.flush()


def _run(files: Sequence[str], most_cpu_s: int) -> tuple[bool, float]:
    """Run pytest in a child; say whether all passed within its limits, and the seconds of CPU that it took."""
    child = os.fork()
    if child == 0:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (most_cpu_s, most_cpu_s))
        os._exit(pytest.main([*OPTIONS, *files]))
    ends = time.monotonic() + MOST_S
    while time.monotonic() < ends:
        done, status, used = os.wait4(child, os.WNOHANG)
        if done:
            return status == 0, used.ru_utime + used.ru_stime
        time.sleep(0.01)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False, MOST_S


if __name__ == "__main__":
    main()
