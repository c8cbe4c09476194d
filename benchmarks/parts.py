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
from datafari_rag.core.answer.output_filter import OutputFilter
from datafari_rag.core.answer.support_policy import SupportedOutput, SupportPolicy
from datafari_rag.core.answer.text_check import checked_against
from datafari_rag.core.ask import Ask
from datafari_rag.core.citations.resolution import resolve
from datafari_rag.core.documents import Document, Extract
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.passages.budget_fitting import evidence_for
from datafari_rag.core.passages.extracts import extracts_for
from datafari_rag.core.passages.selection import nodes, weigh
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.text.folding import fold
from datafari_rag.core.text.sentences import spans

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


def _supported(question: str, extracts: tuple[Extract, ...]) -> object:
    prompt = Prompt(question, extracts, None, "n")
    output = SupportedOutput(prompt, OutputFilter(extracts, wants_followups=False, links="none"), SupportPolicy())
    output.feed(REPLY)
    output.end()
    return output.support


def _check_of(documents: list[Document]) -> Callable[[], object]:
    """Return the check of a text of which every second sentence is altered: a word of it is another."""
    passages = [
        Document(f"{document.id}-{at}", document.text[at : at + 2000], title=document.title)
        for document in documents
        for at in range(0, 8000, 2000)
    ][:10]
    sentences = [one.text[start:end] for one in passages for start, end in spans(one.text)[1:-1]]
    altered = [one.replace(" the ", " another ", 1) if place % 2 else one for place, one in enumerate(sentences)]
    text = " ".join(altered)[:2000]
    return lambda: checked_against(text, passages, is_cleaned=True)


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
        "an answer checked (support)": lambda: _supported(question, extracts),
        "2,000 characters checked against ten passages of 2,000": _check_of(documents),
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
