"""
What the search and the choice of passages cost without and with vectors, in this process, over one set of documents.

The vectors are made up, so that no model has a part in the figures. CPU time from the question to the prompt's
documents; each question is asked once, for what it was compared with is remembered.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import numpy as np

from benchmarks.measuring import Result
from datafari_rag.adapters.embedded.passages import EmbeddedPassages
from datafari_rag.adapters.embedded.retriever import EmbeddedRetriever
from datafari_rag.adapters.embedded.writer import EmbeddedWriter
from datafari_rag.adapters.model.chain import ExtractiveModel
from datafari_rag.adapters.token_counters import EstimatedTokens
from datafari_rag.core.access import ANONYMOUS
from datafari_rag.core.ask import Ask
from datafari_rag.core.meaning.near_search import PieceVector, pieces_of
from datafari_rag.core.settings.answers import RagSettings
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.vectors import EmbeddingModel, Purpose, Vector, unit_vector
from datafari_rag.pipeline import Dependencies, sources_for
from datafari_rag.ports import Meaning

MODEL = EmbeddingModel("made up", "made-up", 384, spread=0.05)


@dataclass(frozen=True, slots=True)
class MadeUpEmbedder:
    """Gives each text a random direction, always the same."""

    model: EmbeddingModel = MODEL

    def embed(self, asked: Sequence[str], purpose: Purpose) -> Sequence[Vector]:
        """Return the vectors."""
        return [direction(text) for text in asked]


def direction(text: str) -> Vector:
    """Return the vector of *text*."""
    return unit_vector(np.random.default_rng(zlib.crc32(text.encode())).standard_normal(384))


def choosing(documents: Sequence[Mapping[str, str]], questions: Sequence[str], folder: Path) -> Result:
    """Return the CPU of search and choice for one of *questions*, by words alone and with meaning."""
    pieces = _written(documents, folder)
    retriever = EmbeddedRetriever(folder)
    both = Meaning(MadeUpEmbedder(), EmbeddedPassages(retriever))
    words, meaning = (_cost_ms(retriever, one, questions) for one in (None, both))
    return {"pieces": pieces, "words_ms": words, "meaning_ms": meaning}


def _written(documents: Sequence[Mapping[str, str]], folder: Path) -> int:
    count = 0
    with closing(EmbeddedWriter(folder)) as writer:
        for one in documents:
            text = one["content"]
            own = [PieceVector(at.start, at.end, direction(text[at.start : at.end])) for at in pieces_of(text)]
            row = {"id": one["id"], "title": one["title"], "exactContent": text, "language": one["language"]}
            writer.add_embedded([row], {one["id"]: own}, MODEL)
            count += len(own)
        writer.commit()
    return count


def _cost_ms(retriever: EmbeddedRetriever, meaning: Meaning | None, questions: Sequence[str]) -> float:
    dependencies = Dependencies(
        retriever=retriever,
        meaning=meaning,
        model=ExtractiveModel(),
        counter=EstimatedTokens(),
        instructions="",
        new_nonce=lambda: "nonce",
        clock=time.monotonic,
    )
    settings = Settings(rag=RagSettings(max_json_length=60_000))
    costs = []
    for question in questions:
        began = time.process_time()
        sources_for(Ask(question), ANONYMOUS, settings=settings, dependencies=dependencies)
        costs.append((time.process_time() - began) * 1000)
    return mean(costs[len(costs) // 6 :])
