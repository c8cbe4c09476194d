"""A document in pieces for the model."""

from __future__ import annotations

import pytest

from datafari_rag.core.documents import Document
from datafari_rag.core.whole import LEAST_CHARS, PieceLimit, piece_extract, piece_spans, weigh

SENTENCE = "The supplier delivers the spare part number {} within nine days of the order. "
TEXT = "".join(SENTENCE.format(number) for number in range(400))


def limit(pieces: int = 10, chars: int = 4_000, tokens: int = 1_000_000) -> PieceLimit:
    return PieceLimit(pieces, chars, tokens, len)


@pytest.mark.parametrize(("pieces", "chars"), [(10, 4_000), (3, 4_000), (1, 4_000), (10, 1_000_000), (40, 300)])
def test_pieces_are_whole_sentences_that_together_are_the_text(pieces: int, chars: int) -> None:
    spans = piece_spans(weigh(TEXT, title="", language="en"), limit(pieces, chars))
    assert 1 <= len(spans) <= pieces
    assert "".join(TEXT[start:end] + " " for start, end in spans) == TEXT
    assert all(TEXT[end - 1] == "." for _, end in spans)


def test_pieces_fit_a_request_where_there_may_be_enough_of_them() -> None:
    spans = piece_spans(weigh(TEXT, title="", language="en"), limit(pieces=100, chars=4_000))
    assert max(end - start for start, end in spans) <= 4_000


def test_a_text_that_fits_is_one_piece_and_a_blank_one_is_none() -> None:
    assert len(piece_spans(weigh(TEXT, title="", language="en"), limit(chars=len(TEXT)))) == 1
    assert piece_spans(weigh(" \n", title="", language="en"), limit()) == ()


def test_a_piece_that_is_too_long_is_cut_to_its_central_sentences() -> None:
    weighed, document = weigh(TEXT, title="", language="en"), Document("d", TEXT)
    extract = piece_extract(document, weighed, (0, len(TEXT)), limit=limit(chars=2_000), is_cleaned=True)
    assert extract is not None
    assert 1_000 < len(extract.text) <= 2_000


@pytest.mark.parametrize("tokens", [900, 300, 1])
def test_a_piece_is_within_the_models_window(tokens: int) -> None:
    weighed, document = weigh(TEXT, title="", language="en"), Document("d", TEXT)
    extract = piece_extract(document, weighed, (0, len(TEXT)), limit=limit(tokens=tokens), is_cleaned=True)
    assert extract is not None
    assert len(extract.text) <= max(tokens, LEAST_CHARS)


def test_a_piece_in_which_nothing_can_be_seen_is_none() -> None:
    text = "\u200b\u200b \u200b"
    weighed = weigh(text, title="", language="en")
    assert piece_extract(Document("d", text), weighed, (0, len(text)), limit=limit(), is_cleaned=True) is None
