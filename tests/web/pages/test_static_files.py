"""What is compressed, and what must not be."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.fakes import app_of, fake_snapshot
from tests.settings import settings_with
from tests.web.pages.test_routes import ANN, office

GZIP = {"Accept-Encoding": "gzip, br"}


@pytest.mark.parametrize("accepted", ["gzip, br", "gzip;q=0.5", "*"])
def test_our_files_are_compressed_for_those_who_take_it(accepted: str) -> None:
    client = app_of(fake_snapshot()).test_client()
    plain = client.get("/static/page.js")
    packed = client.get("/static/page.js", headers={"Accept-Encoding": accepted})

    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.data) == plain.data
    assert int(packed.headers["Content-Length"]) == len(packed.data) < len(plain.data) / 2
    assert "Accept-Encoding" in packed.headers["Vary"] and "Accept-Encoding" in plain.headers["Vary"]


@pytest.mark.parametrize("accepted", ["", "br", "gzip;q=0", "identity"])
def test_nobody_gets_what_he_does_not_take(accepted: str) -> None:
    client = app_of(fake_snapshot()).test_client()
    assert "Content-Encoding" not in client.get("/static/page.js", headers={"Accept-Encoding": accepted}).headers


def test_a_file_that_is_known_is_not_sent_again() -> None:
    client = app_of(fake_snapshot()).test_client()
    tag = client.get("/static/page.css", headers=GZIP).headers["ETag"]
    again = client.get("/static/page.css", headers={**GZIP, "If-None-Match": tag})

    assert (again.status_code, again.data) == (304, b"")
    assert "Content-Encoding" not in again.headers


def test_our_files_are_compressed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    client, small, names = app_of(fake_snapshot()).test_client(), gzip.compress(b""), []
    client.get("/static/page.js", headers=GZIP)
    monkeypatch.setattr(gzip, "compress", lambda *taken, **named: names.append("compressed") or small)
    assert len({client.get("/static/page.js", headers=GZIP).data for _ in range(3)}) == 1
    assert names == []


@pytest.mark.parametrize("path", ["/", "/?q=when+does+the+plane+take+off", "/documents?id=1", "/search/select?q=plane"])
def test_nothing_with_a_readers_own_words_is_compressed(path: str) -> None:
    line = fake_snapshot(settings=settings_with(security_identity="demo"))
    assert "Content-Encoding" not in app_of(line).test_client().get(path, headers=GZIP).headers


def test_the_settings_page_repeats_nothing_of_its_address(tmp_path: Path) -> None:
    response = office(tmp_path).get("/admin?saved=zebra4711&ui=zebra4711&x=zebra4711", headers=ANN)
    text = response.get_data(as_text=True)
    assert "rag.temperature" in text and "zebra4711" not in text
