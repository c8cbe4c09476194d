"""One running work: what it needs, documents read with its user's rights, its prompts, and what it wrote."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from functools import partial

from datafari_rag.core.access import User
from datafari_rag.core.answer.output_filter import OutputFilter
from datafari_rag.core.answer.prompt import Prompt
from datafari_rag.core.answer.window_fitting import fitted
from datafari_rag.core.ask import Ask
from datafari_rag.core.documents import Document, Extract
from datafari_rag.core.errors import ModelUnavailable, NoRoomForDocuments
from datafari_rag.core.events import UNKNOWN_MODEL, ModelFacts
from datafari_rag.core.query.search_request import STORED
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.whole.central_sentences import WeighedText, weigh
from datafari_rag.core.whole.pieces import PieceLimit
from datafari_rag.core.whole.work import DocumentWork
from datafari_rag.pipeline import Dependencies, fetch
from datafari_rag.ports import Ending, IsWanted

FRAME_TOKENS = 200
"""Most tokens of question, label and fences of a request, without instructions and the summary so far."""

LEAST_ROOM_TOKENS = 100


@dataclass(frozen=True, slots=True)
class ModelText:
    """What the model wrote to one request, whole, with safe links; and how it ended."""

    text: str
    finish_reason: str = "stop"
    facts: ModelFacts = UNKNOWN_MODEL


@dataclass(frozen=True, slots=True)
class WorkRun:
    """One work with all that it needs; nothing is kept afterwards."""

    ask: Ask
    work: DocumentWork
    user: User
    settings: Settings
    dependencies: Dependencies

    @property
    def has_model(self) -> bool:
        """Whether a model writes; else sentences of the documents are taken."""
        return self.settings.rag_api_endpoint != BUILTIN_MODEL

    def read(self, document_id: str) -> Document | None:
        """Return one document as this user may see it, else None. Raises: SearchError, NotAuthenticated."""
        field = STORED[self.settings.rag_solr_field]
        return fetch(document_id, field, self.user, settings=self.settings, dependencies=self.dependencies)

    def weighed(self, document: Document, language: str) -> WeighedText:
        """Return the sentences of *document* weighed, worked through aside when it is long."""
        work = partial(weigh, document.text, title=document.title or "", language=language)
        return self.dependencies.offload(work, len(document.text))

    def limit(self, instructions: str, *, chars: int, pieces: int) -> PieceLimit:
        """Return how large one request may be: *chars* at most, and what the model's window leaves."""
        settings, count = self.settings, self.dependencies.counter.count
        # The answer, and before it the summary so far, which is no longer than all answers may be.
        beside = count(instructions) + FRAME_TOKENS + 2 * settings.answer_tokens
        room = max(LEAST_ROOM_TOKENS, settings.llm_context_window - beside)
        return PieceLimit(pieces, min(chars, settings.rag_max_json_length), room, count)

    def prompt(self, question: str, extracts: tuple[Extract, ...], *, instructions: str, language: str) -> Prompt:
        """
        Return the prompt, within the model's window: what does not fit is left out from the end.

        Raises:
            NoRoomForDocuments: not even one of *extracts* fits.
        """
        settings = self.settings
        prompt = Prompt(
            question=question,
            extracts=extracts,
            instructions=instructions,
            nonce=self.dependencies.new_nonce(),
            language=language,
            model=settings.rag_model,
            temperature=settings.rag_temperature,
            max_tokens=settings.rag_max_tokens,
        )
        prompt = fitted(prompt, window=settings.llm_context_window, count=self.dependencies.counter.count)
        if not prompt.extracts:
            raise NoRoomForDocuments
        return prompt

    def filtered(self, text: str, extracts: tuple[Extract, ...]) -> str:
        """Return *text* with links made safe, as every answer has them."""
        output = OutputFilter(extracts, wants_followups=False, links=self.settings.security_answer_links)
        output.feed(text)
        output.end()
        return output.text

    def written(self, prompt: Prompt, is_wanted: IsWanted = lambda: True) -> ModelText:
        """
        Return what the model writes to *prompt*, nothing when it is not wanted any more.

        Raises:
            ModelError: it failed.
        """
        said: list[str] = []
        ending = Ending(None, ModelUnavailable(log="the model ended without an ending"))
        if not is_wanted():
            return ModelText("")
        # A stream, so that an abandoned work closes the connection at the next word.
        with closing(self.dependencies.model.generate(prompt, is_streamed=True)) as pieces:
            for piece in pieces:
                if isinstance(piece, Ending):
                    ending = piece
                    break
                if not is_wanted():
                    return ModelText("")
                said.append(piece.text)
        if ending.failure is not None:
            raise ending.failure
        text = self.filtered("".join(said), prompt.extracts)
        return ModelText(text, ending.finish_reason or "stop", ending.facts)
