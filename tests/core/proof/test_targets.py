"""Which addresses may be links, and what replaces the others."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from datafari_rag.core.documents import Document
from datafari_rag.core.proof.links import is_target, target_of

GOOD = [
    *("https://h/a?b=c:d#e:f", "HTTP://h/", "file:///share/a.txt", "smb://h/x", "ftp://h/x", "davs://h/x"),
    *("doc-1", "/a/b:c", "//h/x", "\\\\server\\share", "C:\\docs\\a.txt", "a/b: c", "", "été: x", "?x=javascript:y"),
    *("/a&#" + "9" * 5000, "a&#" + "9" * 5000 + ";:b"),
]
BAD = [
    *(
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        " javascript:x",
        "\x01javascript:x",
        "java\tscript:x",
        "java\nscript:x",
    ),
    *(
        "javascript\r:x",
        "javascript&colon;x",
        "javascript&#58;x",
        "&#106;avascript:x",
        f"&#{106:05000};avascript:x",
        "\u00a0javascript:x",
    ),
    *("data:text/html,<script>x</script>", "vbscript:x", "blob:https://h/1", "filesystem:https://h/x", "about:blank"),
    *("view-source:https://h/", "ms-msdt:/id", "search-ms:x", "intent://x", "mailto:a@b", "tel:1", "js:x", "x+y.z-1:a"),
]


@pytest.mark.parametrize("address", GOOD)
def test_a_link_may_lead_to(address: str) -> None:
    assert is_target(address)


@pytest.mark.parametrize("address", BAD)
def test_no_link_leads_to(address: str) -> None:
    assert not is_target(address)


@pytest.mark.parametrize("address", BAD)
def test_the_documents_own_page_stands_for_what_runs(address: str) -> None:
    assert target_of(Document("id-1", "", url=address)) == "id-1"
    path = urlsplit(target_of(Document(address, "", url=address)))
    assert (path.scheme, path.netloc, path.path) == ("", "", "/documents")
    assert parse_qs(path.query, keep_blank_values=True)["id"] == [address]


def test_the_url_comes_before_the_id() -> None:
    assert target_of(Document("https://h/id", "", url="https://h/url")) == "https://h/url"
    assert target_of(Document("https://h/id", "", url="data:x")) == "https://h/id"
    assert target_of(Document("\ud800:x", "")) == "\ud800:x"
    assert target_of(Document("javascript:\ud800", "")) == "/documents?id=javascript%3A%3F"
