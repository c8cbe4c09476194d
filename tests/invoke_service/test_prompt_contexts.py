"""Documents are read back as they were written, fenced by us or bare as in Datafari RagAPI."""

from __future__ import annotations

import pytest

from datafari_rag.core.documents import Document, Extract
from datafari_rag.core.model.prompt import document_message
from datafari_rag.invoke_service import PromptDocument, documents_in, first_sentence

NONCE = "k3j9x2m5q8w1z7"


def message(number: int, label: str, text: str) -> str:
    return document_message(Extract(number, label, Document(id="d", text=text), (), text), NONCE)


CONTEXTS: dict[str, tuple[str, str, tuple[PromptDocument, ...]]] = {
    "ours with instructions": (
        f"Be brief.\n{message(1, 'A', 'One.')}\n{message(2, 'B', 'Two.')}",
        "Be brief.",
        (PromptDocument(1, "A", "One."), PromptDocument(2, "B", "Two.")),
    ),
    "a text that speaks of another document": (
        message(1, "A", "See Document 2. It is better."),
        "",
        (PromptDocument(1, "A", "See Document 2. It is better."),),
    ),
    "RagAPI's": (
        "Document 1. Once uppon a time, a rabbit ate a carot.\n Document 2. Boarding pass to Nice.",
        "",
        (
            PromptDocument(1, "", "Once uppon a time, a rabbit ate a carot."),
            PromptDocument(2, "", "Boarding pass to Nice."),
        ),
    ),
    "RagAPI's with instructions": ("Answer.\nDocument 1. Text.", "Answer.", (PromptDocument(1, "", "Text."),)),
    r"RagAPI's own example, with \n as two characters": (
        r"Document 1. Once upon a time a rabbit ate.\n Document 2. Boarding pass to Nice\n. Your flight is at 15h50.",
        "",
        (
            PromptDocument(1, "", "Once upon a time a rabbit ate."),
            PromptDocument(2, "", "Boarding pass to Nice\n. Your flight is at 15h50."),
        ),
    ),
    "documents after a blank": (
        "Document 1. A rabbit ate. Document 2. Boarding pass.",
        "",
        (PromptDocument(1, "", "A rabbit ate."), PromptDocument(2, "", "Boarding pass.")),
    ),
    "a text that names a document which is not the next": (
        "Document 1. It was lost. Document 7. is missing.\nDocument 2. Two.",
        "",
        (PromptDocument(1, "", "It was lost. Document 7. is missing."), PromptDocument(2, "", "Two.")),
    ),
    "a path is no line end": (
        r"Document 1. See C:\new and C:\Users\nina.",
        "",
        (PromptDocument(1, "", r"See C:\new and C:\Users\nina."),),
    ),
    "no numbers at all": (" Just text. ", "", (PromptDocument(1, "", "Just text."),)),
    "an empty document": ("Document 1. \nDocument 2. Two.", "", (PromptDocument(2, "", "Two."),)),
    "nothing": ("  ", "", ()),
}


@pytest.mark.parametrize(("context", "before", "documents"), CONTEXTS.values(), ids=CONTEXTS.keys())
def test_documents_are_read_back(context: str, before: str, documents: tuple[PromptDocument, ...]) -> None:
    assert documents_in(context) == (before, documents)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("One. Two.", "One."),
        ("No end", "No end"),
        ("3.14 is pi! Yes.", "3.14 is pi!"),
        ("A heading  Is it so? It is so. Yes.", "It is so."),
        ("A heading\n\nA line\nand its end. Yes.", "A line\nand its end."),
        ("", ""),
    ],
)
def test_the_first_sentence_ends_with_its_mark(text: str, sentence: str) -> None:
    assert first_sentence(text) == sentence


def test_a_context_of_many_blank_lines_is_read() -> None:
    assert documents_in("\n" * 50_000) == ("", ())
    assert documents_in("\n\n  Document 1. One.\n\n\n Document 2. Two.") == (
        "",
        (PromptDocument(1, "", "One."), PromptDocument(2, "", "Two.")),
    )
