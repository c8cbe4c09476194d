"""
Settings of the embedding model and of the reranker: `embeddings.*`, `rerank.*`.

Rows only. Without an endpoint there are no vectors and no reranking, and no library for them is loaded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath

from datafari_rag.core.messages import message
from datafari_rag.core.settings import addresses as addresses
from datafari_rag.core.settings import checks as checks
from datafari_rag.core.settings.answers import AnswerSettings
from datafari_rag.core.settings.records import EmbeddingOptions, RerankOptions
from datafari_rag.core.settings.row import secret, setting

ONNX = "onnx:"
"""The prefix of a local model's folder."""

_LANGUAGE = re.compile(r"[a-z]{2}")


def model_endpoint(path: str) -> checks.Check:
    """Return the check for where a model is: an http(s) address that ends in *path*, or the folder of a local one."""
    wanted = checks.valid(message("http(s) addresses of a {path}, and {folder}", path=path, folder=f"{ONNX}FOLDER"))
    http = addresses.url(is_optional=True)

    def read(value: str, folder: str) -> object:
        if not value.startswith(ONNX):
            try:
                return http.read(value, folder)
            except ValueError:
                raise ValueError(wanted) from None
        named = value.removeprefix(ONNX).strip()
        if not named or checks.CONTROL.search(named):
            raise ValueError(wanted)
        return ONNX + str(PurePath(folder) / named)

    return checks.Check("text", read, wanted, is_optional=True)


def languages() -> checks.Check:
    """Return the check for a list of two-letter codes of languages."""
    wanted = checks.valid(message("lists of two-letter codes of languages such as en,fr"))

    def read(value: str, folder: str) -> tuple[str, ...]:
        found = checks.items_of(value)
        if not all(_LANGUAGE.fullmatch(item) for item in found):
            raise ValueError(wanted)
        return found

    return checks.Check("list", read, wanted, is_optional=True)


@dataclass(frozen=True, slots=True, repr=False)
class EmbeddingSettings(AnswerSettings):
    """Rows of the models of the search; a chain, because slotted classes have one base."""

    embeddings_endpoint: str = setting(
        "embeddings.endpoint",
        "",
        check=model_endpoint("/v1/embeddings"),
        help="Where vectors are made: the URL of an OpenAI-compatible /v1/embeddings endpoint, or onnx:FOLDER for a "
        "local model (datafari-rag model get NAME; needs the extra vectors). Empty: no vectors, the search uses "
        "words only.",
    )
    embeddings_token: str = secret(
        "embeddings.token",
        "",
        check=checks.text(),
        help="Bearer token for the endpoint. Empty: no Authorization header.",
    )
    embeddings_options: EmbeddingOptions = setting(
        "embeddings.options",
        EmbeddingOptions(),
        check=checks.members(
            EmbeddingOptions,
            model=checks.text(),
            dimensions=checks.integer(1, 8192),
            languages=languages(),
            prefixes=checks.members(checks.frozen_mapping, query=checks.text(), passage=checks.text()),
            timeout_s=checks.number(0.01, 60),
        ),
        help="model: name sent to the endpoint; absent: no name is sent, and a local model has its own. "
        "dimensions of a vector: the number is sent to the endpoint, and every vector is checked against it; "
        "absent: it is not sent, and the first vector sets it. languages that the model supports, as two-letter codes "
        'such as "en,fr": questions in others are searched by words only; absent: those in the local model\'s folder, '
        "otherwise any. prefixes that the model expects before a question and a passage, for E5 "
        '{"query": "query:", "passage": "passage:"}; a space is added after each; absent: those in that folder. '
        "timeout_s: maximum wait for the vector of a question; after that, words only.",
    )
    rerank_endpoint: str = setting(
        "rerank.endpoint",
        "",
        check=model_endpoint("/rerank"),
        help="A reranker that puts the found passages into order: the URL of a /rerank endpoint "
        "(text-embeddings-inference, or Cohere's form: Jina, vLLM, Infinity), or onnx:FOLDER, a local embedding model "
        "that compares token by token, five passages at most. It is sent passages that the user may see. Empty: none, "
        "and nothing is sent.",
    )
    rerank_token: str = secret(
        "rerank.token",
        "",
        check=checks.text(),
        help="Bearer token for the endpoint. Empty: no Authorization header.",
    )
    rerank_options: RerankOptions = setting(
        "rerank.options",
        RerankOptions(),
        check=checks.members(RerankOptions, model=checks.text(), timeout_s=checks.number(0.05, 60)),
        help="model: name sent to the endpoint, in Cohere's form; absent: the form of text-embeddings-inference, which "
        "has one model. timeout_s: maximum wait in one search; after that, the order without the reranker.",
    )
