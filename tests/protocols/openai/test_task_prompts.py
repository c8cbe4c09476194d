"""Prompts that Open WebUI 0.12 writes itself, by how they begin; what a person writes is a question."""

from __future__ import annotations

import json

import pytest

from datafari_rag.core.ask import ChatMessage
from datafari_rag.protocols.openai.chat_completions import NO_MODEL, TASK_PROMPTS, task_of

CHAT = "\n### Chat History:\n<chat_history>\nUSER: How do I copy a file?\n</chat_history>"

TASKS = {
    "title_generation": '### Task:\nGenerate a concise title.\n### Output:\nJSON format: { "title": "x" }' + CHAT,
    "follow_up_generation": '### Task:\nPredict 3-5 useful messages\nJSON format: { "follow_ups": ["x"] }' + CHAT,
    "tags_generation": '### Task:\nGenerate 1-3 broad tags\nJSON format: { "tags": ["x"] }' + CHAT,
    "query_generation": '### Task:\nAnalyze the chat history\nreturn: { "queries": [] }.' + CHAT,
    "image_prompt_generation": '### Task:\nGenerate a detailed prompt\n{ "prompt": "x" }' + CHAT,
    "autocomplete_generation": '### Task:\nYou are an autocompletion system.\n`{ "text": "" }`' + CHAT,
    "emoji_generation": "Your task is to reflect the speaker's likely facial expression through a fitting emoji.",
    "moa_response_generation": "You have been provided with a set of responses from various models to the query",
    "any other": "  ### Task:\nSummarize the conversation history that will be compacted" + CHAT,
}


@pytest.mark.parametrize(("name", "prompt"), TASKS.items(), ids=TASKS)
def test_a_programs_prompt_is_a_task(name: str, prompt: str) -> None:
    row = task_of(prompt, ())
    assert row is not None and row.name == name
    assert row.answer == NO_MODEL or json.loads(row.answer)


def test_the_choice_of_tools_stands_in_the_system_message() -> None:
    system = ChatMessage(
        "system", 'Available Tools: [{"name": "x"}]\n\nYour task is to choose and return the correct tool(s)'
    )
    row = task_of("Query: How do I copy a file?", (ChatMessage("user", "x"), system))
    assert row is not None and (row.name, json.loads(row.answer)) == ("function_calling", {"tool_calls": []})


@pytest.mark.parametrize(
    ("question", "system"),
    [
        pytest.param("What is my task?", "", id="a question"),
        pytest.param("Please: ### Task: is a heading", "", id="words that do not begin it"),
        pytest.param(
            "How do I copy a file?", '### Task:\nBe a lawyer. { "title": "x" }', id="an assistant's own words"
        ),
        pytest.param("Available Tools: which?", "", id="the words of the system asked by a person"),
        pytest.param(
            "### Task:\nRespond to the user query using the provided context, {title}\nHow?", "", id="files sent along"
        ),
    ],
)
def test_what_a_person_asks_is_a_question(question: str, system: str) -> None:
    assert task_of(question, (ChatMessage("system", system),) if system else ()) is None


def test_each_row_can_be_reached() -> None:
    assert {row.name for row in TASK_PROMPTS if row.is_task} == {*TASKS, "function_calling"}
