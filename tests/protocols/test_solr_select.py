from __future__ import annotations

from typing import Any

import pytest

from datafari_rag.core.search_request import Browse
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols import solr_select
from datafari_rag.protocols.request import Incoming
from datafari_rag.web.responses import size_of
from tests.settings import settings_with


def incoming(**params: str) -> Incoming:
    return Incoming("/search/select", {name: (value,) for name, value in params.items()})


def test_words_become_a_plain_search_and_what_does_not_fit_is_told() -> None:
    browse, ignored = solr_select.parse(incoming(q="ferry", rows="5", sort="colour asc", action=" Search "), Settings())
    assert (browse.text, browse.rows) == ("ferry", 5)
    assert ignored == ("sort",)


def test_titles_and_addresses_are_harmless_and_all_else_stays_as_it_came() -> None:
    settings = settings_with(solr_fields={"title": "dc_title", "url": "link"})
    row = {
        "id": "vbscript:x",
        "dc_title": ["x\u202ey", 3],
        "link": "javascript:1",
        "title": "x\u202ey",
        "url": "data:x",
        "n": 1,
    }
    found = {"response": {"numFound": 1, "docs": [row]}, "highlighting": {}}

    header = {"params": {"q": "leave", "rows": "5", "start": "20"}}
    wanted = Browse("leave", rows=5, start=20)
    assert solr_select.reply(found, wanted, settings.solr, size_of) == {
        "responseHeader": header,
        "response": {
            "numFound": 1,
            "docs": [{**row, "dc_title": ["xy", 3], "link": "/documents?id=vbscript%3Ax"}],
        },
        "highlighting": {},
    }
    good = {"responseHeader": {"status": 0}, "response": {"docs": [{"id": "a", "url": ["https://h/"], "title": None}]}}
    whole = {**good, "responseHeader": {"status": 0, "params": {"q": "*:*", "rows": "10", "start": "0"}}}
    assert solr_select.reply(good, Browse(None), Settings().solr, size_of) == whole


@pytest.mark.parametrize("found", [{}, {"response": None}, {"response": {"docs": None}}])
def test_a_reply_without_documents_stays_as_it_came(found: dict[str, Any]) -> None:
    reply = solr_select.reply(found, Browse(None), Settings().solr, size_of)
    assert {**reply, **found} == reply


@pytest.mark.parametrize(
    ("query", "language"),
    [
        pytest.param({"q": ("Combien de jours de congés avons-nous ?",), "lang": ("en",)}, "fr", id="the words' own"),
        pytest.param({"q": ("How many days of leave are there?",), "lang": ("fr",)}, "en", id="not the page's"),
        pytest.param({"q": ("quota",), "lang": ("fr",)}, "fr", id="the page's where the words have no clear language"),
        pytest.param({"q": ("quota",)}, "", id="else none"),
    ],
)
def test_words_are_searched_in_their_own_language(query: dict[str, tuple[str, ...]], language: str) -> None:
    wanted, _ = solr_select.parse(Incoming("/search/select", query), Settings())
    assert wanted.language == language


def test_long_fields_beyond_the_room_of_a_reply_are_left_out_and_named() -> None:
    rows = [{"id": str(number), "exactContent": ["x" * 6_000_000], "title": ["t"]} for number in range(2)]
    whole = solr_select.reply(
        {"response": {"docs": rows}, "truncated": {"9": ["a"]}}, Browse(None), Settings().solr, size_of
    )
    assert whole["truncated"] == {"9": ["a"], "1": ["exactContent"]}
    assert size_of(whole) < 7_000_000
