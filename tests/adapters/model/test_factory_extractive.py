from __future__ import annotations

from datafari_rag.adapters.model.chain import ExtractiveModel
from datafari_rag.core.documents import Document, Passage
from datafari_rag.core.evidence.extracts import extracts_for
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from datafari_rag.ports import Ending, TextChunk

TEXT = "Cats sleep all day.\n\nNothing here.\n\nOther animals do, too.\n\nNobody knows why.\n\nDogs bark at night."
EXTRACTS = extracts_for([(Document("a", TEXT, title="Pets"), (Passage(0, len(TEXT)),))], is_cleaned=True)
PROMPT = Prompt(question="When do cats sleep and dogs bark at night?", extracts=EXTRACTS, instructions=None, nonce="n")


def said(prompt: Prompt, *, is_streamed: bool) -> list[TextChunk | Ending]:
    return list(ExtractiveModel().generate(prompt, is_streamed=is_streamed))


def test_it_answers_in_one_piece_or_several_and_ends_well() -> None:
    *whole, ending = said(PROMPT, is_streamed=False)
    *streamed, same_ending = said(PROMPT, is_streamed=True)
    assert len(whole) == 1 < len(streamed)
    assert [piece.text for piece in whole if isinstance(piece, TextChunk)] == [
        "".join(piece.text for piece in streamed if isinstance(piece, TextChunk))
    ]
    assert isinstance(ending, Ending)
    assert ending == same_ending
    assert (ending.finish_reason, ending.failure, ending.facts.name) == ("stop", None, BUILTIN_MODEL)


def test_it_says_so_when_it_finds_nothing() -> None:
    prompt = Prompt(question="zebra?", extracts=EXTRACTS, instructions=None, nonce="n", language="fr")
    piece, _ = said(prompt, is_streamed=True)
    assert isinstance(piece, TextChunk)
    assert piece.text.startswith("Je n'ai trouvé")
