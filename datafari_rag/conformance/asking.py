"""
Sends the request of each row to a running service, and compares the response with the contract.

A row that cannot be sent fails with the reason. Nothing is repeated: an occasional failure is a failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import requests

from datafari_rag.conformance.checks import problem_with
from datafari_rag.conformance.rows import NEEDS, Kit, Row, UnknownVariable, filled
from datafari_rag.conformance.seen import Seen, seen_by_model, seen_in, values_at

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
    """What came of one row: *problem* is None when all is as it says."""

    row: Row
    problem: str | None


class NothingAnswers(Exception):
    """There is no service at the address."""


def outcomes(kit: Kit, rows: Sequence[Row], target: KitTarget, *, variables: Mapping[str, object]) -> Iterator[Outcome]:
    """
    Yield the outcome of each of *rows* as soon as it is known; *variables* replace the kit's own.

    Raises:
        NothingAnswers: the service does not even say that it lives.
    """
    known = {**kit.variables, **variables}
    with requests.Session() as session:
        session.trust_env = False
        try:
            session.get(f"{target.service}/health/live", timeout=TIMEOUT_S)
        except requests.RequestException as error:
            raise NothingAnswers(target.service) from error
        for row in rows:
            yield Outcome(row, _problem(session, row, target, known))


def _problem(session: requests.Session, row: Row, target: KitTarget, variables: Mapping[str, object]) -> str | None:
    missing = next((need for need in row.needs if need != "demo" and getattr(target, need) is None), None)
    if missing is not None:
        return f"cannot be tested without {NEEDS[missing]}"
    known = dict(variables)
    try:
        looks_at_model = "model" in row.needs
        for earlier in row.earlier:
            shown = _seen(session, earlier.request, target, known, looks_at_model=looks_at_model)
            known |= _kept(shown, earlier.kept)
        shown = _seen(session, row.request, target, known, looks_at_model=looks_at_model)
        problems = (problem_with(shown, one, known) for one in row.expectations)
        return next((problem for problem in problems if problem is not None), None)
    except UnknownVariable as unknown:
        return f"an earlier reply does not have what is compared: {unknown}"
    except (requests.RequestException, UnicodeError) as error:
        return f"no reply: {type(error).__name__}"


def _kept(shown: Seen, wanted: Mapping[str, str]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, path in wanted.items():
        values = values_at(shown, path)
        if "[*]" in path:
            found[name] = values
        elif values:
            found[name] = values[0]
    return found


def _seen(
    session: requests.Session,
    asked: Mapping[str, Any],
    target: KitTarget,
    variables: Mapping[str, object],
    *,
    looks_at_model: bool = False,
) -> Seen:
    if looks_at_model:
        session.delete(f"{target.model}/requests", timeout=TIMEOUT_S)
    reply = session.request(**_arguments(filled(asked, variables), target), timeout=TIMEOUT_S, allow_redirects=False)
    shown = seen_in(reply.status_code, reply.headers, reply.content)
    if looks_at_model:
        shown |= seen_by_model(session.get(f"{target.model}/requests", timeout=TIMEOUT_S).json())
    return shown


def _arguments(asked: Mapping[str, Any], target: KitTarget) -> dict[str, Any]:
    """Return what `requests` is called with; parts and files make a multipart body."""
    base = target.invoke if asked.get("at") == "invoke" else target.service
    headers = {"Accept": "*/*", **asked.get("headers", {})}
    if "user" in asked:
        headers[target.user_header] = asked["user"]
    if "type" in asked:
        headers["Content-Type"] = asked["type"]
    arguments = {
        "method": asked["method"],
        "url": f"{base}{asked['path']}",
        "params": asked.get("query"),
        "headers": headers,
    }
    if "files" in asked:
        kind = asked.get("file_type", "text/plain")
        files = [("files", (name, text, kind)) for name, text in asked["files"].items()]
        return arguments | {"files": files, "data": asked["parts"]}
    if "json" in asked:
        return arguments | {"json": asked["json"]}
    return arguments | {"data": asked.get("form", asked.get("raw"))}
