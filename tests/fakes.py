"""Fakes at the ports, for tests of the pipeline and of the web, 5 to 15 lines each."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from flask import Flask

from datafari_rag.core.access import Filter
from datafari_rag.core.ask import NamedDocuments
from datafari_rag.core.documents import Document
from datafari_rag.core.errors import RagError
from datafari_rag.core.events import ModelFacts
from datafari_rag.core.identity import VerifiedIdentity
from datafari_rag.core.meaning.reranker import Reranker
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.search_request import Browse, Search, SearchResult
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.text.sizes import estimate
from datafari_rag.ports import Ending, Meaning, Retriever, TextChunk
from datafari_rag.retrieval import Dependencies
from datafari_rag.web.app import register
from datafari_rag.web.runtime import ServiceSnapshot

RABBIT = Document(
    id="doc-1",
    title="Rabbits",
    url="file:///rabbits.txt",
    text="Once upon a time, a nice rabbit called Paris ate a carrot. It slept until noon.",
    score=2.0,
)
FLIGHT = Document(
    id="doc-2",
    title="Boarding pass",
    url="file:///flight.pdf",
    text="Boarding pass to Nice. The flight takes off at 15h50, from terminal 2.",
    score=3.0,
)


class FakeRetriever:
    """Finds the same documents for every question, or fails; remembers what it was asked."""

    def __init__(self, *documents: Document, error: RagError | None = None, is_partial: bool = False) -> None:
        self.documents, self.error, self.is_partial = documents, error, is_partial
        self.searches: list[tuple[Search, Filter]] = []
        self.browsed: list[tuple[Browse, Filter]] = []

    def search(self, search: Search, access: Filter) -> SearchResult:
        self.searches.append((search, access))
        if self.error is not None:
            raise self.error
        named = [set(one.ids) for one in search.restrictions if isinstance(one, NamedDocuments)]
        found = tuple(one for one in self.documents if all(one.id in ids for ids in named))
        return SearchResult(found, len(found), self.is_partial)

    def browse(self, browse: Browse, access: Filter) -> Mapping[str, object]:
        self.browsed.append((browse, access))
        if self.error is not None:
            raise self.error
        docs = [{"id": one.id} for one in self.documents if not browse.ids or one.id in browse.ids]
        return {"response": {"numFound": len(docs), "start": browse.start, "docs": docs}}

    def fetch(self, document_id: str, field: str, access: Filter) -> Document | None:
        if self.error is not None:
            raise self.error
        if field not in ("exactContent", "preview_content") and not field.startswith("content_"):
            return None
        return next((replace(found, field=field) for found in self.documents if found.id == document_id), None)

    def probe(self) -> str | None:
        return None if self.error is None else self.error.reason


class FakeModel:
    """Says *pieces* and ends; remembers the prompts and whether it was closed before its end."""

    def __init__(
        self,
        *pieces: str,
        finish_reason: str = "stop",
        failure: RagError | None = None,
        facts: ModelFacts | None = None,
    ) -> None:
        self.pieces, self.finish_reason, self.failure = pieces, finish_reason, failure
        self.facts = facts or ModelFacts(name="fake-model")
        self.prompts: list[Prompt] = []
        self.was_closed_early = False

    def generate(self, prompt: Prompt, *, is_streamed: bool) -> Generator[TextChunk | Ending, None, None]:
        self.prompts.append(prompt)
        try:
            for text in self.pieces if is_streamed else filter(None, ["".join(self.pieces)]):
                yield TextChunk(text, self.facts)
            yield Ending(None if self.failure else self.finish_reason, self.failure, self.facts)
        except GeneratorExit:
            self.was_closed_early = True
            raise


class FakeIdentity:
    """Believes the header X-User, or says that a credential is wrong."""

    def __init__(self, error: RagError | None = None) -> None:
        self.error = error

    def identify(self, headers: Mapping[str, str], peer_address: str) -> VerifiedIdentity:
        if self.error is not None:
            raise self.error
        return VerifiedIdentity(headers.get("x-user"))


class FakeRights:
    """Knows the tokens of some users, or cannot be read."""

    def __init__(self, users: Mapping[str, Sequence[str]] | None = None, error: RagError | None = None) -> None:
        self.users, self.error = users or {}, error

    def tokens_of(self, name: str, claimed: Iterable[str]) -> Iterable[str]:
        if self.error is not None:
            raise self.error
        return self.users.get(name, ())


@dataclass(frozen=True)
class FakeSigning:
    """Signs with a word in front."""

    word: str = "alice"

    def signed(self, text: str) -> str:
        return f"{self.word} {text}"

    def opened(self, signed: str) -> str | None:
        return signed.removeprefix(f"{self.word} ") if signed.startswith(f"{self.word} ") else None


class FakeCounter:
    """Counts as the estimate does."""

    def count(self, text: str) -> int:
        return estimate(text)


@dataclass
class FakeService:
    """One line for ever."""

    the_line: ServiceSnapshot
    wrong: list[Mapping[str, object]] = field(default_factory=list)
    weak: list[Mapping[str, object]] = field(default_factory=list)
    rejected: str | None = None

    def snapshot(self) -> ServiceSnapshot:
        return self.the_line

    def problems(self) -> Sequence[Mapping[str, object]]:
        return self.wrong

    def weaknesses(self) -> Sequence[Mapping[str, object]]:
        return self.weak

    def rejected_settings(self) -> str | None:
        return self.rejected

    @property
    def clock(self) -> Callable[[], float]:
        return lambda: 1_700_000_000.0


def parts_of(retriever: FakeRetriever, model: FakeModel) -> Dependencies:
    """Return the parts of a line; each call of its clock is a millisecond later."""
    ticks = iter(range(10**9))
    return Dependencies(
        retriever,
        model,
        FakeCounter(),
        "Answer in {language} as {format}.",
        lambda: "n0nce",
        lambda: next(ticks) / 1000,
    )


def searching(
    retriever: Retriever, meaning: Meaning | None = None, *, reranker: Reranker | None = None
) -> Dependencies:
    """Return the parts of a line that only searches."""
    return replace(parts_of(FakeRetriever(), FakeModel()), retriever=retriever, meaning=meaning, reranker=reranker)


def fake_snapshot(
    retriever: FakeRetriever | None = None,
    model: FakeModel | None = None,
    *,
    settings: Settings | None = None,
    rights: FakeRights | None = None,
    identity: FakeIdentity | None = None,
) -> ServiceSnapshot:
    """Return a line over fakes; without arguments it finds two documents and answers from the second."""
    return ServiceSnapshot(
        settings=settings or Settings(),
        dependencies=parts_of(
            retriever or FakeRetriever(FLIGHT, RABBIT), model or FakeModel("The flight takes off ", "at 15h50 [1].")
        ),
        identity=identity or FakeIdentity(),
        rights=rights or FakeRights(),
        agent_identity=identity or FakeIdentity(),
        extractive=FakeModel("Sentences of the documents."),
    )


def app_of(
    line: ServiceSnapshot,
    wrong: list[Mapping[str, object]] | None = None,
    weak: list[Mapping[str, object]] | None = None,
    *,
    rejected: str | None = None,
) -> Flask:
    """Return the whole Flask application over *line*."""
    from datafari_rag.bootstrap import TEMPLATES

    app = Flask("tests", static_folder=None, template_folder=str(TEMPLATES))
    app.extensions["worker"] = register(app, FakeService(line, wrong or [], weak or [], rejected))
    app.config["PROPAGATE_EXCEPTIONS"] = False
    return app
