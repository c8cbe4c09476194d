"""Files sent to the page of a demo over one's own files: what is kept, under which name, and for whom nothing is."""

from __future__ import annotations

import json
import re
import stat
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from datafari_rag.core.errors import BodyTooLarge
from datafari_rag.core.settings.records import DemoFolder, ServerLimits
from datafari_rag.web import dropped_files
from tests.fakes import app_of, fake_snapshot
from tests.settings import settings_with

NOTE = (b"# Note", "note.md")


def client_of(folder: Path, **settings: Any) -> FlaskClient:
    progress = folder / "progress.json"
    progress.write_text(json.dumps({"endings": [".md", ".txt", ".zip"]}), encoding="utf-8")
    (folder / "dropped").mkdir(exist_ok=True)
    place = DemoFolder(progress=str(progress), dropped=str(folder / "dropped"))
    given = {"demo_folder": place, **settings}
    return app_of(fake_snapshot(settings=settings_with(**given))).test_client()


@pytest.fixture
def client(tmp_path: Path) -> FlaskClient:
    return client_of(tmp_path)


def token_of(client: FlaskClient) -> str:
    found = re.search(r'name="csrf_token" value="([^"]+)"', client.get("/").get_data(as_text=True))
    assert found is not None
    return found[1]


def sent(client: FlaskClient, *files: tuple[bytes, str], token: str | None = None, **more: Any) -> TestResponse:
    headers = {"X-CSRF-Token": token_of(client) if token is None else token, **more.pop("headers", {})}
    data = {"file": [(BytesIO(content), name) for content, name in files]}
    return client.post("/demo/files", data=data, headers=headers, **more)


def kept(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "dropped").iterdir() if path.name != ".lock"}


def test_files_are_kept_for_their_owner_alone(client: FlaskClient, tmp_path: Path) -> None:
    reply = sent(client, NOTE, (b"two", "ZWEI.TXT"))

    assert reply.get_json() == {"kept": ["note.md", "ZWEI.TXT"]}
    assert kept(tmp_path) == {"note.md": b"# Note", "ZWEI.TXT": b"two"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "dropped").iterdir()} == {0o600}


def test_a_file_of_the_same_name_takes_the_place_of_the_first(client: FlaskClient, tmp_path: Path) -> None:
    sent(client, NOTE)
    sent(client, (b"newer", "note.md"))

    assert kept(tmp_path) == {"note.md": b"newer"}


def test_a_plain_form_sends_files_too(client: FlaskClient, tmp_path: Path) -> None:
    data = {"file": (BytesIO(b"# Note"), "note.md"), "csrf_token": token_of(client)}
    reply = client.post("/demo/files", data=data)

    assert (reply.status_code, reply.headers["Location"]) == (303, "/")
    assert kept(tmp_path) == {"note.md": b"# Note"}
    refused = client.post("/demo/files", data={"file": (BytesIO(b"x"), "a.exe"), "csrf_token": token_of(client)})
    assert refused.status_code == 415
    assert "Files of this type, or without an ending, cannot be read" in refused.get_data(as_text=True)


@pytest.mark.parametrize(
    "name", ["../note.md", "/tmp/note.md", "..\\..\\note.md", ".note.md", "no\x1b\u202ete.md"], ids=ascii
)
def test_a_name_never_leads_out_of_the_folder(client: FlaskClient, tmp_path: Path, name: str) -> None:
    before = {path for path in tmp_path.rglob("*") if "dropped" not in path.parts}
    reply = sent(client, (b"x", name))

    assert reply.get_json() == {"kept": ["note.md"]}
    assert kept(tmp_path) == {"note.md": b"x"}
    assert {path for path in tmp_path.rglob("*") if "dropped" not in path.parts} == before


def test_what_already_stands_there_as_a_link_is_not_written_through(client: FlaskClient, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("untouched")
    (tmp_path / "dropped" / "note.md").symlink_to(other)
    sent(client, NOTE)

    assert other.read_text() == "untouched"
    assert kept(tmp_path) == {"note.md": b"# Note"}


@pytest.mark.parametrize(
    ("files", "status"),
    [
        pytest.param([], 400, id="none"),
        pytest.param([(b"x", "..")], 415, id="no name"),
        pytest.param([(b"x", "note")], 415, id="no ending"),
        pytest.param([NOTE, (b"x", "run.exe")], 415, id="one that is not read"),
        pytest.param([(b"{}", "a.jsonl")], 415, id="lines with rights of their own"),
        pytest.param([NOTE] * 51, 400, id="too many"),
    ],
)
def test_one_file_that_cannot_be_kept_keeps_all_out(
    client: FlaskClient, tmp_path: Path, files: list[tuple[bytes, str]], status: int
) -> None:
    reply = sent(client, *files)

    assert (reply.status_code, reply.mimetype) == (status, "application/json")
    assert kept(tmp_path) == {}


@pytest.mark.parametrize(("name", "limit"), [("MAX_KEPT", 1), ("MAX_KEPT_BYTES", 8)])
def test_together_they_are_bounded(
    client: FlaskClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, limit: int
) -> None:
    monkeypatch.setattr(dropped_files, name, limit)
    sent(client, NOTE)
    assert sent(client, (b"more", "more.txt")).get_json()["error"]["label"] == BodyTooLarge.label
    assert kept(tmp_path) == {"note.md": b"# Note"}
    # What takes the place of another file needs only its own room.
    assert sent(client, (b"newer", "note.md")).status_code == 200


def test_a_body_over_the_limit_is_not_kept(tmp_path: Path) -> None:
    client = client_of(tmp_path, server_limits=ServerLimits(body_bytes=10_000))

    assert sent(client, (b"x" * 20_000, "note.md")).status_code == 413
    assert kept(tmp_path) == {}


@pytest.mark.parametrize("token", ["", "forged"])
def test_without_the_token_of_the_page_nothing_is_kept(client: FlaskClient, tmp_path: Path, token: str) -> None:
    assert sent(client, NOTE, token=token).status_code == 403
    data = {"file": (BytesIO(b"x"), "note.md"), "csrf_token": token}
    assert client.post("/demo/files", data=data).status_code == 403
    assert kept(tmp_path) == {}


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.invalid"},
        {"X-Forwarded-For": "10.0.0.7"},
    ],
    ids=str,
)
def test_a_page_of_another_site_and_a_proxy_bring_nothing(
    client: FlaskClient, tmp_path: Path, headers: dict[str, str]
) -> None:
    assert sent(client, NOTE, headers=headers).status_code == 403
    assert kept(tmp_path) == {}


def test_another_machine_brings_nothing(client: FlaskClient, tmp_path: Path) -> None:
    assert sent(client, NOTE, environ_base={"REMOTE_ADDR": "10.0.0.7"}).status_code == 403
    assert kept(tmp_path) == {}


def test_without_the_setting_there_is_no_such_page(tmp_path: Path) -> None:
    client = client_of(tmp_path, demo_folder=DemoFolder(progress=str(tmp_path / "progress.json")))

    assert sent(client, NOTE, token="any").status_code == 404
    assert 'id="drop"' not in client.get("/").get_data(as_text=True)
    assert kept(tmp_path) == {}


def test_before_the_watcher_says_what_it_reads_nothing_is_taken(client: FlaskClient, tmp_path: Path) -> None:
    (tmp_path / "progress.json").unlink()

    assert sent(client, NOTE).status_code == 415
    assert kept(tmp_path) == {}


def test_what_could_not_be_read_is_text_on_the_page(client: FlaskClient, tmp_path: Path) -> None:
    problem = {"name": "<script>alert(1)</script>.md", "why": "<b>broken</b>"}
    (tmp_path / "progress.json").write_text(json.dumps({"endings": [], "problems": [problem]}), encoding="utf-8")
    text = client.get("/").get_data(as_text=True)

    assert "&lt;script&gt;alert(1)&lt;/script&gt;.md" in text and "&lt;b&gt;broken" in text
    assert "<script>alert(1)" not in text and "<b>broken" not in text
