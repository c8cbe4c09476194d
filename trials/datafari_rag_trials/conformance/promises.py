"""
What docs/contract.md promises of every door, each promise a function of a running service and a door.

A promise that is broken is an AssertionError, or the error of what could not be read. The first line of a docstring is
what the report prints. The defaults of `Service` are documents and users of `datafari-rag demo`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import requests

from datafari_rag_trials.conformance.doors import DOORS, TIMEOUT_S, Door, More, Seen

USER_HEADER = "X-Remote-User"
"""The header by which the demo believes who asks."""


def _session() -> requests.Session:
    session = requests.Session()
    session.trust_env = False
    return session


@dataclass(frozen=True, slots=True)
class Service:
    """The service at *url*, and what the promises need to know of its documents and users."""

    url: str
    question: str = "How do I copy a file in Python?"
    nothing: str = "qzxwvut"
    """A question that no document answers."""
    restricted: str = "How are Enums and Flags different?"
    """A question whose best document, *restricted_title*, is for *reader*, and neither for *other* nor for everyone."""
    restricted_title: str = "Enum HOWTO"
    reader: str = "alice"
    other: str = "bob"
    user_header: str = USER_HEADER
    session: requests.Session = field(default_factory=_session)

    def ask(self, door: Door, question: str, more: More | None = None, *, user: str | None = None) -> requests.Response:
        """Return the reply of *door* to *user*, None for nobody."""
        headers = {self.user_header: user} if user else {}
        return door.ask_over(self.session, self.url, question, more, headers)

    def see(self, door: Door, question: str, more: More | None = None, *, user: str | None = None) -> Seen:
        """Return what a reader sees of an answer, which must be HTTP 200 and of the door's media type."""
        reply = self.ask(door, question, more, user=user)
        assert reply.status_code == 200, f"HTTP {reply.status_code}: {reply.text[:160]}"
        assert _media_type(reply) == door.media_type, reply.headers.get("Content-Type")
        return door.seen(reply.content)

    def post(self, door: Door, body: bytes) -> requests.Response:
        """Return the reply to *body*, sent as JSON to the path of *door*."""
        asked = door.asked("", {})
        headers = {"Content-Type": "application/json", **(asked.headers or {})}
        return self.session.post(f"{self.url}{asked.path}", data=body, headers=headers, timeout=TIMEOUT_S)


def the_same_answer(service: Service, door: Door) -> None:
    """A question has the same text, documents and citations as at the first door."""
    seen = service.see(door, service.question)
    assert seen.text.strip()
    assert seen.labels
    assert seen == service.see(DOORS[0], service.question)


def sources_exactly_once(service: Service, door: Door) -> None:
    """The documents are sent once."""
    assert service.see(door, service.question).times_sources == 1


def each_citation_has_the_place_of_its_mark(service: Service, door: Door) -> None:
    """Where a citation says that its mark is, there is a mark."""
    seen = service.see(door, service.question)
    assert seen.citations
    for citation in seen.citations:
        mark = seen.text[slice(int(str(citation["answer_start"])), int(str(citation["answer_end"])))]
        assert mark.startswith("[") and mark.endswith("]"), mark


def a_quotation_is_in_the_stored_text(service: Service, door: Door) -> None:
    """A citation's quotation stands in the document at its place."""
    found = [one for one in service.see(door, service.question).citations if one["status"] == "verified"]
    assert found
    for citation in found:
        named = {"id": str(citation["document_id"]), "start": str(citation["start"]), "end": str(citation["end"])}
        reply = service.session.get(
            f"{service.url}/documents", params=named, headers={"Accept": "application/json"}, timeout=TIMEOUT_S
        )
        assert str(citation["quote"]) in reply.json()["text"]


def unknown_fields(service: Service, door: Door) -> None:
    """A field that nobody knows changes nothing."""
    assert service.see(door, service.question, {"wings": "two"}) == service.see(door, service.question)


def session_state(service: Service, door: Door) -> None:
    """A client's session_state comes back as it was sent."""
    reply = service.ask(door, service.question, {"session_state": {"conversation_id": 1234}})
    assert '"conversation_id":1234' in reply.text.replace(" ", "")


def a_basket(service: Service, door: Door) -> None:
    """With the ids of documents, an answer is made of these documents alone."""
    citation = next(one for one in service.see(DOORS[0], service.question).citations if one["document_id"])
    seen = service.see(door, service.question, door.basket([str(citation["document_id"])]))
    assert len(seen.labels) == 1
    assert {one["document_id"] for one in seen.citations} <= {citation["document_id"]}


def no_documents(service: Service, door: Door) -> None:
    """Where nothing is found, a sentence says so, and nothing is cited."""
    seen = service.see(door, service.nothing)
    assert seen.text.strip()
    assert not seen.labels
    assert not seen.citations


def a_blank_question(service: Service, door: Door) -> None:
    """A blank question is refused, with a sentence."""
    _refused(door, service.ask(door, " \n"), 400)


def a_question_that_is_too_long(service: Service, door: Door) -> None:
    """A question of 4,001 characters is refused, with a sentence."""
    _refused(door, service.ask(door, "x" * 4001), 400)


def a_body_over_the_limit(service: Service, door: Door) -> None:
    """A body of twelve million characters is refused, with a sentence."""
    if door.asked("", {}).method == "POST":
        reply = service.post(door, b" " * 12_000_000)
        assert reply.status_code == 413, f"HTTP {reply.status_code}: {reply.text[:160]}"
        assert door.said(reply.json()).strip()


def rights_of_a_reader(service: Service, door: Door) -> None:
    """Who may read a restricted document finds it."""
    assert service.restricted_title in service.see(door, service.restricted, user=service.reader).labels


def rights_of_others(service: Service, door: Door) -> None:
    """Who may not read a document, or is not signed in, gets an answer without it."""
    for user in (service.other, None):
        assert service.restricted_title not in service.ask(door, service.restricted, user=user).text


def no_name_in_a_request(service: Service, door: Door) -> None:
    """What a caller writes into a request makes nobody somebody else."""
    names: More = {"user": service.reader, "AuthenticatedUserName": service.reader}
    assert service.restricted_title not in service.ask(door, service.restricted, names, user=service.other).text


def two_names_at_once(service: Service, door: Door) -> None:
    """Two names in the user's header are nobody's: the caller is told to sign in."""
    both = f"{service.reader}, {service.other}"
    _refused(door, service.ask(door, service.question, user=both), 401)


def headers_of_a_reply(service: Service, door: Door) -> None:
    """No reply may be stored or read as another type, and each names its request."""
    headers = service.ask(door, service.question).headers
    assert "no-store" in headers.get("Cache-Control", "")
    assert headers.get("X-Content-Type-Options") == "nosniff"
    assert headers.get("X-Request-Id")


def _refused(door: Door, reply: requests.Response, code: int) -> None:
    assert reply.status_code == door.status(code), f"HTTP {reply.status_code}: {reply.text[:160]}"
    assert _media_type(reply) == "application/json", reply.headers.get("Content-Type")
    assert door.said(reply.json()).strip()


def _media_type(reply: requests.Response) -> str:
    return reply.headers.get("Content-Type", "").partition(";")[0]


Promise = Callable[[Service, Door], None]

PROMISES: tuple[Promise, ...] = (
    the_same_answer,
    sources_exactly_once,
    each_citation_has_the_place_of_its_mark,
    a_quotation_is_in_the_stored_text,
    unknown_fields,
    session_state,
    a_basket,
    no_documents,
    a_blank_question,
    a_question_that_is_too_long,
    a_body_over_the_limit,
    rights_of_a_reader,
    rights_of_others,
    no_name_in_a_request,
    two_names_at_once,
    headers_of_a_reply,
)
"""All promises; a door's `cannot` names those that it cannot keep, with spaces in place of underscores."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one promise at one door: *problem* is None where it is kept."""

    door: Door
    promise: str
    says: str
    problem: str | None


def outcome_of(promise: Promise, service: Service, door: Door) -> Outcome | None:
    """Return what came of *promise* at *door*, None where the door says that it cannot keep it."""
    name = promise.__name__.replace("_", " ")
    if name in door.cannot:
        return None
    says = (promise.__doc__ or "").strip()
    try:
        promise(service, door)
    except requests.RequestException as error:
        return Outcome(door, name, says, f"no reply: {type(error).__name__}")
    except Exception as error:  # whatever a reply of another form raises where it is read
        return Outcome(door, name, says, f"{type(error).__name__}: {error}")
    return Outcome(door, name, says, None)
