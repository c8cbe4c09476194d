from __future__ import annotations

import html
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datafari_rag.core.text.cleaning import (
    VisibleText,
    clean,
    encodable,
    lowered,
    unescaped,
    without_directions,
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param("", "", id="nothing stays nothing"),
        pytest.param("a\nb\rc\n\td", "a b c  d", id="line ends and tabs are one space each"),
        pytest.param("a\nb\tc\nd | e\nf\tg\n", "a\nb\tc\nd | e\nf\tg\n", id="a row stays on its own line"),
        pytest.param("a\r\nb", "a  b", id="two characters of a line end are two spaces"),
        pytest.param("a\u2028b\u2029c\x0bd\x0ce\x85f", "a b c d e f", id="the rarer line ends too"),
        pytest.param("C:\\share\\x", "C:/share/x", id="a backslash is a slash"),
        pytest.param('say "yes"', 'say "yes"', id="double quotes stay"),
        pytest.param("a\x00\x08\x1b\x7f\x9fb", "ab", id="controls are dropped"),
        pytest.param("S\u200ba\u200dy\ufeff", "Say", id="zero-width characters are dropped"),
        pytest.param("\u202e2ON\u202c \u2066x\u2069", "2ON x", id="bidirectional controls are dropped"),
        pytest.param("hi\U000e0048\U000e0049", "hi", id="tag characters that spell a hidden sentence are dropped"),
        pytest.param("x\ufe00\ufe0f\U000e0100y", "xy", id="variation selectors that carry bytes are dropped"),
        pytest.param("in\u00adfor\u00admation", "information", id="soft hyphens are dropped"),
        pytest.param("\u3164\u115fa", "a", id="fillers that look like nothing are dropped"),
        pytest.param("a\ud800b", "ab", id="half a character is dropped"),
        pytest.param("Grüße, 汉字, مرحبا 🙂", "Grüße, 汉字, مرحبا 🙂", id="visible characters of all scripts stay"),
    ],
)
def test_what_the_model_sees(text: str, wanted: str) -> None:
    assert clean(text, is_full=True)[0] == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param("a\n\tb\\c\r", "a\n\tb\\c\r", id="line ends, tabs and backslashes stay"),
        pytest.param("a\x00\u200b\U000e0041b", "ab", id="invisible characters are dropped as well"),
    ],
)
def test_without_full_cleaning_characters_are_only_dropped(text: str, wanted: str) -> None:
    assert clean(text, is_full=False)[0] == wanted


@given(st.text(), st.booleans())
def test_every_character_leads_back_to_itself(text: str, is_full: bool) -> None:
    cleaned, origins = clean(text, is_full=is_full)
    stood = [origins.at(index) for index in range(len(cleaned))]
    assert stood == sorted({place for place in stood if place is not None})
    same = [(text[place], shown) for place, shown in zip(stood, cleaned, strict=True) if place is not None]
    assert all(one == other or other in " /" for one, other in same)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param("plain", "plain", id="plain"),
        pytest.param("a\u202eb\u2066c\u200e\u05d0", "abc\u200e\u05d0", id="what turns round; marks of direction stay"),
    ],
)
def test_what_turns_round_the_rest_is_taken_out(text: str, wanted: str) -> None:
    assert without_directions(text) == wanted


@pytest.mark.parametrize(
    ("text", "encodable_text"),
    [
        ("plain", "plain"),
        ("漢字 👩‍👩", "漢字 👩‍👩"),
        ("half \ud83d of one", "half \ufffd of one"),
        ("\udc00", "\ufffd"),
        ("both \ud83d\ude00", "both 😀"),
        ("\ufefftext", "\ufefftext"),
    ],
    ids=["ASCII", "whole characters", "a first half", "a second half", "two halves in a row", "a mark of order"],
)
def test_half_a_character_is_replaced(text: str, encodable_text: str) -> None:
    assert encodable(text) == encodable_text
    assert encodable(text).encode().decode() == encodable_text


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


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param("a\u202e20\u202c mg\u200b \u2066b\u2069\u200e\u061c", "a20 mg b", id="what turns the text round"),
        pytest.param("a\x00\x1b[0m\x07\U000e0041\u00ad\ufeffb", "a[0mb", id="controls and hidden letters"),
        pytest.param("a\n\tb\u2028c", "a\n\tb\u2028c", id="line ends and tabs stay"),
        pytest.param("2\u200d0 2\u200c0 a\u200db a\ufe0f", "20 20 ab a", id="joiners of no use"),
        pytest.param("\u200da\u200d", "a", id="nor at an end"),
        pytest.param("👩\u200d🔬 ❤\ufe0f\u200d🔥 👩🏽\u200d🚀 1\ufe0f\u20e3", None, id="signs of several"),
        pytest.param("می\u200cخواهم", None, id="Persian"),
        pytest.param("ه\u200d .", None, id="a letter shown joined"),
        pytest.param("क्\u200dष क्\u200cष ক্\u200dষ র\u200d্য", None, id="letters of India"),
        pytest.param("👩\u200d\u200d\u202e\u200d🔬", "👩\u200d🔬", id="a joiner once"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_what_is_not_seen_leaves_a_text_however_it_is_cut(text: str, wanted: str | None) -> None:
    for parts in ([text], list(text), [text[:3], text[3:]]):
        visible = VisibleText()
        assert "".join(map(visible.feed, parts)) == (text if wanted is None else wanted)


@given(st.lists(st.text(alphabet="a5 \n\u200c\u200d\ufe0f\u20e3\u202e\u00ad👩🔬किष्می", max_size=6), max_size=6))
def test_only_joiners_and_presentations_are_left_of_what_is_invisible(pieces: list[str]) -> None:
    visible, whole = VisibleText(), VisibleText()
    shown = "".join(map(visible.feed, pieces))
    assert shown.rstrip(KEPT) == whole.feed("".join(pieces)).rstrip(KEPT)
    assert set(shown) - set(clean(shown, is_full=False)[0]) <= set(KEPT)
    assert clean(shown, is_full=False)[0] == clean("".join(pieces), is_full=False)[0]
    assert re.search(f"[{KEPT}]{{3}}", shown) is None


KEPT = "\u200c\u200d\ufe0f"


def test_every_character_keeps_its_place_in_lower_case() -> None:
    assert lowered("İX") == "ix"
    assert all(len(lowered(chr(code))) == 1 for code in range(sys.maxunicode + 1))
    assert len(lowered("İstanbul ÉTÉ ẞ")) == len("İstanbul ÉTÉ ẞ")
