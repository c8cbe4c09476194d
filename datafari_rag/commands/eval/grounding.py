"""`datafari-rag eval --grounding`: claims with labels in, a table and what became of every claim out."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path

import click

from datafari_rag.evaluation.grounding import CheckedClaim, check, claims_in, grounding_table, rates_by_set
from datafari_rag.evaluation.markdown_report import placed

_CHUNK = 32


def measure_grounding(folders: Sequence[Path], out: Path, page: Path | None, part: str, *, jobs: int) -> None:
    """
    Print the rates of the claims of *folders*; write them, and each claim's status, into *out*, the table into *page*.

    Raises:
        UnreadableQuestions: a folder has no claims, or a line is none.
        NoPlaceholder: the page has no marks of *part*.
        RagError, OSError: a claim cannot be checked, a file cannot be read or written.
    """
    checked = _checked(folders, jobs)
    found = rates_by_set(checked)
    table = grounding_table(found)
    click.echo(table, nl=False)
    out.mkdir(parents=True, exist_ok=True)
    claims = [{"id": one.claim.id, "is_right": one.claim.is_right, "status": one.status} for one in checked]
    report = {"sets": {name: asdict(one) for name, one in found.items()}, "claims": claims}
    (out / "grounding.json").write_text(json.dumps(report, indent=1, ensure_ascii=False), encoding="utf-8")
    if page is not None:
        page.write_text(placed(page.read_text(encoding="utf-8"), part, table), encoding="utf-8")


def _checked(folders: Sequence[Path], jobs: int) -> list[CheckedClaim]:
    claims = list(itertools.chain.from_iterable(map(claims_in, folders)))
    if jobs == 1:
        return list(map(check, claims))
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        return list(pool.map(check, claims, chunksize=_CHUNK))
