"""Which names a service is called by, in every way they are written."""

from __future__ import annotations

import pytest

from datafari_rag.core.identity import authority_of, bracketed, is_known, is_same, normalized


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Search.Example.org", ("search.example.org", None)),
        ("localhost:8080", ("localhost", "8080")),
        ("[::1]", ("[::1]", None)),
        ("[2001:DB8::1]:80", ("[2001:db8::1]", "80")),
        ("10.0.0.1", ("10.0.0.1", None)),
        ("::1", None),
        ("a b", None),
        ("a:", None),
        (":80", None),
        ("a@b", None),
        ("a:800000", None),
        ("", None),
    ],
)
def test_a_name_is_host_and_port_without_case(text: str, wanted: tuple[str, str | None] | None) -> None:
    assert normalized(text) == wanted


def test_an_address_is_written_in_brackets_and_a_name_stays() -> None:
    assert [bracketed(text) for text in ("::1", "fe80::1", "[::1]", "a:80", "a:b:c", "localhost")] == [
        "[::1]", "[fe80::1]", "[::1]", "a:80", "[a:b:c]", "localhost",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("target", "wanted"),
    [
        ("http://a.example/x", "a.example"),
        ("HTTPS://A:80?x", "A:80"),
        ("x+y://b", "b"),
        ("/x", None),
        ("*", None),
        ("//a/x", None),
        ("", None),
    ],
)
def test_only_an_absolute_target_names_a_host(target: str, wanted: str | None) -> None:
    assert authority_of(target) == wanted


def test_every_name_that_is_said_must_be_known() -> None:
    hosts = ("localhost", "a.example:8443")
    assert is_known(["LOCALHOST:1"], hosts)
    assert is_known(["a.example:8443", "localhost"], hosts)
    assert not is_known(["a.example"], hosts)
    assert not is_known(["localhost", "evil"], hosts)
    assert not is_known(["localhost", ""], hosts)
    assert not is_known([], hosts)


def test_a_default_port_may_be_written_or_not() -> None:
    assert is_same("a.example", "A.example:443")
    assert is_same("a.example:80", "a.example")
    assert not is_same("a.example:8080", "a.example")
    assert not is_same("a.example", "b.example")
    assert not is_same("", "")
    assert not is_same("a", "")
