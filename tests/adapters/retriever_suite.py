"""
What every retriever must do, access first: one suite, run on the real Solr and on the embedded index.

Use: ``from tests.adapters.retriever_suite import *`` in a test module with two fixtures: ``load``, a callable that
replaces all documents (Datafari's field names, as `ports.Writer` takes them), and ``retriever``.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from datafari_rag.core.access import ACL_FIELDS, NO_SECURITY, Filter, User, filter_for, is_visible
from datafari_rag.core.ask import Restriction
from datafari_rag.core.errors import BadRequest
from datafari_rag.core.query.plan import steps_for
from datafari_rag.core.search_request import Browse, Content, Operator, Search, Step
from datafari_rag.ports import Retriever
from tests.attack.syntaxes import ALL
from tests.hostile_texts import QUERIES

Load = Callable[[Sequence[Mapping[str, object]]], None]


def who(*tokens: str) -> Filter:
    return filter_for(User("somebody", frozenset(tokens)), mode="tokens", anonymous="public")


PUBLIC_ONLY = filter_for(User(), mode="tokens", anonymous="public")
EVERYTHING = filter_for(User(), mode="none", anonymous="public")


def doc(identifier: str, text: str = "pump", **more: object) -> dict[str, object]:
    return {"id": identifier, "exactContent": text, "language": "en", **more}


def asked(words: str, *, operator: Operator = "AND", min_match: int | None = None, **more: Any) -> Search:
    step = Step("asked", tuple(words.split()), operator, min_match)
    return Search(question=words, step=step, rows=more.pop("rows", 50), **more)


def ids(retriever: Retriever, search: Search, access: Filter = PUBLIC_ONLY) -> list[str]:
    return [document.id for document in retriever.search(search, access).documents]


def browsed(retriever: Retriever, browse: Browse, access: Filter = PUBLIC_ONLY) -> Any:
    return retriever.browse(browse, access)


def listed(retriever: Retriever, browse: Browse, access: Filter = PUBLIC_ONLY) -> list[str]:
    return [row["id"] for row in browsed(retriever, browse, access)["response"]["docs"]]


# --- rights -----------------------------------------------------------------------------------------------------------

GOLDEN: Sequence[tuple[str, Mapping[str, Sequence[str]], str]] = (
    ("open", {}, "anonymous ann bob eve both"),
    ("allow doc s1", {"allow_token_document": ["s1"]}, "ann both"),
    ("allow doc s3", {"allow_token_document": ["s3"]}, "bob both"),
    ("allow doc s1, deny doc s2", {"allow_token_document": ["s1"], "deny_token_document": ["s2"]}, "both"),
    ("deny doc s3 only", {"deny_token_document": ["s3"]}, ""),
    ("allow share s1, allow doc s3", {"allow_token_share": ["s1"], "allow_token_document": ["s3"]}, "both"),
    ("allow share s1, allow doc s1", {"allow_token_share": ["s1"], "allow_token_document": ["s1"]}, "ann both"),
    (
        "allow doc s1, allow parent s9, deny parent s1",
        {"allow_token_document": ["s1"], "allow_token_parent": ["s9"], "deny_token_parent": ["s1"]},
        "",
    ),
    (
        "allow doc s1, deny doc DEAD_AUTHORITY",
        {"allow_token_document": ["s1"], "deny_token_document": ["DEAD_AUTHORITY"]},
        "ann both",
    ),
)
"""The real ManifoldCF component's verdicts, tried by hand: document, its rights, who sees it."""

USERS: Mapping[str, Filter] = {
    "anonymous": PUBLIC_ONLY,
    "ann": who("s1", "s2"),
    "bob": who("s3"),
    "eve": who(),
    "both": who("s1", "s3"),
}


@pytest.mark.parametrize("name", USERS)
def test_a_user_sees_what_the_real_component_showed_him(retriever: Retriever, load: Load, name: str) -> None:
    load([doc(title, f"pump {title}", **acl) for title, acl, _ in GOLDEN])
    wanted = sorted(title for title, _, seers in GOLDEN if name in seers.split())

    assert sorted(ids(retriever, asked("pump"), USERS[name])) == wanted
    assert sorted(listed(retriever, Browse(None, rows=50), USERS[name])) == wanted
    fetched = [title for title, _, _ in GOLDEN if retriever.fetch(title, "exactContent", USERS[name]) is not None]
    assert sorted(fetched) == wanted


def test_totals_and_counts_are_over_what_the_user_may_see(retriever: Retriever, load: Load) -> None:
    load(
        [
            doc("open", extension="pdf"),
            doc("hers", extension="pdf", allow_token_document=["s1"]),
            doc("his", extension="secret", allow_token_document=["s3"]),
        ]
    )
    browse = Browse("pump", facet_fields=("extension",), wants_highlighting=True)

    found = browsed(retriever, browse, who("s1"))

    assert found["response"]["numFound"] == 2
    assert found["facet_counts"]["facet_fields"]["extension"] == ["pdf", 2]
    assert set(found["highlighting"]) == {"open", "hers"}
    assert retriever.search(asked("pump", rows=1), who("s1")).total == 2
    assert retriever.search(asked("pump", rows=1), PUBLIC_ONLY).total == 1


ODD_TOKENS = (
    "two words",
    "with,comma",
    'with"quote',
    "with'apostrophe",
    "{!terms f=id}x",
    "{!",
    "$open_document",
    "a OR b",
    "*",
    "*:*",
    "back\\slash",
    "\\u0041",
    "DOMAIN\\user",
    "AD:S-1-5-21-1234+domain",
    "unité-à-part",
    "日本",
    "tab\there",
    "line\nend",
    "unit\x1fseparator",
    "\x1f",
    "] TO [",
    "a&b=c%20+d#e;f",
    "x" * 3000,
)


@pytest.mark.parametrize("token", ODD_TOKENS, ids=lambda token: repr(token)[:30])
def test_a_token_is_matched_as_it_is_and_in_no_part(retriever: Retriever, load: Load, token: str) -> None:
    load(
        [
            doc("secret", allow_token_document=[token]),
            doc("denied", allow_token_share=["gate 7"], deny_token_share=[token]),
        ]
    )
    parts = {*token, *re.split(r"[\s,\x1f\"]+", token), token.lower(), token.upper(), token + " ", f" {token}"} - {
        token
    }

    assert ids(retriever, asked("pump"), who(token)) == ["secret"]
    assert ids(retriever, asked("pump"), who(*parts)) == []
    assert ids(retriever, asked("pump"), who("gate 7")) == ["denied"]
    assert ids(retriever, asked("pump"), who("gate 7", token)) == ["secret"]


INVISIBLE = (
    *("\x00", "a\x00b", "\x01", "\x1f", "\x7f", "\x85", "\u2028", "\ufeff", "\u200b", "\t", "\n", "a\r\nb", "a\x0bb"),
    *("é", "e\u0301", "\U0010ffff", "__nosecurity__\u200b", "__NOSECURITY__", "x" * 4000),
)


def test_tokens_and_values_that_look_alike_are_not_the_same(retriever: Retriever, load: Load) -> None:
    load([doc(f"d{n:02}", source=text, allow_token_document=[text]) for n, text in enumerate(INVISIBLE)])

    counted = browsed(retriever, Browse(None, rows=0, facet_fields=("source",)), EVERYTHING)["facet_counts"]
    assert {*counted["facet_fields"]["source"][::2]} == {*INVISIBLE}
    for number, text in enumerate(INVISIBLE):
        for narrowed in (Restriction("source", value=text), Restriction("source", low=text, high=text)):
            assert listed(retriever, Browse(None, restrictions=(narrowed,)), EVERYTHING) == [f"d{number:02}"]
        assert ids(retriever, asked("pump"), who(text)) == [f"d{number:02}"]
        assert ids(retriever, asked("pump"), who(f"{text}\u200b\u200b", f" {text}", "z" * 100_000)) == []


def test_a_document_of_single_letter_rights_is_not_seen_by_a_token_with_these_letters(
    retriever: Retriever, load: Load
) -> None:
    load([doc(letter, allow_token_document=[letter]) for letter in "abc"])

    assert ids(retriever, asked("pump"), who("abc", "a,b", "a b", 'a"b', "a\x1fb")) == []


def test_a_user_in_five_hundred_groups_sees_by_each_of_them(retriever: Retriever, load: Load) -> None:
    groups = [f"DOMAIN\\group number {number}, department {number % 7}" for number in range(500)]
    load([doc(f"d{number:03}", allow_token_document=[groups[number]]) for number in range(0, 500, 25)])

    assert len(ids(retriever, asked("pump"), who(*groups))) == 20
    assert ids(retriever, asked("pump"), who(*groups[1:25])) == []


def test_a_token_that_no_document_can_have_opens_nothing_and_breaks_nothing(retriever: Retriever, load: Load) -> None:
    load([doc("open"), doc("hers", allow_token_document=["s1"])])

    assert ids(retriever, asked("pump"), who("lone \ud800 surrogate")) == ["open"]
    assert sorted(ids(retriever, asked("pump"), who("lone \ud800 surrogate", "s1"))) == ["hers", "open"]


@pytest.mark.parametrize("allow", [(), (NO_SECURITY,), ("a",), ("a", "b"), (NO_SECURITY, "a")], ids=str)
@pytest.mark.parametrize("deny", [(), ("a",), ("b",), (NO_SECURITY, "b")], ids=str)
def test_a_level_is_judged_as_the_rule_says(
    retriever: Retriever, load: Load, allow: Sequence[str], deny: Sequence[str]
) -> None:
    acl = {"allow_token_parent": list(allow), "deny_token_parent": list(deny)}
    load([doc("it", **acl)])

    for tokens in ((), ("a",), ("b",), ("a", "b"), ("c",)):
        wanted = ["it"] if is_visible(acl, frozenset(tokens)) else []
        assert ids(retriever, asked("pump"), who(*tokens)) == wanted, tokens


def test_mode_none_shows_everything(retriever: Retriever, load: Load) -> None:
    load([doc("open"), doc("hidden", allow_token_document=["s1"], deny_token_share=["x"])])

    assert sorted(ids(retriever, asked("pump"), EVERYTHING)) == ["hidden", "open"]


@pytest.mark.parametrize("field", ACL_FIELDS)
def test_rights_are_never_returned_counted_sorted_on_or_filtered_by(
    retriever: Retriever, load: Load, field: str
) -> None:
    load([doc("it", **{field: ["s1"]}, **({"allow_token_share": ["s1"]} if field.startswith("deny") else {}))])
    browse = Browse(None, fields=("id", field), facet_fields=(field,), sort=(field, True))

    assert "s1" not in str(browsed(retriever, browse, EVERYTHING))
    assert "s1" not in str(browsed(retriever, Browse(None), EVERYTHING))
    assert listed(retriever, Browse(None, restrictions=(Restriction(field, value="s1"),)), EVERYTHING) == []
    assert retriever.fetch("it", field, EVERYTHING) is None


# --- words ------------------------------------------------------------------------------------------------------------


def test_all_words_some_of_them_or_any(retriever: Retriever, load: Load) -> None:
    load([doc("one", "valve"), doc("two", "valve gasket"), doc("four", "valve gasket rotor shaft")])
    words = "valve gasket rotor shaft"

    assert ids(retriever, asked(words)) == ["four"]
    assert sorted(ids(retriever, asked(words, operator="OR"))) == ["four", "one", "two"]
    assert sorted(ids(retriever, asked(words, operator="OR", min_match=50))) == ["four", "two"]
    assert ids(retriever, asked(words, operator="OR", min_match=75)) == ["four"]
    assert ids(retriever, asked("nowhere")) == []


def test_the_best_document_comes_first_and_has_the_higher_score(retriever: Retriever, load: Load) -> None:
    load([doc("much", "valve valve valve gasket"), doc("little", "valve " + "word " * 200), doc("none", "rotor")])

    found = retriever.search(asked("valve"), PUBLIC_ONLY).documents

    assert [document.id for document in found] == ["much", "little"]
    assert found[0].score > found[1].score > 0


def test_documents_of_equal_score_come_in_the_order_of_their_ids(retriever: Retriever, load: Load) -> None:
    load([doc(name, "the same valve") for name in ("c", "a", "d", "b")])

    assert ids(retriever, asked("valve")) == ["a", "b", "c", "d"]


def test_hits_below_the_least_score_are_left_out(retriever: Retriever, load: Load) -> None:
    load([doc("much", "valve valve valve"), doc("little", "valve " + "word " * 300)])
    scores = [document.score for document in retriever.search(asked("valve"), PUBLIC_ONLY).documents]

    assert ids(retriever, asked("valve", min_score=sum(scores) / 2)) == ["much"]


@pytest.mark.parametrize(
    ("language", "text", "word"),
    [
        ("en", "The pumps are leaking", "pump"),
        ("en", "The pump's seal", "pumps"),
        ("fr", "Les pompes hélicoïdales sont arrêtées", "pompe"),
        ("fr", "Les pompes hélicoïdales sont arrêtées", "helicoidale"),
        ("fr", "Les pompes hélicoïdales", "hélicoïdales"),
        ("fr", "L'entretien de l’installation", "entretien"),
        ("fr", "L'entretien de l’installation", "installations"),
        ("fr", "L'entretien", "l'entretien"),
        ("de", "Die Pumpen wurden überprüft", "Pumpe"),
        ("es", "Las bombas están averiadas", "bomba"),
        ("en", "Read rag.maxFiles in the manual", "rag.maxFiles"),
        ("en", "See CVE-2024-12345 for more", "cve-2024-12345"),
        ("en", "An e-mail to the office", "e-mail"),
        ("en", "ELECTRIC", "electric"),
    ],
)
def test_a_word_finds_its_other_forms(retriever: Retriever, load: Load, language: str, text: str, word: str) -> None:
    load([doc("it", text, language=language), doc("other", "nothing of the kind", language=language)])

    assert ids(retriever, asked(word, language=language)) == ["it"]


UNSPACED = (
    pytest.param("zh", "渡轮每天九点从港口出发。", "渡轮几点从港口出发？", "火车每天都从车站出发。", id="Chinese"),
    pytest.param(
        "ja",
        "島のフェリーは毎朝九時に出発します。",
        "フェリーは何時に出発しますか",
        "電車は駅から出ます。",
        id="Japanese",
    ),
    pytest.param("th", "เรือข้ามฟากออกจากท่าเรือเวลาเก้าโมง", "เรือข้ามฟากออกกี่โมง", "อาหารเช้าอร่อยมาก", id="Thai"),
)


@pytest.mark.parametrize(("language", "text", "question", "other"), UNSPACED)
def test_a_script_without_spaces_is_searched_in_pieces(
    retriever: Retriever, load: Load, language: str, text: str, question: str, other: str
) -> None:
    load([doc("right", text, language=language), doc("other", other, language=language), doc("english", "pump")])
    first = steps_for(question, language=language, operator="AND")[0]
    content: Content
    for content in ("exactContent", "highlighting"):
        search = Search(question, first, 10, content=content, language=language)
        assert ids(retriever, search)[:1] == ["right"]
    assert retriever.search(search, PUBLIC_ONLY).documents[0].text.rstrip("。") == text.rstrip("。")


@pytest.mark.parametrize(("language", "text", "question", "other"), UNSPACED)
def test_a_plain_search_marks_the_characters_found_in_a_script_without_spaces(
    retriever: Retriever, load: Load, language: str, text: str, question: str, other: str
) -> None:
    load([doc("right", text, language=language), doc("other", other, language=language)])
    page = browsed(retriever, Browse(text[:6], language=language, wants_highlighting=True))
    assert [row["id"] for row in page["response"]["docs"]] == ["right"]
    (marked,) = page["highlighting"]["right"]["exactContent"]
    assert re.sub("<[^>]*>", "", marked).strip("…. ") in text
    assert "".join(re.findall('<span class="em">(.*?)</span>', marked)).startswith(text[:6])


def test_a_document_of_another_language_than_the_questions_is_found(retriever: Retriever, load: Load) -> None:
    load([doc("it", "Die Kreiselpumpe steht still", language="de"), doc("odd", "kreiselpumpe", language="xx")])

    assert sorted(ids(retriever, asked("Kreiselpumpe", language="en"))) == ["it", "odd"]


def test_a_word_of_the_title_alone_finds_the_document(retriever: Retriever, load: Load) -> None:
    load([doc("it", "body", title="Maintenance plans"), doc("other", "body", title="Menu")])

    assert ids(retriever, asked("maintenance plan")) == ["it"]


HOSTILE = (
    "*:*", "*", "?", "id:it", "allow_token_document:s1", "{!term f=id}hidden", "{!func}1", '_query_:"{!all}"', "\\u",
    "\\u00", "\\", '"', '"unclosed', "(", "((", ")", "[a TO", "a:b:c", "+", "-", "--", "!", "&&", "||", "AND", "OR",
    "NOT", "AND OR NOT", "pump AND", "OR pump", "a^", "a^b", "a~", "pump~2", "/re.*/", "$q", "${x}", "`", "\x00",
    "\x1f", "\ud800", "\udfff pump", "\ufeff", "\u202e", "￿", "é" * 500, "x" * 100_000, "w " * 3000,
    "<b>", "&amp;", "…", "’",
    "-pump", "+pump -pump", "-*:* OR *:*", "sort=id", "q.op=OR", "_val_:1", "hidden^100", "日本語", "👍", "①",
)  # fmt: skip


def questions() -> list[Any]:
    own = [pytest.param(text, id=repr(text)[:40]) for text in HOSTILE]
    return [*own, pytest.param(None, id="the fuzz set")]


@pytest.mark.parametrize("text", questions())
def test_words_are_words_whatever_they_look_like(retriever: Retriever, load: Load, text: str | None) -> None:
    load([doc("it", "water pump"), doc("hidden", "water pump hidden", allow_token_document=["s1"])])
    texts = [text] if text is not None else QUERIES

    for one in texts:
        found = {
            *ids(retriever, asked(one, operator="OR")),
            *ids(retriever, asked(one)),
            *ids(retriever, Search(one, Step("asked", (one,)), 10, content="highlighting", language="fr")),
            *listed(retriever, Browse(one, wants_highlighting=True)),
            *listed(retriever, Browse(one, operator="OR", language="de")),
        }
        words = {word.lower() for word in re.findall(r"\w+", one)}
        # Without the words of the document it is not found: nothing was read as "all" or as a field.
        assert found <= ({"it"} if words & {"water", "pump", "pumps"} else set()), one


def test_a_step_whose_words_have_nothing_to_look_for_finds_nothing(retriever: Retriever, load: Load) -> None:
    load([doc("it")])

    for words in ((), ("",), ("***",), ("\x00",)):
        assert retriever.search(Search("", Step("asked", words), 10), PUBLIC_ONLY).documents == ()


# --- narrowing --------------------------------------------------------------------------------------------------------

NARROWINGS = (
    (Restriction("extension", value="pdf"), ["a", "b"]),
    (Restriction("extension", value="PDF"), []),
    (Restriction("extension", value="p*"), []),
    (Restriction("extension", value="*"), []),
    (Restriction("extension", value='we"ird\\ {!x} [y] : z'), ["c"]),
    (Restriction("extension", value="pdf", is_excluded=True), ["c", "d"]),
    (Restriction("extension", low="pa", high="pe"), ["a", "b"]),
    (Restriction("extension", low="we"), ["c"]),
    (Restriction("extension", high="pdf"), ["a", "b", "d"]),
    (Restriction("extension", low="pdf", high="pdf", is_excluded=True), ["c", "d"]),
    (Restriction("last_modified", low="2024-01-01T00:00:00Z"), ["b", "c"]),
    (Restriction("last_modified", low="2023-01-01", high="2024-06-30"), ["a", "b"]),
    (Restriction("last_modified", value="2023-05-01T10:00:00Z"), ["a"]),
    (Restriction("last_modified", low="2023-05-01T00:00:00Z/YEAR", high="2024-05-31T00:00:00Z+1DAY"), ["a", "b"]),
    (Restriction("last_modified", low="NOW/DAY-1000YEARS", high="NOW+1MONTH"), ["a", "b", "c"]),
    (Restriction("last_modified", low="NOW+1YEAR"), []),
    (Restriction("last_modified"), ["a", "b", "c"]),
    (Restriction("extension"), ["a", "b", "c", "d"]),
    (Restriction("extension", value="ascii", alternatives=(Restriction("extension", low="we"),)), ["c", "d"]),
    (
        Restriction("extension", value="ascii", is_excluded=True, alternatives=(Restriction("extension", low="we"),)),
        ["a", "b"],
    ),
    (Restriction("extension", value="ascii", alternatives=(Restriction("extension", value="*"),)), ["d"]),
    (Restriction("no such field", value="x"), []),
    (Restriction("nosuchfield", value="x"), []),
    (Restriction("*", value="*"), []),
)


@pytest.mark.parametrize(("restriction", "wanted"), NARROWINGS, ids=lambda value: str(value)[:70])
def test_a_search_is_narrowed_to_raw_values(
    retriever: Retriever, load: Load, restriction: Restriction, wanted: list[str]
) -> None:
    load(
        [
            doc("a", extension="pdf", last_modified="2023-05-01T10:00:00Z"),
            doc("b", extension="pdf", last_modified="2024-06-01T00:00:00Z"),
            doc("c", extension='we"ird\\ {!x} [y] : z', last_modified="2025-01-01T00:00:00Z"),
            doc("d", extension="ascii"),
        ]
    )

    assert sorted(ids(retriever, asked("pump", restrictions=(restriction,)))) == wanted
    assert sorted(listed(retriever, Browse(None, restrictions=(restriction,)))) == wanted


UNFIT = (
    Restriction("extension", value="lone \ud800"),
    Restriction("extension", low="a", high="lone \ud800"),
    Restriction("last_modified", value="not a date"),
    Restriction("last_modified", low="yesterday"),
    Restriction("last_modified", low='"] OR *:* OR id:["'),
    Restriction("last_modified", low="NOW-1WEEK"),
    Restriction("last_modified", high="2024-13-01"),
    Restriction("last_modified", low="NOW-1DAY", alternatives=(Restriction("last_modified", value="x"),)),
)


@pytest.mark.parametrize("restriction", UNFIT, ids=lambda value: str(value)[:70])
def test_a_value_that_its_field_cannot_have_is_refused(
    retriever: Retriever, load: Load, restriction: Restriction
) -> None:
    """Nothing is found by it, so that to exclude it would show what it was to exclude."""
    load([doc("a", extension="pdf", last_modified="2023-05-01T10:00:00Z")])

    for one in (restriction, replace(restriction, is_excluded=True)):
        with pytest.raises(BadRequest):
            retriever.search(asked("pump", restrictions=(one,)), PUBLIC_ONLY)
        with pytest.raises(BadRequest):
            retriever.browse(Browse(None, restrictions=(one,)), PUBLIC_ONLY)


def test_several_narrowings_must_all_hold(retriever: Retriever, load: Load) -> None:
    load([doc("a", extension="pdf", source="x"), doc("b", extension="pdf", source="y"), doc("c", extension="txt")])
    both = (Restriction("extension", value="pdf"), Restriction("source", value="x", is_excluded=True))

    assert ids(retriever, asked("pump", restrictions=both)) == ["b"]


def test_a_value_is_no_syntax_and_a_bound_is_none_either(retriever: Retriever, load: Load) -> None:
    load([doc(f"d{number:03}", source=text, extension=text) for number, text in enumerate(ALL)])

    for number, text in enumerate(ALL):
        wanted = [f"d{number:03}"]
        for field in ("source", "extension"):
            alone = (Restriction(field, value=text),)
            between = (Restriction(field, low=text, high=text),)
            assert listed(retriever, Browse(None, restrictions=alone)) == wanted, text
            assert listed(retriever, Browse(None, restrictions=between)) == wanted, text


def test_a_range_goes_by_the_numbers_of_characters(retriever: Retriever, load: Load) -> None:
    load([doc(f"d{number:03}", source=text) for number, text in enumerate(ALL)])
    bounds = [None, *sorted(ALL)[::9], *sorted(ALL)[-3:], 'a"', "zz]", "a\\", "\ud7ff\uffff"]

    for low, high in itertools.product(bounds, bounds):
        is_in = [(low is None or low <= text) and (high is None or text <= high) for text in ALL]
        wanted = [f"d{number:03}" for number, is_wanted in enumerate(is_in) if is_wanted]
        narrowed = Browse(None, rows=100, restrictions=(Restriction("source", low=low, high=high),))
        page = browsed(retriever, narrowed)["response"]
        assert page["numFound"] == len(wanted), (low, high)
        assert {row["id"] for row in page["docs"]} <= set(wanted), (low, high)


def test_a_range_is_made_of_all_values_of_a_document_and_of_those_a_user_may_see(
    retriever: Retriever, load: Load
) -> None:
    load([doc("open", source="m"), doc("none"), doc("hers", source="n", allow_token_document=["s1"])])
    between = Browse(None, restrictions=(Restriction("source", low="l", high="o"),))
    outside = Browse(None, restrictions=(Restriction("source", low="l", high="o", is_excluded=True),))

    assert listed(retriever, between) == ["open"]
    assert sorted(listed(retriever, between, who("s1"))) == ["hers", "open"]
    assert listed(retriever, outside, who("s1")) == ["none"]


# --- what comes back --------------------------------------------------------------------------------------------------


def test_a_document_comes_with_what_the_answer_needs(retriever: Retriever, load: Load) -> None:
    text = "Tom & Jerry's <b>pump</b>\n\tis “here”.\r\nÀ bientôt 👍 " + "é" * 1000
    load(
        [
            doc(
                "file://///host/share/a b+c&d.pdf",
                text,
                title="Manual [2] & more",
                url="https://example.org/?a=b&c=d#e",
                preview_content="A preview",
                source="wiki",
                extension="pdf",
                last_modified="2024-06-01T12:30:00Z",
            )
        ]
    )

    (found,) = retriever.search(asked("pump"), PUBLIC_ONLY).documents
    (preview,) = retriever.search(asked("pump", content="preview_content"), PUBLIC_ONLY).documents

    assert found.id == "file://///host/share/a b+c&d.pdf"
    assert found.text == text
    assert (found.field, found.title, found.url) == (
        "exactContent",
        "Manual [2] & more",
        "https://example.org/?a=b&c=d#e",
    )
    assert (found.language, found.last_modified) == ("en", "2024-06-01T12:30:00Z")
    assert (found.meta["source"], found.meta["extension"]) == ("wiki", "pdf")
    assert (preview.field, preview.text) == ("preview_content", "A preview")


def test_a_document_comes_with_the_marks_of_its_places_which_no_plain_search_shows(
    retriever: Retriever, load: Load
) -> None:
    marks = "\n".join(f"{n} page {n + 1}" for n in range(4000))
    load([doc("paged", "a pump", place_marks=marks), doc("bare")])

    found = {one.id: one.places for one in retriever.search(asked("pump"), PUBLIC_ONLY).documents}
    snippets = retriever.search(asked("pump", content="highlighting"), PUBLIC_ONLY).documents
    fetched = retriever.fetch("paged", "exactContent", PUBLIC_ONLY)

    assert found == {"paged": marks, "bare": None}
    assert [one.places for one in snippets] == [None, None]
    assert fetched is not None and fetched.places == marks
    for fields in (None, ("id", "place_marks")):
        assert "page 9" not in str(browsed(retriever, Browse(None, fields=fields)))


def test_a_fetched_document_comes_with_the_stamp_of_its_file_which_no_plain_search_shows(
    retriever: Retriever, load: Load
) -> None:
    load([doc("filed", file_stamp="1 2 3 4711", index_stamp="4711 - - /a"), doc("bare")])

    fetched = [retriever.fetch(name, "exactContent", PUBLIC_ONLY) for name in ("filed", "bare")]

    assert [one.file for one in fetched if one is not None] == ["1 2 3 4711", None]
    for fields in (None, ("id", "file_stamp", "index_stamp")):
        assert "4711" not in str(browsed(retriever, Browse(None, fields=fields)))


def test_a_document_without_title_url_and_preview_breaks_nothing(retriever: Retriever, load: Load) -> None:
    load([{"id": "bare", "exactContent": "pump"}, doc("titled", title="It has one")])

    for content in ("exactContent", "preview_content", "highlighting"):
        found = retriever.search(asked("pump", content=content), PUBLIC_ONLY).documents
        assert {document.id: document.title for document in found} == {"bare": None, "titled": "It has one"}
        assert all(document.url is None for document in found)


@pytest.mark.parametrize(
    "text",
    [
        "The first sentence says nothing. The second has a pump in it. The third says nothing again.",
        "Tom & Jerry's <b>pump</b> costs 5 < 6 &amp; more",
        "pump",
    ],
)
def test_a_snippet_is_plain_text_from_the_document_once(retriever: Retriever, load: Load, text: str) -> None:
    load([doc("it", text)])

    (found,) = retriever.search(asked("pump", content="highlighting", fragment_chars=60), PUBLIC_ONLY).documents

    assert found.field == "highlighting"
    assert "pump" in found.text
    assert found.text in text


@pytest.mark.parametrize("size", [60, 200, 500])
def test_a_snippet_is_whole_sentences_of_at_least_the_size_asked_for(
    retriever: Retriever, load: Load, size: int
) -> None:
    sentences = [f"Sentence {number} tells who looks after the harbour and who pays for it." for number in range(40)]
    sentences[20] = "Sentence 20 tells where the pump of the harbour stands and who may use it."
    load([doc("it", " ".join(sentences))])

    (found,) = retriever.search(asked("pump", content="highlighting", fragment_chars=size), PUBLIC_ONLY).documents

    assert sentences[20] in found.text
    assert found.text.startswith("Sentence ") and found.text.endswith(".")
    assert size <= len(found.text) <= size + 2 * len(sentences[20])


def test_a_snippet_of_no_size_is_the_whole_field(retriever: Retriever, load: Load) -> None:
    text = "pump. " + "Many other sentences stand here. " * 200
    load([doc("it", text)])

    (found,) = retriever.search(asked("pump", content="highlighting", fragment_chars=0), PUBLIC_ONLY).documents

    assert found.text.strip() == text.strip()


def test_a_snippet_is_found_deep_in_a_long_document(retriever: Retriever, load: Load) -> None:
    load([doc("it", "Nothing stands here. " * 10_000 + "At last a pump. " + "Nothing stands here. " * 100)])

    (found,) = retriever.search(asked("pump", content="highlighting", fragment_chars=200), PUBLIC_ONLY).documents

    assert "At last a pump." in found.text
    assert len(found.text) < 1000


def test_a_hit_by_its_title_alone_has_no_snippet(retriever: Retriever, load: Load) -> None:
    load([doc("it", "another text", title="The pump")])

    (found,) = retriever.search(asked("pump", content="highlighting"), PUBLIC_ONLY).documents

    assert found.text == ""


def test_no_more_documents_come_than_asked_for(retriever: Retriever, load: Load) -> None:
    load([doc(f"d{number}") for number in range(9)])

    found = retriever.search(asked("pump", rows=3), PUBLIC_ONLY)

    assert len(found.documents) == 3
    assert found.total == 9


# --- the plain search -------------------------------------------------------------------------------------------------


def test_a_plain_search_pages_through_all_hits(retriever: Retriever, load: Load) -> None:
    load([doc(f"d{number}", title=f"T{number}") for number in range(7)])

    pages = [listed(retriever, Browse(None, start=start, rows=3, sort=("title", False))) for start in (0, 3, 6, 9)]

    assert pages == [["d0", "d1", "d2"], ["d3", "d4", "d5"], ["d6"], []]
    assert browsed(retriever, Browse("pump", start=3, rows=0))["response"]["numFound"] == 7


def test_a_plain_search_among_named_documents_finds_those_alone_that_the_user_may_see(
    retriever: Retriever, load: Load
) -> None:
    load([doc("a", "pump"), doc("b", "valve"), doc("c", "pump"), doc("secret", "pump", allow_token_document=["s1"])])
    named = ("a", "b", "secret", "nowhere", 'x" OR *:*', "\ud800", "a\x1fc")

    assert sorted(listed(retriever, Browse(None, ids=named))) == ["a", "b"]
    assert listed(retriever, Browse("pump", ids=named)) == ["a"]
    assert sorted(listed(retriever, Browse("pump", ids=named), who("s1"))) == ["a", "secret"]
    assert listed(retriever, Browse(None, ids=())) == []
    assert listed(retriever, Browse("pump", without=("a", "nowhere"))) == ["c"]
    assert listed(retriever, Browse("pump", ids=("a", "c"), without=("c",))) == ["a"]


def test_a_plain_search_sorts_by_title_date_and_score(retriever: Retriever, load: Load) -> None:
    load(
        [
            doc("x", "pump", title="banana", last_modified="2024-01-01T00:00:00Z"),
            doc("y", "pump pump pump", title="Apple", last_modified="2025-01-01T00:00:00Z"),
            doc("z", "pump " + "word " * 100, title="cherry", last_modified="2023-01-01T00:00:00Z"),
        ]
    )

    assert listed(retriever, Browse("pump", sort=("title", False))) == ["y", "x", "z"]
    assert listed(retriever, Browse("pump", sort=("title", True))) == ["z", "x", "y"]
    assert listed(retriever, Browse(None, sort=("last_modified", True))) == ["y", "x", "z"]
    assert listed(retriever, Browse(None, sort=("last_modified", False))) == ["z", "x", "y"]
    assert listed(retriever, Browse("pump")) == ["y", "x", "z"]
    assert listed(retriever, Browse("pump", sort=("score", False))) == ["z", "x", "y"]


def test_a_plain_search_is_solrs_own_json(retriever: Retriever, load: Load) -> None:
    load([doc("it", "Tom & the pump", title="A title", extension="pdf")])

    page = browsed(retriever, Browse("pump", facet_fields=("extension",), wants_highlighting=True))

    assert page["responseHeader"]["status"] == 0
    assert "params" not in page["responseHeader"]
    assert page["response"]["numFound"] == 1
    assert page["response"]["start"] == 0
    assert page["facet_counts"]["facet_fields"] == {"extension": ["pdf", 1]}
    snippets = [snippet for found in page["highlighting"]["it"].values() for snippet in found]
    assert 'Tom &amp; the <span class="em">pump</span>' in snippets
    assert "facet_counts" not in browsed(retriever, Browse("pump"))
    assert "highlighting" not in browsed(retriever, Browse("pump"))


def test_a_plain_search_returns_the_fields_asked_for(retriever: Retriever, load: Load) -> None:
    load([doc("it", "pump", url="u", extension="pdf")])

    (row,) = browsed(retriever, Browse("pump", fields=("id", "url", "score", "nosuchfield")))["response"]["docs"]
    (whole,) = browsed(retriever, Browse("pump"))["response"]["docs"]

    assert set(row) == {"id", "url", "score"}
    assert {"id", "exactContent", "url", "extension", "language"} <= set(whole)


# --- one document -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "identifier",
    [
        "plain",
        "with space",
        'a"b',
        "{!term f=id}other",
        "*",
        "id:other",
        "file:///a/b%20c?d=e&f",
        "é日👍",
        "a\\b",
        "a\nb",
    ],
)
def test_a_document_is_opened_by_its_whole_id(retriever: Retriever, load: Load, identifier: str) -> None:
    load([doc(identifier, "its text", title="T"), doc("other", "another")])

    found = retriever.fetch(identifier, "exactContent", PUBLIC_ONLY)

    assert found is not None
    assert (found.id, found.text, found.field, found.title) == (identifier, "its text", "exactContent", "T")
    assert retriever.fetch(identifier[:-1], "exactContent", PUBLIC_ONLY) is None


def test_a_field_that_the_document_lacks_is_empty_and_one_that_none_has_is_absent(
    retriever: Retriever, load: Load
) -> None:
    load([doc("it", "its text")])

    empty = retriever.fetch("it", "preview_content", PUBLIC_ONLY)

    assert empty is not None
    assert empty.text == ""
    assert retriever.fetch("it", "nosuchfield", PUBLIC_ONLY) is None
    assert retriever.fetch("it", "*", PUBLIC_ONLY) is None
    assert retriever.fetch("\ud800", "exactContent", PUBLIC_ONLY) is None


def test_a_working_engine_says_so(retriever: Retriever, load: Load) -> None:
    load([doc("it")])

    assert retriever.probe() is None


CONTENTS: tuple[Content, ...] = ("exactContent", "preview_content", "highlighting")


@pytest.mark.parametrize("content", CONTENTS)
def test_the_same_question_finds_the_same_documents_whatever_is_read_of_them(
    retriever: Retriever, load: Load, content: Content
) -> None:
    load([doc(f"d{number}", "pump " * number + "water") for number in range(1, 9)])

    assert ids(retriever, asked("pump", content=content)) == ids(retriever, asked("pump"))
