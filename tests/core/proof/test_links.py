"""Where the reader of a citation is sent."""

from __future__ import annotations

import pytest

from datafari_rag.core.documents import Citation, Document
from datafari_rag.core.proof.links import document_link, is_public, marked, passage_link

BASE = "https://rag.example.org"


def cited(url: str | None = None, **more: object) -> Citation:
    return Citation("L", "verified", "a b&c", answer_start=0, answer_end=3, url=url, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("https://docs.python.org/3/", True),
        ("http://93.184.216.34/x", True),
        ("https://[2606:2800:220:1::1]/", True),
        ("http://intranet/x", False),
        ("http://localhost.", False),
        ("https://wiki.corp/x", False),
        ("http://10.1.2.3/x", False),
        ("http://[::1]/x", False),
        ("file:///x.pdf", False),
        ("ftp://example.org/x", False),
        ("http://[broken", False),
        ("x.pdf", False),
        ("", False),
        (None, False),
    ],
)
def test_what_is_a_public_page(address: str | None, public: bool) -> None:
    assert is_public(address) is public


@pytest.mark.parametrize(
    ("address", "quotation", "link"),
    [
        ("https://a.org/x", "nine o'clock, on-time", "https://a.org/x#:~:text=nine%20o%27clock%2C%20on%2Dtime"),
        ("https://a.org/x#s2", "nine", "https://a.org/x#s2:~:text=nine"),
        ("https://a.org/x", "a b c d e f g h", "https://a.org/x#:~:text=a%20b%20c%20d%20e%20f%20g%20h"),
        ("https://a.org/x", "a b c d e f g h i", "https://a.org/x#:~:text=a%20b%20c%20d,f%20g%20h%20i"),
        ("https://a.org/x", "  ", "https://a.org/x"),
        ("https://a.org/x", None, "https://a.org/x"),
        ("https://a.org/x", "😀 é&", "https://a.org/x#:~:text=%F0%9F%98%80%20%C3%A9%26"),
        ("https://a.org/x", "\ud800", "https://a.org/x#:~:text=%3F"),
    ],
)
def test_the_words_are_marked_in_the_page(address: str, quotation: str | None, link: str) -> None:
    assert marked(address, quotation) == link


def test_a_public_document_opens_at_its_words() -> None:
    assert passage_link(cited("https://a.org/x", quote="nine"), BASE) == "https://a.org/x#:~:text=nine"


@pytest.mark.parametrize("url", [None, "file:///x.pdf", "http://intranet/x"])
def test_any_other_opens_on_our_page(url: str | None) -> None:
    link = passage_link(cited(url, field="exactContent", start=1, end=9, quote="nine"), BASE)
    assert link == f"{BASE}/documents?id=a+b%26c&field=exactContent&start=1&end=9"


@pytest.mark.parametrize(
    ("url", "link"),
    [
        ("https://a.org/x.PDF?v=1", "https://a.org/x.PDF?v=1#page=7:~:text=nine"),
        ("https://a.org/x.pdf#s2", "https://a.org/x.pdf#s2:~:text=nine"),
        ("https://a.org/x.html", "https://a.org/x.html#:~:text=nine"),
        ("file:///x.pdf", f"{BASE}/documents?id=a+b%26c&field=exactContent&start=1&end=9&page=7"),
    ],
)
def test_a_link_names_the_page(url: str, link: str) -> None:
    assert passage_link(cited(url, field="exactContent", start=1, end=9, page=7, quote="nine"), BASE) == link


def test_without_a_place_the_document_opens() -> None:
    assert passage_link(cited(), BASE) == f"{BASE}/documents?id=a+b%26c"


def test_a_mark_without_a_document_leads_nowhere() -> None:
    assert passage_link(Citation("L", "unknown", answer_start=0, answer_end=3), BASE) is None


def test_a_document_has_its_public_address_or_ours() -> None:
    assert document_link(Document("d", "", url="https://a.org/x"), BASE) == "https://a.org/x"
    assert document_link(Document("d", "", url="file:///x"), BASE) == f"{BASE}/documents?id=d"
    assert document_link(Document("\ud800", ""), "") == "/documents?id=%3F"
