import pytest

from datafari_rag.core.query.plan import MAX_WORDS, own_words, plain_step, steps_for
from datafari_rag.core.search_request import Step
from tests.hostile_texts import QUERIES

HOSTILE = [
    "*:*", "*", "?", "{!lucene}id:*", "title:secret OR *:*", '"', "a AND", "NOT", "\\", "(((", "]]>", "\x00", "\ud800",
    "' OR 1=1 --", "🙂", "_query_:\"{!func}1\"", "content:[* TO *]", "a~0.5^100", "\u202e\u200b",
]  # fmt: skip


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        pytest.param(
            "When does the last ferry to the island leave?",
            [("asked", "AND", 1)],
            id="a short sentence requires any of its words from the start",
        ),
        pytest.param(
            "When does the last evening ferry from Harwich harbour to the Dutch coast leave on Easter Sunday morning?",
            [("asked", "AND", 20), ("any word", "OR", None)],
            id="a long sentence requires a fifth of its words from the start",
        ),
        pytest.param("What is the fare?", [("asked", "AND", 1)], id="one word of its own is all there is to relax"),
        pytest.param(
            "island ferry last departure",
            [("asked", "AND", None), ("a third of the words", "AND", 34), ("any word", "OR", None)],
            id="key words mean all of them",
        ),
        pytest.param(
            "ferry fare", [("asked", "AND", None), ("a third of the words", "AND", 1)], id="few key words, then any"
        ),
        pytest.param("fare", [("asked", "AND", None)], id="one key word is all there is"),
    ],
)
def test_each_step_is_looser_than_the_one_before(question: str, expected: list[tuple[str, str, int | None]]) -> None:
    steps = steps_for(question, language="en", operator="AND")

    assert [(step.name, step.operator, step.min_match) for step in steps] == expected


def test_a_sentence_is_searched_without_the_words_that_only_ask() -> None:
    steps = steps_for("When does the last ferry to the island leave?", language="en", operator="AND")

    assert [step.words for step in steps] == [("last", "ferry", "island", "leave")]


def test_a_run_of_an_unspaced_script_is_a_sentence_when_it_is_long() -> None:
    (short, *_), (long, *_) = (
        steps_for(text, language="zh", operator="AND") for text in ("渡轮时间", "渡轮几点从港口出发")
    )
    assert (short.min_match, long.min_match) == (None, 1)
    assert long.words[:2] == ("渡轮", "轮几")


def test_with_or_words_that_only_ask_are_not_searched() -> None:
    (step,) = steps_for("What is the fare?", language="en", operator="OR")
    assert step == Step("asked", ("fare",), "OR")


def test_a_question_of_stop_words_alone_is_searched_as_it_stands() -> None:
    for operator in ("AND", "OR"):
        for step in steps_for("to be or not to be", language="en", operator=operator):
            assert step.words == ("to", "be", "or", "not")


@pytest.mark.parametrize("question", HOSTILE, ids=repr)
def test_no_step_is_empty_and_no_word_is_syntax(question: str) -> None:
    for operator in ("AND", "OR"):
        for step in steps_for(question, language="en", operator=operator):
            assert step.words
            assert all(any(character.isalnum() for character in word) for word in step.words)
            assert not any(mark in word for word in step.words for mark in '*?(){}[]"~^\\ ')


def test_no_hostile_query_makes_an_empty_step() -> None:
    for text in QUERIES:
        assert all(step.words for step in steps_for(text, language="en", operator="AND"))


def test_a_pasted_page_is_not_searched_word_by_word() -> None:
    page = " ".join(f"word{number}" for number in range(500))
    assert all(len(s.words) == MAX_WORDS for s in steps_for(page, language="en", operator="AND"))


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("What does the IT policy say?", ("IT", "policy")),
        ("what does it say about us?", ()),
        ("WHAT DOES IT SAY ABOUT US?", ()),
        ("Does the US office work?", ("US", "office", "work")),
    ],
)
def test_a_stop_word_in_capitals_among_others_is_a_name(question: str, words: tuple[str, ...]) -> None:
    assert tuple(word for word in own_words(question, "en") if word.lower() != "say") == words


@pytest.mark.parametrize(
    ("question", "language", "has"),
    [
        ("How do I install it?", "en", True),
        ("Why?", "en", False),
        ("And what about this?", "en", False),
        ("Et pourquoi ?", "fr", False),
        ("Et le prix ?", "fr", True),
        ("", "en", False),
    ],
    ids=repr,
)
def test_a_question_has_words_of_its_own_or_not(question: str, language: str, has: bool) -> None:
    assert bool(own_words(question, language)) is has


@pytest.mark.parametrize(
    ("step", "rule"),
    [
        pytest.param(Step("asked", ("a", "b")), "AND", id="all words"),
        pytest.param(Step("asked", ("a", "b"), "OR"), "OR", id="any word"),
        pytest.param(Step("asked", ("a", "b"), "AND", 1), "OR", id="any word of a sentence"),
        pytest.param(Step("asked", ("a", "b"), "AND", 20), "20%", id="a share"),
    ],
)
def test_the_rule_of_a_step_is_what_is_sent_and_not_what_was_set(step: Step, rule: str) -> None:
    assert step.rule == rule


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("How many days of leave does an employee have?", ("days", "leave", "employee"), id="a question"),
        pytest.param("leave days", ("leave", "days"), id="key words"),
        pytest.param("how to", ("how", "to"), id="nothing but such words"),
        pytest.param("", (), id="nothing"),
    ],
)
def test_a_plain_search_needs_no_word_that_only_asks(text: str, words: tuple[str, ...]) -> None:
    step = plain_step(text, language="en", operator="AND")
    assert (step.words, step.operator, step.min_match) == (words, "AND", None)
