"""What was to be reached, and whether it was: one line each, of the service alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Rows = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Goal:
    """*is_held* is None where nothing was measured; *got* says why then."""

    what: str
    wanted: str
    got: str
    is_held: bool | None


def goals(rows: Rows) -> Iterator[Goal]:
    """Yield the goals of all rows that were run; a row that could not be measured says so in their place."""
    for name, row in rows.items():
        maker = _MAKERS.get(name)
        if maker is None:
            continue
        problem = row.get("error") or row.get("service", {}).get("error")
        if problem:
            yield Goal(name, "", f"not measured: {problem}", None)
            if name != "growth":  # which has one goal for each cause
                continue
        try:
            yield from maker(name, row)
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            yield Goal(name, "", f"not measured: {type(error).__name__} {error} is missing", None)


def _start(name: str, row: Rows) -> Iterator[Goal]:
    yield Goal("start to first answer", "≤ 2 s", f"{row['start_s']:.2f} s", row["start_s"] <= 2)
    workers = row["idle_pss_mib"][1:]
    got = " + ".join(f"{one:.0f}" for one in workers) + " MB"
    yield Goal("idle memory of a worker (PSS)", "≤ 80 MB", got, max(workers) <= 80)


def _demo_folder(name: str, row: Rows) -> Iterator[Goal]:
    got = f"{row['page_s']:.2f} s, all read after {row['read_s']:.2f} s, {row['cpu_s']:.2f} s of CPU"
    yield Goal("demo over ten files: first page", "≤ 3 s", got, row["page_s"] <= 3)


def _size(name: str, row: Rows) -> Iterator[Goal]:
    largest = ", ".join(f"{one} {mb:g}" for one, mb in row["largest_mb"].items())
    yield Goal("installed size of the core", "≤ 60 MB", f"{row['mb']:.0f} MB ({largest})", row["mb"] <= 60)


def _paced(name: str, row: Rows) -> Iterator[Goal]:
    over, lost = row["service"]["overhead_ms"], row["service"]["lost"]
    got = f"{over['p50']:.1f} / {over['p99']:.1f} ms, {lost} lost"
    is_held = over["p50"] <= 5 and over["p99"] <= 25 and lost == 0
    yield Goal(f"whole answers, {name}: added to the model, median / p99", "≤ 5 / 25 ms", got, is_held)


def _instant(name: str, row: Rows) -> Iterator[Goal]:
    ours = row["service"]
    cpu, rate, searches = ours["cpu_ms_per_answer"], ours["answers_per_s"], ours["searches_per_answer"]
    yield Goal("CPU of a whole answer", "≤ 5 ms", f"{cpu:.2f} ms", cpu <= 5)
    yield Goal("whole answers a second, model at once", "≥ 250", f"{rate:.0f}, {ours['lost']} lost", rate >= 250)
    yield Goal("Solr requests per answer", "1", f"{searches:.3f}", abs(searches - 1) < 0.01)


STREAM_LIMITS: Mapping[str, Mapping[str, float]] = {
    "300x50": {"p50": 25, "p99": 150, "cpu": 1.4},
    "1000x10": {"p50": 30, "p99": 300, "late": 120, "cpu": 1.4, "pss": 150},
    "2000x10": {},
}


def _streams(name: str, row: Rows) -> Iterator[Goal]:
    ours, limits = row["service"], STREAM_LIMITS[name]
    at_once, rate = name.split("x")
    what = f"{int(at_once):,} streams open, {rate} tokens a second"
    asked = sum(ours["statuses"].values())
    yield Goal(f"{what}: lost", "0", f"{ours['lost']} of {asked:,}", ours["lost"] == 0)
    if "p50" in limits:
        over = [ours["ttft_ms"][share] - row["direct"]["ttft_ms"][share] for share in ("p50", "p99")]
        wanted = f"≤ +{limits['p50']:g} / +{limits['p99']:g} ms"
        is_held = over[0] <= limits["p50"] and over[1] <= limits["p99"]
        got = f"{over[0]:+.1f} / {over[1]:+.1f} ms"
        yield Goal(f"{what}: first token over direct, median / p99", wanted, got, is_held)
    if "late" in limits:
        late = ours["lag_ms"]["p99"]
        yield Goal(f"{what}: token late, p99", f"≤ {limits['late']:g} ms", f"{late:.1f} ms", late <= limits["late"])
    if "cpu" in limits:
        cpu, relay = (row[who]["cpu_ms_per_1000_tokens"] for who in ("service", "relay"))
        wanted = f"≤ {limits['cpu']:g} × the relay"
        got = f"{cpu / relay:.2f} × ({cpu:.0f} ms, relay {relay:.0f} ms)"
        yield Goal(f"{what}: CPU of 1,000 tokens", wanted, got, cpu / relay <= limits["cpu"])
    if "pss" in limits:
        pss = sum(ours["pss_mib"])
        yield Goal(
            f"{what}: memory of master and workers", f"≤ {limits['pss']:g} MB", f"{pss:.0f} MB", pss <= limits["pss"]
        )


def _full_house(name: str, row: Rows) -> Iterator[Goal]:
    one = next(iter(row.values()))
    waits, refused = one["refused_ms"], one["statuses"].get("503", 0)
    got = f"{refused} of {sum(one['statuses'].values())} refused, after {waits['p50']:.1f} / {waits['p99']:.1f} ms"
    yield Goal("75 streams where 50 may be open: median / p99", "503 at once", got, refused > 0 and waits["p50"] <= 25)


def _gap(name: str, row: Rows) -> Iterator[Goal]:
    for part in ("alone", "beside 15 MB answers"):
        gap = row[part]["gap_ms"]
        got = f"{gap['max']:.0f} ms (p99 {gap['p99']:.0f})"
        yield Goal(f"20 tokens of 20 ms, {part}: longest gap", "≤ 20 + 50 ms", got, gap["max"] <= 70)


def _growth(name: str, row: Rows) -> Iterator[Goal]:
    for against, points in row.items():
        if against == "error":
            continue
        problem = next((one["error"] for one in points.values() if "error" in one), None)
        if problem:
            yield Goal(f"cost against {against}", "linear", f"not measured: {problem}", None)
            continue
        costs = [(int(at), one["cpu_ms"]) for at, one in points.items()]
        # 1 is linear; the first and the last point, since what is between them hides behind the fixed cost.
        power = math.log(costs[-1][1] / costs[0][1]) / math.log(costs[-1][0] / costs[0][0])
        got = ", ".join(f"{at:,}: {cost:.1f} ms" for at, cost in costs) + f" (power {power:.2f})"
        each = "1,000 tokens" if against == "open streams" else "an answer"
        yield Goal(f"CPU of {each} against {against}", "no worse than linear", got, power <= 1.05)


def _embedded(name: str, row: Rows) -> Iterator[Goal]:
    if row["documents"] < row["wanted"]:
        yield Goal(name, "", f"built so far: {row['documents']:,} documents; run again to go on", None)
    spread = row["rows"]["10 highlighting, 50 rights"]["first_ms"]
    got = f"{spread['p50']:.1f} / {spread['p99']:.1f} ms, CPU {spread['cpu_p50']:.1f} ms"
    is_goal = row["wanted"] == 100_000
    wanted, is_held = ("≤ 10 ms", spread["p50"] <= 10) if is_goal else ("tried once", None)
    yield Goal(f"{name}: ten words, 10 snippets, 50 rights, median / p99", wanted, got, is_held)


def _solr(name: str, row: Rows) -> Iterator[Goal]:
    if row["documents"] < row["wanted"]:
        yield Goal(name, "", f"built so far: {row['documents']:,} documents; run again to go on", None)
    for who, found in row["rows"].items():
        bare, narrowed = found["first_own_ms"], found["others_own_ms"]
        got = f"{bare:.2f} → {narrowed:.2f} ms ({narrowed / bare - 1:+.0%})"
        wanted, is_held = ("≤ +10 %", narrowed <= bare * 1.1) if who == "the same user" else ("beside", None)
        yield Goal(f"{name}: mean QTime without → with 50 rights, {who}", wanted, got, is_held)


def _cost(name: str, row: Rows) -> Iterator[Goal]:
    floor = row["floor"]["ms"]
    for docs, most in {"3 kB": 4, "squad": 5, "cuad": 5, "nq-longdoc": 5}.items():
        if docs in row:
            times = row[docs]["embedded"]["new"]["ms"] / floor
            yield Goal(
                f"answer over {docs}, embedded, words alone", f"≤ {most} × the floor", f"{times:.1f} ×", times <= most
            )
    times = row["300 kB"]["embedded"]["new"]["ms"] / row["3 kB"]["embedded"]["new"]["ms"]
    yield Goal("answer over 300 kB, embedded", "≤ 1.3 × that over 3 kB", f"{times:.1f} ×", times <= 1.3)
    chosen = row["300 kB"]["choosing"]
    times = chosen["meaning_ms"] / chosen["words_ms"]
    what = f"search and choice with {chosen['pieces']:,} vectors, embedded"
    yield Goal(what, "≤ 1.8 × words alone", f"{times:.1f} ×", times <= 1.8)


def _check(name: str, row: Rows) -> Iterator[Goal]:
    floor = row["floor"]["ms"]
    for facts, found in row.items():
        if facts != "floor":
            spread = f"{found['p50']:.1f} / {found['p99']:.1f} ms, CPU {found['cpu_ms']:.1f}"
            got = f"{found['p99'] / floor:.1f} × the floor ({spread})"
            yield Goal(f"check of an answer against {facts}, p99", "beside", got, None)


_MAKERS: Mapping[str, Callable[[str, Rows], Iterator[Goal]]] = {
    "start": _start,
    "demo folder": _demo_folder,
    "1 caller": _paced,
    "50 callers": _paced,
    "instant": _instant,
    **dict.fromkeys(STREAM_LIMITS, _streams),
    "full house": _full_house,
    "gap": _gap,
    "growth": _growth,
    "check": _check,
    "cost": _cost,
    "size": _size,
    "embedded 100,000": _embedded,
    "embedded 1,000,000": _embedded,
    "Solr 100,000": _solr,
}
