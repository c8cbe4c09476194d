"""
What users cannot see changes nothing for them: one question over the whole corpus, and over their part of it.

The property beside this one looks for words; this one looks for everything else: counts, facets, errors, statuses, the
order of fields, what is logged of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.real_solr import Collection
from tests.security.asking import Case, cases, request_for
from tests.security.corpora import Corpus, corpora
from tests.security.test_nobody_learns import words_of
from tests.security.worlds import World, embedded_engine, world

ALIKE = ("select", "documents", "ragapi", "chat", "grounding", "retrieve")

# What differs from one request to the next: times, ids, versions; and BM25, which counts words over the whole index.
_VOLATILE = re.compile(
    r'"(QTime|_version_|score|ts|id_in_the_log|took_ms|ms|timings_ms)": ?("[^"]*"|[-0-9.e]+|\{[^}]*\})'
    r"|(?i:x-request-id|date|server-timing|content-length): [^\n]*|id=[0-9a-f]{32}|ms=\d+"
)


@pytest.fixture(scope="module")
def embedded_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Run the services over the embedded index."""
    folder = tmp_path_factory.mktemp("embedded")
    with embedded_engine(folder / "index") as (url, load), world(folder, "embedded", url, load) as running:
        yield running


def told(running: World, corpus: Corpus, case: Case) -> tuple[object, ...]:
    """Return all that the user of *case* receives, without what differs each time."""
    target = corpus.docs[case.target % len(corpus.docs)]
    request = request_for(case, words_of(case, corpus, target, corpus.visible(case.user)), target.id)
    service = running.services[case.variant]
    headers = {**request.headers, **running.credentials(service, case.user)}
    status, head, body = service.send(request.method, request.path, request.body, headers)
    running.overheard()
    return status, _VOLATILE.sub("-", head), said(case, body)


def said(case: Case, body: bytes) -> object:
    """Return what the body says: all of it, or where ranks may differ for good reason, which documents it has."""
    text = _VOLATILE.sub("-", body.decode())
    if case.dialect in ("documents", "grounding"):
        return text
    if case.dialect == "select":
        reply = json.loads(body)
        response = reply["response"]
        docs = sorted(
            json.dumps({k: v for k, v in doc.items() if k not in ("score", "_version_")}) for doc in response["docs"]
        )
        return response["numFound"], response["start"], docs, reply.get("facet_counts"), sorted(reply)
    if case.dialect == "retrieve":
        reply = json.loads(body)
        return sorted({one["document"]["id"] for one in reply.get("passages", ())}), reply.get("error")
    return "noDocuments" in text or "no associated documents" in text


@pytest.fixture(scope="module")
def solr_world(tmp_path_factory: pytest.TempPathFactory, solr_url: str, solr_collection: Collection) -> Iterator[World]:
    """Run the services over the real Solr."""
    folder = tmp_path_factory.mktemp("solr-world")
    with world(folder, "solr", solr_url, solr_collection.load) as running:
        yield running


def compare(running: World, number: int) -> None:
    """Ask *number* times ten questions twice: with what is hidden in the index, and without."""

    @settings(
        max_examples=number,
        deadline=None,
        derandomize=True,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(corpus=corpora(max_docs=10), data=st.data())
    def holds(corpus: Corpus, data: st.DataObject) -> None:
        user = data.draw(st.sampled_from([None, "ann", "bob", "zoé", "eve"]))
        asked = [replace(data.draw(cases(name)), user=user) for name in ALIKE for _ in range(2)]
        running.load(corpus)
        with_hidden = [told(running, corpus, case) for case in asked]
        running.load_documents([doc.fields() for doc in corpus.visible(user)])
        without = [told(running, corpus, case) for case in asked]
        assert with_hidden == without

    holds()


def numbers(quick: int, long: int) -> pytest.MarkDecorator:
    """Return the numbers of corpora: a few, and many in the slow test."""
    return pytest.mark.parametrize("number", [quick, pytest.param(long, marks=pytest.mark.slow)])


@numbers(12, 60)
def test_hidden_documents_change_nothing_for_those_who_cannot_see_them_embedded(
    embedded_world: World, number: int
) -> None:
    compare(embedded_world, number)


@pytest.mark.solr
@numbers(6, 30)
def test_hidden_documents_change_nothing_for_those_who_cannot_see_them_solr(solr_world: World, number: int) -> None:
    compare(solr_world, number)


CHOSEN = ("select", "ragapi", "choices", "chat", "published", "openai", "mcp", "ai", "retrieve")
"""The dialects that take chosen documents."""

# The name and the second of a request.
_OF_REQUEST = re.compile(r'[0-9a-f]{32}|"(memoryId|created|elapsedMs)": ?("[0-9A-F]+"|[0-9.e-]+)')


def compare_chosen(running: World) -> int:
    """Choose a document that is hidden, then one that is absent, for the words of the hidden; return how many pairs."""
    compared = 0

    @settings(
        max_examples=4,
        deadline=None,
        derandomize=True,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(corpus=corpora(max_docs=10), data=st.data())
    def holds(corpus: Corpus, data: st.DataObject) -> None:
        nonlocal compared
        user = data.draw(st.sampled_from([None, "ann", "bob", "zoé", "eve"]))
        running.load(corpus)
        hidden = [doc for doc in corpus.docs if doc not in corpus.visible(user)]
        for doc, dialect in ((doc, dialect) for doc in hidden[:3] for dialect in CHOSEN):
            case = replace(
                data.draw(cases(dialect)), user=user, target=0, extras=(), overrides={"documents": ["TARGET"]}
            )
            service = running.services[case.variant]
            replies = []
            for identity in (doc.id, "absent"):
                request = request_for(case, f"{doc.key} {doc.canary}", identity)
                headers = {**request.headers, **running.credentials(service, case.user)}
                status, head, body = service.send(request.method, request.path, request.body, headers)
                replies.append(
                    (status, _VOLATILE.sub("-", head), _OF_REQUEST.sub("-", _VOLATILE.sub("-", body.decode())))
                )
            running.overheard()
            assert replies[0] == replies[1], f"{dialect} tells {user} of {doc.id!r}"
            compared += 1

    holds()
    return compared


def test_a_hidden_document_that_is_chosen_is_as_one_that_is_absent_embedded(embedded_world: World) -> None:
    assert compare_chosen(embedded_world) > len(CHOSEN)


@pytest.mark.solr
def test_a_hidden_document_that_is_chosen_is_as_one_that_is_absent_solr(solr_world: World) -> None:
    assert compare_chosen(solr_world) > len(CHOSEN)
