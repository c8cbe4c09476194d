"""One question of the service's own to the configured model, and how it did; no document of anybody's is sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from datafari_rag.core.documents import Document, Extract
from datafari_rag.core.errors import RagError
from datafari_rag.core.events import UNKNOWN_MODEL, ModelFacts
from datafari_rag.core.model.prompt import Prompt, instructions_for
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.text.language import detect
from datafari_rag.ports import Ending, Model, TextChunk

LANGUAGE = "fr"
QUESTION = "Jusqu'à quelle heure la salle de lecture est-elle ouverte en semaine ?"
DOCUMENTS = (
    ("Opening hours", "On weekdays the reading room is open from nine o'clock in the morning until 18:45."),
    ("Lending", "Books can be borrowed for four weeks. A loan can be renewed twice."),
)
"""The question is not in the documents' language, so that an answer shows whether the model keeps to the question's."""

EXPECTED = "18"


@dataclass(frozen=True, slots=True)
class ModelTrial:
    """
    How the model answered: seconds to the first words and in all, in how many pieces, and what is right about it.

    *failure* is None for an answer; the rest then says nothing where it is not.
    """

    prompt: Prompt
    failure: RagError | None
    first_s: float = 0.0
    total_s: float = 0.0
    pieces: int = 0
    is_right: bool = False
    is_cited: bool = False
    is_in_language: bool = False
    is_cut: bool = False
    facts: ModelFacts = UNKNOWN_MODEL


def trial_prompt(settings: Settings, instructions: str, nonce: str) -> Prompt:
    """Return the prompt as an answer's is made, with two short documents."""
    extracts = tuple(
        Extract(number, label, Document(id=str(number), title=label, text=text), (), text)
        for number, (label, text) in enumerate(DOCUMENTS, 1)
    )
    return Prompt(
        QUESTION,
        extracts,
        instructions_for(instructions, language=LANGUAGE, answer_format=None),
        nonce,
        language=LANGUAGE,
        model=settings.rag_model,
        temperature=settings.rag_temperature,
        max_tokens=settings.rag_max_tokens,
        spare_tokens=settings.llm_context_window // 2,
    )


def tried(model: Model, prompt: Prompt, clock: Callable[[], float]) -> ModelTrial:
    """Ask *model* once, streamed; *clock* gives seconds that never go back."""
    began = clock()
    texts: list[str] = []
    first_s = 0.0
    ending = Ending(None)
    for said in model.generate(prompt, is_streamed=True):
        if isinstance(said, TextChunk):
            first_s = first_s or clock() - began
            texts.append(said.text)
        else:
            ending = said
    text = "".join(texts)
    return ModelTrial(
        prompt,
        ending.failure,
        first_s,
        clock() - began,
        len(texts),
        is_right=EXPECTED in text,
        is_cited="[1]" in text or f"[{DOCUMENTS[0][0]}]" in text,
        is_in_language=detect(text, "") == LANGUAGE,
        is_cut=ending.finish_reason == "length",
        facts=ending.facts,
    )
