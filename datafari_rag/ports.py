"""
What the pipeline needs from outside, as `typing.Protocol`s; adapters fulfil them, `bootstrap` chooses.

Ports use core values and raise core errors: no foreign exception, no library's type crosses here.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol, TypeVar

from datafari_rag.core.access import Filter, Revocation
from datafari_rag.core.documents import Document
from datafari_rag.core.errors import ModelUnavailable, RagError
from datafari_rag.core.events import UNKNOWN_MODEL, ModelFacts
from datafari_rag.core.identity import VerifiedIdentity
from datafari_rag.core.meaning.near_search import NearSearch, ParentPage, ParentText, PieceVector, StoredPassage
from datafari_rag.core.messages import Message
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.search_request import Browse, Search, SearchResult
from datafari_rag.core.vectors import EmbeddingModel, Purpose, Vector

T = TypeVar("T")
U = TypeVar("U")


class Offload(Protocol):
    """Does long work where it does not block other requests."""

    def __call__(self, work: Callable[[], T], units: int) -> T:
        """
        Return what *work* returns, and raise what it raises.

        *units* are the most that it may do: characters that it reads, and cells that it compares.
        """
        ...


def inline(work: Callable[[], T], units: int) -> T:
    """Implement `Offload` by running the work directly."""
    return work()


CHARS_OF_CELL = 1_000
"""A sentence of some hundred characters and a place as long are compared with each other for about this many pairs."""

CHARS_OF_TEXT = 1_000
"""What a text costs beside its characters."""


def compared_units(chars: int, others: Sequence[int]) -> int:
    """Return the units of looking for each sentence of *chars* characters in texts as long as *others* say."""
    read = sum(others)
    return chars + read + chars * (read + CHARS_OF_TEXT * len(others)) // CHARS_OF_CELL


class Both(Protocol):
    """Does two works, at the same time where that saves waiting."""

    def __call__(self, first: Callable[[], T], second: Callable[[], U]) -> tuple[T, U]:
        """Return what each returns, when both have ended; raise what the first raises, else what the second does."""
        ...


def in_turn(first: Callable[[], T], second: Callable[[], U]) -> tuple[T, U]:
    """Be a `Both` that does one after the other."""
    return first(), second()


class Retriever(Protocol):
    """A search engine: the same documents for the same user, whichever engine is behind it."""

    def search(self, search: Search, access: Filter) -> SearchResult:
        """
        Return the best documents for one step that *access* lets through; none found is an empty `SearchResult`.

        Raises:
            SearchUnavailable: no connection, a refusal, or an unreadable answer.
            SearchTimeout: no answer within the limits.
        """
        ...

    def browse(self, browse: Browse, access: Filter) -> Mapping[str, object]:
        """Return Solr's own JSON (`response`, `highlighting`, `facet_counts`) for a plain search. Raises as search."""
        ...

    def fetch(self, document_id: str, field: str, access: Filter) -> Document | None:
        """Return one document with the stored text of *field*, None when absent or not for this user. Raises so."""
        ...

    def probe(self) -> str | None:
        """Return None when a search would work now, else one sentence that says what is wrong."""
        ...


@dataclass(frozen=True, slots=True)
class PagePicture:
    """One of the *pages* of a file as PNG; *is_marked* says whether the words were found on it, None without words."""

    png: bytes
    pages: int
    is_marked: bool | None


DrawPage = Callable[[Document, int, tuple[int, int] | None, int], PagePicture]
"""
Draws a page, by its number, of the file of a whole document, with a stretch of its text marked, so many pixels wide.

Raises NotFound where the file is not as it was indexed, cannot be drawn, or has no such page; Overloaded.
"""


class Writer(Protocol):
    """Puts documents into a search engine, under Datafari's field names; an adapter maps them to its schema's."""

    def add(self, documents: Sequence[Mapping[str, object]]) -> None:
        """
        Take *documents*, each in Solr's shape (`id` is needed), in place of those with the same ids.

        Values are strings or lists of strings. An ACL field that is missing or empty becomes `__nosecurity__`. Nothing
        can be found before `commit`.

        Raises:
            SearchUnavailable: the engine refuses or is gone; nothing of this batch is certain then.
        """
        ...

    def stamps(self) -> Mapping[str, str]:
        """
        Return id → `STAMP_FIELD` of all documents that have one, as they were committed. Raises as add.

        An engine that has no place for the field makes one, or refuses and says how it is made.
        """
        ...

    def delete(self, ids: Sequence[str]) -> None:
        """Remove the documents with *ids*; an id that is not there is no error. Raises as add."""
        ...

    def commit(self) -> None:
        """Return when all that was added can be found and all that was deleted cannot. Raises as add."""
        ...

    def close(self) -> None:
        """Let go of the engine; what was not committed is given up."""
        ...


class PassageWriter(Writer, Protocol):
    """A `Writer` that keeps vectors of pieces of the documents as well, in the same commit."""

    def add_embedded(
        self,
        documents: Sequence[Mapping[str, object]],
        pieces: Mapping[str, Sequence[PieceVector]],
        model: EmbeddingModel,
    ) -> None:
        """
        Take *documents* as `add` does, with the vectors of their *pieces* by id, made by *model*.

        A document that is not in *pieces* has none. Users who may see a document may find its pieces, and no one else.

        Raises:
            EmbeddingsGarbled: a vector or a place that cannot be, or pieces of a document that is not in *documents*;
                nothing of this batch is taken then.
            SearchUnavailable: as `add`.
        """
        ...

    def unembedded(self, model: EmbeddingModel) -> int:
        """Return how many documents have vectors of other models than *model*, and none of it. Raises as add."""
        ...


class PassageStore(Protocol):
    """A collection of passages beside a collection of documents, for the code that synchronises them."""

    def require(self, model: EmbeddingModel | None) -> None:
        """
        Check that passages with vectors of *model* fit in, and keep its spread; None for passages without vectors.

        Raises: SearchUnavailable.
        """
        ...

    def total(self) -> int:
        """Return how many documents there are. Raises: SearchUnavailable, SearchTimeout."""
        ...

    def pages(self) -> Iterator[ParentPage]:
        """Yield all documents in the order of their ids, with the passages there are. Raises as total."""
        ...

    def texts(self, ids: Sequence[str]) -> Sequence[ParentText]:
        """Return the documents *ids* that are there. Raises as total."""
        ...

    def vectors(self, parent: str, model: EmbeddingModel) -> Mapping[str, Sequence[float]]:
        """Return the vectors of *model* that passages of *parent* have, by digest. Raises as total."""
        ...

    def replace(
        self, parent: ParentText, passages: Iterable[StoredPassage], *, stamp: str, model: EmbeddingModel | None
    ) -> None:
        """Write *passages*, in order, in place of all that *parent* had; found after `commit`. Raises as total."""
        ...

    def remove(self, parents: Sequence[str]) -> None:
        """Remove the passages of *parents*, at the latest with the next `commit`. Raises as total."""
        ...

    def remove_strays(self) -> int:
        """Remove passages that name no document, and return how many. Raises as total."""
        ...

    def commit(self) -> None:
        """Return when all that was written can be found. Raises as total."""
        ...


class Passages(Protocol):
    """Search by meaning: the pieces of the documents of a `Retriever`, by their vectors."""

    def reads_texts(self, search: Search) -> bool:
        """Say whether `compared` reads the texts that *search* wants, so that the search by words can leave them."""
        ...

    def nearest(self, search: NearSearch, access: Filter) -> tuple[Document, ...]:
        """
        Return the documents with the nearest pieces that *access* lets through, nearest first, one place for each.

        What *access* does not let through takes no part: the result is that of an index without it. What is known of
        a document besides its id may come with `compared` alone.

        Raises:
            EmbeddingsMismatch: the pieces were made by another model than the question's vector.
            SearchUnavailable, SearchTimeout: as `Retriever.search`.
        """
        ...

    def compared(self, documents: Sequence[Document], search: NearSearch, access: Filter) -> tuple[Document, ...]:
        """
        Return those of *documents* that *access* lets through, in their order and with their scores.

        Each has the text that *search* wants, or the parts of it that answer best, and its pieces in `near`. Raises as
        nearest.
        """
        ...

    def spread(self, model: EmbeddingModel) -> float | None:
        """Return the spread kept with the pieces that *model* made, None when there are none. Raises as nearest."""
        ...

    def probe(self, model: EmbeddingModel) -> str | None:
        """Return None when a search with vectors of *model* would work now, else one sentence that says why not."""
        ...


class Embedder(Protocol):
    """Turns texts into vectors of length one; near in meaning is near in direction."""

    @property
    def model(self) -> EmbeddingModel:
        """What is known of the model now; its dimensions may only be known after the first vector."""
        ...

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Vector]:
        """
        Return one vector for each of *texts*, in order; the same text has the same vector.

        A question is embedded within its own short time-out, passages within a longer one. What a text has beyond the
        model's limit is left out. Prefixes are the embedder's.

        Raises:
            EmbeddingsUnavailable: the model cannot be reached or loaded, or refuses.
            EmbeddingsTimeout: no whole answer in time.
            EmbeddingsGarbled: vectors of the wrong size, values that are no numbers, an unreadable answer.
        """
        ...


@dataclass(frozen=True, slots=True)
class Meaning:
    """The two halves of a search by meaning."""

    embedder: Embedder
    passages: Passages

    def problem(self) -> str | None:
        """Return None while a search by meaning would work, as far as is known without making a vector for it."""
        failure: RagError | None = getattr(self.embedder, "failure", None)
        return failure.reason if failure is not None else self.passages.probe(self.embedder.model)


@dataclass(frozen=True, slots=True)
class TextChunk:
    """
    Some text of the model; the first one carries what is known of the model by then.

    The text is empty only where *wait_s* is set: before the first words, in so many seconds the model is tried again.
    """

    text: str
    facts: ModelFacts | None = None
    wait_s: float | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """
    The last thing a model says: *failure* is None for success, else the one named way in which it failed.

    *finish_reason* is the model's ("stop", "length", …) or None. A cut answer (length) is a success here that the
    reader is informed of; a filtered one is a failure.
    """

    finish_reason: str | None
    failure: RagError | None = None
    facts: ModelFacts = UNKNOWN_MODEL


class Model(Protocol):
    """Something that answers a prompt; an outcome is a value, so nothing is raised."""

    def generate(self, prompt: Prompt, *, is_streamed: bool) -> Generator[TextChunk | Ending, None, None]:
        """
        Yield pieces, then exactly one `Ending`; closing the generator closes the connection immediately.

        *is_streamed* asks the model's server for a stream; else one piece holds the whole answer.
        """
        ...


def reply_in(pieces: Generator[TextChunk | Ending, None, None]) -> tuple[str, Ending]:
    """Return the whole text of a model's *pieces*, and their ending; they are closed then."""
    texts: list[str] = []
    with closing(pieces):
        for piece in pieces:
            if isinstance(piece, Ending):
                return "".join(texts), piece
            texts.append(piece.text)
    return "".join(texts), Ending(None, ModelUnavailable(log="the model ended without an ending"))


class UsageStore(Protocol):
    """Counts tokens by user and day, for all workers that share it."""

    def add(self, user: str, day: str, tokens: int, *, cap: int | None = None) -> bool:
        """Add *tokens*, perhaps negative, unless the day has *cap*; say whether it did. Raises: AccountsUnavailable."""
        ...

    def problem(self) -> Message | None:
        """Return None while tokens can be counted, else one sentence."""
        ...


class Relay(Protocol):
    """Hands a caller's own body to the model's server and its reply back, both unchanged (contract §3)."""

    def relay(
        self, body: Mapping[str, object], *, is_streamed: bool
    ) -> Generator[Mapping[str, object] | Ending, None, None]:
        """
        Yield the whole reply as one mapping, or each chunk of a stream as it came; then exactly one `Ending`.

        *body* is sent as it is, with the service's own key; *is_streamed* says what its `stream` says. An `Ending`
        without failure means that all was handed on: on a stream, write `[DONE]` then. Its failure is a
        `RefusedByModel` for the model's 400, 404 and 422 (its message is the reason), else as `Model.generate` has
        it. What the model refused or filtered inside a 200 is a reply like any other here. Closing the generator
        closes the connection immediately.
        """
        ...


class RightsSource(Protocol):
    """Where a user's tokens come from: a file, ManifoldCF's authority service, or their own claims."""

    def tokens_of(self, name: str, claimed: Iterable[str]) -> Iterable[str]:
        """
        Return the tokens of *name*; an unknown user has none.

        *claimed* are tokens from a verified identity token, used only by the claims source.

        Raises:
            AuthorityUnavailable: the source cannot be read or answers badly.
            AuthorityTimeout: the source did not answer in time.
        """
        ...


class Revocations(Protocol):
    """Whose rights an administrator has revoked, and when; all workers know the same."""

    def latest(self, name: str | None) -> Revocation:
        """
        Return the latest revocation that concerns *name*, None the anonymous.

        Raises:
            AuthorityUnavailable: it is not known.
        """
        ...

    def add(self, name: str | None, *, by: str) -> Revocation:
        """
        Revoke what is known of the rights of *name*, None of everybody, from the next request on.

        Raises:
            AuthorityUnavailable: the revocation could not be kept.
        """
        ...


class Identity(Protocol):
    """Identifies the user by what cannot be forged; never by a parameter."""

    def identify(self, headers: Mapping[str, str], peer_address: str) -> VerifiedIdentity:
        """
        Return the user.

        Raises:
            NotAuthenticated: a credential was given and is not valid, or one is required and absent.
        """
        ...


class Trail(Protocol):
    """Keeps one line for each answer, for auditors."""

    def append(self, record: Mapping[str, object], *, question: str | None = None) -> None:
        """Take *record*, plain JSON values, and *question*, of which a keyed hash is kept; never fails."""
        ...

    def problem(self) -> str | None:
        """Return None while every line is kept, else one sentence that says what is wrong."""
        ...


class TokenCounter(Protocol):
    """Counts tokens as the model's tokenizer would, or estimates never too low."""

    def count(self, text: str) -> int:
        """Return the number of tokens of *text*; 0 for the empty string."""
        ...
