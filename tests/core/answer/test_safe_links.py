from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from datafari_rag.core.answer.output_filter import MAX_BRACKETS, SafeLinks
from tests.growth import too_fast
from tests.hostile_texts import ATTACKS

URL = "https://docs.example/a.pdf"
SPACED = "file:///share/my plan (1).pdf"
URLS = {URL, SPACED, "javascript:alert(1)", "https://docs.example/b](https://evil.example"}
LABELS = ["Plan.pdf", "Guide"]
LINK = f"[a]({URL})"


def shown(*pieces: str) -> str:
    links = SafeLinks(URLS, LABELS)
    return "".join([links.feed(piece) for piece in pieces]) + links.end()


CASES = [
    pytest.param("No links. 1 < 2, a[i] and f(x)!", "No links. 1 < 2, a[i] and f(x)!", id="plain text is untouched"),
    pytest.param("see ![logo](https://evil.example/?q=1) ok", "see logo ok", id="an image is its text"),
    pytest.param("[click](https://evil.example/?d=1)", "click", id="a foreign link is its text"),
    pytest.param("[click](/relative)", "click", id="a relative one too"),
    pytest.param("[x](javascript:alert(1))", "x", id="a document's URL that runs is none"),
    pytest.param("[x](data:text/html,hi)", "x", id="data is no target"),
    pytest.param(f"[the plan]({URL})", f"[the plan]({URL})", id="a link to a document stays"),
    pytest.param(f"[the plan](<{URL}>)", f"[the plan]({URL})", id="also in angle brackets"),
    pytest.param(f"[p](<{URL}x)", "p", id="but in both of them"),
    pytest.param(f'[the plan]({URL} "title")', f"[the plan]({URL})", id="its title does not"),
    pytest.param(
        "[p](https://docs.example/a.pdf?q=secret)", "p", id="a document's URL with something added is foreign"
    ),
    pytest.param(f"![p]({URL})", "p", id="an image of a document is none either"),
    pytest.param(f"[p]({SPACED})", f"[p](<{SPACED}>)", id="a URL with spaces gets its angle brackets"),
    pytest.param("[Plan.pdf](https://evil.example)", "[Plan.pdf]", id="a label stays a mark without its target"),
    pytest.param("[2](u) ![1](u) [3](u)", "[2] [1] 3", id="place numbers stay marks, numbers of no document do not"),
    pytest.param("[1][2][Guide] [1, 2]", "[1][2][Guide] [1, 2]", id="marks in a row survive"),
    pytest.param("【1】［Guide］", "【1】［Guide］", id="full-width marks survive"),
    pytest.param("as in [1](see page 4)", "as in [1] (see page 4)", id="words in parentheses are no target"),
    pytest.param("[a](x y) [b](", "[a] (x y) b", id="an opened target at the end is none"),
    pytest.param("[a][b]\n\n[b]: https://evil.example", "[a][b]\n\n[b] : https://evil.example", id="a reference"),
    pytest.param("> - [b]: https://e.example", "> - [b] : https://e.example", id="a definition in a quoted list"),
    pytest.param("\ufeff [b]: https://e.example", "\ufeff [b] : https://e.example", id="behind a mark of byte order"),
    pytest.param("#[b]: https://e.example", "#[b] : https://e.example", id="a definition in a heading"),
    pytest.param("as [1]: says", "as [1]: says", id="a colon behind a mark inside a line stays"),
    pytest.param("as x]: y", "as x] : y", id="and not behind a bracket that is no mark's"),
    pytest.param("[![i](u)](v) [[1]](u)", "i [1]", id="links in links"),
    pytest.param("[x][(evil)](u)", "[x] (evil)", id="what is left over makes no new link"),
    pytest.param("<[](u)img src=x>", "< img src=x>", id="nor a new tag"),
    pytest.param(f"![](u)[a]({URL}) !<a>[a]({URL})", f"[a]({URL}) !‹a>[a]({URL})", id="nor a new image"),
    pytest.param("[b][](u): https://e.example", "[b] : https://e.example", id="nor a definition"),
    pytest.param(r"[a\](evil) [c\]d](evil)", "a\\ [c\\]d]", id="backslashes change nothing"),
    pytest.param("[a\n\nb](evil)", "[a\n\nb]", id="a bracket over an empty line is none, its target goes"),
    pytest.param("<https://evil.example/> <a@b.example>", "‹https://evil.example/> ‹a@b.example>", id="autolinks"),
    pytest.param(f"<{URL}>", f"<{URL}>", id="but a document's stays"),
    pytest.param(f"<{URL}/x> <{SPACED}>", f"‹{URL}/x> ‹{SPACED}>", id="and nothing longer, nor with spaces"),
    pytest.param("<img src='https://evil.example'>", "‹img src='https://evil.example'>", id="a tag is text"),
    pytest.param("may <q cannot>vote</b\ncannot>", "may ‹q cannot>vote‹/b\ncannot>", id="with all that it hides"),
    pytest.param("can<!-- not --> <?not?>vote", "can‹!-- not --> ‹?not?>vote", id="so are comments"),
    pytest.param("List<String> and a<b", "List‹String> and a‹b", id="and what is no tag"),
    pytest.param("1 <2, x< y, <é>, <", "1 <2, x< y, <é>, <", id="but not what is none for anybody"),
    pytest.param("x <b [a](u)> y", "x ‹b a> y", id="a link inside a tag"),
    pytest.param("[x <java:y](u)>", "x ‹java:y>", id="half a tag in a bracket"),
    pytest.param("`List<String>` ``a`<b`` <i>", "`List<String>` ``a`<b`` ‹i>", id="code in a line keeps it"),
    pytest.param("```py\na<b\n```\n<i>", "```py\na<b\n```\n‹i>", id="and a block of code"),
    pytest.param("```\n```x <q>\n  ````\n<i>", "```\n```x <q>\n  ````\n‹i>", id="to its end"),
    pytest.param("    ```\n<q a>", "    ```\n‹q a>", id="a fence too far in is none"),
    pytest.param("```x``` <q a>\n<q a>", "```x``` ‹q a>\n‹q a>", id="nor is one with a sign behind it"),
    pytest.param("`a <q b>\n\n` <i> `", "`a ‹q b>\n\n` <i> `", id="an empty line ends no code"),
    pytest.param("`<q b> `` <i>", "`‹q b> `` ‹i>", id="nor do more backticks"),
    pytest.param("`<img src=x>` `<svg/>`", "`< img src=x>` `< svg/>`", id="tags that load are broken up in code"),
    pytest.param("`x <b` onclick=y>", "`x < b` onclick=y>", id="also those that code does not end"),
    pytest.param("`x <b [a](u>) onclick=y>`", "`x ‹b a onclick=y>`", id="code with brackets is none"),
    pytest.param("`[x <b>](u)` `[x <b](u)`", "`x ‹b>` `x ‹b`", id="nor is code in a link"),
    pytest.param("```\n[x <b](u) y>\n```", "```\nx < b y>\n```", id="in a block a tag that a link leaves open"),
    pytest.param("`a <b\n\n`", "`a ‹b\n\n`", id="code that is none"),
    pytest.param("a ` b `x<b`", "a ` b `x‹b`", id="nor is it sure behind one backtick more"),
    pytest.param("a ` b\n\n`x<b`", "a ` b\n\n`x<b`", id="up to an empty line"),
    pytest.param("a ` b\n```\nx<b\n```\n", "a ` b\n```\nx<b\n```\n", id="or in a block"),
    pytest.param("~~~\na\n\n`x<b`", "~~~\na\n\n`x‹b`", id="none is behind tildes, to the end"),
    pytest.param("`" * 33 + "\n\n`x<b`", "`" * 33 + "\n\n`x‹b`", id="nor behind more backticks than are counted"),
    pytest.param(f"[a]({'(' * 31}{')' * 31})", "a", id="32 brackets are open at most"),
    pytest.param(f"[a]({'(' * 32}{')' * 32})", f"[a] (  {'(' * 32}{')' * 33}", id="and no more of them"),
    pytest.param("` a\n`<q b>`\n\n`<i>`", "` a\n`‹q b>`\n\n`<i>`", id="which backticks are a pair is not sure"),
    pytest.param("\\`<q b>` <q b>`\n\n`<i>`", "\\`‹q b>` ‹q b>`\n\n`<i>`", id="nor behind a backslash"),
    pytest.param("~~~\n```\n~~~\n<q b>", "~~~\n```\n~~~\n‹q b>", id="a block between tildes"),
    pytest.param("- a\n  ```\n\n<q b>", "- a\n  ```\n\n‹q b>", id="a block in a list"),
    pytest.param("`" * 31 + "<b>" + "`" * 31, "`" * 31 + "‹b>" + "`" * 31, id="too many backticks are none"),
    pytest.param("ends in [Pla", "ends in ", id="half a mark at the end is dropped"),
    pytest.param("ends in [see", "ends in [see", id="another opened bracket is not"),
    pytest.param(f"[a]({URL}", "a", id="half a link to a document at the end is none"),
    pytest.param("[a](https://evil.example/x", "a", id="half a link at the end is none"),
    pytest.param("[" * 12 + "a" + "]" * 12 + "(u)", "[" * 11 + "a" + "]" * 11, id="very deep brackets are a link too"),
    pytest.param("[" * 40 + "a" + "]" * 40, "[" * 40 + "a" + "]" * 40, id="too many open brackets are text"),
    pytest.param("[" * 7 + LINK + "]" * 7, "[" * 7 + LINK + "]" * 7, id="a link in seven brackets stays"),
    pytest.param("[" * 8 + LINK + "]" * 8, "[" * 9 + "a" + "]" * 9, id="a link in eight is none"),
    pytest.param("[a](" + "(" * 31 + ")" * 31 + ")", "a", id="a target with 31 open parentheses goes"),
    pytest.param("[a](" + "x" * 1999 + ")", "a", id="a long target goes"),
    pytest.param("[a](" + "x" * 2000 + ")", "[a] (  " + "x" * 2000 + ")", id="an endless target is broken up"),
    pytest.param("[" + "a" * 299 + f"]({URL})", "[" + "a" * 299 + f"]({URL})", id="a long text stays a link"),
    pytest.param("[" + "a" * 300 + "](u)", "[" + "a" * 300 + "]", id="an endless text loses its target"),
    pytest.param("`<b" + "x" * 296 + ">`", "`<b" + "x" * 296 + ">`", id="long code is code"),
    pytest.param("`<b" + "x" * 297 + ">`", "`‹b" + "x" * 297 + ">`", id="endless code is none"),
    pytest.param("``][", "``]", id="a stray bracket behind backticks"),
    pytest.param("[Guide])[a]:", "[Guide])[a] :", id="a colon behind the second bracket of a line"),
    pytest.param("x [1](u): y", "x [1]: y", id="a colon behind a mark that lost its target"),
    pytest.param("`</svg>`", "`< /svg>`", id="and one that ends what loads"),
    pytest.param("] (" + "a" * 298 + " b)", "] (" + "a" * 298 + " b)", id="words in parentheses within the limit"),
    pytest.param(f"!![](u)[a]({URL})", f"! [a]({URL})", id="what an image leaves makes none of a link"),
    pytest.param("```", "```", id="a block that begins at the end"),
    pytest.param("```\nx <b\n\ny>\n```", "```\nx < b\n\ny>\n```", id="a tag that an empty line parts is broken up"),
    pytest.param("```\nx\n```\na ` b\n\n`<b>`", "```\nx\n```\na ` b\n\n`<b>`", id="a block that ended is over"),
    pytest.param("~\n\n`<b>`", "~\n\n`<b>`", id="one tilde begins no block"),
    pytest.param("] (", "] (  ", id="a parenthesis behind a bracket at the end"),
    pytest.param("](u)a", "]a", id="a stray target goes, and no more"),
    pytest.param("x](see page 4)", "x] (see page 4)", id="words in parentheses behind a stray bracket stay"),
    pytest.param("x] (see page 4)", "x] (see page 4)", id="and behind a blank nothing is put in front of them"),
    pytest.param("(```<x y(```[1]", "(```<x y(```[1]", id="an angle bracket in code that is no tag"),
    pytest.param("``\n<b>\n``\n<b>", "``\n‹b>\n``\n‹b>", id="two backticks begin no block"),
    pytest.param("a ` b\n\n`<b>`", "a ` b\n\n`<b>`", id="a backtick too many is one of its paragraph"),
    pytest.param("(a)", "(a)", id="a parenthesis at the very beginning"),
    pytest.param("] (a", "] (  a", id="a parenthesis that nothing closes"),
    pytest.param("] (" + "a" * 299 + " b)", "] (  " + "a" * 299 + " b)", id="words beyond the limit may be a target"),
    pytest.param("abcde[x[]]()z", "abcdex[]z", id="an empty target behind brackets in brackets"),
    pytest.param("a\n[1]: x", "a\n[1] : x", id="a mark that begins a line is no definition"),
    pytest.param("a\nb[1]: x", "a\nb[1]: x", id="nor is one behind the first letter"),
    pytest.param(f"{'far in the text ' * 3}<{URL}>", f"{'far in the text ' * 3}<{URL}>", id="a document's far behind"),
    pytest.param("`><svg/>`", "`>< svg/>`", id="the end of a tag is behind it"),
    pytest.param(f"```\n<{'b' * 299}>\n```", f"```\n<{'b' * 299}>\n```", id="a long tag in a block stays"),
    pytest.param(f"```\n<{'b' * 300}>\n```", f"```\n< {'b' * 300}>\n```", id="an endless one is broken up"),
    pytest.param("[a`b](u)\n\n`<b>`", "a`b\n\n`<b>`", id="a backtick of a link is one of its paragraph"),
    pytest.param("```\n[a`](u)\n\n<b>", "```\na`\n\n‹b>", id="one of a link in a block is never sure"),
    pytest.param(f"x {'`' * 30}<b>{'`' * 30}", f"x {'`' * 30}<b>{'`' * 30}", id="as many backticks as are counted"),
    pytest.param(f"x {'`' * 31}<b>{'`' * 31}", f"x {'`' * 31}‹b>{'`' * 31}", id="and one more"),
    pytest.param(f"x {'`' * 31}<b>{'`' * 30}", f"x {'`' * 31}‹b>{'`' * 30}", id="of which some are no pair either"),
]


@pytest.mark.parametrize(("text", "wanted"), CASES)
def test_only_links_to_documents_come_out(text: str, wanted: str) -> None:
    assert shown(text) == wanted


@pytest.mark.parametrize(("text", "wanted"), CASES)
def test_wherever_the_text_is_cut_the_result_is_the_same(text: str, wanted: str) -> None:
    assert shown(*text) == wanted
    assert {shown(text[:at], text[at:]) for at in range(min(len(text), 90))} <= {wanted}


def test_a_mark_comes_out_whole_and_text_at_once() -> None:
    links = SafeLinks(URLS, LABELS)
    assert [links.feed(piece) for piece in ["It is 5 ", "[Pl", "an.pdf", "]", ". Then"]] == [
        "It is 5 ",
        "",
        "",
        "",
        "[Plan.pdf]. Then",
    ]


@pytest.mark.parametrize("pieces", [["[a](", URL, ")"], ["x] (", ")"]])
def test_what_ends_with_a_piece_comes_out_with_it(pieces: list[str]) -> None:
    links = SafeLinks(URLS, LABELS)
    assert "".join(map(links.feed, pieces)) == shown(*pieces)


@pytest.mark.parametrize(
    ("opening", "chars"),
    [("[", 300), ("[a](", 2000), ("] (", 300), ("`", 300), ("\n```", 300), ("\n```\n<b", 299)],
)
def test_what_has_no_end_is_held_as_long_as_it_may_have_one(opening: str, chars: int) -> None:
    links = SafeLinks(URLS, LABELS)
    assert links.feed("Text. " * 500 + opening)
    assert [links.feed("y" * (chars - 1)), links.feed("y")[-1:]] == ["", "y"]


@pytest.mark.parametrize("text", ["[" * 40 + "a]", "[a](" + "(" * 40 + ")", "[" + "[a]" * 40 + "](" + "()" * 20 + ")"])
def test_many_brackets_come_out_alike_in_single_characters(text: str) -> None:
    filter_ = SafeLinks(["http://x/y"], ["Public handbook"])
    assert "".join([*map(filter_.feed, text), filter_.end()]) == shown(text)


def test_behind_very_many_brackets_there_are_none() -> None:
    assert shown("<b>" * 1999 + LINK).endswith(LINK)
    assert shown("<b>" * 2000 + LINK).endswith(f"(a)({URL})")


@pytest.mark.parametrize("url", ["https://docs.example/b`c", "https://docs.example/b\\c", "\u00a0", " "])
def test_a_documents_url_that_would_end_its_link_is_none(url: str) -> None:
    assert SafeLinks([url], LABELS).feed(f"[x]({url}) ") == "x "


def test_every_documents_url_is_looked_for() -> None:
    links = SafeLinks([SPACED, f"{URL}?b", URL], LABELS)
    assert links.feed(f"<{URL}> ") == f"<{URL}> "


def test_without_urls_no_link_stays() -> None:
    links = SafeLinks((), LABELS)
    assert links.feed(f"[a]({URL}) [1] ") == "a [1] "


def loading(tokens: list[Token]) -> list[str]:
    found = []
    for token in tokens:
        if token.type in ("image", "link_open"):
            found.append(str(token.attrGet("src") or token.attrGet("href")))
        if token.type in ("html_inline", "html_block") and re.search(
            r"<[A-Za-z][^>]*=|<(?:img|script|svg|base)|<!", token.content
        ):
            found.append(token.content)
        found.extend(loading(token.children or []))
    return found


MARKDOWN = MarkdownIt("commonmark", {"html": True})
PIECES = st.sampled_from(
    [
        *"[]()!<>\n :=a1\\/\"'`*-",
        "](",
        "[a](",
        "![",
        "]: ",
        "https://evil.example",
        URL,
        "<img src=x",
        "<a href=",
        "\n\n",
        "Plan.pdf",
        "[1]",
        "javascript:x",
        "<b",
        "&amp;",
        "【",
        "】",
        "```\n",
        "> ",
    ]
)


@settings(max_examples=500, deadline=None)
@given(st.lists(PIECES, max_size=30))
def test_a_reader_of_markdown_finds_nothing_but_documents(pieces: list[str]) -> None:
    answer = shown(*pieces)
    assert answer == shown("".join(pieces))
    assert [target for target in loading(MARKDOWN.parse(answer)) if target != URL] == []
    assert set(re.findall(r"\]\(([^)]*)", answer)) <= {URL}


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="abc 12.,;:?()\n-*#_é汉", max_size=60))
def test_text_without_brackets_is_untouched(text: str) -> None:
    assert shown(text) == text


def test_no_attack_of_the_collection_leaves_a_target() -> None:
    answers = [shown(attack["text"]) for attack in ATTACKS]
    assert [answer for answer in answers if loading(MARKDOWN.parse(answer))] == []
    assert not any(re.search(r"\]\(|<[A-Za-z/!?]", answer) for answer in answers)


@pytest.mark.parametrize("unit", ["`a", "` ", "```\n", "\\`a", "`[a]("])
def test_what_is_special_is_looked_at_once_however_often_it_comes(unit: str) -> None:
    def filtered(text: str) -> str:
        links = SafeLinks(set(), set())
        return links.feed(text) + links.end()

    assert too_fast(filtered, lambda chars: (unit * chars)[:chars], 40_000, worth_s=0.01) == ""


def test_behind_the_last_bracket_that_is_looked_at_pieces_stay_in_their_order() -> None:
    assert shown("<b>" * MAX_BRACKETS, "!", "`", "x").endswith("!`x")


def test_a_backslash_at_the_end_of_a_piece_belongs_to_the_backtick_of_the_next() -> None:
    assert shown("x", " a\\", "`b<c`") == "x a\\`b‹c`"
