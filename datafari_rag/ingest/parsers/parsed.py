"""What a parser makes of one file, and how it says that it cannot; values only."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field

from datafari_rag.core.text.cleaning import encodable

MAX_CHARS = 20_000_000
"""Longest text taken from one file, in characters; what follows is cut off."""

MAX_TITLE_CHARS = 1000
"""Longest title."""


class Unreadable(Exception):
    """A file that cannot be taken; the text says why, for the person who indexes it."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """
    The text of one file, and its title where it names one. Both may be empty.

    *places* are the `PlaceMark`s of the text, *members* the names of the files in it, each a separate document.
    *left_out* counts what was not taken of it, by kind.
    """

    text: str
    title: str | None = None
    places: str = ""
    members: tuple[str, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)


def parsed(text: str, title: str | None = None) -> Parsed:
    """
    Return the result of a parser in the form in which it is stored.

    As `cleaned`; no white space at the ends; cut at `MAX_CHARS`.
    """
    name = " ".join(cleaned(title[:MAX_TITLE_CHARS]).split()) if title else ""
    return Parsed(cleaned(text[:MAX_CHARS]).strip(), name or None)


def cleaned(text: str) -> str:
    """
    Return *text* with composed characters (NFC), line ends as one character, and lone surrogates replaced.

    So an accent is found however it was typed.
    """
    text = encodable(text).replace("\r\n", "\n").replace("\r", "\n")
    return text if unicodedata.is_normalized("NFC", text) else unicodedata.normalize("NFC", text)
