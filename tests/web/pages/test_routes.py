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

import pytest
from flask import Flask
from flask.testing import FlaskClient

from datafari_rag.adapters.ledgers import SqliteLedger
from datafari_rag.adapters.question_file import QuestionFile
from datafari_rag.adapters.settings.file import SettingsFile
from datafari_rag.bootstrap import TEMPLATES, AdminSettings
from datafari_rag.core.errors import ModelBusy, NotAuthenticated, SearchUnavailable
from datafari_rag.core.messages import message
from datafari_rag.core.settings.parsing import Problem
from datafari_rag.core.settings.records import DemoFolder, LeastSupport
from datafari_rag.core.settings.table import Settings
from datafari_rag.web.admin.status import charts_of, counts_of, quantile
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


def test_the_first_page_has_a_question_box_and_no_answer() -> None:
    text = page(fake_snapshot(), "/")
    assert 'name="q"' in text
    assert 'class="card' not in text


def test_a_question_is_answered_on_the_server_for_those_without_script() -> None:
    text = page(fake_snapshot(), "/?q=when")
    assert "The flight takes off at 15h50" in text
    assert "2 documents used, 1 cited" in text
    assert 'href="/documents?id=doc-2' in text


def test_an_answer_from_a_part_of_the_collection_says_so() -> None:
    partly, wholly = (page(fake_snapshot(FakeRetriever(FLIGHT, is_partial=flag)), "/?q=when") for flag in (True, False))
    assert '<p class="warn">A part of the collection did not answer' in partly
    assert '<p class="warn">' not in wholly


INVENTED = "The flight takes off at 15h50 [1]. The moon is made of cheese."


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        pytest.param(Settings(), "Sentences proved by the documents: 1 of 2", id="mark"),
        pytest.param(
            settings_with(answer_unsupported="drop"), "1 sentence that the documents do not prove was", id="drop"
        ),
        pytest.param(
            settings_with(answer_support=LeastSupport(0.9)), "replaced by sentences from the documents", id="replaced"
        ),
        pytest.param(
            settings_with(answer_support=LeastSupport(0.9, "nothing")),
            "of what the model wrote: it is not shown",
            id="none",
        ),
    ],
)
def test_the_page_says_how_much_is_proved_and_what_was_changed(settings: Settings, words: str) -> None:
    text = page(fake_snapshot(model=FakeModel(INVENTED), settings=settings), "/?q=when")
    assert words in text
    assert ("proved by the documents: 1 of 2" in text) == (settings.answer.support.min == 0)


def test_a_browser_whose_script_asks_is_not_answered_twice() -> None:
    model = FakeModel("never")
    client = app_of(fake_snapshot(model=model)).test_client()
    client.set_cookie("datafari_rag_script", "1")

    assert client.get("/?q=when").status_code == 200
    assert model.prompts == []
    client.get("/?q=when&answer=page")
    assert len(model.prompts) == 1


def test_a_failure_is_told_on_the_page_with_the_question_kept() -> None:
    text = page(fake_snapshot(model=FakeModel(failure=ModelBusy())), "/?q=when+%3Cb%3E")
    assert "The language model is busy" in text
    assert 'value="when &lt;b&gt;"' in text


def test_a_search_that_is_down_leaves_the_results_out() -> None:
    text = page(fake_snapshot(FakeRetriever(error=SearchUnavailable())), "/?q=when")
    assert "The search is not available" in text
    assert 'class="hits"' not in text


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


@pytest.mark.parametrize(
    ("name", "status"), [("page.js", 200), ("page.css", 200), ("..%2ftemplates%2flayout.html", 404), ("none.js", 404)]
)
def test_static_files(name: str, status: int) -> None:
    assert app_of(fake_snapshot()).test_client().get(f"/static/{name}").status_code == status


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


def test_a_thumb_keeps_texts_where_the_setting_says_so(tmp_path: Path) -> None:
    client, path = feedback(tmp_path, settings_with(feedback_text=True))
    client.post("/feedback", json=THUMB, headers={"X-CSRF-Token": token_of(client)})

    assert json.loads(path.read_text("utf-8"))["question"] == "secret?"


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


@pytest.mark.parametrize("path", ["/", "/admin", "/admin/check", "/feedback", "/demo/user", "/metrics"])
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
    assert _own_address(text) == address


def test_the_menu_exists_only_in_the_demo() -> None:
    assert 'id="user"' not in page(fake_snapshot(), "/")
    assert app_of(fake_snapshot()).test_client().post("/demo/user", data={"user": "admin"}).status_code == 404
    line = fake_snapshot(settings=settings_with(demo_folder=DemoFolder(users=True)))
    assert 'id="user"' in page(line, "/")
    assert app_of(line).test_client().post("/demo/user", data={"user": "admin"}).status_code == 403


# The settings


def office(
    tmp_path: Path,
    *more: str,
    keeping: type[AdminSettings] = AdminSettings,
    wrong: Sequence[Mapping[str, object]] = (),
    **kept: Any,
) -> tuple[FlaskClient, Path]:
    conf = tmp_path / "rag.properties"
    lines = ["# kept", "security.admins=ann", "rag.api.token=sk-secret", "solr.url=http://u:pass@solr/solr/c", *more]
    conf.write_text("\n".join(lines) + "\n", encoding="utf-8")
    conf.chmod(0o600)
    file = SettingsFile(conf, overrides={"server.port": "0"})
    service = FakeService(replace(fake_snapshot(settings=file.snapshot().settings), **kept), [*wrong])

    app = Flask("tests", static_folder=None, template_folder=str(TEMPLATES))
    register(app, service, keeper=keeping(file, service.clock))
    return app.test_client(), conf


ANN = {"X-User": "ann"}


def test_the_settings_page_links_to_costs_and_questions_where_they_are_kept(tmp_path: Path) -> None:
    def links(**kept: Any) -> list[str]:
        text = office(tmp_path, **kept)[0].get("/admin", headers=ANN).get_data(as_text=True)
        return re.findall(r'href="(/admin/[^"]+)"', text)

    assert links() == []
    with closing(SqliteLedger(tmp_path)) as accounts, closing(QuestionFile(tmp_path, 30)) as questions:
        assert links(accounts=accounts, questions=questions) == ["/admin/costs", "/admin/questions"]


def test_the_settings_page_names_accounts_and_the_report_where_they_are_kept(tmp_path: Path) -> None:
    with closing(SqliteLedger(tmp_path)) as accounts, closing(QuestionFile(tmp_path, 30)) as questions:
        client, _ = office(tmp_path, accounts=accounts, questions=questions)
        told = client.get("/admin/now", headers=ANN).get_json()["state"]
    assert {"accounts of tokens", "report of questions"} <= {part["name"] for part in told}


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
    client, _ = office(tmp_path, wrong=[{"what": "search", "problem": problem}])
    headers = {**ANN, "Accept-Language": language}

    state = client.get("/admin/now", headers=headers).get_json()["state"]
    assert [part["problem"] for part in state if part["problem"]] == [sentence]
    assert sentence in client.get("/admin", headers=headers).get_data(as_text=True)


def form_of(client: FlaskClient, **changed: str) -> dict[str, str]:
    text = client.get("/admin", headers=ANN).get_data(as_text=True)
    named = dict(re.findall(r'name="(csrf_token|version)" value="([^"]*)"', text))
    return named | {key.replace("__", "."): value for key, value in changed.items()}


@pytest.mark.parametrize(("headers", "status"), [({}, 403), ({"X-User": "bob"}, 403), (ANN, 200)])
def test_only_administrators_open_the_settings(tmp_path: Path, headers: dict[str, str], status: int) -> None:
    client, _ = office(tmp_path)
    assert client.get("/admin", headers=headers).status_code == status
    for path in ("/admin", "/admin/check", "/admin/try", "/admin/probe"):
        assert client.post(path, headers=headers).status_code == 403


def test_no_secret_is_on_the_page(tmp_path: Path) -> None:
    client, _ = office(tmp_path)
    text = client.get("/admin", headers=ANN).get_data(as_text=True)

    assert "sk-secret" not in text and "pass@" not in text
    assert "http://***@solr/solr/c" in text
    assert 'id="f-rag.temperature"' in text


def test_a_form_that_came_back_as_it_was_changes_nothing(tmp_path: Path) -> None:
    client, conf = office(tmp_path)
    before = conf.read_bytes()
    form = form_of(client, solr__url="http://***@solr/solr/c", rag__api__token="", rag__model="")
    response = client.post("/admin", data=form, headers=ANN)

    assert response.status_code == 303 and response.headers["Location"] == "/admin?saved=0"
    assert conf.read_bytes() == before


def test_a_change_is_saved_and_takes_effect(tmp_path: Path) -> None:
    client, conf = office(tmp_path)
    response = client.post("/admin", data=form_of(client, rag__temperature="0.1"), headers=ANN)

    assert response.headers["Location"] == "/admin?saved=1"
    assert conf.read_text("utf-8").startswith("# kept\n") and "rag.temperature=0.1" in conf.read_text("utf-8")
    assert "1 setting saved" in client.get("/admin?saved=1", headers=ANN).get_data(as_text=True)


def test_an_empty_text_can_be_meant(tmp_path: Path) -> None:
    client, conf = office(tmp_path)
    client.post("/admin", data=form_of(client, rag__model="", **{"empty:rag__model": "on"}), headers=ANN)
    assert "rag.model=\n" in conf.read_text("utf-8")
    client.post("/admin", data=form_of(client, rag__model=""), headers=ANN)
    assert "#rag.model=" in conf.read_text("utf-8")


SECRETS = ("rag.api.token", "solr.password", "server.secret", "llm.proxy")


@pytest.mark.parametrize("key", SECRETS)
@pytest.mark.parametrize("box", ["", "remove:", "empty:"])
def test_no_secret_is_changed_or_removed_in_a_browser(tmp_path: Path, key: str, box: str) -> None:
    client, conf = office(tmp_path)
    before = conf.read_bytes()
    sent = form_of(client) | ({f"{box}{key}": "on", key: ""} if box else {key: "sk-new"})
    client.post("/admin", data=sent, headers=ANN)

    assert conf.read_bytes() == before


@pytest.mark.parametrize(
    ("key", "right", "wrong"),
    [
        pytest.param("rag.api.token", "sk-secret", "sk-other", id="a token"),
        pytest.param(
            "solr.url", "http://u:pass@solr/solr/c", "http://u:word@solr/solr/c", id="a password in an address"
        ),
    ],
)
def test_nobody_learns_by_guessing_what_is_hidden(tmp_path: Path, key: str, right: str, wrong: str) -> None:
    client, _ = office(tmp_path)
    told = [
        client.post("/admin/check", data=form_of(client) | {key: text}, headers=ANN).get_json()
        for text in (right, wrong)
    ]
    assert told[0] == told[1]
    assert told[0]["problems"] == [{"key": key, "message": f"{key} can only be changed in the settings file."}]


def test_the_version_of_the_file_cannot_be_tried_against_guesses(tmp_path: Path) -> None:
    """Two services over the same file give it other versions, unless they share a secret."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    versions = {form_of(office(tmp_path / name)[0])["version"] for name in "ab"}
    assert len(versions) == 2


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        pytest.param({"rag.temperature": "9"}, "A number between 0 and 2 is expected.", id="a bad value"),
        pytest.param({"security.admins": "bob"}, "can only be changed in the settings file", id="who may do this"),
        pytest.param({"rag.model": "${HOME}"}, "A reference in rag.model", id="a reference"),
        pytest.param({"version": "old"}, "The file has changed in the meantime", id="an old form"),
    ],
)
def test_what_may_not_be_saved_is_said_and_kept(tmp_path: Path, changed: dict[str, str], words: str) -> None:
    client, conf = office(tmp_path)
    before = conf.read_bytes()
    response = client.post("/admin", data={**form_of(client), **changed}, headers=ANN)

    assert response.status_code == 422
    assert words in response.get_data(as_text=True)
    assert conf.read_bytes() == before


ONLY_THE_FILE = {
    "security.mode": "none",
    "security.admins": "ann,bob",
    "security.identity": "anonymous",
    "security.header": "X-Other",
    "security.trusted.proxies": "0.0.0.0/0",
    "security.jwt.jwks": "http://127.0.0.1:9/keys",
    "security.jwt.issuer": "https://id.example.org",
    "solr.url": "http://127.0.0.1:9/solr/c",
    "solr.handler": "/../../admin/info/system",
    "solr.fields": '{"deny_token_document": "title"}',
    "openai.indexes": "default,evil=http://127.0.0.1:9/solr/c",
    "rag.api.endpoint": "http://127.0.0.1:9/v1/chat/completions",
    "llm.fallback": "http://127.0.0.1:9/v1/chat/completions",
    "tls": '{"llm": {"verify": false}}',
    "server.cors.origins": "*",
    "server.host": "0.0.0.0",
    "demo.folder": '{"users": true}',
    "log.level": "DEBUG",
    "log.file": "/tmp/x",
    "feedback.text": "true",
}


@pytest.mark.parametrize("key", ONLY_THE_FILE)
def test_what_decides_about_rights_and_addresses_is_refused_and_nothing_is_looked_up(tmp_path: Path, key: str) -> None:
    client, conf = office(tmp_path)
    before = conf.read_bytes()
    form = form_of(client, rag__temperature="0.1") | {key: ONLY_THE_FILE[key]}
    checked: Any = client.post("/admin/check", data=form, headers=ANN).get_json()
    tried = client.post("/admin/try", data=form | {"try:question": "when"}, headers=ANN)
    saved = client.post("/admin", data=form, headers=ANN)

    assert checked["problems"] == [{"key": key, "message": f"{key} can only be changed in the settings file."}]
    assert (tried.status_code, saved.status_code) == (400, 422)
    assert conf.read_bytes() == before


def test_what_no_browser_changes_is_shown_and_closed(tmp_path: Path) -> None:
    client, _ = office(tmp_path, "server.cors.origins=https://a.example.org", "solr.password=pass-word")
    for key in (*ONLY_THE_FILE, *SECRETS):
        assert re.search(r"<(input|select)[^>]* disabled>", field_of(client, key)) is not None, key
    assert 'value="https://a.example.org"' in field_of(client, "server.cors.origins")
    assert 'placeholder="is set"' in field_of(client, "solr.password")
    assert 'placeholder="not set"' in field_of(client, "server.secret")


def field_of(client: FlaskClient, key: str, **headers: str) -> str:
    text = html.unescape(client.get("/admin", headers=ANN | headers).get_data(as_text=True))
    return text.split(f'data-key="{key}"', 1)[1].split('class="setting', 1)[0]


@pytest.mark.parametrize(
    ("key", "words"),
    [
        pytest.param("log.file", "so it cannot be changed in a browser: edit the settings file", id="a file"),
        pytest.param("rag.api.token", "then run datafari-rag check", id="a secret"),
        pytest.param("rag.api.endpoint", "so it cannot be changed in a browser", id="where a token is sent"),
        pytest.param("openai.indexes", "so it cannot be changed in a browser", id="where a password is sent"),
        pytest.param("security.admins", "so it cannot be changed in a browser", id="who may open it"),
        pytest.param("solr.fields", "so it cannot be changed in a browser", id="a field of the rights"),
        pytest.param("rag.model", "It contains a reference, which stays as it is", id="a reference"),
        pytest.param("server.workers", "Takes effect when the service is restarted.", id="what is read at the start"),
        pytest.param("server.port", "Set on the command line.", id="what the command line says"),
    ],
)
def test_what_is_refused_is_said_beside_the_field(tmp_path: Path, key: str, words: str) -> None:
    client, _ = office(tmp_path, "rag.model=${HOME}")
    assert words in field_of(client, key)
    assert words not in field_of(client, key, **{"Accept-Language": "fr"})


def test_where_there_is_nothing_to_refuse_nothing_is_said(tmp_path: Path) -> None:
    client, _ = office(tmp_path)
    assert 'class="notes"' not in field_of(client, "rag.temperature")


def test_who_changed_a_setting_last_stands_beside_it(tmp_path: Path) -> None:
    client, _ = office(tmp_path)
    client.post("/admin", data=form_of(client, rag__temperature="0.1"), headers=ANN)

    assert "last changed by ann, 20" in field_of(client, "rag.temperature")
    assert "last changed by" not in field_of(client, "rag.maxFiles")


def test_what_needs_a_new_start_says_so_when_it_was_saved(tmp_path: Path) -> None:
    client, _ = office(tmp_path)
    response = client.post("/admin", data=form_of(client, server__workers="3"), headers=ANN)

    assert response.headers["Location"] == "/admin?saved=1&later=1"
    assert "take effect after a restart" in client.get("/admin?saved=1&later=1", headers=ANN).get_data(as_text=True)


class Sealed(AdminSettings):
    """A settings file on a disk that takes nothing."""

    def save(self, changes: Mapping[str, str | None], who: str) -> tuple[Problem, ...]:
        raise PermissionError(13, "Permission denied", "/etc/secret/path")


def test_a_file_that_cannot_be_written_is_said_and_what_was_typed_is_kept(tmp_path: Path) -> None:
    client, _ = office(tmp_path, keeping=Sealed)
    response = client.post("/admin", data=form_of(client, rag__temperature="0.1"), headers=ANN)
    text = response.get_data(as_text=True)

    assert response.status_code == 422
    assert "cannot be written by this service" in text and "/etc/secret" not in text
    assert 'name="rag.temperature" value="0.1"' in text


def test_the_present_state_and_counts_are_for_administrators(tmp_path: Path) -> None:
    client, _ = office(tmp_path, "rag.api.endpoint=builtin:extractive")
    client.get("/search/select?action=rag&q=when does the plane take off")
    now: Any = client.get("/admin/now", headers=ANN | {"Accept-Language": "fr"}).get_json()

    assert client.get("/admin/now").status_code == 403
    assert [part["name"] for part in now["state"]][:2] == ["fichier des réglages", "moteur de recherche"]
    assert {part["problem"] for part in now["state"]} == {""}
    assert now["outcomes"] == {"ok": 1.0}
    assert now["whole"][-1] == [None, 1.0]


def test_a_form_without_its_token_is_refused(tmp_path: Path) -> None:
    client, conf = office(tmp_path)
    before = conf.read_bytes()
    form = {**form_of(client, rag__temperature="0.1"), "csrf_token": "forged"}

    assert client.post("/admin", data=form, headers=ANN).status_code == 403
    assert conf.read_bytes() == before


def test_typing_is_checked_with_the_words_of_the_linter(tmp_path: Path) -> None:
    client, _ = office(tmp_path)
    checked: Any = client.post("/admin/check", data=form_of(client, rag__maxFiles="many"), headers=ANN).get_json()
    assert checked == {
        "changes": ["rag.maxFiles"],
        "problems": [
            {
                "key": "rag.maxFiles",
                "message": 'Invalid value for rag.maxFiles property: "many". An integer is expected.',
            }
        ],
    }


def test_the_model_is_tried_and_so_are_settings(tmp_path: Path) -> None:
    client, conf = office(tmp_path, "rag.api.endpoint=builtin:extractive")
    before = conf.read_bytes()
    probed: Any = client.post("/admin/probe", data=form_of(client), headers=ANN).get_json()
    assert probed["problem"] == ""
    form = form_of(client, rag__maxFiles="1", **{"try:question": "when does the plane take off"})
    tried: Any = client.post("/admin/try", data=form, headers=ANN).get_json()

    assert len(tried["present"]["content"]["documents"]) == 2
    assert len(tried["changed"]["content"]["documents"]) == 1
    assert conf.read_bytes() == before
    bad: Any = client.post("/admin/try", data={**form, "rag.maxFiles": "no"}, headers=ANN)
    assert bad.status_code == 400 and "An integer is expected." in bad.get_json()["error"]["reason"]


def test_without_a_settings_file_there_is_no_such_page() -> None:
    line = fake_snapshot(settings=settings_with(security_admins=("ann",)))
    assert app_of(line).test_client().get("/admin", headers=ANN).status_code == 404


# Charts


@pytest.mark.parametrize(
    ("bounds", "part", "value"),
    [
        pytest.param({}, 0.5, 0.0, id="nothing counted"),
        pytest.param({1.0: 0, 2.0: 4, float("inf"): 4}, 0.5, 1.5, id="in the middle of a bucket"),
        pytest.param({1.0: 0, float("inf"): 4}, 0.5, 1.0, id="beyond the last bound"),
    ],
)
def test_a_quantile_of_a_histogram(bounds: dict[float, float], part: float, value: float) -> None:
    assert quantile(bounds, part) == value


def test_counts_are_sums_over_dialects() -> None:
    text = (
        "# TYPE datafari_rag_answers_total counter\n"
        'datafari_rag_answers_total{dialect="ragapi",outcome="ok"} 8.0\n'
        'datafari_rag_answers_total{dialect="chat",outcome="ok"} 2.0\n'
        "# TYPE datafari_rag_answer_seconds histogram\n"
        'datafari_rag_answer_seconds_bucket{dialect="ragapi",le="0.5"} 3.0\n'
        'datafari_rag_answer_seconds_bucket{dialect="ragapi",le="+Inf"} 8.0\n'
        'datafari_rag_answer_seconds_bucket{dialect="chat",le="0.5"} 1.0\n'
        'datafari_rag_answer_seconds_bucket{dialect="chat",le="+Inf"} 2.0\n'
    )
    counts = counts_of(text.encode())
    assert counts.outcomes == {"ok": 10.0}
    assert counts.whole == [(0.5, 4.0), (None, 10.0)]
    assert counts_of(b"").outcomes == {} and counts_of(b"").whole == []


def test_charts_have_the_longest_bar_first() -> None:
    text = (
        "# TYPE datafari_rag_answers_total counter\n"
        'datafari_rag_answers_total{dialect="ragapi",outcome="ok"} 8.0\n'
        'datafari_rag_answers_total{dialect="chat",outcome="modelBusy"} 2.0\n'
    )
    charts = charts_of(text.encode())
    assert [(bar.name, bar.share, bar.text) for bar in charts.outcomes] == [
        ("ok", 100.0, "8"),
        ("modelBusy", 25.0, "2"),
    ]
    assert charts.stages == ()


@pytest.mark.parametrize("written", [b"", b"{", b"[1]", b'{"runs": 2, "other": 1}'], ids=repr)
def test_progress_of_a_folder_is_what_its_watcher_wrote_or_nothing_known(tmp_path: Path, written: bytes) -> None:
    (tmp_path / "p.json").write_bytes(written)
    demo = DemoFolder(progress=str(tmp_path / "p.json"))
    client = app_of(fake_snapshot(settings=settings_with(demo_folder=demo))).test_client()
    told = client.get("/demo/progress").get_json()

    assert set(told) == {"folder", "isReading", "reading", "percent", "runs", "problems"}
    assert told["runs"] == (2 if b"runs" in written else 0)
    assert 'id="progress"' in client.get("/").get_data(as_text=True)


def test_without_a_folder_there_is_no_progress() -> None:
    client = app_of(fake_snapshot()).test_client()

    assert client.get("/demo/progress").status_code == 404
    assert 'id="progress"' not in client.get("/").get_data(as_text=True)
