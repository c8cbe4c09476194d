"""Of the candidates only the passages that answer are read, and those only as the user may see their documents now."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from datafari_rag.adapters.embedded.passages import EmbeddedPassages
from datafari_rag.adapters.embedded.queries import narrowed, sought_in
from datafari_rag.adapters.embedded.retriever import MAX_MATCHES, EmbeddedRetriever, PartsSearch
from datafari_rag.adapters.embedded.writer import EmbeddedWriter
from datafari_rag.core.access import ANONYMOUS, User, filter_for
from datafari_rag.core.documents import GAP, NO_ORIGINS, Document, stored_span
from datafari_rag.core.evidence.parts import MAX_CHARS, MAX_PARTS
from datafari_rag.core.meaning.near_search import NearSearch, PieceVector, pieces_of
from datafari_rag.core.search_request import Browse, Search, Step
from datafari_rag.core.settings.table import RagSettings, SolrSettings
from datafari_rag.core.vectors import EmbeddingModel, Purpose, Vector, unit_vector
from datafari_rag.ports import Meaning
from datafari_rag.retrieval import browsed
from tests.fakes import searching

MODEL = EmbeddingModel("test", "test-key", 2)
ANYBODY = filter_for(ANONYMOUS, mode="tokens", anonymous="public")
FAR, NEAR = unit_vector([0.0, 1.0]), unit_vector([1.0, 0.0])
LONG = "The first passage of a manual. " * 12 + "".join(
    f"Sentence {n} of the long manual says nothing of use to anybody at all. " for n in range(3000)
)


def manual(name: str, text: str = LONG, **more: object) -> Mapping[str, object]:
    return {"id": name, "exactContent": text, "title": f"Manual {name}", "language": "en", **more}


def write(folder: Path, *documents: Mapping[str, object], near_to: str = "lighthouse") -> None:
    pieces = {str(one["id"]): list(vectors_of(str(one["exactContent"]), near_to)) for one in documents}
    with closing(EmbeddedWriter(folder)) as writer:
        writer.add_embedded(documents, pieces, MODEL)
        writer.commit()


def vectors_of(text: str, near_to: str) -> Sequence[PieceVector]:
    def vector(piece: str) -> Vector:
        return NEAR if near_to in piece else FAR

    return [PieceVector(one.start, one.end, vector(text[one.start : one.end])) for one in pieces_of(text)]


def question(*words: str, documents: int = 5) -> NearSearch:
    return NearSearch(NEAR, MODEL.key, documents, words=words, spread=0.1)


def search(*words: str, is_bare: bool = True) -> Search:
    return Search(" ".join(words), Step("asked", words, "OR"), 20, is_bare=is_bare)


def opened(folder: Path) -> tuple[EmbeddedRetriever, EmbeddedPassages]:
    retriever = EmbeddedRetriever(folder)
    return retriever, EmbeddedPassages(retriever)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("parts")
    middle = len(LONG) // 2
    by_word = LONG[:middle] + "\nThe zephyr valve is closed by hand.\n" + LONG[middle:]
    by_meaning = LONG[:middle] + "\nA lighthouse guides ships.\n" + LONG[middle:]
    write(made, manual("word", by_word), manual("meaning", by_meaning, url="http://x/m", last_modified="2026-01-02"))
    return made


def test_a_bare_search_shows_cards_without_texts(folder: Path) -> None:
    retriever, passages = opened(folder)
    whole = retriever.search(search("manual", is_bare=False), ANYBODY).documents
    bare = retriever.search(search("manual"), ANYBODY).documents

    assert passages.reads_texts(search("manual"))
    assert [replace(one, text="", origins=NO_ORIGINS) for one in whole] == [*bare] and all(one.text for one in whole)


class NearEmbedder:
    model = replace(MODEL, spread=0.1)

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Vector]:
        return [NEAR for _ in texts]


def test_of_long_documents_the_beginning_the_near_and_the_worded_passages_are_read(folder: Path) -> None:
    retriever, passages = opened(folder)
    bare = retriever.search(search("manual"), ANYBODY).documents
    asked = question("zephyr", "valve")
    read = {one.id: one for one in passages.compared(bare, asked, ANYBODY)}

    assert {*read} == {"word", "meaning"}
    assert "zephyr valve is closed" in read["word"].text and "lighthouse guides" in read["meaning"].text
    assert all(one.text.startswith("The first passage of a manual.") for one in read.values())
    assert sum(len(one.text) for one in read.values()) <= MAX_CHARS < len(LONG)
    assert max(near.cosine for near in read["meaning"].near) == pytest.approx(1.0, abs=0.01)


def test_parts_stand_where_they_say_in_the_stored_text(folder: Path) -> None:
    retriever, passages = opened(folder)
    bare = retriever.search(search("manual"), ANYBODY).documents
    for one in passages.compared(bare, question("zephyr"), ANYBODY):
        stored = retriever.fetch(one.id, "exactContent", ANYBODY)
        assert stored is not None
        for run in one.origins.runs:
            start, end = stored_span(one, run.start, run.start + run.length)
            assert stored.text[start:end] == one.text[run.start : run.start + run.length]
        for near in one.near:
            start, end = stored_span(one, near.start, near.end)
            assert stored.text[start:end] == one.text[near.start : near.end]


def test_what_is_found_by_meaning_alone_is_read_as_well(folder: Path) -> None:
    _, passages = opened(folder)
    found = passages.nearest(question("beacon"), ANYBODY)
    assert [(one.id, one.text) for one in found] == [("meaning", ""), ("word", "")]
    assert "lighthouse guides" in passages.compared(found, question("beacon"), ANYBODY)[0].text


def test_a_right_revoked_between_two_looks_counts(tmp_path: Path) -> None:
    write(tmp_path, manual("a", "The ferry leaves. " * 9), manual("b", "The ferry stays. " * 9))
    retriever, passages = opened(tmp_path)
    bare = retriever.search(search("ferry"), ANYBODY).documents
    near = passages.nearest(question("ferry"), ANYBODY)
    write(tmp_path, manual("a", "The ferry leaves. " * 9, allow_token_document=["staff"]))

    assert [one.id for one in passages.compared(bare, question("ferry"), ANYBODY)] == ["b"]
    assert [one.id for one in passages.compared(near, question("ferry"), ANYBODY)] == ["b"]
    staff = filter_for(User("u", frozenset({"staff"})), mode="tokens", anonymous="public")
    assert {one.id for one in passages.compared(bare, question("ferry"), staff)} == {"a", "b"}


def test_a_document_changed_or_removed_between_two_looks_is_read_as_it_is_now(tmp_path: Path) -> None:
    write(tmp_path, *(manual(name, "The ferry leaves. " * 9) for name in ("a", "b", "c")))
    retriever, passages = opened(tmp_path)
    bare = retriever.search(search("ferry"), ANYBODY).documents
    write(tmp_path, manual("a", "The harbour is closed. " * 9))
    with closing(EmbeddedWriter(tmp_path)) as writer:
        writer.delete(["b"])
        writer.add([manual("c", "No vectors any more.")])
        writer.commit()

    read = {one.id: one.text for one in passages.compared(bare, question("ferry"), ANYBODY)}
    assert {*read} == {"a", "c"} and read["c"] == "No vectors any more."
    assert read["a"].startswith("The harbour is closed.")


def test_hidden_documents_change_nothing_of_what_is_read(tmp_path: Path) -> None:
    """Beside an index with many hidden documents, in many commits, one that never held them."""
    rng = random.Random(18)
    words = [f"word{n}" for n in range(12)]
    for number in range(5):
        seen = [
            manual(f"s{number}-{n}", " ".join(f"The {rng.choice(words)} is {rng.choice(words)}." for _ in range(40)))
            for n in range(2)
        ]
        hidden = [
            manual(f"h{number}-{n}", " ".join(rng.choice(words) for _ in range(400)), allow_token_document=["staff"])
            for n in range(3)
        ]
        write(tmp_path / "whole", *hidden[:2], *seen, *hidden[2:], near_to="word3")
        write(tmp_path / "open", *seen, near_to="word3")
    names = [f"s{number}-{n}" for number in range(5) for n in range(2)]
    for _ in range(10):
        asked = question(*rng.sample(words, 3), documents=20)
        told = []
        for name in ("whole", "open"):
            _, passages = opened(tmp_path / name)
            assert {one.id for one in passages.nearest(asked, ANYBODY)} == {*names}
            told.append(passages.compared([Document(one, "") for one in names], asked, ANYBODY))
        assert told[0] == told[1] and len(told[0]) == len(names)


def test_hidden_documents_change_no_passage_that_words_find(tmp_path: Path) -> None:
    """With words alone: the same documents, in the same parts, as in an index that never held the others."""
    rng = random.Random(35)
    words = [f"word{n}" for n in range(30)]

    def long_text(of: Sequence[str]) -> str:
        return " ".join(f"The {rng.choice(of)} is {rng.choice(of)}." for _ in range(1500))

    for number in range(3):
        seen = [manual(f"s{number}-{n}", long_text(words)) for n in range(2)]
        hidden = [manual(f"h{number}-{n}", long_text(words[:4]), allow_token_document=["staff"]) for n in range(3)]
        for name, documents in (("whole", [*hidden[:2], *seen, *hidden[2:]]), ("open", seen)):
            with closing(EmbeddedWriter(tmp_path / name)) as writer:
                writer.add(documents)
                writer.commit()
    retrievers = [EmbeddedRetriever(tmp_path / name) for name in ("whole", "open")]
    for _ in range(20):
        asked = search(*rng.sample(words, rng.randint(1, 4)), is_bare=False)
        # The order of documents knows how rare words are in all of them; what is read of each does not.
        found = [{one.id: one for one in retriever.search(asked, ANYBODY).documents} for retriever in retrievers]
        assert {*found[0]} == {*found[1]} and all(name.startswith("s") for name in found[0])
        assert sum(len(one.text) for one in found[0].values()) <= MAX_CHARS + MAX_PARTS * len(GAP)
        same = parts_of_equals(retrievers, asked)
        assert same[0] == same[1] and len(same[0]) == len(found[0])


def parts_of_equals(retrievers: Sequence[EmbeddedRetriever], asked: Search) -> list[dict[str, Sequence[object]]]:
    """Return for each index the parts of what *asked* finds, no document being worth more than another, by id."""
    told: list[dict[str, Sequence[object]]] = []
    for retriever in retrievers:
        view = retriever.view()
        first, *filters = view.within(ANYBODY)
        cards = view.cards(view.vocabulary.searcher.search(narrowed(first, filters), limit=100).hits)
        read = retriever.read(cards, {}, PartsSearch(asked.step.words, asked.language), ANYBODY)
        told.append({one.id: (one.text, one.origins) for one in read.values()})
    return told


def test_of_very_many_passages_with_as_few_words_none_is_preferred(tmp_path: Path) -> None:
    many = "The pump is old. " + "Nothing else is known of it. " * 20
    with closing(EmbeddedWriter(tmp_path)) as writer:
        writer.add([manual("a", many * (2 * MAX_MATCHES + 100) + "The pumps have valves.")])
        writer.commit()
    view = EmbeddedRetriever(tmp_path).view()
    (card,) = view.cards(view.vocabulary.searcher.search(narrowed(*view.within(ANYBODY)[:1], []), limit=1).hits)

    def matched(*words: str) -> dict[int, float]:
        return view.matched(sought_in(words, "en"), [card], ANYBODY)

    assert list(matched("pump", "valve").values()) == [2.0]
    assert matched("pump") == {} == matched("of", "the", "zebra")


def test_words_alone_read_parts_of_long_documents_and_short_ones_as_a_whole(tmp_path: Path) -> None:
    middle = len(LONG) // 2
    by_word = LONG[:middle] + "\nThe zephyr valve is closed by hand.\n" + LONG[middle:]
    with closing(EmbeddedWriter(tmp_path)) as writer:
        writer.add([manual("long", by_word), manual("short", "A zephyr blows. Nobody knows why.")])
        writer.commit()
    retriever = EmbeddedRetriever(tmp_path)
    found = {one.id: one for one in retriever.search(search("zephyr", is_bare=False), ANYBODY).documents}

    assert "zephyr valve is closed" in found["long"].text and len(found["long"].text) < MAX_CHARS
    assert found["long"].text.startswith("The first passage of a manual.")
    assert (found["short"].text, found["short"].origins) == ("A zephyr blows. Nobody knows why.", NO_ORIGINS)
    whole = retriever.search(replace(search("zephyr", is_bare=False), is_whole=True), ANYBODY).documents
    assert {one.text for one in whole} == {by_word, found["short"].text}
    few = retriever.search(search("short", is_bare=False), ANYBODY).documents
    assert [(one.text, one.origins) for one in few] == [(found["short"].text, NO_ORIGINS)], "all of them fits"


def test_a_list_of_the_index_is_arranged_by_meaning_and_its_pages_stay_whole(tmp_path: Path) -> None:
    names = [f"{number:02}" for number in range(34)]
    texts = {name: "The ferry leaves. " * (1 + place) for place, name in enumerate(names)}
    texts["05"] = "The ferry and the lighthouse. " + texts["05"]
    hidden = manual("hidden", "The ferry and the lighthouse.", allow_token_document=["staff"])
    near = [manual("near", "The lighthouse."), manual("not for all", "The lighthouse.", allow_token_document=["staff"])]
    documents = [*(manual(name, text, source="s") for name, text in texts.items()), hidden, *near]
    pieces = {str(one["id"]): list(vectors_of(str(one["exactContent"]), "lighthouse")) for one in documents}
    with closing(EmbeddedWriter(tmp_path)) as writer:
        writer.add_embedded(documents, pieces, replace(MODEL, spread=0.1))
        writer.commit()
    retriever, passages = opened(tmp_path)

    def page(start: int, meaning: Meaning | None) -> Any:
        plain = Browse("ferry", start=start, rows=10, fields=("title",), facet_fields=("source",))
        return browsed(
            plain, ANYBODY, rag=RagSettings(), solr=SolrSettings(), dependencies=searching(retriever, meaning)
        )

    def titles(meaning: Meaning | None) -> list[str]:
        return [row["title"][0] for start in (0, 10, 20, 30) for row in page(start, meaning)["response"]["docs"]]

    both, words = titles(Meaning(NearEmbedder(), passages)), titles(None)
    assert sorted(words) == [f"Manual {name}" for name in names]
    assert sorted(both) == [*sorted(words), "Manual near"], "also what has none of the words, but nothing hidden"
    assert both[:2] == ["Manual near", "Manual 05"] and words[0] != "Manual 05" and both[31:] == words[30:]
    assert page(0, Meaning(NearEmbedder(), passages))["facet_counts"] == page(0, None)["facet_counts"]
    assert page(10, Meaning(NearEmbedder(), passages))["response"]["numFound"] == 35
