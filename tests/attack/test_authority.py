"""The authority's replies attacked: their form, their size, their pace, and who asks for whom at the same moment."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from datafari_rag.adapters.rights import MAX_ANSWER_BYTES, AuthorityLimits, AuthorityRights
from datafari_rag.core.errors import AuthorityError
from tests.adapters.test_single_flight import together
from tests.attack.report import Record, judge
from tests.attack.wrong_server import AUTHORITY, Plan, Wrong, wrong_server
from tests.support.server import Asked, Loopback, Reply, serving
from tests.support.waiting import HANGS_S

NAMES = [
    "ann", "Ann", "ANN", "ann ", "a\u0301nn", "\u00e1nn", "ann%0aTOKEN:x", "ann&username=root", "ann#x", "ann/../root",
    "ann?x", "ann;x=1", "ann+root", "ann%2broot", "ann\u2028root", "ann=root", "\u0430nn", "ａnn", "ann\u200b", "ann@x",
    "EVIL\\ann", "ann%", "%61nn", "${ann}", "{!term}ann", "*", "ann\U0001f642", "ß", "SS", "ı", "I",
]  # fmt: skip
LIMITS = AuthorityLimits(connect_s=1.0, total_s=0.5, cache_s=60.0)


def _own(asked: Asked) -> Reply:
    """Answer with tokens that say for whom they are, now and then late."""
    (name,) = asked.query["username"]
    time.sleep(random.Random(name).choice([0, 0.01, 0.03]))
    return Reply(f"AUTHORIZED:test\nTOKEN:{name.encode().hex()}\n".encode())


@pytest.fixture
def authority() -> Iterator[Loopback]:
    with serving(_own) as running:
        yield running


def found(rights: AuthorityRights, name: str) -> list[str]:
    try:
        return list(rights.tokens_of(name, ("claimed",)))
    except AuthorityError as error:
        return [error.label]


@pytest.mark.parametrize("cache_s", [0.0, 60.0], ids=["not remembered", "remembered"])
def test_names_that_look_alike_and_users_at_the_same_moment(
    authority: Loopback, cache_s: float, record_property: Record
) -> None:
    rights, holes, rounds = AuthorityRights(authority.url, AuthorityLimits(cache_s=cache_s)), [], 4
    for number in range(rounds):
        turn = iter(random.Random(number).sample(NAMES * 3, len(NAMES) * 3))
        lock = threading.Lock()

        def one(turn: Iterator[str] = turn, lock: threading.Lock = lock) -> tuple[str, list[str]]:
            with lock:
                name = next(turn)
            return name, found(rights, name)

        for answer in together(len(NAMES) * 3, one):
            assert isinstance(answer, tuple), answer
            name, tokens = answer
            if tokens != [name.encode().hex()]:
                holes.append(f"{name!r} got {tokens}")
    asked_for = {one.query["username"][0] for one in authority.asked}
    holes += [f"asked for {name!r}" for name in asked_for - set(NAMES)]
    tried = rounds * len(NAMES) * 3
    judge(record_property, f"users at once, {cache_s=:g}", against=AUTHORITY, tried=tried, holes=holes)


def _writing(data: bytes) -> Callable[[Any], None]:
    return lambda out: out.write(data)


ANSWERS: dict[str, tuple[Callable[[Any], None], list[str]]] = {
    "more than is read": (lambda out: _many(out, MAX_ANSWER_BYTES // 20 + 10), ["authorityUnavailable"]),
    "one line without end": (_writing(b"TOKEN:" + b"a" * (MAX_ANSWER_BYTES + 9)), ["authorityUnavailable"]),
    "lines without end": (lambda out: _for_ever(out, b"TOKEN:a\n"), ["authorityTimeout", "authorityUnavailable"]),
    "blank lines without end": (lambda out: _for_ever(out, b"\n" * 50), ["authorityTimeout", "authorityUnavailable"]),
    "another form in the last line": (_writing(b"TOKEN:a\nUser: root\n"), ["authorityUnavailable"]),
    "another user": (_writing(b"TOKEN:a\nusername=root\nTOKEN:b\n"), ["authorityUnavailable"]),
    "a second reply": (_writing(b"TOKEN:a\nHTTP/1.1 200 OK\r\n\r\nTOKEN:b\n"), ["authorityUnavailable"]),
    "NUL": (_writing(b"TOKEN:a\n\x00TOKEN:b\n"), ["authorityUnavailable"]),
    "an overlong slash": (_writing(b"TOKEN:\xc0\xaf\n"), ["authorityUnavailable"]),
    "a surrogate": (_writing(b"TOKEN:\xed\xa0\x80\n"), ["authorityUnavailable"]),
    "UTF-16": (_writing("TOKEN:a\n".encode("utf-16")), ["authorityUnavailable"]),
    "small letters": (_writing(b"token:a\n"), ["authorityUnavailable"]),
    "a space before": (_writing(b" TOKEN:a\n"), ["authorityUnavailable"]),
    "a byte order mark": (_writing(b"\xef\xbb\xbfTOKEN:a\n"), ["authorityUnavailable"]),
}  # fmt: skip


def _many(out: Any, count: int) -> None:
    out.write(b"TOKEN:aaaaaaaaaaaaa\n" * count)


def _for_ever(out: Any, line: bytes) -> None:
    limit = time.monotonic() + 3  # the reader leaves long before
    while time.monotonic() < limit:
        out.write(line)
        out.flush()
        time.sleep(0.001)


def test_what_is_not_in_the_form_gives_no_rights(authority: Loopback, record_property: Record) -> None:
    holes, good = [], authority.answer
    for name, (write, labels) in ANSWERS.items():
        rights = AuthorityRights(authority.url, LIMITS)
        authority.answer = lambda asked, write=write: Reply(write=write)
        for _ in range(2):  # the second time nothing may have been remembered
            tokens = found(rights, "ann")
            if len(tokens) != 1 or tokens[0] not in labels:
                holes.append(f"{name}: {tokens[:5]}")
        authority.answer = good
        if found(rights, "ann") != [b"ann".hex()]:
            holes.append(f"{name}: not well again")
    judge(record_property, "odd answers", against=AUTHORITY, tried=3 * len(ANSWERS), holes=holes)


def test_one_call_for_many_is_for_one_user_alone(authority: Loopback, record_property: Record) -> None:
    """Twenty users with ten requests each, all at once, while the authority fails every second call."""
    count = [0]

    def answer(asked: Asked) -> Reply:
        count[0] += 1
        return _own(asked) if count[0] % 2 else Reply(_own(asked).body, 503)

    authority.answer = answer
    rights = AuthorityRights(authority.url, AuthorityLimits(cache_s=0))
    names = iter([f"user{number % 20}" for number in range(200)])
    lock = threading.Lock()

    def one() -> tuple[str, list[str]]:
        with lock:
            name = next(names)
        return name, found(rights, name)

    holes, several = [], together(200, one)
    for given in several:
        assert isinstance(given, tuple), given
        name, tokens = given
        if tokens not in ([name.encode().hex()], ["authorityUnavailable"]):
            holes.append(f"{name} got {tokens}")
    judge(record_property, "shared calls of twenty users", against=AUTHORITY, tried=len(several), holes=holes)


@pytest.fixture
def wrong() -> Iterator[Wrong]:
    with wrong_server(20261122) as server:
        server.wrong = AUTHORITY
        yield server


@pytest.mark.parametrize("place", ["head", "body", "chunk sizes", "interim replies"])
def test_what_drips_ends_in_time(wrong: Wrong, place: str, record_property: Record) -> None:
    head, rest = DRIPS[place]
    wrong.make = lambda rng, good: Plan([head, *(bytes([one]) for one in rest)], [0.0] + [0.1] * len(rest), place)
    command = [sys.executable, "-c", UNDER_GEVENT, wrong.url]
    tokens = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_S, check=True).stdout.strip()
    holes = [] if tokens == "['authorityTimeout']" else [tokens]
    judge(record_property, f"a drip of its {place}", against=AUTHORITY, tried=1, holes=holes)


UNDER_GEVENT = """
import gevent.monkey
gevent.monkey.patch_all()
import sys
from tests.attack.test_authority import LIMITS, AuthorityRights, found
print(found(AuthorityRights(sys.argv[1], LIMITS), "ann"))
"""
"""As in a worker; elsewhere each read alone has the limit."""

OK = b"HTTP/1.1 200 OK\r\n"
DRIPS = {
    "head": (OK, b"X: " + b"a" * 600),
    "body": (OK + b"Content-Length: 600\r\n\r\n", b"TOKEN:a\n" * 75),
    "chunk sizes": (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"0" * 600),
    "interim replies": (OK[:9] + b"100 Go\r\n\r\n", b"HTTP/1.1 100 Go\r\n\r\n" * 40),
}


def test_the_name_is_in_the_request_and_nowhere_else(wrong: Wrong, record_property: Record) -> None:
    """Names of a log, a path or a header: none may appear outside of the one parameter."""
    holes, seen = [], []
    usual = wrong._good

    def watched(request: bytes) -> Any:
        seen.append(request)
        return usual(request)

    wrong.wrong, wrong._good = None, watched  # type: ignore[method-assign]
    for name in NAMES:
        found(AuthorityRights(wrong.url, LIMITS), name)
        head = seen[-1].split(b"\r\n")
        given = parse_qs(urlsplit(head[0].split(b" ")[1].decode()).query, keep_blank_values=True)
        if given != {"username": [name]} or len(seen[-1].split(b"\r\n\r\n")) != 2 or len(head) > 9:
            holes.append(f"{name!r}: {seen[-1]!r}")
    judge(record_property, "names in the request", against=AUTHORITY, tried=len(NAMES), holes=holes)
