"""
A million passages in a SolrCloud: what searches cost, what filters cost, and what happens while all of it changes.

    python -m benchmarks.million --fill 100000 [--vectors] [--minutes 8] [--merge] [--measure] [--tokens]
                                 [--sync 60] [--switch 30000]

Everything goes through the service's own search, sync and adapters, with the rights of a user in each search. What was
measured is kept by its name in `bench-results/large.json`, so that parts can be measured one at a time.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles

from benchmarks.cloud import Pair, cloud
from benchmarks.library import Library, rights
from benchmarks.meaning import MEMBERS, MODEL, SHARES, QuestionEmbedder, documents, made_up, reader
from benchmarks.measuring import Result
from datafari_rag.adapters.solr.factory import retriever_for, writer_for
from datafari_rag.adapters.solr.retriever import SolrRetriever
from datafari_rag.core.access import Filter, User, filter_for
from datafari_rag.core.ask import Ask
from datafari_rag.core.errors import RagError
from datafari_rag.core.meaning.near_search import NearSearch
from datafari_rag.core.query.plan import searches_for
from datafari_rag.core.vectors import Vector
from datafari_rag.ports import Meaning, T, U, Writer
from datafari_rag.retrieval import Engines, searched

RESULTS = Path("bench-results") / "large.json"
CALLERS = {1: 100, 8: 200, 32: 256}
"""Callers at a time → searches of all of them together."""

OPEN = filter_for(User("everyone"), mode="none", anonymous="public")
MOST_ROUNDS = 20
WAITING = ThreadPoolExecutor(64)
"""Where the second of two searches of one question runs."""


@dataclass
class Searching:
    """The service's search over a pair; each question is asked once, so that no list of hits is remembered."""

    pair: Pair
    seed: int = 100

    def __post_init__(self) -> None:
        """Open the connections."""
        self.settings = self.pair.settings
        self.retriever: SolrRetriever = retriever_for(self.settings)
        self._library, self._vectors = Library(), made_up()

    def cost(self, kind: str, accesses: Sequence[Filter], *, callers: int = 1, count: int = 100) -> Result:
        """Search *count* times with so many *callers*: milliseconds on the wall, and of CPU, a search."""
        self.seed += 1
        texts = self._library.questions(count, self.seed)
        known = dict(zip(texts, self._vectors.questions(count, self.seed), strict=True))
        search = KINDS[kind](self, known)

        def one(number: int) -> tuple[float, int]:
            began = time.perf_counter()
            found = search(texts[number], accesses[number % len(accesses)])
            return (time.perf_counter() - began) * 1000, found

        cpu_s, own_s, began = self.pair.cloud.cpu_s(), time.process_time(), time.monotonic()
        with ThreadPoolExecutor(callers) as pool:
            seen = list(pool.map(one, range(count)))
        took_s = time.monotonic() - began
        cuts = quantiles([ms for ms, _ in seen], n=100, method="inclusive")
        return {
            "p50": cuts[49],
            "p99": cuts[98],
            "n": count,
            "per_s": count / took_s,
            "solr_cpu_ms": (self.pair.cloud.cpu_s() - cpu_s) * 1000 / count,
            "own_cpu_ms": (time.process_time() - own_s) * 1000 / count,
            "found": sum(found for _, found in seen) / count,
        }

    def warm_up(self, kind: str) -> None:
        """Search until it gets no cheaper: Java compiles what is done often, and the files are read into memory."""
        best = math.inf
        for _ in range(MOST_ROUNDS):
            cost = self.cost(kind, [*filters().values()], callers=2, count=90)["solr_cpu_ms"]
            if cost > 0.97 * best:
                return
            best = cost

    def engines(self, known: Mapping[str, Vector] | None) -> Engines:
        """Return what searches by words, and with vectors of questions by meaning as well."""
        passages = self.retriever.passages
        meaning = None if known is None or passages is None else Meaning(QuestionEmbedder(known), passages)
        return Engines(self.retriever, meaning, both=_at_once)


def _at_once(first: Callable[[], T], second: Callable[[], U]) -> tuple[T, U]:
    later = WAITING.submit(second)
    return first(), later.result()


Search = Callable[[str, Filter], int]


def _read(searching: Searching, engines: Engines) -> Search:
    def search(question: str, access: Filter) -> int:
        plan = searches_for(Ask(question), language="en", settings=searching.settings)
        return len(searched(plan, access, settings=searching.settings, engines=engines).found.documents)

    return search


def _words(searching: Searching, known: Mapping[str, Vector]) -> Search:
    return _read(searching, searching.engines(None))


def _both(searching: Searching, known: Mapping[str, Vector]) -> Search:
    return _read(searching, searching.engines(known))


def _nearest(searching: Searching, known: Mapping[str, Vector]) -> Search:
    passages = searching.retriever.passages
    assert passages is not None

    def search(question: str, access: Filter) -> int:
        near = NearSearch(known[question], MODEL.key, searching.settings.rag_search.candidates, spread=MODEL.spread)
        return len(passages.nearest(near, access))

    return search


KINDS: dict[str, Callable[[Searching, Mapping[str, Vector]], Search]] = {
    "words": _words,
    "nearest": _nearest,
    "both": _both,
}


def access_of(user: User) -> Filter:
    """Return the filter of a user who is signed in."""
    return filter_for(user, mode="tokens", anonymous="refuse")


def filters() -> dict[str, Filter]:
    """Return the filters that are measured, by the share of the documents that they let through."""
    members = {share: User(f"member of {groups}", rights(7, groups)) for share, groups in MEMBERS.items()}
    users = members | {share: reader(share) for share in SHARES}
    return {"open": OPEN} | {f"1 in {share:,}": access_of(users[share]) for share in sorted(users)}


def measure(
    pair: Pair, kinds: Sequence[str], shares: Sequence[str], callers: Sequence[int]
) -> Iterator[tuple[str, Result]]:
    """Yield what a search costs by its kind, its filter and the number of callers."""
    searching = Searching(pair)
    for kind in kinds:
        searching.warm_up(kind)
        for share in shares:
            for number in callers:
                cost = searching.cost(kind, [filters()[share]], callers=number, count=CALLERS[number])
                yield f"{kind}, {share}, {number}", cost


def tokens(pair: Pair, kind: str) -> Iterator[tuple[str, Result]]:
    """Yield what users with many rights cost: those who ask again, and another one each time."""
    searching = Searching(pair)
    searching.warm_up(kind)
    for number in (50, 500, 2_000):
        again = access_of(User("again", rights(1, number)))
        searching.cost(kind, [again], count=3)
        yield f"{kind}, {number} tokens, the same user", searching.cost(kind, [again], count=60)
        others = [access_of(User("other", rights(seed, number))) for seed in range(1_000, 1_060)]
        yield f"{kind}, {number} tokens, another user each time", searching.cost(kind, others, count=60)


def kept(found: Mapping[str, Result]) -> None:
    """Add what was measured to the file of results."""
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    RESULTS.parent.mkdir(exist_ok=True)
    for run, one in found.items():
        known[run] = {**known.get(run, {}), **one}
    RESULTS.write_text(json.dumps(known, indent=1), encoding="utf-8")


@dataclass
class Changes:
    """Documents that change, some a second, and how old each change was when its passages had it."""

    pair: Pair
    per_s: int
    pending: list[tuple[float, str, int]] = field(default_factory=list)
    """When a change could be found, of which document, and its version."""
    ages_s: list[float] = field(default_factory=list)
    written: int = 0
    oldest_s: float = 0.0
    is_over: threading.Event = field(default_factory=threading.Event)

    def write(self) -> None:
        """Change documents, and commit, once a second until it is over."""
        with closing(writer_for(self.pair.settings)) as writer:
            while not self.is_over.is_set():
                began = time.monotonic()
                self.changed(writer, self.per_s)
                self.is_over.wait(max(0.0, 1 - (time.monotonic() - began)))

    def changed(self, writer: Writer, number: int) -> None:
        """Change the next *number* documents: as long as before, with other words."""
        at = [(self.written + one) % CHANGING for one in range(number)]
        made = [next(documents(LIBRARY, place, 1)) for place in at]
        rows = [{**one.row, "title": f"Changed {self.written}", "exactContent": "".join(one.texts)} for one in made]
        writer.add(rows)
        writer.commit()
        names, found_at = [str(row["id"]) for row in rows], time.monotonic()
        versions = self.pair.cloud.versions(self.pair.collections[0], names)
        self.pending += [(found_at, name, versions[name]) for name in names]
        self.written += number

    def look(self) -> None:
        """Take those changes off the list that the passages have, until it is over and none is left."""
        until_s = time.monotonic() + 600
        while (self.pending or not self.is_over.is_set()) and time.monotonic() < until_s:
            some = self.pending[:400]
            there = self.pair.passages_of({name for _, name, _ in some})
            now = time.monotonic()
            for one in some:
                self.oldest_s = max(self.oldest_s, now - one[0])
                if there.get(one[1], 0) >= one[2]:
                    self.pending.remove(one)
                    self.ages_s.append(now - one[0])
            time.sleep(0.5)


LIBRARY = Library()
CHANGING = 1_800
"""Documents that change in turn."""

FOLLOW_S = 1


def sync(pair: Pair, *, per_s: int, seconds: float) -> Iterator[tuple[str, Result]]:
    """Yield what `passages sync` takes: with nothing to do, after a burst, behind a stream and killed in its middle."""
    with tempfile.TemporaryDirectory() as folder:
        conf = Path(folder) / "rag.properties"
        url, collection = pair.settings.solr_url, pair.settings.solr_vector_collection
        conf.write_text(f"solr.url={url}\nsolr.vector.collection={collection}\n", encoding="ascii")
        conf.chmod(0o600)
        yield "sync, nothing changed", _round(pair, conf)
        changes = Changes(pair, per_s)
        with closing(writer_for(pair.settings)) as writer:
            changes.changed(writer, BURST)
        yield f"sync, {BURST} documents changed", _round(pair, conf)
        changes.pending.clear()
        changes = Changes(pair, per_s)
        threads = [threading.Thread(target=work) for work in (changes.write, changes.look)]
        command = [sys.executable, "-m", "datafari_rag", "passages", "sync", "--conf", str(conf)]
        for half in ("killed", "resumed"):
            running = subprocess.Popen(
                [*command, "--follow", str(FOLLOW_S)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            if half == "killed":
                for one in threads:
                    one.start()
            time.sleep(seconds / 2)
            if half == "killed":
                running.kill()
                running.communicate()
        changes.is_over.set()
        for one in threads:
            one.join(600)
        running.terminate()
        running.communicate()
        ages = changes.ages_s
        age = {"s old in the median": median(ages) if ages else None, "s the oldest": changes.oldest_s}
        counts = {"changes": changes.written, "found": len(ages), "never found": len(changes.pending)}
        yield f"sync, {per_s} documents a second", counts | age
        yield "sync, after the kill", _round(pair, conf)


BURST = 300


def _round(pair: Pair, conf: Path) -> Result:
    """Run `passages sync` once; say what it printed, and the seconds."""
    command = [sys.executable, "-m", "datafari_rag", "passages", "sync", "--conf", str(conf)]
    began, cpu_s = time.monotonic(), pair.cloud.cpu_s()
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=900).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = {"s": time.monotonic() - began, "s of Solr's CPU": pair.cloud.cpu_s() - cpu_s}
    own_s = after.ru_utime + after.ru_stime - own.ru_utime - own.ru_stime
    return took | {"s of its own": own_s, "": said.strip()}


def switch(live: Pair, *, passages: int) -> Iterator[tuple[str, Result]]:
    """Yield what callers saw while a second pair was filled beside *live* and two aliases were switched to it."""
    beside = Pair(live.cloud, "Beside")
    beside.deleted()
    aliases = Pair(live.cloud, "Live")

    def switched(to: Pair) -> None:
        for alias, name in zip(aliases.collections, to.collections, strict=True):
            live.cloud.admin(action="CREATEALIAS", name=alias, collections=name)

    switched(live)
    answers: Counter[str] = Counter()
    is_over = threading.Event()
    searching = Searching(aliases)
    search, access = _words(searching, {}), filters()["1 in 1"]
    questions = LIBRARY.questions(400, 77)

    def ask(first: int) -> None:
        number = first
        while not is_over.is_set():
            number += 1
            try:
                answers["answers" if search(questions[number % 400], access) else "without a document"] += 1
            except RagError as error:
                answers[f"failed: {error.label}"] += 1
            is_over.wait(0.05)

    callers = [threading.Thread(target=ask, args=(number * 100,)) for number in range(4)]
    for one in callers:
        one.start()
    try:
        began = time.monotonic()
        beside.made().fill(passages)
        answers["asked before the switch"] = answers.total()
        switch_began = time.monotonic()
        switched(beside)
        took = {"fill_s": switch_began - began, "switch_s": time.monotonic() - switch_began}
        time.sleep(15)
        switched(live)
        time.sleep(5)
    finally:
        is_over.set()
        for one in callers:
            one.join(60)
    yield "switch", {**answers, **took, "passages": passages}
    for alias in aliases.collections:
        live.cloud.admin(action="DELETEALIAS", name=alias)
    beside.deleted()


def main() -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[1])
    parser.add_argument("--fill", type=int, help="passages that there shall be")
    parser.add_argument("--vectors", action="store_true", help="those with vectors; else with words alone")
    parser.add_argument("--own", action="store_true", help="in a pair of their own, which is removed afterwards")
    parser.add_argument("--minutes", type=float, default=8, help="how long it is filled at most")
    parser.add_argument("--merge", action="store_true", help="merge the segments of each shard into one")
    parser.add_argument("--measure", nargs="*", choices=KINDS, help="what kinds of searches cost")
    parser.add_argument("--shares", nargs="*", default=list(filters()), help="of these filters")
    parser.add_argument("--callers", nargs="*", type=int, default=list(CALLERS), help="with so many callers")
    parser.add_argument("--tokens", action="store_true", help="what many rights cost")
    parser.add_argument("--sync", type=float, help="passages sync behind changes for so many seconds")
    parser.add_argument("--switch", type=int, help="a reindex of so many passages beside the live collection")
    options = parser.parse_args()
    with cloud() as found:
        name = "Vectors" if options.vectors else "Words"
        pair = Pair(found, f"{name}{options.fill}" if options.own else name, options.vectors).made()
        if options.fill:
            pair.fill(options.fill, seconds=options.minutes * 60)
        if options.merge:
            pair.merged()
        run = f"{name} {pair.done['passages']:,}"
        kept({run: {"facts": {**pair.done, **pair.facts()}}})
        parts: list[Iterator[tuple[str, Result]]] = []
        if options.measure:
            parts.append(measure(pair, options.measure, options.shares, options.callers))
        if options.tokens:
            parts.append(tokens(pair, "nearest" if options.vectors else "words"))
        if options.sync:
            parts.append(sync(pair, per_s=5, seconds=options.sync))
        if options.switch:
            parts.append(switch(pair, passages=options.switch))
        for what, one in (row for part in parts for row in part):
            kept({run: {what: one}})
            print(f"{run}: {what}: {_line(one)}", flush=True)
        if options.own:
            pair.deleted()


def _line(one: Result) -> str:
    return ", ".join(
        f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in one.items()
    )


if __name__ == "__main__":
    main()
