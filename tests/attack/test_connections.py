"""
Replies of Solr, authority, model and key provider that are wrong in every way HTTP allows: nobody gets another's.

A real service with one worker asks one server that plays all parts. Two users ask in turn; each question has a word of
its own, which the server puts into whatever it answers. A word in the answer to somebody else's question is a hole.
HTTP/1.1 cannot tell a reply that nobody asked for from the true one when it comes after the next request was sent; so
whatever follows a complete reply is let in before the next question.
"""

from __future__ import annotations

import itertools
import json
import os
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import requests

from tests.attack.report import Record, judge
from tests.attack.wrong_server import AUTHORITY, LATE_S, MODEL, SOLR, WORD, Plan, Wrong, wrong_plan, wrong_server
from tests.end_to_end.processes import Running, service
from tests.required import library

SEED = int(os.environ.get("PROPERTY_SEED", "20261122"))
QUICK = 40
LONG = 1500
"""Questions for each part, whole and streamed together."""


@dataclass
class Scene:
    """The service with one worker, the server it stands on, and numbers that are never used twice."""

    service: Running
    server: Wrong
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def ask(self, user: str, kind: str, running: Running | None = None) -> tuple[str, str]:
        """Send one question of *user*; return its word and all that came back."""
        word = f"word{user}{next(self.numbers)}"
        headers = {"X-Remote-User": word if self.server.wrong == AUTHORITY else user}
        try:
            reply = KINDS[kind](running or self.service, word, headers)
            return word, f"{reply.status_code} {reply.headers} {reply.text}"
        except requests.RequestException as error:
            return word, f"{type(error).__name__}"


def _search(running: Running, word: str, headers: dict[str, str]) -> requests.Response:
    return running.session.get(f"{running.url}/search/select", params={"q": word}, headers=headers, timeout=30)


def _rag(running: Running, word: str, headers: dict[str, str], *, is_streamed: bool = False) -> requests.Response:
    params = {"action": "rag", "q": word, **({"stream": "true"} if is_streamed else {})}
    return running.session.get(f"{running.url}/search/select", params=params, headers=headers, timeout=30)


def _passed(running: Running, word: str, headers: dict[str, str], *, is_streamed: bool) -> requests.Response:
    body = {"model": "m", "stream": is_streamed, "messages": [{"role": "user", "content": word}]}
    return running.session.post(f"{running.url}/v1/chat/completions", json=body, headers=headers, timeout=30)


KINDS = {
    "search": _search,
    "whole": _rag,
    "streamed": lambda *given: _rag(*given, is_streamed=True),
    "passed through": lambda *given: _passed(*given, is_streamed=False),
    "passed through, streamed": lambda *given: _passed(*given, is_streamed=True),
}


@pytest.fixture(scope="module", params=["plain", pytest.param("over TLS", marks=pytest.mark.slow)])
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Run a service whose every part is the wrong server."""
    folder = tmp_path_factory.mktemp("wrong")
    cert, tls = _certified(folder) if request.param == "over TLS" else ("", None)
    with wrong_server(SEED, tls) as server:
        settings = {
            "solr.url": f"{server.url}/solr/docs",
            "solr.limits.wait_s": "0.5",
            "rag.api.endpoint": f"{server.url}/v1/chat/completions",
            "rag.reply.http_errors": "true",
            "llm.limits.retries": "0",
            "llm.limits.breaker_failures": "0",
            "llm.limits.first_token_s": "0.5",
            "llm.limits.stall_s": "0.5",
            "llm.limits.total_s": "2",
            "security.identity": "header",
            "security.tokens": "authority",
            "security.authority.url": server.url,
            "security.cache_s": "0",
            "tls": json.dumps({"solr": {"ca": cert}, "llm": {"ca": cert}}),
        }
        with service(folder, settings, environ={"REQUESTS_CA_BUNDLE": cert}) as found:
            yield Scene(found, server)


def _certified(folder: Path) -> tuple[str, ssl.SSLContext]:
    library("cryptography.x509", "make .venv/.dev")
    from tests.adapters.test_http_tls import certificate

    cert, key = certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return str(cert), context


def holes_in(scene: Scene, part: str, kinds: tuple[str, ...], count: int) -> list[str]:
    """Let two users ask in turn while *part* answers wrongly; return what reached the wrong one."""
    server, holes = scene.server, []
    server.wrong = part
    server.seen.clear()
    try:
        for number in range(count):
            word, answer = scene.ask("alice" if number % 2 else "bob", kinds[number // 2 % len(kinds)])
            others = set(WORD.findall(answer)) - {word}
            if others:
                holes.append(f"{word} got {others} after {server.plans[-3:]}: {answer[:300]}")
            server.settle()
    finally:
        server.wrong = None
    mixed = [text for what, text in server.seen if what == "tokens" and len(set(text.split())) > 1]
    return holes + ([f"asked Solr with the rights of others: {mixed[:5]}"] if part == AUTHORITY and mixed else [])


PARTS = {
    MODEL: ("whole", "streamed", "passed through", "passed through, streamed"),
    SOLR: ("search", "whole", "streamed"),
    AUTHORITY: ("search",),
}


@pytest.mark.parametrize("count", [QUICK, pytest.param(LONG, marks=pytest.mark.slow)], ids=["quick", "long"])
@pytest.mark.parametrize("part", PARTS)
def test_no_answer_ever_reaches_another_user(scene: Scene, part: str, count: int, record_property: Record) -> None:
    scene.server.plans.clear()
    holes = holes_in(scene, part, PARTS[part], count)
    over = " over TLS" if scene.server.tls else ""
    judge(record_property, f"wrong replies, two users in turn{over}", against=part, tried=count, holes=holes)


CLEAR = (
    "interim replies", "a flood of interim replies", "a final reply without body before the true one", "two lengths",
    "a length and chunks", "closed anywhere", "stopped anywhere", "no length", "a content coding", "the good reply",
)  # fmt: skip
"""Ways in which nothing follows a complete reply on a connection that might be reused."""

AT_ONCE = 12


@pytest.mark.parametrize("count", [4, pytest.param(60, marks=pytest.mark.slow)], ids=["quick", "long"])
@pytest.mark.parametrize("part", PARTS)
def test_users_at_once_never_get_each_others_answers(
    scene: Scene, part: str, count: int, record_property: Record
) -> None:
    server, usual = scene.server, scene.server.make
    server.seen.clear()
    server.wrong, server.make = part, lambda rng, good: wrong_plan(rng, good, CLEAR)

    def user(number: int) -> list[str]:
        with requests.Session() as session:
            session.trust_env = False
            running = replace(scene.service, session=session)
            several = [scene.ask(f"user{chr(97 + number)}", kind, running) for kind in PARTS[part] * count]
        return [f"{word} got {answer[:300]}" for word, answer in several if set(WORD.findall(answer)) - {word}]

    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            holes = list(itertools.chain(*pool.map(user, range(AT_ONCE))))
    finally:
        server.wrong, server.make = None, usual
    mixed = [text for what, text in server.seen if what == "tokens" and len(set(text.split())) > 1]
    holes += [f"rights of others: {text}" for text in mixed if part == AUTHORITY]
    tried = AT_ONCE * count * len(PARTS[part])
    over = " over TLS" if server.tls else ""
    judge(record_property, f"wrong replies, {AT_ONCE} users at once{over}", against=part, tried=tried, holes=holes)


@pytest.mark.parametrize("part", PARTS)
def test_afterwards_everything_is_well_again(scene: Scene, part: str) -> None:
    """Fails when the service fails for another reason than the wrong replies, which then prove nothing."""
    for kind in PARTS[part]:
        for user in ("alice", "bob"):
            word, answer = scene.ask(user, kind)
            assert answer.startswith("200 ") and word in answer, answer


CODES = [102, 103, 199, 101, 204, 304]


@pytest.mark.parametrize("kind", PARTS[MODEL])
def test_a_model_that_answers_early_and_then_truly(scene: Scene, kind: str, record_property: Record) -> None:
    """The way in which it was first seen: an interim reply, and the next user's question before the true one."""
    holes, usual = [], scene.server.make
    for code in CODES * 2:
        early = b"HTTP/1.1 %d Early\r\nLink: </x>\r\n\r\n" % code
        scene.server.make = lambda rng, good, early=early: Plan([early, good], [0, LATE_S], "early", is_pending=True)
        scene.server.wrong = MODEL
        first = scene.ask("alice", kind)
        scene.server.wrong = None
        second = scene.ask("bob", kind)
        scene.server.make = usual
        for word, answer in (first, second):
            if set(WORD.findall(answer)) - {word}:
                holes.append(f"{code}: {word} got {answer}")
        if first[1].startswith("200 "):
            holes.append(f"{code} was taken for the answer: {first[1]}")
    judge(record_property, f"early replies, {kind}", against=MODEL, tried=2 * len(CODES), holes=holes)
