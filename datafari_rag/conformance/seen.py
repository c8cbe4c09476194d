"""
What a reply shows, under the names that the rows use: status, header, json, lines, events, text, model.

Pure: bytes and headers in, values out. A reply that cannot be read has no values, so that every check of it fails.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Seen = dict[str, Any]

_STEP = re.compile(r"\[(\*|-?\d+)\]|\.?([^.\[\]]+)")
_COUNT = re.compile(r"count (.+?)(?: \+ (\d+))?")
_NAME = re.compile(r"[a-z]+")
_SPACED = ("model count", "model headers", "model body")


def seen_in(status: int, headers: Mapping[str, str], body: bytes) -> Seen:
    """Return what one reply of the service shows."""
    media_type = headers.get("Content-Type", "").partition(";")[0]
    text = body.decode("utf-8", "replace")
    shown: Seen = {
        "status": status,
        "type": media_type,
        "header": {name.lower(): value for name, value in headers.items()},
        "body": text,
    }
    return shown | READERS.get(media_type, _nothing)(text)


def seen_by_model(asked: Mapping[str, Any]) -> Seen:
    """Return what the stub model received: its answer to `GET /requests`."""
    requests = asked["requests"]
    last = requests[-1] if requests else {"body": {}, "headers": {}}
    return {
        "model": last["body"],
        "model headers": last["headers"],
        "model body": json.dumps(last["body"], ensure_ascii=False),
        "model count": len(requests),
    }


def values_at(shown: Mapping[str, Any], path: str) -> list[Any]:
    """
    Return every value at *path*, none when there is nothing there; `[*]` is each of a list.

    `count PATH` is the number of elements there, `count PATH + N` that and N more.
    """
    counted = _COUNT.fullmatch(path) if path.startswith("count ") else None
    if counted is not None:
        return [len(one) + int(counted[2] or 0) for one in values_at(shown, counted[1]) if isinstance(one, list | dict)]
    root, rest = _root(path)
    values = [shown[root]] if root in shown else []
    for index, name in _STEP.findall(rest):
        values = [one for value in values for one in _stepped(value, index, name)]
    return values


def _root(path: str) -> tuple[str, str]:
    for name in _SPACED:
        if path.startswith(name):
            return name, path[len(name) :]
    found = _NAME.match(path)
    end = found.end() if found else 0
    if path.startswith("header."):
        return "header", f".{path[len('header.') :].lower()}"
    return path[:end], path[end:]


def _stepped(value: Any, index: str, name: str) -> Iterator[Any]:
    if index == "*":
        yield from value if isinstance(value, list) else ()
    elif index:
        place = int(index)
        if isinstance(value, list) and -len(value) <= place < len(value):
            yield value[place]
    elif isinstance(value, Mapping) and name in value:
        yield value[name]


def _nothing(text: str) -> Seen:
    return {}


def _json(text: str) -> Seen:
    try:
        return {"json": json.loads(text)}
    except ValueError:
        return {}


def _lines(text: str) -> Seen:
    """Read one object a line; the last line must be ended as well."""
    try:
        rows = [json.loads(line) for line in text.split("\n")[:-1]]
    except ValueError:
        return {}
    if not text.endswith("\n") or not all(isinstance(row, dict) for row in rows):
        return {}
    return {"lines": rows, "text": _text(rows), "kinds": " ".join(str(row.get("type")) for row in rows)}


def _events(text: str) -> Seen:
    """Read server-sent events of one data line each; *done* says whether the last one is `[DONE]`."""
    datas = [event.removeprefix("data: ") for event in text.split("\n\n")[:-1]]
    try:
        rows = [json.loads(data) for data in datas if data != "[DONE]"]
    except ValueError:
        return {}
    return {"events": rows, "text": _text(rows), "done": datas[-1:] == ["[DONE]"] and datas.count("[DONE]") == 1}


def _text(rows: Sequence[Mapping[str, Any]]) -> str:
    return "".join(part for row in rows for where in DELTAS for part in _parts(row, where))


def _parts(row: Mapping[str, Any], where: str) -> Iterator[str]:
    is_other_event = where.startswith("row.data") and row.get("type") != "message.delta"
    yield from (one for one in values_at({"row": row}, where) if isinstance(one, str) and not is_other_event)


DELTAS = ("row.data.text", "row.delta.content", "row.choices[0].delta.content")
"""Where a stream's line has a piece of the answer."""

READERS: Mapping[str, Callable[[str], Seen]] = {
    "application/json": _json,
    "application/x-ndjson": _lines,
    "application/json-lines": _lines,
    "application/jsonl": _lines,
    "text/event-stream": _events,
}
"""Media type → what is read of a body; of others the bare text."""
