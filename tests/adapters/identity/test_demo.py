"""The demo's menu selects a user only on this machine, and only if no other source identified one."""

from __future__ import annotations

import pytest

from datafari_rag.adapters.identity.factory import DemoIdentity, HeaderIdentity
from datafari_rag.core.identity import networks

SIGNED = {"good": "alice"}


def identified(headers: dict[str, str], peer: str = "127.0.0.1") -> str | None:
    proved = HeaderIdentity("X-Remote-User", networks(("127.0.0.1/32", "10.0.0.0/8")))
    return DemoIdentity(proved, "who", SIGNED.get).identify(headers, peer).name


@pytest.mark.parametrize(
    ("headers", "peer", "name"),
    [
        pytest.param({"cookie": "other=1; who=good"}, "127.0.0.1", "alice", id="a signed cookie"),
        pytest.param({"cookie": "who=good"}, "::1", "alice", id="a signed cookie over IPv6"),
        pytest.param({"cookie": "who=forged"}, "127.0.0.1", None, id="a cookie that we have not signed"),
        pytest.param({}, "127.0.0.1", None, id="no cookie"),
        pytest.param({"cookie": "who=good"}, "10.0.0.7", None, id="a cookie from another machine"),
        pytest.param({"cookie": "who=good", "x-forwarded-for": "10.9.9.9"}, "127.0.0.1", None, id="through a proxy"),
        pytest.param({"cookie": "who=good", "x-remote-user": "bob"}, "127.0.0.1", "bob", id="a proved name wins"),
        pytest.param({"cookie": "\x01=;;=;who"}, "127.0.0.1", None, id="a header that is no cookie"),
    ],
)
def test_who_is_asking(headers: dict[str, str], peer: str, name: str | None) -> None:
    assert identified(headers, peer) == name
