"""
The same router at /mcp with the diagnostic tools that the official conformance suite calls, beside ours.

Without them the suite says "not testable" of what only they could show: how this router streams, refuses a client
without a capability, sends other kinds of content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from flask import Response
from msgspec import Struct

from datafari_rag.bootstrap import create_app
from datafari_rag.core.errors import NoAnswer
from datafari_rag.protocols.mcp import tools
from datafari_rag.protocols.mcp.messages import CAPABILITIES_KEY, RpcRequest, progress, succeeded
from datafari_rag.web.api import mcp
from datafari_rag.web.api.mcp import Call
from datafari_rag.web.responses import EVENTS, json_response, plain
from tests.support.server import listening

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="

Json = dict[str, object]

MISSING_CAPABILITY = -32021

TEXT: Json = {"type": "text", "text": "This is a simple text response for testing."}
IMAGE: Json = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
AUDIO: Json = {"type": "audio", "data": SILENCE, "mimeType": "audio/wav"}
RESOURCE: Json = {
    "type": "resource",
    "resource": {"uri": "test://embedded-resource", "mimeType": "text/plain", "text": "An embedded resource."},
}


def _content(*blocks: Json) -> Callable[[Call], Response]:
    def run(call: Call) -> Response:
        return json_response(plain(succeeded(call.message, _result(*blocks))))

    return run


def _result(*blocks: Json) -> Json:
    return {"content": list(blocks), "structuredContent": {}, "isError": False}


def _fails(call: Call) -> Response:
    raise NoAnswer


def _needs_sampling(call: Call) -> Response:
    offered = call.message.meta.get(CAPABILITIES_KEY)
    if not isinstance(offered, Mapping) or "sampling" not in offered:
        data = {"requiredCapabilities": {"sampling": {}}}
        raise call.message.rejected(MISSING_CAPABILITY, "The client must offer sampling.", data=data)
    return _content(TEXT)(call)


def _streams(call: Call) -> Response:
    return Response(_events(call.message), mimetype=EVENTS.stream_type)


def _events(message: RpcRequest) -> Iterator[bytes]:
    token = message.progress_token
    if token is not None:
        for done in (0, 50, 100):
            yield EVENTS.line(progress(token, done, f"{done} of 100"))
    yield EVENTS.line(succeeded(message, _result(TEXT)))


RUNS: Mapping[str, Callable[[Call], Response]] = {
    "test_simple_text": _content(TEXT),
    "test_image_content": _content(IMAGE),
    "test_audio_content": _content(AUDIO),
    "test_embedded_resource": _content(RESOURCE),
    "test_multiple_content_types": _content(TEXT, IMAGE, RESOURCE),
    "test_error_handling": _fails,
    "test_tool_with_progress": _streams,
    "test_missing_capability": _needs_sampling,
    "test_streaming_elicitation": _streams,
    "test_logging_tool": _streams,
}


class Nothing(Struct):
    """No arguments and no result."""


DIAGNOSTIC = {name: tools.Tool(name, "For the conformance suite.", Nothing, Nothing) for name in RUNS}


@contextmanager
def fixture_build(folder: Path, settings: Mapping[str, str]) -> Iterator[str]:
    """Yield the address of /mcp in a service that has the diagnostic tools too."""
    conf = folder / "fixture.properties"
    conf.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    conf.chmod(0o600)
    app = create_app(conf)
    tools.listed.cache_clear()
    try:
        with patch.dict(tools.TOOLS, DIAGNOSTIC), patch.dict(mcp.RUNS, RUNS), listening(app) as port:
            yield f"http://127.0.0.1:{port}/mcp"
    finally:
        tools.listed.cache_clear()
