"""One node for each passage that the model saw."""

from __future__ import annotations

from typing import Any

from datafari_rag.core.documents import Document, Extract, Passage
from datafari_rag.core.passages.extracts import extracts_for
from datafari_rag.protocols.openai.renderings import nodes_of

TEXT = "Paris ate a carrot.\nThe sun shone.\tIt slept\u200b until noon."


def test_each_passage_is_a_node_with_its_own_cleaned_text() -> None:
    document = Document("doc 1", TEXT, title="Rabbits", url="file:///r.txt", score=2.5)
    extracts = extracts_for([(document, (Passage(35, len(TEXT), 0.4), Passage(0, 19, 0.9)))], is_cleaned=True)
    first, second = nodes_of(extracts)
    assert (first["node_id"], first["text"], first["score"]) == ("doc 1#0-19", "Paris ate a carrot.", 2.5)
    assert (second["node_id"], second["text"]) == (f"doc 1#35-{len(TEXT)}", "It slept until noon.")
    metadata: Any = first["metadata"]
    assert metadata == {
        "label": "Rabbits",
        "number": 1,
        "title": "Rabbits",
        "url": "file:///r.txt",
        "field": "exactContent",
        "start": 0,
        "end": 19,
        "place": None,
    }
    assert f"{first['text']} … {second['text']}" == extracts[0].text


def test_snippets_are_one_node() -> None:
    document = Document("d", "<em>a</em> b", field="highlighting")
    node = nodes_of(extracts_for([(document, (Passage(0, 12),))], is_cleaned=True))[0]
    assert (node["text"], node["node_id"]) == ("a b", "d#0-3")


def test_a_document_taken_whole_is_one_node() -> None:
    assert nodes_of([Extract(1, "A", Document("d", "text"), (), "text")])[0]["node_id"] == "d#0-4"


def test_a_passage_of_which_nothing_is_visible_is_no_node() -> None:
    document = Document("d", "words \u200b\u200b")
    extracts = extracts_for([(document, (Passage(0, 5), Passage(6, 8)))], is_cleaned=True)
    assert [node["node_id"] for node in nodes_of(extracts)] == ["d#0-5"]


def test_the_best_passage_of_a_document_is_its_first_node() -> None:
    document = Document("doc 1", TEXT)
    passages = (Passage(0, 19, 0.2), Passage(35, len(TEXT), 0.9))
    nodes = nodes_of(extracts_for([(document, passages)], is_cleaned=True))
    assert [node["text"] for node in nodes] == ["It slept until noon.", "Paris ate a carrot."]
