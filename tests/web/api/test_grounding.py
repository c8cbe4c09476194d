"""POST /grounding/check over HTTP: who asks, what he may read, what is counted and kept."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from flask.testing import FlaskClient

from datafari_rag.core.access import Filter
from datafari_rag.core.documents import Document
from datafari_rag.core.errors import AuthorityUnavailable, InvalidSignIn, SearchUnavailable
from datafari_rag.core.text.sentences import spans
from tests.fakes import FLIGHT, FakeIdentity, FakeRetriever, FakeRights, app_of, fake_snapshot
from tests.settings import settings_with

PATH = "/grounding/check"
FACTS = [{"factText": "A ticket costs 12 euros."}]


def client_of(**how: Any) -> FlaskClient:
    return app_of(fake_snapshot(**how)).test_client()


def posted(client: FlaskClient, candidate: str = "A ticket costs 12 euros.", **body: object) -> Any:
    return client.post(PATH, json={"answerCandidate": candidate, **(body or {"facts": FACTS})})


def test_a_text_is_checked_against_facts() -> None:
    response = posted(client_of(retriever=FakeRetriever(error=SearchUnavailable())))
    assert (response.status_code, response.get_json()["supportScore"]) == (200, 1)
    assert response.headers["Cache-Control"] == "no-store"


def test_a_text_is_checked_against_documents() -> None:
    found = posted(client_of(), FLIGHT.text, documentIds=[FLIGHT.id]).get_json()
    assert (found["supportScore"], found["citedChunks"][0]["documentId"]) == (1, FLIGHT.id)


HANDBOOK = (
    "Ferry tickets cost 12 euros on Sundays. Members without cards pay 20 mg deposits before 10:30. "
    "Dr Okafor approved hepatitis B vaccinations for staff in Lisbon. The committee accepted claims against insurers. "
    "Employees receive 0.125 shares after 3 years. Visitors cannot enter laboratories from Monday to Friday."
)
INSERTED = ("not", "never", "former", "alleged", "only", "half", "13", "Bergen", "without", "unless", "C", "other")


def altered(sentence: str, chance: Random) -> str:
    """Return *sentence* with one word that is no article left out, put in, exchanged, or with two of them swapped."""
    words = sentence.rstrip(".").split()
    place = chance.choice([at for at, word in enumerate(words[1:], 1) if word not in ("The", "the")])
    kind = chance.choice(("out", "in", "other", "swapped"))
    if kind == "out":
        del words[place]
    elif kind == "in":
        words.insert(place, chance.choice(INSERTED))
    elif kind == "other":
        words[place] = chance.choice([one for one in INSERTED if one != words[place]])
    else:
        words[place - 1], words[place] = words[place], words[place - 1]
    return f"{' '.join(words)}."


def test_no_altered_copy_is_proved_and_every_copy_is() -> None:
    """Through the service, alone, quoted, and among true sentences: whatever was altered, and wherever."""
    chance, client = Random(32), client_of()
    facts = [{"factText": HANDBOOK}]
    said = [HANDBOOK[start:end] for start, end in spans(HANDBOOK)]
    assert posted(client, " ".join(said), facts=facts).get_json()["supportScore"] == 1
    for _ in range(40):
        copies = [altered(one, chance) for one in said]
        candidate = "\n\n".join(chance.choice((one, f"“{one[:-1]}”.", f"The handbook says: {one}")) for one in copies)
        claims = posted(client, f"{said[0]}\n\n{candidate}", facts=facts).get_json()["claims"]
        proved = [one["claimText"] for one in claims if one["status"] == "verified"]
        assert proved == said[:1]


def test_hidden_and_unknown_ids_are_alike_to_the_byte() -> None:
    class Guarded(FakeRetriever):
        def fetch(self, document_id: str, field: str, access: Filter) -> Document | None:
            return None if document_id == "hidden" else super().fetch(document_id, field, access)

    client = client_of(retriever=Guarded(replace(FLIGHT, id="hidden")))
    hidden, absent = (posted(client, documentIds=[name]).get_data() for name in ("hidden", "absent"))
    assert hidden.replace(b"hidden", b"absent") == absent


@pytest.mark.parametrize(
    ("how", "code", "status"),
    [
        ({"settings": settings_with(security_anonymous="refuse")}, 401, "UNAUTHENTICATED"),
        ({"identity": FakeIdentity(InvalidSignIn())}, 401, "UNAUTHENTICATED"),
        ({"retriever": FakeRetriever(error=SearchUnavailable())}, 502, "UNAVAILABLE"),
    ],
)
def test_a_failure_has_its_status_and_its_shape(how: dict[str, Any], code: int, status: str) -> None:
    response = posted(client_of(**how), documentIds=[FLIGHT.id])
    assert (response.status_code, response.get_json()["error"]["status"]) == (code, status)


def test_rights_that_cannot_be_learnt_are_no_rights() -> None:
    client = client_of(rights=FakeRights(error=AuthorityUnavailable()))
    body = {"answerCandidate": "x", "documentIds": [FLIGHT.id]}
    assert client.post(PATH, json=body, headers={"X-User": "ann"}).status_code == 502
    facts = {"answerCandidate": "x", "facts": FACTS}
    assert client.post(PATH, json=facts, headers={"X-User": "ann"}).status_code == 200


def test_attempts_to_name_a_user_are_counted() -> None:
    client = client_of(settings=settings_with(security_identity="none", security_header="X-User"))
    body = {"answerCandidate": "x", "facts": FACTS, "AuthenticatedUserName": "ann"}
    client.post(PATH, json=body, headers={"X-User": "ann"})
    assert 'datafari_rag_ignored_parameters_total{kind="identity"} 2.0' in client.get("/metrics").get_data(as_text=True)
