"""Numbers into tables and plots."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.goals import Goal, Rows, goals

NOISY = 0.2
"""Others' part of the CPU above which times say little."""

PACE = re.compile(r"\d+x\d+")
BEGIN, END = "<!-- written by make bench -->", "<!-- end -->"


def write(found: Rows, folder: Path) -> str:
    """Write the tables and the plots of a run beside its JSON; return the tables."""
    rows = found["rows"]
    together = _with_peers(rows)
    parts = [
        [_head(found)],
        costs(rows),
        _table(("what", "to reach", "measured", ""), [_goal(goal) for goal in goals(rows)]),
        _table(("added to the model, median / p99", "of", "ms", "lost", "CPU ms of an answer"), _whole(together)),
        _table(("model at once, 32 callers", "of", "answers a second", "CPU ms each", "lost"), _instant(together)),
        _table(STREAMS, _streams(together)),
        _ratios(rows),
        _table(("beside 15 MB answers", "of", "gap, median / p99 / longest", "late"), _gap(rows.get("gap", {}))),
        _large(rows),
        _table(("not measured", "of", "why"), _missing(together)),
        _table(SHARES, _shares(rows)),
    ]
    text = "\n\n".join("\n".join(part) for part in parts if part) + "\n"
    (folder / f"{found['run']}.md").write_text(text, encoding="utf-8")
    _plots(found, folder)
    return text


def into_docs(found: Rows, folder: Path, docs: Path) -> None:
    """Put the one table of a run between its marks in `performance.md`, and its plot beside the other pictures."""
    page, table = docs / "performance.md", "\n".join([_head(found), "", *costs(found["rows"])])
    shutil.copy(folder / f"{found['run']}-cost.png", docs / "images" / "performance-cost.png")
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    page.write_text(f"{before}{BEGIN}\n{table}\n{END}{rest.split(END)[1]}", encoding="utf-8")


WAYS = {
    "embedded": "service, embedded index",
    "Solr": "service, Solr with whole texts",
    "Solr with passages": "service, Solr with passages",
    "snippets": "service, Solr, Datafari's settings: snippets alone",
    "haystack": "Haystack, the same Solr",
    "langchain": "LangChain, the same Solr",
}


def costs(rows: Rows) -> list[str]:
    """Return what an answer costs over each set of documents, beside the floor; nothing where it was not measured."""
    row = rows.get("cost", {})
    sets = {name: one for name, one in row.items() if isinstance(one, Mapping) and "embedded" in one}
    floor = row.get("floor", {}).get("ms")
    if not sets or not floor:
        return []
    lines: list[Sequence[str]] = []
    for way, name in WAYS.items():
        found = [one[way] if "new" in one.get(way, {}) else None for one in sets.values()]
        if not any(found):
            continue
        lines.append((name, *(_times(one and one["new"]["ms"], floor) for one in found)))
        lines.append(("- the same questions again", *(_times(one and one["again"]["ms"], floor) for one in found)))
        if way != "embedded":
            lines.append(("- and Solr, ms", *(_of_solr(one) for one in found)))
    alone = row.get("litellm", {}).get("ms")
    lines += [("LiteLLM, which does not search", *[_times(alone, floor)] * len(sets))] if alone else []
    for name, key in (("words alone", "words_ms"), ("words and made-up vectors", "meaning_ms")):
        chosen = [one.get("choosing", {}).get(key) for one in sets.values()]
        lines.append((f"search and choice of passages alone, {name}", *map(_figure, chosen)))
    pieces = [one.get("choosing", {}).get("pieces") for one in sets.values()]
    lines.append(("- compared vectors", *("-" if count is None else f"{count:,}" for count in pieces)))
    for way in ("embedded", "Solr", "Solr with passages"):
        each = [one[way]["index_s"] / one["chars"] * 1e6 if way in one else None for one in sets.values()]
        lines.append((f"index run, {way}: CPU s for a million characters", *map(_figure, each)))
    disk = [one["embedded"]["mb"] / one["chars"] * 1e6 for one in sets.values()]
    lines.append(("disk, embedded: MB for a million characters", *map(_figure, disk)))
    return _table((f"CPU ms of an answer (times the floor, {floor:.2f} ms)", *sets), lines)


def _times(ms: float | None, floor: float) -> str:
    return "-" if ms is None else f"{ms:.1f} ({ms / floor:.1f} ×)"


def _of_solr(one: Rows | None) -> str:
    if one is None:
        return "-"
    took = f", QTime {one['qtime_ms']:.1f}" if "qtime_ms" in one else ""
    return f"{one['new']['solr_ms']:.1f}{took}"


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _head(found: Rows) -> str:
    machine = found["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return (
        f"`{found['command']}`, {found['date']}, {found.get('took_s', 0):.0f} s on {machine['cores']} cores of "
        f"{machine['processor']}, Linux {machine['kernel']}, Python {machine['python']}, Node {machine['node']}; "
        f"{versions}. Load before: {machine['load_before']}.{_others(found['rows'])}"
    )


def _others(rows: Rows) -> str:
    """Say which part of the CPU that was used was other programs', where anything was measured."""
    each = [one for row in rows.values() for one in row.values() if isinstance(one, Mapping) and "shares" in one]
    used = sum(one["cpu_s"]["machine"] for one in each)
    share = sum(one["shares"]["others"] * one["cpu_s"]["machine"] for one in each) / used if used else 0.0
    if not used:
        return ""
    told = " **Not a quiet machine: compare CPU, not times.**" if share > NOISY else ""
    return f" Other programs took {share:.0%} of the CPU that was used meanwhile.{told}"


def _with_peers(rows: Rows) -> dict[str, Any]:
    """Return the rows with what the peers were measured at in the row of the same pace."""
    together = {name: dict(row) for name, row in rows.items() if "versions" not in row}
    for name, row in rows.items():
        for pace, one in row.items() if "versions" in row else ():
            who = f"{name} {next(iter(row['versions'].values()))}"
            if pace != "versions":
                together.setdefault(pace, {})[who] = one
    return together


def _table(head: Sequence[str], cells: Iterable[Sequence[str]]) -> list[str]:
    """Return a table, nothing when it would be empty."""
    lines = ["| " + " | ".join(map(_plain, row)) + " |" for row in cells]
    return ["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *lines] if lines else []


def _plain(text: str) -> str:
    """Return *text* as a cell: one line, no bars."""
    return re.sub(r"\s+", " ", text.replace("|", "/"))[:400]


def _goal(goal: Goal) -> tuple[str, str, str, str]:
    verdict = "" if goal.is_held is None else "reached" if goal.is_held else "**missed**"
    return goal.what, goal.wanted, goal.got, verdict


def _targets(row: Rows, key: str) -> Iterator[tuple[str, Rows]]:
    """Yield those of *row* that were measured, and have *key*."""
    for target, one in row.items():
        if isinstance(one, Mapping) and "error" not in one and key in one:
            yield target, one


def _missing(rows: Rows) -> Iterator[Sequence[str]]:
    for name, row in rows.items():
        if "error" in row:
            yield name, "", row["error"]
        for target, one in row.items():
            if isinstance(one, Mapping) and "error" in one:
                yield name, target, one["error"]


def _whole(rows: Rows) -> Iterator[Sequence[str]]:
    for name in ("1 caller", "50 callers"):
        for target, one in _targets(rows.get(name, {}), "overhead_ms"):
            added = " / ".join(_ms(one["overhead_ms"][share]) for share in ("p50", "p99"))
            yield f"{name} ({one['mean_open']:.0f} there)", target, added, str(one["lost"]), _cpu(one)


def _instant(rows: Rows) -> Iterator[Sequence[str]]:
    for target, one in _targets(rows.get("instant", {}), "answers_per_s"):
        yield "", target, f"{one['answers_per_s']:,.0f}", _cpu(one), str(one["lost"])


STREAMS = ("streams x tokens a second", "of", "lost", "open", "first token over direct, median / p99")
STREAMS += ("token late, median / p99", "CPU ms of 1,000 tokens", "PSS MB")


def _streams(rows: Rows) -> Iterator[Sequence[str]]:
    for name, row in rows.items():
        relay = row.get("relay", {}).get("cpu_ms_per_1000_tokens") if PACE.fullmatch(name) else None
        for target, one in _targets(row, "ttft_ms") if PACE.fullmatch(name) else ():
            late = " / ".join(_ms(one["lag_ms"][share]) for share in ("p50", "p99"))
            cpu = one.get("cpu_ms_per_1000_tokens")
            times = f" ({cpu / relay:.2f} × relay)" if cpu and relay else ""
            lost = f"{one['lost']} of {sum(one['statuses'].values()):,}{_refused(one)}"
            took = (f"{cpu:.0f}{times}" if cpu else "-", f"{sum(one['pss_mib']):.0f}" if cpu else "-")
            yield name, target, lost, f"{one['mean_open']:,.0f}", _over(one, row.get("direct", {})), late, *took


def _refused(one: Rows) -> str:
    others = {status: count for status, count in one["statuses"].items() if status != "200"}
    return " (" + ", ".join(f"{status}: {count}" for status, count in others.items()) + ")" if others else ""


def _gap(row: Rows) -> Iterator[Sequence[str]]:
    for part, one in _targets(row, "gap_ms"):
        if one["gap_ms"]["p50"] is None:
            yield part, "service", f"{one['answers']} answers, median {_ms(one['latency_ms']['p50'])}", ""
            continue
        shown = [" / ".join(_ms(one[key][share]) for share in ("p50", "p99", "max")) for key in ("gap_ms", "lag_ms")]
        yield part, "direct" if part.startswith("direct") else "service", *shown


def _large(rows: Rows) -> list[str]:
    """Return the figures of large indexes beyond their goals."""
    lines = []
    for name in ("embedded 100,000", "embedded 1,000,000"):
        row = rows.get(name, {})
        if "mb" not in row:
            continue
        built = f"{row['documents']:,} documents built in {row['build_s']:.0f} s, {row['mb']:,.0f} MB on the disk"
        lines.append((name, built, f"{row['more_mib']:.0f} MiB more in memory while it is searched"))
        for search, found in row["rows"].items():
            spread = found["first_ms"]
            told = f"{_ms(spread['p50'])} / {_ms(spread['p99'])}, CPU {_ms(spread['cpu_p50'])}"
            lines.append((name, f"ten words, {search}, median / p99", f"{told}; {found['found']:,.0f} found"))
    solr = rows.get("Solr 100,000", {})
    if "build_s" in solr:
        lines.append(("Solr 100,000", f"{solr['documents']:,} documents built in {solr['build_s']:.0f} s", ""))
        for who, found in solr["rows"].items():
            told = f"{_ms(found['first_ms']['p50'])} → {_ms(found['others_ms']['p50'])}"
            lines.append(("Solr 100,000", f"on the wire without → with rights, median, {who}", told))
    return _table(("index", "what", "measured"), lines)


def _cpu(one: Rows) -> str:
    return f"{one['cpu_ms_per_answer']:.2f}" if "cpu_ms_per_answer" in one else "-"


def _over(one: Rows, direct: Rows) -> str:
    if "ttft_ms" not in direct:
        return " / ".join(_ms(one["ttft_ms"][share]) for share in ("p50", "p99")) + " (direct not measured)"
    pairs = [(one["ttft_ms"][share], direct["ttft_ms"][share]) for share in ("p50", "p99")]
    return " / ".join("-" if own is None or below is None else f"{own - below:+.1f} ms" for own, below in pairs)


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} ms"


_BESIDE = (
    ("CPU ms of an answer, model at once", "instant", ("cpu_ms_per_answer",)),
    ("answers a second, model at once", "instant", ("answers_per_s",)),
    ("ms added to the model, 1 caller, median", "1 caller", ("overhead_ms", "p50")),
    ("ms added to the model, 50 callers, median", "50 callers", ("overhead_ms", "p50")),
    ("ms added to the model, 50 callers, p99", "50 callers", ("overhead_ms", "p99")),
    ("CPU ms of 1,000 tokens, 100 streams", "100x10", ("cpu_ms_per_1000_tokens",)),
    ("CPU ms of 1,000 tokens, 1,000 streams", "1000x10", ("cpu_ms_per_1000_tokens",)),
)


def _ratios(rows: Rows) -> list[str]:
    """Return the table of ratios: each one's figure, and how many times the service's it is."""
    peers = [name for name in ("haystack", "langchain", "litellm") if "error" not in rows.get(name, {"error": ""})]
    lines = []
    for what, pace, keys in _BESIDE:
        found = {who: _found(rows.get(pace, {}).get(who), keys) for who in ("service", "relay")}
        found |= {who: _found(rows[who].get(pace), keys) for who in peers}
        if found["service"] is not None and len([one for one in found.values() if one is not None]) > 1:
            lines.append(f"| {what} | " + " | ".join(_ratio(found.get(who), found["service"]) for who in found) + " |")
    head = ["| as ratios | service | relay | " + "".join(f"{who} | " for who in peers).strip()]
    return [*head, "|---" * (3 + len(peers)) + "|", *lines] if lines else []


def _found(one: Any, keys: tuple[str, ...]) -> float | None:
    for key in keys:
        one = one.get(key) if isinstance(one, Mapping) else None
    return one


def _ratio(one: float | None, ours: float) -> str:
    if one is None:
        return "-"
    times = one / ours
    return (
        f"{one:,.2f}"
        if one == ours
        else f"{one:,.2f} ({times:,.0f} ×)"
        if times >= 10
        else f"{one:,.2f} ({times:.2g} ×)"
    )


SHARES = (
    "measurement",
    "service",
    "stubs",
    "callers",
    "others",
    "of the machine",
    "callers late p99",
    "model late p99",
)


def _shares(rows: Rows) -> Iterator[Sequence[str]]:
    """Yield whose the CPU was, for each measurement, and how late callers and stub model were by themselves."""
    for name, found in rows.items():
        for part, one in found.items():
            if isinstance(one, dict) and "shares" in one:
                shares = (f"{one['shares'][who]:.0%}" for who in ("service", "stubs", "callers", "others"))
                model = (one.get("model_late_ms") or {}).get("p99")
                busy = f"{one['cpu_s']['machine']:.1f} s"
                yield f"{name}, {part}", *shares, busy, _ms(one["late_ms"]["p99"]), _ms(model)


def _plots(found: Rows, folder: Path) -> None:
    """Draw what an answer costs over each set of documents, in times of the floor."""
    row = found["rows"].get("cost", {})
    sets = {name: one for name, one in row.items() if isinstance(one, Mapping) and "embedded" in one}
    floor = row.get("floor", {}).get("ms")
    if not sets or not floor:
        return
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axis = plt.subplots(figsize=(9, 3.5), layout="constrained")
    measured = {way: name for way, name in WAYS.items() if any("new" in one.get(way, {}) for one in sets.values())}
    for place, (way, name) in enumerate(measured.items()):
        at = [number + 0.8 / len(measured) * (place - (len(measured) - 1) / 2) for number in range(len(sets))]
        ours = [one.get(way, {}).get("new", {}).get("ms", 0.0) / floor for one in sets.values()]
        solr = [one.get(way, {}).get("new", {}).get("solr_ms", 0.0) / floor for one in sets.values()]
        axis.bar(at, ours, 0.7 / len(measured), label=name)
        axis.bar(
            at,
            solr,
            0.7 / len(measured),
            bottom=ours,
            color="lightgrey",
            label="Solr" if place == len(measured) - 1 else None,
        )
    axis.axhline(1, color="black", linewidth=1)
    axis.set_xticks(range(len(sets)), list(sets))
    axis.set_ylabel("CPU of an answer, times the floor")
    axis.grid(axis="y", alpha=0.3)
    axis.legend(fontsize="small")
    figure.savefig(folder / f"{found['run']}-cost.png", dpi=120)
