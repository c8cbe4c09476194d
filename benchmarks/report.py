"""Numbers into a table and plots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

Row = tuple[str, str, str]
"""What, what is to be reached, what was measured."""


def write(found: Mapping[str, Any], folder: Path) -> None:
    """Write `results.md`, and `growth.png` and `streams.png` where their rows were run."""
    rows = found["rows"]
    lines = [_machine(found["machine"]), "", "| what | to reach | measured |", "|---|---|---|"]
    lines += [f"| {what} | {wanted} | {got} |" for maker in _MAKERS for what, wanted, got in maker(rows)]
    lines += ["", *_shares(rows)]
    (folder / "results.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    _plots(rows, folder)


def _machine(machine: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return (
        f"{machine['cores']} cores of {machine['processor']}, Linux {machine['kernel']}, Python {machine['python']}, "
        f"Node {machine['node']}; {versions}; load before {machine['load_before']}."
    )


def _start(rows: Mapping[str, Any]) -> Iterator[Row]:
    if "start" in rows:
        yield "start to first answer", "≤ 2 s", f"{rows['start']['start_s']:.2f} s"


def _answers(rows: Mapping[str, Any]) -> Iterator[Row]:
    found = rows.get("answers")
    if not found:
        return
    for name, model in (("1 callers", "0.1 s"), ("50 callers", "1 s")):
        one = found[name]
        yield (
            f"whole answers, {name.replace('1 callers', '1 caller')}, a model of {model}: own overhead median / p99",
            "≤ 5 / 25 ms",
            f"{_ms(one['overhead_p50_ms'])} / {_ms(one['overhead_p99_ms'])}, {one['lost']} lost",
        )
    one = found["instant model"]
    yield "CPU per whole answer", "≤ 5 ms", f"{one['cpu_ms_per_answer']:.2f} ms"
    yield "answers a second, instant model, 32 callers", "≥ 250", f"{one['answers'] / one['seconds']:.0f}"
    for name, peer in found.items():
        if name.startswith("instant model, "):
            yield (
                f"the same through {peer['target']}, which neither searches nor reads",
                "beside",
                f"{peer['answers'] / peer['seconds']:.0f} a second, {peer['cpu_ms_per_answer']:.2f} ms CPU",
            )
    yield "Solr requests per answer", "1", f"{found['searches per answer']:g}"
    workers = found["idle"]["pss_mib"][1:]
    yield "memory of a worker after that (PSS)", "≤ 80 MB", " + ".join(f"{one:.0f}" for one in workers) + " MB"


def _streams(rows: Mapping[str, Any]) -> Iterator[Row]:
    wanted = {"300@50": ("+25 / +150 ms", "-"), "1000@10": ("+30 / +300 ms", "≤ 120 ms"), "2000@10": ("-", "-")}
    for name, (first, lag) in wanted.items():
        if name not in rows:
            continue
        direct, relay = rows[name]["direct"], rows[name]["aiohttp relay"]
        for target, one in rows[name].items():
            yield (
                f"{name} tokens a second, {target}: lost",
                "0",
                f"{one['lost']} of {sum(one['statuses'].values())} ({one['peak']} open, statuses {one['statuses']})",
            )
            yield (f"{name}, {target}: first token over direct, median / p99", first, _over(one, direct))
            yield (f"{name}, {target}: token lag p99", lag, _ms(one["lag_ms"]["p99"]))
            if "cpu_ms_per_1000_tokens" in one:
                ratio = one["cpu_ms_per_1000_tokens"] / relay["cpu_ms_per_1000_tokens"]
                yield (
                    f"{name}, {target}: CPU per 1,000 tokens, beside the relay",
                    "≤ 1.4 ×",
                    f"{one['cpu_ms_per_1000_tokens']:.0f} ms, {ratio:.2f} ×",
                )
                yield (f"{name}, {target}: memory (PSS)", "≤ 150 MB", f"{sum(one['pss_mib'][1:]):.0f} MB")


def _others(rows: Mapping[str, Any]) -> Iterator[Row]:
    if "full house" in rows:
        one = next(iter(rows["full house"].values()))
        refused = one["statuses"].get("503", 0)
        yield "one stream more than allowed", "503 at once", f"{refused} refused of {sum(one['statuses'].values())}"
    if "large answers" in rows:
        found = rows["large answers"]
        for name in ("alone", "beside 15 MB answers"):
            gap = found[name]["gap_ms"]
            yield (
                f"20 ms tokens, {name}: gap p50 / p99 / longest",
                "≤ 70 ms",
                " / ".join(_ms(gap[share]) for share in ("p50", "p99", "max")),
            )
    for name, points in rows.get("growth", {}).items():
        yield f"CPU per answer against {name}", "linear", ", ".join(f"{at}: {cost} ms" for at, cost in points.items())


_MAKERS = (_start, _answers, _streams, _others)


def _over(one: Mapping[str, Any], direct: Mapping[str, Any]) -> str:
    pairs = [(one["ttft_ms"][share], direct["ttft_ms"][share]) for share in ("p50", "p99")]
    return " / ".join("-" if own is None or below is None else f"{own - below:+.0f} ms" for own, below in pairs)


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} ms"


def _shares(rows: Mapping[str, Any]) -> list[str]:
    """Return whose the CPU was, for each measurement."""
    lines = ["| measurement | service | stubs | callers | others | of the machine, s |", "|---|---|---|---|---|---|"]
    for name, found in rows.items():
        for part, one in found.items():
            if isinstance(one, dict) and "shares" in one:
                shares = " | ".join(f"{one['shares'][who]:.0%}" for who in ("service", "stubs", "callers", "others"))
                lines.append(f"| {name}, {part} | {shares} | {one['cpu_s']['machine']:.0f} |")
    return lines


def _plots(rows: Mapping[str, Any], folder: Path) -> None:
    if "growth" not in rows:
        return
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(rows["growth"]), figsize=(12, 3.5), layout="constrained")
    for axis, (name, points) in zip(axes, rows["growth"].items(), strict=True):
        axis.plot([int(at) for at in points], list(points.values()), marker="o")
        axis.set(xlabel=name, ylabel="CPU ms per answer", xscale="log", yscale="log")
        axis.grid(alpha=0.3)
    figure.savefig(folder / "growth.png", dpi=120)
