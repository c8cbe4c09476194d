"""The pages for administrators: for them alone, for no other site, with a policy that excuses nothing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from datafari_rag.bootstrap import create_app

ADMIN = {"X-Remote-User": "root"}
POSTS = ("/admin", "/admin/check", "/admin/try", "/admin/probe")
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


def token(client: Any, user: str = "root") -> str:
    page = client.get("/admin", headers={"X-Remote-User": user}).get_data(as_text=True)
    found = re.search(r'name="csrf_token"[^>]*value="([^"]+)"|value="([^"]+)"[^>]*name="csrf_token"', page)
    assert found is not None
    return found[1] or found[2]


OTHERS = {"nobody": {}, "a user": {"X-Remote-User": "ann"}, "a name like it": {"X-Remote-User": "ROOT"}}


@pytest.mark.parametrize("headers", OTHERS.values(), ids=OTHERS.keys())
def test_others_see_and_change_nothing(client: Any, headers: dict[str, str]) -> None:
    answers = [client.get("/admin", headers=headers)]
    answers += [
        client.post(path, headers=headers, data={"csrf_token": token(client), "rag.maxFiles": "9"}) for path in POSTS
    ]
    assert {answer.status_code for answer in answers} <= {401, 403}
    assert not [answer for answer in answers if "rag.maxFiles" in answer.get_data(as_text=True)]


def test_an_administrator_sees_the_settings_and_no_secret(client: Any) -> None:
    page = client.get("/admin", headers=ADMIN)
    assert page.status_code == 200
    assert "rag.maxFiles" in page.get_data(as_text=True)
    assert SECRET not in page.get_data(as_text=True)


FORGED = {
    "no token": ({}, {}),
    "a made-up token": ({"csrf_token": "x.y.z"}, {}),
    "sent by another site": ({"csrf_token": None}, {"Sec-Fetch-Site": "cross-site"}),
    "sent by a sister site": ({"csrf_token": None}, {"Sec-Fetch-Site": "same-site"}),
}


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize(("form", "headers"), FORGED.values(), ids=FORGED.keys())
def test_what_another_site_makes_an_administrator_send_is_refused(
    client: Any, path: str, form: dict[str, str | None], headers: dict[str, str]
) -> None:
    sent = {name: token(client) if value is None else value for name, value in form.items()}
    assert client.post(path, headers={**ADMIN, **headers}, data={**sent, "rag.maxFiles": "9"}).status_code == 403


@pytest.mark.parametrize("path", POSTS)
def test_another_administrators_token_is_none(client: Any, path: str) -> None:
    assert client.post(path, headers=ADMIN, data={"csrf_token": token(client, "second")}).status_code == 403


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
