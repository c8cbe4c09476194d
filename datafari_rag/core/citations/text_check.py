"""
What documents prove of a text that was not written from them: sentence by sentence, as citations are proved.

The text need not cite anything. Brackets in it that look like marks are taken for what they are in an answer and prove
nothing here: each sentence is looked for in every document.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from datafari_rag.core.citations.claims import Claim, Mark, stated_in
from datafari_rag.core.citations.resolution import SUPPORTED, UNSUPPORTED, VERIFIED, citation_for
from datafari_rag.core.citations.verification import CheckedExtract, is_statement
from datafari_rag.core.documents import Citation, Extract


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """A sentence of the text from *start* to *end*: *status*, and the place of each document that proves it."""

    start: int
    end: int
    status: str
    proofs: tuple[Citation, ...] = ()


def checked(text: str, extracts: Sequence[Extract], *, language: str = "en") -> tuple[CheckedSentence, ...]:
    """
    Return every sentence of *text* that states something, with what *extracts* prove of it.

    A sentence is verified when the words that it quotes stand in a document, supported when its facts do.
    """
    seen = [CheckedExtract(extract, language) for extract in extracts]
    stated = stated_in(text, [extract.label for extract in extracts], lambda words: is_statement(words, language))
    return tuple(_checked(place, claim, seen, language) for place, claim in stated)


def _checked(place: tuple[int, int], claim: Claim, seen: Sequence[CheckedExtract], language: str) -> CheckedSentence:
    mark = Mark(*place, inside="", places=())
    found = [citation_for(mark, claim, one, language) for one in seen]
    for status in (VERIFIED, SUPPORTED):
        if any(one.status == status for one in found):
            return CheckedSentence(*place, status, tuple(one for one in found if one.quote is not None))
    return CheckedSentence(*place, UNSUPPORTED)
