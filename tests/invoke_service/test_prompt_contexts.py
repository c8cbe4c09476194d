"""Documents are read back as they were written, fenced by us or bare as in Datafari RagAPI."""

from __future__ import annotations

import pytest

from datafari_rag.core.documents import Document, Extract
from datafari_rag.core.model.prompt import document_message
from datafari_rag.invoke_service import documents_in

NONCE = "k3j9x2m5q8w1z7"


def message(number: int, label: str, text: str) -> str:
    return document_message(Extract(number, label, Document(id="d", text=text), (), text), NONCE)


def one(number: int, label: str, text: str) -> Document:
    return Document(id=str(number), title=label or None, text=text)


CONTEXTS: dict[str, tuple[str, str, tuple[Document, ...]]] = {
    "ours with instructions": (
        f"Be brief.\n{message(1, 'A', 'One.')}\n{message(2, 'B', 'Two.')}",
        "Be brief.",
        (one(1, "A", "One."), one(2, "B", "Two.")),
    ),
    "a text that speaks of another document": (
        message(1, "A", "See Document 2. It is better."),
        "",
        (one(1, "A", "See Document 2. It is better."),),
    ),
    "RagAPI's": (
        "Document 1. Once uppon a time, a rabbit ate a carot.\n Document 2. Boarding pass to Nice.",
        "",
        (
            one(1, "", "Once uppon a time, a rabbit ate a carot."),
            one(2, "", "Boarding pass to Nice."),
        ),
    ),
    "RagAPI's with instructions": ("Answer.\nDocument 1. Text.", "Answer.", (one(1, "", "Text."),)),
    r"RagAPI's own example, with \n as two characters": (
        r"Document 1. Once upon a time a rabbit ate.\n Document 2. Boarding pass to Nice\n. Your flight is at 15h50.",
        "",
        (
            one(1, "", "Once upon a time a rabbit ate."),
            one(2, "", "Boarding pass to Nice\n. Your flight is at 15h50."),
        ),
    ),
    "documents after a blank": (
        "Document 1. A rabbit ate. Document 2. Boarding pass.",
        "",
        (one(1, "", "A rabbit ate."), one(2, "", "Boarding pass.")),
    ),
    "a text that names a document which is not the next": (
        "Document 1. It was lost. Document 7. is missing.\nDocument 2. Two.",
        "",
        (one(1, "", "It was lost. Document 7. is missing."), one(2, "", "Two.")),
    ),
    "a path is no line end": (
        r"Document 1. See C:\new and C:\Users\nina.",
        "",
        (one(1, "", r"See C:\new and C:\Users\nina."),),
    ),
    "no numbers at all": (" Just text. ", "", (one(1, "", "Just text."),)),
    "an empty document": ("Document 1. \nDocument 2. Two.", "", (one(2, "", "Two."),)),
    "nothing": ("  ", "", ()),
}


@pytest.mark.parametrize(("context", "before", "documents"), CONTEXTS.values(), ids=CONTEXTS.keys())
def test_documents_are_read_back(context: str, before: str, documents: tuple[Document, ...]) -> None:
    assert documents_in(context) == (before, documents)


def test_a_context_of_many_blank_lines_is_read() -> None:
    assert documents_in("\n" * 50_000) == ("", ())
    assert documents_in("\n\n  Document 1. One.\n\n\n Document 2. Two.") == (
        "",
        (one(1, "", "One."), one(2, "", "Two.")),
    )
