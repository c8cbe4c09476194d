"""Passages in a real Solr: rights first, then what is read, then what a run that was broken off leaves."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from datafari_rag.adapters.solr.client import Node
from datafari_rag.adapters.solr.factory import beside, connection_of, retriever_for, writer_for
from datafari_rag.adapters.solr.writer import REMOVED
from datafari_rag.core.access import ACL_FIELDS, ANONYMOUS, NO_SECURITY, User, filter_for
from datafari_rag.core.ask import Ask, Restriction
from datafari_rag.core.documents import GAP, Document, stored_span
from datafari_rag.core.errors import EmbeddingsGarbled, EmbeddingsMismatch, SearchUnavailable
from datafari_rag.core.search_request import Browse, Search, Step
from datafari_rag.core.vectors import EmbeddingModel, Purpose, Vector
from datafari_rag.pipeline import found_for
from datafari_rag.ports import Meaning
from datafari_rag.retrieval import browsed
from tests.adapters.embedded.test_passages import random_acl
from tests.fakes import FakeModel, FakeRetriever, parts_of, searching
from tests.passages_in_solr import MODEL, TwoCollections, WordEmbedder, asked, question
from tests.real_solr import CHUNKS, Collection
from tests.security.corpora import TOKENS, may_see
from tests.settings import settings_with

pytestmark = pytest.mark.solr

ANYBODY = filter_for(ANONYMOUS, mode="tokens", anonymous="public")
WORDS = [
    *("harbour", "ferry", "ticket", "island", "storm", "captain"),
    *("lantern", "anchor", "rope", "gull", "tide", "dune"),
]


@pytest.fixture
def solr(solr_collection: Collection) -> Iterator[TwoCollections]:
    both = TwoCollections(solr_collection)
    both.clear()
    yield both
    both.clear()


def doc(name: str, text: str = "The ferry leaves the harbour at dawn.", **more: object) -> Mapping[str, object]:
    return {"id": name, "title": "Notes", "exactContent": text, "language": "en", **more}


def bare(*names: str) -> list[Document]:
    return [Document(name, "", score=1.0) for name in names]


def ids(found: Sequence[Document]) -> list[str]:
    return [one.id for one in found]


def sentence(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(3, 8))).capitalize() + "."


# --- rights -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("corpora", "users"),
    [pytest.param(3, 4, id="quick"), pytest.param(60, 5, id="long", marks=pytest.mark.slow)],
)
def test_a_user_finds_what_brute_force_finds_in_what_he_may_see_and_hidden_passages_change_nothing(
    solr: TwoCollections, corpora: int, users: int
) -> None:
    """Each corpus is searched by several users, and again when it never held what the user may not see."""
    rng = random.Random(18)
    hidden = found_ones = 0
    for _ in range(corpora):
        rights = {f"d{n}": random_acl(rng) for n in range(rng.randint(1, 14))}
        texts = {name: " ".join(sentence(rng) for _ in range(rng.randint(1, 40))) for name in rights}
        asking = [
            (frozenset(rng.sample(TOKENS, rng.randint(0, 6))), sentence(rng), rng.randint(1, 6)) for _ in range(users)
        ]
        whole = {}
        put(solr, {name: doc(name, texts[name], **rights[name]) for name in rights})
        vectors = {name: [one["vector_4"] for one in solr.stored(f"parent_doc:{name}")] for name in rights}
        for tokens, text, most in asking:
            found = told(solr, tokens, text, most)
            seen = [name for name in rights if may_see(rights[name], tokens)]
            check_brute_force(found[0], {name: vectors[name] for name in seen}, text, most)
            whole[tokens, text] = found
            hidden += len(rights) - len(seen)
            found_ones += len(found[0])
        for tokens, text, most in asking[:2]:
            seen = [name for name in rights if may_see(rights[name], tokens)]
            put(solr, {name: doc(name, texts[name], **rights[name]) for name in seen})
            ids_, cosines = told(solr, tokens, text, most)[1:]
            assert ids_ == whole[tokens, text][1]
            assert cosines == pytest.approx(whole[tokens, text][2], abs=1e-5)
    assert hidden > corpora and found_ones > corpora


def put(solr: TwoCollections, documents: Mapping[str, Mapping[str, object]]) -> None:
    solr.documents.load([*documents.values()])
    solr.sync()


def told(
    solr: TwoCollections, tokens: frozenset[str], text: str, most: int
) -> tuple[list[tuple[str, float]], object, list[float]]:
    access = filter_for(User("u", tokens), mode="tokens", anonymous="public")
    passages, search = solr.passages(), question(text, most)
    near = passages.nearest(search, access)
    everything = [Document(f"d{n}", "") for n in range(14)]
    read = passages.compared(everything, search, access)
    shown = [(one.id, one.text, [(piece.start, piece.end) for piece in one.near]) for one in read]
    cosines = [one.near[0].cosine for one in near] + [piece.cosine for one in read for piece in one.near]
    return [(one.id, one.near[0].cosine) for one in near], (ids(near), shown), cosines


def check_brute_force(
    found: Sequence[tuple[str, float]], vectors: Mapping[str, Sequence[Sequence[float]]], text: str, most: int
) -> None:
    (asking,) = WordEmbedder().embed([text], "query")
    best = {
        name: max(sum(a * b for a, b in zip(one, asking, strict=True)) for one in own) for name, own in vectors.items()
    }
    expected = sorted(best.values(), reverse=True)[:most]
    assert [cosine for _, cosine in found] == pytest.approx(expected, abs=1e-4)
    assert [best[name] for name, _ in found] == pytest.approx(expected, abs=1e-4)


def test_a_right_revoked_in_the_documents_counts_at_once_however_old_the_passages_are(solr: TwoCollections) -> None:
    put(solr, {"a": doc("a"), "b": doc("b")})
    passages, search = solr.passages(), question("ferry harbour")
    assert ids(passages.compared(passages.nearest(search, ANYBODY), search, ANYBODY)) == ["a", "b"]
    solr.documents.load([doc("a", allow_token_document=["s1"]), doc("b")])
    assert ids(passages.compared(bare("a", "b"), search, ANYBODY)) == ["b"]
    assert ids(passages.compared(passages.nearest(search, ANYBODY), search, ANYBODY)) == []


def test_the_version_of_another_document_makes_no_passage_one_of_today(solr: TwoCollections) -> None:
    """Two shards give the same version to two documents that they take in the same millisecond."""
    put(solr, {"a": doc("a"), "b": doc("b")})
    old, other = solr.stored()
    kept = {name: value for name, value in old.items() if name != "_version_"}
    solr.post([{**kept, "parent_version": other["parent_version"], "embedded_content": "What a said before."}])
    solr.post({"commit": {}})
    read = solr.passages().compared(bare("a", "b"), question("ferry harbour"), ANYBODY)
    assert [(one.id, one.text) for one in read] == [(name, "The ferry leaves the harbour at dawn.") for name in "ab"]


def test_a_list_has_documents_that_meaning_alone_finds_as_far_as_their_rights_go_now(solr: TwoCollections) -> None:
    words = {name: doc(name, "The vessel leaves.") for name in ("w1", "w2")}
    near = {name: doc(name, "The ferry leaves.", source="x") for name in ("near", "revoked", "far")}
    hidden = doc("hidden", "The ferry leaves.", allow_token_document=["s1"])
    put(solr, {**words, **near, "far": doc("far", "Rain all day."), "hidden": hidden})
    # Its passages are as they were.
    revoked = doc("revoked", "The ferry leaves.", allow_token_document=["s1"])
    solr.documents.load([*words.values(), near["near"], doc("far", "Rain all day."), hidden, revoked])

    class Embedder(WordEmbedder):
        def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Vector]:
            return super().embed([text.replace("vessel", "ferry leaves") for text in texts], purpose)

    parts = searching(retriever_for(solr.settings), Meaning(Embedder(), solr.passages()))
    plain = Browse("vessel", fields=("title",), wants_highlighting=True, facet_fields=("source",))
    page: Any = browsed(
        replace(plain, fields=("id",)), ANYBODY, rag=solr.settings.rag, solr=solr.settings.solr, dependencies=parts
    )
    assert {row["id"] for row in page["response"]["docs"]} == {"w1", "w2", "near"}
    assert page["response"]["numFound"] == 3 and page["meaning"] == {"added": 1}
    assert page["facet_counts"]["facet_fields"]["source"] == []
    shown: Any = browsed(plain, ANYBODY, rag=solr.settings.rag, solr=solr.settings.solr, dependencies=parts)
    assert [row.keys() for row in shown["response"]["docs"]] == [{"title"}] * 3
    narrowed = replace(plain, restrictions=(Restriction("source", "y"),))
    assert "meaning" not in browsed(
        narrowed, ANYBODY, rag=solr.settings.rag, solr=solr.settings.solr, dependencies=parts
    )


def test_a_right_that_was_given_counts_after_the_next_run_and_costs_no_vector(solr: TwoCollections) -> None:
    put(solr, {"a": doc("a", allow_token_document=["s1"])})
    search = question("ferry harbour")
    assert solr.passages().nearest(search, ANYBODY) == ()
    solr.documents.load([doc("a")])
    embedder = WordEmbedder()
    assert solr.sync(embedder).documents == 1
    assert ids(solr.passages().nearest(search, ANYBODY)) == ["a"]
    assert not any("ferry" in text for text in embedder.texts)


def test_passages_without_rights_are_seen_by_nobody(solr: TwoCollections) -> None:
    put(solr, {"a": doc("a")})
    (passage,) = solr.stored()
    naked = {name: value for name, value in passage.items() if "token" not in name and name != "_version_"}
    with pytest.raises(SearchUnavailable):
        solr.post([naked])


# --- what is read -----------------------------------------------------------------------------------------------------

ASKED_SEARCH = Search("ferry", Step("asked", ("ferry",)), 5)
ASKED = Ask("Where is the lantern?")
LONG = "\n\n".join(
    f"Section {n}\n\nThe {WORDS[n % 12]} of part {n} is numbered {n * n}. " + "Filler words. " * 40 for n in range(80)
)


def test_only_the_best_parts_of_a_long_document_are_read_with_their_places_in_it(solr: TwoCollections) -> None:
    long = LONG * 3
    put(solr, {"long": doc("long", long)})
    (found,) = solr.passages().compared(bare("long"), question("lantern numbered"), ANYBODY)
    assert 0 < len(found.text) < len(long) and GAP in found.text
    for run in found.origins.runs:
        part = found.text[run.start : run.start + run.length]
        start, end = stored_span(found, run.start, run.start + run.length)
        assert long[start:end] == part
    assert all(found.text[near.start : near.end] in long for near in found.near)


def test_a_document_that_changed_since_is_read_whole(solr: TwoCollections) -> None:
    put(solr, {"a": doc("a"), "b": doc("b")})
    solr.documents.load([doc("a", "All is new here."), doc("b"), doc("c", "Never seen before.")])
    found = {one.id: one for one in solr.passages().compared(bare("a", "b", "c"), question("ferry"), ANYBODY)}
    assert (found["a"].text, found["c"].text) == ("All is new here.", "Never seen before.")


def test_the_beginning_of_a_document_is_read_where_that_is_wanted(solr: TwoCollections) -> None:
    put(solr, {"a": doc("a", LONG)})
    (found,) = solr.passages().compared(bare("a"), question("ferry", is_whole=True), ANYBODY)
    assert found.text == LONG


def test_an_answer_takes_few_requests_and_little_of_long_documents(
    solr: TwoCollections, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(solr, {f"d{n}": doc(f"d{n}", f"{LONG} {WORDS[n]}") for n in range(12)})
    passages = solr.passages()
    parts = parts_of(FakeRetriever(), FakeModel("x"))
    parts = replace(parts, retriever=solr.documents.retriever, meaning=Meaning(WordEmbedder(), passages))
    before = found_for(ASKED, User(), settings=solr.settings, dependencies=parts)
    sent = list[int]()
    real = Node._whole

    def counted(self: Node, *how: object) -> bytes:
        body = real(self, *how)  # type: ignore[arg-type]
        sent.append(len(body))
        return body

    monkeypatch.setattr(Node, "_whole", counted)
    found = found_for(ASKED, User(), settings=solr.settings, dependencies=parts)
    assert found.by == "both" and found.documents == before.documents and all(one.text for one in found.documents)
    assert len(sent) == 4 and sum(sent) < 100_000


@pytest.mark.parametrize("content", ["highlighting", "preview_content"])
def test_other_contents_are_read_as_they_are_wanted(solr: TwoCollections, content: str) -> None:
    put(solr, {"a": doc("a", preview_content="The ferry")})
    search = question("ferry", content=content)
    passages = solr.passages()
    assert not passages.reads_texts(Search("ferry", Step("asked", ("ferry",)), 5, content=content))  # type: ignore[arg-type]
    (found,) = passages.compared(passages.nearest(search, ANYBODY), search, ANYBODY)
    assert found.text.startswith("The ferry") and found.near == ()


def test_a_question_of_another_model_or_size_is_refused(solr: TwoCollections) -> None:
    put(solr, {"a": doc("a")})
    other = EmbeddingModel("other", "other-key", 4)
    assert "passages sync" in (solr.passages().probe(other) or "")
    with pytest.raises(EmbeddingsMismatch):
        solr.passages().nearest(asked(WordEmbedder(EmbeddingModel("x", "x", 5)).embed(["x"], "query")[0]), ANYBODY)


def test_a_collection_that_is_not_there_is_named(solr_collection: Collection) -> None:
    both = TwoCollections(solr_collection)
    both.settings = settings_with(solr_url=both.settings.solr.url, solr_vector_collection="Nowhere")
    assert "solr.vector.collection" in (both.passages().probe(MODEL) or "")
    with pytest.raises(SearchUnavailable, match="solr-passages"):
        both.sync()


def test_a_vector_main_that_datafari_fills_finds_documents_that_are_read_whole(solr: TwoCollections) -> None:
    solr.documents.load([doc("a", LONG), doc("b"), doc("hidden", allow_token_document=["s1"])])
    chunks = Node(beside(solr.settings.solr.url, CHUNKS), connection_of(solr.settings))
    (vector,) = WordEmbedder().embed(["ferry harbour"], "query")
    rows = [
        {"id": f"{name}_{n}", "parent_doc": name, "chunk_index": n, "vector_4": list(vector)}
        | {field: [NO_SECURITY] for field in ACL_FIELDS}
        for name in ("a", "b", "hidden", "gone")
        for n in range(3)
    ]
    for body in ([{"delete": {"query": "*:*"}}], [rows], [{"commit": {}}]):
        chunks.post("update", body[0])
    solr.settings = settings_with(solr.settings, solr_vector_collection=CHUNKS)
    passages, search = solr.passages(), question("ferry harbour")
    near = passages.nearest(search, ANYBODY)
    assert ids(near) == ["a", "b", "gone", "hidden"] and not passages.reads_texts(ASKED_SEARCH)
    assert [(one.id, one.text) for one in passages.compared(near, search, ANYBODY)] == [
        ("a", LONG),
        ("b", "The ferry leaves the harbour at dawn."),
    ]
    assert passages.spread(MODEL) is None and passages.probe(MODEL) is None
    with pytest.raises(SearchUnavailable, match="solr-passages"):
        solr.sync()


# --- what a run does --------------------------------------------------------------------------------------------------


def test_a_run_takes_what_is_new_or_changed_and_removes_what_is_gone(solr: TwoCollections) -> None:
    put(solr, {name: doc(name) for name in "abc"})
    first = {one["id"]: one["_version_"] for one in solr.stored()}
    assert solr.sync().documents == 0
    solr.documents._post([doc("b", "The captain sleeps.")])  # the others keep their versions
    solr.documents._post({"delete": ["c"]})
    solr.documents._post({"commit": {}})
    outcome = solr.sync()
    assert (outcome.documents, outcome.removed) == (1, 1)
    after = {one["id"]: one["_version_"] for one in solr.stored()}
    assert {*after} == {"a_0", "b_0"} and after["a_0"] == first["a_0"]


def test_more_changes_and_removals_than_one_request_takes(solr: TwoCollections) -> None:
    several = "Filler words. " * 60
    put(solr, {f"{place}": doc(f"{place}", several) for place in range(2 * REMOVED + 20)})
    assert len(solr.stored("parent_doc:1")) > 1
    changed = range(REMOVED + 10)
    solr.documents.load([doc(f"{place}", "The captain sleeps.") for place in changed])
    outcome = solr.sync()
    assert (outcome.documents, outcome.removed) == (REMOVED + 10, REMOVED + 10)
    assert {str(one["id"]) for one in solr.stored()} == {f"{place}_0" for place in changed}


DAMAGE = {
    "a passage that is missing": {"delete": {"query": "+parent_doc:a +chunk_index:1"}},
    "all passages of a document": {"delete": {"query": "parent_doc:a"}},
    "everything": {"delete": {"query": "*:*"}},
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_what_a_killed_run_leaves_is_repaired_by_the_next_and_nothing_wrong_is_shown(
    solr: TwoCollections, damage: Mapping[str, object]
) -> None:
    put(solr, {"a": doc("a", LONG), "b": doc("b")})
    whole = [{**one, "_version_": 0, "vector_4": len(one["vector_4"])} for one in solr.stored()]  # type: ignore[arg-type]
    solr.post(damage)
    solr.post({"commit": {}})
    if damage != DAMAGE["everything"]:
        (found,) = solr.passages().compared(bare("a"), question("lantern"), ANYBODY)
        assert found.text == LONG  # its passages are not whole
    assert solr.sync().documents >= 1
    after = [{**one, "_version_": 0, "vector_4": len(one["vector_4"])} for one in solr.stored()]  # type: ignore[arg-type]
    assert after == whole


def test_passages_of_no_document_and_of_gone_ones_are_removed(solr: TwoCollections) -> None:
    put(solr, {"b": doc("b")})
    (passage,) = solr.stored()
    kept = {name: value for name, value in passage.items() if name not in ("id", "parent_doc", "_version_")}
    solr.post(
        [{**kept, "id": "stray"}, {**kept, "id": "a_0", "parent_doc": "a"}, {**kept, "id": "z", "parent_doc": "z"}]
    )
    solr.post({"commit": {}})
    found = solr.passages().nearest(question("ferry harbour"), ANYBODY)
    assert ids(solr.passages().compared(found, question("ferry harbour"), ANYBODY)) == ["b"]
    assert solr.sync().removed == 3
    assert [one["id"] for one in solr.stored("embedded_content:*")] == ["b_0"]


def test_vectors_that_cannot_be_are_named_and_the_next_run_takes_the_document(solr: TwoCollections) -> None:
    solr.documents.load([doc("a", "A storm came."), doc("b")])
    embedder = WordEmbedder()
    embedder.failing = {"storm": EmbeddingsGarbled(log="a vector has 3 numbers, 4 were expected")}
    outcome = solr.sync(embedder)
    assert (outcome.documents, outcome.problems) == (1, 1)
    assert [where for where, _ in solr.heard.failures] == ["a"] and "3 numbers" in solr.heard.failures[0][1]
    assert solr.sync().documents == 1
    assert len(solr.stored()) == 2


def test_documents_without_text_or_in_another_language_have_no_vectors_and_are_not_taken_twice(
    solr: TwoCollections,
) -> None:
    put(solr, {"empty": doc("empty", ""), "fr": doc("fr", "Le bateau part.", language="fr")})
    assert not any("vector_4" in one for one in solr.stored())
    assert solr.sync().documents == 0
    (found,) = solr.passages().compared(bare("fr"), question("bateau"), ANYBODY)
    assert found.text == "Le bateau part."


def test_another_model_writes_everything_again(solr: TwoCollections) -> None:
    put(solr, {"a": doc("a")})
    other = EmbeddingModel("other", "other-key", 4, frozenset({"en"}))
    assert solr.sync(WordEmbedder(other)).documents == 1
    assert solr.passages().probe(other) is None


ODD = [
    "a b",
    'quote"s',
    "back\\slash",
    "{!term f=id}x",
    "${tokens}",
    "é😀",
    "a,b",
    "x_1",
    "x",
    "*:*",
    "file:///a/b?c=d&e=f",
    "x\x1fy",
]


def test_ids_full_of_syntax_are_values_and_nothing_else(solr: TwoCollections) -> None:
    put(solr, {name: doc(name) for name in ODD})
    assert {one["parent_doc"] for one in solr.stored()} == {*ODD}
    assert solr.sync().documents == 0
    found = solr.passages().nearest(question("ferry harbour", 50), ANYBODY)
    assert {*ids(solr.passages().compared(found, question("ferry"), ANYBODY))} == {*ODD}
    solr.documents.load([doc("x")])
    assert solr.sync().removed == len(ODD) - 1
    assert [one["id"] for one in solr.stored()] == ["x_0"]


@pytest.mark.slow
def test_ten_thousand_passages_and_ten_megabytes_in_one_line_are_taken(solr: TwoCollections) -> None:
    lines = "\n\n".join(
        f"Rule {n}: the {WORDS[n % 12]} number {n} is kept by the captain of the {n}th ship." for n in range(40_000)
    )
    writer = writer_for(solr.settings)
    for one in (doc("lines", lines), doc("line", "x" * 10_000_000)):
        writer.add([one])
    writer.commit()
    assert solr.sync().problems == 0
    numbers = {name: len(solr.stored(f"parent_doc:{name}")) for name in ("lines", "line")}
    assert all(1000 < number <= 10_000 for number in numbers.values())
    (found,) = solr.passages().compared(bare("lines"), question("lantern number 7"), ANYBODY)
    start, end = stored_span(found, 0, found.origins.runs[0].length)
    assert lines[start:end] == found.text[: found.origins.runs[0].length]
