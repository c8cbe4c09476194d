"""Passages in a real Solr without vectors: rights first, then what words alone read of long documents."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence

import pytest

from datafari_rag.adapters.solr.client import Node
from datafari_rag.core.access import ANONYMOUS, User, filter_for
from datafari_rag.core.documents import GAP, NO_ORIGINS, Document
from datafari_rag.core.evidence.parts import MAX_CHARS
from datafari_rag.core.search_request import Search, Step
from tests.adapters.embedded.test_passages import random_acl
from tests.passages_in_solr import TwoCollections
from tests.real_solr import Collection
from tests.security.corpora import TOKENS, may_see
from tests.settings import settings_with

pytestmark = pytest.mark.solr

ANYBODY = filter_for(ANONYMOUS, mode="tokens", anonymous="public")
FILLER = "Nothing of use to anybody is said in this sentence. "
LONG = FILLER * 2000 + "The lantern hangs at the pier. " + FILLER * 2000
WORDS = (
    "harbour",
    "ferry",
    "ticket",
    "island",
    "storm",
    "captain",
    "lantern",
    "anchor",
    "rope",
    "gull",
    "tide",
    "dune",
)


@pytest.fixture
def solr(solr_collection: Collection) -> Iterator[TwoCollections]:
    both = TwoCollections(solr_collection)
    both.clear()
    yield both
    both.clear()


def doc(name: str, text: str = LONG, **more: object) -> Mapping[str, object]:
    return {"id": name, "title": "Notes", "exactContent": text, "language": "en", **more}


def put(solr: TwoCollections, *documents: Mapping[str, object]) -> None:
    solr.documents.load(documents)
    solr.sync_words()


def search(*words: str, **more: object) -> Search:
    return Search(" ".join(words), Step("asked", words, "OR"), 20, **more)  # type: ignore[arg-type]


def found(solr: TwoCollections, asked: Search, tokens: frozenset[str] | None = None) -> dict[str, Document]:
    user = ANONYMOUS if tokens is None else User("u", tokens)
    access = filter_for(user, mode="tokens", anonymous="public")
    return {one.id: one for one in solr.retriever().search(asked, access).documents}


@pytest.mark.parametrize("corpora", [3, pytest.param(40, marks=pytest.mark.slow)])
def test_words_read_passages_of_what_a_user_may_see_and_hidden_ones_change_nothing(
    solr: TwoCollections, corpora: int
) -> None:
    """Each corpus is searched by several users, and again when it never held what the user may not see."""
    rng = random.Random(35)
    hidden = 0
    for _ in range(corpora):
        rights = {f"d{n}": random_acl(rng) for n in range(rng.randint(2, 12))}
        texts = {
            name: " ".join(f"The {rng.choice(WORDS)} is {rng.choice(WORDS)}." for _ in range(rng.randint(1, 900)))
            for name in rights
        }
        whole: dict[tuple[frozenset[str], tuple[str, ...]], dict[str, Document]] = {}
        put(solr, *(doc(name, texts[name], **rights[name]) for name in rights))
        for _ in range(3):
            tokens, words = frozenset(rng.sample(TOKENS, rng.randint(0, 6))), tuple(rng.sample(WORDS, 3))
            read = found(solr, search(*words), tokens)
            seen = [name for name in rights if may_see(rights[name], tokens)]
            assert {*read} <= {*seen}
            assert {name for name in seen if any(word in texts[name].lower() for word in words)} <= {*read}
            assert all(run_of(one) in texts[name] for name, one in read.items())
            hidden += len(rights) - len(seen)
            whole[tokens, words] = read
        for (tokens, words), before in [*whole.items()][:1]:
            seen = [name for name in rights if may_see(rights[name], tokens)]
            put(solr, *(doc(name, texts[name], **rights[name]) for name in seen))
            assert {*found(solr, search(*words), tokens)} == {*before}
    assert hidden > corpora


def run_of(document: Document) -> str:
    return document.text.split(GAP)[0]


def test_little_is_read_of_many_long_documents_and_what_is_asked_for_is_among_it(
    solr: TwoCollections, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(solr, *(doc(f"d{n:02}", f"{LONG} {n}") for n in range(20)))
    retriever = solr.retriever()
    retriever.search(search("lantern"), ANYBODY)
    sent = list[int]()
    real = Node._whole

    def counted(self: Node, *how: object) -> bytes:
        body = real(self, *how)  # type: ignore[arg-type]
        sent.append(len(body))
        return body

    monkeypatch.setattr(Node, "_whole", counted)
    documents = retriever.search(search("lantern"), ANYBODY).documents
    assert len(documents) == 20 and len(sent) == 3 and sum(sent) <= 80_000
    assert sum(len(one.text) for one in documents) <= MAX_CHARS + 100 * len(GAP)
    assert all(one.text.startswith(FILLER) and "The lantern hangs at the pier." in one.text for one in documents)
    for one in documents:
        stored = f"{LONG} {int(one.id[1:])}"
        for run in one.origins.runs:
            assert stored[run.stored : run.stored + run.length] == one.text[run.start : run.start + run.length]


def test_a_right_revoked_in_the_documents_counts_at_once_however_old_the_passages_are(solr: TwoCollections) -> None:
    put(solr, doc("a"), doc("b"))
    solr.documents.load([doc("a", allow_token_document=["staff"]), doc("b")])
    assert {*found(solr, search("lantern"))} == {"b"}
    assert {*found(solr, search("lantern"), frozenset({"staff"}))} == {"a", "b"}


@pytest.mark.parametrize("is_between", [False, True], ids=["before", "between the two requests"])
def test_a_right_revoked_before_texts_are_read_hides_them(
    solr: TwoCollections, monkeypatch: pytest.MonkeyPatch, is_between: bool
) -> None:
    put(solr, doc("a"), doc("b"))
    retriever = solr.retriever()
    revoked = [doc("a", allow_token_document=["staff"]), doc("b")]
    real = retriever.passages.compared  # type: ignore[union-attr]

    def late(*args: object) -> Sequence[Document]:
        solr.documents.load(revoked)
        return real(*args)  # type: ignore[arg-type]

    if is_between:
        monkeypatch.setattr(retriever.passages, "compared", late)
    else:
        solr.documents.load(revoked)
    assert [one.id for one in retriever.search(search("lantern"), ANYBODY).documents] == ["b"]


def test_a_document_changed_since_or_never_cut_is_read_from_its_own_collection(solr: TwoCollections) -> None:
    put(solr, doc("a"), doc("b"), doc("gone"))
    solr.documents.load([doc("a", "A lantern, all new."), doc("b"), doc("c", "Another lantern.")])
    read = found(solr, search("lantern"))
    assert {*read} == {"a", "b", "c"}
    assert (read["a"].text, read["c"].text) == ("A lantern, all new.", "Another lantern.")


def test_passages_whose_document_is_gone_or_that_name_another_version_are_not_read(solr: TwoCollections) -> None:
    put(solr, doc("a", "A lantern."))
    (row,) = solr.stored("parent_doc:a")
    stray = {**row, "id": "a_9", "chunk_index": 1, "embedded_content": "forged lantern", "parent_version": 7}
    gone = {**row, "id": "gone_0", "parent_doc": "gone", "embedded_content": "gone lantern"}
    keep = [{name: value for name, value in one.items() if name != "_version_"} for one in (stray, gone)]
    solr.post(keep)
    solr.post({"commit": {}})
    read = found(solr, search("lantern"))
    assert {name: one.text for name, one in read.items()} == {"a": "A lantern."}


def test_a_document_with_a_stemmed_body_alone_has_its_passages(solr: TwoCollections) -> None:
    solr.documents.load([{"id": "s", "title": "Notes", "language": "en", "content_en": LONG}])
    assert solr.sync_words().passages > 100
    read = found(solr, search("lantern"))["s"]
    assert "The lantern hangs at the pier." in read.text and len(read.text) < len(LONG)
    assert solr.sync_words().documents == 0


def test_passages_with_vectors_are_read_by_words_alone_as_well_and_a_run_without_a_model_writes_them_again(
    solr: TwoCollections,
) -> None:
    solr.documents.load([doc("a")])
    with_vectors = solr.sync().passages
    read = found(solr, search("lantern"))["a"]
    assert "The lantern hangs at the pier." in read.text and len(read.text) < MAX_CHARS
    without = solr.sync_words()
    assert (without.documents, without.passages < with_vectors) == (1, True)
    assert not any("vector_4" in one for one in solr.stored())
    assert "The lantern hangs at the pier." in found(solr, search("lantern"))["a"].text


def test_where_passages_cannot_be_read_texts_are(solr: TwoCollections, monkeypatch: pytest.MonkeyPatch) -> None:
    put(solr, doc("a"))
    solr.settings = settings_with(solr.settings, solr_vector_collection="Nowhere")
    read = found(solr, search("lantern"))["a"]
    assert (read.text, read.origins) == (LONG, NO_ORIGINS)


def test_what_is_wanted_whole_or_as_snippets_is_not_read_in_passages(solr: TwoCollections) -> None:
    put(solr, doc("a", preview_content="The lantern"))
    assert found(solr, search("lantern", is_whole=True))["a"].text == LONG
    assert found(solr, search("lantern", content="preview_content"))["a"].text == "The lantern"
    assert "lantern" in found(solr, search("lantern", content="highlighting"))["a"].text
