"""The model that needs no server: `builtin:extractive` answers with sentences of the documents it was given."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial

from datafari_rag.core.answer.prompt import Prompt
from datafari_rag.core.errors import RagError
from datafari_rag.core.events import ModelFacts
from datafari_rag.core.passages.extractive_answer import pieces
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from datafari_rag.ports import Ending, Offload, TextChunk, inline


class ExtractiveModel:
    """A `ports.Model` that needs no server and knows only the extracts of the prompt."""

    def __init__(self, offload: Offload = inline) -> None:
        """Look for sentences in long texts *offload*."""
        self._aside = offload

    def generate(self, prompt: Prompt, *, is_streamed: bool) -> Generator[TextChunk | Ending, None, None]:
        """Yield the answer, sentence by sentence when it is streamed, then an `Ending` with "stop"."""
        facts = ModelFacts(name=BUILTIN_MODEL)
        chars = sum(len(extract.text) for extract in prompt.extracts)
        try:
            found = self._aside(partial(_pieces, prompt), chars)
        except RagError as error:
            yield Ending(None, error, facts)
            return
        for text in found if is_streamed else ("".join(found),):
            yield TextChunk(text, facts)
        yield Ending("stop", facts=facts)


def _pieces(prompt: Prompt) -> tuple[str, ...]:
    return pieces(prompt.question, prompt.extracts, language=prompt.language, answer_format=prompt.answer_format)
