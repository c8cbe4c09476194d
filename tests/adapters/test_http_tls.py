"""TLS to the model: the authorities that the settings name, our own certificate, and nothing else believed."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509

from datafari_rag.adapters.model.endpoint import Endpoint, HttpModel
from datafari_rag.core.errors import ModelUnavailable
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.settings.addresses import Tls
from datafari_rag.ports import Ending, TextChunk
from tests.support.server import Loopback, Reply, serving

REPLY = b'{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}'


def certificate(folder: Path) -> tuple[Path, Path]:
    """Write a certificate for 127.0.0.1 that vouches for itself, and its key."""
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a model's server")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return folder / "cert.pem", folder / "key.pem"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(params=["no certificate asked for", "certificate asked for"])
def server(request: pytest.FixtureRequest, files: tuple[Path, Path]) -> Iterator[Loopback]:
    cert, key = files
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    if request.param == "certificate asked for":
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cert)
    with serving(lambda asked: Reply(REPLY), context) as listening:
        yield listening


def told(server: Loopback, tls: Tls) -> list[TextChunk | Ending]:
    model = HttpModel(Endpoint(f"{server.url}/", "sk-1", tls=tls))
    said = [one for _ in range(2) for one in model.generate(Prompt("q", (), None, "n"), is_streamed=False)]
    model.close()
    return said


def test_its_own_authorities_and_certificate_open_it_and_the_connection_is_kept(
    server: Loopback, files: tuple[Path, Path]
) -> None:
    cert, key = files
    said = told(server, Tls(str(cert), str(cert), str(key)))
    assert [type(one) for one in said] == [TextChunk, Ending, TextChunk, Ending]
    assert [asked.headers["Authorization"] for asked in server.asked] == ["Bearer sk-1"] * 2


def test_a_server_that_nobody_vouches_for_never_sees_the_key(server: Loopback) -> None:
    endings = told(server, Tls())
    assert [type(one.failure) for one in endings if isinstance(one, Ending)] == [ModelUnavailable] * 2
    assert server.asked == []


def test_checks_can_be_turned_off_for_trials(server: Loopback, files: tuple[Path, Path]) -> None:
    cert, key = files
    said = told(server, Tls(cert_file=str(cert), key_file=str(key), is_checked=False))
    assert [type(one) for one in said] == [TextChunk, Ending, TextChunk, Ending]
