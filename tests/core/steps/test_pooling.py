from __future__ import annotations

from datafari_rag.core.documents import Document, Nearness
from datafari_rag.core.evidence.scoring import weigh
from datafari_rag.core.steps import CHOSEN, Lead, lead_from, pooled

QUESTION = "When was the singer of Diamond Cut born?"
SONG = Document("song", 'The album "Diamond Cut" was recorded by Bonnie Tyler.', title="Diamond Cut", score=9.0)
OTHER = Document("other", "A gem is cut by a jeweller.", title="Gems", score=3.0)
TYLER = Document("tyler", "Gaynor Hopkins was born on 8 June 1951.", title="Bonnie Tyler (singer)", score=4.0)
NOISE = Document("noise", "Tyler is a town.", title="Towns", score=4.0)


def order(*results: tuple[Document, ...], leads: tuple[Lead, ...] = ()) -> list[str]:
    return [one.id for one in pooled(QUESTION, results, leads=leads, language="en")]


def test_the_document_that_the_best_one_names_comes_second() -> None:
    lead = lead_from(QUESTION, SONG, language="en")
    assert order((SONG, OTHER), (NOISE, TYLER), leads=(lead,)) == ["song", "tyler", "noise", "other"]


def test_every_document_is_there_once_and_the_order_stays() -> None:
    documents = pooled(QUESTION, ((SONG, OTHER), (SONG, TYLER)), leads=(), language="en")

    assert sorted(one.id for one in documents) == ["other", "song", "tyler"]
    again = weigh(QUESTION, documents, language="en").order
    assert [one.document.id for one in again] == [one.id for one in documents]
    assert documents[0].score == SONG.score


def test_a_single_search_is_left_to_the_usual_order() -> None:
    assert all(one.rated is None for one in pooled(QUESTION, ((SONG, OTHER),), leads=(), language="en"))
    assert order((), ()) == []


def test_where_the_question_found_nothing_the_next_search_is_the_first() -> None:
    assert order((), (SONG,), (TYLER,))[0] == "song"


def test_documents_without_scores_and_titles_are_ordered_as_well() -> None:
    bare = tuple(Document(f"d{number}", f"text {number}") for number in range(CHOSEN + 5))
    found = pooled(QUESTION, ((SONG,), bare), leads=(Lead(SONG, ("The",), ("born",)),), language="en")

    assert len(found) == len(bare) + 1
    rated = [one.rated for one in found]
    assert rated == sorted(rated, key=lambda one: -(one or 0.0))


def test_nearness_in_meaning_counts_as_in_one_search() -> None:
    near = Document("near", "She came into the world in 1951.", near=(Nearness(0, 32, 9.0),), score=4.0)
    far = Document("far", "She came into a room in 1951.", near=(Nearness(0, 29, 1.0),), score=4.0)

    assert order((SONG,), (far, near)).index("near") < order((SONG,), (far, near)).index("far")


def test_a_title_named_by_a_later_document_counts_less() -> None:
    first, later = Lead(SONG, ("Bonnie", "Tyler"), ("born",)), Lead(OTHER, ("Towns",), ("born",))
    assert order((SONG, OTHER), (NOISE, TYLER), leads=(first, later))[1] == "tyler"


def test_a_text_of_names_does_not_win_by_its_title_alone() -> None:
    empty = Document("empty", "nothing", title="The", score=0.0)
    assert order((SONG,), (TYLER, empty), leads=(Lead(SONG, ("The", "Bonnie"), ("born",)),))[1] == "tyler"


def test_a_document_whose_title_the_question_holds_comes_before_one_that_only_fits_better() -> None:
    cut = Document("cut", "An album of ten songs.", title="Diamond Cut (album)", score=2.0)
    fits = Document("fits", "A town.", title="Towns", score=4.0)
    assert order((SONG,), (fits, cut)) == ["song", "cut", "fits"]
    apart = Document("apart", cut.text, title="Cut Diamond", score=2.0)
    assert order((SONG,), (fits, apart)) == ["song", "fits", "apart"], "its words stand apart in the question"


def test_of_documents_with_one_title_the_second_makes_room_for_another() -> None:
    towns = tuple(Document(f"t{number}", "A town.", title="Towns", score=4.0) for number in range(3))
    other = Document("o", "A town.", title="Other towns", score=3.9)
    assert order((SONG,), (*towns, other)) == ["song", "t0", "o", "t1", "t2"]


def test_documents_without_a_title_are_not_alike() -> None:
    bare = tuple(Document(f"b{number}", "A town.", score=4.0 - number / 100) for number in range(3))
    assert order((SONG,), bare) == ["song", "b0", "b1", "b2"]
