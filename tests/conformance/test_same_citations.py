"""Twenty questions: every dialect has the same citations, whole and streamed, behind odd characters."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from flask.testing import FlaskClient

from datafari_rag.adapters.model.chain import ExtractiveModel
from datafari_rag.bootstrap import retriever_for
from datafari_rag.commands.demo.index import build_demo_index
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.ports import TextChunk
from datafari_rag_trials.conformance.doors import DOORS, chunks_of, events_of
from tests.fakes import app_of, fake_snapshot
from tests.settings import settings_with

ODD = "🛫 De\u0301part 👩‍👩‍👧! "
HOW_MANY = 20
SAME = [one for one in DOORS if one.name != "openai"]
"""With `index_name` the passages are KAITO's nodes, cut to the caller's own budget: the model reads other ones."""
EACH = [2, pytest.param(len(SAME) - 1, marks=pytest.mark.slow)]
"""Through so many dialects, in turn, goes each question, beside the one with which they are compared."""

Place = tuple[object, ...]


class OddModel(ExtractiveModel):
    """Says what the built-in model says, behind an emoji, a family of them and a combining accent."""

    def generate(self, prompt: Prompt, *, is_streamed: bool) -> Iterator[Any]:  # type: ignore[override] # a generator too
        yield TextChunk(ODD)
        yield from super().generate(prompt, is_streamed=is_streamed)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> FlaskClient:
    folder = tmp_path_factory.mktemp("cited") / "index"
    build_demo_index(folder)
    settings = settings_with(solr_url=f"embedded:{folder}", rag_max_json_length=6000)
    line = fake_snapshot(settings=settings)
    parts = replace(line.dependencies, retriever=retriever_for(settings), model=OddModel())
    return app_of(replace(line, dependencies=parts)).test_client()


def _questions(client: FlaskClient) -> list[str]:
    found = client.get("/search/select", query_string={"rows": 40, "fl": "title"}).get_json()["response"]["docs"]
    return [f"What is said of {document['title'][0]}?" for document in found][:HOW_MANY]


def place_of(one: Any) -> Place:
    return tuple(one[key] for key in ("document_id", "start", "end", "status", "answer_start", "answer_end", "claim"))


def shown(one: Any) -> Place:
    """Return the place that a `url_citation` shows."""
    places = ("x_document_id", "x_start", "x_end", "x_status", "start_index", "end_index")
    return tuple(one[key] for key in places)


@pytest.mark.parametrize("each", EACH)
def test_twenty_questions_have_one_set_of_citations(client: FlaskClient, each: int) -> None:
    questions = _questions(client)
    assert len(questions) == HOW_MANY
    cited = 0
    turn = itertools.cycle(one for one in SAME if str(one) != "ragapi whole")
    usual = next(one for one in SAME if str(one) == "ragapi whole")
    for question in questions:
        chosen = [usual, *itertools.islice(turn, each)]
        seen = {str(one): one.seen(one.ask(client, question).get_data()) for one in chosen}
        sets = {name: tuple(map(place_of, one.citations)) for name, one in seen.items()}
        assert len(set(sets.values())) == 1, (question, sets)
        one = seen["ragapi whole"]
        assert one.text.startswith(ODD)
        for place in sets["ragapi whole"]:
            mark = one.text[int(str(place[4])) : int(str(place[5]))]
            assert mark.startswith("[") and mark.endswith("]")
        assert annotated(client, question) == {place[:6] for place in sets["ragapi whole"]}
        cited += len(sets["ragapi whole"])
    assert cited >= HOW_MANY


def annotated(client: FlaskClient, question: str) -> set[Place]:
    """Return what the annotations show, the same in all four ways in which they are sent."""
    body = {"model": "datafari", "messages": [{"role": "user", "content": question}]}
    whole = client.post("/v1/chat/completions", json=body).get_json()["choices"][0]["message"]["annotations"]
    chunks = chunks_of(client.post("/v1/chat/completions", json={**body, "stream": True}).get_data())
    response = client.post("/v1/responses", json={"input": question}).get_json()
    events = events_of(client.post("/v1/responses", json={"input": question, "stream": True}).get_data())
    ways = [
        [one["url_citation"] for one in whole],
        [one["url_citation"] for chunk in chunks for one in chunk["choices"][0]["delta"].get("annotations", ())],
        response["output"][0]["content"][0]["annotations"],
        [event["annotation"] for event in events if "annotation" in event],
    ]
    sets = [{shown(one) for one in way} for way in ways]
    assert sets[0] == sets[1] == sets[2] == sets[3], json.dumps(ways)
    return sets[0]
