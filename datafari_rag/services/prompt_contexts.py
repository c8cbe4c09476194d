"""
Reads documents back out of what a model is sent: our own fenced messages, and the bare ones of Datafari RagAPI.

The counterpart of `core.prompt.document_message`, for services that play the model's part. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_FENCED = re.compile(r"Document (\d+)\. <data (\w{8,})>\n\[([^\n]*)\]\n(.*?)\n</data \2>", re.DOTALL)
_BARE = re.compile(r"(?:^|\n)\s*Document (\d+)\. ")


@dataclass(frozen=True, slots=True)
class PromptDocument:
    """One document as a model was given it; *label* is empty where none was."""

    number: int
    label: str
    text: str


def documents_in(context: str) -> tuple[str, tuple[PromptDocument, ...]]:
    """
    Return what stands before the first document, and the documents in order.

    A context without any "Document N. " is one document of number 1 without words before it; a blank one has none.
    """
    fenced = tuple(PromptDocument(int(found[1]), found[3], found[4]) for found in _FENCED.finditer(context))
    if fenced:
        return context[: _start(_FENCED, context)].strip(), fenced
    heads = list(_BARE.finditer(context))
    if not heads:
        return "", (PromptDocument(1, "", context.strip()),) if context.strip() else ()
    ends = [*(head.start() for head in heads[1:]), len(context)]
    bare = (
        PromptDocument(int(head[1]), "", context[head.end() : end].strip())
        for head, end in zip(heads, ends, strict=True)
    )
    return context[: heads[0].start()].strip(), tuple(given for given in bare if given.text)


def first_sentence(text: str) -> str:
    """Return the first sentence of *text* with its mark, or all of it when it has none."""
    found = re.match(r"\s*(.+?[.!?])(?=\s|$)", text, re.DOTALL)
    return found[1] if found else text.strip()


def _start(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.search(text)
    return found.start() if found else 0
