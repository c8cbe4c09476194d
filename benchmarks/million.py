"""
A million passages in a SolrCloud: what searches cost, what filters cost, and what happens while all of it changes.

    python -m benchmarks.million [--minutes 8] [--only "Vectors 300,000: tokens"]

Everything goes through the service's own search, sync and adapters, with the rights of a user in each search. `RUNS` is
all that docs/sizing.md quotes. What was measured is kept by its name in `bench-results/large.json` and not measured
again: each call goes on where the last one stopped.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import chain
from pathlib import Path
from statistics import median, quantiles

from benchmarks.cloud import Cloud, Pair, cloud
from benchmarks.library import Library, rights
from benchmarks.meaning import MEMBERS, MODEL, SHARES, TOKENS, QuestionEmbedder, documents, made_up, reader
from benchmarks.measuring import Result, Step
from benchmarks.vector_costs import PASSAGES, variants
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
        self._warm: set[str] = set()

    def cost(self, kind: str, accesses: Sequence[Filter], *, callers: int = 1, count: int = 100) -> Result:
        """
        Search *count* times with so many *callers*: milliseconds on the wall, and of CPU, a search.

        Solr may refuse one for want of CPU, as it would in production: it is counted, and the wait for it too.
        """
        self.seed += 1
        texts = self._library.questions(count, self.seed)
        known = dict(zip(texts, self._vectors.questions(count, self.seed), strict=True))
        search = KINDS[kind](self, known)

        def one(number: int) -> tuple[float, int | None]:
            began = time.perf_counter()
            try:
                found = search(texts[number], accesses[number % len(accesses)])
            except RagError:
                found = None
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
            "found": sum(found or 0 for _, found in seen) / count,
            "refused": sum(found is None for _, found in seen),
        }

    def warm_up(self, kind: str) -> None:
        """Search until it gets no cheaper: Java compiles what is done often, and the files are read into memory."""
        if kind in self._warm:
            return
        self._warm.add(kind)
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


@cache
def searching_of(pair: Pair) -> Searching:
    """Return the searches over *pair*: one for all steps, so that no question comes twice."""
    return Searching(pair)


def _at_once(first: Callable[[], T], second: Callable[[], U]) -> tuple[T, U]:
    later = WAITING.submit(second)
    return first(), later.result()


Search = Callable[[str, Filter], int]


def _read(searching: Searching, engines: Engines) -> Search:
    def search(question: str, access: Filter) -> int:
        plan = searches_for(Ask(question), language="en", rag=searching.settings.rag)
        return len(searched(plan, access, settings=searching.settings, engines=engines).result.documents)

    return search


def _words(searching: Searching, known: Mapping[str, Vector]) -> Search:
    return _read(searching, searching.engines(None))


def _both(searching: Searching, known: Mapping[str, Vector]) -> Search:
    return _read(searching, searching.engines(known))


def _nearest(searching: Searching, known: Mapping[str, Vector]) -> Search:
    passages = searching.retriever.passages
    assert passages is not None

    def search(question: str, access: Filter) -> int:
        near = NearSearch(known[question], MODEL.key, searching.settings.rag.search.candidates, spread=MODEL.spread)
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


PREDICTED_SHARES = frozenset(f"1 in {share}" for share in MEMBERS)


def filters() -> dict[str, Filter]:
    """Return the filters that are measured, by the share of the documents that they let through."""
    members = {share: User(f"member of {groups}", rights(7, groups)) for share, groups in MEMBERS.items()}
    users = members | {share: reader(share) for share in SHARES}
    return {"open": OPEN} | {f"1 in {share:,}": access_of(users[share]) for share in sorted(users)}


def costs(
    pair: Pair, kinds: Sequence[str], callers: Sequence[int], shares: Mapping[str, Filter] | None = None
) -> Iterator[Step]:
    """Yield steps: what a search costs by its kind, its filter and the number of callers."""

    def measured(name: str, kind: str, access: Filter, number: int) -> Mapping[str, Result]:
        searching = searching_of(pair)
        searching.warm_up(kind)
        return {name: searching.cost(kind, [access], callers=number, count=CALLERS[number])}

    for kind in kinds:
        for share, access in (shares or filters()).items():
            for number in callers:
                name = f"{kind}, {share}, {number}"
                yield name, partial(measured, name, kind, access, number)


def tokens(pair: Pair, kind: str) -> Iterator[Step]:
    """Yield steps: what users with many rights cost, those who ask again, and another one each time."""

    def measured(name: str, users: Sequence[Filter]) -> Mapping[str, Result]:
        searching = searching_of(pair)
        searching.warm_up(kind)
        if len(users) == 1:
            searching.cost(kind, users, count=3)
        return {name: searching.cost(kind, users, count=60)}

    for number in (50, 500, 2_000):
        again = [access_of(User("again", rights(1, number)))]
        others = [access_of(User("other", rights(seed, number))) for seed in range(1_000, 1_060)]
        for who, users in (("the same user", again), ("another user each time", others)):
            name = f"{kind}, {number} tokens, {who}"
            yield name, partial(measured, name, users)


FEW_GROUPS = 3
"""Of the 3,000, beside rights elsewhere: 1 in 220 documents."""


def filter_cache(pair: Pair, sizes_mb: Sequence[int]) -> Iterator[Step]:
    """Yield steps: what Solr's filter cache keeps of so many users, who ask three times each, and what that saves."""
    elsewhere = {f"elsewhere-{number}" for number in range(TOKENS - FEW_GROUPS)}

    def measured(name: str, number: int, size_mb: int) -> Mapping[str, Result]:
        users = [access_of(User("one", rights(seed, FEW_GROUPS) | elsewhere)) for seed in range(number)]
        asking = random.Random(number).choices(users, k=3 * number)
        with pair.filter_cache_of(size_mb):
            searching = searching_of(pair)
            searching.warm_up("nearest")
            before = pair.filter_cache()
            cost = searching.cost("nearest", asking, callers=2, count=len(asking))
            after = pair.filter_cache()
        found = {key: after[key] - before[key] for key in ("lookups", "hits", "evictions")}
        kept_mb = {"MB kept": after["ramBytesUsed"] / 1e6, "entries": after["size"]}
        return {name: cost | found | kept_mb | {"hit ratio": found["hits"] / found["lookups"]}}

    for size_mb in sizes_mb:
        for number in (300, 1_500):
            name = f"filter cache of {size_mb} MB, {number:,} users"
            yield name, partial(measured, name, number, size_mb)


def results() -> dict[str, dict[str, Result]]:
    """Return what was measured, by the name of the run."""
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}


def kept(run: str, rows: Mapping[str, Result]) -> None:
    """Add what was measured to the file of results."""
    known = results()
    RESULTS.parent.mkdir(exist_ok=True)
    known[run] = {**known.get(run, {}), **rows}
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


def sync(pair: Pair, *, per_s: int = 5, seconds: float = 60) -> Mapping[str, Result]:
    """Return what `passages sync` takes: with nothing to do, after a burst, behind a stream and killed in it."""
    with tempfile.TemporaryDirectory() as folder:
        conf = Path(folder) / "rag.properties"
        url, collection = pair.settings.solr.url, pair.settings.solr.vector_collection
        conf.write_text(f"solr.url={url}\nsolr.vector.collection={collection}\n", encoding="ascii")
        conf.chmod(0o600)
        found = {"sync, nothing changed": _round(pair, conf)}
        changes = Changes(pair, per_s)
        with closing(writer_for(pair.settings)) as writer:
            changes.changed(writer, BURST)
        found[f"sync, {BURST} documents changed"] = _round(pair, conf)
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
        found[f"sync, {per_s} documents a second"] = counts | age
        return found | {"sync, after the kill": _round(pair, conf)}


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


@contextmanager
def asked(pair: Pair) -> Iterator[Counter[str]]:
    """Let four callers search *pair* by words during the block, and count how that ended."""
    answers: Counter[str] = Counter()
    is_over = threading.Event()
    search, access = _words(Searching(pair), {}), filters()["1 in 1"]
    questions = LIBRARY.questions(400, 77)

    def ask(number: int) -> None:
        while not is_over.wait(0.05):
            number += 1
            try:
                answers["answers" if search(questions[number % 400], access) else "without a document"] += 1
            except RagError as error:
                answers[f"failed: {error.label}"] += 1

    callers = [threading.Thread(target=ask, args=(number * 100,)) for number in range(4)]
    for one in callers:
        one.start()
    try:
        yield answers
    finally:
        is_over.set()
        for one in callers:
            one.join(150)


def switch(live: Pair) -> Mapping[str, Result]:
    """Return what callers saw while a second pair was filled beside *live* and two aliases were switched to it."""
    beside, aliases = Pair(live.cloud, "Beside"), Pair(live.cloud, "Live")
    passages = live.done["passages"]
    beside.deleted()

    def switched(to: Pair) -> float:
        began = time.monotonic()
        for alias, name in zip(aliases.collections, to.collections, strict=True):
            live.cloud.admin(action="CREATEALIAS", name=alias, collections=name)
        return time.monotonic() - began

    switched(live)
    with asked(aliases) as answers:
        began = time.monotonic()
        beside.made().fill(passages)
        answers["asked before the switch"] = answers.total()
        took = {"fill_s": time.monotonic() - began, "switch_s": switched(beside)}
        time.sleep(15)
        switched(live)
        time.sleep(5)
    for alias in aliases.collections:
        live.cloud.admin(action="DELETEALIAS", name=alias)
    beside.deleted()
    return {"switch": {**answers, **took, "passages": passages}}


REPLICATED = 10_000


def replicas(found: Cloud, name: str, kind: str) -> Mapping[str, Result]:
    """Return what two replicas of each shard cost to fill, and what callers saw while the second node was killed."""
    pair = Pair(found, f"Two{kind}", has_vectors=True, replicas=((f"{kind}Replicas", "2"),))
    pair.deleted()
    done = pair.made().fill(REPLICATED)
    with asked(pair) as answers:
        time.sleep(10)
        answers["asked before the kill"] = answers.total()
        took = pair.cloud.killed_and_back(pair.collections)
        time.sleep(5)
    pair.deleted()
    return {name: {"fill_cpu_s": done["fill_cpu_s"], **took, **answers}}


@dataclass(frozen=True, slots=True)
class Run:
    """Passages of a kind, and what is measured over them."""

    kind: str
    passages: int
    steps: Callable[[Pair], Iterable[Step]]

    @property
    def name(self) -> str:
        """The name of the run among the results."""
        return f"{self.kind} {self.passages:,}"

    def pair_in(self, found: Cloud) -> Pair:
        """Return the pair that grows from run to run, or where that is too large by now one of its own."""
        pair = Pair(found, self.kind, self.kind == "Vectors")
        return pair if pair.done["passages"] <= self.passages else replace(pair, name=f"{self.kind}{self.passages}")

    def made(self, pair: Pair, until_s: float) -> bool:
        """Fill and merge *pair*; say whether it came to an end."""
        if self.kind == "variants":
            return True
        done = pair.made().fill(self.passages, seconds=until_s - time.monotonic())
        if done["passages"] == self.passages != done.get("merged"):
            pair.merged()
        return bool(done["passages"] == self.passages)


def _facts(pair: Pair) -> Mapping[str, Result]:
    return {"facts": {**pair.done, **pair.facts()}}


def _small(kind: str) -> Callable[[Pair], Iterator[Step]]:
    """Return the steps of a run that is fitted: the filters of predictions are not among its own."""
    kinds = ("words",) if kind == "Words" else ("nearest", "both")
    shares = {share: access for share, access in filters().items() if share not in PREDICTED_SHARES}
    return lambda pair: chain([("facts", partial(_facts, pair))], costs(pair, kinds, (1,), shares))


def _words_30(pair: Pair) -> Iterator[Step]:
    yield from _small("Words")(pair)
    yield "switch", partial(switch, pair)


def _vectors_30(pair: Pair) -> Iterator[Step]:
    yield from _small("Vectors")(pair)
    yield from filter_cache(pair, (1, 8))
    for kind in ("nrt", "tlog"):
        name = f"replicas, {REPLICATED:,} passages, 2 {kind}"
        yield name, partial(replicas, pair.cloud, name, kind)


def _words_million(pair: Pair) -> Iterator[Step]:
    yield "facts", partial(_facts, pair)
    yield from costs(pair, ("words",), tuple(CALLERS))
    yield from tokens(pair, "words")
    yield "sync, nothing changed", partial(sync, pair)


def _vectors_million(pair: Pair) -> Iterator[Step]:
    yield "facts", partial(_facts, pair)
    yield from costs(pair, ("nearest", "both"), tuple(CALLERS))
    yield from tokens(pair, "nearest")
    yield from filter_cache(pair, (128, 512))


RUNS = (
    Run("Words", 30_000, _words_30),
    Run("Vectors", 30_000, _vectors_30),
    *(Run(kind, passages, _small(kind)) for passages in (100_000, 300_000) for kind in ("Words", "Vectors")),
    Run("Words", 1_000_000, _words_million),
    Run("Vectors", 1_000_000, _vectors_million),
    Run("variants", PASSAGES, lambda pair: variants(pair.cloud)),
)
"""All that docs/sizing.md quotes."""


def missing(run: Run, pair: Pair, only: re.Pattern[str]) -> list[Step]:
    """Return the steps of *run* that have not been measured yet, of those that *only* names."""
    known = results().get(run.name, {})
    return [step for step in run.steps(pair) if step[0] not in known and only.search(f"{run.name}: {step[0]}")]


def main() -> int:
    """Measure what is missing as long as there is time; 1 where something is left."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[1])
    parser.add_argument("--minutes", type=float, default=8, help="after which nothing more is begun")
    parser.add_argument("--only", default="", help="a regular expression: Vectors 300,000: tokens")
    options = parser.parse_args()
    until_s = time.monotonic() + options.minutes * 60
    with cloud() as found:
        for run in RUNS:
            pair = run.pair_in(found)
            steps = missing(run, pair, re.compile(options.only))
            if steps and not run.made(pair, until_s):
                return 1
            for _, step in steps:
                if time.monotonic() > until_s:
                    return 1
                rows = step()
                kept(run.name, rows)
                for what, one in rows.items():
                    print(f"{run.name}: {what}: {_line(one)}", flush=True)
            if steps and pair.name != run.kind:
                pair.deleted()
    return 0


def _line(one: Result) -> str:
    return ", ".join(
        f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in one.items()
    )


if __name__ == "__main__":
    sys.exit(main())
