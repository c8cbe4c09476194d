"""What a caller's connection does; with real processes: `end_to_end/test_server.py` and `attack/test_front.py`."""

from __future__ import annotations

import pytest

from datafari_rag.connection import Connection


class Line:
    """A connection whose kernel takes at most so many bytes at once, and who blocks for the rest in `sendall`."""

    def __init__(self, at_once: int) -> None:
        self.at_once, self.taken = at_once, b""
        self.calls: list[str] = []

    def send(self, data: bytes) -> int:
        self.calls.append("send")
        self.taken += data[: self.at_once]
        return min(len(data), self.at_once)

    def sendall(self, data: memoryview) -> None:
        self.calls.append("sendall")
        self.taken += bytes(data)

    def fileno(self) -> int:
        return 7


@pytest.mark.parametrize(
    ("at_once", "calls"), [(100, ["send"]), (5, ["send"]), (2, ["send", "sendall"]), (0, ["send", "sendall"])]
)
def test_a_token_is_one_call_and_what_the_kernel_does_not_take_follows(at_once: int, calls: list[str]) -> None:
    line = Line(at_once)
    Connection(line).sendall(b"token")
    assert (line.taken, line.calls) == (b"token", calls)


def test_all_else_is_asked_of_the_connection() -> None:
    assert Connection(Line(1)).fileno() == 7
