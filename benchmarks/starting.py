"""What the service takes before anybody asks: its start, its idle memory, its place on the disk."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import docx

from benchmarks.bench import Bench
from benchmarks.measuring import Result
from benchmarks.processes import NotStarted, Running, fetch, free_port, running
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


def demo_folder(bench: Bench) -> Result:
    """How long `demo FOLDER` takes to its first page, and to the end of ten files, the middle of three; and the CPU."""
    found: dict[str, list[float]] = {"page_s": [], "read_s": [], "cpu_s": []}
    for turn in range(3):
        place = bench.folder / f"demo-{turn}"
        write_ten_files(place / "files")
        port = free_port()
        command = [sys.executable, "-m", "datafari_rag", "demo", place / "files", "--port", str(port)]
        began = time.monotonic()
        with running(command, port=port, log=place / "log", environ={"DATAFARI_RAG_HOME": str(place)}) as ours:
            fetch(port, "/")
            found["page_s"].append(time.monotonic() - began)
            _wait_read(ours, began + 30)
            found["read_s"].append(time.monotonic() - began)
            found["cpu_s"].append(ours.cpu_s())
    return {name: sorted(values)[1] for name, values in found.items()} | {"all": found}


def write_ten_files(folder: Path) -> None:
    """Write ten small files as people have them: notes, texts, pages, a table, guides from Word."""
    folder.mkdir(parents=True)
    for number in range(2):
        text = f"Every room of floor {number} has a key. Keys are kept at the front desk. " * 20
        for ending, content in (
            ("md", f"# Guide {number}\n\n## Rooms\n\n{text}\n\n| Room | Seats |\n|---|---|\n| {number}01 | 12 |\n"),
            ("txt", f"Notes {number}\n\n{text}\n"),
            ("html", f"<title>Page {number}</title><h1>Rooms</h1><p>{text}"),
            ("csv", "room,seats\n" + "".join(f"{number}{room:02},{room}\n" for room in range(1, 40))),
        ):
            (folder / f"file-{number}.{ending}").write_text(content, encoding="utf-8")
        guide = docx.Document()
        guide.add_heading(f"Rooms {number}", 0)
        guide.add_paragraph(text)
        guide.save(str(folder / f"file-{number}.docx"))


def _wait_read(ours: Running, limit: float) -> None:
    while not json.loads(fetch(ours.port, "/demo/progress"))["runs"]:
        if time.monotonic() > limit:
            raise NotStarted("the files were not read in time")
        time.sleep(0.02)


def size(bench: Bench) -> Result:
    """What an installation without extras takes on the disk, Python's compiled files included, pip not."""
    venv = bench.folder / "installed"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True, timeout=120)
    # Without their hashes: pip would want one for this project too.
    lines = (PROJECT / "requirements-dev.lock").read_text("utf-8").splitlines()
    versions = bench.folder / "versions.txt"
    versions.write_text("\n".join(line.rstrip(" \\") for line in lines if "==" in line), encoding="utf-8")
    # From outside, so that nothing is there but what the package asks for.
    install = [sys.executable, "-m", "pip", "--python", venv / "bin" / "python", "install"]
    said = ["--quiet", "--disable-pip-version-check", "-c", versions, PROJECT]
    subprocess.run([*install, *said], check=True, timeout=240, capture_output=True)
    packages = next((venv / "lib").glob("python3*")) / "site-packages"
    sizes = {one.name: _bytes(one) for one in packages.iterdir()}
    largest = sorted(sizes.items(), key=lambda pair: -pair[1])[:6]
    return {"mb": sum(sizes.values()) / 1e6, "largest_mb": {name: round(taken / 1e6, 1) for name, taken in largest}}


def _bytes(place: Path) -> int:
    files = [place] if place.is_file() else [one for one in place.rglob("*") if one.is_file()]
    return sum(one.stat().st_size for one in files)
