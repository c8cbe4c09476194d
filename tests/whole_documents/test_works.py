"""Whole documents worked on over fakes at the ports: what is asked of the model, how often, what the reader gets."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from datafari_rag import whole_documents
from datafari_rag.adapters.worker_thread import LONG_UNITS
from datafari_rag.core.access import ANONYMOUS
from datafari_rag.core.ask import Ask, DocumentWork
from datafari_rag.core.documents import Document
from datafari_rag.core.errors import ModelBusy, NoAnswer, NoDocuments, NoRoomForDocuments, NotFound, RagError
from datafari_rag.core.events import Delta, Failed, Finished, Progress, SkippedDocument, Sources, WorkEvent
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.whole import EmptyDocument
from datafari_rag.ports import Ending, TextChunk
from datafari_rag.retrieval import Dependencies
from datafari_rag.whole_documents import worked
from tests.fakes import FLIGHT, RABBIT, FakeModel, FakeRetriever, parts_of
from tests.settings import settings_with

T = TypeVar("T")

CHAPTERS = [
    f"Chapter {number} deals with the pump of type P{number}. The pump P{number} moves {number} litres in a minute. "
    f"Its price is {number}00 euros and its guarantee ends after {number} years. " + "Filling words stand here. " * 60
    for number in range(1, 6)
]
LONG = Document("long", "\n\n".join(CHAPTERS), title="Pumps")

SETTINGS = Settings()
EXTRACTIVE = settings_with(SETTINGS, rag_api_endpoint="builtin:extractive")
SUMMARY, SYNTHESIS = DocumentWork("summarize"), DocumentWork("synthesize")


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Summarise in pieces of a page, at most five, so that a short document has several."""
    monkeypatch.setattr(whole_documents, "REQUEST_CHARS", 2_500)
    monkeypatch.setattr(whole_documents, "PIECES", 5)


class PumpModel:
    """Says of each prompt which pumps it has read of; remembers prompts, and how many were closed before their end."""

    def __init__(self, failure: RagError | None = None) -> None:
        self.prompts: list[Prompt] = []
        self.closed, self.failure = 0, failure

    def generate(self, prompt: Prompt, *, is_streamed: bool) -> Generator[TextChunk | Ending, None, None]:
        self.prompts.append(prompt)
        read = " ".join(extract.text for extract in prompt.extracts)
        try:
            for number in (number for number in range(1, 6) if f"P{number}" in read):
                yield TextChunk(f"The pump P{number} moves {number} litres in a minute. ")
        except GeneratorExit:
            self.closed += 1
            raise
        yield Ending(None if self.failure else "stop", self.failure)


def events(
    work: DocumentWork, *ids: str, model: PumpModel | FakeModel, settings: Settings = SETTINGS, **more: object
) -> list[WorkEvent]:
    ask = Ask(str(more.get("question", "")), document_ids=ids)
    return list(worked(ask, work, ANONYMOUS, settings=settings, dependencies=parts(model)))


def parts(model: PumpModel | FakeModel) -> Dependencies:
    found = FakeRetriever(LONG, RABBIT, FLIGHT, Document("blank", "\n"))
    return replace(parts_of(found, FakeModel()), model=model)


def ended(found: list[WorkEvent]) -> Finished:
    assert isinstance(found[-1], Finished), found[-1]
    assert "".join(event.text for event in found if isinstance(event, Delta)) == found[-1].text
    return found[-1]


def cost(found: list[WorkEvent]) -> int:
    sources = next(event for event in found if isinstance(event, Sources))
    assert sources.estimate is not None
    return sources.estimate.calls


def test_a_long_document_is_summarised_piece_after_piece_each_going_on_from_the_summary_so_far() -> None:
    model = PumpModel()
    found = events(SUMMARY, "long", model=model)
    assert len(model.prompts) == cost(found) == 5
    assert [(event.count, event.total) for event in found if isinstance(event, Progress)] == [
        (n, 5) for n in range(1, 6)
    ]
    assert all(len(prompt.extracts) == 1 and len(prompt.extracts[0].text) <= 2_500 for prompt in model.prompts)
    assert "The summary so far" not in model.prompts[0].question
    assert "The pump P1 moves 1 litres" in model.prompts[1].question
    finished = ended(found)
    assert [one.status for one in finished.citations] == ["verified"] * 5
    for number, one in enumerate(finished.citations, 1):
        assert one.start is not None and LONG.text[one.start : one.end] == one.quote
        assert finished.text[one.answer_start : one.answer_end] == "[1]"
        assert f"P{number}" in str(one.quote)


def test_the_first_words_come_after_one_call() -> None:
    model = PumpModel()
    ask = Ask("", document_ids=("long",))
    running = worked(ask, SUMMARY, ANONYMOUS, settings=SETTINGS, dependencies=parts(model))
    next(event for event in running if isinstance(event, Delta))
    assert len(model.prompts) == 1
    running.close()
    assert len(model.prompts) == 1


def peak_bytes(document: Document, settings: Settings) -> tuple[int, int, int]:
    """Return the most memory that the summary of *document* took, the calls before its first words, and all calls."""
    model = PumpModel()
    dependencies = replace(parts_of(FakeRetriever(document), FakeModel()), model=model)
    first = 0
    tracemalloc.start()
    try:
        ask = Ask("", document_ids=(document.id,))
        for event in worked(ask, SUMMARY, ANONYMOUS, settings=settings, dependencies=dependencies):
            first = first or (len(model.prompts) if isinstance(event, Delta) else 0)
            model.prompts[:-1] = [replace(one, extracts=()) for one in model.prompts[:-1]]
        return tracemalloc.get_traced_memory()[1], first, len(model.prompts)
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_two_megabytes_take_memory_in_proportion_and_the_first_words_come_after_one_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Slow, since 2 MB are weighed sentence by sentence. Ten pieces take no more memory than two."""
    text = "\n\n".join(CHAPTERS[number % 5].replace("Filling", f"Filling{number}") for number in range(1_200))[
        :2_000_000
    ]
    document = Document("huge", text, title="Pumps")
    monkeypatch.setattr(whole_documents, "PIECES", 10)
    whole, first, calls = peak_bytes(document, SETTINGS)
    assert (first, calls) == (1, 10)
    monkeypatch.setattr(whole_documents, "PIECES", 2)
    few, first, calls = peak_bytes(document, SETTINGS)
    assert (first, calls) == (1, 2)
    assert whole < 1.1 * few
    assert whole < 40 * len(text)


@pytest.mark.parametrize("pieces", [1, 2, 3])
def test_never_more_calls_than_were_told(pieces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_documents, "PIECES", pieces)
    model = PumpModel()
    found = events(SUMMARY, "long", model=model)
    assert len(model.prompts) == cost(found) <= pieces
    assert max(len(prompt.extracts[0].text) for prompt in model.prompts) <= 2_500


def test_a_reader_who_leaves_ends_the_call_of_the_model() -> None:
    model = PumpModel()
    running = worked(Ask("", document_ids=("long",)), SUMMARY, ANONYMOUS, settings=SETTINGS, dependencies=parts(model))
    next(event for event in running if isinstance(event, Progress))
    running.close()
    assert len(model.prompts) == 1


def test_a_model_that_fails_or_says_nothing_is_told() -> None:
    failed = events(SUMMARY, "long", model=PumpModel(ModelBusy()))[-1]
    assert isinstance(failed, Failed) and isinstance(failed.error, ModelBusy)
    silent = events(SUMMARY, "long", model=FakeModel(" "))[-1]
    assert isinstance(silent, Failed) and isinstance(silent.error, NoAnswer)


def test_without_a_model_a_summary_has_sentences_of_the_document_in_its_order() -> None:
    model = PumpModel()
    found = events(SUMMARY, "long", model=model, settings=EXTRACTIVE)
    finished = ended(found)
    assert (model.prompts, cost(found)) == ([], 0)
    assert [one.status for one in finished.citations] == ["verified"] * len(finished.citations)
    starts = [one.start or 0 for one in finished.citations]
    assert starts == sorted(starts) and 3 <= len(starts) <= 6


def test_what_is_sent_is_within_the_models_window() -> None:
    model = PumpModel()
    settings = settings_with(SETTINGS, llm_context_window=700)
    assert isinstance(events(SUMMARY, "long", model=model, settings=settings)[-1], Finished)
    count = parts(model).counter.count
    for prompt in model.prompts:
        texts = [prompt.question, str(prompt.instructions), *(extract.text for extract in prompt.extracts)]
        assert sum(map(count, texts)) + (prompt.max_tokens or 0) <= 700
    none = events(SUMMARY, "long", model=model, settings=settings_with(settings, llm_context_window=50))[-1]
    assert isinstance(none, Failed) and isinstance(none.error, NoRoomForDocuments)


def test_links_of_a_model_are_made_safe() -> None:
    model = FakeModel("A rabbit ate a carrot, see ![x](http://evil.example/?q=1).")
    text = ended(events(SUMMARY, "doc-1", model=model)).text
    assert "![" not in text and "](" not in text


@pytest.mark.parametrize(
    ("work", "ids", "kind"),
    [
        (SUMMARY, ("gone",), NotFound),
        (SUMMARY, ("blank",), EmptyDocument),
        (SYNTHESIS, ("gone", "lost"), NotFound),
        (SYNTHESIS, ("gone", "blank"), EmptyDocument),
    ],
)
def test_what_cannot_be_read_is_told(work: DocumentWork, ids: tuple[str, ...], kind: type[RagError]) -> None:
    failed = events(work, *ids, model=PumpModel())[-1]
    assert isinstance(failed, Failed) and type(failed.error) is kind


def test_a_synthesis_is_one_call_with_a_share_of_every_document() -> None:
    model = FakeModel("A nice rabbit called Paris ate a carrot [2]. The pump P1 moves 1 litres in a minute [1].")
    found = events(SYNTHESIS, "long", "gone", "doc-1", "doc-2", model=model, question="What moves?")
    (prompt,) = model.prompts
    assert [extract.document.id for extract in prompt.extracts] == ["long", "doc-1", "doc-2"]
    assert len(prompt.extracts[0].text) <= 2_500 // 3 + 100
    assert prompt.question == "What moves?"
    sources = next(event for event in found if isinstance(event, Sources))
    assert sources.skipped == (SkippedDocument("gone", "notFound"),)
    assert [(one.document_id, one.status) for one in ended(found).citations] == [
        ("doc-1", "quoted"),
        ("long", "verified"),
    ]


def test_a_synthesis_of_nothing_in_particular_compares() -> None:
    model = FakeModel("Paris ate a carrot [1].")
    events(SYNTHESIS, "doc-1", "doc-2", model=model)
    assert "in common" in model.prompts[0].question


@pytest.mark.parametrize("question", ["", "When does the flight take off?"])
def test_without_a_model_each_document_of_a_synthesis_answers_for_itself(question: str) -> None:
    found = events(SYNTHESIS, "doc-1", "doc-2", model=PumpModel(), settings=EXTRACTIVE, question=question)
    finished = ended(found)
    assert finished.text.startswith("Rabbits:\n\n") and "\n\nBoarding pass:\n\n" in finished.text
    assert {one.status for one in finished.citations} <= {"quoted", "verified"}
    assert "doc-2" in {one.document_id for one in finished.citations}


def test_without_a_model_a_synthesis_says_no_heading_as_part_of_a_sentence() -> None:
    rules = "# House rules\n\n## Arrival\nSlippers are lent without charge to every guest.\n\n"
    rules += "## Night\nQuiet hours of the house begin at ten in the evening.\n"
    found = FakeRetriever(Document("rules", rules, title="House rules"))
    dependencies = replace(parts_of(found, FakeModel()), model=PumpModel())
    ask = Ask("", document_ids=("rules",))
    finished = ended(list(worked(ask, SYNTHESIS, ANONYMOUS, settings=EXTRACTIVE, dependencies=dependencies)))
    assert finished.text == (
        "House rules:\n\nSlippers are lent without charge to every guest. [1] "
        "Quiet hours of the house begin at ten in the evening. [1]"
    )
    assert {one.status for one in finished.citations} == {"verified"}


def test_an_estimate_of_a_synthesis_costs_nothing() -> None:
    model = PumpModel()
    found = events(replace(SYNTHESIS, is_estimate=True), "doc-1", model=model)
    assert (cost(found), model.prompts, ended(found).text) == (1, [], "")


def test_a_search_that_fails_is_no_search_without_documents() -> None:
    found = events(DocumentWork("search"), model=PumpModel(), question="pump")
    assert isinstance(found[0], Sources) and len(found[0].extracts) == 3
    assert not any(isinstance(event, Failed) and isinstance(event.error, NoDocuments) for event in found)


TRUE, FALSE = "The flight takes off at 15h50, from terminal 2.", "Zyxian dragons cost 500 euros."


@pytest.mark.parametrize(
    ("settings", "words", "wanted"),
    [
        pytest.param({}, f"{TRUE} {FALSE}", (True, True, 0, False), id="marked: both, one without proof"),
        pytest.param({"answer_unsupported": "drop"}, f"{TRUE} {FALSE}", (True, False, 1, False), id="dropped"),
        pytest.param({"answer_unsupported": "drop"}, FALSE, (False, False, 1, True), id="all of it dropped"),
    ],
)
def test_a_summary_has_the_policy_of_every_text_that_a_model_wrote(
    settings: dict[str, Any], words: str, wanted: tuple[bool, bool, int, bool]
) -> None:
    chosen = settings_with(SETTINGS, **settings)
    found = ended(events(SUMMARY, FLIGHT.id, model=FakeModel(words), settings=chosen))
    support = found.support
    assert support is not None
    shown = "15h50" in found.text, "dragons" in found.text
    assert (*shown, support.dropped, support.is_replaced) == wanted
    assert (support.checked, support.verified) == (words.count(" euros.") + words.count("15h50"), words.count("15h50"))
    assert ["dragons" in found.text[start:end] for start, end in support.unsupported] == [True] * shown[1]
    for one in found.citations:
        assert found.text[one.answer_start : one.answer_end] == "[1]"


VAST = Document("vast", LONG.text * 200, title="Pumps")


@pytest.mark.parametrize("settings", [SETTINGS, EXTRACTIVE], ids=["a model", "its own sentences"])
@pytest.mark.parametrize("work", [SUMMARY, SYNTHESIS], ids=lambda work: work.kind)
def test_whatever_is_proved_of_a_long_document_is_long_work(work: DocumentWork, settings: Settings) -> None:
    proofs: list[tuple[str, int]] = []

    def offload(made: Callable[[], T], units: int) -> T:
        proofs.append((getattr(getattr(made, "func", made), "__name__", ""), units))
        return made()

    model = PumpModel()
    found = replace(parts_of(FakeRetriever(VAST), FakeModel()), model=model, offload=offload)
    ended(list(worked(Ask("", document_ids=("vast",)), work, ANONYMOUS, settings=settings, dependencies=found)))

    of_proof = {name: units for name, units in proofs if name in ("provable", "proved", "resolve", "end")}
    assert of_proof
    assert min(of_proof.values()) > LONG_UNITS
