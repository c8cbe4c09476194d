"""One set of citations in every spelling, and Open WebUI's own loop over what is sent to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from datafari_rag.core.citations.resolution import resolve
from datafari_rag.core.documents import Document, Extract, OffsetMap, OffsetRun, Passage
from datafari_rag.protocols.openai.renderings import (
    Cited,
    nested_citations,
    source_events,
    status_event,
    url_citations,
)

BASE = "https://rag.example.org"
ANSWER = "🛫 De\u0301part! The ferry leaves at nine [2]. Dogs sleep all day long [1, 2]. It was blue [Nowhere]."


def extract(number: int, name: str, text: str, url: str | None = None) -> Extract:
    document = Document(f"id-{number}", text, title=name, url=url, last_modified="2026-01-02T03:04:05Z")
    return Extract(number, name, document, (Passage(0, len(text)),), text, OffsetMap((OffsetRun(0, 0, len(text)),)))


DOGS = extract(1, "Dogs", "Dogs sleep all day long.")
FERRY = extract(2, "Ferry", "The ferry leaves at nine.", "https://ferry.example.org/times")
CATS = extract(3, "Cats", "Cats purr.")
EXTRACTS = (DOGS, FERRY, CATS)
CITED = Cited(resolve(ANSWER, EXTRACTS), EXTRACTS, BASE)


def test_the_marks_place_counts_code_points() -> None:
    shown: list[Any] = url_citations(CITED)
    assert [ANSWER[one["start_index"] : one["end_index"]] for one in shown] == ["[2]", "[1, 2]", "[1, 2]"]
    assert [one["x_status"] for one in shown] == ["verified", "verified", "unsupported"]


def test_the_flat_and_the_nested_form_are_one_set() -> None:
    flat = url_citations(CITED)
    assert [one["url_citation"] | {"type": "url_citation"} for one in nested_citations(CITED)] == flat  # type: ignore[operator]
    assert flat[0] == {
        "type": "url_citation",
        "start_index": ANSWER.index("[2]"),
        "end_index": ANSWER.index("[2]") + 3,
        "title": "Ferry",
        "url": "https://ferry.example.org/times#:~:text=The%20ferry%20leaves%20at%20nine.",
        "x_status": "verified",
        "x_quote": "The ferry leaves at nine.",
        "x_document_id": "id-2",
        "x_field": "exactContent",
        "x_start": 0,
        "x_end": 25,
    }


def test_each_citation_says_what_it_speaks_for() -> None:
    assert [one.claim for one in CITED.citations] == [
        "The ferry leaves at nine.",
        "Dogs sleep all day long.",
        "Dogs sleep all day long.",
        "It was blue.",
    ]


# What Open WebUI 0.12.4 makes of them (its middleware, and the page's lists of sources).


def chips(chunks: list[Any]) -> list[tuple[str, str]]:
    """Return name and address of each source as the page lists them: one for each `metadata.source`."""
    found: dict[str, tuple[str, str]] = {}
    for chunk in chunks:
        if "event" not in chunk or chunk["event"]["type"] != "source":
            continue
        source = chunk["event"]["data"]
        for place, _ in enumerate(source["document"]):
            about = source["metadata"][place]
            is_url = about["source"].startswith(("http://", "https://"))
            url = about["source"] if is_url else source["source"]["url"]
            found.setdefault(about["source"], (about["name"] if about["external"] else about["source"], url))
    return list(found.values())


def test_the_nth_source_is_document_n() -> None:
    assert chips(list(source_events(CITED))) == [
        ("Dogs", f"{BASE}/documents?id=id-1&field=exactContent&start=0&end=24"),
        ("Ferry", "https://ferry.example.org/times"),
    ]


def test_a_source_holds_each_proved_passage_once() -> None:
    dogs, ferry = (event["event"]["data"] for event in list[Any](source_events(CITED)))
    assert dogs["document"] == ["Dogs sleep all day long."]
    assert ferry["document"] == ["The ferry leaves at nine."]
    about = {"source": ferry["source"]["url"], "name": "Ferry", "external": True}
    assert ferry["metadata"] == [about | {"field": "exactContent", "start": 0, "end": 25, "status": "verified"}]


def test_a_document_before_the_last_cited_one_keeps_its_place() -> None:
    cited = Cited(resolve("The ferry leaves at nine [2].", EXTRACTS), EXTRACTS, BASE)
    dogs, ferry = (event["event"]["data"] for event in list[Any](source_events(cited)))
    assert (dogs["source"]["name"], ferry["source"]["name"]) == ("Dogs", "Ferry")
    assert (dogs["document"], dogs["metadata"][0]["status"]) == (["Dogs sleep all day long."], None)


def test_a_cited_document_that_proves_nothing_is_a_source_all_the_same() -> None:
    cited = replace(CITED, citations=resolve("Dogs cost 500 euros [1].", EXTRACTS))
    (dogs,) = (event["event"]["data"] for event in list[Any](source_events(cited)))
    assert dogs["metadata"][0]["status"] == "unsupported"


def test_nothing_cited_is_no_source() -> None:
    assert list(source_events(replace(CITED, citations=()))) == []


def test_the_status_counts_the_documents() -> None:
    said: Any = [status_event(EXTRACTS, language) for language in ("en", "fr-CA", "ja")]
    assert [one["event"]["data"]["description"] for one in said] == [
        "Documents read: 3",
        "Documents lus : 3",
        "Documents read: 3",
    ]
    assert said[0]["event"]["data"]["done"] is True
