"""
Reads documents back out of what a model is sent: our own fenced messages, and the bare ones of Datafari RagAPI.

The counterpart of `core.prompt.document_message`, for services that play the model's part. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from datafari_rag.core.text.sentences import spans

_FENCED = re.compile(r"Document (\d+)\. <data (\w{8,})>\n\[([^\n]*)\]\n(.*?)\n</data \2>", re.DOTALL)
_BARE = re.compile(r"(?:^|\n)[^\S\n]*Document (\d+)\. |(?<=[.!?…»”\"')\]]) +Document (\d+)\. ")
_WRITTEN_LINE_END = re.compile(r"(?<![:\\/])\\n(?![a-z])")
r"""The two characters `\n` for a line end, as Datafari RagAPI's example has them; those of `C:\new` are none."""

_PARAGRAPHS = re.compile(r"\n\s*\n|[^\S\n]{2,}")


@dataclass(frozen=True, slots=True)
class PromptDocument:
    """One document as a model was given it; *label* is empty where none was."""

    number: int
    label: str
    text: str


def documents_in(context: str) -> tuple[str, tuple[PromptDocument, ...]]:
    r"""
    Return the text before the first document, and the documents in order.

    A context without any "Document N. " is one document of number 1 without words before it; a blank one has none.
    In bare contexts a line end may be the two characters `\n`. A document begins on a separate line, or after the
    end of a sentence when its number is the next one.
    """
    fenced = tuple(PromptDocument(int(found[1]), found[3], found[4]) for found in _FENCED.finditer(context))
    if fenced:
        return context[: _start(_FENCED, context)].strip(), fenced
    context = _WRITTEN_LINE_END.sub("\n", context)
    heads = _heads(context)
    if not heads:
        return "", (PromptDocument(1, "", context.strip()),) if context.strip() else ()
    ends = [*(head.start() for head in heads[1:]), len(context)]
    bare = (
        PromptDocument(_number(head), "", context[head.end() : end].strip())
        for head, end in zip(heads, ends, strict=True)
    )
    return context[: heads[0].start()].strip(), tuple(given for given in bare if given.text)


def _heads(context: str) -> list[re.Match[str]]:
    """Return where bare documents begin; on the line of another one only with the number after that one's."""
    heads: list[re.Match[str]] = []
    for head in _BARE.finditer(context):
        if head[2] is None or (heads and _number(head) == _number(heads[-1]) + 1):
            heads.append(head)
    return heads


def _number(head: re.Match[str]) -> int:
    return int(head[1] or head[2])


def first_sentence(text: str) -> str:
    """Return the first sentence of *text* that says something, with its mark, or all of it when it has none."""
    # Between two paragraphs are an empty line or two blanks: a heading is no part of the sentence below it.
    for paragraph in _PARAGRAPHS.split(text):
        sentences = (paragraph[start:end] for start, end in spans(paragraph))
        found = next((sentence for sentence in sentences if sentence.endswith((".", "!"))), None)
        if found is not None:
            return found
    return text.strip()


def _start(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.search(text)
    return found.start() if found else 0
