"""A name is believed from a trusted peer's header, and from nothing else."""

from __future__ import annotations

import pytest

from datafari_rag.adapters.identity.factory import AnonymousIdentity, HeaderIdentity
from datafari_rag.core.errors import NotAuthenticated
from datafari_rag.core.identity import VerifiedIdentity, networks

LOCAL = HeaderIdentity("X-Remote-User", networks(["127.0.0.1/32", "::1/128"]), "example.org")

CASES = {
    "a trusted peer names the user": ({"X-Remote-User": "ann"}, "127.0.0.1", "ann@example.org"),
    "in any case of the header": ({"x-remote-USER": "CORP\\ann"}, "::1", "ann@example.org"),
    "a stranger's header is as if not sent": ({"X-Remote-User": "ann"}, "192.0.2.7", None),
    "a broken header of an untrusted peer refuses no request": ({"X-Remote-User": "a,b\x00"}, "192.0.2.7", None),
    "no header means anonymous": ({}, "127.0.0.1", None),
    "a blank header means anonymous": ({"X-Remote-User": " "}, "127.0.0.1", None),
    "an underscore is another header": ({"X_Remote_User": "ann"}, "127.0.0.1", None),
    "another header identifies no user": ({"Authorization": "Basic YW5uOng=", "Remote-User": "ann"}, "127.0.0.1", None),
    "UTF-8 as a WSGI server hands it over": (
        {"X-Remote-User": "Zoé".encode().decode("latin-1")},
        "::1",
        "Zoé@example.org",
    ),
    "Latin-1 stays": ({"X-Remote-User": "Zo\xe9"}, "::1", "Zoé@example.org"),
}


@pytest.mark.parametrize(("headers", "peer", "name"), CASES.values(), ids=CASES.keys())
def test_who_is_believed(headers: dict[str, str], peer: str, name: str | None) -> None:
    assert LOCAL.identify(headers, peer) == VerifiedIdentity(name=name)


@pytest.mark.parametrize(
    "headers",
    [{"X-Remote-User": "ann, bob"}, {"X-Remote-User": "ann", "x-remote-user": "bob"}, {"X-Remote-User": "a\tb"}],
    ids=["joined by the server", "sent twice", "with a control character"],
)
def test_a_trusted_peers_header_that_is_no_name_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(NotAuthenticated):
        LOCAL.identify(headers, "127.0.0.1")


def test_a_network_that_is_none_is_refused_when_built() -> None:
    with pytest.raises(ValueError, match="localhost"):
        networks(["localhost"])


def test_anonymous_reads_nothing() -> None:
    assert AnonymousIdentity().identify({"X-Remote-User": "ann"}, "127.0.0.1") == VerifiedIdentity()
