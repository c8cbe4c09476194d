"""
The matrix: every fault of a model × whole or streamed × before or after its first words.

Each cell runs twice: through the model client alone, and through the whole service over the search dialect. What the
reader saw is a row of the fault matrix (`matrix.py`).
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from datafari_rag.bootstrap import create_app
from datafari_rag.core.settings.table import ModelLimits
from tests.end_to_end.matrix import Record, tell
from tests.settings import settings_with
from tests.support.stub import Stub, running_stub

pytestmark = pytest.mark.slow

TEXT = "Paris is nice in the spring of every single year."
PATIENCE_S = 0.4
"""The limit where it is what ends the request; everywhere else it would only measure how busy the machine is."""

NO_LIMIT_S = 120.0
SAID = "Paris is nice "
WHOLE = f"{TEXT} [1]"


@dataclass(frozen=True)
class Cell:
    """One fault in one mode at one time: *label* None is a good answer; *text* is what the reader gets to see."""

    fault: str
    model: str
    is_streamed: bool
    is_after: bool
    label: str | None
    code: int
    text: str = ""

    @property
    def name(self) -> str:
        mode = "streamed" if self.is_streamed else "whole"
        return f"{self.fault}, {mode}, {'after' if self.is_after else 'before'} the first words"

    @property
    def limits(self) -> ModelLimits:
        """For a fault after the first words only the wait for more is short: the first may come late."""
        stall_s = PATIENCE_S if self.label == "modelTimeout" else NO_LIMIT_S
        first_token_s = NO_LIMIT_S if self.is_after else stall_s
        return ModelLimits(first_token_s=first_token_s, stall_s=stall_s, total_s=2 * first_token_s)


def both(fault: str, model: str, label: str | None, code: int, text: str = "") -> list[Cell]:
    """Return the cells of a fault that comes before the first words, whole and streamed."""
    return [Cell(fault, model, is_streamed, False, label, code, text) for is_streamed in (False, True)]


def later(fault: str, model: str, label: str | None, code: int, text: str = SAID) -> Cell:
    """Return the cell of a fault after the first words, which only a stream can have."""
    return Cell(fault, model, True, True, label, code, text)


CELLS: list[Cell] = [
    *both("connection refused", "nobody", "modelUnavailable", 502),
    *both("hangs up before an answer", "hangup", "modelUnavailable", 502),
    *both("status 400", "status-400", "modelRefused", 502),
    *both("status 400 for the window", "window", "modelInputTooLong", 502),
    *both("status 400 of the content filter", "policy", "contentFiltered", 400),
    *both("status 401", "status-401", "modelKeyRefused", 502),
    *both("status 403", "status-403", "modelRefused", 502),
    *both("status 404", "status-404", "modelRefused", 502),
    *both("status 408", "status-408", "modelUnavailable", 502),
    *both("status 429", "status-429-retry-2", "modelBusy", 503),
    *both("status 500", "status-500", "modelUnavailable", 502),
    *both("status 502", "status-502", "modelUnavailable", 502),
    *both("status 503", "status-503-retry-2", "modelUnavailable", 502),
    *both("status 504", "status-504", "modelUnavailable", 502),
    *both("slow headers", "slow-headers", "modelTimeout", 504),
    *both("the connection is cut", "cut-after-0", "modelUnavailable", 502),
    later("the connection is cut", "cut-after-3", "modelUnavailable", 502),
    *both("silence", "stall-after-0", "modelTimeout", 504),
    later("silence", "stall-after-3", "modelTimeout", 504),
    *both("no JSON", "garbage", "modelGarbled", 502),
    later("no JSON", "garbage-after-3", "modelGarbled", 502),
    *both("an error object in a 200", "error-500-after-0", "modelUnavailable", 502),
    later("an error object in a 200", "error-500-after-3", "modelUnavailable", 502),
    *both("an error object 429 in a 200", "error-429-after-0", "modelBusy", 503),
    Cell("no finish_reason", "empty-nofinish", True, False, "modelUnavailable", 502),
    later("no finish_reason", "nofinish", "modelUnavailable", 502, WHOLE),
    *both("content_filter", "empty-filter", "contentFiltered", 400),
    Cell("content_filter", "filter", False, False, "contentFiltered", 400),
    later("content_filter", "filter", "contentFiltered", 400, WHOLE),
    *both("a refusal", "refusal", "noAnswer", 428),
    *both("null content", "null", "noAnswer", 428),
    *both("empty content", "empty", "noAnswer", 428),
    *both("tool calls", "tools", "noAnswer", 428),
    *both("length without text", "empty-length", "onlyThoughts", 502),
    Cell("length", "length", False, False, None, 200, WHOLE),
    later("length", "length", None, 200, WHOLE),
    Cell("no [DONE]", "nodone", False, False, None, 200, WHOLE),
    later("no [DONE]", "nodone", None, 200, WHOLE),
    *both("a good answer", "cite", None, 200, WHOLE),
]


@pytest.fixture(scope="module")
def stub() -> Iterator[Stub]:
    with running_stub() as running:
        yield running


@pytest.fixture(scope="module")
def nobody() -> str:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"http://127.0.0.1:{free.getsockname()[1]}/v1/chat/completions"


@pytest.fixture(scope="module")
def client(stub: Stub, tmp_path_factory: pytest.TempPathFactory) -> Any:
    from datafari_rag.bootstrap import writer_for

    folder = tmp_path_factory.mktemp("faults")
    writer = writer_for(settings_with(solr_url=f"embedded:{folder / 'index'}"))
    writer.add([{"id": "paris", "title": "Cities", "exactContent": TEXT, "content_en": TEXT, "language": "en"}])
    writer.commit()
    writer.close()
    return lambda endpoint, cell: _service(folder, endpoint, cell)


def _service(folder: Path, endpoint: str, cell: Cell) -> Any:
    settings = {
        "solr.url": f"embedded:{folder / 'index'}",
        "rag.api.endpoint": endpoint,
        "rag.model": cell.model,
        "rag.reply.http_errors": "true",
        "llm.limits.retries": "0",
        "llm.limits.first_token_s": str(cell.limits.first_token_s),
        "llm.limits.stall_s": str(cell.limits.stall_s),
        "llm.limits.total_s": str(cell.limits.total_s),
    }
    return create_app(overrides=settings).test_client()


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_the_service_tells_the_reader(
    cell: Cell, stub: Stub, nobody: str, client: Any, record_property: Record
) -> None:
    endpoint = nobody if cell.model == "nobody" else stub.url
    stream = "&stream=true" if cell.is_streamed else ""
    asking = client(endpoint, cell)
    began = time.monotonic()
    reply = asking.get(f"/search/select?action=rag&q=Which+city+is+nice?{stream}")
    if cell.is_streamed and (cell.is_after or cell.label is None):
        saw = _check_stream(cell, reply)
    else:
        saw = _check_whole(cell, reply)
    took_s = time.monotonic() - began
    if cell.label is not None:
        tell(record_property, f"model: {cell.name}", saw, label=cell.label, took_s=took_s)
    if cell.model.endswith("retry-2"):
        assert reply.headers["Retry-After"] == "2"


def _check_whole(cell: Cell, reply: Any) -> str:
    """Before the first words a failure is a plain envelope with its status, streamed or not; return what was seen."""
    body = reply.get_json()
    failure = body["content"].get("error", {})
    assert reply.status_code == cell.code
    assert (failure.get("label"), body["content"].get("message", "")) == (cell.label, cell.text)
    assert body["content"].get("finish_reason") == ("length" if cell.fault == "length" else None)
    return f"HTTP {reply.status_code}"


def _check_stream(cell: Cell, reply: Any) -> str:
    """After the first words the status is 200; a failure is one error event, then the end. Return what was seen."""
    events = [json.loads(line) for line in reply.get_data(as_text=True).splitlines()]
    types = [event["type"] for event in events]
    text = "".join(event["data"]["text"] for event in events if event["type"] == "message.delta")
    # What a closing bracket makes, the next sign decides: it is held back, and a failure takes it along.
    wanted = cell.text.removesuffix("]") if cell.label is not None else cell.text
    last = "error" if cell.label is not None else "message.final"
    assert (reply.status_code, types[-2:], text) == (200, [last, "stream.completed"], wanted)
    assert types.count("error") == (1 if cell.label is not None else 0)
    told = events[-2]["data"]
    assert (told["label"], told["code"]) == (cell.label, cell.code) if cell.label else told["text"] == cell.text
    assert events[-1]["data"]["status"] == ("ERROR" if cell.label is not None else "OK")
    return f"HTTP {reply.status_code}, words, then an error"
