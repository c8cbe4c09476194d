"""
The table of true and changed claims: how often words that were changed are still called supported.

Words alone cannot decide everything; this test records what they can, in numbers. A changed quotation is never proved.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from datafari_rag.core.citations.resolution import resolve
from datafari_rag.core.documents import Document, Extract, Passage
from datafari_rag.core.passages.extracts import extracts_for
from tests.core.claim_table import FALSE, TRUE
from tests.core.quote_table import Text, sentences_of
from tests.core.test_quote_table import DATA, OWN, texts_of

SETS = ("squad", "xquad", "piaf-fr", "servicepublic-fr", "covidqa", "cuad", "scifact", "northwind-hr")


def shown(text: Text, other: Text) -> tuple[Extract, ...]:
    documents = [Document(one.id, one.content, title=one.title) for one in (text, other)]
    return extracts_for([(one, (Passage(0, len(one.text)),)) for one in documents], is_cleaned=True)


def lines(text: Text) -> list[str]:
    """Return the sentences of *text*, without those that contain several: a mark belongs only to the last."""
    return [one for one in sentences_of(text.content) if "。" not in one]


def plain(sentence: str) -> str:
    """Return *sentence* without what would be a mark or a quotation of its own."""
    return "".join(character for character in sentence if character not in '[]【】［］"“”«»„').rstrip(".")


def judged(texts: list[Text], *, each: int) -> Iterator[tuple[str, bool, str, str]]:
    """Yield the rule, whether it keeps the sense, the status of the claim, and that of the same in quotation marks."""
    dice = random.Random(17)
    for text, other in zip(texts, texts[1:] + texts[:1], strict=True):
        own, foreign = lines(text), lines(other)
        extracts = shown(text, other)
        if min(len(own), len(foreign)) < 3 or len(extracts) < 2:
            continue
        for rule in (*TRUE, *FALSE) * each:
            sentence = dice.choice(own)
            changed = rule(sentence, [one for one in own if one != sentence], text.language, dice)
            if changed is None or (rule in FALSE and plain(changed).lower() in plain(text.content).lower()):
                continue
            (claim,) = resolve(f"{plain(changed)} [1].", extracts, language=text.language)
            (quote,) = resolve(f"“{plain(changed)}” [1].", extracts, language=text.language)
            yield rule.__name__, rule in TRUE, claim.status, quote.status
        (claim,) = resolve(f"{plain(dice.choice(foreign))} [1].", extracts, language=text.language)
        yield "misattributed", False, claim.status, claim.status
        (claim,) = resolve(f"{plain(' '.join((own[0][:40], foreign[0][-40:])))} [1].", extracts, language=text.language)
        yield "stitched across documents", False, claim.status, claim.status


def rates(texts: list[Text], *, each: int) -> tuple[Counter[tuple[bool, bool]], Counter[str]]:
    """Count (true, supported), and the changed quotations that were proved all the same, by rule."""
    counts: Counter[tuple[bool, bool]] = Counter()
    proved: Counter[str] = Counter()
    for rule, is_true, claim, quote in judged(texts, each=each):
        counts[is_true, claim == "supported"] += 1
        proved[rule] += not is_true and quote == "verified"
    return counts, +proved


def test_own_texts_changed_are_told_apart() -> None:
    counts, proved = rates(OWN, each=12)
    assert counts.total() > 400
    assert not proved
    assert counts[False, True] <= 0.1 * (counts[False, True] + counts[False, False])
    assert counts[True, True] >= 0.9 * (counts[True, True] + counts[True, False])


@pytest.mark.skipif(not DATA.exists(), reason="the evaluation data is not there")
@pytest.mark.parametrize(("number", "least"), [(5, 200), pytest.param(12, 500, marks=pytest.mark.slow)])
def test_real_texts_changed_are_told_apart(number: int, least: int) -> None:
    """Measured: see docs/quality.md; what is left are words exchanged for others of the same sentence."""
    texts = [text for name in SETS for text in texts_of(name, number)]
    counts, proved = rates(texts, each=1)
    assert counts.total() > least
    assert not proved
    assert counts[False, True] <= 0.1 * (counts[False, True] + counts[False, False])
    assert counts[True, True] >= 0.9 * (counts[True, True] + counts[True, False])
