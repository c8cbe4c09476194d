"""Words in another legal form of their letters on a real Solr: its analysis unites what the tokens of a text unite."""

from __future__ import annotations

import pytest

from datafari_rag.core.access import User, filter_for
from datafari_rag.core.query.plan import plain_step
from datafari_rag.core.search_request import Search
from tests.core.text.test_probes import PROBES
from tests.real_solr import Collection

pytestmark = pytest.mark.solr

ANYBODY = filter_for(User("admin", frozenset()), mode="none", anonymous="public")


def found_by(collection: Collection, word: str) -> list[str]:
    step = plain_step(word, language="", operator="AND")
    return [one.id for one in collection.retriever.search(Search(word, step, len(PROBES)), ANYBODY).documents]


def test_a_word_in_another_form_of_letters_is_found_in_every_language(solr_collection: Collection) -> None:
    solr_collection.load([{"id": name, "exactContent": text.replace("|", "")} for name, (text, _) in PROBES.items()])

    asked = [(name, word) for name, (_, words) in PROBES.items() for word in words.split()]
    assert [one for one in asked if one[0] not in found_by(solr_collection, one[1])] == []


def test_a_korean_word_is_found_whatever_particle_stands_behind_it(solr_collection: Collection) -> None:
    solr_collection.load([{"id": "size", "exactContent": "창고는 큽니다"}, {"id": "price", "exactContent": "가격은"}])

    assert found_by(solr_collection, "창고가") == ["size"]
