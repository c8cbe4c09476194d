"""The tools as agents see them: what is listed is what is taken and given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jsonschema
import pytest
from msgspec import Struct

from datafari_rag.core.events import SkippedDocument, Sources, WorkEstimate
from datafari_rag.core.proof.checking import checked
from datafari_rag.protocols.mcp.replies import answer_result, check_result, fetched, search_result
from datafari_rag.protocols.mcp.tools import TOOLS, Tool, listed
from tests.protocols.mcp.test_results import LONG, extract_of, room
from tests.protocols.values import EXTRACT, FINISHED, SOURCES

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
    shown: Any = listed(TOOLS[name])
    for schema in (shown["inputSchema"], shown["outputSchema"]):
        jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(TAKEN[name], shown["inputSchema"])
    jsonschema.validate(GIVEN[name], shown["outputSchema"])
    assert set(TAKEN[name]) == set(shown["inputSchema"]["properties"])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**TAKEN[name], "user": "alice"}, shown["inputSchema"])


@pytest.mark.parametrize("name", TOOLS)
def test_every_tool_only_reads(name: str) -> None:
    shown: Any = listed(TOOLS[name])
    assert shown["annotations"]["readOnlyHint"]
    assert not shown["annotations"]["destructiveHint"]


class Nothing(Struct):
    """No arguments and no result."""


def test_a_tool_of_somebody_else_has_its_own_text() -> None:
    other = Tool("other", "Other", "Does nothing.", Nothing, Nothing)
    assert listed(other)["description"] == "Does nothing."
