"""An answer with every sentence, or without those that no document supports."""

from __future__ import annotations

import pytest

from datafari_rag.core.answer.output_filter import OutputFilter
from datafari_rag.core.answer.proved_output import ProvedOutput
from datafari_rag.core.documents import Document, Passage
from datafari_rag.core.events import UnsupportedPolicy
from datafari_rag.core.evidence.extracts import extracts_for
from datafari_rag.core.model.prompt import Prompt

TRUE, FALSE = "The ferry to the island leaves at nine [1].", "Smoking is free everywhere [1]."
DOCUMENT = Document("d", "The ferry to the island leaves at nine.", title="Ferry")
EXTRACTS = extracts_for([(DOCUMENT, (Passage(0, len(DOCUMENT.text)),))], is_cleaned=True)


def shown(text: str, policy: UnsupportedPolicy, *, size: int = 7) -> tuple[str, ProvedOutput]:
    prompt = Prompt("When?", EXTRACTS, None, "n")
    output = ProvedOutput(prompt, OutputFilter(wants_followups=False), policy)
    pieces = [output.feed(text[at : at + size]) for at in range(0, len(text), size)]
    whole = "".join([*pieces, output.end()])
    assert whole == output.text
    return whole, output


def test_marked_answers_are_shown_whole_and_counted() -> None:
    text, output = shown(f"{TRUE} {FALSE}", "mark")
    assert output.support is not None
    assert (text, output.support.checked, output.support.verified) == (f"{TRUE} {FALSE}", 2, 1)
    assert [text[start:end] for start, end in output.support.unsupported] == [FALSE]
    assert [one.status for one in output.citations] == ["verified", "unsupported"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (f"{TRUE} {FALSE}", f"{TRUE} "),
        (f"{FALSE} {TRUE}", TRUE),
        (f"- {FALSE}\n- {TRUE}\n", f"- {TRUE}\n"),
        (f"{FALSE}\n\n{TRUE}", f"\n{TRUE}"),
        (f"# Ferry\n\n{TRUE}", f"# Ferry\n\n{TRUE}"),
    ],
)
def test_dropped_sentences_are_nowhere_in_the_stream(text: str, wanted: str) -> None:
    for size in (1, 7, 1000):
        said, output = shown(text, "drop", size=size)
        assert said == wanted
        assert output.support is not None and output.support.dropped == text.count(FALSE)


def test_an_answer_of_which_nothing_is_left_says_so() -> None:
    said, output = shown(FALSE, "drop")
    assert said == "I found no answer to this question in the documents."
    assert output.support is not None and output.support.is_replaced and output.support.share == 0


def test_without_documents_nothing_is_counted() -> None:
    output = ProvedOutput(Prompt("When?", (), None, "n"), OutputFilter(wants_followups=False), "drop")
    assert output.feed("At nine.") + output.end() == "At nine."
    assert output.support is None and output.citations == ()
