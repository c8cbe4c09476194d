"""The model with tools on fakes at the ports: what each tool gives, and what stops a model that does not stop."""

from __future__ import annotations

from dataclasses import replace

import pytest

from datafari_rag.core.access import Filter
from datafari_rag.core.ask import TOOL_CALLS, ActivityStep, Ask, StepLimits
from datafari_rag.core.documents import Document
from datafari_rag.core.errors import SearchTimeout
from datafari_rag.core.events import StepBegun, StepEnded
from datafari_rag.core.steps import PIECE_CHARS, TOOLS
from datafari_rag.stepping import MAX_USELESS, TOOL_TABLE
from tests.stepping.test_run import QUESTION, SONG, TYLER, ScriptedModel, Shelf, activity_in, events_of, ids_in

ASK = Ask(QUESTION, effort="medium", wants_tools=True)
LONG = replace(SONG, text=SONG.text + " It has songs." * 500)


class OpenShelf(Shelf):
    """Gives its documents whole; remembers what was fetched, and as whom."""

    is_gone, is_slow = False, False

    def fetch(self, document_id: str, field: str, access: Filter) -> Document | None:
        self.fetched = [*getattr(self, "fetched", []), (document_id, field, access)]
        if self.is_slow:
            raise SearchTimeout(log="slow")
        return None if self.is_gone else next(one for one in self.documents if one.id == document_id)


def tools_in(shelf: Shelf, model: ScriptedModel, ask: Ask = ASK) -> list[ActivityStep]:
    steps = activity_in(events_of(ask, shelf, model)).steps
    return [step for step in steps if step.kind == "tool"]


def told(model: ScriptedModel, call: int) -> str:
    return model.prompts[call].history[-1].text


def test_every_tool_that_is_named_does_something() -> None:
    assert set(TOOL_TABLE) == set(TOOLS)


def test_the_model_searches_and_ends() -> None:
    shelf, model = OpenShelf(SONG, TYLER), ScriptedModel("search: Gaynor Hopkins", "DONE", "In 1951 [2].")
    events = events_of(ASK, shelf, model)

    assert shelf.searches[1][0].step.words == ("Gaynor", "Hopkins")
    assert ids_in(events) == ["song", "tyler"]
    assert told(model, 1) == "Result: 1 documents, 1 of them new."
    assert {access.tokens for _, access in shelf.searches} == {("s1",)}


def test_calls_and_results_are_told_as_they_come() -> None:
    events = events_of(ASK, OpenShelf(SONG, TYLER), ScriptedModel("search: Gaynor Hopkins", "DONE", "x"))
    calls = [event for event in events if isinstance(event, StepBegun) and event.kind == "tool"]
    results = [event for event in events if isinstance(event, StepEnded) and event.step.kind == "tool"]

    assert [(one.name, one.text) for one in calls] == [("search", "Gaynor Hopkins")]
    assert [(one.id, one.step.name, one.result) for one in results] == [(calls[0].id, "search", "1 documents")]


def test_a_document_is_read_piece_by_piece_as_its_reader() -> None:
    shelf = OpenShelf(LONG)
    model = ScriptedModel("fetch: 1", "readNext: 1", "readNext: 1", "DONE", "x")
    steps = tools_in(shelf, model)

    assert [(step.name, step.count) for step in steps] == [("fetch", 1), ("readNext", 1), ("readNext", 1)]
    shown = [prompt.extracts[0].text for prompt in model.prompts[1:4]]
    assert "".join(shown) == LONG.text[: 3 * PIECE_CHARS]
    assert [(one[0], one[2].tokens) for one in shelf.fetched] == [("song", ("s1",))]


@pytest.mark.parametrize("call", ["readNext: 1", "readNext: 7"])
def test_nothing_is_read_on_that_was_not_fetched(call: str) -> None:
    model = ScriptedModel(call, "DONE", "x")
    assert [step.count for step in tools_in(OpenShelf(SONG), model)] == [0]
    assert told(model, 1) == "Result: That document was not fetched."


def test_the_end_of_a_document_is_told() -> None:
    model = ScriptedModel("fetch: 1", "readNext: 1", "DONE", "x")
    tools_in(OpenShelf(SONG), model)
    assert told(model, 2) == "Result: That was the end of the document."


def test_beyond_the_most_searches_no_tool_is_offered() -> None:
    shelf, model = OpenShelf(SONG, TYLER), ScriptedModel("fetch: 1", "x")
    assert tools_in(shelf, model, replace(ASK, limits=StepLimits(searches=1))) == []
    assert len(model.prompts) == 1


def test_only_documents_that_were_shown_are_fetched() -> None:
    shelf, model = OpenShelf(SONG, TYLER), ScriptedModel("fetch: 9", "DONE", "x")
    assert [step.failure for step in tools_in(shelf, model)] == ["noSuchDocument"]
    assert not hasattr(shelf, "fetched")


def test_a_document_that_is_hidden_by_now_is_as_one_that_is_not_there() -> None:
    shelf, model = OpenShelf(SONG), ScriptedModel("fetch: 1", "DONE", "x")
    shelf.is_gone = True
    assert [step.count for step in tools_in(shelf, model)] == [0]
    assert told(model, 1) == "Result: There is no such document."


def test_a_fetch_that_fails_ends_the_steps_and_not_the_answer() -> None:
    shelf, model = OpenShelf(SONG), ScriptedModel("fetch: 1", "search: x", "x")
    shelf.is_slow = True
    assert [step.failure for step in tools_in(shelf, model)] == ["searchTimeout"]


def test_a_statement_is_checked_against_what_was_shown() -> None:
    proved, wrong = (
        "check: The album Diamond Cut was recorded by Bonnie Tyler.",
        "check: The album was recorded in 1812.",
    )
    model = ScriptedModel(proved, wrong, "check: Why?", "DONE")
    tools_in(OpenShelf(SONG), model)
    results = [told(model, call) for call in (1, 2, 3)]

    assert results[0] in ("Result: supported", "Result: verified")
    assert results[1] == "Result: unsupported"
    assert results[2] == "Result: It states nothing that a document could prove."


@pytest.mark.parametrize("said", ["She was born in 1951.", "", "delete: everything", "x" * 100_000])
def test_a_model_that_calls_nothing_is_stopped_and_told(said: str) -> None:
    model = ScriptedModel(said, said, "x")
    steps = tools_in(OpenShelf(SONG, TYLER), model)

    assert [step.failure for step in steps] == ["noToolCall"] * MAX_USELESS
    assert "That was no call of a tool." in told(model, 1)


def test_the_same_call_again_moves_nothing() -> None:
    steps = tools_in(OpenShelf(SONG, TYLER), ScriptedModel("search: Hopkins"))
    assert [step.failure for step in steps] == [None, "repeatedToolCall", "repeatedToolCall"]


def test_a_model_that_never_ends_is_stopped_by_the_budget() -> None:
    model = ScriptedModel(*(f"search: Hopkins {number}" for number in range(100)))
    activity = activity_in(events_of(ASK, OpenShelf(SONG, TYLER), model))

    assert sum(step.kind == "plan" for step in activity.steps) == TOOL_CALLS
    assert len(model.prompts) == TOOL_CALLS + 1


@pytest.mark.parametrize("call", ["search: Hopkins", "fetch: 1"])
def test_no_tool_goes_over_the_most_searches(call: str) -> None:
    shelf = OpenShelf(SONG, TYLER)
    model = ScriptedModel("search: Gaynor", call, "x")
    tools_in(shelf, model, replace(ASK, limits=StepLimits(searches=2)))
    assert len(shelf.searches) + len(getattr(shelf, "fetched", [])) <= 2


def test_without_medium_there_are_no_tools() -> None:
    assert tools_in(OpenShelf(SONG, TYLER), ScriptedModel("search: Hopkins"), replace(ASK, effort="low")) == []
