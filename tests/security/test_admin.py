"""The pages for administrators: for them alone, to be read alone, with a policy that excuses nothing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from datafari_rag.bootstrap import create_app

ADMIN = {"X-Remote-User": "root"}
SECRET = "sk-a-token-that-no-page-shows"


@pytest.fixture
def client(tmp_path: Path) -> Any:
    """Return a client of a service with one administrator."""
    conf = tmp_path / "rag.properties"
    conf.write_text(
        f"solr.url=embedded:{tmp_path / 'index'}\nrag.api.endpoint=builtin:extractive\nrag.api.token={SECRET}\n"
        "security.identity=header\nsecurity.admins=root,second\n"
    )
    conf.chmod(0o600)
    return create_app(conf).test_client()


OTHERS = {"nobody": {}, "a user": {"X-Remote-User": "ann"}, "a name like it": {"X-Remote-User": "ROOT"}}


@pytest.mark.parametrize("headers", OTHERS.values(), ids=OTHERS.keys())
def test_others_see_nothing(client: Any, headers: dict[str, str]) -> None:
    answer = client.get("/admin", headers=headers)
    assert answer.status_code in (401, 403)
    assert "rag.maxFiles" not in answer.get_data(as_text=True)


@pytest.mark.parametrize("path", ["/admin", "/admin/check", "/admin/try", "/admin/probe"])
def test_nothing_is_changed_over_http_by_an_administrator_either(client: Any, path: str) -> None:
    assert client.post(path, headers=ADMIN, data={"rag.maxFiles": "9"}).status_code in (404, 405)


def test_an_administrator_sees_the_settings_and_no_secret(client: Any) -> None:
    page = client.get("/admin", headers=ADMIN)
    assert page.status_code == 200
    assert "rag.maxFiles" in page.get_data(as_text=True)
    assert SECRET not in page.get_data(as_text=True)


@pytest.mark.parametrize("path", ["/admin", "/", "/?q=words", "/documents?id=x"])
def test_no_page_has_script_or_style_in_its_own_text_and_its_policy_excuses_none(client: Any, path: str) -> None:
    answer = client.get(path, headers={**ADMIN, "Accept": "text/html"})
    page = answer.get_data(as_text=True)
    policy = answer.headers["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", page)
    inline = [tag for tag in re.findall(r"<script[^>]*>", page) if "src=" not in tag and "application/json" not in tag]
    assert inline == []
    assert not re.search(r'(src|href)="(https?:)?//', page)
