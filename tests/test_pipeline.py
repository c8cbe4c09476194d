from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from datafari_rag.core.access import Filter, User
from datafari_rag.core.ask import Ask, ChatMessage
from datafari_rag.core.documents import Document, Nearness
from datafari_rag.core.errors import (
    EmbeddingsGarbled,
    EmbeddingsMismatch,
    EmbeddingsTimeout,
    EmbeddingsUnavailable,
    ModelTimeout,
    ModelUnavailable,
    NoAnswer,
    NoDocuments,
    NoRoomForDocuments,
    NotAuthenticated,
    RagError,
    SearchUnavailable,
)
from datafari_rag.core.events import Delta, Event, Failed, Finished, Sources
from datafari_rag.core.meaning.near_search import NearSearch
from datafari_rag.core.search_request import Browse, Search
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.vectors import EmbeddingModel, Purpose, Vector, unit_vector
from datafari_rag.pipeline import answer, beginning_of, browse, collect, fetch, found_for, sources_for
from datafari_rag.ports import Ending, Meaning, TextChunk
from tests.fakes import FLIGHT, RABBIT, FakeModel, FakeRetriever, parts_of
from tests.settings import settings_with

ANN = User("ann", frozenset({"s1"}))
ASK = Ask("When does the plane take off?", is_streamed=True)


def events_of(
    ask: Ask = ASK,
    user: User = ANN,
    *,
    retriever: FakeRetriever | None = None,
    model: FakeModel | None = None,
    settings: Settings | None = None,
) -> list[Event]:
    dependencies = parts_of(
        retriever or FakeRetriever(FLIGHT, RABBIT), model or FakeModel("The flight takes off ", "at 15h50 [1].")
    )
    return list(answer(ask, user, settings=settings or Settings(), dependencies=dependencies))


def test_an_answer_is_sources_then_deltas_then_one_finished() -> None:
    events = events_of()

    assert [type(event) for event in events] == [Sources, Delta, Delta, Finished]
    assert "".join(event.text for event in events if isinstance(event, Delta)) == "The flight takes off at 15h50 [1]."
    assert collect(iter(events)).finished.text == "The flight takes off at 15h50 [1]."


@pytest.mark.parametrize("is_cleaned", [True, False], ids=["cleaned", "not cleaned"])
def test_whole_and_streamed_cite_the_same_places_of_a_long_document(is_cleaned: bool) -> None:
    """A streamed answer lets the texts go while the model writes."""
    lead = "Luggage is weighed\tat the counter. " * 500
    long = Document("big", f"{lead}🙂 Enjoy. The plane, a jet, takes off at 15h50.\n{lead}", title="Big", score=4.0)
    settings = settings_with(rag_max_json_length=2000, rag_clean=is_cleaned)

    def told(is_streamed: bool) -> Finished:
        model = FakeModel("The plane takes off ", "at 15h50 [1]. “The plane, a jet, takes off at 15h50” [1].")
        asked = replace(ASK, is_streamed=is_streamed)
        return collect(iter(events_of(asked, retriever=FakeRetriever(long), model=model, settings=settings))).finished

    whole, streamed = told(False), told(True)

    assert [citation.status for citation in whole.citations] == ["near", "verified"]
    assert streamed.citations == whole.citations
    assert [one.text for one in streamed.extracts] == [one.text for one in whole.extracts]
    assert [one.origins for one in streamed.extracts] == [one.origins for one in whole.extracts]


def test_the_filter_of_every_search_is_made_of_the_users_tokens() -> None:
    retriever = FakeRetriever(FLIGHT)
    events_of(retriever=retriever)

    assert {access.tokens for _, access in retriever.searches} == {("s1",)}


def test_nobody_without_identity_is_searched_for_where_one_is_required() -> None:
    retriever = FakeRetriever(FLIGHT)
    events = events_of(user=User(), retriever=retriever, settings=settings_with(security_anonymous="refuse"))

    assert isinstance(events[0], Failed)
    assert isinstance(events[0].error, NotAuthenticated)
    assert retriever.searches == []


def test_a_question_that_finds_nothing_is_relaxed_step_by_step_and_then_gives_up() -> None:
    retriever = FakeRetriever()
    events = events_of(replace(ASK, question="plane departure terminal gate"), retriever=retriever)
    names = [search.step.name for search, _ in retriever.searches]
    failed = events[-1]

    assert len(names) > 1
    assert names == list(dict.fromkeys(names))
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, NoDocuments)


def test_the_language_asked_for_changes_the_answers_language_and_nothing_that_is_found() -> None:
    plain, french = FakeRetriever(FLIGHT), FakeRetriever(FLIGHT)
    model = FakeModel("x")
    events_of(retriever=plain)
    events_of(replace(ASK, language="fr"), retriever=french, model=model)

    assert [search for search, _ in french.searches] == [search for search, _ in plain.searches]
    assert model.prompts[0].language == "fr"


def test_the_thoughts_name_the_operator_that_was_used() -> None:
    (sources, *_) = events_of()

    assert isinstance(sources, Sources)
    assert sources.thoughts[1].description == "OR: plane take"


@pytest.mark.parametrize("operator", ["AND", "OR"])
def test_documents_without_any_room_are_not_called_nothing_found(operator: Any) -> None:
    settings = settings_with(rag_max_tokens=20_000, rag_operator=operator)
    failed = events_of(settings=settings)[-1]

    assert isinstance(failed, Failed)
    assert isinstance(failed.error, NoRoomForDocuments)
    assert (failed.error.label, failed.error.code) == ("contextTooLong", 400)


def test_the_model_is_told_question_documents_and_instructions_with_their_slots_filled() -> None:
    model = FakeModel("x")
    events_of(replace(ASK, answer_format="bulletpoint", language="fr"), model=model)
    prompt = model.prompts[0]

    assert prompt.question == ASK.question
    assert prompt.instructions is not None
    assert "French" in prompt.instructions
    assert "bullet" in prompt.instructions
    assert [extract.document.id for extract in prompt.extracts] == ["doc-2", "doc-1"]
    assert prompt.nonce == "n0nce"


def test_a_model_that_ends_without_an_ending_is_unavailable() -> None:
    class Mute(FakeModel):
        def generate(self, prompt: Any, *, is_streamed: bool) -> Any:
            yield TextChunk("half an ")

    failed = events_of(model=Mute())[-1]

    assert isinstance(failed, Failed)
    assert isinstance(failed.error, ModelUnavailable)


def test_follow_up_marks_become_questions_and_never_text() -> None:
    model = FakeModel("At 15h50. <", "<Where is the gate?>", "><<How late?>>")
    events = events_of(replace(ASK, wants_followups=True), model=model)
    finished = events[-1]

    assert isinstance(finished, Finished)
    assert finished.text.strip() == "At 15h50."
    assert finished.followups == ("Where is the gate?", "How late?")
    assert "<<" in (model.prompts[0].instructions or "")


def test_the_stages_add_up_to_the_time_of_the_line() -> None:
    finished = events_of()[-1]

    assert isinstance(finished, Finished)
    assert [stage for stage, _ in finished.timings_ms] == ["search", "passages", "prompt", "model", "citations"]
    assert all(took >= 1 for _, took in finished.timings_ms)


class Textless(FakeRetriever):
    def probe(self) -> str | None:
        return "No document has a text in the field body."


@pytest.mark.parametrize("is_admin", [True, False])
def test_only_administrators_learn_that_no_document_has_the_field_of_the_texts(is_admin: bool) -> None:
    *_, failed = events_of(user=User("root", is_admin=is_admin), retriever=Textless())

    assert isinstance(failed, Failed) and isinstance(failed.error, NoDocuments)
    assert failed.error.reason == NoDocuments.sentence + " No document has a text in the field body." * is_admin


def test_with_logs_enabled_each_step_is_a_line_without_anybodys_words(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "datafari_rag"):
        events_of(replace(ASK, question="boarding time"), settings=settings_with(rag_enable_logs=True))

    assert [record.getMessage().split(" ")[0] for record in caplog.records] == [
        "search",
        "documents",
        "passages",
        "model",
    ]
    assert "model fake-model; tries=1; fallback=0 chars=34 ended='stop'" in caplog.text
    assert not any(word in caplog.text for word in ("plane", "15h50", "s1", "Boarding"))


def test_with_an_effort_no_query_is_written_outside_of_its_budget() -> None:
    model = FakeModel("flight departure")
    asked = replace(ASK, question="and the gate?", history=(ChatMessage("user", "The flight?"),), effort="minimal")
    settings = settings_with(chat_query_rewriting_enabled=True)
    events = events_of(asked, retriever=FakeRetriever(FLIGHT), model=model, settings=settings)

    finished = events[-1]
    assert isinstance(finished, Finished)
    assert finished.activity is not None
    assert len(model.prompts) == finished.activity.spent.model_calls == 1


@pytest.mark.parametrize("ending", [Ending(None, ModelTimeout()), None], ids=["fails", "says nothing more"])
def test_a_model_that_cannot_write_the_query_changes_nothing(ending: Ending | None) -> None:
    class Poor(FakeModel):
        def generate(self, prompt: Any, *, is_streamed: bool) -> Any:
            yield TextChunk("bad ")
            if ending is not None:
                yield ending

    retriever = FakeRetriever(FLIGHT)
    asked = replace(ASK, question="and the gate?", history=(ChatMessage("user", "The flight?"),))
    rewriting = settings_with(chat_query_rewriting_enabled=True)
    events_of(asked, retriever=retriever, model=Poor(), settings=rewriting)

    assert "bad" not in retriever.searches[0][0].question


@pytest.mark.parametrize(("spoken", "is_other"), [(("fr",), True), (("fr", "en"), False), ((None,), False)])
def test_documents_in_another_language_than_the_question_are_told(
    spoken: tuple[str | None, ...], is_other: bool
) -> None:
    documents = [replace(FLIGHT, id=str(number), language=code) for number, code in enumerate(spoken)]
    ask = replace(ASK, question_language="en")

    sources = events_of(ask, retriever=FakeRetriever(*documents))[0]
    assert isinstance(sources, Sources) and sources.is_in_other_language is is_other
    strict = settings_with(rag_evidence_min=0.99)
    failed = events_of(ask, retriever=FakeRetriever(*documents), settings=strict)[-1]
    assert isinstance(failed, Failed) and ("another language" in failed.error.reason) is is_other


def test_the_beginning_ends_with_the_first_words_and_the_rest_stays_to_be_read() -> None:
    model = FakeModel("a", "b")
    events = answer(ASK, ANN, settings=Settings(), dependencies=parts_of(FakeRetriever(FLIGHT), model))
    beginning = beginning_of(events)

    assert [type(event) for event in beginning] == [Sources, Delta]
    assert [type(event) for event in events] == [Delta, Finished]


def test_what_fails_before_the_first_words_is_raised() -> None:
    model = FakeModel(failure=ModelTimeout())

    with pytest.raises(ModelTimeout):
        beginning_of(answer(ASK, ANN, settings=Settings(), dependencies=parts_of(FakeRetriever(FLIGHT), model)))


def test_closing_what_nobody_reads_frees_the_model() -> None:
    model = FakeModel("a", "b")
    events = answer(ASK, ANN, settings=Settings(), dependencies=parts_of(FakeRetriever(FLIGHT), model))
    beginning_of(events)
    events.close()

    assert model.was_closed_early


def test_collect_raises_a_late_failure_and_a_missing_end() -> None:
    with pytest.raises(ModelTimeout):
        collect(iter([Sources(()), Delta("a"), Failed(ModelTimeout())]))
    with pytest.raises(NoAnswer):
        collect(iter([Sources(())]))


def test_plain_search_and_opening_run_under_the_same_filter() -> None:
    retriever = FakeRetriever(FLIGHT)
    dependencies = parts_of(retriever, FakeModel())
    browse(Browse("x"), ANN, settings=Settings(), dependencies=dependencies)

    assert retriever.browsed[0][1].tokens == ("s1",)
    assert fetch("doc-2", "exactContent", ANN, security=Settings().security, dependencies=dependencies) == FLIGHT
    assert fetch("doc-9", "exactContent", ANN, security=Settings().security, dependencies=dependencies) is None


def test_a_document_of_a_megabyte_stays_within_the_settings_characters() -> None:
    large = Document("big", "The plane takes off at noon. " * 40_000, title="Big")
    sources = events_of(retriever=FakeRetriever(large), settings=settings_with(rag_max_json_length=900))[0]

    assert isinstance(sources, Sources)
    assert 0 < sum(len(extract.text) for extract in sources.extracts) <= 900


class FakeEmbedder:
    """Gives every text the same vector, or fails."""

    def __init__(self, error: RagError | None = None, languages: frozenset[str] = frozenset()) -> None:
        self.model = EmbeddingModel("fake", "key", 2, languages)
        self.error = error
        self.asked: list[tuple[str, str]] = []

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Vector]:
        self.asked += [(text, purpose) for text in texts]
        if self.error is not None:
            raise self.error
        return [unit_vector([1.0, 0.0]) for _ in texts]


class FakePassages:
    """Finds the same documents near for every question, or fails; remembers who asked."""

    def __init__(
        self, *nearest: Document, error: RagError | None = None, unread: RagError | None = None, hidden: str = ""
    ) -> None:
        self.documents, self.error, self.unread, self.hidden = nearest, error, unread, (hidden,)
        self.reads = False
        self.asked: list[Filter] = []

    def nearest(self, search: NearSearch, access: Filter) -> tuple[Document, ...]:
        self.asked.append(access)
        if self.error is not None:
            raise self.error
        return self.documents

    def reads_texts(self, search: Search) -> bool:
        return self.reads

    def compared(self, documents: Sequence[Document], search: NearSearch, access: Filter) -> tuple[Document, ...]:
        self.asked.append(access)
        if self.unread is not None:
            raise self.unread
        near = {one.id: one.near for one in self.documents}
        return tuple(replace(one, near=near.get(one.id, ())) for one in documents if one.id not in self.hidden)

    def spread(self, model: EmbeddingModel) -> float | None:
        return 0.05

    def probe(self, model: EmbeddingModel) -> str | None:
        return None


NEAR_RABBIT = replace(RABBIT, near=(Nearness(0, len(RABBIT.text), 0.9),), score=0.0)


def sources_of(
    embedder: FakeEmbedder, passages: FakePassages, *found: Document, settings: Settings | None = None
) -> Sources:
    dependencies = replace(parts_of(FakeRetriever(*found), FakeModel("x")), meaning=Meaning(embedder, passages))
    events = list(answer(ASK, ANN, settings=settings or Settings(), dependencies=dependencies))
    return next(event for event in events if isinstance(event, Sources))


def test_what_is_near_in_meaning_is_found_beside_what_words_find() -> None:
    embedder, passages = FakeEmbedder(), FakePassages(NEAR_RABBIT)
    found = sources_of(embedder, passages, FLIGHT)

    assert {one.document.id for one in found.extracts} == {FLIGHT.id, RABBIT.id}
    assert found.found_by == "both" and (found.thoughts[1].props or {})["has_vector"] is True
    assert embedder.asked == [(ASK.question, "query")]


def test_the_filter_of_the_search_by_meaning_is_the_users() -> None:
    passages = FakePassages(NEAR_RABBIT)
    sources_of(FakeEmbedder(), passages, FLIGHT)

    assert {access.tokens for access in passages.asked} == {("s1",)} and len(passages.asked) == 2


@pytest.mark.parametrize(
    ("embedder", "passages"),
    [
        pytest.param(FakeEmbedder(EmbeddingsUnavailable()), FakePassages(), id="the model is away"),
        pytest.param(FakeEmbedder(EmbeddingsTimeout()), FakePassages(), id="the model is slow"),
        pytest.param(FakeEmbedder(EmbeddingsGarbled()), FakePassages(), id="the model gives garbage"),
        pytest.param(FakeEmbedder(), FakePassages(error=EmbeddingsMismatch()), id="another model made the index"),
        pytest.param(FakeEmbedder(), FakePassages(error=EmbeddingsGarbled()), id="another dimension"),
        pytest.param(FakeEmbedder(), FakePassages(error=SearchUnavailable()), id="the vectors are damaged"),
        pytest.param(FakeEmbedder(languages=frozenset({"fr"})), FakePassages(RABBIT), id="an unknown language"),
    ],
)
def test_words_alone_answer_where_meaning_cannot(embedder: FakeEmbedder, passages: FakePassages) -> None:
    found = sources_of(embedder, passages, FLIGHT)

    assert [one.document.id for one in found.extracts] == [FLIGHT.id]
    assert found.found_by == "words"


def test_the_documents_of_an_answer_can_be_had_without_it() -> None:
    dependencies = replace(
        parts_of(FakeRetriever(FLIGHT), FakeModel("x")), meaning=Meaning(FakeEmbedder(), FakePassages())
    )
    found = found_for(ASK, ANN, settings=Settings(), dependencies=dependencies)

    assert [document.id for document in found.documents] == [FLIGHT.id]


def test_the_sources_of_an_answer_are_those_that_it_would_have_and_call_no_model() -> None:
    model = FakeModel("Not this.")
    sources = sources_for(ASK, ANN, settings=Settings(), dependencies=parts_of(FakeRetriever(FLIGHT, RABBIT), model))
    whole = collect(iter(events_of()))
    assert sources.extracts == whole.sources.extracts
    assert model.prompts == []


@pytest.mark.parametrize(
    ("retriever", "kind"),
    [
        (FakeRetriever(), NoDocuments),
        (FakeRetriever(error=SearchUnavailable()), SearchUnavailable),
        (FakeRetriever(is_partial=True), SearchUnavailable),
    ],
    ids=["nothing", "no engine", "nothing in a part"],
)
def test_without_sources_their_failure_is_raised(retriever: FakeRetriever, kind: type[RagError]) -> None:
    with pytest.raises(kind):
        sources_for(ASK, ANN, settings=Settings(), dependencies=parts_of(retriever, FakeModel("x")))
