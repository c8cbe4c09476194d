"""Numbers into tables and the one picture of docs."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Rows = Mapping[str, Any]

NOISY = 0.2
"""Share of the CPU used by other programs above which times say little."""

BEGIN, END = "<!-- written by make bench -->", "<!-- end -->"
PACE = re.compile(r"\d+x\d+")
WAYS = {
    "embedded": "service, embedded index",
    "Solr": "service, Solr with whole texts",
    "Solr with passages": "service, Solr with passages",
    "snippets": "service, Solr, Datafari's settings: snippets alone",
    "haystack": "Haystack, the same Solr",
    "langchain": "LangChain, the same Solr",
}
STREAMS = ("streams x tokens a second", "of", "lost", "refused", "first token, median / p99", "CPU ms of 1,000 tokens")
STREAMS += ("PSS MB",)


def write(found: Rows, folder: Path) -> str:
    """Write the tables and the picture of a run beside its JSON; return the tables."""
    rows = found["rows"]
    parts = [
        [_head(found)],
        costs(rows),
        _table(("check of an answer against", "p50 / p99 ms", "CPU ms", "p99, times the floor"), _checks(rows)),
        _table(STREAMS, _streams(rows)),
        _table(("not measured", "of", "why"), _missing(rows)),
    ]
    text = "\n\n".join("\n".join(part) for part in parts if part) + "\n"
    (folder / "bench.md").write_text(text, encoding="utf-8")
    _picture(rows, folder / "bench-cost.png")
    return text


def into_docs(found: Rows, folder: Path, docs: Path) -> None:
    """Put the table of costs between its marks in `performance.md`, and the picture beside the other pictures."""
    page, table = docs / "performance.md", "\n".join([_head(found), "", *costs(found["rows"])])
    shutil.copy(folder / "bench-cost.png", docs / "images" / "performance-cost.png")
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    page.write_text(f"{before}{BEGIN}\n{table}\n{END}{rest.split(END)[1]}", encoding="utf-8")


def costs(rows: Rows) -> list[str]:
    """Return what an answer costs over each set of documents, beside the floor; nothing where it was not measured."""
    sets, floor = _measured_sets(rows)
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
            lines.append(("- and Solr, ms", *(_figure(one and one["new"]["solr_ms"]) for one in found)))
    alone = rows["cost"].get("litellm", {}).get("ms")
    lines += [("LiteLLM, which does not search", *[_times(alone, floor)] * len(sets))] if alone else []
    for way in ("embedded", "Solr", "Solr with passages"):
        each = [one[way]["index_s"] / one["chars"] * 1e6 if way in one else None for one in sets.values()]
        lines.append((f"index run, {way}: CPU s for a million characters", *map(_figure, each)))
    disk = [one["embedded"]["mb"] / one["chars"] * 1e6 for one in sets.values()]
    lines.append(("disk, embedded: MB for a million characters", *map(_figure, disk)))
    return _table((f"CPU ms of an answer (times the floor, {floor:.2f} ms)", *sets), lines)


def _measured_sets(rows: Rows) -> tuple[Mapping[str, Any], float]:
    row = rows.get("cost", {})
    sets = {name: one for name, one in row.items() if isinstance(one, Mapping) and "embedded" in one}
    return sets, row.get("floor", {}).get("ms", 0.0)


def _times(ms: float | None, floor: float) -> str:
    return "-" if ms is None else f"{ms:.1f} ({ms / floor:.1f} ×)"


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
    """Say which share of the CPU other programs used, where streams were measured."""
    each = [one for row in rows.values() for one in row.values() if isinstance(one, Mapping) and "shares" in one]
    used = sum(one["cpu_s"]["machine"] for one in each)
    if not used:
        return ""
    share = sum(one["shares"]["others"] * one["cpu_s"]["machine"] for one in each) / used
    warning = " **Not a quiet machine: compare CPU, not times.**" if share > NOISY else ""
    return f" Other programs used {share:.0%} of the CPU meanwhile.{warning}"


def _table(head: Sequence[str], cells: Iterable[Sequence[str]]) -> list[str]:
    """Return a table, nothing when it would be empty."""
    lines = ["| " + " | ".join(map(_plain, row)) + " |" for row in cells]
    return ["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *lines] if lines else []


def _plain(text: str) -> str:
    """Return *text* as a cell: one line, no bars."""
    return re.sub(r"\s+", " ", text.replace("|", "/"))[:400]


def _checks(rows: Rows) -> Iterator[Sequence[str]]:
    row = rows.get("check", {})
    for name, one in row.items():
        if isinstance(one, Mapping) and "p99" in one:
            times = f"{one['p99'] / row['floor']['ms']:.1f} ×" if row.get("floor", {}).get("ms") else "-"
            yield name, f"{one['p50']:.1f} / {one['p99']:.1f}", f"{one['cpu_ms']:.1f}", times


def _streams(rows: Rows) -> Iterator[Sequence[str]]:
    for name, row in rows.items():
        for target, one in row.items():
            if not isinstance(one, Mapping) or "ttft_ms" not in one:
                continue
            pace, who = (name, target) if PACE.fullmatch(name) else (target, name)
            asked = sum(one["statuses"].values())
            refused = asked - one["statuses"].get("200", 0)
            first = " / ".join(_ms(one["ttft_ms"][share]) for share in ("p50", "p99"))
            cpu, memory = one.get("cpu_ms_per_1000_tokens"), one.get("pss_mib")
            yield (
                *(pace, who, f"{one['lost']} of {asked:,}", f"{refused:,}", first),
                *(f"{cpu:.0f}" if cpu else "-", f"{sum(memory):.0f}" if memory else "-"),
            )


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f} ms"


def _missing(rows: Rows) -> Iterator[Sequence[str]]:
    for name, row in rows.items():
        if "error" in row:
            yield name, "", row["error"]
        for target, one in row.items():
            if isinstance(one, Mapping) and "error" in one:
                yield name, target, one["error"]


def _picture(rows: Rows, file: Path) -> None:
    """Draw what an answer costs over each set of documents, in times of the floor."""
    sets, floor = _measured_sets(rows)
    if not sets or not floor:
        return
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axis = plt.subplots(figsize=(9, 3.5), layout="constrained")
    measured = {way: name for way, name in WAYS.items() if any("new" in one.get(way, {}) for one in sets.values())}
    for place, (way, name) in enumerate(measured.items()):
        at = [number + 0.8 / len(measured) * (place - (len(measured) - 1) / 2) for number in range(len(sets))]
        ours, solr = (
            [one.get(way, {}).get("new", {}).get(key, 0.0) / floor for one in sets.values()]
            for key in ("ms", "solr_ms")
        )
        width = 0.7 / len(measured)
        axis.bar(at, ours, width, label=name)
        is_last = place == len(measured) - 1
        axis.bar(at, solr, width, bottom=ours, color="lightgrey", label="Solr" if is_last else None)
    axis.axhline(1, color="black", linewidth=1)
    axis.set_xticks(range(len(sets)), list(sets))
    axis.set_ylabel("CPU of an answer, times the floor")
    axis.grid(axis="y", alpha=0.3)
    axis.legend(fontsize="small")
    figure.savefig(file, dpi=120)
