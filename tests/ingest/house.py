"""A folder of files, and a writer that remembers in the place of the search engine."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datafari_rag.core.documents import STAMP_FIELD
from datafari_rag.core.errors import SearchUnavailable
from datafari_rag.ingest.documents import Rights
from datafari_rag.ingest.run import IndexOrder, IndexRun, RunOutcome
from datafari_rag.ingest.sandbox import Sandbox


@dataclass
class FakeWriter:
    """An engine: what can be found, and what is on its way; it fails at the call of number *fails_at*."""

    found: dict[str, Mapping[str, object]] = field(default_factory=dict)
    coming: dict[str, Mapping[str, object] | None] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)
    commits: int = 0
    fails_at: int | None = None
    calls: int = 0

    def add(self, documents: Sequence[Mapping[str, object]]) -> None:
        self._called()
        self.coming |= {str(document["id"]): document for document in documents}
        self.written += [str(document["id"]) for document in documents]

    def stamps(self) -> Mapping[str, str]:
        return {key: str(one[STAMP_FIELD]) for key, one in self.found.items() if STAMP_FIELD in one}

    def delete(self, ids: Sequence[str]) -> None:
        self._called()
        self.coming |= dict.fromkeys(ids)

    def commit(self) -> None:
        self._called()
        both = {**self.found, **self.coming}
        self.found = {key: document for key, document in both.items() if document is not None}
        self.coming = {}
        self.commits += 1

    def close(self) -> None:
        self.coming = {}

    def _called(self) -> None:
        self.calls += 1
        if self.calls == self.fails_at:
            raise SearchUnavailable


@dataclass
class Heard:
    """A listener that remembers."""

    total_bytes: int = 0
    done_bytes: int = 0
    documents: int = 0
    failures: list[tuple[str, str]] = field(default_factory=list)

    def started(self, total_bytes: int) -> None:
        self.total_bytes += total_bytes

    def reading(self, path: str) -> None:
        pass

    def within(self, share: float) -> None:
        pass

    def advanced(self, size_bytes: int, documents: int) -> None:
        self.done_bytes += size_bytes
        self.documents += documents

    def failed(self, where: str, why: str) -> None:
        self.failures.append((where, why))


class House:
    """One engine, and a folder of files."""

    def __init__(self, place: Path, reader: Sandbox) -> None:
        self.reader = reader
        self.root = place / "files"
        self.root.mkdir()
        self.writer = FakeWriter()
        self.heard = Heard()

    def write(self, name: str, content: str | list[dict[str, object]]) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else "".join(json.dumps(line) + "\n" for line in content))
        return path

    def run(self, root: Path | None = None, *, rights: Rights | None = None, **options: Any) -> RunOutcome:
        where = root or self.root
        self.heard, self.writer.written = Heard(), []
        order = IndexOrder(where, rights or Rights(), **options)
        return IndexRun(order, self.writer, self.heard, self.reader).go()

    @property
    def names(self) -> list[str]:
        return sorted(key.rpartition("/")[2] for key in self.writer.found)


def lines(*names: str, content: str = "text") -> list[dict[str, object]]:
    return [{"id": name, "content": content} for name in names]
