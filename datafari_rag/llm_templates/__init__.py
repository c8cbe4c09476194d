"""The dialects of models, pure: each a module with `body`, `answer` and `delta`; and their table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.model.replies import ReplyChunk
from datafari_rag.core.model.servers import ServerNeeds
from datafari_rag.llm_templates import datafari, openai


class Template(Protocol):
    """What a module of this folder offers; `rag.template` names one."""

    def body(self, prompt: Prompt, is_streamed: bool, needs: ServerNeeds) -> dict[str, object]:
        """Return the JSON body of the request, in the order in which it is written, as the server *needs* it."""
        ...

    def answer(self, reply: Mapping[str, object]) -> ReplyChunk:
        """Return what a whole reply says; one that cannot be read is a failure in it, never an exception."""
        ...

    def delta(self, chunk: Mapping[str, object]) -> ReplyChunk:
        """Return what one chunk of a stream says; one that says nothing is empty."""
        ...


TEMPLATES: Mapping[str, Template] = {"openai": openai, "datafari": datafari}
"""By the value of `rag.template`."""
