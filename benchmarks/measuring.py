"""One measurement: callers against a port, and what the processes took meanwhile."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.processes import Running, machine_busy_s

HERE = Path(__file__).parent
Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Target:
    """Something that is asked: *served_by* are the processes whose CPU and memory are its price."""

    name: str
    port: int
    served_by: Running | None
    stubs: tuple[Running, ...]


def measured(target: Target, plan: Mapping[str, object]) -> Result:
    """
    Run *plan* of `load.js` against *target*; return what the callers saw and what it took.

    `cpu_ms_per_answer` and `cpu_ms_per_1000_tokens` are the target's own; `shares` says whose the CPU was, as parts of
    one: the target's, the stubs', the callers', and others' on this machine.
    """
    before = _spent(target)
    done = subprocess.run(
        ["node", str(HERE / "load.js"), json.dumps({"port": target.port, **plan})],
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    seen: Result = json.loads(done.stdout)
    after = _spent(target)
    own, stubs, busy = (late - early for early, late in zip(before, after, strict=True))
    answers = sum(seen["statuses"].values())
    seen["target"] = target.name
    seen["cpu_s"] = {"service": own, "stubs": stubs, "callers": seen["cpu_s"], "machine": busy}
    seen["shares"] = _shares(seen["cpu_s"])
    if own and answers:
        seen["cpu_ms_per_answer"] = own / answers * 1000
    if own and seen["all_tokens"]:
        seen["cpu_ms_per_1000_tokens"] = own / seen["all_tokens"] * 1_000_000
    if target.served_by is not None:
        seen["pss_mib"] = target.served_by.pss_mib()
    return seen


def whole(callers: int, seconds: float, *, warmup_s: float = 1.0, **request: object) -> Result:
    """Return a plan: *callers* ask again as soon as they are answered."""
    return {"mode": "whole", "callers": callers, "seconds": seconds, "warmup_s": warmup_s, **request}


def streams(callers: int, seconds: float, *, length_s: float, **request: object) -> Result:
    """Return a plan: *callers* streams open, begun evenly over the length of one, each begun again when it ends."""
    return {
        "mode": "streams",
        "callers": callers,
        "seconds": seconds,
        "ramp_s": length_s,
        "warmup_s": length_s + 1,
        "grace_s": 2 * length_s + 30,
        **request,
    }


def _spent(target: Target) -> tuple[float, float, float]:
    own = target.served_by.cpu_s() if target.served_by is not None else 0.0
    return own, sum(stub.cpu_s() for stub in target.stubs), machine_busy_s()


def _shares(cpu_s: Mapping[str, float]) -> dict[str, float]:
    machine = max(cpu_s["machine"], 1e-9)
    known = {name: round(cpu_s[name] / machine, 3) for name in ("service", "stubs", "callers")}
    return {**known, "others": round(max(0.0, 1 - sum(known.values())), 3)}


def overhead_ms(seen: Result, below: Sequence[Result], share: str) -> float | None:
    """Return what *seen* adds to those *below* it, added up, at one *share* (p50, p99); None when nothing was seen."""
    own = seen["latency_ms"][share]
    return None if own is None else float(own) - sum(float(one["latency_ms"]["p50"] or 0) for one in below)
