"""Agents at the production server: the example of docs/clients.md, clients that disconnect, a thousand calls."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jwt
import pytest
import requests

from datafari_rag.resources import __file__ as resources_file
from tests.end_to_end.processes import Running, service
from tests.required import program
from tests.support.stub import Stub, running_stub
from tests.support.waiting import until

PAGE = (Path(__file__).parents[2] / "docs" / "clients.md").read_text("utf-8")
USERS = Path(resources_file).parent / "demo" / "users.json"
SECRET = "a secret that the tests share with the service"
RESOURCE = "https://search.example/mcp"
QUESTION = "How do I copy a file?"
MANY, AT_ONCE = 1000, 20


@pytest.fixture(scope="module")
def stub() -> Iterator[Stub]:
    with running_stub() as running:
        yield running


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory, demo_index: Path, stub: Stub) -> Iterator[Running]:
    """Two workers behind a proxy that says who asks; the model says a word every 50 ms, two hundred times."""
    settings = {
        "solr.url": f"embedded:{demo_index}",
        "rag.api.endpoint": stub.url,
        "rag.model": "words-200-gap-50ms",
        "llm.limits.retries": "0",
        "security.identity": "header",
        "security.tokens.file": str(USERS),
    }
    with service(tmp_path_factory.mktemp("agents"), settings, workers=2) as found:
        yield found


def body(tool: str, arguments: dict[str, object], **meta: object) -> dict[str, object]:
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def call(session: requests.Session, url: str, tool: str, arguments: dict[str, object], **headers: str) -> Any:
    response = session.post(f"{url}/mcp", json=body(tool, arguments), headers=headers, timeout=60)
    assert response.status_code == 200, response.text
    return response.json()["result"]


def test_the_example_of_two_users_shows_what_it_says(agents: Running) -> None:
    program("curl", "apt-get install curl")
    (example,) = re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL)
    script = example.replace("http://127.0.0.1:8080", agents.url)
    done = subprocess.run(["sh", "-ec", script], capture_output=True, text=True, timeout=60, check=True)
    alice, bob, read, hidden, absent = done.stdout.splitlines()
    assert "py-howto-enum" in alice
    assert "py-howto-enum" not in bob
    assert json.loads(read)["result"]["structuredContent"]["title"] == "Enum HOWTO"
    assert json.loads(hidden)["result"]["isError"]
    assert hidden == absent


@pytest.mark.parametrize("is_streamed", [True, False], ids=["streamed", "whole"])
def test_a_reader_who_goes_closes_the_models_connection(agents: Running, stub: Stub, is_streamed: bool) -> None:
    before = len(stub.requests("words-200-gap-50ms"))
    sent = body("answer", {"question": QUESTION}, **({"progressToken": 1} if is_streamed else {}))
    headers = {"Accept": "application/json, text/event-stream"}
    if is_streamed:
        with requests.post(f"{agents.url}/mcp", json=sent, headers=headers, stream=True, timeout=60) as response:
            lines = response.iter_lines(chunk_size=1)
            assert "documents found" in next(lines).decode()
    else:
        line = http.client.HTTPConnection(agents.url.removeprefix("http://"))
        line.request("POST", "/mcp", json.dumps(sent), {**headers, "Content-Type": "application/json"})
        until(lambda: len(stub.requests("words-200-gap-50ms")) > before)
        line.close()
    asked = stub.requests("words-200-gap-50ms")
    assert len(asked) == before + 1
    # The model would speak for ten seconds.
    assert set(stub.states("words-200-gap-50ms", wanted="left")) == {"left"}


def test_a_thousand_calls_over_two_workers_lose_none(agents: Running) -> None:
    def ask(number: int) -> str:
        user, is_alice = ("alice", True) if number % 2 else ("bob", False)
        found = call(
            sessions[number % AT_ONCE], agents.url, "fetch", {"id": "py-howto-enum"}, **{"X-Remote-User": user}
        )
        assert found["isError"] is not is_alice
        return user

    sessions = [requests.Session() for _ in range(AT_ONCE)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        users = list(pool.map(ask, range(MANY)))
    for session in sessions:
        session.close()
    counted = agents.get("/metrics").text
    totals = re.findall(r'datafari_rag_answers_total\{dialect="mcp",outcome="(ok|notFound)"\} ([\d.]+)', counted)
    assert users.count("alice") == users.count("bob") == MANY // 2
    assert {outcome: float(number) >= MANY // 2 for outcome, number in totals} == {"ok": True, "notFound": True}


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory, demo_index: Path) -> Iterator[Running]:
    """A service that believes signed tokens, those made for it alone."""
    settings = {
        "solr.url": f"embedded:{demo_index}",
        "rag.api.endpoint": "builtin:extractive",
        "security.identity": "jwt",
        "security.tokens": "claims",
        "security.anonymous": "refuse",
        "security.jwt.secret": SECRET,
        "security.jwt.issuer": "https://idp.example/",
        "server.public_url": RESOURCE.removesuffix("/mcp"),
    }
    with service(tmp_path_factory.mktemp("tokens"), settings) as found:
        yield found


def token(audience: object, *groups: str) -> dict[str, str]:
    claims: dict[str, object] = {"preferred_username": "carol", "iss": "https://idp.example/", "groups": list(groups)}
    claims |= {"exp": int(time.time()) + 600} | ({} if audience is None else {"aud": audience})
    return {"Authorization": f"Bearer {jwt.encode(claims, SECRET, 'HS256')}"}


@pytest.mark.parametrize("audience", ["https://other.example/mcp", ["a", "b"], None])
def test_a_token_for_another_audience_is_refused(tokens: Running, audience: object) -> None:
    response = tokens.session.post(
        f"{tokens.url}/mcp", json=body("search", {"query": "enum"}), headers=token(audience), timeout=60
    )
    assert response.status_code == 401
    challenge = response.headers["WWW-Authenticate"]
    resource = "https://search.example/.well-known/oauth-protected-resource/mcp"
    assert challenge == f'Bearer resource_metadata="{resource}", error="invalid_token"'
    assert tokens.get("/.well-known/oauth-protected-resource/mcp").json()["resource"] == RESOURCE


def test_two_tokens_one_question_different_documents(tokens: Running) -> None:
    asked = {"query": "How are Enums and Flags different?"}
    python = call(tokens.session, tokens.url, "search", asked, **token([RESOURCE, "x"], "group:python"))
    other = call(tokens.session, tokens.url, "search", asked, **token(RESOURCE, "group:postgres"))
    assert "py-howto-enum" in json.dumps(python)
    assert "py-howto-enum" not in json.dumps(other)
