"""
llama.cpp's own server behind our client, under the rules of four makers' chat templates.

The model's weights are random: what it says is nothing, and that it says something is what counts. The templates were
written for these tests after the rules of Llama 3's, Mistral's, Gemma 2's and Qwen 3's.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from datafari_rag.adapters.model.endpoint import Endpoint, HttpModel
from datafari_rag.commands.demo.index import settings_of_model
from datafari_rag.commands.doctor import doctor
from datafari_rag.core.ask import ChatMessage
from datafari_rag.core.documents import Document, Extract
from datafari_rag.core.errors import ModelInputTooLong, OnlyThoughts
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.model.servers import completed
from datafari_rag.ports import Ending, TextChunk
from tests.required import present

HERE = Path(__file__).parent
PYTHON = HERE.parents[1] / ".venvs" / "llamacpp" / "bin" / "python"
TEMPLATES = HERE.parent / "data" / "chat_templates"

pytestmark = [pytest.mark.clients, pytest.mark.slow]

HISTORY = (ChatMessage("user", "Hello."), ChatMessage("assistant", "Yes?"), ChatMessage("system", "Be kind."))


@contextmanager
def serving(template: str, folder: Path) -> Iterator[str]:
    """Run the server with one of the templates; give its base address."""
    command = [
        present(PYTHON, ".ci/setup long"),
        HERE / "llamacpp_server.py",
        folder,
        TEMPLATES / f"{template}.jinja",
    ]
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            assert url, (folder / "log").read_text(encoding="utf-8", errors="replace")[-3000:]
            yield url
        finally:
            process.kill()


def prompt(*history: ChatMessage, text: str = "Paris is nice.", tokens: int = 12) -> Prompt:
    document = Document(id="1", text=text)
    extracts = tuple(Extract(number, f"City {number}", document, (), text) for number in (1, 2))
    return Prompt("What is nice?", extracts, "Be brief.", "k3j9x2m5q8w1", history, model="tiny", max_tokens=tokens)


def answer(model: HttpModel, asked: Prompt, *, is_streamed: bool) -> tuple[str, Ending]:
    *pieces, ending = model.generate(asked, is_streamed=is_streamed)
    assert isinstance(ending, Ending)
    return "".join(piece.text for piece in pieces if isinstance(piece, TextChunk)), ending


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("template", "history", "learned"),
    [
        ("llama3", (), []),
        ("llama3", HISTORY, []),
        ("mistral", (), ["turns"]),
        ("mistral", HISTORY, ["turns"]),
        ("gemma", (), ["turns"]),
        ("gemma", HISTORY, ["turns"]),
    ],
)
def test_a_template_that_is_strict_gets_what_it_wants_from_the_second_question_on(
    template: str, history: tuple[ChatMessage, ...], learned: list[str], is_streamed: bool, tmp_path: Path
) -> None:
    with serving(template, tmp_path) as base:
        model = HttpModel(Endpoint(completed(base)))
        text, first = answer(model, prompt(*history), is_streamed=is_streamed)
        assert (first.failure, bool(text), first.finish_reason) == (None, True, "length")
        assert first.facts.tries == 1 + len(learned)
        text, second = answer(model, prompt(*history), is_streamed=is_streamed)
        assert (second.failure, bool(text), second.facts.tries) == (None, True, 1)
        assert model.learned.of("tiny").is_merged == bool(learned)


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
def test_more_than_its_window_has_its_own_failure(is_streamed: bool, tmp_path: Path) -> None:
    with serving("llama3", tmp_path) as base:
        _, ending = answer(HttpModel(Endpoint(completed(base))), prompt(text="Nice. " * 5000), is_streamed=is_streamed)
    assert isinstance(ending.failure, ModelInputTooLong)


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
def test_a_template_that_begins_a_thought_gives_no_thought_as_an_answer(is_streamed: bool, tmp_path: Path) -> None:
    """The random model never ends its thought: all that it writes is one, and its name alone tells."""
    asked = replace(prompt(), model="qwen3-tiny")
    with serving("qwen3", tmp_path) as base:
        text, ending = answer(HttpModel(Endpoint(completed(base))), asked, is_streamed=is_streamed)
    assert (text, type(ending.failure)) == ("", OnlyThoughts)
    assert ending.facts.thought_chars > 0


def test_the_commands_find_its_model_and_its_window_and_say_what_was_learned(tmp_path: Path) -> None:
    with serving("mistral", tmp_path) as base:
        found = settings_of_model(base)
        assert (found["rag.model"], found["llm.context.window"]) == ("tiny", 8192)
        conf = tmp_path / "rag.properties"
        conf.write_text(f"rag.api.endpoint={base}\nrag.model=tiny\nrag.maxTokens=20\nllm.context.window=16000\n")
        said = CliRunner().invoke(doctor, ["--conf", str(conf)]).output
    assert "OK      model (127.0.0.1): answers: first words after" in said
    assert "OK      learned: documents and question are one message" in said
    assert "HINT    length: the answer was cut at rag.maxTokens" in said
    assert "PROBLEM window: the server's is 8192 tokens, llm.context.window=16000" in said
