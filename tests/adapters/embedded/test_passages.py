"""Search by meaning in the embedded index: rights first, then what is found, then what happens to the files."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from datafari_rag.adapters.embedded.passages import MAX_NEAR, EmbeddedPassages
from datafari_rag.adapters.embedded.retriever import EmbeddedRetriever
from datafari_rag.adapters.embedded.schema import VECTORS_FILE
from datafari_rag.adapters.embedded.vectors import listed
from datafari_rag.adapters.embedded.writer import EmbeddedWriter
from datafari_rag.core.access import ANONYMOUS, Filter, User, filter_for
from datafari_rag.core.ask import Restriction
from datafari_rag.core.documents import Document, Nearness
from datafari_rag.core.errors import EmbeddingsGarbled, EmbeddingsMismatch, SearchUnavailable
from datafari_rag.core.meaning.near_search import NearSearch, PieceVector
from datafari_rag.core.vectors import EmbeddingModel, Vector, unit_vector
from tests.security.corpora import LEVELS, NS, TOKENS, may_see

MODEL = EmbeddingModel("test", "test-key", 6)
ANYBODY = filter_for(ANONYMOUS, mode="tokens", anonymous="public")
TEXT = "x" * 1000
AT_A_TIME = 10

Doc = Mapping[str, object]
Vectors = Mapping[str, Sequence[Vector]]


def pieces(vectors: Sequence[Vector]) -> list[PieceVector]:
    return [PieceVector(10 * n, 10 * n + 9, vector) for n, vector in enumerate(vectors)]


def write(folder: Path, docs: Sequence[Doc], vectors: Vectors, model: EmbeddingModel = MODEL) -> None:
    with closing(EmbeddedWriter(folder)) as writer:
        writer.add_embedded(docs, {name: pieces(own) for name, own in vectors.items()}, model)
        writer.commit()


def asked(vector: Vector, documents: int = 5, **more: object) -> NearSearch:
    return NearSearch(vector, MODEL.key, documents, **more)  # type: ignore[arg-type]


def passages(folder: Path) -> EmbeddedPassages:
    return EmbeddedPassages(EmbeddedRetriever(folder))


def doc(name: str, **more: object) -> Doc:
    return {"id": name, "exactContent": TEXT, "language": "en", **more}


def axis(*numbers: float) -> Vector:
    return unit_vector([*numbers, *[0.0] * (6 - len(numbers))])


def ids(found: Sequence[Document]) -> list[str]:
    return [one.id for one in found]


# --- rights -----------------------------------------------------------------------------------------------------------


def random_acl(rng: random.Random) -> dict[str, list[str]]:
    acl = {}
    for level in LEVELS:
        for verb in ("allow", "deny"):
            is_open = rng.random() < 0.75
            acl[f"{verb}_token_{level}"] = [NS] if is_open else rng.sample(TOKENS, rng.randint(1, 3))
    return acl


def random_vector(rng: random.Random) -> Vector:
    # Few directions: equal vectors, in one document and in several, are the rule here.
    return unit_vector([rng.choice((-1.0, -0.5, 0.0, 0.5, 1.0)) for _ in range(5)] + [rng.choice((0.25, 1.0))])


def oracle(vectors: Sequence[Vector], question: Vector) -> float:
    """Return the best cosine of the vectors as they are kept: rounded to 127 steps."""
    best = -math.inf
    for vector in vectors:
        steepest = max(map(abs, vector))
        rounded = [round(number / steepest * 127) for number in vector]
        product = sum(a * b for a, b in zip(rounded, question, strict=True))
        best = max(best, product / math.sqrt(sum(number * number for number in rounded)))
    return best


def told(found: Sequence[Document]) -> list[tuple[str, tuple[object, ...]]]:
    return [(one.id, one.near) for one in found]


@dataclass(frozen=True)
class Corpus:
    """Some documents with rights and vectors, all of one source, and somebody who asks."""

    source: str
    rights: Mapping[str, Mapping[str, list[str]]]
    vectors: Vectors
    tokens: frozenset[str]
    question: Vector
    most: int

    def seen(self) -> list[str]:
        return [name for name, acl in self.rights.items() if may_see(acl, self.tokens)]

    def docs(self, names: Sequence[str]) -> list[Doc]:
        return [doc(name, source=self.source, **self.rights[name]) for name in names]


def random_corpus(rng: random.Random, number: int) -> Corpus:
    rights = {f"d{number}-{n}": random_acl(rng) for n in range(rng.randint(1, 14))}
    vectors = {name: [random_vector(rng) for _ in range(rng.randint(0, 4))] for name in rights}
    tokens = frozenset(rng.sample(TOKENS, rng.randint(0, 6)))
    return Corpus(f"c{number}", rights, vectors, tokens, random_vector(rng), rng.randint(1, 6))


@pytest.mark.parametrize("corpora_in_all", [100, pytest.param(300, marks=pytest.mark.slow)])
def test_a_user_finds_what_brute_force_finds_in_what_he_may_see_and_hidden_pieces_change_nothing(
    tmp_path: Path, corpora_in_all: int
) -> None:
    """On random corpora, ten at a time in one index; beside it one that never held what the user may not see."""
    rng = random.Random(18)
    found_ones = hidden_ones = 0
    for number in range(0, corpora_in_all, AT_A_TIME):
        corpora = [random_corpus(rng, number + n) for n in range(AT_A_TIME)]
        for folder, names_of in (("whole", lambda corpus: [*corpus.rights]), ("open", Corpus.seen)):
            docs = [one for corpus in corpora for one in corpus.docs(names_of(corpus))]
            vectors = {name: corpus.vectors[name] for corpus in corpora for name in names_of(corpus)}
            write(tmp_path / f"{folder}{number}", docs, vectors)
        whole, open_ = passages(tmp_path / f"whole{number}"), passages(tmp_path / f"open{number}")
        for corpus in corpora:
            found = checked(corpus, whole, open_)
            found_ones += len(found)
            hidden_ones += len(corpus.rights) - len(corpus.seen())
        everybody = {name: acl for corpus in corpora for name, acl in corpus.rights.items()}
        for corpus in corpora:  # without a restriction: all ten corpora are one
            access = filter_for(User("u", corpus.tokens), mode="tokens", anonymous="public")
            visible = {name for name, acl in everybody.items() if may_see(acl, corpus.tokens)}
            assert {*ids(whole.nearest(asked(corpus.question, 500), access))} == {
                name for one in corpora for name in one.vectors if name in visible and one.vectors[name]
            }
    assert hidden_ones > corpora_in_all and found_ones > corpora_in_all


def nearness(
    index: EmbeddedPassages, names: Sequence[str], search: NearSearch, access: Filter
) -> Mapping[str, Sequence[Nearness]]:
    """Return the pieces of those of the documents *names* that are read with any, by id."""
    read = index.compared([Document(name, "") for name in names], search, access)
    return {one.id: one.near for one in read if one.near}


def checked(corpus: Corpus, whole: EmbeddedPassages, open_: EmbeddedPassages) -> Sequence[Document]:
    access = filter_for(User("u", corpus.tokens), mode="tokens", anonymous="public")
    search = asked(corpus.question, corpus.most, restrictions=(Restriction("source", corpus.source),))
    found = whole.nearest(search, access)
    expected = {name: oracle(corpus.vectors[name], corpus.question) for name in corpus.seen() if corpus.vectors[name]}
    assert len(found) == min(corpus.most, len(expected)) and {*ids(found)} <= {*expected}
    scores = [max(near.cosine for near in one.near) for one in found]
    assert scores == pytest.approx([expected[one.id] for one in found], abs=1e-4)
    assert scores == sorted(scores, reverse=True)
    assert all(expected[name] <= scores[-1] + 1e-4 for name in expected if name not in ids(found))
    assert told(found) == told(open_.nearest(search, access))
    near = nearness(whole, [*corpus.rights], search, access)
    assert near == nearness(open_, [*corpus.rights], search, access) and {*near} == {*expected}
    return found


def test_a_right_that_was_revoked_counts_at_the_next_search(tmp_path: Path) -> None:
    write(tmp_path, [doc("a")], {"a": [axis(1)]})
    index = passages(tmp_path)
    assert ids(index.nearest(asked(axis(1)), ANYBODY)) == ["a"]
    write(tmp_path, [doc("a", allow_token_document=["s1"])], {"a": [axis(1)]})
    assert index.nearest(asked(axis(1)), ANYBODY) == ()
    assert index.compared([Document("a", "")], asked(axis(1)), ANYBODY) == ()


def test_mode_none_sees_everything(tmp_path: Path) -> None:
    write(tmp_path, [doc("a", allow_token_document=["s1"])], {"a": [axis(1)]})
    everything: Filter = filter_for(ANONYMOUS, mode="none", anonymous="public")
    assert ids(passages(tmp_path).nearest(asked(axis(1)), everything)) == ["a"]


# --- what is found ----------------------------------------------------------------------------------------------------


def test_the_nearest_document_comes_first_with_its_pieces_in_their_order(tmp_path: Path) -> None:
    vectors = {"a": [axis(1, 0.1), axis(0, 1), axis(1, 1)], "b": [axis(0, 0, 1)], "c": [axis(1)]}
    write(tmp_path, [doc(name) for name in "abc"], vectors)
    found = passages(tmp_path).nearest(asked(axis(1), is_whole=True), ANYBODY)
    assert ids(found) == ["c", "a", "b"]
    assert [(near.start, near.end) for near in found[1].near] == [(0, 9), (10, 19), (20, 29)]
    assert [near.cosine for near in found[1].near] == pytest.approx([0.995, 0.0, 0.707], abs=0.01)
    assert (found[0].text, found[0].field, found[0].score) == (TEXT, "exactContent", 0.0)


def test_a_document_has_one_place_however_many_of_its_pieces_are_near(tmp_path: Path) -> None:
    write(tmp_path, [doc("a"), doc("b")], {"a": [axis(1)] * 50, "b": [axis(0, 1)]})
    assert ids(passages(tmp_path).nearest(asked(axis(1), 2), ANYBODY)) == ["a", "b"]


def test_of_a_document_with_very_many_pieces_the_nearest_are_told(tmp_path: Path) -> None:
    many = [axis(1, number / 100) for number in range(2 * MAX_NEAR)]
    write(tmp_path, [doc("a", exactContent="x" * 9999)], {"a": many})
    (found,) = passages(tmp_path).nearest(asked(axis(1), is_whole=True), ANYBODY)
    assert [near.start for near in found.near] == [10 * number for number in range(MAX_NEAR)]


def test_restrictions_narrow_before_the_nearest_are_taken(tmp_path: Path) -> None:
    docs = [doc(f"n{n}", source="near") for n in range(20)] + [doc("far", source="far")]
    write(tmp_path, docs, {**{f"n{n}": [axis(1)] for n in range(20)}, "far": [axis(0, 1)]})
    only = asked(axis(1), 3, restrictions=(Restriction("source", "far"),))
    assert ids(passages(tmp_path).nearest(only, ANYBODY)) == ["far"]


def test_the_nearest_piece_stands_in_for_a_snippet(tmp_path: Path) -> None:
    write(tmp_path, [doc("a", exactContent="0123456789abcdefghij")], {"a": [axis(1), axis(0, 1)]})
    (found,) = passages(tmp_path).nearest(asked(axis(0, 1), content="highlighting"), ANYBODY)
    assert (found.text, found.field, found.near) == ("abcdefghi", "highlighting", ())


@pytest.mark.parametrize("size", [1, 6, 384, 3072])
def test_cosines_are_those_of_the_vectors_to_half_a_percent(tmp_path: Path, size: int) -> None:
    rng = random.Random(size)
    model = replace(MODEL, dimensions=size)
    vectors = [unit_vector([rng.gauss(0, 1) for _ in range(size)]) for _ in range(20)]
    write(tmp_path, [doc("a")], {"a": vectors[1:]}, model)
    (found,) = passages(tmp_path).nearest(asked(vectors[0], is_whole=True), ANYBODY)
    exact = [sum(a * b for a, b in zip(vectors[0], other, strict=True)) for other in vectors[1:]]
    assert [near.cosine for near in found.near] == pytest.approx(exact, abs=0.005)


def test_documents_without_vectors_are_not_found_and_harm_nothing(tmp_path: Path) -> None:
    with closing(EmbeddedWriter(tmp_path)) as writer:
        writer.add([doc("plain")])
        writer.add_embedded([doc("empty"), doc("a")], {"empty": [], "a": pieces([axis(1)])}, MODEL)
        writer.commit()
    index = passages(tmp_path)
    assert ids(index.nearest(asked(axis(1)), ANYBODY)) == ["a"]
    assert [*nearness(index, ["plain", "a", "absent", "\ud800"], asked(axis(1)), ANYBODY)] == ["a"]


def test_a_document_that_is_deleted_or_written_again_leaves_no_piece_behind(tmp_path: Path) -> None:
    write(tmp_path, [doc("a"), doc("b"), doc("c")], {name: [axis(1)] for name in "abc"})
    with closing(EmbeddedWriter(tmp_path)) as writer:
        writer.delete(["a"])
        writer.add([doc("b")])
        writer.commit()
    assert ids(passages(tmp_path).nearest(asked(axis(1)), ANYBODY)) == ["c"]


def test_the_last_of_two_documents_with_one_id_counts(tmp_path: Path) -> None:
    with closing(EmbeddedWriter(tmp_path)) as writer:
        for vector in (axis(0, 1), axis(1)):
            writer.add_embedded([doc("a")], {"a": pieces([vector])}, MODEL)
        writer.commit()
    (found,) = passages(tmp_path).nearest(asked(axis(1)), ANYBODY)
    assert [near.cosine for near in found.near] == pytest.approx([1.0], abs=1e-6)


# --- what is refused --------------------------------------------------------------------------------------------------

BAD: Mapping[str, Callable[[], Mapping[str, Sequence[PieceVector]]]] = {
    "a vector of the wrong size": lambda: {"a": [PieceVector(0, 9, unit_vector([1.0] * 5))]},
    "a vector with a value that is no number": lambda: {"a": [PieceVector(0, 9, spoilt(math.nan))]},
    "a vector with an infinite value": lambda: {"a": [PieceVector(0, 9, spoilt(math.inf))]},
    "a piece of a document that is not there": lambda: {"b": pieces([axis(1)])},
    "a place beyond the text": lambda: {"a": [PieceVector(0, 1001, axis(1))]},
    "a place before the text": lambda: {"a": [PieceVector(-1, 5, axis(1))]},
    "an empty place": lambda: {"a": [PieceVector(5, 5, axis(1))]},
}


def spoilt(number: float) -> Vector:
    vector = axis(1, 1)
    vector[1] = number
    return vector


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_what_cannot_be_a_piece_is_refused_and_the_index_stays_as_it_was(
    tmp_path: Path, bad: Callable[[], Mapping[str, Sequence[PieceVector]]]
) -> None:
    write(tmp_path, [doc("old")], {"old": [axis(1)]})
    with closing(EmbeddedWriter(tmp_path)) as writer:
        with pytest.raises(EmbeddingsGarbled):
            writer.add_embedded([doc("a")], bad(), MODEL)
        writer.commit()
    assert ids(passages(tmp_path).nearest(asked(axis(1)), ANYBODY)) == ["old"]


@pytest.mark.parametrize("size", [5, 7])
def test_a_question_of_another_size_is_refused(tmp_path: Path, size: int) -> None:
    write(tmp_path, [doc("a")], {"a": [axis(1)]})
    with pytest.raises(EmbeddingsGarbled):
        passages(tmp_path).nearest(asked(unit_vector([1.0] * size)), ANYBODY)


def test_an_index_without_vectors_says_so(tmp_path: Path) -> None:
    with closing(EmbeddedWriter(tmp_path)) as writer:
        writer.add([doc("a")])
        writer.commit()
    index = passages(tmp_path)
    with pytest.raises(SearchUnavailable):
        index.nearest(asked(axis(1)), ANYBODY)
    assert "no vectors" in (index.probe(MODEL) or "")


def test_another_model_is_named_until_everything_was_indexed_with_it(tmp_path: Path) -> None:
    other = replace(MODEL, key="other", spread=0.05)
    # The model does not know the language of "c".
    write(tmp_path, [doc("a"), doc("b"), doc("c")], {"a": [axis(1)], "b": [axis(1)]})
    index = passages(tmp_path)
    with closing(EmbeddedWriter(tmp_path)) as writer:
        assert writer.unembedded(MODEL) == 0
    assert index.probe(MODEL) is None and "index the documents again" in (index.probe(other) or "")
    with pytest.raises(EmbeddingsMismatch):
        index.nearest(replace(asked(axis(1)), model_key="other"), ANYBODY)
    write(tmp_path, [doc("a")], {"a": [axis(1)]}, other)
    with closing(EmbeddedWriter(tmp_path)) as writer:
        assert writer.unembedded(other) == 1
    assert ids(index.nearest(asked(axis(1)), ANYBODY)) == ["b"]  # the service goes on with the model it has
    write(tmp_path, [doc("b")], {"b": [axis(1)]}, other)
    assert ids(index.nearest(replace(asked(axis(1)), model_key="other"), ANYBODY)) == ["a", "b"]
    assert (index.spread(other), index.spread(MODEL)) == (0.05, None)
    assert "index the documents again" in (index.probe(MODEL) or "")
    assert len(list(tmp_path.glob("vectors-*.bin"))) == 1


def test_two_models_between_two_commits_are_refused(tmp_path: Path) -> None:
    with closing(EmbeddedWriter(tmp_path)) as writer:
        writer.add_embedded([doc("a")], {"a": pieces([axis(1)])}, MODEL)
        with pytest.raises(EmbeddingsMismatch):
            writer.add_embedded([doc("b")], {"b": pieces([axis(1)])}, replace(MODEL, key="other"))


@pytest.mark.parametrize("size", [None, 0, 9000])
def test_a_model_without_a_usable_size_is_refused(tmp_path: Path, size: int | None) -> None:
    with closing(EmbeddedWriter(tmp_path)) as writer, pytest.raises(EmbeddingsGarbled):
        writer.add_embedded([doc("a")], {"a": pieces([axis(1)])}, replace(MODEL, dimensions=size))


# --- the files --------------------------------------------------------------------------------------------------------


def test_what_was_not_committed_leaves_no_file(tmp_path: Path) -> None:
    write(tmp_path, [doc("a")], {"a": [axis(1)]})
    before = {path.name for path in tmp_path.glob("vectors*")}
    with closing(EmbeddedWriter(tmp_path)) as writer:
        writer.add_embedded([doc("b")], {"b": pieces([axis(1)])}, MODEL)
    assert {path.name for path in tmp_path.glob("vectors*")} == before
    assert ids(passages(tmp_path).nearest(asked(axis(1)), ANYBODY)) == ["a"]


def test_a_file_that_a_crash_left_is_removed_by_the_next_writer(tmp_path: Path) -> None:
    write(tmp_path, [doc("a")], {"a": [axis(1)]})
    (tmp_path / "vectors-0123.bin").write_bytes(b"half a file")
    write(tmp_path, [doc("b")], {"b": [axis(1)]})
    assert not (tmp_path / "vectors-0123.bin").exists()
    assert ids(passages(tmp_path).nearest(asked(axis(1)), ANYBODY)) == ["a", "b"]


def test_vectors_listed_by_a_commit_that_never_came_are_found_by_nobody(tmp_path: Path) -> None:
    write(tmp_path, [doc("a")], {"a": [axis(1)]})
    writer = EmbeddedWriter(tmp_path)
    writer.add_embedded([doc("b")], {"b": pieces([axis(1)])}, MODEL)
    writer._vectors.secure([1], 2)  # type: ignore[union-attr] # as far as a killed commit may come
    writer.close()
    assert ids(passages(tmp_path).nearest(asked(axis(1)), ANYBODY)) == ["a"]
    write(tmp_path, [doc("c")], {"c": [axis(1)]})
    assert ids(passages(tmp_path).nearest(asked(axis(1)), ANYBODY)) == ["a", "c"]


def test_each_commit_leaves_one_matrix_of_what_is_there_and_a_reader_that_is_open_goes_on(tmp_path: Path) -> None:
    index = passages(tmp_path)
    for number in range(12):
        name = f"d{number % 5}"
        write(tmp_path, [doc(name)], {name: [axis(1, number)]})
        assert len(index.nearest(asked(axis(1), 9), ANYBODY)) == min(number + 1, 5)
    (matrix,) = listed(tmp_path)
    # The rows that a commit replaces stay until the next one: a crash in between needs them.
    assert {path.name for path in tmp_path.glob("vectors-*.bin")} == {matrix.file} and matrix.rows <= 6


def test_the_number_of_a_document_that_is_gone_is_not_given_again(tmp_path: Path) -> None:
    """Its vectors may still be there, and must not be those of another one."""
    write(tmp_path, [doc("a")], {"a": [axis(1)]})
    with closing(EmbeddedWriter(tmp_path)) as writer:
        writer.delete(["a"])
        writer.commit()
    with closing(EmbeddedWriter(tmp_path)) as writer:
        writer.add([doc("b")])
        writer.commit()
    assert passages(tmp_path).nearest(asked(axis(1)), ANYBODY) == ()


DAMAGE: Mapping[str, Callable[[Path], object]] = {
    "a file that is cut": lambda folder: vectors_in(folder).write_bytes(vectors_in(folder).read_bytes()[:-1]),
    "a file that is gone": lambda folder: vectors_in(folder).unlink(),
    "a file that was changed": lambda folder: vectors_in(folder).write_bytes(bytes(vectors_in(folder).stat().st_size)),
    "a list that is no JSON": lambda folder: (folder / VECTORS_FILE).write_text("{"),
    "a list that is no object": lambda folder: (folder / VECTORS_FILE).write_text("[]"),
    "a list of another version": lambda folder: (folder / VECTORS_FILE).write_text('{"form": 99}'),
    "a list without its parts": lambda folder: (folder / VECTORS_FILE).write_text('{"form": 2}'),
}


def vectors_in(folder: Path) -> Path:
    return next(iter(sorted(folder.glob("vectors-*.bin"))))


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_damaged_vectors_are_named_and_words_are_searched_all_the_same(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    write(tmp_path, [doc("a")], {"a": [axis(1)]})
    damage(tmp_path)
    with pytest.raises((SearchUnavailable, EmbeddingsGarbled)) as caught:
        passages(tmp_path).nearest(asked(axis(1)), ANYBODY)
    assert "index the files again" in caught.value.reason
    retriever = EmbeddedRetriever(tmp_path)
    assert retriever.probe() is None and retriever.fetch("a", "exactContent", ANYBODY) is not None
