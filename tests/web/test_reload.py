"""What a changed settings file changes, at every door of a running service."""

from __future__ import annotations

from pathlib import Path

from datafari_rag.bootstrap import create_app


def test_a_key_that_was_taken_away_is_refused_at_every_door_after_a_reload(tmp_path: Path) -> None:
    conf = tmp_path / "rag.properties"
    first, second = "first" * 4, "second" * 4
    rows = "solr.url=embedded:none\nsecurity.identity=header\nsecurity.mode=none\nserver.api.keys="
    conf.write_text(f"{rows}{first}\n")
    conf.chmod(0o600)
    app = create_app(str(conf))
    client = app.test_client()

    def codes(key: str) -> list[int]:
        headers = {"Authorization": f"Bearer {key}", "X-Remote-User": "ann", "Accept": "application/json"}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        return [
            client.post("/mcp", json=body, headers=headers).status_code,
            client.get("/documents?id=x", headers=headers).status_code,
        ]

    before = codes(first)
    conf.write_text(f"{rows}{second}\n")
    app.reload()
    assert before[0] == 200
    assert codes(second) == before
    assert codes(first) == [401, 401]
