"""The whole prompt and max_tokens never exceed the window; documents go, the weakest first, before the answer does."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from datafari_rag.core.ask import ChatMessage
from datafari_rag.core.documents import Document, Extract
from datafari_rag.core.model.prompt import LEAST_ANSWER_TOKENS, MESSAGE_TOKENS, Prompt, document_message, fitted


def _words(text: str) -> int:
    return len(text.split())


def _extract(number: int, words: int) -> Extract:
    text = "word " * words
    return Extract(number, f"Doc {number}", Document(f"d{number}", text), (), text)


def prompt(*sizes: int, max_tokens: int | None = 200, instructions: int = 10, said: int = 10) -> Prompt:
    return Prompt(
        question="q " * said,
        extracts=tuple(_extract(number, size) for number, size in enumerate(sizes, 1)),
        instructions="i " * instructions,
        nonce="n",
        history=(ChatMessage("user", "h " * said),),
        max_tokens=max_tokens,
    )


def tokens(of: Prompt) -> int:
    texts = [of.instructions or "", *(turn.text for turn in of.history), of.question]
    texts += [document_message(extract, of.nonce) for extract in of.extracts]
    return sum(_words(text) + MESSAGE_TOKENS for text in texts)


def test_what_fits_is_the_same_prompt() -> None:
    whole = prompt(10, 10)
    same = fitted(whole, window=10_000, count=_words)
    assert replace(same, spare_tokens=0) == whole
    assert 9_000 < same.spare_tokens < 10_000 - 200


def test_max_tokens_are_lowered_to_what_the_documents_leave() -> None:
    within = fitted(prompt(400, 300, max_tokens=8000), window=1000, count=_words)
    assert [extract.number for extract in within.extracts] == [1, 2]
    assert within.max_tokens is not None and tokens(within) + within.max_tokens == 1000


@pytest.mark.parametrize("max_tokens", [None, 8000])
def test_the_last_documents_go_where_no_answer_would_fit(max_tokens: int | None) -> None:
    within = fitted(prompt(400, 300, 300, max_tokens=max_tokens), window=1000, count=_words)
    assert [extract.number for extract in within.extracts] == [1, 2]
    assert tokens(within) + LEAST_ANSWER_TOKENS <= 1000
    assert (within.max_tokens is None) == (max_tokens is None)


def test_a_short_answer_needs_no_more_than_it_asks_for() -> None:
    size = tokens(prompt(100, 100))
    within = fitted(prompt(100, 100, max_tokens=5), window=size + 5, count=_words)
    assert (len(within.extracts), within.max_tokens) == (2, 5)


def test_no_document_is_left_where_the_conversation_fills_the_window() -> None:
    assert fitted(prompt(100, said=200), window=300, count=_words).extracts == ()


def test_it_holds_for_any_sizes() -> None:
    chance = random.Random(20)
    for _ in range(300):
        sizes = [chance.randrange(1, 400) for _ in range(chance.randrange(1, 6))]
        asked = chance.choice([None, 1, 50, chance.randrange(1, 9000)])
        window = chance.randrange(200, 2500)
        within = fitted(prompt(*sizes, max_tokens=asked), window=window, count=_words)
        assert not within.extracts or tokens(within) + (within.max_tokens or 1) <= window
        assert within.max_tokens is None or within.max_tokens <= (asked or 0)
