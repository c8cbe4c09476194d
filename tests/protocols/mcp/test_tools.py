"""The tools as agents see them: what is listed is what is taken and given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from datafari_rag.core.ask import ChatMessage, Restriction
from datafari_rag.core.events import SkippedDocument, Sources, WorkEstimate
from datafari_rag.core.proof.checking import checked
from datafari_rag.core.query.filter_queries import facets_of
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols.mcp.messages import RpcRequest
from datafari_rag.protocols.mcp.replies import AnswerCall, answer_result, check_result, fetched, search_result
from datafari_rag.protocols.mcp.tools import TOOLS, listed
from tests.protocols.mcp.test_results import LONG, extract_of, room
from tests.protocols.values import EXTRACT, FINISHED, SOURCES, request
from tests.settings import settings_with

GIVEN = {
    "search": search_result(Sources((extract_of(LONG, (0, 40)), EXTRACT), is_partial=True), room()),
    "fetch": fetched(LONG, (0, 10**9), room(300)),
    "answer": answer_result(SOURCES, FINISHED, room()),
    "check": check_result("It slept. No.", checked("It slept. No.", (EXTRACT,)).stated, [LONG], ["x"], room()),
    "summarize": answer_result(replace(SOURCES, estimate=WorkEstimate(1, 1, 9, "refine")), FINISHED, room()),
    "compare": answer_result(replace(SOURCES, skipped=(SkippedDocument("x", "notFound"),)), FINISHED, room()),
}
TAKEN: dict[str, dict[str, object]] = {
    "search": {"query": "When?", "rows": 5, "filters": {"source": "wiki"}, "documents": ["doc-1"]},
    "fetch": {"id": "doc-1", "start": 0, "end": 9, "field": "exactContent", "max_tokens": 100},
    "answer": {
        "question": "When?",
        "effort": "minimal",
        "history": [{"role": "user", "content": "Hi"}],
        "filters": {},
        "documents": [],
    },
    "check": {"text": "It slept.", "document_ids": ["doc-1"]},
    "summarize": {"id": "doc-1", "length": "short", "language": "fr"},
    "compare": {"ids": ["doc-1", "doc-2"], "question": "When?", "language": "fr"},
}


@pytest.mark.parametrize("name", TOOLS)
def test_what_a_tool_takes_and_gives_fits_its_schemas(name: str) -> None:
    shown: Any = next(tool for tool in listed() if tool["name"] == name)
    for schema in (shown["inputSchema"], shown["outputSchema"]):
        jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(TAKEN[name], shown["inputSchema"])
    jsonschema.validate(GIVEN[name], shown["outputSchema"])
    assert set(TAKEN[name]) == set(shown["inputSchema"]["properties"])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**TAKEN[name], "user": "alice"}, shown["inputSchema"])


def call(arguments: object = None, **meta: object) -> AnswerCall:
    params = {"name": "answer", "arguments": {"question": "Who ate?"} if arguments is None else arguments}
    return AnswerCall(RpcRequest(7, "tools/call", params, True, meta), room())


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


def test_no_field_of_rights_narrows_a_search() -> None:
    names = ("source", "allow_token_document", "acl")
    settings = settings_with(solr_facets=names, solr_fields={"deny_token_share": "acl"})
    assert facets_of(settings.solr) == {"source"}
