"""The service over either engine, in this process, asked as a stranger would ask it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datafari_rag.bootstrap import create_app
from tests.real_solr import Collection
from tests.security.worlds import embedded_engine

Pairs = Sequence[tuple[str, str]]
Load = Callable[[Sequence[Mapping[str, object]]], None]


@dataclass(frozen=True)
class Engine:
    """One engine by its *name* in the table of attacks: its `solr.url`, and what replaces all its documents."""

    name: str
    url: str
    load: Load


@contextmanager
def embedded(folder: Path) -> Iterator[Engine]:
    """Yield an embedded index in *folder*."""
    with embedded_engine(folder / "index") as (url, load):
        yield Engine("embedded", url, load)


def solr(collection: Collection) -> Engine:
    """Return the real Solr."""
    return Engine("Solr", collection.settings.solr.url, collection.load)


class Service:
    """The application over one engine; *users* is user → tokens, as `security.tokens.file` has them."""

    def __init__(
        self, folder: Path, url: str, *, users: Mapping[str, Sequence[str]] | None = None, **settings: str
    ) -> None:
        conf = folder / "rag.properties"
        conf.write_text("")
        conf.chmod(0o600)
        (folder / "users.json").write_text(json.dumps(users or {}))
        usual = {
            "solr.url": url,
            "rag.api.endpoint": "builtin:extractive",
            "rag.reply.http_errors": "true",
            # Thousands of searches of one address a minute.
            "server.rate.work": "0",
            "security.identity": "header",
            "security.tokens.file": str(folder / "users.json"),
            "security.admins": "admin",
        }
        self.client = create_app(
            conf, {**usual, **{k.replace("__", "."): v for k, v in settings.items()}}
        ).test_client()

    def get(self, path: str, pairs: Pairs = (), user: str | None = None, **headers: str) -> Any:
        """Return the response to a GET."""
        return self.client.get(path, query_string=list(pairs), headers={**headers, **_proof(user)})

    def form(self, path: str, pairs: Pairs, user: str | None = None) -> Any:
        """Return the response to a form; each name as often as it is there."""
        data: dict[str, list[str]] = {}
        for name, value in pairs:
            data.setdefault(name, []).append(value)
        return self.client.post(path, data=data, headers=_proof(user))

    def post(self, path: str, body: Mapping[str, object], user: str | None = None) -> Any:
        """Return the response to JSON."""
        return self.client.post(path, json=body, headers=_proof(user))

    def found(self, pairs: Pairs, user: str | None = None) -> tuple[int, tuple[str, ...]]:
        """Return the status of a plain search and the ids it found, sorted."""
        response = self.form("/search/select", [("fl", "id"), ("rows", "100"), *pairs], user)
        rows = response.get_json()["response"]["docs"] if response.status_code == 200 else ()
        return response.status_code, tuple(sorted(row["id"] for row in rows))


def quoted(text: str) -> str:
    """Return *text* as a value of `fq`, in quotation marks."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def said(question: str, **more: object) -> dict[str, object]:
    """Return the body of a chat that asks *question*."""
    return {"messages": [{"role": "user", "content": question}], **more}


def _proof(user: str | None) -> dict[str, str]:
    return {} if user is None else {"X-Remote-User": user.encode().decode("latin-1")}
