"""
What agents' clients see of /mcp: FastMCP's, LangChain's, the inspector, the reference client at two revisions.

The real server over the demo documents, where alice may read the Python manual and bob may not.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from datafari_rag.resources import __file__ as resources_file
from tests.clients.conftest import HERE, LANGCHAIN, NODE_MODULES, Saw, _printed, settings_for
from tests.clients.test_mcp_conformance import node_22
from tests.end_to_end.processes import Running, service
from tests.required import present

pytestmark = [pytest.mark.clients, pytest.mark.slow]

QUESTION = "How are Enums and Flags different?"
SECRET = "py-howto-enum"
"""A document that alice may read and bob may not."""

MCP = HERE.parents[1] / ".venvs" / "mcp" / "bin" / "python"
USERS = Path(resources_file).parent / "demo" / "users.json"
PUBLIC = "pg-acronyms"
"""A document that both may read."""

TOOLS = ["search", "fetch", "answer", "check", "summarize", "compare"]


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory, demo_index: Path, stub: Running) -> Iterator[str]:
    """The address of /mcp in a service that believes its proxy, over two workers."""
    rights = {"security.identity": "header", "security.tokens": "file", "security.tokens.file": str(USERS)}
    settings = {**settings_for(demo_index, stub, "cite"), **rights}
    with service(tmp_path_factory.mktemp("agents"), settings, workers=2) as found:
        yield f"{found.url}/mcp"


@pytest.fixture(scope="module")
def seen(agents: str) -> Any:
    return _printed([str(present(MCP, ".ci/setup long")), str(HERE / "mcp_client.py"), agents, QUESTION])


@pytest.mark.parametrize(("mode", "revision"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
def test_the_reference_client_finds_searches_and_asks_at_both_revisions(
    seen: Any, mode: str, revision: str, saw: Saw
) -> None:
    alice = seen[f"alice {mode}"]
    saw(mode, alice["version"], alice["tools"], alice["progress"][0])
    assert (alice["version"], alice["server"], alice["tools"]) == (revision, "datafari_rag", TOOLS)
    assert SECRET in [one["id"] for one in alice["search"]["structured"]["results"]]
    assert alice["search"]["kinds"] == ["text"]
    assert json.loads(alice["search"]["text"]) == alice["search"]["structured"]
    assert alice["answer"]["citations"][0]["document_id"]
    assert "".join(alice["progress"][1:]) == alice["answer"]["answer"]
    assert set(alice["links"]) == {"text", "resource_link"}
    assert alice["fetch"]["structured"]["id"] == SECRET
    summary, compared = alice["summary"], alice["compared"]
    assert {one["document_id"] for one in summary["citations"]} == {SECRET}
    assert summary["estimate"]["calls"] >= 1
    assert alice["steps"][0] == "1 documents found"
    assert [one["id"] for one in compared["documents"]] == [SECRET, PUBLIC]
    assert compared["skipped"] == [{"id": "nobody", "reason": "notFound"}]
    assert alice["wrong"]["isError"]
    assert "rows" in alice["wrong"]["text"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_another_user_sees_other_documents_and_no_trace_of_hidden_ones(seen: Any, mode: str) -> None:
    bob = seen[f"bob {mode}"]
    assert bob["fetch"] == {**bob["fetch"], "isError": True, "structured": None}
    assert bob["summary"] is None, "as of a document that is not there"
    # What is skipped has the names that were sent, and no other word of it.
    skipped = bob["compared"].pop("skipped")
    assert skipped == [{"id": one, "reason": "notFound"} for one in (SECRET, "nobody")]
    assert SECRET not in json.dumps(bob)


def test_fastmcp_gets_the_same(seen: Any) -> None:
    assert seen["fastmcp"]["tools"] == TOOLS
    assert seen["fastmcp"]["structured"] == seen["alice auto"]["search"]["structured"]


def test_langchains_agents_get_the_tools(agents: str, seen: Any, saw: Saw) -> None:
    python = present(LANGCHAIN, ".ci/setup long")
    told = _printed([str(python), str(HERE / "langchain_mcp_client.py"), agents, QUESTION])
    saw(told["tools"])
    assert told["tools"] == sorted(TOOLS)
    assert told["structured"] == seen["alice auto"]["search"]["structured"]


def test_the_inspector_lists_and_calls_the_tools(agents: str, saw: Saw) -> None:
    # It looks for its own version beside the folder it is run in.
    folder = present(NODE_MODULES / "@modelcontextprotocol" / "inspector-cli" / "build", ".ci/setup long")
    command = [node_22(), "index.js", agents, "--transport", "http", "--header", "X-Remote-User: alice", "--method"]

    def inspected(*more: str) -> Any:
        done = subprocess.run([*command, *more], capture_output=True, text=True, timeout=60, cwd=folder)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    tools = inspected("tools/list")["tools"]
    found = inspected("tools/call", "--tool-name", "search", "--tool-arg", f"query={QUESTION}")
    saw([tool["name"] for tool in tools])
    assert [tool["name"] for tool in tools] == TOOLS
    assert all(tool["annotations"]["readOnlyHint"] for tool in tools)
    assert SECRET in [one["id"] for one in found["structuredContent"]["results"]]
