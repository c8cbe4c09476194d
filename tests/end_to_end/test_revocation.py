"""A revocation in the production server: known to every worker when the administrator has his answer."""

from __future__ import annotations

from pathlib import Path

import requests

from tests.end_to_end.matrix import Record, tell
from tests.end_to_end.processes import Running, service
from tests.security.test_revocation import DOCUMENTS, SECRET
from tests.security.worlds import embedded_engine
from tests.support.server import Asked, Reply, serving

ASKERS = 40


def finds(found: Running, name: str) -> bool:
    """Search as *name* over a connection of its own; say whether the document was found."""
    reply = requests.get(
        f"{found.url}/search/select?q={SECRET}", headers={"X-Remote-User": name, "Connection": "close"}, timeout=60
    )
    assert reply.status_code == 200, reply.text
    return bool(reply.json()["response"]["numFound"] == 1)


def test_every_worker_knows_a_revocation_with_the_next_request(tmp_path: Path, record_property: Record) -> None:
    tokens = {"ann": "s1"}
    calls: list[str] = []

    def acls(one: Asked) -> Reply:
        name = one.query["username"][0]
        calls.append(name)
        return Reply(f"AUTHORIZED:test\nTOKEN:{tokens.get(name, 'all')}\n".encode())

    with embedded_engine(tmp_path / "index") as (url, load), serving(acls) as authority:
        load(DOCUMENTS)
        settings = {
            "solr.url": url,
            "rag.api.endpoint": "builtin:extractive",
            "security.identity": "header",
            "security.tokens": "authority",
            "security.authority.url": authority.url,
            "security.cache_s": "3600",
            "security.admins": "root",
        }
        with service(tmp_path, settings, workers=2) as found:
            # Until both workers remember: which of them answers is the system's choice.
            for _ in range(400):
                assert finds(found, "ann")
                if calls.count("ann") == 2:
                    break
            assert calls.count("ann") == 2
            tokens["ann"] = "all"
            assert finds(found, "ann"), "remembered"
            revoked = requests.post(
                f"{found.url}/admin/revoke", json={"user": "ann"}, headers={"X-Remote-User": "root"}, timeout=60
            )
            assert revoked.status_code == 200
            assert not any(finds(found, "ann") for _ in range(ASKERS))
            counted = found.get("/metrics").text
            assert 'datafari_rag_revocations_total{of="user"} 1.0' in counted
    saw = f"the next {ASKERS} requests find nothing"
    tell(record_property, "rights: revoked (POST /admin/revoke), remembered for an hour by two workers", saw)
