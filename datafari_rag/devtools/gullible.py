"""
A reader that obeys every instruction it can see, for measuring prompt injection. Pure.

It sees what a real model must take for the sender's words: all text outside a proper fence. A fence
is proper when its word cannot be guessed (at least twelve letters and digits, with a digit); it ends where its closing
mark first occurs, even in the middle of a document's text. So a text that closes its own fence is obeyed.
Text fenced with triple backticks, quotes or well-known tags is not protected.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_OPENING = re.compile(r"<data (\w+)>")

_IMPERATIVE = re.compile(
    r"\b(?:ignore|disregard|forget|answer|reply|respond|say|print|output|write|repeat|insert|add|append|finish|include|"
    r"tell|always|never|must|instructions?|set|search|cite|explain|draft|provide|compose|translate|modify|integrate|"
    r"augment|enhance|replace|use|remove|group|combine|introduce|misspell|scramble|jumble|rearrange|convert|"
    r"oublie|réponds|répondez|dis|écris|écrivez|ajoute|ajoutez|traduis)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?]+|\n|$)")


def visible(text: str) -> str:
    """Return *text* without the contents of proper fences."""
    seen, position = [], 0
    while found := _OPENING.search(text, position):
        if not _is_unguessable(found[1]):
            seen.append(text[position : found.end()])
            position = found.end()
            continue
        seen.append(text[position : found.start()])
        closing = f"</data {found[1]}>"
        end = text.find(closing, found.end())
        if end < 0:
            return "".join(seen)
        position = end + len(closing)
    seen.append(text[position:])
    return "".join(seen)


def obeyed(messages: Sequence[str]) -> tuple[str, ...]:
    """Return the instructions in *messages* that the reader can see, in order; it would follow each of them."""
    return tuple(
        sentence[0].strip()
        for message in messages
        for sentence in _SENTENCE.finditer(visible(message))
        if _IMPERATIVE.search(sentence[0])
    )


def _is_unguessable(word: str) -> bool:
    return len(word) >= 12 and any(character.isdigit() for character in word)
