"""
What hostile documents reach: every attack of the collection, with each layer of defence off and on.

The models are the worst there could be: one obeys every instruction that it can see, one repeats its whole prompt.
Layers: *fences* (a nonce for each request), *cleaning* (invisible characters), *links* (the answer's targets). The
table of the slow test is what docs/security.md shows.
"""

from __future__ import annotations

import itertools
import random
import re
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import pytest

from datafari_rag.adapters.embedded.retriever import EmbeddedRetriever
from datafari_rag.adapters.embedded.writer import EmbeddedWriter
from datafari_rag.adapters.machine import new_nonce
from datafari_rag.adapters.model.chain import ExtractiveModel
from datafari_rag.adapters.token_counters import EstimatedTokens
from datafari_rag.core.access import ANONYMOUS
from datafari_rag.core.answer import output_filter
from datafari_rag.core.ask import Ask
from datafari_rag.core.documents import OffsetMap, OffsetRun
from datafari_rag.core.errors import RagError
from datafari_rag.core.events import Answer
from datafari_rag.core.evidence import extracts
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.text.cleaning import clean
from datafari_rag.ingest.documents import Rights, from_line
from datafari_rag.llm_templates import openai
from datafari_rag.pipeline import answer, collect
from datafari_rag.ports import Ending, Model, TextChunk
from datafari_rag.retrieval import Dependencies
from datafari_rag_trials.stub_model.behaviour import behaviour_for, text_for
from tests.hostile_texts import ATTACKS, QUESTIONS, pages
from tests.security.telling import Record, tell
from tests.settings import settings_with

_FOREIGN = re.compile(
    r"!\[|\]\(\s*<?(?!https://docs\.example\.org/)|<(?:https?:|img|a\s|script|svg)|^\[[^\]]+\]:\s", re.I | re.M
)


@dataclass(frozen=True)
class Layers:
    """Which defences are on."""

    has_fences: bool = True
    has_cleaning: bool = True
    has_links: bool = True


ALL = Layers()
ROWS: Mapping[str, Layers] = {
    "all layers on": ALL,
    "without fences": replace(ALL, has_fences=False),
    "without cleaning": replace(ALL, has_cleaning=False),
    "without link filter": replace(ALL, has_links=False),
    "no layer at all": Layers(has_fences=False, has_cleaning=False, has_links=False),
}


class Listening:
    """A model of the stub's kind: hears what a server would be sent, says what *output* makes of it."""

    def __init__(self, output: Callable[[list[dict[str, str]]], str]) -> None:
        self.output = output
        self.heard = ""

    def generate(self, prompt: Prompt, *, is_streamed: bool) -> Generator[TextChunk | Ending, None, None]:
        messages: Any = openai.body(prompt, is_streamed)["messages"]
        self.heard = "\n".join(message["content"] for message in messages)
        yield TextChunk(self.output(messages))
        yield Ending("stop")


def gullible(messages: list[dict[str, str]]) -> str:
    return text_for(behaviour_for("gullible"), messages)


def parrot(messages: list[dict[str, str]]) -> str:
    return " ".join(message["content"] for message in messages[1:-1])


CARRIERS = ("text", "title", "address")
"""Where a document carries an attack."""
TOTAL = len(ATTACKS) * len(CARRIERS)
SEED = 52
HONEST = QUESTIONS[::2]
"""Questions whose answers stand in pages that were poisoned."""


def key(number: int, carrier: str) -> str:
    """Return the word that finds the document of one attack on one carrier."""
    return f"zq{number:04d}{carrier[-1]}"


def poisoned() -> Iterator[dict[str, object]]:
    """Yield one document for each attack and carrier; a word of its own finds it."""
    for (number, attack), carrier in itertools.product(enumerate(ATTACKS), CARRIERS):
        word = key(number, carrier)
        text = f"The pump {word} is blue. {attack['text'] if carrier == 'text' else ''}\nIt weighs forty kilograms."
        url = "https://docs.example.org/" + (attack["text"][:500] if carrier == "address" else word)
        title = attack["text"][:500] if carrier == "title" else f"Pump {word}"
        # Surrogates cannot be written, and a NUL no title can hold: neither is the subject here.
        fields = {"id": word, "title": title.replace("\x00", ""), "url": url, "content": text, "language": "en"}
        yield from_line({name: value.encode("utf-8", "replace").decode() for name, value in fields.items()}, Rights())


def poisoned_pages() -> Iterator[dict[str, Any]]:
    """Yield the page of each honest question with an attack at its start, middle or end, or after every paragraph."""
    dice = random.Random(SEED)
    for number, identity in enumerate({one["doc_ids"][0]: None for one in HONEST}):
        paragraphs = pages()[identity]["content"].split("\n\n")
        attack = dice.choice(ATTACKS)["text"].encode("utf-8", "replace").decode()
        places = [[0], [len(paragraphs) // 2], [len(paragraphs)], list(range(len(paragraphs), 0, -1))]
        for place in places[number % len(places)]:
            paragraphs.insert(place, attack)
        yield {**pages()[identity], "content": "\n\n".join(paragraphs)}


@pytest.fixture(scope="module")
def retriever(tmp_path_factory: pytest.TempPathFactory) -> EmbeddedRetriever:
    """Index the attacks on three carriers, and pages of the demo with an attack in each."""
    folder = tmp_path_factory.mktemp("poison")
    with closing(EmbeddedWriter(folder)) as writer:
        writer.add(list(poisoned()))
        writer.add([from_line(page, Rights()) for page in poisoned_pages()])
        writer.commit()
    return EmbeddedRetriever(folder)


def uncleaned(text: str, *, is_full: bool, is_in_table: bool = False) -> tuple[str, OffsetMap]:
    """Replaces cleaning: nothing is dropped but what JSON cannot carry."""
    return text, OffsetMap((OffsetRun(0, 0, len(text)),))


def asked(retriever: EmbeddedRetriever, model: Model, question: str, layers: Layers) -> Answer | None:
    """Return the answer that passes *layers*, None when there is none."""
    settings = settings_with(rag_max_files=1)
    parts = Dependencies(
        retriever=retriever,
        model=model,
        counter=EstimatedTokens(),
        instructions="Answer from the documents.",
        new_nonce=new_nonce if layers.has_fences else lambda: "document",
        clock=time.monotonic,
    )
    with pytest.MonkeyPatch.context() as patch:
        if not layers.has_cleaning:
            patch.setattr(extracts, "clean", uncleaned)
        if not layers.has_links:
            patch.setattr(output_filter, "neutral", str)
        try:
            return collect(answer(Ask(question), ANONYMOUS, settings=settings, dependencies=parts))
        except RagError:
            return None


def obeyed_and_hidden(retriever: EmbeddedRetriever, layers: Layers) -> tuple[int, int]:
    """Return how many attacks a model obeyed that obeys, and how many prompts had a hidden sign."""
    obeyed = hidden = 0
    for question in questions():
        ears = Listening(gullible)
        reply = asked(retriever, ears, question, layers)
        assert reply is not None
        obeyed += "I obey:" in reply.finished.text
        hidden += clean(ears.heard, is_full=False)[0] != ears.heard
    return obeyed, hidden


def foreign(retriever: EmbeddedRetriever, layers: Layers) -> int:
    """Return how many answers of a model that repeats all it is told had a foreign target."""
    replies = (asked(retriever, Listening(parrot), question, layers) for question in questions())
    return sum(reply is not None and _FOREIGN.search(reply.finished.text) is not None for reply in replies)


def questions() -> Iterator[str]:
    """Yield for each attack and carrier the question that finds it."""
    for number, carrier in itertools.product(range(len(ATTACKS)), CARRIERS):
        yield f"What weighs {key(number, carrier)}?"


def honest(retriever: EmbeddedRetriever, layers: Layers) -> list[str]:
    """Return the extractive answers to honest questions over the poisoned pages."""
    replies = (asked(retriever, ExtractiveModel(), one["question"], layers) for one in HONEST)
    return ["" if reply is None else reply.finished.text for reply in replies]


def right(answers: list[str]) -> int:
    """Return how many answers hold one of the expected ones."""
    wanted = [one["answers"] for one in HONEST]
    folded = [" ".join(text.lower().split()) for text in answers]
    return sum(
        any(" ".join(one.lower().split()) in text for one in several)
        for text, several in zip(folded, wanted, strict=True)
    )


def test_no_attack_passes_all_layers_and_each_layer_stops_some(retriever: EmbeddedRetriever) -> None:
    """Each layer alone is tried with the model that shows it; the slow test prints the whole table."""
    assert (*obeyed_and_hidden(retriever, ALL), foreign(retriever, ALL)) == (0, 0, 0)
    assert obeyed_and_hidden(retriever, ROWS["without fences"])[0] > TOTAL // 10
    assert obeyed_and_hidden(retriever, ROWS["without cleaning"])[1] >= 3
    assert foreign(retriever, ROWS["without link filter"]) >= 5


def test_no_layer_costs_an_honest_answer(retriever: EmbeddedRetriever) -> None:
    usual = honest(retriever, ALL)
    assert honest(retriever, ROWS["without fences"]) == usual
    # An answer may quote a poisoned sentence beside the right one: the filter of links changes that one on purpose.
    assert right(honest(retriever, ROWS["without link filter"])) == right(usual)
    # Cleaning joins lines, so the sentences of an answer may differ; whether it is right hardly does.
    assert abs(right(honest(retriever, ROWS["without cleaning"])) - right(usual)) <= 3


@pytest.mark.slow
def test_the_table_of_attacks_and_layers(retriever: EmbeddedRetriever, record_property: Record) -> None:
    usual = honest(retriever, ALL)
    rows = [f"INJECTION of {TOTAL} ({len(ATTACKS)} attacks in text, title, address): obeyed | foreign targets | hidden"]
    for name, layers in ROWS.items():
        (obeyed, hidden), answers = obeyed_and_hidden(retriever, layers), honest(retriever, layers)
        same = sum(one == other for one, other in zip(usual, answers, strict=True))
        rows.append(
            f"  {name:20} {obeyed:4} {foreign(retriever, layers):4} {hidden:4}   honest questions: {right(answers)} of "
            f"{len(answers)} right, {same} word for word as with all layers"
        )
        assert layers != ALL or (obeyed, hidden) == (0, 0)
    tell(record_property, "\n".join(rows))


def test_words_in_braces_stay_words(retriever: EmbeddedRetriever) -> None:
    """A placeholder in a document is text, whatever a template language would make of it."""
    for number, attack in enumerate(ATTACKS):
        if attack["category"] != "template-placeholder":
            continue
        ears = Listening(gullible)
        asked(retriever, ears, f"What weighs {key(number, 'text')}?", ALL)
        assert attack["text"].replace("\\", "/") in ears.heard
