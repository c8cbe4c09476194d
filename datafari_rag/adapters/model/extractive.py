"""The model that needs no server: `builtin:extractive` answers with sentences of the documents it was given."""

from __future__ import annotations

from collections.abc import Generator

from datafari_rag.core.answer.prompt import Prompt
from datafari_rag.core.events import ModelFacts
from datafari_rag.core.passages.extractive_answer import pieces
from datafari_rag.ports import Ending, Piece

NAME = "builtin:extractive"


class ExtractiveModel:
    """A `ports.Model` that never fails, never waits and knows nothing but the extracts of the prompt."""

    def generate(self, prompt: Prompt, *, is_streamed: bool) -> Generator[Piece | Ending, None, None]:
        """Yield the answer, sentence by sentence when it is streamed, then an `Ending` with "stop"."""
        facts = ModelFacts(name=NAME)
        found = pieces(prompt.question, prompt.extracts, language=prompt.language, answer_format=prompt.answer_format)
        for text in found if is_streamed else ("".join(found),):
            yield Piece(text, facts)
        yield Ending("stop", facts=facts)
