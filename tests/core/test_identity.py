"""Names as Datafari maps them, and which peers are believed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datafari_rag.core.errors import NotAuthenticated
from datafari_rag.core.identity import (
    MAX_NAME_CHARS,
    believed_name,
    client_address,
    is_trusted,
    mapped_name,
    naming_headers,
    networks,
    qualified_name,
)

NAMES = {
    "a plain name gets the domain": ("ann", "example.org", "ann@example.org"),
    "a plain name stays without a domain": ("ann", "", "ann"),
    "a Windows prefix goes": ("CORP\\ann", "", "ann"),
    "a Windows prefix goes and the domain comes": ("CORP\\ann", "example.org", "ann@example.org"),
    "a name with a domain keeps it": ("ann@other.org", "example.org", "ann@other.org"),
    "a domain written with its @ is not doubled": ("ann", "@example.org", "ann@example.org"),
    "only the last part after backslashes counts": ("A\\B\\ann", "", "ann"),
    "case is kept": ("Ann", "Example.ORG", "Ann@Example.ORG"),
    "white space around goes": ("  ann ", "", "ann"),
    "nothing left is the empty string": ("CORP\\", "example.org", ""),
}


@pytest.mark.parametrize(("name", "domain", "wanted"), NAMES.values(), ids=NAMES.keys())
def test_a_name_is_mapped_as_datafari_does(name: str, domain: str, wanted: str) -> None:
    assert mapped_name(name, domain) == wanted


SIGNED = {
    "a plain name gets the domain": ("ann", "example.org", "ann@example.org"),
    "a plain name stays without a domain": (" ann ", "", "ann"),
    "a Windows prefix stays": ("EVIL\\ann", "", "EVIL\\ann"),
    "a Windows prefix is a domain of its own": ("EVIL\\ann", "example.org", "EVIL\\ann"),
    "a name with a domain keeps it": ("ann@evil.example", "example.org", "ann@evil.example"),
    "nothing is nothing": ("", "example.org", ""),
}


@pytest.mark.parametrize(("name", "domain", "wanted"), SIGNED.values(), ids=SIGNED.keys())
def test_of_a_signed_name_nothing_is_stripped(name: str, domain: str, wanted: str) -> None:
    assert qualified_name(name, domain) == wanted
    assert believed_name(name or None, domain, principal=qualified_name) == (wanted or None)


@pytest.mark.parametrize("value", [None, "", "   ", "(null)"])
def test_an_unset_value_is_nobody(value: str | None) -> None:
    assert believed_name(value, "example.org") is None


NOT_NAMES = {
    "a line end": "ann\nbob",
    "a NUL": "ann\x00",
    "two names of a header sent twice": "ann,bob",
    "a zero-width space": "an\u200bn",
    "a bidirectional override": "\u202enna",
    "a prefix without a name": "CORP\\",
    "a domain without a name": "@example.org",
    "too long": "a" * (MAX_NAME_CHARS + 1),
}


@pytest.mark.parametrize("value", NOT_NAMES.values(), ids=NOT_NAMES.keys())
def test_what_cannot_be_a_name_is_refused_and_not_taken_for_nobody(value: str) -> None:
    with pytest.raises(NotAuthenticated):
        believed_name(value)


@given(st.text(max_size=300))
def test_whatever_is_sent_is_nobody_or_refused_or_a_clean_name(value: str) -> None:
    try:
        name = believed_name(value, "d")
    except NotAuthenticated:
        return
    assert name is None or (name.isprintable() and "," not in name and "\\" not in name and "@" in name)


PEERS = {
    "the loopback address": ("127.0.0.1", True),
    "its IPv6 sister": ("::1", True),
    "an IPv4 address written as IPv6": ("::ffff:127.0.0.1", True),
    "a network": ("10.1.2.3", True),
    "its neighbour": ("10.2.0.1", False),
    "a zone is not part of the address": ("::1%lo", True),
    "a socket's path": ("/run/app.sock", False),
    "nothing": ("", False),
    "a name": ("localhost", False),
}


@pytest.mark.parametrize(("peer", "wanted"), PEERS.values(), ids=PEERS.keys())
def test_only_peers_of_the_networks_are_trusted(peer: str, wanted: bool) -> None:
    assert is_trusted(peer, networks(["127.0.0.1/32", "::1/128", " ", "10.1.0.0/16"])) is wanted


def test_no_network_trusts_nobody() -> None:
    assert not is_trusted("127.0.0.1", ())


def test_a_network_that_is_none_is_said() -> None:
    with pytest.raises(ValueError, match=r"10\.0\.0\.0/33"):
        networks(["10.0.0.0/33"])


FORWARDED = {
    "a stranger cannot choose his address": ("192.0.2.7", "10.9.9.9", "192.0.2.7"),
    "a proxy names the client": ("127.0.0.1", "192.0.2.1", "192.0.2.1"),
    "what the client wrote before does not count": ("127.0.0.1", "10.9.9.9, 192.0.2.1", "192.0.2.1"),
    "a chain of trusted proxies": ("127.0.0.1", "192.0.2.1, 127.0.0.1", "192.0.2.1"),
    "no header": ("127.0.0.1", "", "127.0.0.1"),
    "no address in it": ("127.0.0.1", "unknown", "127.0.0.1"),
}


@pytest.mark.parametrize(("peer", "header", "wanted"), FORWARDED.values(), ids=FORWARDED.keys())
def test_whose_address_counts(peer: str, header: str, wanted: str) -> None:
    assert client_address(peer, header, networks(["127.0.0.1/32"])) == wanted


def test_headers_that_name_a_user_are_known_by_their_names() -> None:
    sent = ["x-openwebui-user-email", "accept", "x-mine", "x-openwebui-user-jwt", "x-remote-user"]
    assert naming_headers(sent, "X-Mine") == ("x-openwebui-user-email", "x-mine", "x-remote-user")
