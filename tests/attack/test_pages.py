"""Every page with hostile words in every place that callers and documents fill, and what browsers are told of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from itertools import product
from typing import Any

import orjson
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from datafari_rag.bootstrap import create_app, writer_for
from tests.attack.report import Record, judge
from tests.settings import settings_with

ADMIN = {"X-Remote-User": "admin"}
WORD = "zebraword"
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "` onload=alert(1) `",
    "</title></textarea></style></noscript><svg onload=alert(1)>",
    "--><iframe srcdoc='<script>alert(1)</script>'>",
    "]]><base href=//evil.invalid/>",
    "javascript:alert(1)",
    "java\tscript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "//evil.invalid/x",
    "\\\\evil.invalid\\x",
    "{{137*239}}${137*239}<%=137*239%>#{137*239}{%if 1%}32743{%endif%}",
    "&lt;script&gt;alert(1)&lt;/script&gt;&#60;script&#62;",
    "[x](javascript:alert(1)) ![y](https://evil.invalid/p.png) <https://evil.invalid/>",
    "\u202e<b>\u2066\u200b\ufeff\x00\x1b[31m",
    "\ufe64script\ufe65alert(1)\uff1cscript\uff1e",
    "x\r\nSet-Cookie: a=b\r\n\r\n<script>alert(1)</script>",
    "<!--<script>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    """A service over documents all of whose texts are hostile, one of each kind; with every page switched on."""
    folder = tmp_path_factory.mktemp("pages")
    index = f"embedded:{folder / 'index'}"
    writer = writer_for(settings_with(solr_url=index))
    writer.add([_document(place, text) for place, text in enumerate(HOSTILE)])
    writer.commit()
    writer.close()
    conf = folder / "rag.properties"
    conf.write_text(
        f"solr.url={index}\nrag.api.endpoint=builtin:extractive\nsecurity.identity=demo\nsecurity.admins=admin\n"
        f"feedback.file={folder / 'feedback.jsonl'}\nrag.maxFiles=20\n"
    )
    yield create_app(conf).test_client()


def _document(place: int, text: str) -> dict[str, object]:
    shown = dict.fromkeys(("title", "source", "extension"), text)
    said = f"The {WORD} rule{place} says nine. {text} [1] “quoted”."
    urls = {"url": text if ":" in text else f"https://evil.invalid/{text}"}
    return {"id": f"{place} {text}", **shown, **urls, "exactContent": said, "preview_content": said, "language": "en"}


class Elements(HTMLParser):
    """What a page is made of: tags with their attributes, and the text of its title."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, Mapping[str, str | None]]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


_KNOWN = """a article b body br button code datalist dd details dialog div dl dt em footer form h1 h2 h3 h4 head
    header html img input label li link main mark meta nav noscript ol option p pre q rect script section select
    span strong summary svg table tbody td th thead time title tr ul"""
KNOWN = frozenset(_KNOWN.split())
LINKS = ("href", "src", "action", "formaction", "srcdoc", "data", "poster", "background", "xlink:href")


def harm_in(page: str) -> list[str]:
    """Return the elements of *page* that would run, load or lead anywhere but to this service."""
    harm = []
    for tag, attributes in Elements(page).found:
        links = [attributes[name] or "" for name in LINKS if name in attributes]
        is_strange = tag not in KNOWN or any(
            name.startswith("on") or name in ("style", "srcdoc") for name in attributes
        )
        is_foreign = any(re.match(r"/(?![/\\])|[#]", link) is None for link in links)
        is_script = tag == "script" and not str(attributes.get("src")).startswith("/static/")
        if is_strange or is_foreign or is_script:
            harm.append(f"<{tag} {attributes}>")
    return harm


PAGES = {
    "/": ("q", "fq", "format", "lang", "ui", "start", "sort", "answer", "user", "here"),
    "/documents": ("id", "field", "start", "end", "ui"),
    "/admin": ("ui", "q"),
    "/nowhere": ("q", "ui"),
    "/static/none.js": ("v",),
}


def one_in(every: int) -> pytest.MarkDecorator:
    """Try one of so many combinations, in which each value of each kind has its turn; all of them in the slow test."""
    return pytest.mark.parametrize("every", [every, pytest.param(1, marks=pytest.mark.slow)])


@one_in(3)
def test_nothing_that_a_caller_sends_is_more_than_text(
    record_property: Record, client: FlaskClient, every: int
) -> None:
    holes, tried = [], 0
    for (path, names), (place, text) in product(PAGES.items(), enumerate(HOSTILE)):
        for name in names[place % every :: every]:
            others = {"q": WORD} if path == "/" and name != "q" else {}
            sent = {**others, name: text}
            response = client.get(path, query_string=sent, headers={**ADMIN, "Accept": "text/html"})
            tried += 1
            holes += [f"{path} {name}={text!r}: {one}" for one in judged(response)]
    judge(record_property, "reflected markup, every parameter of every page", against="pages", tried=tried, holes=holes)


def test_nothing_that_a_document_holds_is_more_than_text(record_property: Record, client: FlaskClient) -> None:
    holes, tried = [], 0
    for place, text in enumerate(HOSTILE):
        for path, sent in (("/", {"q": f"{WORD} rule{place}"}), ("/documents", {"id": f"{place} {text}"})):
            response = client.get(path, query_string=sent, headers={**ADMIN, "Accept": "text/html"})
            page = response.get_data(as_text=True)
            assert f"rule{place}" in page, text
            tried += 1
            holes += [f"{path} {sent}: {one}" for one in judged(response)]
            holes += [f"{path} {sent}: {one!r} in the title" for one in HIDDEN.findall(titles_in(page))]
    judge(record_property, "stored markup, every field of a document", against="pages", tried=tried, holes=holes)


HIDDEN = re.compile("[\u202a-\u202e\u2066-\u2069\u200b\ufeff\x00\x1b]")


def titles_in(page: str) -> str:
    """Return what a page shows as titles: of itself, of its hits and of its sources."""
    return " ".join(
        re.findall(r"<title>.*?</title>|<h[13][ >].*?</h[13]>|<ol class=\"sources\">.*?</ol>", page, re.DOTALL)
    )


def judged(response: TestResponse) -> list[str]:
    """Return what is wrong with one page or one reply."""
    headers = response.headers
    wrong = [] if response.status_code < 500 else [f"status {response.status_code}"]
    policy = headers.get("Content-Security-Policy", "")
    if "default-src 'none'" not in policy or "frame-ancestors 'none'" not in policy or "unsafe" in policy:
        wrong.append(f"policy {policy!r}")
    if headers.get("Cache-Control") != "no-store":
        wrong.append(f"kept: {headers.get('Cache-Control')!r}")
    for name, value in (("Referrer-Policy", "no-referrer"), ("X-Content-Type-Options", "nosniff")):
        if headers.get(name) != value:
            wrong.append(f"{name}: {headers.get(name)!r}")
    location = headers.get("Location", "/")
    if not location.startswith("/") or location.startswith(("//", "/\\")):
        wrong.append(f"leads to {location!r}")
    if "Set-Cookie" in headers and "a=b" in headers["Set-Cookie"]:
        wrong.append("a cookie of the caller's")
    if response.mimetype == "text/html":
        page = response.get_data(as_text=True)
        wrong += harm_in(page)
        # A product that no count, time or duration of a page is by chance.
        if "32743" in re.sub(r"<[^>]*>", "", page) and "137*239" not in page:
            wrong.append("a template was run")
    return wrong


@pytest.mark.parametrize(
    "planted",
    [
        "<script>1</script>",
        "<p onclick=x>",
        "<a href='javascript:1'>",
        "<img src='//evil.invalid/'>",
        "<iframe>",
        "<p style=x>",
    ],
)
def test_harm_that_is_there_is_found(planted: str) -> None:
    assert len(harm_in(f"<p>text</p>{planted}")) == 1


def test_no_reply_in_json_gives_an_address_that_runs(record_property: Record, client: FlaskClient) -> None:
    """Documents, citations and nodes of every dialect, a plain search and an opened document."""
    holes, tried = [], 0
    for place, text in enumerate(HOSTILE):
        question = f"{WORD} rule{place}"
        messages = {"messages": [{"role": "user", "content": question}]}
        replies = [
            client.get("/search/select", query_string={"action": "rag", "q": question, "trace": "true"}),
            client.post("/search/select", data={"action": "rag", "q": question, "stream": "true"}),
            client.get("/search/select", query_string={"q": question}),
            client.get("/documents", query_string={"id": f"{place} {text}"}, headers={"Accept": "application/json"}),
            client.post("/chat", json=messages),
            client.post("/chat/stream", json=messages),
            client.post("/api/chat", json=messages),
            client.post("/api/chat/stream", json=messages),
            client.post("/v1/chat/completions", json={**messages, "index_name": "default"}),
            client.post("/v1/chat/completions", json={**messages, "index_name": "default", "stream": True}),
        ]
        for reply in replies:
            assert reply.status_code == 200, reply.get_data(as_text=True)[:200]
            tried += 1
            holes += [f"{reply.request.path} {text!r}: {one}" for one in shown_in(reply)]
    judge(record_property, "addresses that run, controls in titles", against="all dialects", tried=tried, holes=holes)


def shown_in(reply: TestResponse) -> list[str]:
    """Return the addresses that run and the titles with hidden characters of one reply, whole or streamed."""
    found: list[str] = []
    for line in reply.get_data(as_text=True).splitlines():
        for text in re.findall(r"\{.*\}", line):
            _look(orjson.loads(text), found)
    return found


def _look(value: Any, found: list[str]) -> None:
    if isinstance(value, dict):
        for key, one in value.items():
            for text in one if isinstance(one, list) else [one]:
                if key == "url" and isinstance(text, str) and re.match(r"\s*(java|vb)?\s*(script|data):", text):
                    found.append(f"url {text!r}")
                if key in ("title", "label") and isinstance(text, str) and HIDDEN.search(text):
                    found.append(f"{key} {text!r}")
            _look(one, found)
    elif isinstance(value, list):
        for one in value:
            _look(one, found)


KINDS = [
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "text/plain",
    "application/json",
    "application/xml",
    "application/octet-stream",
    "text/plain; application/json",
    "application/x-www-form-urlencoded; charset=utf-7",
    "",
]
BODIES = [
    b"rag.maxFiles=9&csrf_token=x",
    b'--x\r\nContent-Disposition: form-data; name="rag.maxFiles"\r\n\r\n9\r\n--x--\r\n',
    b'{"rag.maxFiles": "9", "csrf_token": "x", "verdict": "up"}',
    b"",
]
SITES: list[Mapping[str, str]] = [
    {},
    {"Origin": "https://evil.invalid"},
    {"Origin": "null"},
    {"Origin": "https://evil.invalid", "Sec-Fetch-Site": "cross-site"},
    {"Referer": "http://localhost/admin"},
    {"Sec-Fetch-Site": "same-origin"},
    {"X-CSRF-Token": ""},
    {"X-HTTP-Method-Override": "GET"},
]
FORMS = ("/admin", "/admin/check", "/admin/try", "/admin/probe", "/feedback", "/demo/user", "/admin/revoke")


@one_in(5)
def test_no_other_site_sends_a_form_of_ours(record_property: Record, client: FlaskClient, every: int) -> None:
    holes, tried = [], 0
    for path, kind, body, site in list(product(FORMS, KINDS, BODIES, SITES))[::every]:
        for method in ("POST",) if kind else ("POST", "PUT", "PATCH", "DELETE"):
            response = client.open(path, method=method, data=body, content_type=kind, headers={**ADMIN, **site})
            tried += 1
            if not 400 <= response.status_code < 500 or "Access-Control-Allow-Origin" in response.headers:
                holes.append(f"{method} {path} {kind} {body!r} {site}: {response.status_code}")
    judge(record_property, "forms sent by another site", against="pages", tried=tried, holes=holes)


def test_the_menu_leads_nowhere_else(record_property: Record, client: FlaskClient) -> None:
    page = client.get("/", headers=ADMIN).get_data(as_text=True)
    token = re.findall(r'name="csrf_token" value="([^"]+)"', page)[0]
    places = [
        *HOSTILE,
        *(
            "https://evil.invalid",
            "//evil.invalid",
            "/\\evil.invalid",
            "\\/evil.invalid",
            "/\t/evil.invalid",
            "///evil.invalid",
        ),
        *(
            "/%2f/evil.invalid",
            "http:evil.invalid",
            "/x\x00//evil.invalid",
            "/\u2028/evil.invalid",
            "/.//evil.invalid",
            "\u3002",
        ),
    ]
    holes = []
    for place in places:
        sent = {"csrf_token": token, "user": "alice", "here": place}
        response = client.post("/demo/user", data=sent, headers=ADMIN)
        client.delete_cookie("datafari_rag_user")
        location = response.headers.get("Location", "")
        if response.status_code != 303 or re.match(r"/(?![/\\\s])", location) is None:
            holes.append(f"{place!r}: {response.status_code} {location!r}")
    judge(record_property, "open redirects", against="pages", tried=len(places), holes=holes)


PRIVATE = [
    *("/", f"/?q={WORD}", "/documents?id=none", "/admin", f"/search/select?q={WORD}", "/v1/models"),
    *(f"/search/select?action=rag&q={WORD}", "/nowhere", "/health/ready", "/feedback", "/talk"),
]


def test_nothing_of_a_user_is_kept_on_the_way(record_property: Record, client: FlaskClient) -> None:
    """Neither by a proxy nor by a browser, for whoever comes next or goes back after signing out."""
    holes = []
    for path, who in product(PRIVATE, (ADMIN, {})):
        response = client.get(path, headers=who)
        kept = response.headers.get("Cache-Control")
        if kept != "no-store" or "ETag" in response.headers or "Expires" in response.headers:
            holes.append(f"{path}: {kept!r} {response.headers.get('ETag')}")
    judge(record_property, "caches", against="pages", tried=2 * len(PRIVATE), holes=holes)
