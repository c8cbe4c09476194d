"""
What a check of an answer costs: `POST /grounding/check` of 800 characters against three documents, beside the floor.

Each text has sentences of the documents, such with a word altered, and sentences of other documents. One worker, one
caller, every text once: nobody has met it before. The floor is that of the costs of an answer, in the same run.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Iterator, Mapping
from statistics import median, quantiles

from benchmarks.bench import Bench
from benchmarks.corpus import answer, texts
from benchmarks.cost import floor
from benchmarks.measuring import Result
from benchmarks.processes import fetch
from benchmarks.services import service, stubs

CHECKS, WARM_UP = 240, 12
TEXT_CHARS = 800
SENTENCE = re.compile(r"(?<=[.!?])\s+")
FACTS = {"ten of 2 kB": (10, 2_000), "three of 20 kB": (3, 20_000)}
"""How many documents a text is checked against, and how long they are."""


def check(bench: Bench) -> Result:
    """Return the floor, and for each size of documents the milliseconds of a check and its CPU."""
    with stubs(bench.folder / "check") as behind:
        behind.pace(first_ms=0, tokens=30)
        bench.done["floor"] = floor(behind)
        for name, (count, chars) in FACTS.items():
            settings = {"security.anonymous": "public", "server.rate.work": "0"}
            with service(behind, workers=1, **settings) as ours:
                bodies = [json.dumps(one).encode() for one in checks(count, chars, CHECKS)]
                for body in bodies[:WARM_UP]:
                    fetch(ours.port, "/grounding/check", body, Content_Type="application/json")
                assert ours.served_by is not None
                before, times = ours.served_by.cpu_s(), []
                for body in bodies[WARM_UP:]:
                    began = time.monotonic()
                    fetch(ours.port, "/grounding/check", body, Content_Type="application/json")
                    times.append((time.monotonic() - began) * 1000)
                cpu_ms = (ours.served_by.cpu_s() - before) * 1000 / len(times)
            bench.done[name] = {"cpu_ms": cpu_ms, "p50": median(times), "p99": quantiles(times, n=100)[98]}
    return bench.done


def checks(count: int, chars: int, number: int) -> Iterator[Mapping[str, object]]:
    """Yield *number* requests, each of a text and *count* documents of *chars* characters."""
    pages = texts()
    for seed in range(number):
        chosen = random.Random(seed)
        facts = list(_facts(answer(pages, documents=count, chars=chars, seed=seed)))
        others = list(_facts(answer(pages, documents=1, chars=chars, seed=seed + number)))
        own, foreign = ([said for one in some for said in SENTENCE.split(one)[1:-1]] for some in (facts, others))
        said = [
            chosen.choice((one, one.replace(" the ", " another ", 1), chosen.choice(foreign or own)))
            for one in chosen.sample(own, min(len(own), 12))
        ]
        yield {"answerCandidate": " ".join(said)[:TEXT_CHARS], "facts": [{"factText": one} for one in facts]}


def _facts(reply: Mapping[str, object]) -> Iterator[str]:
    for row in json.loads(json.dumps(reply))["response"]["docs"]:
        yield row["exactContent"][0]
