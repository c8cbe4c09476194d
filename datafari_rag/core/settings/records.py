"""
What some settings hold: one record for each JSON object, with the defaults and the reason for each.

Values only. An operator who has measured something else sets a member; the others keep what stands here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class SolrLimits:
    """
    How long Solr is waited for, in seconds, and how often a failed search is repeated.

    One *retries*: on the other node of a pair, which answers while the first restarts.
    """

    connect_s: float = 2.0
    wait_s: float = 10.0
    retries: int = 1


@dataclass(frozen=True, slots=True)
class AuthorityPatience:
    """How long ManifoldCF's authority service is waited for, in seconds."""

    connect_s: float = 2.0
    wait_s: float = 10.0


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """
    What one worker takes at most.

    *streams* and *connections* are open ones, idle ones included. *starting* answers search at the same time, and the
    others wait for at most *wait_s*. *header_s* is for the head of a request, *work_s* for processing the texts of one
    answer, *grace_s* for open streams at the end.
    """

    streams: int = 2_000
    starting: int = 16
    wait_s: float = 5.0
    connections: int = 10_000
    header_s: float = 10.0
    body_bytes: int = 10_485_760
    grace_s: float = 30.0
    work_s: float = 10.0


@dataclass(frozen=True, slots=True)
class DemoFolder:
    """Whether a demo has *users*, and where its watcher reports *progress*."""

    users: bool = False
    progress: str = ""


@dataclass(frozen=True, slots=True)
class EmbeddingOptions:
    """What is known of the embedding model, None for what it says itself, and how long a question waits for it."""

    model: str = ""
    dimensions: int | None = None
    languages: tuple[str, ...] | None = None
    prefixes: Mapping[str, str] | None = None
    timeout_s: float = 1.0


@dataclass(frozen=True, slots=True)
class RerankOptions:
    """The model that a reranker is asked for, "" where its server has one alone, and how long a search waits for it."""

    model: str = ""
    timeout_s: float = 2.0


@dataclass(frozen=True, slots=True)
class OpenaiClient:
    """The name of the model with documents, whether requests without any go on unchanged, how documents are sent."""

    model: str = "datafari"
    passthrough: bool = True
    sources: Literal["auto", "annotations", "openwebui"] = "auto"


@dataclass(frozen=True, slots=True)
class RequestRates:
    """How much a minute one *user* may ask, one *client* address, and one caller as units of *work*; 0: no limit."""

    user: int = 0
    client: int = 0
    work: int = 300


@dataclass(frozen=True, slots=True)
class SearchChoice:
    """How many hits are examined, whether a search is relaxed that finds nothing, and the least score of a hit."""

    candidates: int = 20
    relax: bool = True
    min_score: float = 0.0


@dataclass(frozen=True, slots=True)
class ChatClient:
    """What a chat client gets where nothing is found, sees of how an answer was made, and may say to the model."""

    no_documents: Literal["answer", "error"] = "answer"
    thoughts: Literal["all", "admins", "none"] = "all"
    prompt_template: bool = False
    system: bool = False


@dataclass(frozen=True, slots=True)
class OpenaiLimits:
    """
    Budgets of /v1: *files* None for `rag.maxFiles`, 0 for as many as fit; tokens of a passage, and of the frame.

    The numbers are those of KAITO's RAG engine, whose protocol it is.
    """

    files: int | None = None
    node_tokens: int = 500
    reserve_tokens: int = 150


@dataclass(frozen=True, slots=True)
class ChatLimits:
    """What a chat client may send: documents it asks for, tokens of its history, bytes and age of a signed state."""

    top: int = 50
    history_tokens: int = 4_000
    memory_bytes: int = 16_384
    memory_age_s: int = 86_400


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """How long conversations are stored after their last question, and what those of a user and of all may take."""

    age_days: int = 90
    user_mb: int = 20
    whole_mb: int = 1_000


@dataclass(frozen=True, slots=True)
class JwtClaims:
    """The claims that name a token's user and access tokens, and by how much the issuer's clock may differ."""

    user: str = "preferred_username"
    tokens: str = "groups"
    leeway_s: float = 30.0


@dataclass(frozen=True, slots=True)
class ReplyShape:
    """The shape of RagAPI's replies, where Datafari's own documents and code differ."""

    linebreaks: Literal["escaped", "newline", "html"] = "escaped"
    documents: Literal["array", "object"] = "array"
    http_errors: bool = False
