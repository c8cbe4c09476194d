"""Prompts that Open WebUI 0.12 writes itself, by how they begin; what a person writes is a question."""

from __future__ import annotations

import pytest

from datafari_rag.core.ask import ChatMessage
from datafari_rag.protocols.openai.chat_completions import NO_MODEL, task_reply

CHAT = "\n### Chat History:\n<chat_history>\nUSER: How do I copy a file?\n</chat_history>"


@pytest.mark.parametrize(
    ("prompt", "reply"),
    [
        ('### Task:\nGenerate a concise title.\n### Output:\nJSON format: { "title": "x" }', '{"title": ""}'),
        ('### Task:\nPredict 3-5 useful messages\nJSON format: { "follow_ups": ["x"] }', '{"follow_ups": []}'),
        ('### Task:\nGenerate 1-3 broad tags\nJSON format: { "tags": ["x"] }', '{"tags": []}'),
        ('### Task:\nAnalyze the chat history\nreturn: { "queries": [] }.', '{"queries": []}'),
        ('### Task:\nGenerate a detailed prompt\n{ "prompt": "x" }', '{"prompt": ""}'),
        ('### Task:\nYou are an autocompletion system.\n`{ "text": "" }`', '{"text": ""}'),
        ("Your task is to reflect the speaker's likely facial expression through a fitting emoji.", NO_MODEL),
        ("You have been provided with a set of responses from various models to the query", NO_MODEL),
        ("  ### Task:\nSummarize the conversation history that will be compacted", NO_MODEL),
    ],
)
def test_a_programs_prompt_is_a_task(prompt: str, reply: str) -> None:
    assert task_reply(prompt + CHAT, ()) == reply


def test_the_choice_of_tools_stands_in_the_system_message() -> None:
    system = ChatMessage(
        "system", 'Available Tools: [{"name": "x"}]\n\nYour task is to choose and return the correct tool(s)'
    )
    assert task_reply("Query: How do I copy a file?", (ChatMessage("user", "x"), system)) == '{"tool_calls": []}'


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
    assert task_reply(question, (ChatMessage("system", system),) if system else ()) is None
