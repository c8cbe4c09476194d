"""
`security.mode=plugin`: Solr's own ManifoldCF component filters, and receives the user's name in its own format.

The real component cannot be had here (it is in no public repository of artifacts), so a stub records what it would
read: `AuthenticatedUserName`, alone, of the mapped user, and nothing that a caller wrote.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from datafari_rag.adapters.settings.file import StartRefused
from datafari_rag.bootstrap import create_app
from tests.support.server import Asked, Loopback, Reply, serving

DOCUMENT = {
    "id": "doc 1", "title": ["Report"], "url": "http://docs.example.org/1", "exactContent": ["A common report."],
    "preview_content": ["A common report."], "language": "en", "_version_": 7, "score": 1.0,
}  # fmt: skip

READ_BY_THE_COMPONENT = re.compile(r"^(AuthenticatedUser(Name|Domain)(_\d+)?|UserTokens|mcf|shards(\.qt)?|qt)$")


def solr(asked: Asked) -> Reply:
    """Answer as a Solr that finds one document."""
    response = {"numFound": 1, "start": 0, "docs": [DOCUMENT]}
    return Reply(json.dumps({"responseHeader": {"status": 0, "QTime": 1}, "response": response}).encode())


@pytest.fixture
def stub() -> Iterator[Loopback]:
    """Run the stub."""
    with serving(solr) as running:
        yield running


def client(folder: Path, stub: Loopback, **changes: str) -> Any:
    conf = folder / "rag.properties"
    conf.write_text("")
    conf.chmod(0o600)
    settings = {
        "solr.url": f"{stub.url}/solr/FileShare",
        "rag.api.endpoint": "builtin:extractive",
        "security.mode": "plugin",
        "security.identity": "header",
        "security.domain": "example.org",
        **{name.replace("_", "."): value for name, value in changes.items()},
    }
    return create_app(conf, settings).test_client()


def searches(stub: Loopback) -> list[dict[str, list[str]]]:
    """Return the parameters of every search that was sent."""
    sent = [asked for asked in stub.asked if asked.path.endswith("/select")]
    return [{**asked.query, **parse_qs(asked.body.decode(), keep_blank_values=True)} for asked in sent]


FORGED = "mcf=false&AuthenticatedUserName=root&AuthenticatedUserName_0=root&UserTokens=s1&shards=x&qt=/get&fq={!x}"

REQUESTS = {
    "an answer": ("GET", f"/search/select?action=rag&q=common&{FORGED}", None),
    "a plain search": ("GET", f"/search/select?q=common&{FORGED}", None),
    "a document": ("GET", f"/documents?id=doc+1&{FORGED}", None),
    "a chat": ("POST", f"/chat?{FORGED}", {"messages": [{"role": "user", "content": "common"}], "UserTokens": "s1"}),
    "/v1": ("POST", f"/v1/chat/completions?{FORGED}",
            {"index_name": "default", "user": "root", "messages": [{"role": "user", "content": "common"}]}),
}  # fmt: skip


@pytest.mark.parametrize(("method", "path", "body"), REQUESTS.values(), ids=REQUESTS.keys())
@pytest.mark.parametrize(
    ("header", "told"),
    [
        ({"X-Remote-User": "CORP\\ann"}, ["ann@example.org"]),
        ({"X-Remote-User": "a&b=c é@d"}, ["a&b=c é@d"]),
        ({}, None),
    ],
    ids=["a mapped user", "an odd name", "the anonymous"],
)
def test_the_component_is_told_who_asks_and_nothing_of_the_caller(
    tmp_path: Path, stub: Loopback, method: str, path: str, body: object, header: dict[str, str], told: list[str] | None
) -> None:
    headers = {name: value.encode().decode("latin-1") for name, value in header.items()}
    response = client(tmp_path, stub).open(path, method=method, json=body, headers=headers)
    assert response.status_code == 200
    assert searches(stub)
    for sent in searches(stub):
        assert {name: value for name, value in sent.items() if READ_BY_THE_COMPONENT.match(name)} == (
            {} if told is None else {"AuthenticatedUserName": told}
        )
        assert "token" not in json.dumps(sent)


def test_no_source_of_rights_is_asked(tmp_path: Path, stub: Loopback) -> None:
    """The component asks the authority itself; a file that is broken here is no reason to fail."""
    (tmp_path / "users.json").write_text("{")
    asking = client(tmp_path, stub, security_tokens_file=str(tmp_path / "users.json"))
    assert asking.get("/search/select?q=common", headers={"X-Remote-User": "ann"}).status_code == 200


def test_the_embedded_index_has_no_component_and_refuses_to_start(tmp_path: Path, stub: Loopback) -> None:
    with pytest.raises(StartRefused):
        client(tmp_path, stub, solr_url=f"embedded:{tmp_path / 'index'}")
