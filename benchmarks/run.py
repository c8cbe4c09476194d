"""
Measure the service beside its floor and its peers, and write what came out: JSON, Markdown tables, one picture.

    python -m benchmarks.run [--only ROW …] [--targets direct service] [--docs]

Everything is on 127.0.0.1 and bounded in time and count; a row that fails or takes too long says so and the next one is
run. Stubs and callers are Node programs, so that they take less of the machine than what is measured.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from benchmarks import checking, cost, peering, report, streaming
from benchmarks.bench import Bench, TooLong, bounded
from benchmarks.measuring import Result

DOCS = Path(__file__).parent.parent / "docs"


@dataclass(frozen=True, slots=True)
class Row:
    """What is run, and the seconds it may take."""

    run: Callable[[Bench], Result]
    limit_s: float


ROWS: dict[str, Row] = {
    "300x50": Row(streaming.many_streams("300x50"), 150),
    "1000x10": Row(streaming.many_streams("1000x10"), 300),
    "2000x10": Row(streaming.many_streams("2000x10"), 300),
    "haystack": Row(peering.peer("haystack"), 300),
    "langchain": Row(peering.peer("langchain"), 300),
    "litellm": Row(peering.peer("litellm"), 390),
    "check": Row(checking.check, 120),
    "cost": Row(cost.cost, 2_700),
}


def machine() -> Result:
    """Return what was measured where."""
    processors = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = ("gunicorn", "gevent", "flask", "orjson", "urllib3", "requests", "tantivy")
    return {
        "processor": next((line.split(":")[1].strip() for line in processors if "model name" in line), ""),
        "cores": sum(line.startswith("processor") for line in processors),
        "python": platform.python_version(),
        "node": subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout.strip(),
        "kernel": platform.release(),
        "versions": {name: metadata.version(name) for name in names},
        "load_before": Path("/proc/loadavg").read_text(encoding="ascii").split()[0],
    }


def measure(name: str, bench: Bench) -> Result:
    """Return a row, or what of it there is and under "error" why there is no more."""
    bench = replace(bench, done={})
    try:
        with bounded(ROWS[name].limit_s):
            return ROWS[name].run(bench)
    except (Exception, TooLong) as error:
        return {**bench.done, "error": f"{type(error).__name__}: {str(error)[-600:]}"}


def main() -> None:
    """Run the rows and write the results."""
    # On SIGTERM it ends what it started, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # Thousands of connections, in what is started here as well.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    options = _options()
    options.out.mkdir(parents=True, exist_ok=True)
    command = "python -m benchmarks.run " + shlex.join(sys.argv[1:])
    date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    found: Result = {"command": command.strip(), "date": date, "machine": machine(), "rows": {}}
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="datafari-rag-bench-") as folder:
        bench = Bench(Path(folder), options.targets)
        for name in options.only or ROWS:
            row_began = time.monotonic()
            found["rows"][name] = measure(name, bench)
            print(f"{name}: {time.monotonic() - row_began:.0f} s", file=sys.stderr, flush=True)
            found["took_s"] = time.monotonic() - began
            (options.out / "bench.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    print(report.write(found, options.out))
    if options.docs and "cost" in found["rows"]:
        report.into_docs(found, options.out, DOCS)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[1])
    parser.add_argument("--only", nargs="*", choices=ROWS, help="these rows alone")
    parser.add_argument("--targets", nargs="*", default=(), help="direct or service; both when not given")
    parser.add_argument("--docs", action="store_true", help="write the table of costs into docs/performance.md, too")
    parser.add_argument("--out", type=Path, default=Path("bench-results"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
