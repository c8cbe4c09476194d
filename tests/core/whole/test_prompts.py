"""What the model receives for whole documents."""

from __future__ import annotations

from datafari_rag.core import whole


def test_the_language_is_named_and_nothing_else_is_filled_in() -> None:
    assert whole.instructed_in(whole.SUMMARY, "fr", "the document").endswith("Answer in French.")
    assert whole.instructed_in(whole.SYNTHESIS, "tlh", "the documents").endswith("Answer in tlh.")
    assert whole.instructed_in(whole.SUMMARY, None, "the document").endswith("Answer in the language of the document.")


def test_a_document_of_one_piece_is_not_called_a_part() -> None:
    assert whole.part_question(1, 1, 6) == "Summarise this document in about 6 sentences."
    assert whole.part_question(2, 3, 1) == "Summarise part 2 of 3 of this document in one sentence."


def test_a_later_part_is_told_what_was_said() -> None:
    assert whole.next_question(2, 3, 2, "So {far}.").startswith(
        "The summary so far:\nSo {far}.\n\nSummarise part 2 of 3"
    )
