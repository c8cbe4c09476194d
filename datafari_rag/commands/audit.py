"""`datafari-rag audit verify FOLDER`: check the chains of the audit trail."""

from __future__ import annotations

from pathlib import Path

import click

from datafari_rag.core.audit_record import broken, read_head


@click.group()
def audit() -> None:
    """Check the audit files."""


@audit.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def verify(folder: Path) -> None:
    """
    Verify every chain in FOLDER: no line was changed, moved or removed.

    Exit code 0 if all chains are intact, otherwise 1 and one line for each problem: FILE:LINE: what is wrong.
    """
    chains = sorted({path.with_suffix(".jsonl") for path in folder.iterdir() if path.suffix in (".jsonl", ".head")})
    problems = [problem for chain in chains for problem in _problems(chain)]
    for problem in problems:
        click.echo(problem, err=True)
    if problems:
        raise SystemExit(1)
    lines = sum(chain.read_bytes().count(b"\n") for chain in chains)
    click.echo(f"{len(chains)} chains, {lines} lines: nothing was changed.")


def _problems(chain: Path) -> list[str]:
    if not chain.exists():
        return [f"{chain}:1: The chain's file is missing; its head file is here."]
    head_file = chain.with_suffix(".head")
    head = read_head(head_file.read_bytes()) if head_file.exists() else None
    with chain.open("rb") as lines:
        return [f"{chain}:{max(number, 1)}: {problem}" for number, problem in broken(lines, head)]
