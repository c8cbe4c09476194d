"""
What the steps of one answer cost in the process: CPU time, the best of many calls, for 12 questions of the benchmark.

    python -m benchmarks.parts

Three documents of 20,000 characters, shipped settings: some 40,000 characters go to the model. No server, no socket.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from benchmarks.corpus import answer, questions, texts
from datafari_rag.adapters.token_counters import EstimatedTokens
from datafari_rag.core.ask import Ask
from datafari_rag.core.citations.resolution import resolve
from datafari_rag.core.documents import Document, Extract
from datafari_rag.core.passages.budget_fitting import evidence_for
from datafari_rag.core.passages.extracts import extracts_for
from datafari_rag.core.passages.selection import nodes, weigh
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.text.folding import fold

QUESTIONS, CALLS = 12, 7
REPLY = (
    "The default of this setting is the value that the manual names [1]. It can be changed in the configuration file, "
    "and the change is read when the server starts again [2]. Other values are described with their effect [3]."
)
COUNT = EstimatedTokens().count

Found = tuple[str, list[Document]]


def found() -> list[Found]:
    """Return the questions with the documents that the stub Solr would give."""
    pages, asked = texts(), questions()
    return [
        (asked[seed % len(asked)], _documents(answer(pages, documents=3, chars=20_000, seed=seed)))
        for seed in range(QUESTIONS)
    ]


def _documents(reply: Mapping[str, object]) -> list[Document]:
    rows = cast("Mapping[str, Sequence[Mapping[str, object]]]", reply["response"])["docs"]
    return [
        Document(
            id=str(row["id"]),
            text=cast("list[str]", row["exactContent"])[0],
            title=str(row["title"]),
            url=str(row["url"]),
            score=cast("float", row["score"]),
            language="en",
        )
        for row in rows
    ]


def _selected(question: str, documents: list[Document]) -> tuple[Extract, ...]:
    return evidence_for(Ask(question), documents, language="en", settings=Settings(), count=COUNT).extracts


def cost_ms(step: Callable[[], object]) -> float:
    """Return the CPU milliseconds of the best of a few calls."""
    best = float("inf")
    for _ in range(CALLS):
        began = time.process_time()
        step()
        best = min(best, time.process_time() - began)
    return best * 1000


def steps(question: str, documents: list[Document]) -> dict[str, Callable[[], object]]:
    """Return what is measured for one question, by name."""
    extracts = _selected(question, documents)
    chosen = [(extract.document, extract.passages) for extract in extracts]
    return {
        "passages, all": lambda: _selected(question, documents),
        "- documents ranked": lambda: weigh(question, documents, language="en"),
        "- texts cleaned and joined": lambda: extracts_for(chosen, is_cleaned=True),
        "- tokens estimated": lambda: [COUNT(extract.text) for extract in extracts],
        "citations resolved": lambda: resolve(REPLY, extracts, language="en"),
        "- texts folded": lambda: [fold(extract.text) for extract in extracts],
        "nodes of /v1": lambda: nodes(question, documents, language="en", node_size=512, size_of=COUNT),
    }


def main() -> None:
    """Print the table."""
    costs: dict[str, list[float]] = {}
    for question, documents in found():
        for name, step in steps(question, documents).items():
            costs.setdefault(name, []).append(cost_ms(step))
    print("| step | mean, ms | longest, ms |\n|---|---|---|")
    for name, values in costs.items():
        print(f"| {name} | {sum(values) / len(values):.2f} | {max(values):.2f} |")


if __name__ == "__main__":
    main()
