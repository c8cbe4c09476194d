from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from datafari_rag.core.ask import Ask, Attachment, ChatMessage, TokenBudget
from datafari_rag.core.documents import Document
from datafari_rag.core.evidence.budget import Selected, evidence_for
from tests.settings import settings_with

SENTENCES = "The ferry leaves at nine. " + "Nothing else is said of it here at all. " * 200


def words(text: str) -> int:
    return len(text.split())


def chosen(
    ask: Ask, *documents: Document, count: Callable[[str], int] = words, language: str = "en", **settings: object
) -> Selected:
    chosen_by = settings_with(**settings)
    return evidence_for(ask, documents, language=language, rag=chosen_by.rag, window=chosen_by.window, count=count)


def document(number: int, text: str = SENTENCES) -> Document:
    return Document(f"d{number}", text, title=f"T{number}", score=10.0 - number)


ASK = Ask("When does the ferry leave?")


def test_at_most_max_files_documents_are_taken_best_first() -> None:
    found = chosen(ASK, *(document(number, f"The ferry leaves at {number}.") for number in range(6)), rag_max_files=3)

    assert len(found.extracts) == 3
    assert [extract.number for extract in found.extracts] == [1, 2, 3]


def test_an_asks_own_number_of_documents_wins_over_the_setting() -> None:
    documents = [document(number, f"The ferry leaves at {number}.") for number in range(6)]

    assert len(chosen(replace(ASK, max_documents=5), *documents).extracts) == 5
    assert len(chosen(replace(ASK, max_documents=1), *documents).extracts) == 1


SHORT = document(1, "The ferry leaves at nine. Then it comes back at noon, as on each day.")
FILLER = "It is so. " * 60
HEADED = document(
    1,
    f"# Timetable\n\n{FILLER}\n\n## Boats\n\n{FILLER}The ferry leaves at nine. {FILLER}\n\n"
    f"# Harbour\n\n{FILLER}\n\n## Pier\n\n{FILLER}The ferry leaves from the pier. {FILLER}",
)
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
    roomy, fitting, cut = (chosen(ask, *documents, count=len, llm_context_window=window + more) for more in (1, 0, -1))
    assert roomy.extracts == fitting.extracts
    assert [extract.text for extract in fitting.extracts] == [one.text for one in documents]
    assert [extract.text for extract in cut.extracts] != [one.text for one in documents]


LONG_WORDS, SHORT_WORDS = "incomprehensibilities " * 400, "The ferry is at 9 or at 10 or at 11, as we do it. "


@pytest.mark.parametrize("window", [900, 560, 500, 470, 467])
def test_where_the_sample_misleads_what_is_chosen_fits_all_the_same(window: int) -> None:
    """The words of the answer are much shorter than those that the estimate is made from."""
    found = chosen(ASK, document(1, LONG_WORDS + SHORT_WORDS * 8 + LONG_WORDS), llm_context_window=window)

    assert sum(words(extract.text) for extract in found.extracts) <= window - 250 - 150


def test_a_window_that_is_full_leaves_no_room_for_documents() -> None:
    found = chosen(ASK, document(1), llm_context_window=400)
    assert (found.extracts, found.is_without_room) == ((), True)


def test_documents_without_text_and_few_characters_are_another_matter() -> None:
    assert not chosen(ASK, document(1, " ")).is_without_room
    assert not chosen(ASK, document(1), rag_max_json_length=1).is_without_room


def test_a_file_sent_along_is_a_source_before_what_was_found() -> None:
    asked = replace(ASK, attachments=(Attachment("plan.txt", "The ferry leaves at ten today."),))
    found = chosen(asked, *(document(number, f"The ferry leaves at {number}.") for number in range(6)), rag_max_files=3)

    assert found.extracts[0].document.title == "plan.txt"
    assert len(found.extracts) == 4


def test_nothing_found_is_nothing_chosen() -> None:
    assert chosen(ASK).extracts == ()


def test_an_answer_has_as_many_characters_as_the_setting_wants_and_a_token_budget_may_want_others() -> None:
    texts = ["".join(f"The ferry {n} of line {line} leaves at nine. " for n in range(900)) for line in range(3)]
    long = [document(number, text) for number, text in enumerate(texts)]
    few, all_of_it = (chosen(ASK, *long, llm_context_window=90_000, rag_chars=chars) for chars in (5000, 0))
    assert 4500 < sum(len(extract.text) for extract in few.extracts) <= 5000
    assert sum(len(extract.text) for extract in all_of_it.extracts) > 30_000
    node = chosen(replace(ASK, token_budget=TokenBudget(8000, 20, 0)), *long, llm_context_window=90_000, rag_chars=5000)
    assert sum(len(extract.text) for extract in node.extracts) > 5000


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


def test_a_file_sent_along_comes_before_the_documents_and_alone() -> None:
    asked = replace(ASK, attachments=(Attachment("plan.txt", "The ferry leaves at ten."),))
    above, alone = (chosen(asked, *found) for found in ([document(1)], []))
    assert above.candidates[0].document_id == "attachment:1"
    assert [one.document_id for one in alone.candidates] == ["attachment:1"]


LONG_FILE = Attachment(
    "pré.txt", f"{'Il est dit ici de ne pas y aller. ' * 12_000}Un cheval va au pré. {'Rien de plus. ' * 4000}"
)


def test_a_long_file_is_read_where_it_has_what_is_searched_for() -> None:
    """In the language of the question, and for the text that stands for it: "chevaux" is in no sentence."""
    asked = Ask("Et eux ?", search_text="chevaux", attachments=(LONG_FILE,))
    best = chosen(asked, language="fr").extracts[0]
    assert "Un cheval va au pré." in best.text
    assert len(best.document.text) < len(LONG_FILE.text)


STABLE = document(1, f"{'Les uns et les autres ne disent pas où ils vont. ' * 60}Un cheval va au pré. {'Rien. ' * 60}")


@pytest.mark.parametrize(
    "asked",
    [Ask("Où vont les chevaux ?"), replace(budget(16, node=16), question="Où vont les chevaux ?")],
    ids=["characters", "tokens"],
)
def test_words_are_those_of_the_questions_language(asked: Ask) -> None:
    found = chosen(asked, STABLE, language="fr", rag_max_json_length=60)
    assert "Un cheval va au pré." in found.extracts[0].text


def test_a_bound_of_documents_orders_them_as_other_dialects_and_without_one_the_best_passage_is_first() -> None:
    near = Document("near", f"{FILLER}The ferry leaves at nine.", score=1.0)
    far = Document("far", f"A ferry. {FILLER} It leaves. {FILLER}", title="When does the ferry leave", score=30.0)
    shown = [extract.document.id for extract in chosen(ASK, far, near).extracts]
    bounded, free = (
        [one.document.id for one in chosen(budget(2000, most=most), far, near).extracts] for most in (2, 0)
    )
    assert (shown, bounded, free) == (["far", "near"], ["far", "near"], ["near", "far"])


def test_under_a_bound_of_documents_every_passage_is_taken_once() -> None:
    texts = ["The ferry leaves at nine. " + f"Of {name} nothing else is said here at all. " * 9 for name in "ab"]
    found = chosen(budget(1000, most=2), *(document(number, text) for number, text in enumerate(texts)))
    for extract, text in zip(found.extracts, texts, strict=True):
        taken = [text[passage.start : passage.end] for passage in extract.passages]
        assert len(taken) > 1
        assert "".join(taken).replace(" ", "") == text.replace(" ", "")
