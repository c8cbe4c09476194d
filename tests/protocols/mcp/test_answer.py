"""The tool answer as a dialect: its arguments into an ask, its events into progress and one result."""

from __future__ import annotations

import json
from typing import Any

import pytest

from datafari_rag.core.ask import Ask, ChatMessage, DocumentWork, Restriction
from datafari_rag.core.errors import BadRequest, ModelUnavailable, NoDocuments, NoQuery
from datafari_rag.core.events import Failed, Progress
from datafari_rag.core.query.filter_queries import facets_of
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols.mcp import messages
from datafari_rag.protocols.mcp.messages import RpcRequest
from datafari_rag.protocols.mcp.replies import AnswerCall
from datafari_rag.protocols.mcp.tools import TOOLS
from tests.protocols.mcp.test_results import room
from tests.protocols.values import ANSWER, FINISHED, context, events, request
from tests.settings import settings_with


def call(arguments: object = None, **meta: object) -> AnswerCall:
    params = {"name": "answer", "arguments": {"question": "Who ate?"} if arguments is None else arguments}
    return AnswerCall(RpcRequest(7, "tools/call", params, "modern", messages.MODERN, meta), room())


def test_the_arguments_are_the_ask() -> None:
    given = {
        "question": "And then?",
        "history": [{"role": "user", "content": "Who ate?"}, {"role": "assistant", "content": "Paris."}],
        "filters": {"source": "wiki"},
        "effort": "minimal",
    }
    ask = call(given).parse(request(None), settings_with(solr_facets=("source",)))
    assert (ask.question, ask.is_streamed) == ("And then?", False)
    assert ask.history == (ChatMessage("user", "Who ate?"), ChatMessage("assistant", "Paris."))
    assert ask.restrictions == (Restriction("source", value="wiki"),)


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({}, NoQuery),
        ({"question": " "}, NoQuery),
        ({"question": "Who?", "effort": "high"}, BadRequest),
        ({"question": "Who?", "user": "alice"}, BadRequest),
        ([], BadRequest),
    ],
)
def test_arguments_that_do_not_fit_are_errors(arguments: object, kind: type[BadRequest]) -> None:
    with pytest.raises(kind):
        call(arguments).parse(request(None), Settings())


@pytest.mark.parametrize(
    ("token", "accept", "is_streamed"),
    [
        ("p", "application/json, text/event-stream", True),
        (0, "text/event-stream", True),
        (None, "text/event-stream", False),
        ("p", "application/json", False),
    ],
)
def test_it_is_streamed_where_progress_is_wanted_and_a_stream_is_taken(
    token: object, accept: str, is_streamed: bool
) -> None:
    ask = call(progressToken=token).parse(request(None, headers={"accept": accept}), Settings())
    assert ask.is_streamed is is_streamed


def test_the_whole_answer_is_one_result_with_links() -> None:
    body: Any = call().reply(ANSWER, context())
    assert body["id"] == 7
    assert [block["type"] for block in body["result"]["content"]] == ["text", "resource_link"]
    assert json.loads(body["result"]["content"][0]["text"]) == body["result"]["structuredContent"]


def test_a_stream_tells_progress_and_ends_with_the_same_result() -> None:
    lines: list[Any] = list(call(progressToken="p").stream(iter(events()), context()))
    told = [line["params"] for line in lines[:-1]]
    assert [line["method"] for line in lines[:-1]] == ["notifications/progress"] * 3
    assert [one["progress"] for one in told] == [1, 2, 3]
    assert {one["progressToken"] for one in told} == {"p"}
    assert told[0]["message"] == "1 documents found"
    assert "".join(one["message"] for one in told[1:]) == FINISHED.text
    assert lines[-1] == call().reply(ANSWER, context())


def test_a_stream_that_breaks_off_ends_with_an_error() -> None:
    lines: list[Any] = list(call().stream(iter(events(Failed(ModelUnavailable()))), context()))
    assert lines[-1]["result"]["isError"]
    assert "modelUnavailable" in lines[-1]["result"]["content"][0]["text"]
    assert list(call().stream(iter(()), context())) == []


def test_a_failure_before_the_words_is_a_result_too() -> None:
    status, body = call().failure(NoDocuments(), Settings())
    result: Any = body["result"]
    assert (status, result["isError"]) == (200, True)


def test_no_field_of_rights_narrows_a_search() -> None:
    names = ("source", "allow_token_document", "acl")
    settings = settings_with(solr_facets=names, solr_fields={"deny_token_share": "acl"})
    assert facets_of(settings.solr) == {"source"}


def work(name: str, arguments: object) -> Ask:
    params = {"name": name, "arguments": arguments}
    calling = AnswerCall(RpcRequest(7, "tools/call", params, "modern", messages.MODERN, {}), room(), TOOLS[name])
    return calling.parse(request(None), Settings())


def test_a_summary_is_work_on_one_document() -> None:
    ask = work("summarize", {"id": "d", "length": "long", "language": "fr"})
    assert (ask.document_ids, ask.work, ask.language) == (("d",), DocumentWork("summarize", "long"), "fr")
    assert work("summarize", {"id": "d"}).work == DocumentWork("summarize", "medium")


def test_a_comparison_is_work_on_several_documents_with_or_without_a_question() -> None:
    ask = work("compare", {"ids": ["a", "b", "a"], "question": "What do they cost?"})
    assert (ask.document_ids, ask.work, ask.question) == (("a", "b"), DocumentWork("synthesize"), "What do they cost?")
    assert work("compare", {"ids": ["a"]}).question == ""


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("summarize", {}),
        ("summarize", {"id": "d", "language": "fr; DROP"}),
        ("summarize", {"id": "d", "language": "x" * 100}),
        ("compare", {"ids": [str(number) for number in range(21)]}),
    ],
)
def test_work_that_cannot_be_read_is_an_error(name: str, arguments: object) -> None:
    with pytest.raises(BadRequest):
        work(name, arguments)


def test_steps_of_a_work_are_progress() -> None:
    calling = call(progressToken="p")
    lines = list(calling.stream(iter([Progress("generation", 1, 5), FINISHED]), context()))
    assert lines[0]["params"] == {"progressToken": "p", "progress": 1, "message": "generation: 1 of 5"}
