"""ManifoldCF's authority service, replaced by a real HTTP server: good answers, and every way to fail."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from datafari_rag.adapters.machine import MACHINE
from datafari_rag.adapters.rights import AuthorityLimits, AuthorityRights, ClaimedRights, RightsWatch
from datafari_rag.core.errors import AuthorityError, AuthorityTimeout, AuthorityUnavailable
from tests.adapters.test_single_flight import Waiting, together
from tests.support.server import Asked, Loopback, Reply, serving
from tests.support.waiting import HANGS_S, until

GOOD = 'AUTHORIZED:ad\nTOKEN:s1\nTOKEN: a b,"{!\u2028\nTOKEN:é\n'
QUICK = AuthorityLimits(connect_s=10.0, total_s=0.6, cache_s=60.0)
"""The limit where it is what ends the request; everywhere else it would only measure how busy the machine is."""
PATIENT = AuthorityLimits(connect_s=10.0, total_s=10.0, cache_s=60.0)


@pytest.fixture
def authority() -> Iterator[Loopback]:
    """Run a service that knows ann."""
    with serving(lambda asked: Reply(GOOD.encode())) as running:
        yield running


def rights(running: Loopback, limits: AuthorityLimits = PATIENT, **settings: object) -> AuthorityRights:
    return AuthorityRights(running.url + "/mcf/", limits, **settings)  # type: ignore[arg-type]


def test_a_user_has_the_tokens_of_the_token_lines_exactly_as_written(authority: Loopback) -> None:
    assert list(rights(authority).tokens_of("ann", ("claimed",))) == ["s1", ' a b,"{!\u2028', "é"]


@pytest.mark.parametrize("name", ["ann", "ann@example.org", "a&username=root", "é +%/?#", "a=b"])
def test_the_name_is_one_parameter_whatever_is_in_it(authority: Loopback, name: str) -> None:
    rights(authority).tokens_of(name, ())
    assert [(one.method, one.path, one.query) for one in authority.asked] == [
        ("GET", "/mcf/UserACLs", {"username": [name]})
    ]


EMPTY = {
    "an empty body": b"",
    "a user who is not found": b"USERNOTFOUND:ad\n",
    "blank lines": b"\r\n\n",
}


@pytest.mark.parametrize("body", EMPTY.values(), ids=EMPTY.keys())
def test_a_user_whom_the_service_does_not_know_has_no_tokens(authority: Loopback, body: bytes) -> None:
    authority.answer = lambda asked: Reply(body)
    assert list(rights(authority).tokens_of("eve", ())) == []


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_end_as_java_takes_them(authority: Loopback, end: str) -> None:
    authority.answer = lambda asked: Reply(end.join(["TOKEN:a", "TOKEN:b\x0b\x1c", ""]).encode())
    assert list(rights(authority).tokens_of("ann", ())) == ["a", "b\x0b\x1c"]


def test_an_authority_that_is_dead_is_made_up_for_by_its_token_and_not_remembered(authority: Loopback) -> None:
    authority.answer = lambda asked: Reply(b"UNREACHABLEAUTHORITY:ad\nTOKEN:g:DEAD_AUTHORITY\nTOKEN:s1\n")
    asker = rights(authority)
    assert [list(asker.tokens_of("ann", ())) for _ in range(2)] == [["g:DEAD_AUTHORITY", "s1"]] * 2
    assert len(authority.asked) == 2


def _drip(out: object) -> None:
    for _ in range(40):
        out.write(b"TOKEN:a\n")  # type: ignore[attr-defined]
        out.flush()  # type: ignore[attr-defined]
        time.sleep(0.1)


def _slow(asked: Asked) -> Reply:
    asked.over.wait()
    return Reply(b"TOKEN:a\n")


def _flood(out: object) -> None:
    for _ in range(40):
        out.write(b"TOKEN:aaaaaaaaaaaaaaa\n" * 25_000)  # type: ignore[attr-defined]


BOMB = gzip.compress(b"TOKEN:a\n" * 5_000_000)

BAD: dict[str, tuple[Callable[[Asked], Reply], type[AuthorityError]]] = {
    "500": (lambda asked: Reply(b"TOKEN:a\n", 500), AuthorityUnavailable),
    "404": (lambda asked: Reply(b"", 404), AuthorityUnavailable),
    "204": (lambda asked: Reply(b"", 204), AuthorityUnavailable),
    "a redirect to a login page": (lambda asked: Reply(b"", 302, [("Location", "/ok")]), AuthorityUnavailable),
    "a login page": (lambda asked: Reply(b"<html>\nTOKEN:a\n</html>"), AuthorityUnavailable),
    "JSON": (lambda asked: Reply(b'{"tokens": ["a"]}'), AuthorityUnavailable),
    "not UTF-8": (lambda asked: Reply(b"TOKEN:\xff\n"), AuthorityUnavailable),
    "cut off": (lambda asked: Reply(b"TOKEN:a\n", length=100), AuthorityUnavailable),
    "an unreachable authority without its token": (
        lambda asked: Reply(b"UNREACHABLEAUTHORITY:ad\nTOKEN:s1\n"), AuthorityUnavailable),
    "compressed rubbish": (
        lambda asked: Reply(b"rubbish", headers=[("Content-Encoding", "gzip")]), AuthorityUnavailable),
    "a compressed answer that was not requested": (
        lambda asked: Reply(BOMB, headers=[("Content-Encoding", "gzip")]), AuthorityUnavailable),
    "too much": (lambda asked: Reply(write=_flood), AuthorityError),
    "silence": (_slow, AuthorityTimeout),
    "a drip": (lambda asked: Reply(write=_drip), AuthorityTimeout),
}  # fmt: skip


@pytest.mark.parametrize(("answer", "error"), BAD.values(), ids=BAD.keys())
def test_a_failure_of_any_kind_is_raised_and_not_remembered(
    authority: Loopback, answer: Callable[[Asked], Reply], error: type[AuthorityError]
) -> None:
    asker, good = rights(authority, QUICK if error is AuthorityTimeout else PATIENT), authority.answer
    authority.answer = answer
    with pytest.raises(error) as caught:
        asker.tokens_of("zoe17", ())
    assert "zoe17" not in f"{caught.value} {caught.value.log}"
    assert asker.probe() is not None
    authority.answer = good
    assert "s1" in asker.tokens_of("zoe17", ())


def test_no_connection_is_a_failure() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        asker = AuthorityRights(f"http://127.0.0.1:{unused.getsockname()[1]}", PATIENT)
        with pytest.raises(AuthorityUnavailable):
            asker.tokens_of("ann", ())


def test_nothing_of_the_environment_and_no_coding_is_used(
    authority: Loopback, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login somebody password something\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    rights(authority).tokens_of("ann", ())
    (asked,) = authority.asked
    assert asked.headers["Accept-Encoding"] == "identity"
    assert "Authorization" not in asked.headers


def test_cookies_of_the_authority_are_not_sent_back(authority: Loopback) -> None:
    """A session of the authority's web server would be shared by all users."""
    authority.answer = lambda asked: Reply(GOOD.encode(), headers=[("Set-Cookie", "JSESSIONID=1; Path=/")])
    asker = rights(authority)
    for name in ("ann", "bob"):
        asker.tokens_of(name, ())
    assert [one for one in authority.asked if "Cookie" in one.headers] == []


def test_an_answer_is_remembered_for_its_time_and_for_its_user(authority: Loopback) -> None:
    now = [0.0]
    asker = rights(authority, machine=replace(MACHINE, monotonic=lambda: now[0]))
    for at, calls in [(0.0, 1), (59.9, 1), (60.0, 2), (61.0, 2)]:
        now[0] = at
        asker.tokens_of("ann", ())
        assert len(authority.asked) == calls
    asker.tokens_of("bob", ())
    assert authority.asked[-1].query == {"username": ["bob"]}


def test_nothing_is_remembered_with_no_time_for_it(authority: Loopback) -> None:
    asker = AuthorityRights(authority.url, AuthorityLimits(cache_s=0))
    for _ in range(3):
        asker.tokens_of("ann", ())
    assert len(authority.asked) == 3


def patient(authority: Loopback, waiting: Waiting, cache_s: float = 60.0) -> AuthorityRights:
    """Return what waits for the authority as long as a test may, and counts those who wait for another's call."""
    limits = AuthorityLimits(total_s=HANGS_S, cache_s=cache_s)
    return AuthorityRights(authority.url, limits, machine=replace(MACHINE, signal=waiting.signal))


def test_with_nothing_remembered_rights_that_were_taken_away_meanwhile_are_not_shared(authority: Loopback) -> None:
    revoked, waiting = threading.Event(), Waiting()

    def answer(asked: Asked) -> Reply:
        body = GOOD if not revoked.is_set() else "AUTHORIZED:ad\n"
        until(lambda: waiting.count >= 10)
        return Reply(body.encode())

    authority.answer = answer
    asker = patient(authority, waiting, cache_s=0)
    early = threading.Thread(target=lambda: asker.tokens_of("ann", ()))
    early.start()
    until(lambda: authority.asked)
    revoked.set()
    assert together(10, lambda: tuple(asker.tokens_of("ann", ()))) == [()] * 10
    early.join(10)


@pytest.mark.parametrize("is_good", [True, False], ids=["and all have its answer", "and all fail"])
def test_a_hundred_requests_of_one_user_at_once_are_one_call(authority: Loopback, is_good: bool) -> None:
    waiting = Waiting()

    def answer(asked: Asked) -> Reply:
        until(lambda: waiting.count >= 99)
        return Reply(GOOD.encode(), 200 if is_good else 503)

    authority.answer = answer
    asker = patient(authority, waiting)
    found = together(100, lambda: asker.tokens_of("ann", ()))
    assert len(found) == 100
    assert len(authority.asked) == 1
    assert all(isinstance(one, AuthorityUnavailable) is not is_good for one in found)


def test_the_probe_says_that_all_is_well(authority: Loopback) -> None:
    assert rights(authority).probe() is None


def test_claims_are_believed_as_they_are() -> None:
    assert list(ClaimedRights().tokens_of("ann", ("a", "b"))) == ["a", "b"]


def test_a_revocation_forgets_that_user_alone(authority: Loopback) -> None:
    epochs = {"ann": 0, "bob": 0}
    asker = AuthorityRights(authority.url, watch=RightsWatch(epoch=lambda name: epochs[name]))
    for name in ("ann", "bob"):
        asker.tokens_of(name, ())
    epochs["ann"] = 1
    for _ in range(2):
        for name in ("ann", "bob"):
            asker.tokens_of(name, ())
    assert [one.query["username"][0] for one in authority.asked] == ["ann", "bob", "ann"]


@pytest.mark.parametrize("is_revoked", [True, False], ids=["revoked", "with nothing remembered"])
def test_an_answer_that_was_under_way_before_a_request_is_not_taken_for_it(
    authority: Loopback, is_revoked: bool
) -> None:
    """The service may have read the old rights before they were taken away, and be slow to say so."""
    gate, under_way = threading.Event(), threading.Event()

    def answer(asked: Asked) -> Reply:
        first = not under_way.is_set()
        under_way.set()
        if first:
            gate.wait(5)
        return Reply(b"TOKEN:old\n" if first else b"TOKEN:new\n")

    authority.answer = answer
    epoch = [0]
    limits = AuthorityLimits(cache_s=60.0 if is_revoked else 0.0)
    asker = AuthorityRights(authority.url, limits, watch=RightsWatch(epoch=lambda name: epoch[0]))
    early = threading.Thread(target=lambda: asker.tokens_of("ann", ()))
    early.start()
    under_way.wait(5)
    epoch[0] += is_revoked
    threading.Timer(0.2, gate.set).start()
    assert list(asker.tokens_of("ann", ())) == ["new"]
    early.join(5)
    assert list(asker.tokens_of("ann", ())) == ["new"], "what landed late was not remembered"


def test_the_age_of_what_is_used_is_noted(authority: Loopback) -> None:
    now, ages = [0.0], list[float]()
    asker = rights(authority, machine=replace(MACHINE, monotonic=lambda: now[0]), watch=RightsWatch(used=ages.append))
    for at in (0.0, 10.0, 59.0, 61.0):
        now[0] = at
        asker.tokens_of("ann", ())
    assert ages == [0.0, 10.0, 59.0, 0.0]
