"""
Prompts that a chat program writes itself about a conversation: its title, tags, follow-up questions.

They are not questions, so nothing is searched. They are recognised by how they begin: a table, with the words of each
program as rows. A row has the answer for a service without a model; for programs that read JSON, it is empty JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from datafari_rag.core.ask import ChatMessage

NO_MODEL = "There is no language model here for this task."

_READ_CHARS = 20_000
"""How much of a prompt is looked at for the words of a row."""


@dataclass(frozen=True, slots=True)
class TaskPrompt:
    """A kind of prompt: how it *begins*, words that it *holds*, and the *answer* where there is no model."""

    name: str
    begins: str
    holds: str = ""
    answer: str = NO_MODEL
    is_task: bool = True
    in_system: bool = False
    """Whether it is in a system message; in any other row such a message is the person's own choice."""


def task_of(question: str, history: Sequence[ChatMessage]) -> TaskPrompt | None:
    """Return the row of a request that no person wrote, None for a question."""
    asked = question[:_READ_CHARS].lstrip()
    system = "\n".join(turn.text[:_READ_CHARS] for turn in history if turn.role == "system").lstrip()
    row = next((row for row in TASK_PROMPTS if _is(row, system if row.in_system else asked)), None)
    return row if row is not None and row.is_task else None


def _is(row: TaskPrompt, head: str) -> bool:
    return head.startswith(row.begins) and row.holds in head


TASK_PROMPTS = (
    # Open WebUI's own documents around a person's question: that is to be answered.
    TaskPrompt("question", "### Task:\nRespond to the user query", is_task=False),
    TaskPrompt("title_generation", "### Task:", '"title"', '{"title": ""}'),
    TaskPrompt("follow_up_generation", "### Task:", '"follow_ups"', '{"follow_ups": []}'),
    TaskPrompt("tags_generation", "### Task:", '"tags"', '{"tags": []}'),
    TaskPrompt("query_generation", "### Task:", '"queries"', '{"queries": []}'),
    TaskPrompt("image_prompt_generation", "### Task:", '"prompt"', '{"prompt": ""}'),
    TaskPrompt("autocomplete_generation", "### Task:", '"text"', '{"text": ""}'),
    TaskPrompt("any other", "### Task:"),
    TaskPrompt("emoji_generation", "Your task is to reflect the speaker's likely facial expression"),
    TaskPrompt(
        "function_calling",
        "Available Tools: ",
        "Your task is to choose and return the correct tool",
        '{"tool_calls": []}',
        in_system=True,
    ),
    TaskPrompt("moa_response_generation", "You have been provided with a set of responses from various models"),
)
"""The tasks of Open WebUI, by its names for them; the first row that fits counts."""
