"""Every request works with one snapshot of the settings, taken when it comes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from datafari_rag.bootstrap import TEMPLATES, Application, create_app
from datafari_rag.core.settings.table import Settings
from datafari_rag.web.app import register
from datafari_rag.web.routes import ROUTES
from datafari_rag.web.runtime import ServiceSnapshot
from datafari_rag_trials.conformance.doors import DOORS
from tests.fakes import FakeService, fake_snapshot
from tests.settings import settings_with
from tests.support.server import Asked, Reply, serving

QUESTION = "What is the default of the setting for files?"
ORIGIN = "https://intranet.example"

PATHS: dict[str, tuple[str, dict[str, Any]]] = {
    **{
        str(door): (one.path, {"query_string": one.query, "json": one.json, "headers": one.headers or {}})
        for door in DOORS
        for one in [door.asked(QUESTION, {})]
    },
    "plain search": ("/search/select", {"query_string": {"q": QUESTION}}),
    "page with an answer": ("/", {"query_string": {"q": QUESTION, "answer": "page"}}),
    "talk": ("/talk", {"json": {"messages": [{"role": "user", "content": QUESTION}]}}),
    "document": ("/documents", {"query_string": {"id": "doc-1"}}),
    "document as JSON": ("/documents", {"query_string": {"id": "doc-1"}, "headers": {"Accept": "application/json"}}),
}
"""Each way in behind which something is searched for."""

OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "first page": ("/", {}),
    "models": ("/v1/models", {}),
    "openapi": ("/openapi.json", {}),
    "ready": ("/health/ready", {}),
    "admin": ("/admin", {}),
    "feedback": ("/feedback", {"json": {}}),
    "demo user": ("/demo/user", {"method": "POST"}),
    "agents": ("/mcp", {"json": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}}),
    "where agents get a token": ("/.well-known/oauth-protected-resource", {}),
    "grounding": ("/grounding/check", {"json": {"answerCandidate": QUESTION, "facts": [{"factText": QUESTION}]}}),
    "no such path": ("/nothing", {}),
    "wrong method": ("/chat", {}),
    "wrong body": ("/chat", {"data": "{", "content_type": "application/json"}),
    "no question": ("/search/select", {"query_string": {"action": "rag"}}),
    "no static file": ("/static/nothing.js", {}),
}


class Changing(FakeService):
    """Returns other settings each time."""

    taken = 0

    def snapshot(self) -> ServiceSnapshot:
        self.taken += 1
        return replace(self.the_line, settings=settings_with(self.the_line.settings, rag_max_files=self.taken))


def sent(client: Any, path: str, options: dict[str, Any]) -> Any:
    method = "GET" if options.get("json", options.get("data")) is None else "POST"
    response = client.open(path, **{"method": method, **options})
    response.get_data()
    return response


@pytest.mark.parametrize("name", [*PATHS, *OTHERS])
def test_a_request_takes_one_snapshot(name: str) -> None:
    service = Changing(fake_snapshot(settings=Settings()))
    app = Flask("tests", static_folder=None, template_folder=str(TEMPLATES))
    register(app, service)

    sent(app.test_client(), *{**PATHS, **OTHERS}[name])

    assert service.taken == 1


ROWS = [
    {"id": f"doc-{number}", "title": "Files", "exactContent": [f"The default of the setting for files is {number}."]}
    for number in (1, 2)
]
FOUND = {"responseHeader": {"QTime": 1}, "response": {"numFound": 2, "start": 0, "docs": ROWS}}
FIELDS = {"schema": {"fields": [{"name": name, "type": "s"} for name in ("id", "title", "exactContent")]}}

ONE = {"server.cors.origins": ORIGIN, "rag.maxFiles": "1", "solr.facets": "extension"}
TWO = {
    "server.cors.origins": "",
    "rag.maxFiles": "2",
    "solr.facets": "author",
    "rag.reply.http_errors": "true",
    "security.identity": "demo",
}


def shown(app: Application, path: str, options: dict[str, Any]) -> tuple[object, ...]:
    """Return what a caller sees that does not change from one request to the next."""
    origin = {"Origin": ORIGIN} if any(path in route.paths for route in ROUTES) else {}
    headers = {**origin, "X-Request-ID": "one", **options.get("headers", {})}
    response = sent(app.test_client(), path, {**options, "headers": headers})
    text = response.get_data(as_text=True)
    lines = [line.split('"ts":')[0].split('"csrf_token"')[0] for line in text.replace("data: ", "").splitlines()]
    allowed = response.headers.get("Access-Control-Allow-Origin")
    return response.status_code, allowed, [line for line in lines if "token" not in line and "created" not in line]


@pytest.mark.parametrize("name", PATHS)
def test_settings_reloaded_in_the_middle_of_a_request_are_those_of_the_next_one(name: str, tmp_path: Path) -> None:
    conf = tmp_path / "rag.properties"
    reloads: list[Application] = []

    def write(settings: dict[str, str]) -> None:
        conf.write_text("".join(f"{key}={value}\n" for key, value in (base | settings).items()), encoding="utf-8")

    def answer(asked: Asked) -> Reply:
        if asked.path.endswith("/schema"):
            return Reply(json.dumps(FIELDS).encode())
        if reloads:
            write(TWO)
            reloads.pop().reload()
        return Reply(json.dumps(FOUND).encode())

    with serving(answer) as solr:
        base = {
            "solr.url": f"{solr.url}/solr/docs",
            "rag.api.endpoint": "builtin:extractive",
            "server.host": "127.0.0.1",
        }
        write(ONE)
        app = create_app(conf)
        before = shown(app, *PATHS[name])
        reloads.append(app)
        during, after = shown(app, *PATHS[name]), shown(app, *PATHS[name])

    assert not reloads
    assert during == before
    assert during != after


def opened_below(folder: Path) -> list[Path]:
    links = [link.resolve() for link in Path("/proc/self/fd").iterdir() if link.exists()]
    return [path for path in links if path.is_relative_to(folder)]


def test_a_changed_setting_of_the_audit_leaves_neither_a_thread_nor_a_file_open(tmp_path: Path) -> None:
    conf = tmp_path / "rag.properties"

    def keep_audit_in(folder: Path) -> None:
        lines = [f"audit.folder={folder}", "solr.url=embedded:index", "rag.api.endpoint=builtin:extractive"]
        conf.write_text("\n".join(lines), "utf-8")

    keep_audit_in(tmp_path / "audit0")
    app = create_app(conf)
    before = len(list(Path("/proc/self/task").iterdir()))
    for number in range(4):
        keep_audit_in(tmp_path / f"audit{number}")
        app.reload()
        sent(app.test_client(), *PATHS["ragapi whole"])
        assert [path.suffix for path in (tmp_path / f"audit{number}").glob("*.jsonl")] == [".jsonl"]
    assert len(list(Path("/proc/self/task").iterdir())) <= before
    assert [path for number in range(4) for path in opened_below(tmp_path / f"audit{number}")] == []


def test_what_a_full_disk_kept_from_the_audit_is_written_after_other_settings_came(tmp_path: Path) -> None:
    conf, folder = tmp_path / "rag.properties", tmp_path / "audit"
    lines = [f"audit.folder={folder}", "solr.url=embedded:index", "rag.api.endpoint=builtin:extractive"]
    conf.write_text("\n".join(lines), "utf-8")
    app = create_app(conf)
    folder.write_text("no folder can be made here")
    sent(app.test_client(), *PATHS["ragapi whole"])

    conf.write_text("\n".join([*lines, "rag.maxFiles=3"]), "utf-8")
    app.reload()
    app.runtime.snapshot()
    folder.unlink()
    sent(app.test_client(), *PATHS["ragapi whole"])

    (chain,) = folder.glob("*.jsonl")
    assert len(chain.read_bytes().splitlines()) == 2


def test_what_was_revoked_stays_so_when_everything_is_built_anew(tmp_path: Path) -> None:
    conf = tmp_path / "rag.properties"
    lines = ["solr.url=embedded:index", "rag.api.endpoint=builtin:extractive"]
    conf.write_text("\n".join(lines), "utf-8")
    app = create_app(conf)
    before = app.runtime.snapshot()
    before.revocations.add("alice", by="admin")

    conf.write_text("\n".join([*lines, "rag.maxFiles=3"]), "utf-8")
    app.reload()

    after = app.runtime.snapshot()
    assert after.dependencies.retriever is not before.dependencies.retriever
    assert after.revocations.latest("alice").at_s is not None
    assert after.revocations.latest("bob").at_s is None
