"""Character references: those of the library, and numbers that it cannot read."""

from __future__ import annotations

import html

import pytest

from datafari_rag.core.text.entities import unescaped


@pytest.mark.parametrize(
    "text",
    [
        *("plain", "a & b", "&amp;lt;", "&lt;a&gt", "&#65;&#065 &#x41;", "&#0;", "&#00;", "&#", "&#x" + "f" * 5000),
        *("&#1114111;", "&#1114112;", "&#9999999;", "&#99999999;", "&#99999999", "&#099999999;x", "&#xD800;"),
    ],
)
def test_references_are_resolved_as_the_library_does_it(text: str) -> None:
    assert unescaped(text) == html.unescape(text)


@pytest.mark.parametrize(
    ("text", "resolved"),
    [
        ("a&#" + "1" * 5000 + ";b", "a\ufffdb"),
        ("a&#" + "1" * 5000, "a\ufffd"),
        ("&#" + "0" * 5000 + "65;", "A"),
        ("&#" + "0" * 5000 + ";", "\ufffd"),
        ("&#" + "1" * 5000 + "&lt;", "\ufffd<"),
    ],
)
def test_a_number_longer_than_python_reads_is_resolved_too(text: str, resolved: str) -> None:
    with pytest.raises(ValueError, match="digits"):
        html.unescape(text)
    assert unescaped(text) == resolved
