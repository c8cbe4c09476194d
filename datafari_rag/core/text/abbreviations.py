"""
Whether a point behind a word is that of an abbreviation, a number or a name, and so ends no sentence.

Tables for English, French, German, Spanish, Italian, Russian and Arabic, all together: a text does not say where it
changes its language. In doubt a point ends a sentence, since sentences that were cut are found together anyway.
"""

from __future__ import annotations

import re

_ALWAYS_LIST = """mr mrs ms dr prof st sr jr vs etc eg ie inc ltd co corp al
    pp p ed eds rev gen col sgt capt lt gov sen rep approx dept est ca cf resp ref refs eq eqs
    univ ave blvd rd mt
    m mm mme mlle mgr av chap env ex hab réf l r
    d bzw usw evtl ggf inkl str hr fr fa hrsg bd jh abs vgl sog geb gest dipl ing med mio mrd std z u o
    sra srta dña ee ud uds pág págs núm gral lic dpto aprox
    sig dott avv ecc pag sigg
    г гг в вв т п стр см рис табл ул им тыс млн млрд руб др пр проф акад св
    د أ"""
_ALWAYS = frozenset(_ALWAYS_LIST.split())

_BEFORE_NUMBERS_LIST = """no nos nr n° art arts fig figs vol sec ch chap cap ext tel tél min max párr s д ст
    jan feb mar apr jun jul aug sep sept oct nov dec janv févr avr juil déc ene abr ago dic"""
_BEFORE_NUMBERS = frozenset(_BEFORE_NUMBERS_LIST.split())
"""Ordinary words that are abbreviations before a number: "no. 5", "Jan. 5"."""

_CLOSING = frozenset(("inc", "ltd", "co", "corp", "etc", "usw", "ecc", "al", "jr", "sr"))
"""Abbreviations that end a sentence often enough; then a word follows that nearly always begins one."""

_BEGINNING_LIST = """the it he she they this these those that in we there you his her its their but and if when
    il elle ils elles ce cette ces cela nous vous on
    es er sie wir dies diese dieses das dann sein
    ella ellos ellas esto esta este luego
    он она они это этот мы вы"""
_BEGINNINGS = frozenset(_BEGINNING_LIST.split())
_NEXT_WORD = re.compile(r"\w+")
_COUNTED = re.compile(
    r"Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember|Jahrhundert|Quartal|Auflage"
)
"""What German counts with a point behind the number."""

_ROMAN = re.compile(r"[IVXLC]+\b")
_BARE = re.compile(r"['’\"«“”„‘(\[¿¡]")
_LONGEST = max(map(len, (*_ALWAYS, *_BEFORE_NUMBERS)))
_INITIALISM_CHARS = 2
_ORDINAL_DIGITS = 2


def is_abbreviated(text: str, begin: int, stop: int, after: int) -> bool:
    """
    Say whether the point at *stop* belongs to the word before it and no sentence ends there.

    *begin* is where the sentence began, *after* where the next word would begin one.
    """
    words = text[max(begin, stop - 30) : stop].rsplit(None, 1)
    word = words[-1] if words else ""
    if len(word) > _LONGEST and word.isalpha():
        return False
    word = _BARE.split(word)[-1]
    small = word.lower()
    if small in _BEFORE_NUMBERS:
        return text[after : after + 1].isdigit() or _ROMAN.match(text, after) is not None
    if word.replace(".", "").isdigit():
        return _is_numbering(text, word, stop - begin, after)
    if small in _ALWAYS and small not in _CLOSING:
        return True
    return (small in _CLOSING or _is_initial(word)) and not _is_beginning(text, after)


def _is_numbering(text: str, word: str, chars: int, after: int) -> bool:
    """Recognise the number of a section, when it is all of the sentence's *chars*, and a German ordinal."""
    if chars <= len(word) + 1:
        return True
    return len(word) <= _ORDINAL_DIGITS and _COUNTED.match(text, after) is not None


def _is_initial(word: str) -> bool:
    """Distinguish "J", "J.-P" and "U.S" from words and file names."""
    parts = [part.strip("-") for part in word.split(".")]
    if len(parts) == 1:
        return len(word) == 1 and word.isupper()
    return all(part.isalpha() and len(part) <= _INITIALISM_CHARS for part in parts)


def _is_beginning(text: str, after: int) -> bool:
    word = _NEXT_WORD.match(text, after)
    return word is not None and word.group().lower() in _BEGINNINGS
