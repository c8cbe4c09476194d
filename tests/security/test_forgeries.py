"""A request that tries to name a user or to go round the filter changes nothing, and is counted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.security.asking import FORGERIES, Case, request_for
from tests.security.corpora import NS, Corpus, Doc
from tests.security.test_hidden_changes_nothing import said
from tests.security.worlds import DIALECTS, World, embedded_engine, world

OPEN = {f"{verb}_token_{level}": (NS,) for verb in ("allow", "deny") for level in ("share", "parent", "document")}
CORPUS = Corpus(
    (
        Doc("doc 1", "zkopen", "zxopen", OPEN),
        Doc("doc 2", "zkhidden", "zxhidden", {**OPEN, "allow_token_document": ("s1",)}),
    ),
    {"ann": ("s1", "s2"), "eve": ()},
)

VARIANT = "header, file, body"
NAMING = ("mcf", "AuthenticatedUser", "UserTokens", "shards", "qt", "collection")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Run the services over an open document and one that ann alone may read."""
    folder = tmp_path_factory.mktemp("forged")
    with embedded_engine(folder / "index") as (url, load), world(folder, "embedded", url, load) as made:
        made.load(CORPUS)
        yield made


def case(dialect: str, extras: tuple[tuple[str, str], ...], overrides: Mapping[str, Any]) -> Case:
    return Case(dialect, VARIANT, "eve", 4, "common", dialect == "documents", extras, overrides)


def counted(running: World) -> int:
    """Return how many attempts the service of these cases has counted."""
    _, _, body = running.services[VARIANT].send("GET", "/metrics", None, {})
    numbers = re.findall(r'^datafari_rag_ignored_parameters_total\{kind="identity"\} (\S+)', body.decode(), re.M)
    return int(sum(float(number) for number in numbers))


def answer(running: World, one: Case) -> tuple[int, str, object]:
    request = request_for(one, "common report", "doc 2")
    service = running.services[one.variant]
    headers = {**request.headers, **running.credentials(service, "eve")}
    status, _, body = service.send(request.method, request.path, request.body, headers)
    return status, body.decode(), said(one, body)


# Options of a plain search (rows, facets, sorting…) are no forgery there and may change its answer.
CHANGING = ("title asc", "last_modified desc", "true", "source", "extension", "fr", "bulletpoint", "1000", "0")


@pytest.fixture(scope="module")
def usual(running: World) -> Mapping[str, tuple[int, object]]:
    """What each dialect answers without a forgery: its status and its words."""
    answers = {dialect: answer(running, case(dialect, (), {})) for dialect in DIALECTS}
    return {dialect: (status, words) for dialect, (status, _, words) in answers.items()}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("forgery", [pair for pair in FORGERIES if pair[1] not in CHANGING], ids=lambda pair: pair[0])
def test_a_forgery_changes_nothing_and_is_counted(
    running: World, usual: Mapping[str, tuple[int, object]], dialect: str, forgery: tuple[str, str]
) -> None:
    before = counted(running)
    status, body, words = answer(running, case(dialect, (forgery,), {}))
    attempts = counted(running) - before
    assert (status, words) == usual[dialect]
    assert "zxhidden" not in body
    is_attempt = forgery[0].startswith(NAMING) and dialect not in ("documents", "page")  # which read no such names
    assert attempts >= is_attempt


@pytest.mark.parametrize("dialect", ["choices", "chat", "published"])
def test_forged_claims_in_a_chat_change_nothing_and_are_counted(running: World, dialect: str) -> None:
    before = counted(running)
    claims = {"auth_claims": {"oid": "ann", "groups": ["s1"]}, "use_oid_security_filter": True}
    status, body, _ = answer(running, case(dialect, (), claims))
    assert status == 200
    assert "zxhidden" not in body
    assert counted(running) > before
