"""
Every way in which an answer can fail, as one tree; what a dialect makes of it is the dialect's.

An error has a label, a code and a sentence that is safe to show. The code is the HTTP status of contract §4; a dialect
may answer with another one. What an error shows is never a library's message, a filter, a document's text or a secret.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ClassVar

MAX_NAME_SHOWN = 100
"""How much of a name that a caller sent an error repeats."""

MAX_WORDS_CHARS = 2_000
"""How much of each word of a refusal is read."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The HTTP *status* of a refusal and the words of its error object, None where they are absent."""

    status: int = 400
    code: str | None = None
    kind: str | None = None
    param: str | None = None


@dataclass(frozen=True, slots=True)
class Rejection:
    """An answer that is not 200: *error* is the model's own error object (empty when there is none)."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    size_bytes: int = 0
    error: Mapping[str, object] = field(default_factory=dict, repr=False)

    @property
    def words(self) -> str:
        """Return what the server says of it, cut and in lower case; it may quote the prompt, and is never shown."""
        texts = (str(self.error.get(key) or "")[:MAX_WORDS_CHARS] for key in ("code", "type", "message"))
        return " ".join(texts).lower()


class RagError(Exception):
    """One failure: *label* for translating, *code* of the table, *reason* in English, safe to show."""

    label: ClassVar[str] = "internal"
    code: ClassVar[int] = 500
    sentence: ClassVar[str] = "The request could not be answered because of an internal error."

    def __init__(
        self,
        reason: str | None = None,
        *,
        retry_after_s: float | None = None,
        log: str = "",
        field: str | None = None,
    ) -> None:
        """
        Hold what may be shown: *reason* replaces the class's own sentence, *retry_after_s* is when a repeat can help.

        *log* is for the log alone (statuses, sizes, host names): never shown, never document text or a secret.
        *field* is the request's field that is to blame, where one is.
        """
        self.reason = self.sentence if reason is None else reason
        self.retry_after_s = retry_after_s
        self.log = log
        self.field = field
        super().__init__(self.reason)


class BadRequest(RagError):
    """Unreadable body, unknown action, or a value out of range: the reason names the field."""

    label, code, sentence = "badRequest", 400, "The request could not be read."


class ContextTooLong(BadRequest):
    """The conversation alone does not fit the model's window (KAITO's RAG service)."""

    label, code, sentence = "contextTooLong", 400, "Prompt length exceeds context window."


class NoRoomForDocuments(ContextTooLong):
    """Documents were found, but question, history and the tokens of the answer leave no room for them."""

    sentence = (
        "The question and the tokens reserved for the answer leave no room for documents in the model's context window."
    )


class RefusedByModel(BadRequest):
    """The model's own 400, 404 or 422 to what the caller chose; *reason* may be the model's message: never log it."""

    def __init__(self, reason: str | None = None, *, refusal: Refusal | None = None, log: str = "") -> None:
        """Hold, besides what every error holds, how the model's server spells it."""
        self.refusal = Refusal() if refusal is None else refusal
        super().__init__(reason, log=log, field=self.refusal.param)


class TooManyValues(BadRequest):
    """A parameter has more values than a search can need, or a form more pairs; the reason names it and the limit."""

    label, code, sentence = "tooManyValues", 400, "Too many values were sent."

    @classmethod
    def of(cls, name: str, limit: int) -> TooManyValues:
        """Return the error of *name*, a parameter or a form, that says how many values it may have."""
        return cls(f"Too many values of {name}: at most {limit}.", field=name)


class UnfitValue(BadRequest):
    """A filter has a value that its field cannot have: to exclude it would exclude nothing."""

    sentence = "A value to filter or count by does not fit its field."


class NotAuthenticated(RagError):
    """An identity is required and there is none."""

    label, code, sentence = "notAuthenticated", 401, "Sign in to use this service."


class InvalidSignIn(NotAuthenticated):
    """A credential was sent, and it cannot be believed."""

    sentence = "Your sign-in is not valid here. Sign in again."


class ExpiredSignIn(InvalidSignIn):
    """A credential was sent that was good once."""

    sentence = "Your sign-in has expired. Sign in again."


class NotAllowed(RagError):
    """The identity is known and does not suffice."""

    label, code, sentence = "notAllowed", 403, "This is not permitted here."


class NotFound(RagError):
    """No such path, or no such document for this user: the two are not distinguished."""

    label, code, sentence = "notFound", 404, "Nothing was found at this address."


class NoSuchIndex(NotFound):
    """`index_name` names no index of `openai.indexes` (KAITO's RAG service)."""


class NoSuchModel(NotFound):
    """`model` names no model that this caller may use on /v1."""

    @classmethod
    def named(cls, name: str) -> NoSuchModel:
        """Return the error for the model that the caller called *name*, in the words of OpenAI's API."""
        return cls(
            f"The model `{name[:MAX_NAME_SHOWN]}` does not exist or you do not have access to it.", field="model"
        )


class MethodNotAllowed(RagError):
    """The path exists, the method does not."""

    label, code, sentence = "methodNotAllowed", 405, "This address does not support this method."


class UnknownHost(RagError):
    """The request is for a name that is not in `server.hosts`."""

    label, code, sentence = "unknownHost", 421, "This service does not answer requests for this host name."


class UnsupportedMediaType(RagError):
    """The body is of a type this path does not read."""

    label, code, sentence = "unsupportedMediaType", 415, "This address does not accept a body of this media type."

    @classmethod
    def wanting(cls, types: Sequence[str]) -> UnsupportedMediaType:
        """Return the error that names what the Content-Type must be."""
        return cls(f"{cls.sentence} Send it with Content-Type: {' or '.join(types)}.")


class QueryTooLong(RagError):
    """`q` is over the limit."""

    label, code, sentence = "queryTooLong", 413, "The query is longer than 4000 characters."


class BodyTooLarge(RagError):
    """The body is over `server.limits.body_bytes`."""

    label, code, sentence = "bodyTooLarge", 413, "The request body is larger than this service accepts."


class NoQuery(RagError):
    """`q` is missing or blank."""

    label, code, sentence = "noQuery", 422, "No query was provided."


class NoDocuments(RagError):
    """The search worked and found nothing usable (sentence of Datafari RagAPI)."""

    label, code = "noDocuments", 428
    sentence = "The query cannot be answered because no associated documents were found."


class NoAnswer(RagError):
    """The model answered nothing: empty or null content, a refusal, tool calls in place of text."""

    label, code, sentence = "noAnswer", 428, "The model could not provide an answer."


class BadSetting(RagError):
    """A setting's value cannot be used; the reason names the key and what was wanted."""

    label, code, sentence = "badSetting", 500, "A setting of this service has an invalid value."


class SearchError(RagError):
    """The search failed; never treated as "nothing found"."""


class SearchUnavailable(SearchError):
    """The search engine is down, refuses, or answers something unreadable."""

    label, code, sentence = "searchUnavailable", 502, "The search engine is not available at the moment."


class SearchTimeout(SearchError):
    """The search engine did not answer in time."""

    label, code, sentence = "searchTimeout", 504, "The search engine did not answer in time."


class AuthorityError(RagError):
    """The user's rights cannot be learnt: no answer."""


class AuthorityUnavailable(AuthorityError):
    """The source of rights is down or answers badly."""

    label, code, sentence = "authorityUnavailable", 502, "Your access rights cannot be checked at the moment."


class AuthorityTimeout(AuthorityError):
    """The source of rights did not answer in time."""

    label, code, sentence = "authorityTimeout", 504, "Your access rights could not be checked in time."


class ModelError(RagError):
    """The model failed; the subclass says how."""

    def __init__(
        self,
        reason: str | None = None,
        *,
        retry_after_s: float | None = None,
        log: str = "",
        status: int | None = None,
        can_repeat: bool = False,
        is_blameless: bool = False,
        rejection: Rejection | None = None,
    ) -> None:
        """
        Hold the HTTP *status* of its server; whether a repeat may succeed, and whether others used up the time.

        *rejection* is what the server answered, where it refused: it may quote the prompt, so that no part of it is
        shown or logged as it came.
        """
        super().__init__(reason, retry_after_s=retry_after_s, log=log)
        self.status, self.can_repeat, self.is_blameless = status, can_repeat, is_blameless
        self.rejection = rejection


class ContentFiltered(ModelError):
    """`finish_reason` content_filter, or the provider's 400 for it (sentence of the RAG chat protocol)."""

    label, code = "contentFiltered", 400
    sentence = "Your message contains content that was flagged by the OpenAI content filter."


class ModelRefused(ModelError):
    """The model's server answered 400, 401, 403 or 404: a repeat cannot help."""

    label, code, sentence = "modelRefused", 502, "The language model refused the request."


class ModelKeyRefused(ModelRefused):
    """The key is missing, wrong or expired."""

    label, sentence = "modelKeyRefused", "The language model's server refused the key of this service."


class ModelNotFound(ModelRefused):
    """The server is there, and has no model or deployment of this name."""

    label, sentence = "modelNotFound", "The language model's server does not have the model that is configured."


class ModelParameterRefused(ModelRefused):
    """The server names a parameter that it does not take, or a value of it; the log has its name."""

    label = "modelParameterRefused"
    sentence = "The language model's server does not accept a parameter of the request."


class ModelInputTooLong(ModelRefused):
    """Question, documents and answer are longer than the model's window: `llm.context.window` is too large for it."""

    label = "modelInputTooLong"
    sentence = "The documents for this question are longer than the language model can read."


class ModelOutOfCredit(ModelRefused):
    """The account has no credit left: 402, or a 429 that waiting does not help against."""

    label, sentence = "modelOutOfCredit", "The account at the language model's provider has no credit left."


class ModelUnavailable(ModelError):
    """408, 5xx, no connection, or an answer that broke off."""

    label, code, sentence = "modelUnavailable", 502, "The language model is not available at the moment."


class ModelGarbled(ModelError):
    """The model's server answered something unreadable."""

    label, code, sentence = "modelGarbled", 502, "The language model's answer could not be read."


class ModelBusy(ModelError):
    """The model's server answered 429; its Retry-After is passed on."""

    label, code, sentence = "modelBusy", 503, "The language model is busy. Try again in a moment."


class ModelTimeout(ModelError):
    """No first token, a stall, or over the total limit."""

    label, code, sentence = "modelTimeout", 504, "The language model did not answer in time."


class OnlyThoughts(ModelError):
    """All that the model wrote was thinking."""

    label, code, sentence = "onlyThoughts", 502, "The language model thought, and gave no answer."

    @classmethod
    def of(cls, tokens: int | None, *, is_cut: bool) -> OnlyThoughts:
        """Return the error; *tokens* is how many the model used, where it says so, *is_cut* whether they ran out."""
        if not is_cut:
            return cls(log="nothing but thoughts")
        used = "all its tokens" if tokens is None else f"its {tokens} tokens"
        return cls(f"The language model used {used} for thinking: raise rag.maxTokens.", log="cut in its thoughts")


class ThoughtsPassedOn(ModelError):
    """A stream of a model that was not known to think began with its thoughts; from now on it is known."""

    label, code = "thoughtsPassedOn", 502
    sentence = "The language model's answer began with its thoughts. Ask again: from now on they are left out."


class EmbeddingError(RagError):
    """Vectors could not be made or used; a search continues with words alone, indexing stops."""

    def __init__(self, reason: str | None = None, *, log: str = "", can_repeat: bool = False) -> None:
        """Hold what every error holds; *can_repeat* says that the same request may succeed in a moment."""
        super().__init__(reason, log=log)
        self.can_repeat = can_repeat


class EmbeddingsMismatch(EmbeddingError):
    """The vectors of the index were made by another model than the one that is configured."""

    label, code = "embeddingsMismatch", 500
    sentence = "The vectors were made with another embedding model: index the documents again."


class EmbeddingsUnavailable(EmbeddingError):
    """The embedding model cannot be reached or loaded, or refuses."""

    label, code, sentence = "embeddingsUnavailable", 502, "The embedding model is not available at the moment."


class EmbeddingsGarbled(EmbeddingError):
    """A vector of the wrong size, a value that is no number, or an answer that cannot be read."""

    label, code, sentence = "embeddingsGarbled", 502, "The embedding model's vectors cannot be used."


class EmbeddingsTimeout(EmbeddingError):
    """No whole answer of the embedding model within its limit."""

    label, code, sentence = "embeddingsTimeout", 504, "The embedding model did not answer in time."


class TooManyRequests(RagError):
    """The service's limit for a user or an address."""

    label, code, sentence = "tooManyRequests", 429, "Too many requests. Try again in a moment."


class BudgetSpent(RagError):
    """The user's tokens of this day (`limits.tokens`) are spent; the reason says when the next one begins."""

    label, code, sentence = "budgetSpent", 429, "Your tokens of this day are spent."

    @classmethod
    def until(cls, ends_s: float, *, now_s: float) -> BudgetSpent:
        """Return the error of a day that ends at *ends_s*, in seconds since 1970."""
        again = f"{datetime.fromtimestamp(ends_s, UTC):%Y-%m-%d %H:%M} UTC"
        return cls(f"{cls.sentence} Ask again after {again}.", retry_after_s=max(1.0, ends_s - now_s))


class Overloaded(RagError):
    """Too many open streams."""

    label, code, sentence = "overloaded", 503, "This service is answering as many questions as it can. Try again soon."


class TooMuchWork(RagError):
    """Documents, question or attachments took more time than `server.limits.work_s` allows."""

    label, code = "tooMuchWork", 503
    sentence = (
        "Working through the documents for this answer took too long. Ask a shorter question, or attach shorter files."
    )


class AccountsUnavailable(RagError):
    """Tokens cannot be counted, and there is a cap to keep to (`limits.tokens`)."""

    label, code, sentence = "accountsUnavailable", 503, "Tokens cannot be counted at the moment. Try again soon."


class ConversationsUnavailable(RagError):
    """Stored conversations cannot be read or written; answers go on without them."""

    label, code, sentence = "conversationsUnavailable", 503, "Stored conversations are not available at the moment."


class Internal(RagError):
    """Anything else; the reason holds an id to find it in the log by."""

    @classmethod
    def with_id(cls, incident: str) -> Internal:
        """Return the error whose sentence names *incident*, under which the log has the rest."""
        return cls(f"{cls.sentence} Its id in the log is {incident}.")


def leaves(root: type[RagError] = RagError) -> tuple[type[RagError], ...]:
    """Return every class of the tree that has its own label, in the order of definition."""
    classes: list[type[RagError]] = []
    for child in root.__subclasses__():
        if "label" in child.__dict__ or child is Internal:
            classes.append(child)
        classes.extend(leaves(child))
    return tuple(classes)
