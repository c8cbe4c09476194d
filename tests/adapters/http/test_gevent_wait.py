"""Waiting for bytes on gevent's sockets: they come, they come late, or never."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from typing import Any

import gevent
import gevent.socket
import gevent.ssl
import pytest

from datafari_rag.adapters.http.gevent_wait import Arrivals, arrivals_on

SOON_S, LATE_S = 0.05, 30.0


@pytest.fixture
def ends() -> Iterator[tuple[Any, Any]]:
    ours, theirs = gevent.socket.socketpair()
    yield ours, theirs
    ours.close()
    theirs.close()


@pytest.fixture
def arrivals(ends: tuple[Any, Any]) -> Iterator[Arrivals]:
    made = Arrivals(ends[0])
    yield made
    made.close()


def test_bytes_that_are_there_and_bytes_that_come_are_not_missed(ends: tuple[Any, Any], arrivals: Arrivals) -> None:
    ours, theirs = ends
    theirs.sendall(b"a")
    arrivals.wait(LATE_S)
    assert ours.recv(10) == b"a"
    gevent.spawn_later(0.01, theirs.sendall, b"b")
    arrivals.wait(LATE_S)
    assert ours.recv(10) == b"b"


def test_the_end_of_a_connection_arrives_too(ends: tuple[Any, Any], arrivals: Arrivals) -> None:
    ours, theirs = ends
    gevent.spawn_later(0.01, theirs.close)
    arrivals.wait(LATE_S)
    assert ours.recv(10) == b""


def test_nothing_in_time_is_told_and_the_next_wait_has_its_own_time(ends: tuple[Any, Any], arrivals: Arrivals) -> None:
    with pytest.raises(TimeoutError):
        arrivals.wait(SOON_S)
    ends[1].sendall(b"a")
    arrivals.wait(LATE_S)
    assert ends[0].recv(10) == b"a"


def test_each_wait_has_its_whole_time_though_one_timer_serves_all(ends: tuple[Any, Any], arrivals: Arrivals) -> None:
    """The timer of the first wait rings in the middle of the later ones."""
    for _ in range(8):
        gevent.spawn_later(SOON_S * 2, ends[1].sendall, b"a")
        arrivals.wait(SOON_S * 12)
        ends[0].recv(10)
    with pytest.raises(TimeoutError):
        arrivals.wait(SOON_S)


def test_a_shorter_wait_after_a_longer_one_is_short(ends: tuple[Any, Any], arrivals: Arrivals) -> None:
    ends[1].sendall(b"a")
    arrivals.wait(LATE_S)
    ends[0].recv(10)
    with gevent.Timeout(LATE_S / 2), pytest.raises(TimeoutError):
        arrivals.wait(SOON_S)


def test_time_that_passes_while_nobody_waits_ends_nothing(ends: tuple[Any, Any], arrivals: Arrivals) -> None:
    ends[1].sendall(b"a")
    arrivals.wait(SOON_S * 8)
    gevent.sleep(SOON_S * 10)
    arrivals.wait(LATE_S)
    assert ends[0].recv(10) == b"a"


def test_who_is_killed_while_he_waits_leaves_nothing_behind(ends: tuple[Any, Any], arrivals: Arrivals) -> None:
    waiting = gevent.spawn(arrivals.wait, SOON_S)
    gevent.sleep(0)
    waiting.kill()
    gevent.sleep(SOON_S * 2)
    ends[1].sendall(b"a")
    arrivals.wait(LATE_S)
    assert ends[0].recv(10) == b"a"


def test_only_a_greenlets_plain_socket_is_waited_for_here(ends: tuple[Any, Any]) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert arrivals_on(ours) is None
    context = gevent.ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    wrapped = context.wrap_socket(ends[0], do_handshake_on_connect=False, server_hostname="localhost")
    assert arrivals_on(wrapped) is None
    wrapped.close()
    made = arrivals_on(ends[1])
    assert made is not None
    made.close()
