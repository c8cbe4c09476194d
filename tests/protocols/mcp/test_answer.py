"""The tool answer as a dialect: its arguments into an ask, its events into progress and one result."""

from __future__ import annotations

import pytest

from datafari_rag.core.ask import ChatMessage, Restriction
from datafari_rag.core.query.filter_queries import facets_of
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols.mcp import messages
from datafari_rag.protocols.mcp.messages import RpcRequest
from datafari_rag.protocols.mcp.replies import AnswerCall
from tests.protocols.mcp.test_results import room
from tests.protocols.values import request
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
