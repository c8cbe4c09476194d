"""`datafari-rag conformance URL`: checks the contract on a running service row by row."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Literal

import click
import requests
from rich.console import Console
from rich.table import Table

TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class KitTarget:
    """
    What is under test: the *service*, also the *model* (a stub model's address) and an llm-service to *invoke*.

    *user_header* is the header by which the service believes who asks. None is not there.
    """

    service: str
    model: str | None = None
    invoke: str | None = None
    user_header: str = "X-Remote-User"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one row: *problem* is None when all is as it says; *view* is the last reply, None without one."""

    row: Row
    problem: str | None
    view: ReplyView | None


class NothingAnswers(Exception):
    """There is no service at the address."""


def outcomes(kit: Kit, rows: Sequence[Row], target: KitTarget, *, variables: Mapping[str, object]) -> Iterator[Outcome]:
    """
    Yield the outcome of each of *rows* as soon as it is known; *variables* replace the kit's own.

    Raises:
        NothingAnswers: the service does not even say that it lives.
    """
    all_variables = {**kit.variables, **variables}
    with requests.Session() as session:
        session.trust_env = False
        try:
            session.get(f"{target.service}/health/live", timeout=TIMEOUT_S)
        except requests.RequestException as error:
            raise NothingAnswers(target.service) from error
        for row in rows:
            yield _outcome(session, row, target, all_variables)


def _outcome(session: requests.Session, row: Row, target: KitTarget, variables: Mapping[str, object]) -> Outcome:
    missing = next((need for need in row.needs if need != "demo" and getattr(target, need) is None), None)
    if missing is not None:
        return Outcome(row, f"cannot be tested without {NEEDS[missing]}", None)
    all_variables, view = dict(variables), None
    try:
        looks_at_model = "model" in row.needs
        for earlier in row.earlier:
            view = _view(session, earlier.request, target, all_variables, looks_at_model=looks_at_model)
            additions: dict[str, object] = {}
            for name, path in earlier.names.items():
                values = values_at(view, path)
                if "[*]" in path:
                    additions[name] = values
                elif values:
                    additions[name] = values[0]
            all_variables |= additions
        view = _view(session, row.request, target, all_variables, looks_at_model=looks_at_model)
        problems = (problem_with(view, expectation, all_variables) for expectation in row.expectations)
        return Outcome(row, next((problem for problem in problems if problem is not None), None), view)
    except UnknownVariable as unknown:
        return Outcome(row, f"an earlier reply does not have what is compared: {unknown}", view)
    except (requests.RequestException, UnicodeError) as error:
        return Outcome(row, f"no reply: {type(error).__name__}", view)


def _view(
    session: requests.Session,
    request: Mapping[str, Any],
    target: KitTarget,
    variables: Mapping[str, object],
    *,
    looks_at_model: bool = False,
) -> ReplyView:
    if looks_at_model:
        session.delete(f"{target.model}/requests", timeout=TIMEOUT_S)
    reply = session.request(**_arguments(filled(request, variables), target), timeout=TIMEOUT_S, allow_redirects=False)
    view = seen_in(reply.status_code, reply.headers, reply.content)
    if looks_at_model:
        view |= seen_by_model(session.get(f"{target.model}/requests", timeout=TIMEOUT_S).json())
    return view


def _arguments(request: Mapping[str, Any], target: KitTarget) -> dict[str, Any]:
    """Return what `requests` is called with; parts and files make a multipart body."""
    base = target.invoke if request.get("at") == "invoke" else target.service
    headers = {"Accept": "*/*", **request.get("headers", {})}
    if "user" in request:
        headers[target.user_header] = request["user"]
    if "type" in request:
        headers["Content-Type"] = request["type"]
    arguments = {
        "method": request["method"],
        "url": f"{base}{request['path']}",
        "params": request.get("query"),
        "headers": headers,
    }
    if "files" in request:
        kind = request.get("file_type", "text/plain")
        files = [("files", (name, text, kind)) for name, text in request["files"].items()]
        return arguments | {"files": files, "data": request["parts"]}
    if "json" in request:
        return arguments | {"json": request["json"]}
    return arguments | {"data": request.get("form", request.get("raw"))}


def print_report(outcomes: Sequence[Outcome], console: Console) -> None:
    """Print one line for each row that fails, then a table with one line for each protocol."""
    for outcome in outcomes:
        if outcome.problem is not None:
            row = outcome.row
            console.print(f"[red]{row.severity}[/red] {row.id} {row.protocol}, {row.section}", highlight=False)
            console.print(f"    {row.says}", markup=False, highlight=False, soft_wrap=True)
            console.print(f"    {outcome.problem}", markup=False, highlight=False, soft_wrap=True)
    table = Table(title="Rows by protocol", title_justify="left")
    table.add_column("protocol")
    for head in ("rows", "passed", "failed: must", "should", "may"):
        table.add_column(head, justify="right")
    for protocol in protocols_of(outcome.row for outcome in outcomes):
        table.add_row(protocol, *_cells([outcome for outcome in outcomes if outcome.row.protocol == protocol]))
    table.add_section()
    table.add_row("all", *_cells(outcomes))
    console.print(table)


def as_json(outcomes: Sequence[Outcome], *, version: int, service: str) -> dict[str, Any]:
    """Return everything that a program wants to know of a run."""
    rows = [
        {
            "id": outcome.row.id,
            "protocol": outcome.row.protocol,
            "section": outcome.row.section,
            "severity": outcome.row.severity,
            "says": outcome.row.says,
            "passed": outcome.problem is None,
            "problem": outcome.problem,
        }
        for outcome in outcomes
    ]
    failed = sum(outcome.problem is not None for outcome in outcomes)
    return {"version": version, "service": service, "passed": len(rows) - failed, "failed": failed, "rows": rows}


def _cells(outcomes: Sequence[Outcome]) -> list[str]:
    failed = Counter(outcome.row.severity for outcome in outcomes if outcome.problem is not None)
    passed = len(outcomes) - failed.total()
    return [str(len(outcomes)), str(passed), *(str(failed[severity]) for severity in ("must", "should", "may"))]


@click.command(
    epilog="""\b
Examples:
  datafari-rag conformance http://127.0.0.1:8080
  datafari-rag conformance http://127.0.0.1:8080 --protocol "OpenAI" --json
  datafari-rag conformance https://search.example.org --set question="How do I get a badge?"
\b
Exit codes: 0 every row passed, 1 a row failed, 2 wrong usage.
"""
)
@click.argument("url")
@click.option(
    "--protocol", "protocols", multiple=True, help="Check only this protocol; the beginning of its name is enough."
)
@click.option("--model", help="URL of the stub-llm that the service under test uses as its model.")
@click.option("--invoke", help="URL of an llm-service, for its rows.")
@click.option("--user-header", default="X-Remote-User", show_default=True, help="Header that names the user.")
@click.option("--set", "values", multiple=True, metavar="NAME=VALUE", help="Replace a variable, such as question.")
@click.option(
    "--version", "version", type=click.IntRange(1), help="Use this version of the rows.  [default: the newest]"
)
@click.option("--json", "is_json", is_flag=True, help="Print the outcome of every row as JSON.")
def conformance(
    url: str, protocols: tuple[str, ...], values: tuple[str, ...], is_json: bool, **options: object
) -> None:
    """
    Check the service at URL against its contract, row by row.

    Rows need the documents and users of `datafari-rag demo` (identity by header). Rows about the model need a service
    whose model is a stub-llm with the name "cite", and its URL in --model; rows about /invoke need --invoke. Rows that
    cannot be tested fail: limit the run with --protocol.
    """
    kit = kit_of(_version(options["version"]))
    rows = kit.of(protocols)
    if not rows:
        names = ", ".join(protocols_of(kit.rows))
        raise click.BadParameter(f"Unknown protocol. Known protocols: {names}.", param_hint="--protocol")
    place = KitTarget(
        url.rstrip("/"), _address(options["model"]), _address(options["invoke"]), str(options["user_header"])
    )
    try:
        pairs = [value.partition("=") for value in values]
        if not all(name and sign for name, sign, _ in pairs):
            raise click.BadParameter("NAME=VALUE is expected.", param_hint="--set")
        tried = list(outcomes(kit, rows, place, variables={name: value for name, _, value in pairs}))
    except NothingAnswers:
        raise click.ClickException(f"Nothing answers at {place.service}.") from None
    if is_json:
        click.echo(json.dumps(as_json(tried, version=kit.version, service=place.service), ensure_ascii=False, indent=1))
    else:
        print_report(tried, Console())
    raise SystemExit(int(any(row.problem is not None for row in tried)))


def _version(number: object) -> int:
    numbers = versions()
    if number is None:
        return numbers[-1]
    if number not in numbers:
        raise click.BadParameter(f"Known are {', '.join(map(str, numbers))}.", param_hint="--version")
    return int(str(number))


def _address(value: object) -> str | None:
    return None if value is None else str(value).rstrip("/")


ReplyView = dict[str, Any]

_STEP = re.compile(r"\[(\*|-?\d+)\]|\.?([^.\[\]]+)")
_COUNT = re.compile(r"count (.+?)(?: \+ (\d+))?")
_NAME = re.compile(r"[a-z]+")
_SPACED = ("model count", "model headers", "model body")


def seen_in(status: int, headers: Mapping[str, str], body: bytes) -> ReplyView:
    """Return what one reply of the service shows."""
    media_type = headers.get("Content-Type", "").partition(";")[0]
    text = body.decode("utf-8", "replace")
    view: ReplyView = {
        "status": status,
        "type": media_type,
        "header": {name.lower(): value for name, value in headers.items()},
        "body": text,
    }
    return view | READERS.get(media_type, _nothing)(text)


def seen_by_model(records: Mapping[str, Any]) -> ReplyView:
    """Return what the stub model received: its answer to `GET /requests`."""
    requests = records["requests"]
    last = requests[-1] if requests else {"body": {}, "headers": {}}
    return {
        "model": last["body"],
        "model headers": last["headers"],
        "model body": json.dumps(last["body"], ensure_ascii=False),
        "model count": len(requests),
    }


def values_at(view: Mapping[str, Any], path: str) -> list[Any]:
    """
    Return every value at *path*, none when there is nothing there; `[*]` is each of a list.

    `count PATH` is the number of elements there, `count PATH + N` that and N more.
    """
    counted = _COUNT.fullmatch(path) if path.startswith("count ") else None
    if counted is not None:
        return [
            len(value) + int(counted[2] or 0) for value in values_at(view, counted[1]) if isinstance(value, list | dict)
        ]
    root, rest = _root(path)
    values = [view[root]] if root in view else []
    for index, name in _STEP.findall(rest):
        values = [part for value in values for part in _stepped(value, index, name)]
    return values


def _root(path: str) -> tuple[str, str]:
    for name in _SPACED:
        if path.startswith(name):
            return name, path[len(name) :]
    match = _NAME.match(path)
    end = match.end() if match else 0
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


def _nothing(text: str) -> ReplyView:
    return {}


def _json(text: str) -> ReplyView:
    try:
        return {"json": json.loads(text)}
    except ValueError:
        return {}


def _lines(text: str) -> ReplyView:
    """Read one object a line; the last line must be ended as well."""
    try:
        rows = [json.loads(line) for line in text.split("\n")[:-1]]
    except ValueError:
        return {}
    if not text.endswith("\n") or not all(isinstance(row, dict) for row in rows):
        return {}
    return {"lines": rows, "text": _text(rows), "kinds": " ".join(str(row.get("type")) for row in rows)}


def _events(text: str) -> ReplyView:
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
    yield from (text for text in values_at({"row": row}, where) if isinstance(text, str) and not is_other_event)


DELTAS = ("row.data.text", "row.delta.content", "row.choices[0].delta.content")
"""Where a stream's line has a piece of the answer."""

READERS: Mapping[str, Callable[[str], ReplyView]] = {
    "application/json": _json,
    "application/x-ndjson": _lines,
    "application/json-lines": _lines,
    "application/jsonl": _lines,
    "text/event-stream": _events,
}
"""Media type → what is read of a body; of others the bare text."""


MAX_SHOWN_CHARS = 160

_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "text": lambda value: isinstance(value, str),
    "list": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
}


def problem_with(view: Mapping[str, Any], expected: Expectation, variables: Mapping[str, object]) -> str | None:
    """
    Return what is wrong in one sentence, None when all is as expected.

    Every value at the path must fit; where there is none, nothing fits but "absent".

    Raises:
        UnknownVariable: the expectation names a value that was never kept.
    """
    values = values_at(view, expected.path)
    target = filled(expected.value, variables)
    if expected.operator == "absent":
        return f"{expected.path} is there: {_short(values[0])}" if values else None
    if not values:
        return f"{expected.path} is not there"
    if expected.operator in TOGETHER:
        return None if TOGETHER[expected.operator](values, target) else _unlike(expected, values, target)
    wrong = next((value for value in values if not EACH[expected.operator](value, target)), _FITS)
    return None if wrong is _FITS else _unlike(expected, wrong, target)


def _unlike(expected: Expectation, value: object, target: object) -> str:
    tail = "" if target is None and expected.operator in ("same", "present") else f" {_short(target)}"
    return f"{expected.path}: expected {expected.operator}{tail}, seen {_short(value)}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}…"


def _is(value: Any, target: Any) -> bool:
    """Compare as JSON does: true is not 1, and 1 is 1.0."""
    return bool(value == target) and isinstance(value, bool) == isinstance(target, bool)


def _has(value: Any, target: Any) -> bool:
    if isinstance(value, str):
        return isinstance(target, str) and target in value
    return isinstance(value, list | dict) and target in value


def _keys(value: Any, target: Sequence[str]) -> bool:
    return isinstance(value, dict) and sorted(value) == sorted(target)


def _count(value: Any) -> int:
    return len(value) if isinstance(value, list | dict) else -1


def _is_number(value: Any) -> bool:
    return _KINDS["number"](value)


_FITS = object()

EACH: Mapping[str, Callable[[Any, Any], bool]] = {
    "is": _is,
    "is not": lambda value, target: not _is(value, target),
    "one of": lambda value, target: _has(list(target), value),
    "has": _has,
    "lacks": lambda value, target: isinstance(value, str | list | dict) and not _has(value, target),
    "starts": lambda value, target: isinstance(value, str) and value.startswith(target),
    "matches": lambda value, target: isinstance(value, str) and re.search(target, value) is not None,
    "kind": lambda value, target: _KINDS[target](value),
    "keys": _keys,
    "keys at least": lambda value, target: isinstance(value, dict) and set(target) <= set(value),
    "at least": lambda value, target: _is_number(value) and value >= target,
    "at most": lambda value, target: _is_number(value) and value <= target,
    "count": lambda value, target: _count(value) == target,
    "count at least": lambda value, target: _count(value) >= target,
    "count at most": lambda value, target: 0 <= _count(value) <= target,
    "present": lambda value, target: True,
}
"""Operators that every value at a path is tried with."""

TOGETHER: Mapping[str, Callable[[list[Any], Any], bool]] = {
    "are": lambda values, target: values == target,
    "include": lambda values, target: target in values,
    "within": lambda values, target: all(value in target for value in values),
    "same": lambda values, target: all(value == values[0] for value in values),
}
"""Operators that take all values at a path together."""


Severity = Literal["must", "should", "may"]

NEEDS: Mapping[str, str] = {
    "demo": "the documents and users of `datafari-rag demo`",
    "model": "--model: the stub model that the service under test has for its model",
    "invoke": "--invoke: the address of an llm-service",
}
"""What a row needs beyond an address, in the words of the report."""

_VARIABLE = re.compile(r"\$\{([^}]+)\}")
_LONG = {
    "4000 characters": "a" * 4000,
    "4001 characters": "a" * 4001,
    "65,000 characters": "word " * 13_000,
    "half a million characters": "word " * 100_000,
    "twelve million characters": " " * 12_000_000,
}
"""Texts that are too long to be written down."""


class UnknownVariable(LookupError):
    """A row refers to a value that neither the data nor an earlier reply has."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """One expected fact: the value at *path* has the relation *operator* to *value*."""

    path: str
    operator: str
    value: object


@dataclass(frozen=True, slots=True)
class Earlier:
    """A request before the one under test, and what is kept of its reply: name → path."""

    request: Mapping[str, Any]
    names: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Row:
    """
    One behaviour: *says* is the expectation in words, *expectations* the same as checks.

    *severity* is must where a client of the protocol breaks, should where its user notices, may where we chose.
    """

    id: str
    protocol: str
    section: str
    severity: Severity
    says: str
    request: Mapping[str, Any]
    expectations: tuple[Expectation, ...]
    earlier: tuple[Earlier, ...] = ()
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Kit:
    """All rows of one *version*, and the *variables* that their requests name."""

    version: int
    variables: Mapping[str, object]
    rows: tuple[Row, ...] = field(default_factory=tuple)

    def of(self, protocols: Sequence[str]) -> tuple[Row, ...]:
        """Return the rows of *protocols*, by their names in any case or the beginning of them; all for none."""
        if not protocols:
            return self.rows
        beginnings = tuple(name.casefold() for name in protocols)
        return tuple(
            row for row in self.rows if row.protocol.casefold().startswith(beginnings) or row.id.startswith(beginnings)
        )


def versions() -> tuple[int, ...]:
    """Return the versions that are shipped, oldest first."""
    names = (entry.name for entry in _folder().iterdir())
    return tuple(sorted(int(name.removesuffix(".json")) for name in names if name.endswith(".json")))


def kit_of(version: int) -> Kit:
    """Return the rows of *version*. Raises: FileNotFoundError."""
    data = json.loads((_folder() / f"{version}.json").read_text("utf-8"))
    return Kit(data["version"], data["variables"], tuple(map(_row, data["rows"])))


def filled(value: object, variables: Mapping[str, object]) -> Any:
    """
    Return *value* with each `${name}` replaced; a text that is nothing else becomes the variable's own value.

    Raises:
        UnknownVariable: there is no value of that name.
    """
    if isinstance(value, str):
        whole = _VARIABLE.fullmatch(value)
        if whole is not None:
            return _value(whole[1], variables)
        return _VARIABLE.sub(lambda match: str(_value(match[1], variables)), value)
    if isinstance(value, Mapping):
        return {key: filled(part, variables) for key, part in value.items()}
    if isinstance(value, list):
        return [filled(part, variables) for part in value]
    return value


def protocols_of(rows: Iterable[Row]) -> tuple[str, ...]:
    """Return the names of the protocols in the order of the rows."""
    return tuple(dict.fromkeys(row.protocol for row in rows))


def _value(name: str, variables: Mapping[str, object]) -> object:
    if name in variables:
        return variables[name]
    if name in _LONG:
        return _LONG[name]
    raise UnknownVariable(name)


def _row(data: Mapping[str, Any]) -> Row:
    return Row(
        id=data["id"],
        protocol=data["protocol"],
        section=data["section"],
        severity=data["severity"],
        says=data["says"],
        request=data["request"],
        expectations=tuple(Expectation(*fields) for fields in data["expect"]),
        earlier=tuple(Earlier(item["request"], item["keep"]) for item in data.get("before", ())),
        needs=tuple(data.get("needs", ())),
    )


def _folder() -> Any:
    return resources.files("datafari_rag_trials.resources") / "conformance"
