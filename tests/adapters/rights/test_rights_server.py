"""Whole answers for what gives rights; other ways of an answer are in the tests of the authority and of the keys."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from datafari_rag.adapters.rights import RightsServer
from datafari_rag.core.errors import AuthorityTimeout, AuthorityUnavailable
from tests.required import library
from tests.support.server import Reply, serving
from tests.support.stub import raw_server

TIMEOUT_S = (1.0, 1.0)


def test_credentials_of_the_address_are_a_header_and_not_logged() -> None:
    with serving(lambda asked: Reply(b"no", 500)) as server:
        asker = RightsServer(server.url.replace("//", "//user:hid%40den@") + "/x", TIMEOUT_S, 100)
        with pytest.raises(AuthorityUnavailable) as caught:
            asker.get({"username": "a&b"}, {"X-Request-ID": "r1"})
    (asked,) = server.asked
    assert asked.headers["Authorization"] == "Basic dXNlcjpoaWRAZGVu"
    assert (asked.path, asked.query, asked.headers["X-Request-ID"]) == ("/x", {"username": ["a&b"]}, "r1")
    assert "hid" not in caught.value.log


def test_an_answer_is_as_long_as_it_may_be_and_no_longer() -> None:
    with serving(lambda asked: Reply(b"a" * 100)) as server:
        assert RightsServer(server.url, TIMEOUT_S, 100).get() == b"a" * 100
        with pytest.raises(AuthorityUnavailable):
            RightsServer(server.url, TIMEOUT_S, 99).get()


@pytest.mark.parametrize("url", ["", "ftp://a/", "http://[::1", "http://\ud800/"])
def test_an_address_that_is_none_gives_no_rights(url: str) -> None:
    with pytest.raises(AuthorityUnavailable):
        RightsServer(url, TIMEOUT_S, 100).get()


def test_a_name_that_cannot_be_sent_gives_no_rights() -> None:
    with serving(lambda asked: Reply(b"")) as server:
        with pytest.raises(AuthorityUnavailable):
            RightsServer(server.url, TIMEOUT_S, 100).get({"username": "a\ud800"})
        assert server.asked == []


def test_a_handshake_that_never_comes_is_a_time_out() -> None:
    with raw_server(lambda line: None) as url, pytest.raises((AuthorityTimeout, AuthorityUnavailable)):
        RightsServer(url.replace("http:", "https:"), (0.3, 0.3), 100).get()


def test_the_certificates_of_the_environment_are_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library("cryptography.x509", "make .venv/.dev")
    from tests.adapters.test_http_tls import certificate

    cert, key = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    with serving(lambda asked: Reply(b"ok"), context) as server:
        with pytest.raises(AuthorityUnavailable):
            RightsServer(server.url, TIMEOUT_S, 100).get()
        for place, is_believed in ((str(cert), True), (str(tmp_path / "absent"), False), (str(tmp_path), False)):
            monkeypatch.setenv("REQUESTS_CA_BUNDLE", place)
            asker = RightsServer(server.url, TIMEOUT_S, 100)
            if is_believed:
                assert asker.get() == b"ok"
            else:
                with pytest.raises(AuthorityUnavailable):
                    asker.get()
