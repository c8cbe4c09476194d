"""One measurement: callers against a port, and what the processes took meanwhile."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.processes import Running, fetch, machine_busy_s

HERE = Path(__file__).parent
Result = dict[str, Any]
Step = tuple[str, Callable[[], Mapping[str, Result]]]
"""The name of the first row that a step measures, and what measures it."""

GRACE_S = 30
"""How long after the last asking an answer may still come."""


@dataclass(frozen=True, slots=True)
class Target:
    """Something that is asked: *served_by* are the processes whose CPU and memory are its price."""

    name: str
    port: int
    served_by: Running | None
    stubs: tuple[Running, ...]
    """The model's last."""


def measured(target: Target, plan: Mapping[str, object]) -> Result:
    """
    Run *plan* of `load.js` against *target*; return what the callers saw and what it took.

    `cpu_ms_per_answer` and `cpu_ms_per_1000_tokens` are the target's own, warm-up and all; `shares` says whose the CPU
    was, as parts of one: the target's, the stubs', the callers', and others' on this machine. `model_late_ms` says how
    late the stub model itself spoke, `late_ms` how late the callers asked: what is not the target's fault.
    """
    before = _spent(target)
    with calling(target, plan) as (callers, bound_s):
        text, problem = callers.communicate(timeout=bound_s)
    if callers.returncode:
        raise RuntimeError(f"load.js: {problem[-500:]}")
    seen: Result = json.loads(text)
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
    if target.stubs:
        seen["model_late_ms"] = json.loads(fetch(target.stubs[-1].port, "/late"))["late_ms"]
    return seen


@contextmanager
def calling(target: Target, plan: Mapping[str, object]) -> Iterator[tuple[subprocess.Popen[str], float]]:
    """Run `load.js` with *plan* until the block ends; yield it, and the seconds in which it must be over."""
    full = {"port": target.port, "grace_s": GRACE_S, **plan}
    callers = subprocess.Popen(
        ["node", str(HERE / "load.js"), json.dumps(full)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield callers, sum(float(str(full.get(key, 0))) for key in ("warmup_s", "seconds", "grace_s")) + 20
    finally:
        if callers.poll() is None:
            callers.kill()
        callers.wait(10)


def streams(at_once: int, seconds: float, *, length_s: float, **request: object) -> Result:
    """
    Return a plan: streams of *length_s* begin evenly, so often that *at_once* of them are open.

    Where they take longer, at most a fifth more are open; those that wait for a place are late from their moment on.
    """
    plan = {"mode": "streams", "rate": at_once / length_s, "spread": "even", "limit": at_once * 6 // 5}
    return {**plan, "seconds": seconds, "warmup_s": length_s + 1, "grace_s": 2 * length_s + 20, **request}


def _spent(target: Target) -> tuple[float, float, float]:
    own = target.served_by.cpu_s() if target.served_by is not None else 0.0
    return own, sum(stub.cpu_s() for stub in target.stubs), machine_busy_s()


def _shares(cpu_s: Mapping[str, float]) -> dict[str, float]:
    machine = max(cpu_s["machine"], 1e-9)
    known = {name: round(cpu_s[name] / machine, 3) for name in ("service", "stubs", "callers")}
    return {**known, "others": round(max(0.0, 1 - sum(known.values())), 3)}
