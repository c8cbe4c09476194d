"""What the service takes before anybody asks: its start, its idle memory, its place on the disk."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.measuring import Result
from benchmarks.processes import fetch
from benchmarks.services import service, stubs

ASKED = "/search/select?action=rag&q=How+do+I+copy+a+file"
PROJECT = Path(__file__).parent.parent


def start(bench: Bench) -> Result:
    """How long from the command to the first whole answer, the middle of three; and the idle memory of a worker."""
    times, idle = [], []
    with stubs(bench.folder / "start") as behind:
        for _ in range(3):
            began = time.monotonic()
            with service(behind) as ours:
                fetch(ours.port, ASKED, X_Remote_User="bench")
                times.append(time.monotonic() - began)
                time.sleep(1)
                idle.append(ours.served_by.pss_mib() if ours.served_by else [])
    return {"start_s": sorted(times)[1], "all_s": times, "idle_pss_mib": idle[-1]}


def size(bench: Bench) -> Result:
    """What an installation without extras takes on the disk, Python's compiled files included, pip not."""
    venv = bench.folder / "installed"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True, timeout=120)
    # From outside, so that nothing is there but what the package asks for.
    install = [sys.executable, "-m", "pip", "--python", venv / "bin" / "python", "install"]
    said = ["--quiet", "--disable-pip-version-check", "-c", PROJECT / "requirements-dev.lock", PROJECT]
    subprocess.run([*install, *said], check=True, timeout=240, capture_output=True)
    packages = next((venv / "lib").glob("python3*")) / "site-packages"
    sizes = {one.name: _bytes(one) for one in packages.iterdir()}
    largest = sorted(sizes.items(), key=lambda pair: -pair[1])[:6]
    return {"mb": sum(sizes.values()) / 1e6, "largest_mb": {name: round(taken / 1e6, 1) for name, taken in largest}}


def _bytes(place: Path) -> int:
    files = [place] if place.is_file() else [one for one in place.rglob("*") if one.is_file()]
    return sum(one.stat().st_size for one in files)
