"""`python -m tests.simulation`: run worlds by their seeds, and print every rule that one of them broke."""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from tests.simulation.mutants import MUTANTS, outcome_with
from tests.simulation.world import Outcome, run

CHUNK = 50
EVERY = 1000
"""Worlds after which a line says how far the run is."""


def say(*lines: object) -> None:
    """Write *lines* now."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def main() -> int:
    """Run what the arguments say; return 1 when a rule was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=2000, help="how many worlds (2000)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so long (no limit)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes (one for each core)")
    parser.add_argument("--mutants", action="store_true", help="look for the first seed that finds each planted fault")
    parser.add_argument("--show", action="store_true", help="print every event of the first world")
    asked = parser.parse_args()
    if asked.show:
        shown = run(asked.first, keeps_events=True)
        say(*shown.events, *shown.violations, shown.digest)
        return bool(shown.violations)
    if asked.mutants:
        return found_mutants(asked.seeds)
    return many(asked.first, asked.seeds, workers=asked.workers, minutes=asked.minutes)


def many(first: int, seeds: int, *, workers: int, minutes: float) -> int:
    """Run *seeds* worlds from *first* on, as many as *minutes* are enough for; return 1 when one broke a rule."""
    began, total, broken, simulated_s = time.monotonic(), 0, list[Outcome](), 0.0
    with ProcessPoolExecutor(workers) as pool:
        for outcome in pool.map(run, range(first, first + seeds), chunksize=CHUNK):
            total, simulated_s = total + 1, simulated_s + outcome.simulated_s
            if outcome.violations:
                broken.append(outcome)
                say(f"seed {outcome.seed}:", *(f"  {one}" for one in outcome.violations[:5]))
            # Worlds come in chunks: those of a begun one are counted all or not at all.
            if total % CHUNK == 0 and time.monotonic() - began > 60 * minutes:
                pool.shutdown(wait=False, cancel_futures=True)
                break
            if total % EVERY == 0:
                say(f"{total} worlds in {time.monotonic() - began:.0f} s, {len(broken)} broke a rule")
    took_s, last = time.monotonic() - began, first + total - 1
    hours = simulated_s / 3600
    say(
        f"{total} worlds ({first} to {last}), {hours:.0f} simulated hours in {took_s:.0f} s; {len(broken)} broke a rule"
    )
    return bool(broken)


def found_mutants(seeds: int) -> int:
    """Print the first of *seeds* that finds each planted fault; return 1 when one is not found."""
    missed = 0
    for name, mutant in MUTANTS.items():
        seed = next((seed for seed in range(seeds) if outcome_with(mutant, seed).violations), None)
        missed += seed is None
        said = "NOT FOUND" if seed is None else outcome_with(mutant, seed).violations[0]
        say(f"{name}: {seed} ({said[:150]})")
    return bool(missed)


if __name__ == "__main__":
    raise SystemExit(main())
