from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace

import pytest

from datafari_rag.core.ask import Ask, Attachment, ChatMessage, TokenBudget
from datafari_rag.core.documents import Document
from datafari_rag.core.passages.budget_fitting import Selected, evidence_for
from datafari_rag.core.settings.table import Settings

SENTENCES = "The ferry leaves at nine. " + "Nothing else is said of it here at all. " * 200


def words(text: str) -> int:
    return len(text.split())


def chosen(
    ask: Ask, *documents: Document, count: Callable[[str], int] = words, language: str = "en", **settings: object
) -> Selected:
    chosen_by = replace(Settings(), **settings)  # type: ignore[arg-type]
    return evidence_for(ask, documents, language=language, settings=chosen_by, count=count)


def document(number: int, text: str = SENTENCES) -> Document:
    return Document(f"d{number}", text, title=f"T{number}", score=10.0 - number)


ASK = Ask("When does the ferry leave?")


def test_at_most_max_files_documents_are_taken_best_first() -> None:
    found = chosen(ASK, *(document(number, f"The ferry leaves at {number}.") for number in range(6)))

    assert len(found.extracts) == 3
    assert [extract.number for extract in found.extracts] == [1, 2, 3]


def test_an_asks_own_number_of_documents_wins_over_the_setting() -> None:
    documents = [document(number, f"The ferry leaves at {number}.") for number in range(6)]

    assert len(chosen(replace(ASK, max_documents=5), *documents).extracts) == 5
    assert len(chosen(replace(ASK, max_documents=1), *documents).extracts) == 1


def test_the_characters_of_all_extracts_together_stay_within_the_setting() -> None:
    found = chosen(ASK, document(1), document(2), rag_max_json_length=500)

    assert 0 < sum(len(extract.text) for extract in found.extracts) <= 500
    assert "The ferry leaves at nine." in found.extracts[0].text


def test_head_takes_the_beginning_wherever_the_answer_is() -> None:
    last = document(1, "Nothing is said of it here. " * 40 + "The ferry leaves at nine.")
    head, best = (chosen(ASK, last, rag_max_json_length=300, rag_extract=how) for how in ("head", "passages"))

    assert head.extracts[0].text.startswith("Nothing is said of it here.")
    assert "ferry" not in head.extracts[0].text
    assert "The ferry leaves at nine." in best.extracts[0].text


SHORT = document(1, "The ferry leaves at nine. Then it comes back at noon, as on each day.")
FILLER = "It is so. " * 60
HEADED = document(1, f"# Timetable\n\n{FILLER}\n\n## Ferry\n\n{FILLER}The ferry leaves at nine. {FILLER}")
ANSWER, RESERVE, FRAME = 250, 150, 60
TAKEN = ANSWER + RESERVE + FRAME + len(ASK.question) + len(SHORT.text)
"""Tokens of a window in which SHORT fits as a whole, where each character is a token."""

WINDOWS = {
    "one document": (ASK, (SHORT,), TAKEN),
    "two documents have a frame each": (ASK, (SHORT, document(2, "Yes.")), TAKEN + FRAME + len("Yes.")),
    "each turn costs eight tokens besides its text": (
        replace(ASK, history=(ChatMessage("user", "x" * 30), ChatMessage("assistant", "y" * 12))),
        (SHORT,),
        TAKEN + 30 + 8 + 12 + 8,
    ),
    "a shorter answer leaves more": (replace(ASK, max_tokens=100), (SHORT,), TAKEN - ANSWER + 100),
    "a longer answer leaves less": (replace(ASK, max_tokens=400), (SHORT,), TAKEN - ANSWER + 400),
    "of a caller with the whole conversation a longer answer takes no room": (
        replace(ASK, max_tokens=400, has_whole_history=True),
        (SHORT,),
        TAKEN,
    ),
}


@pytest.mark.parametrize(("ask", "documents", "window"), WINDOWS.values(), ids=WINDOWS)
def test_what_fits_the_window_to_the_token_is_whole_and_one_token_less_cuts_it(
    ask: Ask, documents: tuple[Document, ...], window: int
) -> None:
    fitting, cut = (chosen(ask, *documents, count=len, llm_context_window=window - less) for less in (0, 1))

    assert [extract.text for extract in fitting.extracts] == [one.text for one in documents]
    assert [extract.text for extract in cut.extracts] != [one.text for one in documents]


def test_the_headings_above_a_passage_count_in_the_window() -> None:
    few = {"count": len, "rag_max_json_length": 60}
    (wanted,) = chosen(ASK, HEADED, llm_context_window=9000, **few).extracts  # type: ignore[arg-type]
    assert [path for _, path in wanted.paths] == ["Timetable"]
    window = ANSWER + RESERVE + FRAME + len(ASK.question) + len(wanted.text) + len("Timetable") + 2
    fitting, cut = (
        chosen(ASK, HEADED, llm_context_window=window - less, **few).extracts  # type: ignore[arg-type]
        for less in (0, 1)
    )
    assert fitting == (wanted,)
    assert cut != (wanted,)


def test_where_not_all_fits_the_first_choice_takes_most_of_the_window() -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text)

    many = [document(number, "The ferry leaves at nine. " + "The ferry is so. " * 900) for number in range(6)]
    found = chosen(ASK, *many, count=count, llm_context_window=4000, rag_max_json_length=100_000)
    room = 4000 - ANSWER - RESERVE - len(ASK.question) - 3 * FRAME
    assert 0.8 * room < sum(len(extract.text) for extract in found.extracts) <= 0.95 * room
    assert len([text for text in counted if text == found.extracts[0].text]) == 1
    assert len([text for text in counted if len(text) > 1000 and text != found.extracts[0].text]) <= 1, "the sample"


def test_tokens_are_estimated_from_six_stretches_of_each_of_the_three_best_documents() -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text)

    texts = ["".join(f"{name}{number:03} " for number in range(460)) for name in "abcd"]
    chosen(ASK, *(document(number, text) for number, text in enumerate(texts)), count=count)
    stretches = (text[at : at + 300] for text in texts[:3] for at in (0, 400, 800, 1200, 1600, 2000))
    assert "".join(stretches) in counted


def test_what_is_chosen_is_a_value() -> None:
    found = Selected(())
    assert (found.candidates, found.is_without_room, found.evidence) == ((), False, None)
    with pytest.raises(FrozenInstanceError):
        found.evidence = 1.0  # type: ignore[misc]
    assert not hasattr(found, "__dict__")


@pytest.mark.parametrize("window", [1200, 800, 600])
def test_what_the_model_sees_fits_its_window_with_the_answers_space_kept_free(window: int) -> None:
    found = chosen(ASK, document(1), document(2), llm_context_window=window)

    assert found.extracts
    assert sum(words(extract.text) for extract in found.extracts) <= window - 250 - 150


LONG_WORDS, SHORT_WORDS = "incomprehensibilities " * 400, "The ferry is at 9 or at 10 or at 11, as we do it. "


@pytest.mark.parametrize("window", [900, 560, 500, 470, 467])
def test_where_the_sample_misleads_what_is_chosen_fits_all_the_same(window: int) -> None:
    """The words of the answer are much shorter than those that the estimate is made from."""
    found = chosen(ASK, document(1, LONG_WORDS + SHORT_WORDS * 8 + LONG_WORDS), llm_context_window=window)

    assert sum(words(extract.text) for extract in found.extracts) <= window - 250 - 150


def test_the_conversation_counts_in_the_window() -> None:
    history = (ChatMessage("user", "word " * 300),)
    alone = chosen(ASK, document(1), llm_context_window=1200)
    after = chosen(replace(ASK, history=history), document(1), llm_context_window=1200)

    assert words(after.extracts[0].text) <= words(alone.extracts[0].text) - 300 + 60


def test_a_window_that_is_full_leaves_no_room_for_documents() -> None:
    found = chosen(ASK, document(1), llm_context_window=400)
    assert (found.extracts, found.is_without_room) == ((), True)


def test_documents_without_text_and_few_characters_are_another_matter() -> None:
    assert not chosen(ASK, document(1, " ")).is_without_room
    assert not chosen(ASK, document(1), rag_max_json_length=1).is_without_room


def test_a_file_sent_along_is_a_source_before_what_was_found() -> None:
    asked = replace(ASK, attachments=(Attachment("plan.txt", "The ferry leaves at ten today."),))
    found = chosen(asked, *(document(number, f"The ferry leaves at {number}.") for number in range(6)))

    assert found.extracts[0].document.title == "plan.txt"
    assert len(found.extracts) == 4


def test_nothing_found_is_nothing_chosen() -> None:
    assert chosen(ASK).extracts == ()


def budget(documents: int, node: int = 20, most: int = 0) -> Ask:
    return replace(ASK, token_budget=TokenBudget(documents, node, most))


def test_a_token_budget_takes_the_best_nodes_that_fit() -> None:
    found = chosen(budget(30), document(1), document(2))

    assert found.extracts
    assert sum(words(e.document.text[p.start : p.end]) for e in found.extracts for p in e.passages) <= 30
    assert "The ferry leaves at nine." in found.extracts[0].text


def test_a_token_budget_may_bound_the_documents() -> None:
    documents = [document(number, f"The ferry leaves at {number}.") for number in range(6)]

    assert len(chosen(budget(1000, most=2), *documents).extracts) == 2
    assert len(chosen(budget(1000), *documents).extracts) == 6


def test_a_token_budget_of_nothing_is_no_documents() -> None:
    assert chosen(budget(0), document(1)).extracts == ()


def test_nodes_are_of_the_documents_that_other_dialects_show_in_their_order() -> None:
    documents = tuple(document(number) for number in range(6))
    shown = [extract.document.id for extract in chosen(replace(ASK, max_documents=2), *documents).extracts]
    nodes = [extract.document.id for extract in chosen(budget(1000, most=2), *documents).extracts]
    assert nodes == shown


def test_a_long_conversation_changes_neither_documents_nor_their_bound() -> None:
    documents = tuple(document(number) for number in range(6))
    talk = (ChatMessage("user", "word " * 6000),)
    nodes = [extract.document.id for extract in chosen(budget(1000, most=2), *documents).extracts]
    long = chosen(replace(budget(1000, most=2), history=talk), *documents, llm_context_window=9000)
    assert [extract.document.id for extract in long.extracts] == nodes


def test_a_small_budget_drops_the_last_documents_and_not_the_first() -> None:
    documents = (document(1), document(2), document(3))
    shown = [extract.document.id for extract in chosen(replace(ASK, max_documents=3), *documents).extracts]
    for tokens in (20, 40, 60, 1000):
        nodes = [extract.document.id for extract in chosen(budget(tokens, most=3), *documents).extracts]
        assert nodes == shown[: len(nodes)]


def test_the_passages_of_a_tiny_budget_are_whole_words_and_fit_it() -> None:
    running = "ferries of the harbour and their times without any end " * 40
    found = chosen(budget(20), document(1, running))

    (extract,) = found.extracts
    for passage in extract.passages:
        cut = running[passage.start : passage.end]
        assert cut.strip() and set(cut.split()) <= set(running.split())
    assert words(extract.text.replace(" … ", " ")) <= 20


def test_what_is_left_over_of_a_cut_sentence_is_no_node() -> None:
    running = "ferry " + "times and harbours without any end " * 20 + "x. y"
    found = chosen(budget(1000, node=30), document(1, running), document(2, "Ferry."))

    assert all(p.end - p.start >= 16 for p in found.extracts[0].passages)
    assert "Ferry." in [extract.text for extract in found.extracts]


def test_sixteen_tokens_are_the_least_in_which_there_is_a_node_and_it_may_take_all_of_them() -> None:
    text = "The ferry leaves at nine and comes back at noon as it does on each day."
    assert [extract.text for extract in chosen(budget(16), document(1, text)).extracts] == [text]
    assert chosen(budget(15), document(1, text)).extracts == ()


def test_a_node_is_its_text_alone_without_the_headings_above_it() -> None:
    found = chosen(budget(16, node=16), HEADED)
    assert [extract.paths for extract in found.extracts] == [()]


def test_files_sent_along_are_numbered_as_they_came() -> None:
    files = (Attachment("a.txt", "The ferry leaves at ten."), Attachment("b.txt", "The ferry leaves on Sundays alone."))
    found = chosen(replace(ASK, attachments=files, max_documents=1), document(1, "The ferry leaves at nine."))
    assert {(extract.document.id, extract.document.title) for extract in found.extracts} >= {
        ("attachment:1", "a.txt"),
        ("attachment:2", "b.txt"),
    }
