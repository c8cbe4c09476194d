"""
What the model receives: instructions, fenced documents, the conversation, the question last and word for word.

A document's text is data. It is between fences with a nonce that is new for each request, it is never a format
string, and only the two slots `{language}` and `{format}` of the instructions are replaced.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from datafari_rag.core.ask import AnswerFormat, ChatMessage
from datafari_rag.core.documents import Extract


@dataclass(frozen=True, slots=True)
class Prompt:
    """
    All that a template turns into a request body.

    *nonce* is an unguessable word made for this request alone (letters and digits). *max_tokens* None means: not
    sent. *model* empty means: key left out. *sampling* holds further wire parameters of /v1 (top_p, stop, seed…),
    sent as they are.
    """

    question: str
    extracts: tuple[Extract, ...]
    instructions: str | None
    nonce: str
    history: tuple[ChatMessage, ...] = ()
    answer_format: AnswerFormat | None = None
    language: str = "en"
    model: str = ""
    temperature: float | None = 0.7
    max_tokens: int | None = 250
    sampling: Mapping[str, object] = field(default_factory=dict)
    chosen: frozenset[str] = frozenset()
    """Parameters that the caller set himself: a refusal of one of them is his error."""
    spare_tokens: int = 0
    """Tokens of the model's window that neither the prompt nor the answer takes: room for thoughts."""
    within_s: float | None = None
    """How long the reply is waited for at most, where that is less than the settings' limit."""


FORMATS: Mapping[AnswerFormat, str] = {
    "bulletpoint": "a list of bullet points",
    "stepbystep": "numbered steps",
    "text": "running text without lists",
    "default": "the form that suits the question best",
}
"""What `{format}` becomes."""

LANGUAGES: Mapping[str, str] = {
    "ar": "Arabic",
    "de": "German",
    "en": "English",
    "es": "Spanish",
    "fr": "French",
    "it": "Italian",
    "ja": "Japanese",
    "nl": "Dutch",
    "pl": "Polish",
    "pt": "Portuguese",
    "ru": "Russian",
    "zh": "Chinese",
}
"""What `{language}` becomes; an unknown code is used unchanged."""

_SLOTS = re.compile(r"\{language\}|\{format\}")


def instructions_for(text: str, *, language: str, answer_format: AnswerFormat | None) -> str:
    """
    Return *text* with `{language}` and `{format}` replaced, in one pass, and nothing else touched.

    What replaces a slot is never read again, and braces of any other kind stay as they are.
    """
    filling = {
        "{language}": LANGUAGES.get(language, language),
        "{format}": FORMATS[answer_format or "default"],
    }
    return _SLOTS.sub(lambda slot: filling[slot[0]], text)


def document_message(extract: Extract, nonce: str) -> str:
    """
    Return the message of one document: its number, then label and text between two fences.

    The label is inside, because a title comes from the document too; so are the headings of the passage, each on its
    own line. Only the nonce makes a fence: it cannot be guessed, and is removed from a text that contains it.
    """
    label, text = (part.replace(nonce, "") for part in (extract.label, _under_headings(extract)))
    return f"Document {extract.number}. <data {nonce}>\n[{label}]\n{text}\n</data {nonce}>"


def texts_of(prompt: Prompt) -> tuple[str, ...]:
    """Return all texts that *prompt* brings to the model: its own, the caller's and the documents'."""
    turns = (turn.text for turn in prompt.history)
    documents = (document_message(extract, prompt.nonce) for extract in prompt.extracts)
    return (prompt.instructions or "", *turns, *documents, prompt.question)


def _under_headings(extract: Extract) -> str:
    pieces: list[str] = []
    at = 0
    for start, path in extract.paths:
        pieces.append(extract.text[at:start].rstrip("\n"))
        pieces.append(f"\n# {path}\n" if start else f"# {path}\n")
        at = start
    return "".join((*pieces, extract.text[at:]))
