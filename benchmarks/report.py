"""Numbers into tables and plots."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

Row = tuple[str, str, str, str]
"""What, measured on whom, what is to be reached, what was measured."""

Rows = Mapping[str, Any]
MARKS = "<!-- {run}: written by make {target} -->", "<!-- end of {run} -->"
TARGETS = {"quick": "bench-quick", "full": "bench", "index": "bench-index"}


def write(found: Rows, folder: Path) -> str:
    """Write the tables and the plots of a run beside its JSON; return the tables."""
    rows = found["rows"]
    lines = [_head(found), "", "| what | of | to reach | measured |", "|---|---|---|---|"]
    cells = [row for name, one in _with_peers(rows).items() for row in _row(name, one)]
    order = list(dict.fromkeys(row[0] for row in cells))
    lines += ["| " + " | ".join(row) + " |" for row in sorted(cells, key=lambda row: order.index(row[0]))]
    lines += [*_beside(rows), "", *_shares(rows)]
    text = "\n".join(lines) + "\n"
    (folder / f"{found['run']}.md").write_text(text, encoding="utf-8")
    _plots(found, folder)
    return text


def into_docs(found: Rows, folder: Path, docs: Path) -> None:
    """Put the tables of a run between its marks in `performance.md`, and its plots beside the other pictures."""
    run = found["run"]
    begin, end = (mark.format(run=run, target=TARGETS[run]) for mark in MARKS)
    page = docs / "performance.md"
    table = (folder / f"{run}.md").read_text(encoding="utf-8")
    for plot in sorted(folder.glob(f"{run}-*.png")):
        shutil.copy(plot, docs / "images" / f"performance-{plot.name}")
        table += f"\n![{plot.stem}](images/performance-{plot.name})\n"
    before, rest = page.read_text(encoding="utf-8").split(begin)
    page.write_text(f"{before}{begin}\n{table}{end}{rest.split(end)[1]}", encoding="utf-8")


def _head(found: Rows) -> str:
    machine = found["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return (
        f"`{found['command']}`, {found['date']}, {found.get('took_s', 0):.0f} s on {machine['cores']} cores of "
        f"{machine['processor']}, Linux {machine['kernel']}, Python {machine['python']}, Node {machine['node']}; "
        f"{versions}. Load before: {machine['load_before']}."
    )


def _with_peers(rows: Rows) -> dict[str, Any]:
    """Return the rows with what the peers were measured at in the row of the same pace."""
    together = {name: dict(row) for name, row in rows.items() if "versions" not in row}
    for name, row in rows.items():
        for pace, one in row.items() if "versions" in row else ():
            who = f"{name} {next(iter(row['versions'].values()))}"
            if pace != "versions":
                together.setdefault(pace, {})[who] = one
    return together


def _row(name: str, row: Rows) -> Iterator[Row]:
    if "error" in row:
        yield name, "", "", f"not measured: {_plain(row['error'])}"
        row = {key: one for key, one in row.items() if key != "error"}
    if row:
        yield from _MAKERS.get(name, _streams)(name, row)


def _plain(text: str) -> str:
    """Return *text* as a cell: one line, no bars."""
    return re.sub(r"\s+", " ", text.replace("|", "/"))[:300]


def _targets(name: str, row: Rows) -> Iterator[tuple[str, Rows]]:
    """Yield targets and what was measured of them; those without a measurement are told in `_missing`."""
    for target, one in row.items():
        if isinstance(one, Mapping) and "error" not in one:
            yield target, one


def _missing(name: str, row: Rows) -> Iterator[Row]:
    for target, one in row.items():
        if isinstance(one, Mapping) and "error" in one:
            yield name, target, "", f"not measured: {_plain(one['error'])}"


def _start(name: str, row: Rows) -> Iterator[Row]:
    yield "start to first answer", "service", "≤ 2 s", f"{row['start_s']:.2f} s"
    workers = " + ".join(f"{one:.0f}" for one in row["idle_pss_mib"][1:])
    yield "idle memory of a worker (PSS)", "service", "≤ 80 MB", f"{workers} MB"


def _size(name: str, row: Rows) -> Iterator[Row]:
    largest = ", ".join(f"{one} {mb:g}" for one, mb in row["largest_mb"].items())
    yield "installed size of the core", "service", "≤ 60 MB", f"{row['mb']:.0f} MB ({largest})"


def _paced(name: str, row: Rows) -> Iterator[Row]:
    for target, one in _targets(name, row):
        over, cpu = one["overhead_ms"], one.get("cpu_ms_per_answer")
        told = f"{_ms(over['p50'])} / {_ms(over['p99'])}, {one['lost']} lost, {one['mean_open']:.0f} there"
        took = f", CPU {cpu:.2f} ms" if cpu else ""
        wanted = "≤ 5 / 25 ms" if target == "service" else "beside"
        yield f"{name}: added to the model, median / p99", target, wanted, told + took
    yield from _missing(name, row)


def _instant(name: str, row: Rows) -> Iterator[Row]:
    for target, one in _targets(name, row):
        cpu = one.get("cpu_ms_per_answer")
        took = "" if cpu is None else f", CPU {cpu:.2f} ms each"
        wanted = "≥ 250, ≤ 5 ms" if target == "service" else "beside"
        found = f"{one['answers_per_s']:,.0f}{took}, {one['lost']} lost"
        yield "answers a second, model at once, 32 callers", target, wanted, found
        if target == "service":
            yield "Solr requests per answer", target, "1", f"{one.get('searches_per_answer', 0):.3f}"
    yield from _missing(name, row)


_WANTED = {
    "300x50": {"ttft": "+25 / +150 ms", "cpu": "≤ 1.4 ×"},
    "1000x10": {"ttft": "+30 / +300 ms", "lag": "≤ 120 ms", "cpu": "≤ 1.4 ×", "pss": "≤ 150 MB"},
    "2000x10": {},
}


def _streams(name: str, row: Rows) -> Iterator[Row]:
    wanted = _WANTED.get(name, {})
    below = row.get("direct", {})
    relay = row.get("relay", {}).get("cpu_ms_per_1000_tokens")
    for target, one in _targets(name, row):
        is_ours = target == "service"
        asked = {key: text if is_ours else "beside" for key, text in wanted.items()}
        counts = ", ".join(f"{status}: {count}" for status, count in one["statuses"].items())
        found = f"{one['lost']} of {sum(one['statuses'].values())} ({counts}); {one['mean_open']:.0f} open"
        yield f"{name}: lost", target, "0" if is_ours else "beside", found
        yield f"{name}: first token over direct, median / p99", target, asked.get("ttft", ""), _over(one, below)
        lag = one["lag_ms"]
        yield (
            f"{name}: token late, median / p99",
            target,
            asked.get("lag", ""),
            f"{_ms(lag['p50'])} / {_ms(lag['p99'])}",
        )
        if cpu := one.get("cpu_ms_per_1000_tokens"):
            times = f", {cpu / relay:.2f} × the relay" if relay else ""
            yield f"{name}: CPU for 1,000 tokens", target, asked.get("cpu", ""), f"{cpu:.0f} ms{times}"
            yield f"{name}: memory of the workers (PSS)", target, asked.get("pss", ""), f"{sum(one['pss_mib']):.0f} MB"
    yield from _missing(name, row)


def _full_house(name: str, row: Rows) -> Iterator[Row]:
    for crowd, one in _targets(name, row):
        refused = f"{one['statuses'].get('503', 0)} of {sum(one['statuses'].values())} refused"
        waits = one["refused_ms"]
        yield crowd, "service", "503 at once", f"{refused}, median / p99 {_ms(waits['p50'])} / {_ms(waits['p99'])}"


def _gap(name: str, row: Rows) -> Iterator[Row]:
    for part, one in _targets(name, row):
        if "gap_ms" not in one or "large ones" in part:
            if "latency_ms" in one:
                yield f"{part}: answers, median", "service", "", f"{one['answers']}, {_ms(one['latency_ms']['p50'])}"
            continue
        gap, lag = one["gap_ms"], one["lag_ms"]
        spread = " / ".join(_ms(gap[share]) for share in ("p50", "p99", "max"))
        late = " / ".join(_ms(lag[share]) for share in ("p50", "p99", "max"))
        who = "direct" if part.startswith("direct") else "service"
        wanted = "≤ 70 ms" if who == "service" else "beside"
        yield f"20 ms tokens, {part}: gap, median / p99 / longest", who, wanted, f"{spread}; late {late}"
    yield from _missing(name, row)


def _growth(name: str, row: Rows) -> Iterator[Row]:
    for against, points in row.items():
        found = "; ".join(
            f"{at}: " + (f"{one['cpu_ms']:.1f} / {_ms(one['wait_ms'])}" if "error" not in one else "not measured")
            for at, one in points.items()
        )
        each = "1,000 tokens" if against == "open streams" else "an answer"
        yield f"CPU ms for {each} / wait, against {against}", "service", "linear", found


def _embedded(name: str, row: Rows) -> Iterator[Row]:
    if row["documents"] < row["wanted"]:
        yield f"{name}: built so far", "embedded", "", f"{row['documents']:,} documents; run again to go on"
    size = f"{row['mb']:,.0f} MB on the disk, {row['more_mib']:.0f} MiB more in memory while it is searched"
    yield f"{name}: size", "embedded", "", size
    yield f"{name}: built in", "embedded", "", f"{row['build_s']:.0f} s"
    for search, found in row["rows"].items():
        spread = found["first_ms"]
        told = f"{_ms(spread['p50'])} / {_ms(spread['p99'])}, CPU {_ms(spread['cpu_p50'])}"
        is_wanted = row["documents"] == 100_000 and "highlighting, 50 rights" in search
        what = f"{name}: ten words, {search}, median / p99"
        yield what, "embedded", "≤ 10 ms" if is_wanted else "", f"{told}; {found['found']:,.0f} found"


def _solr(name: str, row: Rows) -> Iterator[Row]:
    if row["documents"] < row["wanted"]:
        yield f"{name}: built so far", "Solr", "", f"{row['documents']:,} documents; run again to go on"
    yield f"{name}: built in", "Solr", "", f"{row['build_s']:.0f} s"
    for who, found in row["rows"].items():
        bare, narrowed = found["first_own_ms"], found["others_own_ms"]
        added = (narrowed / bare - 1) if bare else 0.0
        wanted = "≤ +10 %" if who == "the same user" else ""
        told = f"{bare:.2f} → {narrowed:.2f} ms ({added:+.0%}); on the wire, median "
        told += f"{_ms(found['first_ms']['p50'])} → {_ms(found['others_ms']['p50'])}"
        yield f"{name}: mean QTime without → with 50 rights, {who}", "Solr", wanted, told


_MAKERS: Mapping[str, Callable[[str, Rows], Iterator[Row]]] = {
    "start": _start,
    "size": _size,
    "1 caller": _paced,
    "50 callers": _paced,
    "instant": _instant,
    "full house": _full_house,
    "gap": _gap,
    "growth": _growth,
    "embedded 100,000": _embedded,
    "embedded 1,000,000": _embedded,
    "Solr 100,000": _solr,
}


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


def _beside(rows: Rows) -> list[str]:
    """Return the table of ratios: each one's figure, and how many times the service's it is."""
    peers = [name for name in ("haystack", "litellm") if "error" not in rows.get(name, {"error": ""})]
    lines = []
    for what, pace, keys in _BESIDE:
        found = {who: _found(rows.get(pace, {}).get(who), keys) for who in ("service", "relay")}
        found |= {who: _found(rows[who].get(pace), keys) for who in peers}
        if found["service"] is not None and len([one for one in found.values() if one is not None]) > 1:
            lines.append(f"| {what} | " + " | ".join(_ratio(found.get(who), found["service"]) for who in found) + " |")
    head = ["", "| as ratios | service | relay | " + "".join(f"{who} | " for who in peers).strip()]
    return [*head, "|---" * (3 + len(peers)) + "|", *lines] if lines else []


def _found(one: Any, keys: tuple[str, ...]) -> float | None:
    for key in keys:
        one = one.get(key) if isinstance(one, Mapping) else None
    return one


def _ratio(one: float | None, ours: float) -> str:
    if one is None:
        return "-"
    return f"{one:,.2f}" if one == ours else f"{one:,.2f} ({one / ours:.2g} ×)"


def _shares(rows: Rows) -> list[str]:
    """Return whose the CPU was, for each measurement, and how late callers and stub model were by themselves."""
    lines = [
        "| measurement | service | stubs | callers | others | of the machine | callers late p99 | model late p99 |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, found in rows.items():
        for part, one in found.items():
            if isinstance(one, dict) and "shares" in one:
                shares = " | ".join(f"{one['shares'][who]:.0%}" for who in ("service", "stubs", "callers", "others"))
                model = (one.get("model_late_ms") or {}).get("p99")
                late = f"{_ms(one['late_ms']['p99'])} | {_ms(model)}"
                lines.append(f"| {name}, {part} | {shares} | {one['cpu_s']['machine']:.1f} s | {late} |")
    return lines


def _plots(found: Rows, folder: Path) -> None:
    growth = found["rows"].get("growth", {})
    if not growth or "error" in growth:
        return
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(growth), figsize=(4 * len(growth), 3.5), layout="constrained")
    for axis, (name, points) in zip(axes, growth.items(), strict=True):
        good = {int(at): one for at, one in points.items() if "error" not in one and one["wait_ms"] is not None}
        for key, label in (("cpu_ms", "CPU ms"), ("wait_ms", "added wait ms, median")):
            axis.plot(list(good), [one[key] for one in good.values()], marker="o", label=label)
        axis.set(xlabel=name, xscale="log", yscale="log")
        axis.grid(alpha=0.3)
        axis.legend()
    axes[0].set_ylabel("of an answer (streams: of 1,000 tokens)")
    figure.savefig(folder / f"{found['run']}-growth.png", dpi=120)
