"""A citation opens the page itself: the view, its picture, who may see them, and what is shown where there is none."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest
from flask.testing import FlaskClient

from datafari_rag.adapters.embedded.writer import EmbeddedWriter
from datafari_rag.bootstrap import create_app
from datafari_rag.ingest.documents import Rights
from datafari_rag.ingest.run import IndexOrder, IndexRun
from datafari_rag.ingest.sandbox import Sandbox
from tests.ingest import paged
from tests.ingest.house import Heard
from tests.ingest.parsers.written import docx_of

USERS = {"ada": ["group:a"], "grace": ["group:b"]}
TEXT_ALONE = "The page cannot be shown as it looks"


def index(folder: Path, root: Path, *allow: str) -> None:
    order = IndexOrder(root, Rights(allow))
    with closing(EmbeddedWriter(folder / "index")) as writer, Sandbox() as reader:
        IndexRun(order, writer, Heard(), reader).go()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("pages")
    for name in ("a", "b", "all"):
        (place / name).mkdir()
    paged.two_columns(place / "a/halls.pdf")
    paged.table(place / "b/rates.pdf")
    for name, write in (("halls", paged.two_columns), ("changed", paged.two_columns), ("commented", paged.commented)):
        write(place / f"all/{name}.pdf")
    docx_of(place / "all/guide.docx")
    for name, allow in (("a", ["group:a"]), ("b", ["group:b"]), ("all", [])):
        index(place, place / name, *allow)
    paged.table(place / "all/changed.pdf")
    (place / "users.json").write_text(json.dumps(USERS))
    return place


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[FlaskClient]:
    settings = {
        "solr.url": f"embedded:{folder}/index",
        "security.identity": "header",
        "security.tokens.file": str(folder / "users.json"),
        "server.rate.work": "0",
    }
    yield create_app(None, settings).test_client()


Get = Callable[..., tuple[int, bytes, str]]


@pytest.fixture
def get(client: FlaskClient, folder: Path) -> Get:
    def get(name: str, user: str = "ada", path: str = "/documents", **more: object) -> tuple[int, bytes, str]:
        query = urlencode({"id": (folder / name).as_uri(), **more})
        response = client.get(f"{path}?{query}", headers={"X-Remote-User": user, "Accept": "text/html"})
        return response.status_code, response.data, response.headers["Content-Type"]

    return get


def span(client: FlaskClient, folder: Path, name: str, words: str) -> dict[str, int]:
    query = urlencode({"id": (folder / name).as_uri()})
    headers = {"X-Remote-User": "ada", "Accept": "application/json"}
    text = client.get(f"/documents?{query}", headers=headers).json["text"]  # type: ignore[index] # it is JSON
    return {"start": text.index(words), "end": text.index(words) + len(words)}


def test_a_page_shows_its_picture_the_pages_beside_it_and_the_way_to_its_text(
    get: Get, client: FlaskClient, folder: Path
) -> None:
    place = span(client, folder, "a/halls.pdf", paged.LEFT[0])
    status, raw, _ = get("a/halls.pdf", page=2, ui="en", **place)
    page = raw.decode()
    assert status == 200 and "Page 2 of 3" in page and TEXT_ALONE not in page and "was not found" not in page
    assert re.findall(r'rel="(prev|next)" href="[^"]*page=(\d)', page) == [("prev", "1"), ("next", "3")]
    assert 'class="stored"' not in page
    (source,) = re.findall(r'<img src="(/documents/page[^"]*)"', page)
    drawn = client.get(unescape(source), headers={"X-Remote-User": "ada"})
    found = paged.yellow(drawn.data)
    assert drawn.mimetype == "image/png" and found is not None and found[4] == 1600
    assert drawn.headers["Cache-Control"] == "no-store"
    assert drawn.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    (text,) = re.findall(r'<a class="button" href="([^"]*)">Text of the document', page)
    shown = client.get(unescape(text), headers={"X-Remote-User": "ada", "Accept": "text/html"}).get_data(as_text=True)
    assert '<mark id="passage">' in shown and "Page as it looks" in shown


def test_the_page_speaks_french(get: Get) -> None:
    page = get("a/halls.pdf", page=1, ui="fr")[1].decode()
    assert "Page 1 sur 3" in page and "Page suivante" in page and "Page précédente" not in page
    assert "La page ne peut pas être affichée" in get("all/changed.pdf", page=1, ui="fr")[1].decode()


@pytest.mark.parametrize("name", ["b/rates.pdf", "b/none.pdf", "all/none.pdf"])
def test_hidden_and_absent_are_the_same_to_the_byte(get: Get, folder: Path, name: str) -> None:
    where = {"page": 1, "start": 0, "end": 9}
    for path in ("/documents", "/documents/page"):
        told = set()
        for one in (name, "a/absent.pdf"):
            status, raw, kind = get(one, "ada", path, **where)
            # The page repeats its own address, in the links to its other language.
            told.add((status, raw.replace(urlencode({"id": (folder / one).as_uri()}).encode(), b""), kind))
        assert len(told) == 1 and {status for status, _, _ in told} == {404}


def test_another_user_sees_neither_page_nor_picture(get: Get) -> None:
    assert [get("b/rates.pdf", user, "/documents/page", page=1)[0] for user in ("grace", "ada", "")] == [200, 404, 404]
    assert [get("a/halls.pdf", user, page=1)[0] for user in ("grace", "ada", "")] == [404, 200, 404]


@pytest.mark.parametrize(("name", "page"), [("all/changed.pdf", 1), ("all/halls.pdf", 4), ("all/halls.pdf", 0)])
def test_a_page_that_cannot_be_shown_is_text_with_a_sentence(get: Get, name: str, page: int) -> None:
    status, raw, _ = get(name, page=page, ui="en")
    assert status == 200 and TEXT_ALONE in raw.decode() and b'class="stored"' in raw
    hidden, absent = get(name, path="/documents/page", page=page), get("b/none.pdf", path="/documents/page", page=page)
    assert hidden == absent and hidden[0] == 404, "the picture says no more than that there is none"


def test_a_document_without_pages_is_shown_as_ever(get: Get) -> None:
    assert get("all/guide.docx", page=1, ui="en")[1].decode().count(TEXT_ALONE) == 0
    assert get("all/guide.docx", path="/documents/page", page=1)[0] == 404


def test_words_that_are_not_on_the_page_are_said_not_to_be(get: Get, client: FlaskClient, folder: Path) -> None:
    comment = span(client, folder, "all/commented.pdf", paged.COMMENT)
    assert b"was not found in the letters of this page" in get("all/commented.pdf", page=2, ui="en", **comment)[1]
    assert b"was not found" not in get("all/commented.pdf", page=1, ui="en", **comment)[1], "it is on another page"


@pytest.mark.parametrize("more", [{"page": "x"}, {"page": -1}, {"page": "1" * 13}, {"page": 1, "width": "²"}])
def test_a_number_that_is_none_is_refused(get: Get, more: dict[str, object]) -> None:
    assert get("a/halls.pdf", path="/documents/page", **more)[0] == 400


@pytest.mark.parametrize(("width", "shown"), [(0, 1), (1, 1), (99, 99), (1601, 1600), (999_999_999_999, 1600)])
def test_a_picture_is_as_wide_as_asked_within_bounds(get: Get, width: int, shown: int) -> None:
    raw = get("a/halls.pdf", path="/documents/page", page=1, width=width)[1]
    assert int.from_bytes(raw[16:20], "big") == shown


def test_no_caller_is_shown_the_stamp(client: FlaskClient, folder: Path) -> None:
    for path in ("/search/select?q=halls", "/search/select?q=halls&fl=id,file_stamp,place_marks"):
        found = client.get(path, headers={"X-Remote-User": "ada"})
        assert b"halls.pdf" in found.data and b"file_stamp" not in found.data
