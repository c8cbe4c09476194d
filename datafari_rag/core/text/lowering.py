"""Text in lower case with every character at its place: what is found there stands at the same offset in the text."""

from __future__ import annotations

_ASCII = bytes(range(0x80))
_STRETCH_CHARS = 250_000
_SAMPLE_CHARS = 500
_FEW = 8
"""A script of its own has more than one byte in so many beyond ASCII."""


def lowered(text: str) -> str:
    """Return *text* in lower case with every character at its place."""
    if len(text) > _STRETCH_CHARS:
        # In one go a long text would keep every other thread waiting: this is the one step that takes so long.
        return "".join(lowered(text[at : at + _STRETCH_CHARS]) for at in range(0, len(text), _STRETCH_CHARS))
    if text.isascii():
        return text.lower()
    # The one character of Unicode that is two in lower case; without it all others keep their places.
    text = text.replace("\u0130", "i")
    return text.lower() if _is_foreign(text[:_SAMPLE_CHARS]) else _lowered_apart(text)


def _is_foreign(sample: str) -> bool:
    data = sample.encode("utf-8", "replace")
    return len(data.translate(None, _ASCII)) * _FEW > len(data)


def _lowered_apart(text: str) -> str:
    """
    Lower the plain letters as bytes and the others one by one.

    One character beyond ASCII, and `str.lower` asks for each of all: this takes half as long.
    """
    data = text.encode("utf-8", "surrogatepass")
    others = set(data.translate(None, _ASCII).decode("utf-8", "surrogatepass"))
    if "Σ" in others:  # which has another lower case at the end of a word
        return text.lower()
    small = data.lower().decode("utf-8", "surrogatepass")
    for letter in others:
        if letter.lower() != letter:
            small = small.replace(letter, letter.lower())
    return small
