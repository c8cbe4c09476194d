"""
Claims that people labelled, checked against their references: what is called proved of the right and of the wrong ones.

Reads claims, checks them, counts. It calls no second judge, and knows nothing of any set but its name.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean

import click

from datafari_rag.core.documents import Document
from datafari_rag.core.proof.checking import checked_against
from datafari_rag_trials.evaluation.questions import UnreadableQuestions, rows_of
from datafari_rag_trials.evaluation.reports import placed

RIGHT, WRONG = "supported", "unsupported"
"""The labels of the files."""

STATUSES = ("unsupported", "near", "quoted", "verified")
"""What a sentence can be, the worst first: a claim is what the worst of its sentences is."""

PROVED = ("quoted", "verified")

_HEADS = (
    "set", "claims", "right", "proved", "precision", "coverage", "of the right, proved or near",
    "of the wrong, proved or near", "balanced accuracy",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LabelledClaim:
    """A claim of the set *group*; *is_right*: people say that every part of it follows from its *references*."""

    id: str
    group: str
    text: str
    references: tuple[str, ...]
    is_right: bool


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """What the check called a claim: *status* is one of `STATUSES`."""

    claim: LabelledClaim
    status: str


@dataclass(frozen=True, slots=True)
class ClaimRates:
    """
    Counts of one set, or of several. Shares are percentages, None where there is nothing to share.

    *precision*: the right ones of those *proved*, word for word; *coverage*: the proved ones of those *right*.
    *near_right* and *near_wrong*: proved or near, of the right and of the wrong ones.
    """

    claims: int
    right: int
    proved: int
    precision: float | None
    coverage: float | None
    near_right: float | None
    near_wrong: float | None
    balanced: float | None
    """The mean of the right ones that are proved or near and the wrong ones that are neither."""


def claims_in(folder: Path) -> tuple[LabelledClaim, ...]:
    """
    Return the claims of every `claims.jsonl` of *folder* and of the folders in it, in the order of their paths.

    Raises:
        UnreadableQuestions: a line is not a claim, or there is none.
        OSError: a file cannot be read.
    """
    claims = [_claim(row, where) for path in sorted(folder.rglob("claims.jsonl")) for where, row in rows_of(path)]
    if not claims:
        raise UnreadableQuestions(f"{folder} holds no claims: a claims.jsonl with one on each line is expected.")
    return tuple(claims)


def _claim(row: Mapping[str, object], where: str) -> LabelledClaim:
    text, references, label = row.get("claim"), row.get("references"), row.get("label")
    if not isinstance(text, str) or not isinstance(references, list) or label not in (RIGHT, WRONG):
        raise UnreadableQuestions(f"{where}: a claim needs 'claim', 'references', and 'label': {RIGHT} or {WRONG}")
    group = str(row.get("set") or "claims")
    return LabelledClaim(str(row.get("id", where)), group, text, tuple(map(str, references)), label == RIGHT)


def check(claim: LabelledClaim) -> CheckedClaim:
    """Return what words alone say of *claim*. Raises: BadRequest, for a claim that is too long to be checked."""
    documents = [Document(str(number), text) for number, text in enumerate(claim.references)]
    statuses = {sentence.status for sentence in checked_against(claim.text, documents).stated}
    return CheckedClaim(claim, next((status for status in STATUSES if status in statuses), "unsupported"))


def rates_by_set(checked: Sequence[CheckedClaim]) -> dict[str, ClaimRates]:
    """Return the rates of each set; of several also of "all", where balanced accuracy is the mean of theirs."""
    groups = list(dict.fromkeys(row.claim.group for row in checked))
    by_group = {group: rates([row for row in checked if row.claim.group == group]) for group in groups}
    if len(by_group) > 1:
        by_group["all"] = rates(
            checked, [figures.balanced for figures in by_group.values() if figures.balanced is not None]
        )
    return by_group


def rates(checked: Sequence[CheckedClaim], balanced: Sequence[float] = ()) -> ClaimRates:
    """Return the rates of *checked*, with the mean of *balanced* in place of their own where it is given."""
    right, wrong = ([row.status for row in checked if row.claim.is_right is side] for side in (True, False))
    proved, proved_wrong = (sum(status in PROVED for status in of) for of in (right, wrong))
    near_right, near_wrong = (
        _share(sum(status in (*PROVED, "near") for status in of), len(of)) for of in (right, wrong)
    )
    own = None if near_right is None or near_wrong is None else (near_right + 100 - near_wrong) / 2
    return ClaimRates(
        claims=len(right) + len(wrong),
        right=len(right),
        proved=proved + proved_wrong,
        precision=_share(proved, proved + proved_wrong),
        coverage=_share(proved, len(right)),
        near_right=near_right,
        near_wrong=near_wrong,
        balanced=fmean(balanced) if balanced else own,
    )


def _share(some: int, of: int) -> float | None:
    return 100 * some / of if of else None


def grounding_table(by_group: Mapping[str, ClaimRates]) -> str:
    """Return a Markdown table with a row for each set; shares are percentages."""
    rows = [_HEADS, ("---",) * len(_HEADS)]
    for name, each in by_group.items():
        shares = (each.precision, each.coverage, each.near_right, each.near_wrong, each.balanced)
        cells = ("–" if share is None else f"{share:.1f}" for share in shares)
        rows.append((name, f"{each.claims:,}", f"{each.right:,}", f"{each.proved:,}", *cells))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


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
    by_group = rates_by_set(checked)
    table = grounding_table(by_group)
    click.echo(table, nl=False)
    out.mkdir(parents=True, exist_ok=True)
    claims = [{"id": row.claim.id, "is_right": row.claim.is_right, "status": row.status} for row in checked]
    report = {"sets": {name: asdict(figures) for name, figures in by_group.items()}, "claims": claims}
    (out / "grounding.json").write_text(json.dumps(report, indent=1, ensure_ascii=False), encoding="utf-8")
    if page is not None:
        page.write_text(placed(page.read_text(encoding="utf-8"), part, table), encoding="utf-8")


def _checked(folders: Sequence[Path], jobs: int) -> list[CheckedClaim]:
    claims = list(itertools.chain.from_iterable(map(claims_in, folders)))
    if jobs == 1:
        return list(map(check, claims))
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        return list(pool.map(check, claims, chunksize=_CHUNK))
