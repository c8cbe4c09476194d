"""
What an answer costs beside the size of its candidates: twenty of 3, 30 and 300 kB each, in one embedded index.

Real texts, words and passages; the vectors are made up, so that no model has a part in the figures. CPU time of this
process from the question to the prompt's documents, the best of a few calls for each question: the search by words and
meaning, the passages that are read, and the choice among them. Questions take turns, so that each is compared with all
vectors again: the cosines of the last four are remembered.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean

from benchmarks.bench import Bench
from benchmarks.corpus import questions, texts
from benchmarks.measuring import Result
from datafari_rag.adapters.embedded.passages import EmbeddedPassages
from datafari_rag.adapters.embedded.retriever import EmbeddedRetriever
from datafari_rag.adapters.embedded.writer import EmbeddedWriter
from datafari_rag.adapters.model.factory import ExtractiveModel
from datafari_rag.adapters.token_counters import EstimatedTokens
from datafari_rag.core.access import ANONYMOUS
from datafari_rag.core.ask import Ask
from datafari_rag.core.meaning.cutting import pieces_of
from datafari_rag.core.meaning.near_search import PieceVector
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.vectors import EmbeddingModel, Purpose, Vector, unit_vector
from datafari_rag.pipeline import Dependencies, sources_for
from datafari_rag.ports import Meaning

KILOBYTES = {3: "azurine", 30: "belvedine", 300: "cobaltine"}
"""Sizes of the candidates, each with a word that only these documents have."""

DOCUMENTS, QUESTIONS, CALLS = 24, 8, 5
MODEL = EmbeddingModel("made up", "made-up", 384, spread=0.05)


@dataclass(frozen=True, slots=True)
class MadeUpEmbedder:
    """Gives each text a random direction, always the same."""

    model: EmbeddingModel = MODEL
    known: dict[str, Vector] = field(default_factory=dict)

    def embed(self, asked: Sequence[str], purpose: Purpose) -> Sequence[Vector]:
        """Return the vectors, remembered: no embedding is measured."""
        return [self.known.setdefault(text, direction(text)) for text in asked]


def direction(text: str) -> Vector:
    """Return the vector of *text*."""
    chosen = random.Random(text)
    return unit_vector([chosen.gauss(0, 1) for _ in range(384)])


def candidates(bench: Bench) -> Result:
    """Return the CPU of an answer for each size, with words and meaning and with words alone."""
    folder = bench.folder / "candidates"
    pieces = _written(folder)
    retriever = EmbeddedRetriever(folder)
    both = Meaning(MadeUpEmbedder(), EmbeddedPassages(retriever))
    found: Result = {"passages": pieces, "rows": {}}
    for name, meaning in (("words and meaning", both), ("words alone", None)):
        found["rows"][name] = {str(kb): _cost_ms(retriever, meaning, word) for kb, word in KILOBYTES.items()}
    return found


def _written(folder: Path) -> int:
    count = 0
    with closing(EmbeddedWriter(folder)) as writer:
        for document in _documents():
            text = str(document["exactContent"])
            own = [PieceVector(one.start, one.end, direction(text[one.start : one.end])) for one in pieces_of(text)]
            writer.add_embedded([document], {str(document["id"]): own}, MODEL)
            count += len(own)
        writer.commit()
    return count


def _documents() -> Iterator[Mapping[str, object]]:
    pages, chosen = texts(), random.Random(18)
    for kb, word in KILOBYTES.items():
        for number in range(DOCUMENTS):
            text = ""
            while len(text) < kb * 1000:
                text += chosen.choice(pages) + "\n\n"
            half = kb * 500
            asked = "\n".join(f"{word} {question}" for question in questions()[:QUESTIONS])
            content = f"{text[:half]}\n\n{asked}\n\n{text[half : kb * 1000]}"
            yield {"id": f"{word}-{number}", "title": f"Manual {number}", "exactContent": content, "language": "en"}


def _cost_ms(retriever: EmbeddedRetriever, meaning: Meaning | None, word: str) -> float:
    dependencies = Dependencies(
        retriever=retriever,
        meaning=meaning,
        model=ExtractiveModel(),
        counter=EstimatedTokens(),
        instructions="",
        new_nonce=lambda: "nonce",
        clock=time.monotonic,
    )
    settings = replace(Settings(), rag_max_json_length=8000)
    costs: dict[str, float] = {}
    for question in questions()[:QUESTIONS] * CALLS:
        began = time.process_time()
        sources_for(Ask(f"{word} {question}"), ANONYMOUS, settings=settings, dependencies=dependencies)
        costs[question] = min(costs.get(question, float("inf")), (time.process_time() - began) * 1000)
    return mean(costs.values())
