"""TLS to Solr and to the model: a private certificate authority, a client certificate, no silently skipped check."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
import logging
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from datafari_rag.bootstrap import create_app
from tests.security.test_plugin_mode import solr
from tests.security.worlds import repeating
from tests.support.server import Asked, Loopback, serving


class Authority:
    """A certificate authority that lives as long as a test."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.path = folder / f"{name}.pem"
        own = self._signed(self.name, self.key, x509.BasicConstraints(ca=True, path_length=None))
        self.path.write_bytes(own.public_bytes(serialization.Encoding.PEM))

    def issued(self, name: str) -> tuple[Path, Path]:
        """Return the files of a certificate for 127.0.0.1 and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        made = self._signed(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), key)
        certificate, secret = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        secret.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return certificate, secret

    def _signed(self, subject: x509.Name, key: Any, *extensions: x509.ExtensionType) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)  # a module is imported an hour before the last of its tests runs
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
        )
        for extension in extensions:
            builder = builder.add_extension(extension, True)
        return builder.sign(self.key, hashes.SHA256())


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Return the authority that signs everything here."""
    return Authority(tmp_path_factory.mktemp("ca"), "authority")


@contextmanager
def encrypted(authority: Authority, kind: str, *, asks_for_ours: bool) -> Iterator[Loopback]:
    """Run a Solr or a model over TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issued("server"))
    if asks_for_ours:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(authority.path)
    with serving(solr if kind == "solr" else repeating, context) as running:
        yield running


@pytest.fixture
def plain_solr() -> Iterator[Loopback]:
    """Run a Solr without TLS, for the model's tests."""
    with serving(solr) as running:
        yield running


def outcome(folder: Path, plain: Loopback, kind: str, far: Loopback, **changes: str) -> str:
    """Return "ok", or the label of the failure, of one question whose Solr or model is behind TLS."""
    conf = folder / "rag.properties"
    conf.write_text("")
    conf.chmod(0o600)
    near = {"solr.url": f"{plain.url}/solr/x", "rag.api.endpoint": "builtin:extractive", "llm.limits.retries": "0"}
    there = f"{far.url}/solr/x" if kind == "solr" else f"{far.url}/v1/chat/completions"
    settings = {**near, "solr.url" if kind == "solr" else "rag.api.endpoint": there}
    files = {name.removeprefix("tls_"): value for name, value in changes.items() if name.startswith("tls_")}
    settings |= {f"{kind}.{name}": value for name, value in changes.items() if not name.startswith("tls_")}
    settings["tls"] = json.dumps(
        {kind: {name: json.loads(it) if name == "verify" else it for name, it in files.items()}}
    )
    reply = create_app(conf, settings).test_client().get("/search/select?action=rag&q=common").get_json()
    return "ok" if reply["status"] == "OK" else str(reply["content"]["error"]["label"])


FAILED = {"solr": "searchUnavailable", "llm": "modelUnavailable"}
BOTH = pytest.mark.parametrize("kind", ["solr", "llm"])


@BOTH
def test_a_server_of_an_authority_that_we_know_is_talked_to(
    authority: Authority, tmp_path: Path, plain_solr: Loopback, kind: str
) -> None:
    with encrypted(authority, kind, asks_for_ours=False) as far:
        assert outcome(tmp_path, plain_solr, kind, far, tls_ca=str(authority.path)) == "ok"


@BOTH
def test_a_server_of_an_unknown_authority_is_told_nothing(
    authority: Authority, tmp_path: Path, plain_solr: Loopback, kind: str
) -> None:
    other = Authority(tmp_path, "other")
    with encrypted(authority, kind, asks_for_ours=False) as far:
        for changes in ({}, {"tls_ca": str(other.path)}):
            assert outcome(tmp_path, plain_solr, kind, far, **changes) == FAILED[kind]
        assert far.asked == []


@BOTH
def test_a_server_that_asks_for_our_certificate_gets_it(
    authority: Authority, tmp_path: Path, plain_solr: Loopback, kind: str
) -> None:
    certificate, key = authority.issued("ours")
    trust = {"tls_ca": str(authority.path)}
    with encrypted(authority, kind, asks_for_ours=True) as far:
        ours = {**trust, "tls_cert": str(certificate), "tls_key": str(key)}
        assert outcome(tmp_path, plain_solr, kind, far, **trust) == FAILED[kind]
        assert outcome(tmp_path, plain_solr, kind, far, **ours) == "ok"


@BOTH
def test_an_unchecked_connection_is_said_loudly_at_start(
    authority: Authority, tmp_path: Path, plain_solr: Loopback, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    with encrypted(authority, kind, asks_for_ours=False) as far, caplog.at_level(logging.WARNING):
        assert outcome(tmp_path, plain_solr, kind, far, tls_verify="false") == "ok"
    assert [record for record in caplog.records if f"verify is false for {kind}" in record.getMessage()]


def test_solr_is_given_user_and_password_and_nobody_else_is(tmp_path: Path, plain_solr: Loopback) -> None:
    asked: list[Asked] = plain_solr.asked
    assert outcome(tmp_path, plain_solr, "solr", plain_solr, user="ann", password="a secret") == "ok"
    wanted = "Basic " + base64.b64encode(b"ann:a secret").decode()
    assert {one.headers.get("Authorization") for one in asked} == {wanted}
    assert "a secret" not in json.dumps([one.path for one in asked])
