"""Secrets: no object shows one in its representation, so none can end in a log or a trace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from datafari_rag.bootstrap import create_app
from datafari_rag.core.settings.checks import rows_of
from datafari_rag.core.settings.table import Settings

SECRET = "sk-0123456789abcdef-must-not-be-shown"


def secret_keys() -> list[str]:
    return [row.key for row in rows_of(Settings) if row.check.is_secret]


def shown(thing: object, depth: int = 6) -> Iterator[str]:
    """Yield the representations of *thing* and of every object of this package that it holds."""
    yield repr(thing)
    held = vars(thing).values() if hasattr(thing, "__dict__") and depth else ()
    for one in held:
        if type(one).__module__.startswith("datafari_rag"):
            yield from shown(one, depth - 1)


def test_there_are_secrets_to_hide() -> None:
    assert {"rag.api.token", "solr.password", "security.jwt.secret", "server.secret"} <= set(secret_keys())


@pytest.mark.parametrize("source", ["the file", "the environment", "a file of its own"])
def test_no_object_of_the_running_service_shows_a_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, source: str
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_TEST", SECRET)
    (tmp_path / "secret").write_text(SECRET + "\n")
    (tmp_path / "secret").chmod(0o600)
    written = {
        "the file": SECRET,
        "the environment": "${SECRET_OF_THE_TEST}",
        "a file of its own": f"file:{tmp_path}/secret",
    }
    conf = tmp_path / "rag.properties"
    lines = [f"{key}={written[source]}" for key in secret_keys()]
    conf.write_text("\n".join([*lines, "solr.url=http://127.0.0.1:1/solr/x", "solr.user=u", "security.identity=jwt"]))
    conf.chmod(0o600)
    app = create_app(conf)
    worker = app.worker
    service_snapshot = worker.service.snapshot()
    assert service_snapshot.settings.rag.api_token == SECRET
    assert service_snapshot.settings.solr.password == SECRET
    for part in (
        service_snapshot,
        service_snapshot.settings,
        service_snapshot.dependencies.model,
        service_snapshot.dependencies.retriever,
        service_snapshot.identity,
        service_snapshot.rights,
        worker.service,
    ):
        assert not [text for text in shown(part) if SECRET in text]
    client = app.test_client()
    told = [
        client.get(path).get_data(as_text=True)
        for path in ("/metrics", "/health/ready", "/admin", "/search/select?q=x")
    ]
    assert not [text for text in told if SECRET in text]
    assert SECRET not in caplog.text
