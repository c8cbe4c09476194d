"""
What an answer costs whatever the documents weigh: CPU of the service, and of Solr, beside the floor of the same stack.

Each set of documents is indexed once into an embedded index and once into a real Solr, then each of its questions is
asked twice, one after the other, of one worker: the first time nobody has met it. Documents of 3, 30 and 300 kB are
made of the demo's pages; the real sets are in the folder that `SETS` names, and are left out without it.
"""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from benchmarks.bench import Bench, tried
from benchmarks.corpus import texts
from benchmarks.measuring import Result, Target
from benchmarks.peering import haystack, langchain, litellm
from benchmarks.processes import NotStarted, Running, cpu_s, fetch, free_port, running
from benchmarks.services import CHAT, HERE, Stubs, asking, service, stubs
from datafari_rag_trials.solr import process as solr_process
from datafari_rag_trials.solr.process import Running as RunningSolr

KILOBYTES = (3, 30, 300)
DOCUMENTS, QUESTIONS, WARM_UP = {3: 240, 30: 120, 300: 60}, 48, 8
REAL_SETS = ("squad", "cuad", "nq-longdoc")
SETS = "DATAFARI_RAG_SETS"
FLOOR_ANSWERS, ROUNDS = 300, 10
SETTINGS = {"rag.maxJsonLength": "60000", "security.anonymous": "public"}
PEERS = {"haystack": haystack, "langchain": langchain}
"""What others wrote, over the same Solr."""

Peer = Target | str
"""A peer, or why it did not start."""


@dataclass(frozen=True, slots=True)
class Library:
    """A set of documents, and what is asked of them; the first `WARM_UP` questions are asked before all others."""

    name: str
    documents: Sequence[Mapping[str, str]]
    questions: Sequence[str]
    rounds: int = 1
    """How often the first ones are asked: Java compiles what Solr does often."""


def cost(bench: Bench) -> Result:
    """Return the floor, and for each set what answers cost over each engine."""
    with stubs(bench.folder / "cost") as behind, ExitStack() as stack:
        behind.pace(first_ms=0, tokens=30)
        bench.done["floor"] = tried(lambda: floor(behind))
        stack.callback(solr_process.stopped, bench.folder / "cost-solr")
        solr = solr_process.started(bench.folder / "cost-solr")
        peers = {name: _started(stack, make, behind, solr) for name, make in PEERS.items()}
        bench.done.update((name, {"error": peer}) for name, peer in peers.items() if isinstance(peer, str))
        bench.done["litellm"] = tried(lambda: _without_search(behind))
        for library in _libraries():
            bench.done[library.name] = tried(lambda one=library: _costs(one, solr, behind, peers))  # type: ignore[misc]
    return bench.done


def _started(
    stack: ExitStack, make: Callable[..., AbstractContextManager[Target]], behind: Stubs, solr: RunningSolr
) -> Peer:
    try:
        return stack.enter_context(make(behind, solr=f"{solr.url}/select"))
    except NotStarted as error:
        return str(error)


def _libraries() -> Iterator[Library]:
    for kb in KILOBYTES:
        yield _made_up(kb)
    folder = Path(os.environ.get(SETS, ""))
    for name in REAL_SETS if os.environ.get(SETS) else ():
        documents = [
            {"id": f"{name}-{row['id']}", "title": row["title"], "content": row["content"], "language": "en"}
            for row in _rows(folder / name / "docs.jsonl")
        ]
        asked = [row["question"] for row in _rows(folder / name / "questions.jsonl")]
        yield Library(name, documents, asked[:: max(1, len(asked) // QUESTIONS)][:QUESTIONS])


def _rows(file: Path) -> list[Result]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def _made_up(kb: int) -> Library:
    """Return documents of *kb*, each of which names a station somewhere; what is asked is asked of one of them."""
    pages, chosen = texts(), random.Random(35)
    documents = []
    for number in range(DOCUMENTS[kb]):
        parts = [f"The report of station {number} says that its turbine gave {number * 7} units in {1980 + number}."]
        while sum(map(len, parts)) < kb * 1000:
            parts.append(chosen.choice(pages)[: kb * 500])
        chosen.shuffle(parts)
        text = "\n\n".join(parts)[: kb * 1000 + 100]
        documents.append({"id": f"d{number}", "title": f"Station {number}", "content": text, "language": "en"})
    asked = [f"What does the report of station {at} say of its turbine in {1980 + at}?" for at in range(QUESTIONS)]
    return Library(f"{kb} kB", documents, asked, ROUNDS if kb == KILOBYTES[0] else 1)


def floor(behind: Stubs) -> Result:
    """Return the CPU of an answer of the floor, in milliseconds."""
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "-k", "gevent", "-w", "1", "-b", f"127.0.0.1:{port}"]
    environ = {"MODEL": f"http://127.0.0.1:{behind.model.port}{CHAT}"}
    log = behind.folder / "floor.log"
    with running([*command, "--chdir", HERE, "floor:app"], port=port, log=log, environ=environ) as found:
        return {"ms": _each_ms(found, lambda: fetch(port, "/"))}


def _without_search(behind: Stubs) -> Result:
    """Return what one question costs LiteLLM's proxy, which sends it to the model as it is."""
    with litellm(behind) as target:
        plan = asking(target, is_streamed=False)
        return {"ms": _each_ms(target.served_by, lambda: _ask(target, plan, "What does the report say?"))}


def _each_ms(served_by: Running | None, ask: Callable[[], object]) -> float:
    for _ in range(20):
        ask()
    before = _cpu_s(served_by)
    for _ in range(FLOOR_ANSWERS):
        ask()
    return (_cpu_s(served_by) - before) * 1000 / FLOOR_ANSWERS


def _costs(library: Library, solr: RunningSolr, behind: Stubs, peers: Mapping[str, Peer]) -> Result:
    """Return what each way of answering costs over *library*, the same questions each time."""
    lines, index = behind.folder / f"{library.name}.jsonl", behind.folder / f"index {library.name}"
    lines.write_text("".join(f"{json.dumps(one)}\n" for one in library.documents), encoding="utf-8")
    url, pid = solr.url, solr.processes[0].pid
    found: Result = {"chars": sum(len(one["content"]) for one in library.documents)}
    found["embedded"] = {"index_s": _run(f"embedded:{index}", behind, "index", str(lines))}
    found["embedded"]["mb"] = sum(one.stat().st_size for one in index.rglob("*") if one.is_file()) / 1e6
    with service(behind, workers=1, **{"solr.url": f"embedded:{index}", **SETTINGS}) as ours:
        found["embedded"] |= _asked(ours, library, lambda: 0.0)
    found["Solr"] = {"index_s": _run(url, behind, "index", str(lines))}
    found["Solr"] |= _over_solr(library, url, behind, pid)
    found["snippets"] = _over_solr(library, url, behind, pid, rag__solrField="highlighting")
    found |= {name: _of_peer(peer, library, pid) for name, peer in peers.items()}
    found["Solr with passages"] = {"index_s": _run(url, behind, "passages", "sync")}
    found["Solr with passages"] |= _over_solr(library, url, behind, pid)
    # The next library finds it empty: what was taken from the file before is removed.
    lines.write_text("", encoding="utf-8")
    _run(url, behind, "index", str(lines))
    _run(url, behind, "passages", "sync")
    return found


def _over_solr(library: Library, url: str, behind: Stubs, pid: int, **settings: str) -> Result:
    with service(behind, workers=1, **{"solr.url": url, **SETTINGS, **settings}) as ours:
        return _asked(ours, library, lambda: cpu_s(pid))


def _run(url: str, behind: Stubs, *arguments: str) -> float:
    """Run a command of the service over the engine at *url*; return the seconds of CPU that it took itself."""
    conf = behind.folder / "index.properties"
    conf.write_text(f"solr.url={url}\n", encoding="utf-8")
    conf.chmod(0o600)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "datafari_rag", *arguments, "--conf", str(conf)]
    subprocess.run(command, check=True, capture_output=True, timeout=240)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _asked(target: Target, library: Library, solr_cpu_s: Callable[[], float]) -> Result:
    """Return the CPU of *target* and of Solr for one answer: of questions that are new, and of the same once more."""
    plan = asking(target, is_streamed=False)
    for question in [*library.questions[:WARM_UP]] * library.rounds:
        _ask(target, plan, question)
    questions, found = library.questions[WARM_UP:], {}
    for when in ("new", "again"):
        before = _cpu_s(target.served_by), solr_cpu_s()
        for question in questions:
            _ask(target, plan, question)
        after = _cpu_s(target.served_by), solr_cpu_s()
        own, solr = ((late - early) * 1000 / len(questions) for early, late in zip(before, after, strict=True))
        found[when] = {"ms": own, "solr_ms": solr}
    return found


def _ask(target: Target, plan: Mapping[str, object], question: str) -> None:
    spelled = quote(question) if plan["method"] == "GET" else json.dumps(question)[1:-1]
    body = str(plan["body"]).replace("QUESTION", spelled).encode() if "body" in plan else None
    named = {"X_Remote_User": "bench"} | ({"Content_Type": "application/json"} if body else {})
    fetch(target.port, str(plan["path"]).replace("QUESTION", spelled), body, **named)


def _of_peer(peer: Peer, library: Library, pid: int) -> Result:
    return {"error": peer} if isinstance(peer, str) else _asked(peer, library, lambda: cpu_s(pid))


def _cpu_s(served_by: Running | None) -> float:
    return 0.0 if served_by is None else served_by.cpu_s()
