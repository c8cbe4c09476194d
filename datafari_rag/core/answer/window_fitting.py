"""
What is sent to the model, made to fit its window together with the answer.

The budgets of documents are computed before the rest of the prompt is known; here the whole prompt is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from datafari_rag.core.answer.prompt import Prompt, document_message
from datafari_rag.core.documents import Extract

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
    spare = window - _most_tokens(prompt) - (prompt.max_tokens or LEAST_ANSWER_TOKENS)
    if spare >= 0:
        return replace(prompt, spare_tokens=spare)
    sizes = [_tokens(extract, prompt.nonce, count) for extract in prompt.extracts]
    beside = sum(count(text) + MESSAGE_TOKENS for text in _texts(prompt))
    least = min(prompt.max_tokens or LEAST_ANSWER_TOKENS, LEAST_ANSWER_TOKENS)
    while sizes and window - beside - sum(sizes) < least:
        sizes.pop()
    left = window - beside - sum(sizes)
    kept = prompt.extracts[: len(sizes)]
    answer = None if prompt.max_tokens is None else min(prompt.max_tokens, left)
    return replace(prompt, extracts=kept, max_tokens=answer, spare_tokens=max(0, left - (answer or left)))


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


def _most_tokens(prompt: Prompt) -> int:
    """Return more tokens than *prompt* can have, without counting them: no token is shorter than a byte."""
    texts = [*_texts(prompt), *(document_message(extract, prompt.nonce) for extract in prompt.extracts)]
    return sum((len(text) if text.isascii() else 4 * len(text)) + MESSAGE_TOKENS for text in texts)
