"""The report of questions as values: masking, problems, groups, people, and nothing of documents that are hidden."""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datafari_rag.core.answer.question_report import (
    MASK,
    MAX_CHARS,
    MOST_GROUPS,
    KeptQuestion,
    QuestionReport,
    ReadableDocument,
    SeenQuestion,
    asked_under,
    documents_in,
    evaluation_rows,
    groups_of,
    joined,
    masked,
    report_of,
)
from datafari_rag.core.query.plan import content_words

DAY_S = 86_400.0


def kept(
    name: str, person: str = "k:ann", text: str = "holiday rules", at_s: float = 1e9, **more: object
) -> KeptQuestion:
    return replace(KeptQuestion(name, at_s, person, text, "en", "ok", ("d1",)), **more)  # type: ignore[arg-type]


def read(questions: Sequence[KeptQuestion], *ids: str, old_days: int = 365) -> QuestionReport:
    readable = {one: ReadableDocument(one, one.upper(), 0.0) for one in ids}
    asked = asked_under(questions, readable.keys())
    return report_of(asked, joined(groups_of(asked), (), None), readable, since_s=0.0, old_days=old_days)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("holiday of ann@example.org now", f"holiday of {MASK} now"),
        ("number ann＠example.org", f"number {MASK}"),
        ("pay slip 123456", f"pay slip {MASK}"),
        ("pay slip 12345", "pay slip 12345"),
        ("number 1 85 05 78 006 084 36 please", f"number {MASK} please"),
        ("call +33 (0)1-23.45.67", f"call + {MASK}"),
        ("١٢٣٤٥٦ pay", f"{MASK} pay"),
        ("key a1b2c3d4", "key a1b2c3d4"),
        ("key sk-abcdefghijklm1", f"key {MASK}"),
        ("internationalisation rules", "internationalisation rules"),
        ("a1b2c3d4e5f6", MASK),
    ],
)
def test_what_may_be_a_secret_is_masked(text: str, expected: str) -> None:
    assert masked(text) == expected


@given(st.text(max_size=200), st.integers(100_000, 10**20), st.text(max_size=200))
def test_no_long_number_is_kept_whatever_is_around_it(before: str, number: int, after: str) -> None:
    assert str(number) not in masked(f"{before}{number}{after}")


@pytest.mark.parametrize("text", ["1 " * 2_000, "1,," * 1_300, "12345x" * 600, "@" * 4_000, "1" * 4_000])
def test_hostile_texts_take_no_room(text: str) -> None:
    assert len(masked(text)) <= MAX_CHARS


@pytest.mark.parametrize(
    ("more", "problems"),
    [
        ({}, ()),
        ({"outcome": "noDocuments", "sources": ()}, ("nothingFound",)),
        ({"sources": ()}, ("nothingFound",)),
        ({"checked": 2, "proved": 0}, ("notProved",)),
        ({"checked": 2, "proved": 1}, ()),
        ({"is_near": True}, ("nearOnly",)),
        ({"outcome": "modelTimeout"}, ("modelFailed",)),
        ({"outcome": "noAnswer"}, ("modelFailed",)),
        ({"outcome": "searchUnavailable", "sources": ()}, ()),
        ({"outcome": "aborted"}, ()),
        ({"is_disliked": True, "is_near": True}, ("nearOnly", "thumbsDown")),
    ],
)
def test_what_is_wrong_with_an_answer_has_its_name(more: dict[str, object], problems: tuple[str, ...]) -> None:
    assert asked_under([kept("1", **more)], {"d1"})[0].problems == problems


@pytest.mark.parametrize(
    ("later", "is_again"),
    [
        ({"at_s": 1e9 + 120}, True),
        ({"at_s": 1e9 + 121}, False),
        ({"at_s": 1e9 - 1}, False),
        ({"person": "k:bob"}, False),
        ({"sources": ("d2",)}, False),
    ],
)
def test_asked_again_is_the_same_person_soon_with_a_document_of_before(
    later: dict[str, object], is_again: bool
) -> None:
    first, second = asked_under([kept("1"), kept("2", text="other words", **later)], {"d1", "d2"})
    assert (first.problems, second.problems) == (("askedAgain",) if is_again else (), ())


def test_those_who_are_not_signed_in_are_nobody_s_next_question() -> None:
    assert all(not one.problems for one in asked_under([kept("1", ""), kept("2", "")], {"d1"}))


def test_a_document_that_is_not_readable_makes_no_question_asked_again() -> None:
    two = [kept("1", sources=("d1", "hidden")), kept("2", sources=("d2", "hidden"))]
    assert all(not one.problems for one in asked_under(two, {"d1", "d2"}))


def test_a_group_has_the_same_content_words_in_any_order_and_form() -> None:
    texts = ("What are the holiday rules?", "holidays: which rule", "rules of parking")
    found = read([kept(str(n), f"k:{n}", text, is_near=True) for n, text in enumerate(texts)], "d1")
    assert sorted(group.count for group in found.groups) == [1, 2]


def test_what_one_person_wrote_behind_a_text_of_many_is_not_shown() -> None:
    text = " ".join(f"word{n}" for n in range(70))
    questions = [kept(str(n), f"k:{n}", f"{text} mine{n}", is_near=True) for n in range(3)]
    assert [group.texts for group in read(questions, "d1").groups] == [(), (), ()]


@pytest.mark.parametrize(
    ("people", "is_shown"),
    [
        (("k:a", "k:b", "k:c"), True),
        (("k:a", "k:b", "k:b"), False),
        (("k:a", "k:b", "l:a"), False),
        (("k:a", "k:b", ""), False),
        (("", "", ""), False),
    ],
)
def test_a_text_is_shown_when_three_people_of_one_key_asked_it(people: Sequence[str], is_shown: bool) -> None:
    found = read([kept(str(n), person, is_near=True) for n, person in enumerate(people)], "d1")
    (group,) = found.groups
    assert bool(group.texts) == is_shown == bool(found.words) == bool(evaluation_rows(group))


def test_people_are_counted_by_what_the_reader_may_know_of() -> None:
    questions = [kept(str(n), f"k:{n}", is_near=True, sources=("d1" if n else "hidden",)) for n in range(3)]
    (group,) = read(questions, "d1").groups
    assert (group.count, group.people, group.texts) == (2, 2, ())


LONG = "one tower two gardens three rivers four bridges"


@pytest.mark.parametrize(("text", "is_there"), [(LONG, False), (LONG.removesuffix(" bridges"), True)])
def test_a_long_question_is_left_out_where_one_document_of_its_group_is_not_readable(text: str, is_there: bool) -> None:
    questions = [kept(str(n), f"k:{n}", text, is_near=True, sources=("d1", "d2")) for n in range(3)]
    assert bool(read(questions, "d1").groups) == is_there
    assert read(questions, "d1", "d2").groups


def test_a_long_question_without_spaces_between_words_is_long_too() -> None:
    text = "员工每年可以享受二十五天带薪假期"
    assert not read([kept("1", text=text, language="zh", is_near=True, sources=("d1", "d2"))], "d1").groups


@given(
    st.lists(
        st.sampled_from(["the", "merger", "is", "planned", "for", "Mai", "x-y", "l'an", "員工每年享受", "a.b", "42"])
    )
)
def test_a_passage_of_no_document_whatever_is_shown(words: Sequence[str]) -> None:
    """Eight words in a row would be one; which documents hold them need not be known."""
    passage = " ".join(words) or "none"
    (group,) = read([kept(str(n), f"k:{n}", passage, is_near=True) for n in range(3)], "d1").groups
    for shown in group.texts:
        assert len(re.findall(r"\w+", shown.text)) < 8
        assert shown.text == passage or {*shown.text.split()} <= {*content_words(passage, "en")}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("how many days of holiday do I have", "days holiday"),
        ("one tower two gardens three rivers four bridges five", "tower two gardens three rivers four bridges"),
        ("seven words of it are all shown", "seven words of it are all shown"),
    ],
)
def test_a_long_question_is_shown_as_its_first_content_words(text: str, shown: str) -> None:
    (group,) = read([kept(str(n), f"k:{n}", text, is_near=True) for n in range(3)], "d1").groups
    assert [one.text for one in group.texts] == [shown]


def test_of_a_group_in_several_words_each_text_has_its_own_right_documents() -> None:
    questions = [
        kept(f"{text}{n}", f"k:{n}", text, sources=(one,), cited=(one,), is_near=n == 0)
        for text, one in (("holiday rules", "d1"), ("annual leave", "d2"))
        for n in range(3)
    ]
    readable = {one: ReadableDocument(one) for one in ("d1", "d2")}
    asked = asked_under(questions, readable.keys())
    near = joined(groups_of(asked), vectors((1, 0), (1, 0)), 0.06)
    (group,) = report_of(asked, near, readable, since_s=0.0, old_days=1).groups
    assert {str(row["question"]): row["doc_ids"] for row in evaluation_rows(group)} == {
        "holiday rules": ["d1"],
        "annual leave": ["d2"],
    }


IDS = ("d1", "d2", "h1", "h2")
QUESTIONS = st.lists(
    st.builds(
        lambda person, text, outcome, shown, cited, proved, at_s: (person, text, outcome, shown, cited, proved, at_s),
        st.sampled_from(["k:a", "k:b", "k:c", "l:a", ""]),
        st.sampled_from(["holiday rules", "rule of holidays", "parking", LONG]),
        st.sampled_from(["ok", "noDocuments", "modelTimeout"]),
        st.lists(st.sampled_from(IDS), max_size=3, unique=True),
        st.lists(st.sampled_from(IDS), max_size=2, unique=True),
        st.integers(0, 2),
        st.floats(1e9, 1e9 + 300),
    ),
    max_size=12,
)


def made(rows: Sequence[tuple[object, ...]], name: dict[str, str]) -> list[KeptQuestion]:
    return [
        KeptQuestion(
            f"q{n}",
            at_s,  # type: ignore[arg-type]
            person,  # type: ignore[arg-type]
            text,  # type: ignore[arg-type]
            "en",
            outcome,  # type: ignore[arg-type]
            tuple(name.get(one, one) for one in shown),  # type: ignore[attr-defined]
            tuple(name.get(one, one) for one in cited if one in shown),  # type: ignore[attr-defined, operator]
            2,
            proved,  # type: ignore[arg-type]
        )
        for n, (person, text, outcome, shown, cited, proved, at_s) in enumerate(rows)
    ]


@given(QUESTIONS)
def test_a_report_tells_nothing_of_which_documents_its_reader_may_not_see(rows: Sequence[tuple[object, ...]]) -> None:
    one = read(made(rows, {}), "d1", "d2")
    assert one == read(made(rows, {"h1": "others", "h2": "more"}), "d1", "d2")
    named = {document.id for counts in one.documents.values() for document, _ in counts}
    named |= {document.id for group in one.groups for document, _ in group.cited}
    assert named | {document for group in one.groups for text in group.texts for document in text.right} <= {"d1", "d2"}


@given(QUESTIONS)
def test_questions_for_which_only_hidden_documents_were_found_might_as_well_not_be(
    rows: Sequence[tuple[object, ...]],
) -> None:
    every = made(rows, {})
    hidden = [one for one in every if one.sources and not {"d1", "d2"} & {*one.sources}]
    if not any(one.text == LONG for one in every):
        assert read(every, "d1", "d2") == read([one for one in every if one not in hidden], "d1", "d2")


def test_documents_are_cited_often_never_cited_and_old_when_cited() -> None:
    questions = [
        kept("1", sources=("d1", "d2"), cited=("d1",)),
        kept("2", sources=("d1", "d2", "hidden"), cited=("d1", "hidden")),
        kept("3", sources=("d3",), cited=("d3",), at_s=5 * DAY_S),
    ]
    found = read(questions, "d1", "d2", "d3", old_days=5)
    assert {name: [(one.id, count) for one, count in counts] for name, counts in found.documents.items()} == {
        "citedOften": [("d1", 2), ("d3", 1)],
        "neverCited": [("d2", 2)],
        "citedOld": [("d1", 2)],
    }


def vectors(*degrees: tuple[float, float]) -> list[array[float]]:
    return [array("f", one) for one in degrees]


def test_groups_near_in_meaning_are_one_and_each_text_needs_its_own_people() -> None:
    questions = [kept(str(n), f"k:{n}", "holiday rules", is_near=True) for n in range(3)]
    questions += [kept("x", "k:x", "annual leave", is_near=True), kept("y", "k:y", "parking", is_near=True)]
    readable = {"d1": ReadableDocument("d1")}
    asked = asked_under(questions, readable.keys())
    groups = groups_of(asked)
    near = joined(groups, vectors((1, 0), (0.9, 0.43), (0, 1)), 0.06)
    found = report_of(asked, near, readable, since_s=0.0, old_days=1).groups
    assert [(group.count, group.people, [one.text for one in group.texts]) for group in found] == [
        (4, 4, ["holiday rules"]),
        (1, 1, []),
    ]
    assert len(joined(groups, vectors((1, 0), (0.9, 0.43), (0, 1)), None)) == 3


def test_rows_for_an_evaluation_have_the_documents_of_good_answers_alone() -> None:
    questions = [
        kept("bad", "k:0", cited=("d1",), is_disliked=True),
        kept("good", "k:1", cited=("d2",), sources=("d2",)),
    ]
    (group,) = read([*questions, kept("3", "k:2")], "d1", "d2").groups
    expected = {"id": "bad-1", "set": "report", "question": "holiday rules", "doc_ids": ["d2"], "language": "en"}
    assert evaluation_rows(group) == [expected]


def test_words_are_those_of_the_texts_that_are_shown() -> None:
    questions = [kept(str(n), f"k:{n}", "The Zeppelin rules", is_near=True) for n in range(3)]
    found = read([*questions, kept("9", "k:9", "secret plan", is_near=True)], "d1")
    assert found.words == {"zeppelin": "en", "rules": "en"}
    (shown,) = (text for group in found.groups for text in group.texts)
    assert shown.words == ("zeppelin", "rules")


def test_twenty_thousand_questions_make_a_report_of_bounded_size() -> None:
    questions = [kept(str(n), f"k:{n % 50}", f"word{n % 3_000} rules", is_near=True) for n in range(20_000)]
    asked: list[SeenQuestion] = asked_under(questions, {"d1"})
    assert len(asked) == 20_000 and documents_in(questions) == ("d1",)
    assert len(read(questions, "d1").groups) == MOST_GROUPS
