"""Text in lower case with every character at its place: what is found there stands at the same offset in the text."""

from __future__ import annotations


def lowered(text: str) -> str:
    """Return *text* in lower case with every character at its place."""
    # The one character of Unicode that is two in lower case.
    return text.replace("\u0130", "i").lower()
