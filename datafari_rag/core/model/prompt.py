"""
What the model receives: instructions, fenced documents, the conversation, the question last and word for word.

A document's text is data. It is between fences with a nonce that is new for each request, it is never a format
string, and only the two slots `{language}` and `{format}` of the instructions are replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from datafari_rag.core.ask import AnswerFormat, ChatMessage
from datafari_rag.core.documents import Extract
from datafari_rag.core.errors import ContextTooLong

RATIO = 0.5
"""Share of the free room that documents get when the caller does not say."""

RATIO_LOWEST, RATIO_HIGHEST = 0.2, 0.8

LEAST_SHARE = 0.5
"""A text has at least this share of the tokens that are estimated (western languages and code, 0.51 to 0.95)."""


@dataclass(frozen=True, slots=True)
class Window:
    """
    The room of one request in tokens: the model's *size*, and what of it is *reserved* for labels and instructions.

    *answer* is kept for an answer whose request does not say how long it may be. 150 is the number of KAITO's RAG
    engine.
    """

    size: int
    answer: int = 0
    reserved: int = 150


def checked(prompt_tokens: int, window: Window) -> int:
    """
    Return the tokens that remain next to a conversation of *prompt_tokens* tokens; 0 is allowed.

    Raises:
        ContextTooLong: the conversation alone is larger than the window. Tokens are estimated, rather too many than
            too few, so that only what is sure not to fit is refused.
    """
    if prompt_tokens * LEAST_SHARE > window.size:
        raise ContextTooLong
    return max(0, window.size - prompt_tokens)


def clamped(max_tokens: int | None, prompt_tokens: int, window: Window) -> int | None:
    """Return *max_tokens* lowered to what the conversation leaves of the window, at least 1; None stays None."""
    return None if max_tokens is None else max(1, min(max_tokens, window.size - prompt_tokens))


def for_documents(window: Window, *, prompt_tokens: int, max_tokens: int | None, ratio: float) -> int:
    """
    Return how many tokens documents may take; 0 when there is no room.

    *prompt_tokens* are all that is sent besides them; *max_tokens* is after the clamp, None when the caller set none.
    """
    available = window.size - prompt_tokens - window.reserved
    bound = window.size if max_tokens is None else max_tokens
    return max(0, int(min(bound, available) * ratio + 1e-9))  # 1000 * 0.29 is 290, not 289.99…


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
    """Parameters that the caller set themselves: a refusal of one of them is their error."""
    spare_tokens: int = 0
    """Tokens of the model's window that neither the prompt nor the answer takes: room for thoughts."""
    sought: str | None = None
    """What was searched for, where that is not the question alone: what is answered without a model."""
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

QUESTIONS_LANGUAGE = "the language of the question"
"""What `{language}` becomes where the caller named none; a guess is never named."""

_SLOTS = re.compile(r"\{language\}|\{format\}")


def instructions_for(text: str, *, language: str | None, answer_format: AnswerFormat | None) -> str:
    """
    Return *text* with `{language}` and `{format}` replaced, in one pass, and nothing else touched.

    *language* is the code that the caller named, None where none was named. What replaces a slot is never read again,
    and braces of any other kind stay as they are.
    """
    filling = {
        "{language}": QUESTIONS_LANGUAGE if language is None else LANGUAGES.get(language, language),
        "{format}": FORMATS[answer_format or "default"],
    }
    return _SLOTS.sub(lambda slot: filling[slot[0]], text)


def document_message(extract: Extract, nonce: str) -> str:
    """
    Return the message of one document: its number, then label, name of the file and text between two fences.

    The label is inside, because a title comes from the document too, and so does the name, which is left out where it
    is the label; so are the headings of the passage, each on its own line. Only the nonce makes a fence: it cannot be
    guessed, and is removed from a text that contains it.
    """
    pieces: list[str] = []
    at = 0
    for start, path in extract.paths:
        pieces.append(extract.text[at:start].rstrip("\n"))
        pieces.append(f"\n# {path}\n" if start else f"# {path}\n")
        at = start
    pieces.append(extract.text[at:])
    label, name, text = (part.replace(nonce, "") for part in (extract.label, extract.name, "".join(pieces)))
    return f"Document {extract.number}. <data {nonce}>\n[{label}]{name and f' {name}'}\n{text}\n</data {nonce}>"


def texts_of(prompt: Prompt) -> tuple[str, ...]:
    """Return all texts that *prompt* brings to the model: its own, the caller's and the documents'."""
    turns = (turn.text for turn in prompt.history)
    documents = (document_message(extract, prompt.nonce) for extract in prompt.extracts)
    return (prompt.instructions or "", *turns, *documents, prompt.question)


MESSAGE_TOKENS = 8
"""What a message costs besides its text, at most."""

LEAST_ANSWER_TOKENS = 64
"""An answer gets at least so many tokens, or as many as were asked for: documents go before that."""

Count = Callable[[str], int]


def fitted(prompt: Prompt, *, window: int, count: Count) -> Prompt:
    """
    Return *prompt* so that it and its `max_tokens` together are at most *window* tokens.

    `max_tokens` is lowered to what the prompt leaves. Where that is too little for an answer, documents are
    left out, the weakest first; there may be none left, and the caller decides what that means. What is free then is
    `spare_tokens`, rather too few.
    """
    # More tokens than it can have, without counting them: no token is shorter than a byte.
    texts = [*_texts(prompt), *(document_message(extract, prompt.nonce) for extract in prompt.extracts)]
    most = sum((len(text) if text.isascii() else 4 * len(text)) + MESSAGE_TOKENS for text in texts)
    spare = window - most - (prompt.max_tokens or LEAST_ANSWER_TOKENS)
    if spare >= 0:
        return replace(prompt, spare_tokens=spare)
    sizes = [_tokens(extract, prompt.nonce, count) for extract in prompt.extracts]
    beside = sum(count(text) + MESSAGE_TOKENS for text in _texts(prompt))
    least = min(prompt.max_tokens or LEAST_ANSWER_TOKENS, LEAST_ANSWER_TOKENS)
    while sizes and window - beside - sum(sizes) < least:
        sizes.pop()
    room = window - beside - sum(sizes)
    fitting = prompt.extracts[: len(sizes)]
    answer = None if prompt.max_tokens is None else min(prompt.max_tokens, room)
    return replace(prompt, extracts=fitting, max_tokens=answer, spare_tokens=max(0, room - (answer or room)))


def tokens_in(prompt: Prompt, count: Count) -> int:
    """Return the tokens of all that is sent with *prompt*."""
    texts = [*_texts(prompt), *(document_message(extract, prompt.nonce) for extract in prompt.extracts)]
    return sum(count(text) + MESSAGE_TOKENS for text in texts)


def _tokens(extract: Extract, nonce: str, count: Count) -> int:
    """Return the tokens of a document's message; its text was counted before, and is counted by itself here too."""
    headings = "".join(f"\n# {path}\n" for _, path in extract.paths)
    frame = document_message(replace(extract, text=headings, paths=()), nonce)
    return count(extract.text) + count(frame) + MESSAGE_TOKENS


def _texts(prompt: Prompt) -> Iterator[str]:
    """Yield all that is sent besides the documents."""
    yield prompt.instructions or ""
    yield from (turn.text for turn in prompt.history)
    yield prompt.question
