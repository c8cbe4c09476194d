"""
The audit trail as values: what is recorded of one answer, how lines are chained, and how a chain is checked.

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
    """
    The end of a chain: how many lines it has, and the hash of the last one; *key* is the id of the key it is made with.

    Without a key the hash is SHA-256: after changing a line, an attacker can compute it again for all later lines.
    The head itself is not signed: who can write both files can cut lines off the end and write the head of before.
    """

    lines: int = 0
    last: str = GENESIS
    key: str | None = None


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
        "decision": {"mode": happening.mode, "access": "refused" if outcome in REFUSALS else "filtered"},
        "model": happening.model,
        "tokens": happening.tokens,
        "support": _support(happening.support),
        "outcome": outcome,
    }


def chained(record: Mapping[str, object], head: ChainHead, key: AuditKey | None = None) -> tuple[bytes, ChainHead]:
    """Return *record* as the next line after *head*, signed with *key*, with its line end, and the head after it."""
    signer = {} if key is None else {"key": key.id}
    numbered = {"n": head.lines, "before": head.last, **signer, **record}
    text = json.dumps(numbered, ensure_ascii=True, separators=(",", ":"))
    mark = hashlib.sha256(text.encode("ascii")).hexdigest() if key is None else key.signed(text)
    line = f'{text[:-1]},"hash":"{mark}"}}\n'
    return line.encode("ascii"), ChainHead(head.lines + 1, mark, None if key is None else key.id)


def head_line(head: ChainHead) -> bytes:
    """Return the file form of *head*."""
    return f"{head.lines} {head.last}\n".encode("ascii")


def read_head(data: bytes) -> ChainHead | None:
    """Return the head that *data* writes, None when it writes none; what follows its two words is not read."""
    number, last = [*data.decode("ascii", "replace").split(), "", ""][:2]
    if not (number.isascii() and number.isdigit() and len(number) < 20 and len(last) == len(GENESIS)):
        return None
    return ChainHead(int(number), last)


def broken(
    lines: Iterable[bytes], head: ChainHead | None, keys: Keys | None = None, *, needs_key: bool = False
) -> Iterator[tuple[int, str]]:
    """
    Yield what is wrong with a chain: the number of the line (from 1) and a sentence; nothing when it is whole.

    *head* is the stored head of the chain, None when it is missing. A chain may be longer than its head by lines that
    were written just before the process ended, and never shorter. *keys* are those that lines may be signed with; with
    *needs_key* each line is.
    """
    state = ChainHead()
    number = 0
    digests = {0: GENESIS}
    for number, line in enumerate(lines, start=1):
        problem, state = _checked(line, state, keys or {}, needs_key=needs_key)
        if problem is not None:
            yield number, problem
            return
        digests[number] = state.last
    if head is None:
        yield number, "The head file of this chain is missing, or cannot be read."
    elif head.lines > number:
        yield number + 1, f"Lines are missing at the end: {head.lines} were written, {number} are here."
    elif digests.get(head.lines) != head.last:
        yield head.lines, "The head of this chain does not match this line."


def _checked(line: bytes, before: ChainHead, keys: Keys, *, needs_key: bool) -> tuple[str | None, ChainHead]:
    try:
        data = json.loads(line)
        mark, signer = data.pop("hash"), data.pop("key", None)
        number, previous = data["n"], data["before"]
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return "This line is not a line of an audit chain: it was changed.", before
    # Before the hash: a line that was taken out leaves whole lines with the wrong numbers behind.
    if number != before.lines:
        return f"A line is missing or was moved: number {before.lines} was expected here.", before
    if previous != before.last:
        return "The line before this one was changed.", before
    if signer is not None and (not isinstance(signer, str) or signer not in keys):
        return f"This line was signed with a key that is not given (audit.key): {str(signer)[:40]!r}.", before
    if signer is None and before.key is not None:
        return "This line is not signed, and those before it are.", before
    if signer is None and needs_key:
        return "This line is not signed.", before
    record = {name: value for name, value in data.items() if name not in ("n", "before")}
    expected, after = chained(record, before, None if signer is None else keys[signer])
    if mark != after.last or line.rstrip(b"\n") != expected.rstrip(b"\n"):
        return "This line was changed.", before
    return None, after


def _document(extract: Extract) -> dict[str, object]:
    return {
        "id": extract.document.id,
        "version": extract.document.version,
        "field": extract.document.field,
        "passages": [list(stored_span(extract.document, passage.start, passage.end)) for passage in extract.passages],
    }


def _support(support: Support | None) -> dict[str, object] | None:
    """Return how much of an answer was proved, and what its policy changed; None if it was not checked."""
    if support is None:
        return None
    counts = {"verified": support.verified, "quoted": support.quoted, "near": support.near}
    about = {"score": support.share, "checked": support.checked, **counts, "policy": support.policy}
    return {**about, "dropped": support.dropped, "replaced": "nothing" if support.is_replaced else None}


def keyed(question: str, key: bytes) -> str:
    """
    Return the keyed hash of *question* (HMAC-SHA256): alike for alike questions, and nothing without the key.

    A plain hash of a short question is found by trying.
    """
    return hmac.new(key, question.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


REFUSALS = frozenset({"notAuthenticated", "notAllowed", "authorityUnavailable", "authorityTimeout", "tooManyRequests"})
"""Outcomes without a search because of the user."""


ID_CHARS = 12


@dataclass(frozen=True, slots=True, repr=False)
class AuditKey:
    """One key; *secret* is never shown."""

    secret: str

    @property
    def id(self) -> str:
        """What a line says of the key that signed it."""
        return hashlib.sha256(f"datafari-rag audit key {self.secret}".encode()).hexdigest()[:ID_CHARS]

    def signed(self, text: str) -> str:
        """Return the keyed hash (HMAC-SHA256) of the line *text*."""
        return hmac.new(self.secret.encode(), f"line {text}".encode(), hashlib.sha256).hexdigest()


Keys = Mapping[str, AuditKey]


def keys_by_id(secrets: Iterable[str]) -> Keys:
    """Return the keys of *secrets* by their ids, without empty texts."""
    return {key.id: key for key in (AuditKey(secret) for secret in secrets if secret)}
