"""
Which passages of the candidates are read in the embedded index, by words and meaning; the others stay where they are.

Nothing here knows of users: the rows that may be looked at are handed in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from datafari_rag.adapters.embedded.passage_files import Floats
from datafari_rag.adapters.embedded.passage_texts import PassageTexts, key_of
from datafari_rag.core.meaning.near_search import NearSearch
from datafari_rag.core.meaning.stored_parts import SPREAD_WORTH, StoredPart

PARTS, FAVOUR = 400, 2.0
"""
Passages that are read for an answer, and what those of the likely documents have before others, in words.

More than over Solr, where each of them is sent. Contracts, answers in 1,000 / 2,000 / 4,000 / 8,000 characters (106
questions): with 165 and 1 64.2 / 68.9 / 76.4 / 83.0, with these 65.1 / 71.7 / 82.1 / 90.6, with whole documents 64.2 /
71.7 / 80.2 / 92.5, by words alone 65.1 / 73.6 / 80.2 / 90.6.
"""

SURE = 1000.0
"""Ranks a passage above all others: a document's first passage, which introduces it, and its nearest one."""


@dataclass(frozen=True, slots=True)
class BlockScores:
    """The cosines of all passages of a document, in order; its *block* names them. *is_first*: more of it is read."""

    block: int
    cosines: Floats
    is_first: bool


def parts_of(blocks: Sequence[BlockScores], search: NearSearch, texts: PassageTexts) -> Mapping[int, list[StoredPart]]:
    """
    Return the best passages of *blocks*, all of them together at most `PARTS`, by block.

    A block of which a passage is absent is left out. Raises: SearchUnavailable.
    """
    if not blocks:
        return {}
    keys = np.concatenate([key_of(one.block, 0) + np.arange(len(one.cosines), dtype=np.uint64) for one in blocks])
    cosines = np.concatenate([one.cosines for one in blocks])
    worth = cosines * (SPREAD_WORTH / (search.spread or 1.0))
    at = 0
    for one in blocks:
        worth[at : at + len(one.cosines)] += FAVOUR * one.is_first
        worth[at] += SURE
        worth[at + int(one.cosines.argmax())] += SURE
        at += len(one.cosines)
    matched = texts.matched(search.words, search.language, [one.block for one in blocks])
    words, held = np.array([*matched], dtype=np.uint64), np.array([*matched.values()], dtype=np.float64)
    order = np.argsort(keys)
    places = order[np.minimum(np.searchsorted(keys, words, sorter=order), len(keys) - 1)]
    # A passage without a vector does not belong to the current version of these documents.
    is_known = keys[places] == words
    worth[places[is_known]] += held[is_known]
    # Of equals the first: a stable order that depends on nothing but what is compared.
    best = np.lexsort((keys, -worth))[:PARTS]
    return _read(keys[best], cosines[best], texts)


def _read(keys: Floats, cosines: Floats, texts: PassageTexts) -> dict[int, list[StoredPart]]:
    known = texts.texts([int(key) for key in keys])
    found: dict[int, list[StoredPart]] = {}
    absent: set[int] = set()
    for key, cosine in zip(keys, cosines, strict=True):
        block = int(key) // key_of(1, 0)
        passage = known.get(int(key))
        if passage is None:
            absent.add(block)
        else:
            found.setdefault(block, []).append(StoredPart(passage.start, passage.text, float(cosine)))
    return {block: parts for block, parts in found.items() if block not in absent}
