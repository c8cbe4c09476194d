"""
The audit trail as values: what is said of one answer, how lines are chained, and how a chain is checked.

A line holds who, when, which documents and what came of it; never a question, a text, an answer or a token. Each
line carries the hash of the one before it, so that a line cannot be changed or taken out without all after it. Pure:
files and clocks are the adapter's.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from datafari_rag.core.documents import Extract, stored_span
from datafari_rag.core.events import Support
from datafari_rag.core.query.dates import iso_at

GENESIS = "0" * 64
"""What the first line of a chain names as the hash before it."""


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """
    One answer, or one failure to give one.

    *at_s* is seconds since 1970; *user* None is the anonymous; *outcome* is ok, passed, aborted, or a label of the
    errors. *tokens* is the model's own count, None where it gave none.
    """

    at_s: float
    request_id: str
    dialect: str
    outcome: str
    user: str | None = None
    mode: str = "tokens"
    extracts: tuple[Extract, ...] = ()
    model: str | None = None
    tokens: int | None = None
    support: Support | None = None


@dataclass(frozen=True, slots=True)
class ChainHead:
    """The end of a chain: how many lines it has, and the hash of the last one."""

    lines: int = 0
    last: str = GENESIS


def record_of(happening: AuditEvent) -> dict[str, object]:
    """Return what the trail says of *happening*: plain JSON values, no content."""
    outcome = happening.outcome
    return {
        "kind": "answer",
        "at": iso_at(happening.at_s, has_ms=True),
        "id": happening.request_id,
        "who": happening.user,
        "dialect": happening.dialect,
        # The trail's, which has the key.
        "question_hmac": None,
        "documents": [_document(extract) for extract in happening.extracts],
        "decision": {"mode": happening.mode, "access": _access(outcome)},
        "model": happening.model,
        "tokens": happening.tokens,
        "support": _support(happening.support),
        "outcome": outcome,
    }


def chained(record: Mapping[str, object], head: ChainHead) -> tuple[bytes, ChainHead]:
    """Return *record* as the next line after *head*, with its line end, and the head after it."""
    body = {"n": head.lines, "before": head.last, **record}
    text = _canonical(body)
    mark = hashlib.sha256(text.encode("ascii")).hexdigest()
    line = f'{text[:-1]},"hash":"{mark}"}}\n'
    return line.encode("ascii"), ChainHead(head.lines + 1, mark)


def head_line(head: ChainHead) -> bytes:
    """Return *head* as it stands beside the chain."""
    return f"{head.lines} {head.last}\n".encode("ascii")


def read_head(data: bytes) -> ChainHead | None:
    """Return the head that *data* writes, None when it writes none."""
    number, _, last = data.decode("ascii", "replace").strip().partition(" ")
    return ChainHead(int(number), last) if number.isascii() and number.isdigit() and len(last) == len(GENESIS) else None


def broken(lines: Iterable[bytes], head: ChainHead | None) -> Iterator[tuple[int, str]]:
    """
    Yield what is wrong with a chain: the number of the line (from 1) and a sentence; nothing when it is whole.

    *head* is what stands beside the chain, None when that is gone. A chain may be longer than its head by lines that
    were written just before the process ended, and never shorter.
    """
    found = ChainHead()
    number = 0
    seen = {0: GENESIS}
    for number, line in enumerate(lines, start=1):
        problem, found = _checked(line, found)
        if problem is not None:
            yield number, problem
            return
        seen[number] = found.last
    if head is None:
        yield number, "The head file of this chain is missing, or cannot be read."
    elif head.lines > number:
        yield number + 1, f"Lines are missing at the end: {head.lines} were written, {number} are here."
    elif seen[head.lines] != head.last:
        yield head.lines, "The head file of this chain does not match its last line."


def _checked(line: bytes, before: ChainHead) -> tuple[str | None, ChainHead]:
    try:
        data = json.loads(line)
        mark = data.pop("hash")
        number, previous = data["n"], data["before"]
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return "This line is not a line of an audit chain: it was changed.", before
    # Before the hash: a line that was taken out leaves whole lines with the wrong numbers behind.
    if number != before.lines:
        return f"A line is missing or was moved: number {before.lines} was expected here.", before
    if previous != before.last:
        return "The line before this one was changed.", before
    expected, after = chained({name: value for name, value in data.items() if name not in ("n", "before")}, before)
    if mark != after.last or line.rstrip(b"\n") != expected.rstrip(b"\n"):
        return "This line was changed.", before
    return None, after


def _canonical(body: Mapping[str, object]) -> str:
    return json.dumps(body, ensure_ascii=True, separators=(",", ":"), sort_keys=False)


def _document(extract: Extract) -> dict[str, object]:
    return {
        "id": extract.document.id,
        "version": extract.document.version,
        "field": extract.document.field,
        "passages": [list(stored_span(extract.document, one.start, one.end)) for one in extract.passages],
    }


def _support(found: Support | None) -> dict[str, object] | None:
    """Return how much of an answer was proved, and what its policy changed; None where nobody looked."""
    if found is None:
        return None
    told = {"score": found.share, "checked": found.checked, "proved": found.proved, "policy": found.policy}
    return {**told, "dropped": found.dropped, "replaced": found.replaced}


def keyed(question: str, key: bytes) -> str:
    """
    Return the keyed hash of *question* (HMAC-SHA256): alike for alike questions, and nothing without the key.

    A plain hash of a short question is found by trying.
    """
    return hmac.new(key, question.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def _access(outcome: str) -> str:
    return "refused" if outcome in REFUSALS else "filtered"


REFUSALS = frozenset({"notAuthenticated", "notAllowed", "authorityUnavailable", "authorityTimeout", "tooManyRequests"})
"""Outcomes in which nothing was searched because of who asked."""
