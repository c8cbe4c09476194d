"""The folder of a mountain hut: its questions are answered, and its twelve in other words are what they promise."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from flask.testing import FlaskClient

from datafari_rag.bootstrap import create_app
from datafari_rag.commands.main import LazyGroup
from datafari_rag.core.text.language import is_empty_word
from datafari_rag.core.text.tokens import tokens
from datafari_rag_trials.evaluation.questions import Question, questions_in

HUT = Path(__file__).parents[1] / "data" / "mountain_hut"


def lines_of(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HUT / name).read_text(encoding="utf-8").splitlines()]


def content_words(text: str, language: str) -> set[str]:
    return {token.stem for token in tokens(text, language) if token.stem and not is_empty_word(token.key, language)}


@pytest.mark.parametrize("row", lines_of("in_other_words.jsonl"), ids=lambda row: row["id"])
def test_a_question_in_other_words_shares_no_content_word_with_the_sentence_that_answers_it(
    row: dict[str, str],
) -> None:
    language = row["language"]
    asked, said = content_words(row["question"], language), content_words(row["sentence"], language)

    assert len(asked) >= 2 and len(said) >= 3
    assert not asked & said
    assert row["answers"][0] in row["sentence"]


def test_there_are_twenty_questions_and_twelve_in_other_words_of_thirty_two_files() -> None:
    names = {path.name for path in (HUT / "files").iterdir()}
    own, other = lines_of("in_its_words.jsonl"), lines_of("in_other_words.jsonl")

    assert (len(names), len(own), len(other)) == (32, 20, 12)
    assert {name.removeprefix("files/").partition("#")[0] for row in own + other for name in row["doc_ids"]} <= names
    assert {row["language"] for row in own} == {row["language"] for row in other} == {"en", "fr", "de"}


@pytest.fixture(scope="module")
def hut(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    conf = tmp_path_factory.mktemp("hut") / "rag.properties"
    conf.write_text("solr.url=embedded:index\nrag.api.endpoint=builtin:extractive\n")
    outcome = CliRunner().invoke(LazyGroup(), ["index", str(HUT / "files"), "--conf", str(conf)])
    assert outcome.stdout == "33 documents written, 0 removed, 0 files unchanged, 0 problems\n"
    with create_app(conf).test_client() as client:
        yield client


@pytest.mark.parametrize("asked", questions_in(HUT / "in_its_words.jsonl"), ids=lambda asked: asked.id)
def test_a_question_in_the_words_of_a_file_is_answered_from_it(hut: FlaskClient, asked: Question) -> None:
    reply = hut.get("/search/select", query_string={"action": "rag", "q": asked.text}).get_json()["content"]

    assert reply["documents"][0]["id"] in asked.document_ids
    assert asked.answers[0] in reply["message"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/chat", {"messages": [{"role": "user", "content": "Merci beaucoup !"}]}),
        ("/v1/chat/completions", {"model": "datafari", "messages": [{"role": "user", "content": "Merci beaucoup !"}]}),
        ("/rest/v2.0/ai", {"action": "rag", "query": "Merci beaucoup !"}),
    ],
    ids=["chat", "openai", "ai"],
)
def test_thanks_get_a_sentence_back_and_no_document(hut: FlaskClient, path: str, body: dict[str, object]) -> None:
    reply = hut.post(path, json=body)

    assert reply.status_code == 200
    assert "Posez-moi une question" in reply.get_data(as_text=True).encode().decode("unicode_escape")
    assert "file://" not in reply.get_data(as_text=True)
