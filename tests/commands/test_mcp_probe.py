"""The probe against the whole application, and against what is no MCP server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from click.testing import CliRunner, Result
from werkzeug.serving import make_server

from datafari_rag.commands.mcp_probe import mcp_probe
from datafari_rag.core.errors import NotAuthenticated, SearchUnavailable
from datafari_rag.web.runtime import ServiceSnapshot
from tests.fakes import FakeIdentity, FakeRetriever, app_of, fake_snapshot
from tests.loopback import Reply
from tests.loopback import serving as serving_reply
from tests.settings import settings_with


def probed(*arguments: str) -> Result:
    return CliRunner().invoke(mcp_probe, arguments)


@contextmanager
def serving(line: ServiceSnapshot) -> Iterator[str]:
    server = make_server("127.0.0.1", 0, app_of(line))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def test_it_says_what_is_there_and_as_whom() -> None:
    with serving(fake_snapshot()) as url:
        ann = probed(url, "--header", "X-User: ann", "--query", "When?")
        nobody = probed(url)
    assert (ann.exit_code, nobody.exit_code) == (0, 0)
    assert "as         ann" in ann.output
    assert "tool       fetch(id, [start], [end], [field], [max_tokens])" in ann.output
    assert "search     2 documents for 'When?'" in ann.output
    assert "Boarding pass  file:///flight.pdf" in ann.output
    assert "anonymous: public documents only" in nobody.output


def test_it_shows_the_challenge_that_a_client_is_given() -> None:
    settings = settings_with(security_identity="jwt", server_public_url="https://search.example")
    with serving(fake_snapshot(settings=settings, identity=FakeIdentity(NotAuthenticated()))) as url:
        refused = probed(url, "--token", "x")
    with serving(fake_snapshot(settings=settings_with(security_anonymous="refuse"))) as url:
        bare = probed(url)
    assert (refused.exit_code, bare.exit_code) == (1, 1)
    assert 'resource_metadata="https://search.example/.well-known' in refused.stderr
    assert "WWW-Authenticate: Bearer" in bare.stderr and "resource_metadata" not in bare.stderr


def test_a_search_that_fails_is_told() -> None:
    with serving(fake_snapshot(FakeRetriever(error=SearchUnavailable()))) as url:
        failed = probed(url, "--query", "When?")
    assert failed.exit_code == 1
    assert "searchUnavailable" in failed.stderr


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply(b"<html>", status=200), "without JSON"),
        (Reply(b"[]", status=200), "was refused with 200"),
        (Reply(json.dumps({"error": {"message": "\x1b[31mred"}}).encode(), status=404), "was refused with 404"),
    ],
)
def test_what_is_no_such_server_is_said(reply: Reply, words: str) -> None:
    with serving_reply(lambda asked: reply) as server:
        failed = probed(f"{server.url}/mcp")
    assert failed.exit_code == 1
    assert words in failed.stderr
    assert "\x1b" not in failed.stderr


def test_an_address_that_nobody_listens_on_is_said() -> None:
    failed = probed("http://127.0.0.1:1/mcp")
    assert (failed.exit_code, "cannot be reached" in failed.stderr) == (1, True)


@pytest.mark.parametrize("header", ["nonsense", ": x"])
def test_a_header_that_is_none_is_wrong_usage(header: str) -> None:
    assert probed("http://127.0.0.1:1/mcp", "--header", header).exit_code == 2
