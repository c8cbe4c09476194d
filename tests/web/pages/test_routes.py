"""The pages over HTTP, with fakes at the ports: what is in them, and who may do what."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from flask import Flask
from flask.testing import FlaskClient

from datafari_rag.adapters.settings.file import SettingsFile
from datafari_rag.adapters.usage_file import UsageFile
from datafari_rag.bootstrap import TEMPLATES
from datafari_rag.core.errors import NotAuthenticated, SearchUnavailable
from datafari_rag.core.messages import message
from datafari_rag.core.settings.table import Settings
from datafari_rag.web.app import register
from datafari_rag.web.pages.demo import _own_address
from datafari_rag.web.runtime import ServiceSnapshot
from tests.fakes import (
    FLIGHT,
    RABBIT,
    FakeIdentity,
    FakeModel,
    FakeRetriever,
    FakeService,
    app_of,
    fake_snapshot,
)
from tests.settings import settings_with

HTML = {"Accept": "text/html"}


def page(line: ServiceSnapshot, path: str, **headers: str) -> str:
    return app_of(line).test_client().get(path, headers=headers).get_data(as_text=True)


def test_an_answer_from_a_part_of_the_collection_says_so() -> None:
    partly, wholly = (page(fake_snapshot(FakeRetriever(FLIGHT, is_partial=flag)), "/?q=when") for flag in (True, False))
    assert '<p class="warn">A part of the collection did not answer' in partly
    assert '<p class="warn">' not in wholly


INVENTED = "The flight takes off at 15h50 [1]. The moon is made of cheese."


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        pytest.param(Settings(), "· 1 to compare", id="mark"),
        pytest.param(
            settings_with(answer_unsupported="drop"), "1 sentence that the documents do not support was", id="drop"
        ),
    ],
)
def test_the_page_says_how_much_is_proved_and_what_was_changed(settings: Settings, words: str) -> None:
    text = page(fake_snapshot(model=FakeModel(INVENTED), settings=settings), "/?q=when")
    assert words in text
    assert "could not be checked</p>" not in text


def test_what_states_nothing_has_a_number_alone_and_an_unknown_source_is_counted() -> None:
    answer = "## Times [1]\nThe flight leaves at 15h50 from here [Nowhere].\n\nSure [1]."
    text = page(fake_snapshot(model=FakeModel(answer)), "/?q=when")
    assert text.count('class="badge plain"') == 2
    assert 'class="proof ' not in text
    assert "· 1 of unknown source</p>" in text


def test_the_page_says_that_nothing_was_left() -> None:
    settings = settings_with(answer_unsupported="drop")
    text = page(fake_snapshot(model=FakeModel("The moon is made of cheese."), settings=settings), "/?q=when")
    assert "of what the model wrote: it is not shown" in text


def test_a_browser_whose_script_asks_is_not_answered_twice() -> None:
    model = FakeModel("never")
    client = app_of(fake_snapshot(model=model)).test_client()
    client.set_cookie("datafari_rag_script", "1")

    assert client.get("/?q=when").status_code == 200
    assert model.prompts == []
    client.get("/?q=when&answer=page")
    assert len(model.prompts) == 1


def test_a_title_is_text_on_every_page() -> None:
    hostile = replace(RABBIT, title="<script>alert(1)</script>", text="<script>alert(2)</script> rabbit")
    line = fake_snapshot(FakeRetriever(hostile), FakeModel("<script>alert(3)</script> [1]"))
    for path in ("/?q=rabbit", "/documents?id=doc-1"):
        text = app_of(line).test_client().get(path, headers=HTML).get_data(as_text=True)
        assert "<script>alert" not in text


def test_nothing_on_a_page_needs_unsafe_inline() -> None:
    for path in ("/", "/?q=when", "/documents?id=doc-2"):
        response = app_of(fake_snapshot()).test_client().get(path, headers=HTML)
        text = response.get_data(as_text=True)
        assert "unsafe-inline" not in response.headers["Content-Security-Policy"]
        assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", text)
        assert response.headers["Cache-Control"] == "no-store"


def test_somebody_who_cannot_be_known_gets_the_page_of_that() -> None:
    client = app_of(fake_snapshot(identity=FakeIdentity(NotAuthenticated()))).test_client()
    response = client.get("/")
    assert response.status_code == 401
    assert "Please sign in" in response.get_data(as_text=True)


@pytest.mark.parametrize(
    ("path", "headers", "language"),
    [
        pytest.param("/", {}, "en", id="nothing said"),
        pytest.param("/", {"Accept-Language": "fr-CA,fr;q=0.9"}, "fr", id="the browser's language"),
        pytest.param("/?ui=en", {"Accept-Language": "fr"}, "en", id="the address wins"),
        pytest.param("/?ui=%22%3E", {"Accept-Language": "de"}, "en", id="an unknown one"),
    ],
)
def test_the_language_of_the_page(path: str, headers: dict[str, str], language: str) -> None:
    text = app_of(fake_snapshot()).test_client().get(path, headers=headers).get_data(as_text=True)
    assert f'<html lang="{language}">' in text
    assert ("Interrogez vos documents" in text) == (language == "fr")


# Feedback


def feedback(tmp_path: Path, settings: Settings | None = None) -> tuple[FlaskClient, Path]:
    path = tmp_path / "feedback.jsonl"
    settings = settings_with(settings or Settings(), feedback_file=str(path))
    return app_of(fake_snapshot(settings=settings)).test_client(), path


def token_of(client: FlaskClient, **headers: str) -> str:
    text = client.get("/", headers=headers).get_data(as_text=True)
    setup = re.search(r'data-setup="([^"]*)"', text)
    assert setup is not None
    found: dict[str, Any] = json.loads(setup[1].replace("&#34;", '"').replace("&amp;", "&").replace("&#39;", "'"))
    return str(found["token"])


THUMB = {"verdict": "down", "reason": "wrong", "documents": ["a"], "cited": ["a"], "question": "secret?", "answer": "x"}


def test_a_thumb_keeps_ids_alone(tmp_path: Path) -> None:
    client, path = feedback(tmp_path)
    sent = client.post("/feedback", json=THUMB, headers={"X-CSRF-Token": token_of(client)})

    assert sent.status_code == 200
    kept = json.loads(path.read_text("utf-8"))
    assert kept == {
        "at": "2023-11-14T22:13:20+00:00",
        "request_id": "",
        "verdict": "down",
        "reason": "wrong",
        "documents": ["a"],
        "cited": ["a"],
    }


def test_a_plain_form_gives_a_thumb_too(tmp_path: Path) -> None:
    client, path = feedback(tmp_path)
    form = {"verdict": "up", "documents": ["a", "b"], "csrf_token": token_of(client)}

    assert "Thank you" in client.post("/feedback", data=form).get_data(as_text=True)
    assert json.loads(path.read_text("utf-8"))["documents"] == ["a", "b"]


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        pytest.param(THUMB, {}, 403, id="without a token"),
        pytest.param(THUMB, {"X-CSRF-Token": "forged"}, 403, id="with a forged token"),
        pytest.param({**THUMB, "verdict": "sideways"}, {"X-CSRF-Token": ""}, 400, id="no verdict"),
        pytest.param({**THUMB, "documents": ["x"] * 200}, {"X-CSRF-Token": ""}, 400, id="too many ids"),
        pytest.param([1], {"X-CSRF-Token": ""}, 400, id="no object"),
    ],
)
def test_a_thumb_is_refused(tmp_path: Path, body: object, headers: dict[str, str], status: int) -> None:
    client, path = feedback(tmp_path)
    if headers.get("X-CSRF-Token") == "":
        headers = {"X-CSRF-Token": token_of(client)}

    assert client.post("/feedback", json=body, headers=headers).status_code == status
    assert not path.exists()


def test_a_form_sent_by_another_site_is_refused(tmp_path: Path) -> None:
    client, _ = feedback(tmp_path)
    headers = {"X-CSRF-Token": token_of(client), "Sec-Fetch-Site": "cross-site"}
    assert client.post("/feedback", json=THUMB, headers=headers).status_code == 403


def test_the_token_of_one_user_is_nothing_for_another(tmp_path: Path) -> None:
    client, _ = feedback(tmp_path)
    headers = {"X-CSRF-Token": token_of(client, **{"X-User": "ann"}), "X-User": "bob"}
    assert client.post("/feedback", json=THUMB, headers=headers).status_code == 403


def test_without_a_file_there_are_no_thumbs() -> None:
    assert app_of(fake_snapshot()).test_client().post("/feedback", json=THUMB).status_code == 404


# Other sites


SITE = "https://intranet.example.org"


@pytest.mark.parametrize(
    ("origins", "origin", "allowed"),
    [
        pytest.param((), SITE, None, id="without a site"),
        pytest.param((SITE,), SITE, SITE, id="the named one"),
        pytest.param((SITE,), "https://evil.example.org", None, id="another one"),
        pytest.param((SITE,), f"{SITE}.evil.org", None, id="one that begins alike"),
        pytest.param((SITE,), "null", None, id="a page without an origin"),
        pytest.param(("*",), "https://any.example.org", "*", id="any"),
    ],
)
def test_which_sites_may_read_an_answer(origins: tuple[str, ...], origin: str, allowed: str | None) -> None:
    client = app_of(fake_snapshot(settings=settings_with(server_cors_origins=origins))).test_client()
    response = client.get("/search/select?action=rag&q=when", headers={"Origin": origin})

    assert response.headers.get("Access-Control-Allow-Origin") == allowed
    assert response.headers.get("Access-Control-Allow-Credentials") == ("true" if allowed == SITE else None)
    asked = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    before = client.options("/chat/stream", headers=asked)
    assert before.status_code == 204
    assert before.headers.get("Access-Control-Allow-Origin") == allowed
    assert ("Access-Control-Allow-Headers" in before.headers) == (allowed is not None)


@pytest.mark.parametrize(("path", "status"), [("/v1/models/datafari", 200), ("/v1/models/a/b", 404)])
def test_a_page_of_another_site_may_ask_for_one_model_by_its_name(path: str, status: int) -> None:
    client = app_of(fake_snapshot(settings=settings_with(server_cors_origins=(SITE,)))).test_client()
    response = client.get(path, headers={"Origin": SITE})
    before = client.options(path, headers={"Origin": SITE, "Access-Control-Request-Method": "GET"})

    assert response.status_code == status
    assert response.headers["Access-Control-Allow-Origin"] == before.headers["Access-Control-Allow-Origin"] == SITE
    assert before.headers["Access-Control-Allow-Methods"] == "GET"


@pytest.mark.parametrize("path", ["/", "/admin", "/feedback", "/demo/user", "/metrics"])
def test_pages_and_forms_are_never_open_to_other_sites(path: str) -> None:
    client = app_of(fake_snapshot(settings=settings_with(server_cors_origins=(SITE,)))).test_client()
    response = client.get(path, headers={"Origin": SITE})
    assert "Access-Control-Allow-Origin" not in response.headers


# The demo's menu


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("/?q=a", "/?q=a"),
        ("//evil.example.org", "/"),
        ("https://evil.example.org", "/"),
        ("/\\evil.example.org", "/"),
        ("/a\r\nSet-Cookie: x", "/"),
        ("", "/"),
    ],
)
def test_the_menu_leads_back_to_our_own_pages_alone(text: str, address: str) -> None:
    assert _own_address(text, "") == address


def test_the_menu_exists_only_in_the_demo() -> None:
    assert 'id="user"' not in page(fake_snapshot(), "/")
    assert app_of(fake_snapshot()).test_client().post("/demo/user", data={"user": "admin"}).status_code == 404
    line = fake_snapshot(settings=settings_with(security_identity="demo"))
    assert 'id="user"' in page(line, "/")
    assert app_of(line).test_client().post("/demo/user", data={"user": "admin"}).status_code == 403


# The settings


def office(
    tmp_path: Path,
    *more: str,
    wrong: Sequence[Mapping[str, object]] = (),
    **kept: Any,
) -> FlaskClient:
    conf = tmp_path / "rag.properties"
    lines = ["# kept", "security.admins=ann", "rag.api.token=sk-secret", "solr.url=http://u:pass@solr/solr/c", *more]
    conf.write_text("\n".join(lines) + "\n", encoding="utf-8")
    conf.chmod(0o600)
    file = SettingsFile(conf, environ={"MODEL": "a-model-of-the-environment"}, overrides={"server.port": "0"})
    snapshot = file.snapshot()
    line = replace(fake_snapshot(settings=snapshot.settings), written=snapshot.written, **kept)

    app = Flask("tests", static_folder=None, template_folder=str(TEMPLATES))
    register(app, FakeService(line, [*wrong]))
    return app.test_client()


ANN = {"X-User": "ann"}


def test_the_settings_page_names_the_count_of_tokens_where_there_is_one(tmp_path: Path) -> None:
    with closing(UsageFile(tmp_path)) as usage:
        text = office(tmp_path, usage=usage).get("/admin", headers=ANN).get_data(as_text=True)
    assert "count of tokens" in text


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("en", "The search engine is not available at the moment. (refused)"),
        ("fr", "Le moteur de recherche n’est pas disponible en ce moment. (refused)"),
    ],
)
def test_the_settings_page_says_what_is_wrong_in_the_language_of_its_reader(
    tmp_path: Path, language: str, sentence: str
) -> None:
    problem = message("{reason} ({cause})", reason=message(SearchUnavailable().reason), cause="refused")
    client = office(tmp_path, wrong=[{"what": "search", "problem": problem}])
    assert sentence in client.get("/admin", headers={**ANN, "Accept-Language": language}).get_data(as_text=True)


@pytest.mark.parametrize(("headers", "status"), [({}, 403), ({"X-User": "bob"}, 403), (ANN, 200)])
def test_only_administrators_see_the_settings(tmp_path: Path, headers: dict[str, str], status: int) -> None:
    response = office(tmp_path).get("/admin", headers=headers)
    assert response.status_code == status
    assert ("rag.temperature" in response.get_data(as_text=True)) == (status == 200)


def row_of(client: FlaskClient, key: str) -> list[str]:
    text = html.unescape(client.get("/admin", headers=ANN).get_data(as_text=True))
    (row,) = re.findall(rf"<tr[^>]*><th scope=\"row\"><code>{re.escape(key)}</code>.*?</tr>", text)
    return re.findall(r"<code>(.*?)</code>", row)


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        pytest.param("rag.temperature", ["0.25", "0.7"], id="a changed one, with its default"),
        pytest.param("rag.maxFiles", ["8", ""], id="a default"),
        pytest.param("rag.api.token", ["***", ""], id="a secret"),
        pytest.param("server.secret", ["", ""], id="a secret that is not set"),
        pytest.param("solr.url", ["http://***@solr/solr/c", None], id="a password in an address"),
        pytest.param("rag.model", ["${MODEL}", None], id="a reference, and never what it stands for"),
        pytest.param("server.port", ["0", "8080"], id="the command line"),
    ],
)
def test_a_setting_is_shown_as_it_is_written_and_no_secret_is(
    tmp_path: Path, key: str, shown: list[str | None]
) -> None:
    client = office(tmp_path, "rag.temperature=0.25", "rag.model=${MODEL}")
    name, *texts = row_of(client, key)
    assert name == key
    assert [text for text, known in zip(texts, shown, strict=True) if known is not None] == [
        known for known in shown if known is not None
    ]
    text = client.get("/admin", headers=ANN).get_data(as_text=True)
    assert "sk-secret" not in text and "pass@" not in text and "a-model-of-the-environment" not in text


def test_the_page_has_no_script_and_asks_a_question_as_any_page_does(tmp_path: Path) -> None:
    text = office(tmp_path).get("/admin", headers=ANN).get_data(as_text=True)
    assert "admin.js" not in text
    assert re.search(r'<form[^>]*action="/" method="get"[^>]*>.*name="q"', text) is not None


@pytest.mark.parametrize("written", [b"", b"{", b"[1]", b'{"runs": 2, "other": 1}'], ids=repr)
def test_progress_of_a_folder_is_what_its_watcher_wrote_or_nothing_known(tmp_path: Path, written: bytes) -> None:
    (tmp_path / "progress.json").write_bytes(written)
    settings = settings_with(solr_url=f"embedded:{tmp_path / 'index'}")
    client = app_of(fake_snapshot(settings=settings)).test_client()
    told = client.get("/demo/progress").get_json()

    assert set(told) == {"folder", "isReading", "reading", "percent", "runs", "problems", "files"}
    assert told["runs"] == (2 if b"runs" in written else 0)
    assert 'id="progress"' in client.get("/").get_data(as_text=True)


def test_the_page_of_a_folder_says_what_became_of_its_files(tmp_path: Path) -> None:
    files = {"read": 7, "unreadable": 0, "passed": 1, "notes": [{"name": "<b>.bin", "why": "passed over: no reader"}]}
    (tmp_path / "progress.json").write_text(json.dumps({"isReading": False, "files": files}))
    settings = settings_with(solr_url=f"embedded:{tmp_path / 'index'}")
    text = app_of(fake_snapshot(settings=settings)).test_client().get("/").get_data(as_text=True)

    assert "<summary>7 files read, 0 not readable, 1 passed over</summary>" in text
    assert '<bdi>&lt;b&gt;.bin</bdi> – <span lang="en" dir="auto">passed over: no reader</span>' in text


def test_without_a_folder_there_is_no_progress() -> None:
    client = app_of(fake_snapshot()).test_client()

    assert client.get("/demo/progress").status_code == 404
    assert 'id="progress"' not in client.get("/").get_data(as_text=True)


@pytest.mark.parametrize(
    ("sent", "filters"),
    [
        ("since=2024-01-31&until=", ["last_modified:[2024-01-31T00:00:00Z TO *]"]),
        ("since=&until=2024-01-31", ["last_modified:[* TO 2024-01-31T23:59:59Z]"]),
        (
            "since=2024-01-01&until=2024-01-31&start=10&fq=last_modified:[* TO 2020-01-01T23:59:59Z]&fq=a:b",
            ["a:b", "last_modified:[2024-01-01T00:00:00Z TO 2024-01-31T23:59:59Z]"],
        ),
        ("since=&until=&fq=last_modified:[* TO 2020-01-01T23:59:59Z]&fq=last_modified:[NOW-1YEAR TO *]",
         ["last_modified:[NOW-1YEAR TO *]"]),
        ("since=2024-02-30&until=%22%5D+OR+x", []),
        ("since=2024-01-31&since=x", ["last_modified:[2024-01-31T00:00:00Z TO *]"]),
    ],
)  # fmt: skip
def test_days_become_a_filter_of_the_address(sent: str, filters: list[str]) -> None:
    response = app_of(fake_snapshot()).test_client().get(f"/?q=when&{sent}", headers=HTML)
    address = urlsplit(response.headers["Location"])
    wanted = parse_qs(address.query)
    assert (response.status_code, address.scheme, address.netloc, address.path) == (303, "", "", "/")
    assert wanted == {"q": ["when"]} | ({"fq": filters} if filters else {})


@pytest.mark.parametrize(
    ("filter", "told"),
    [
        ('extension:"p\\"d\\\\f"', 'File type: p"d\\f'),
        ("last_modified:[2024-01-01T00:00:00Z TO *]", "Date: 2024-01-01 – …"),
        ("last_modified:[NOW-1YEAR TO *]", "Date: [NOW-1YEAR TO *]"),
        ("x<b>\u202e", "x<b>: "),
    ],
)
def test_a_filter_is_named_with_the_way_to_take_it_out(filter: str, told: str) -> None:
    query = urlencode([("q", "when"), ("fq", "extension:pdf"), ("fq", filter)])
    shown = page(fake_snapshot(), f"/?{query}", **HTML)
    (_, inner) = re.findall(
        r'<a class="button" href="([^"]*)" title="Remove this filter"><span dir="auto">([^<]*)', shown
    )
    assert html.unescape(inner[1]) == told
    assert parse_qs(urlsplit(html.unescape(inner[0])).query)["fq"] == ["extension:pdf"]
