"""Real questions on the demo documents: every dialect shows the same documents in the same order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from flask.testing import FlaskClient

from datafari_rag.bootstrap import retriever_for
from datafari_rag.commands.demo.index import build_demo_index
from datafari_rag_trials.conformance.doors import DOORS
from tests.fakes import FakeModel, app_of, fake_snapshot
from tests.hostile_texts import QUESTIONS
from tests.settings import settings_with

EVERY = [20, pytest.param(1, marks=pytest.mark.slow)]
"""One question of so many is asked, to keep the run short."""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    folder = tmp_path_factory.mktemp("same") / "index"
    build_demo_index(folder)
    settings = settings_with(solr_url=f"embedded:{folder}")
    line = fake_snapshot(settings=settings)
    parts = replace(line.dependencies, retriever=retriever_for(settings), model=FakeModel("It is so [1]."))
    yield app_of(replace(line, dependencies=parts)).test_client()


@pytest.mark.parametrize("every", EVERY)
def test_every_dialect_shows_the_same_documents_in_the_same_order(client: FlaskClient, every: int) -> None:
    questions = [row["question"] for row in QUESTIONS[::every]]
    whole = [door for door in DOORS if door.how == "whole"]
    for question in questions:
        seen = {str(door): door.seen(door.ask(client, question).get_data()) for door in whole}
        assert len({one.labels for one in seen.values()}) == 1, (question, seen)
        assert seen["ragapi whole"].labels
