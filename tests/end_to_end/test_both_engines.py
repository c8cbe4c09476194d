"""What means the same on the embedded index and on Solr, seen by a caller of the running service."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.end_to_end.processes import Running, service, write_settings
from tests.real_solr import Collection

FRAGMENT_CHARS = 300
SENTENCE = "Sentence {} of the harbour rules says who looks after the quay and who pays for it."

DOCUMENTS: list[dict[str, str]] = [
    {"id": "harbour", "title": "Harbour rules", "language": "en"},
    {"id": "avis", "title": "Avis", "language": "fr", "content": "Le port est fermé la nuit. Il ouvre à six heures."},
    {
        "id": "leave",
        "title": "Leave",
        "language": "en",
        "content": "The port of the office is on the left. Ask at night.",
    },
    {"id": "note", "title": "Note", "language": "fr", "content": "La nuit, le gardien du port a les clés du portail."},
]
SENTENCES = [SENTENCE.format(number) for number in range(60)]
SENTENCES[30] = "Sentence 30 of the harbour rules says where the crane stands and who may use it."
DOCUMENTS[0]["content"] = " ".join(SENTENCES)

QUESTIONS = ("À quelle heure ouvre le port la nuit ?", "Where is the port of the office at night?")


@pytest.fixture(scope="module", params=["embedded", pytest.param("solr", marks=pytest.mark.solr)])
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp(request.param)
    url = "embedded:index"
    if request.param == "solr":
        collection: Collection = request.getfixturevalue("solr_collection")
        collection.load([])
        url = collection.settings.solr.url
    settings = {
        "solr.url": url,
        "rag.api.endpoint": "builtin:extractive",
        "rag.solrField": "highlighting",
        "rag.hl.fragsize": str(FRAGMENT_CHARS),
        "llm.context.window": "1200",
    }
    write_settings(folder, settings)
    (folder / "docs.jsonl").write_text("".join(json.dumps(one) + "\n" for one in DOCUMENTS), encoding="utf-8")
    arguments = ["-m", "datafari_rag", "index", "docs.jsonl", "--conf", "rag.properties"]
    subprocess.run([sys.executable, *arguments], cwd=folder, check=True, capture_output=True, timeout=300)
    with service(folder, settings) as found:
        yield found


def asked(running: Running, **parameters: str) -> dict[str, Any]:
    reply = running.session.get(f"{running.url}/search/select", params={"action": "rag", **parameters}, timeout=60)
    return dict(reply.json())


def test_a_snippet_is_whole_sentences_of_at_least_the_size_of_the_setting(running: Running) -> None:
    (document,) = asked(running, q="where does the crane stand?", lang="en")["content"]["documents"]
    text = document["content"]

    assert SENTENCES[30] in text
    assert text.startswith("Sentence ") and text.endswith("it.")
    assert FRAGMENT_CHARS <= len(text) <= FRAGMENT_CHARS + 2 * len(SENTENCES[30])


def answer_of(running: Running, question: str, **overrides: str) -> dict[str, Any]:
    body = {"messages": [{"role": "user", "content": question}], "context": {"overrides": overrides}}
    return dict(running.session.post(f"{running.url}/chat", json=body, timeout=60).json())


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_language_asked_for_finds_nothing_more_and_nothing_less(running: Running, question: str) -> None:
    plain = asked(running, q=question)["content"]["documents"]
    assert len(plain) >= 2
    for language in ("en", "fr", "de"):
        assert asked(running, q=question, lang=language)["content"]["documents"] == plain

    chosen: tuple[dict[str, str], ...] = ({}, {"language": "en"}, {"language": "fr"}, {"language": "de"})
    found = [answer_of(running, question, **overrides)["context"]["data_points"] for overrides in chosen]
    assert found[0] and all(one == found[0] for one in found)


@pytest.mark.parametrize(("language", "sentence"), [("en", "no associated documents"), ("fr", "aucun document")])
def test_the_language_asked_for_is_that_of_the_answer(running: Running, language: str, sentence: str) -> None:
    assert sentence in answer_of(running, "quarantine xylophone", language=language)["message"]["content"]


def test_no_room_for_documents_is_not_called_nothing_found(running: Running) -> None:
    long = f"Where does the crane of the harbour stand? {'the quay of the harbour ' * 160}"

    assert asked(running, q=long[:3990])["content"]["error"]["label"] == "contextTooLong"
    assert asked(running, q="quarantine xylophone")["content"]["error"]["label"] == "noDocuments"
    page = running.get(f"/?q={long[:3990]}").text
    assert 'data-label="contextTooLong"' in page
