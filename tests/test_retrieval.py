"""How words and meaning are searched beside each other, and what happens where one of them is not to be had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from datafari_rag.core.access import ANONYMOUS, Filter, filter_for
from datafari_rag.core.ask import Ask, Restriction
from datafari_rag.core.documents import Document, Nearness, Reranking
from datafari_rag.core.errors import EmbeddingsTimeout, RagError, SearchUnavailable
from datafari_rag.core.meaning.near_search import NearSearch
from datafari_rag.core.meaning.reranker import RerankFailure
from datafari_rag.core.query.plan import searches_for
from datafari_rag.core.search_request import Browse, Search, SearchResult, Step
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.vectors import EmbeddingModel, Purpose, Vector, unit_vector
from datafari_rag.ports import Meaning
from datafari_rag.retrieval import Dependencies, Searched, browsed, searched
from tests.fakes import FakeRetriever, searching
from tests.settings import settings_with

ANYBODY = filter_for(ANONYMOUS, mode="tokens", anonymous="public")
QUESTION = Ask("When does the ferry leave?")


def document(name: str, score: float = 1.0, text: str = "The ferry leaves at dawn.") -> Document:
    return Document(name, text, score=score)


class LightRetriever(FakeRetriever):
    """Leaves texts out where it may."""

    def search(self, search: Search, access: Filter) -> SearchResult:
        found = super().search(search, access)
        bare = tuple(replace(one, text="") if search.is_bare else one for one in found.documents)
        return replace(found, documents=bare)


class FakeEmbedder:
    """Gives every text the same vector, or fails; remembers what it was asked."""

    def __init__(self, error: RagError | None = None) -> None:
        self.model = EmbeddingModel("fake", "key", 2)
        self.error, self.asked = error, list[str]()

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Vector]:
        self.asked += texts
        if self.error is not None:
            raise self.error
        return [unit_vector([1.0, 0.0]) for _ in texts]


class ReadingPassages:
    """Knows the nearness of documents, and reads their texts; does not show what is in *hidden*."""

    def __init__(
        self, near: Mapping[str, float], *, hidden: frozenset[str] = frozenset(), error: RagError | None = None
    ) -> None:
        self.near, self.hidden, self.error = near, hidden, error
        self.spreads: float | None = 0.1
        self.compared_ids: list[list[str]] = []
        self.searches: list[NearSearch] = []

    def reads_texts(self, search: Search) -> bool:
        return True

    def nearest(self, search: NearSearch, access: Filter) -> tuple[Document, ...]:
        self.searches.append(search)
        order = sorted(self.near, key=lambda name: -self.near[name])[: search.documents]
        return tuple(Document(name, "", near=(Nearness(0, 0, self.near[name]),)) for name in order)

    def compared(self, documents: Sequence[Document], search: NearSearch, access: Filter) -> tuple[Document, ...]:
        self.compared_ids.append([one.id for one in documents])
        if self.error is not None:
            raise self.error
        return tuple(
            replace(document(one.id), score=one.score, near=(Nearness(0, 9, self.near.get(one.id, 0.0)),))
            for one in documents
            if one.id not in self.hidden
        )

    def spread(self, model: EmbeddingModel) -> float | None:
        return self.spreads

    def probe(self, model: EmbeddingModel) -> str | None:
        return "away" if self.error else None


def run(
    retriever: FakeRetriever, embedder: FakeEmbedder, passages: ReadingPassages, ask: Ask = QUESTION, **changes: object
) -> Searched:
    settings = settings_with(**changes)
    parts = searching(retriever, Meaning(embedder, passages))
    return searched(searches_for(ask, language="en", rag=settings.rag), ANYBODY, parts)


def test_texts_are_left_to_the_passages_and_read_once_for_all() -> None:
    retriever, passages = LightRetriever(document("a"), document("b")), ReadingPassages({"c": 0.9, "a": 0.8})
    found = run(retriever, FakeEmbedder(), passages).result

    assert [search.is_bare for search, _ in retriever.searches] == [True]
    assert passages.compared_ids == [["a", "b", "c"]]
    assert {one.id for one in found.documents} == {"a", "b", "c"} and all(one.text for one in found.documents)
    assert found.by == "both"


def test_what_the_second_look_does_not_show_is_not_there() -> None:
    passages = ReadingPassages({"c": 0.9}, hidden=frozenset({"a", "c"}))
    found = run(LightRetriever(document("a"), document("b")), FakeEmbedder(), passages).result

    assert [one.id for one in found.documents] == ["b"]


@pytest.mark.parametrize(
    ("embedder", "passages"),
    [
        pytest.param(FakeEmbedder(EmbeddingsTimeout()), ReadingPassages({"c": 0.9}), id="no vector"),
        pytest.param(FakeEmbedder(), ReadingPassages({"c": 0.9}, error=SearchUnavailable()), id="nothing read"),
    ],
)
def test_where_meaning_fails_words_are_read_by_the_engine_itself(
    embedder: FakeEmbedder, passages: ReadingPassages
) -> None:
    retriever = LightRetriever(document("a"))
    found = run(retriever, embedder, passages).result

    assert [search.is_bare for search, _ in retriever.searches] == [True, False]
    assert [(one.id, bool(one.text)) for one in found.documents] == [("a", True)] and found.by == "words"


def test_documents_carry_their_nearness_in_spreads_of_the_model() -> None:
    passages = ReadingPassages({"c": 0.9, "a": 0.8})
    found = run(LightRetriever(document("a")), FakeEmbedder(), passages).result

    assert {one.id: one.near[0].cosine for one in found.documents} == pytest.approx({"c": 9.0, "a": 8.0})
    assert (found.by, found.total) == ("both", 2)


def test_without_a_spread_ranks_are_fused_and_no_document_carries_a_nearness() -> None:
    passages = ReadingPassages({f"n{n}": 0.9 - n / 100 for n in range(40)})
    passages.spreads = None
    found = run(LightRetriever(document("a"), document("b")), FakeEmbedder(), passages).result

    assert {"a", "b", "n0"} <= {one.id for one in found.documents}
    assert len(passages.compared_ids[0]) == len(found.documents)
    assert all(one.near == () for one in found.documents)


def test_meaning_follows_the_words_to_the_question_before() -> None:
    class Later(LightRetriever):
        def search(self, search: Search, access: Filter) -> SearchResult:
            found = super().search(search, access)
            return found if search.question == "ferry to the island" else SearchResult((), 0)

    embedder = FakeEmbedder()
    ask = replace(QUESTION, earlier_text="ferry to the island")
    result = run(Later(document("a")), embedder, ReadingPassages({"c": 0.9}), ask)

    assert embedder.asked == [QUESTION.question, "ferry to the island"]
    assert result.last is not None and result.last.question == "ferry to the island"


def test_a_question_without_words_is_searched_for_by_nobody() -> None:
    embedder = FakeEmbedder()
    result = run(LightRetriever(document("a")), embedder, ReadingPassages({"c": 0.9}), Ask("?!"))

    assert (result.result.documents, result.last, embedder.asked) == ((), None, [])


class OverlapReranker:
    """Likes short texts best, or fails; remembers what it was sent."""

    def __init__(self, failure: RerankFailure | None = None) -> None:
        self.failure, self.sent = failure, list[list[str]]()

    def scores(self, question: str, texts: Sequence[str]) -> Sequence[float] | RerankFailure:
        self.sent.append(list(texts))
        return self.failure or [-float(len(text)) for text in texts]


LONG, SHORT = "The ferry leaves at dawn, as every ferry does.", "The ferry leaves at six."


def reranked(reranker: OverlapReranker, **changes: Any) -> SearchResult:
    documents = [document("long", 2.0, LONG), document("short", 1.0, SHORT)]
    plan = [replace(one, **changes) for one in searches_for(QUESTION, rag=Settings().rag, language="en")]
    return searched(plan, ANYBODY, searching(FakeRetriever(*documents), reranker=reranker)).result


def test_a_reranker_is_sent_what_the_user_found_and_its_scores_come_with_the_documents() -> None:
    reranker = OverlapReranker()
    found = reranked(reranker)
    assert sorted(reranker.sent[0]) == sorted([LONG, SHORT])
    assert found.reranking == Reranking(2)
    assert [one.reranked[0].cosine for one in found.documents] == [-float(len(LONG)), -float(len(SHORT))]


def test_a_reranker_that_fails_changes_nothing_but_what_is_said_of_it() -> None:
    found = reranked(OverlapReranker(RerankFailure("rerankerTimeout")))
    assert found.reranking == Reranking(2, "rerankerTimeout")
    assert [(one.id, one.reranked) for one in found.documents] == [("long", ()), ("short", ())]


@pytest.mark.parametrize("changes", [{"is_whole": True}, {"content": "highlighting"}])
def test_nothing_is_sent_of_heads_and_snippets(changes: Mapping[str, Any]) -> None:
    reranker = OverlapReranker()
    assert reranked(reranker, **changes).reranking is None
    assert reranker.sent == []


def test_nothing_is_sent_where_nothing_was_found() -> None:
    reranker = OverlapReranker()
    plan = searches_for(QUESTION, rag=Settings().rag, language="en")
    found = searched(plan, ANYBODY, searching(FakeRetriever(), reranker=reranker)).result
    assert (found.reranking, reranker.sent) == (None, [])


def listing(plain: Browse, parts: Dependencies) -> Any:
    settings = Settings()
    return browsed(plain, ANYBODY, rag=settings.rag, solr=settings.solr, dependencies=parts)


class WordyRetriever(FakeRetriever):
    """Finds documents by the words of their texts."""

    def browse(self, browse: Browse, access: Filter) -> Mapping[str, object]:
        self.browsed.append((browse, access))
        step = browse.step
        found = [one for one in self.documents if step is None or self._fits(step, one.text.split())]
        docs = [{"id": one.id, "title": one.title} for one in found]
        marked = {one.id: {"exactContent": [f'<span class="em">{w}</span>' for w in one.text.split()]} for one in found}
        return {"response": {"numFound": len(docs), "docs": docs}, "highlighting": marked}

    @staticmethod
    def _fits(step: Step, text: Sequence[str]) -> bool:
        hits = sum(word in text for word in step.words)
        return hits == len(step.words) if step.operator == "AND" and step.min_match is None else hits > 0


FERRIES = WordyRetriever(
    Document("a", "ferry leaves dawn", title="Ferries"), Document("b", "harbour closed", title="Harbour")
)


@pytest.mark.parametrize(
    ("text", "relaxation"),
    [
        pytest.param("ferry dawn", ("asked", False, [], []), id="all words in one document"),
        pytest.param("ferry harbour", ("a third of the words", True, [], []), id="all words, in no one document"),
        pytest.param("ferrry dawn", ("a third of the words", True, ["ferrry"], []), id="a word misspelt"),
        pytest.param("what about zebra", ("asked", False, ["zebra"], ["Ferries", "Harbour"]), id="nothing at all"),
        pytest.param("what about a harbour", ("asked", False, [], []), id="a sentence with one word of its own"),
        pytest.param("what about ferry at dawn", ("asked", False, [], []), id="a sentence that has all words"),
    ],
)
def test_a_plain_search_is_relaxed_and_says_so(text: str, relaxation: tuple[object, ...]) -> None:
    page = listing(Browse(text, is_relaxed=True), searching(FERRIES))
    said = page["relaxation"]
    latest = [one["title"] for one in said["latest"]]

    assert (said["step"], said["isRelaxed"], said["missing"], latest) == relaxation
    assert {access for _, access in FERRIES.browsed} == {ANYBODY}


@pytest.mark.parametrize("plain", [Browse("ferry zebra"), Browse("?!", is_relaxed=True), Browse(None, is_relaxed=True)])
def test_a_search_that_is_not_to_be_relaxed_is_one_search(plain: Browse) -> None:
    retriever = WordyRetriever(Document("a", "ferry"))

    assert "relaxation" not in listing(plain, searching(retriever))
    assert len(retriever.browsed) == 1


def test_a_question_costs_a_bounded_number_of_searches() -> None:
    retriever = WordyRetriever(Document("a", "ferry"))
    text = " ".join(f"unknown{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")
    listing(Browse(text, is_relaxed=True), searching(retriever))

    assert len(retriever.browsed) <= 3 + 6 + 1


class ListRetriever(FakeRetriever):
    """Lists forty documents in their order, in Solr's JSON; without words the one that these do not find as well."""

    def browse(self, browse: Browse, access: Filter) -> Mapping[str, object]:
        self.browsed.append((browse, access))
        known = [f"d{n:02}" for n in range(40)] + (["elsewhere"] if browse.text is None and browse.ids else [])
        left = [one for one in known if (browse.ids is None or one in browse.ids) and one not in browse.without]
        names = left[browse.start : browse.start + browse.rows]
        rows = [{"id": name, "title": f"Title {name}"} for name in names]
        shown = rows if browse.fields is None else [{k: row[k] for k in browse.fields if k in row} for row in rows]
        facets = {"facet_fields": {"source": ["x", 40]}}
        marked = {name: {"exactContent": ["…"]} for name in names}
        found = {"response": {"numFound": len(left), "start": browse.start, "docs": shown}, "facet_counts": facets}
        return found | {"highlighting": marked} if browse.wants_highlighting else found


NEAR = {"d09": 0.9, "d25": 0.7, "d35": 0.9, "elsewhere": 0.9, "hidden": 0.9}


def listed(
    plain: Browse,
    passages: ReadingPassages | None = None,
    retriever: FakeRetriever | None = None,
) -> Any:
    meaning = Meaning(FakeEmbedder(), passages or ReadingPassages(NEAR))
    return listing(plain, searching(retriever or ListRetriever(), meaning))


def names(page: Any) -> list[str]:
    return [row["id"] for row in page["response"]["docs"]]


def test_the_first_hits_of_a_list_are_in_the_order_of_words_and_meaning() -> None:
    page = listed(Browse("ferry", rows=5, facet_fields=("source",), wants_highlighting=True))
    assert names(page) == ["d00", "d01", "d02", "d09", "d03"]
    assert (page["response"]["numFound"], page["response"]["start"]) == (41, 0)
    assert page["meaning"] == {"added": 1}, "what is hidden is not counted, nor what words find further down"
    far = listed(Browse("ferry", start=35, rows=5, facet_fields=("source",), wants_highlighting=True))
    assert {*far["highlighting"]} == {*names(far)} and far["facet_counts"] == page["facet_counts"]
    assert {*page["highlighting"]} == {*names(page)} and page["facet_counts"]["facet_fields"] == {"source": ["x", 40]}


@pytest.mark.parametrize("rows", [3, 7, 40])
def test_all_pages_together_have_every_hit_once(rows: int) -> None:
    pages = [listed(Browse("ferry", start=start, rows=rows)) for start in range(0, 42, rows)]
    everything = [name for page in pages for name in names(page)]
    assert sorted(everything) == [*(f"d{n:02}" for n in range(40)), "elsewhere"]
    assert everything.index("d35") < 30, "it comes from further down"
    assert [page["response"]["start"] for page in pages] == [*range(0, 42, rows)]
    assert {page["response"]["numFound"] for page in pages} == {41}
    assert everything[32:] == [f"d{n}" for n in range(30, 40) if n != 35]
    assert everything == names(listed(Browse("ferry", rows=100)))


def test_what_meaning_adds_is_read_under_the_same_filter_and_restrictions() -> None:
    retriever, only = ListRetriever(), (Restriction("source", "x"),)
    listed(Browse("ferry", restrictions=only), None, retriever)
    asked = [None, ("d35", "elsewhere", "hidden"), ("d35",), ("elsewhere", "hidden")]
    assert [one.ids for one, _ in retriever.browsed] == asked
    assert {(one.restrictions, access) for one, access in retriever.browsed} == {(only, ANYBODY)}


def test_a_list_without_any_hit_by_words_stays_empty() -> None:
    retriever = WordyRetriever(Document("a", "ferry"))
    page = listed(Browse("zebra", step=Step("asked", ("zebra",))), None, retriever)
    assert page["response"]["numFound"] == 0 and len(retriever.browsed) == 1


@pytest.mark.parametrize(
    "plain",
    [
        pytest.param(Browse(None, rows=5), id="without words"),
        pytest.param(Browse("ferry", rows=5, sort=("title", False)), id="in an order of its own"),
        pytest.param(Browse("ferry", rows=0), id="numbers alone"),
    ],
)
def test_other_lists_are_left_to_the_engine(plain: Browse) -> None:
    passages = ReadingPassages(NEAR)
    page = listed(plain, passages)
    assert names(page) == [f"d{n:02}" for n in range(plain.rows)] and page["response"]["numFound"] == 40
    assert passages.searches == []


def test_without_anything_near_a_list_is_in_the_order_of_words() -> None:
    assert names(listed(Browse("ferry", rows=5), ReadingPassages({}))) == [f"d{n:02}" for n in range(5)]


def test_without_the_spread_of_the_model_the_order_stays() -> None:
    passages = ReadingPassages(NEAR)
    passages.spreads = None
    assert names(listed(Browse("ferry", rows=5), passages)) == [f"d{n:02}" for n in range(5)]


def test_a_list_has_the_fields_that_were_asked_for() -> None:
    page = listed(Browse("ferry", rows=3, fields=("title",)))
    assert page["response"]["docs"][0].keys() == {"title"}
    assert listed(Browse("ferry", rows=3, fields=("id",)))["response"]["docs"][0].keys() == {"id"}


def test_what_is_near_is_looked_for_once_with_the_same_filter_and_restrictions() -> None:
    only = (Restriction("source", "x"),)
    passages = ReadingPassages(NEAR)
    listed(Browse("ferry harbour", is_relaxed=True, restrictions=only), passages)
    assert [one.restrictions for one in passages.searches] == [only]
