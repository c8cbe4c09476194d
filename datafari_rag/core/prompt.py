"""
What the model is told: instructions, fenced documents, the conversation, the question last and word for word.

A document's text is data. It stands between fences with a nonce that is new for each request, it is never a format
string, and only the two slots `{language}` and `{format}` of the instructions are replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from datafari_rag.core.ask import AnswerFormat, Turn
from datafari_rag.core.documents import Extract


@dataclass(frozen=True, slots=True)
class Prompt:
    """
    All that a template turns into a request body.

    *nonce* is an unguessable word made for this request alone (letters and digits). *max_tokens* None means: not
    sent. *model* empty means: key left out. *sampling* holds further wire parameters of /v1 (top_p, stop, seed…),
    sent as they are.
    """

    question: str
    extracts: tuple[Extract, ...]
    instructions: str | None
    nonce: str
    history: tuple[Turn, ...] = ()
    answer_format: AnswerFormat | None = None
    language: str = "en"
    model: str = ""
    temperature: float | None = 0.7
    max_tokens: int | None = 250
    sampling: Mapping[str, object] = field(default_factory=dict)
