from __future__ import annotations

import weakref

import pytest

from datafari_rag.core.citations.resolution import resolve, seen_of
from datafari_rag.core.citations.verification import CheckedExtract, ComparedText
from datafari_rag.core.documents import Citation, Document, Extract, Passage
from datafari_rag.core.passages.extracts import extracts_for

PLAN = Document(
    "plan",
    "The plan covers dental care up to $1,500 per year.\nVision is not covered by the plan. "
    "Employees en\u00adrol within 30 days of hiring.\n\nThe “Gold” option costs 45 euros, 10² points. "
    "People who are unable to pay 15 euros may ask. Nobody is required to attend the quarterly meetings.\n"
    "Secret: the code is 1234.",
    title="Plan [final].pdf",
    url="file:///plan.pdf",
)
LEAVE = Document("leave", "Le congé annuel est de 25 jours. L’employé n’a pas droit au télétravail.", title="Congés")
END = PLAN.text.index("\nSecret")
EXTRACTS = extracts_for(
    [(PLAN, (Passage(0, END),)), (LEAVE, (Passage(0, len(LEAVE.text)),))],
    is_cleaned=True,
)


def proofs(answer: str, language: str = "en") -> list[tuple[str, str | None]]:
    return [(citation.status, citation.quote) for citation in resolve(answer, EXTRACTS, language=language)]


@pytest.mark.parametrize(
    ("answer", "quote"),
    [
        pytest.param(
            "“Employees enrol within 30 days of hiring” [1].",
            "Employees en\u00adrol within 30 days of hiring.",
            id="quoted",
        ),
        pytest.param("Vision is not covered by the plan [1].", "Vision is not covered by the plan.", id="not quoted"),
        pytest.param("«vision is not  covered by  plan» [1]", "Vision is not covered by the plan.", id="no article"),
        pytest.param('“The "gold" option costs 45 euros” 【1】', "Gold” option costs 45 euros", id="marks inside"),
        pytest.param(
            'The document says that "Vision is not covered by the plan" [1]',
            "Vision is not covered by the plan.",
            id="behind a frame",
        ),
        pytest.param(
            "Per [Plan [final].pdf], vision is not covered by the plan.",
            "Vision is not covered by the plan.",
            id="after",
        ),
        pytest.param(
            "Vision is not covered by the plan (see [1]).", "Vision is not covered by the plan.", id="in brackets"
        ),
        pytest.param(
            "“Vision is not covered by the plan. Employees enrol within 30 days of hiring” [1]",
            "Vision is not covered by the plan. Employees en\u00adrol within 30 days of hiring.",
            id="two sentences",
        ),
    ],
)
def test_what_is_one_stretch_of_a_sentence_is_verified(answer: str, quote: str) -> None:
    assert proofs(answer) == [("verified", quote)]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param('"covers dental care up to $2,500" [1]', id="another number"),
        pytest.param('"covered by the plan" [1]', id="cut from behind a negation"),
        pytest.param('It "covers dental care up to $1,500" [1].', id="cut out of a sentence"),
        pytest.param('"able to pay" [1]', id="cut out of a word that says the contrary"),
        pytest.param('It pays "$1" [1]', id="a number cut short"),
        pytest.param('"The plan covers dental care. Employees enrol" [1]', id="stitched"),
        pytest.param('"Le congé annuel est de 25 jours" [1]', id="of another document"),
        pytest.param('"the code is 1234" [1]', id="of a part that the model did not see"),
        pytest.param('"covers dental care up to" and "for life" [1]', id="one of two"),
        pytest.param('"!!!" is what the plan says of vision [1]', id="nothing to look for"),
        pytest.param("Dental care is covered for pets [1].", id="a word too many"),
        pytest.param("Vision is not covered [1].", id="an end inside of a clause"),
        pytest.param("Vision is not covered, employees enrol within 30 days of hiring [1].", id="half of each of two"),
        pytest.param("[1]", id="no words at all"),
    ],
)
def test_what_differs_is_not_proved(answer: str) -> None:
    assert {status for status, _ in proofs(answer)} <= {"unsupported", "near"}


@pytest.mark.parametrize(
    ("answer", "quote"),
    [
        pytest.param(
            '"Vision is covered by the plan" [1]', "Vision is not covered by the plan.", id="a negation left out"
        ),
        pytest.param(
            '"Gold" option costs 54 euros, 10² points [1]',
            "The “Gold” option costs 45 euros, 10² points.",
            id="a number",
        ),
    ],
)
def test_one_difference_that_cannot_be_true_as_well_contradicts(answer: str, quote: str) -> None:
    assert proofs(answer) == [("contradicted", quote)]


@pytest.mark.parametrize("answer", ["Gold [1].", '"Gold" [1]', "45 euros [1]."])
def test_a_bare_name_or_fragment_claims_nothing(answer: str) -> None:
    (citation,) = resolve(answer, EXTRACTS)
    assert (citation.status, citation.claim, citation.quote) == ("unsupported", "", None)


def test_a_long_quotation_that_differs_at_its_end_is_soon_given_up() -> None:
    """With two ways to match the text between words, this would try all of their combinations."""
    document = Document("d", "again and again, " * 70 + "for ever.")
    shown = extracts_for([(document, (Passage(0, len(document.text)),))], is_cleaned=True)
    said = f"“{'again and again ' * 45}never” [1]"
    assert [citation.status for citation in resolve(said, shown)] == ["unsupported"]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        pytest.param(
            "Holiday rules. Everybody has 25 days.", "Holiday rules. Everybody has 25 days.", id="a short one"
        ),
        pytest.param("Is it free? Yes. The guide is free too.", "Yes. The guide is free too.", id="one word"),
        pytest.param("\ufeffThe ferry leaves at nine.", "The ferry leaves at nine.", id="behind a byte order mark"),
        pytest.param("^ The ferry leaves at nine.", "^ The ferry leaves at nine.", id="a note"),
        pytest.param("## Where the ferry leaves", "## Where the ferry leaves", id="a heading"),
        pytest.param("Cats, dogs, mice… The ferry leaves at nine.", "The ferry leaves at nine.", id="behind dots"),
        pytest.param("The ferry leaves some time…", "The ferry leaves some time…", id="with dots"),
    ],
)
def test_a_quotation_of_whole_sentences_is_verified_whatever_they_are(document: str, said: str) -> None:
    shown = extracts_for([(Document("d", document, title=document), (Passage(0, len(document)),))], is_cleaned=True)
    assert [one.status for one in resolve(f"“{said}” [1]", shown)] == ["verified"]


def test_a_short_sentence_is_proved_beside_its_neighbour_alone() -> None:
    text = "Dogs bark. The ferry leaves at nine. Nobody pays. The bus is late. The ferry came."
    shown = extracts_for([(Document("d", text), (Passage(0, len(text)),))], is_cleaned=True)
    for said in ("Dogs bark. The bus is late.", "Nobody pays. The ferry leaves at nine.", "Dogs bark. Nobody pays."):
        assert next(one.status for one in resolve(f"“{said}” [1]", shown)) not in ("verified", "supported"), said


def test_claims_of_the_same_sentence_have_the_same_place() -> None:
    first, second = proofs("Vision is not covered by the plan [1]. Yes, vision is not covered by the plan [1].")
    assert first == second == ("verified", "Vision is not covered by the plan.")


def test_french_is_compared_as_french() -> None:
    answer = "Congé annuel est de 25 jours [Congés]. L’employé a droit au télétravail [2]."
    assert [status for status, _ in proofs(answer, "fr")] == ["verified", "contradicted"]


def test_every_mark_has_its_citation_in_order() -> None:
    answer = "Vision is not covered by the plan [1][Nowhere.pdf]. Dogs bark at night [1, 2].\n```\n[2]\n```"
    assert [(citation.label, citation.status) for citation in resolve(answer, EXTRACTS)] == [
        ("Plan final.pdf", "verified"),
        ("Nowhere.pdf", "unknown"),
        ("Plan final.pdf", "unsupported"),
        ("Congés", "unsupported"),
    ]


def test_what_is_not_known_is_null() -> None:
    answer = "Vision is not covered by the plan [1]. Dogs bark at night [1]. Cats [X.pdf]."
    verified, unsupported, unknown = resolve(answer, EXTRACTS)
    assert verified == Citation(
        "Plan final.pdf",
        "verified",
        "plan",
        answer_start=34,
        answer_end=37,
        claim="Vision is not covered by the plan.",
        url="file:///plan.pdf",
        title="Plan [final].pdf",
        field="exactContent",
        start=51,
        end=85,
        quote="Vision is not covered by the plan.",
    )
    assert unsupported == Citation(
        "Plan final.pdf",
        "unsupported",
        "plan",
        answer_start=58,
        answer_end=61,
        claim="Dogs bark at night.",
        url="file:///plan.pdf",
        title="Plan [final].pdf",
    )
    assert unknown == Citation("X.pdf", "unknown", answer_start=68, answer_end=75, claim="Cats.")


@pytest.mark.parametrize(
    ("answer", "marks"),
    [
        pytest.param("Vision is not covered [1]. Dogs [1, 2].", ["[1]", "[1, 2]", "[1, 2]"], id="plain ones"),
        pytest.param(
            "\n🦒 Dogs bark [1].\n\nCats 【2】 purr.", ["[1]", "【2】"], id="behind what takes two code units"
        ),
        pytest.param("As [Congés](file:///plan.pdf) says.", ["[Congés](file:///plan.pdf)"], id="with a link's target"),
        pytest.param("“Vision [1] is” `[1]` [X.pdf]", ["[1]", "[X.pdf]"], id="one in code is none"),
    ],
)
def test_each_citation_has_the_place_of_its_mark(answer: str, marks: list[str]) -> None:
    found = resolve(answer, EXTRACTS)
    assert [answer[citation.answer_start : citation.answer_end] for citation in found] == marks


@pytest.mark.parametrize(
    ("places", "place", "page"),
    [
        pytest.param("0 page 3\n40 page 4", "p. 3", 3, id="the page that it begins on"),
        pytest.param("0 slide 3\n40 slide 4", "Slide 3", None, id="a slide is no page"),
        pytest.param(None, None, None, id="none is known"),
    ],
)
def test_a_citation_names_its_place_in_the_file(places: str | None, place: str | None, page: int | None) -> None:
    text = "Dogs bark at the moon. Cats sleep all day in the shade."
    extracts = extracts_for([(Document("d", text, places=places), (Passage(0, len(text)),))], is_cleaned=True)
    proved, unsupported = resolve("Cats sleep all day in the shade [1]. Cows fly [1].", extracts)
    assert (proved.place, proved.page) == (place, page)
    assert (unsupported.place, unsupported.page) == (None, None)


def test_what_is_shown_and_followed_of_a_document_is_harmless() -> None:
    hostile = Document("d", "Cats sleep all day.", title="a\u202eb", url="javascript:alert(1)")
    (citation,) = resolve("Cats sleep all day [1].", extracts_for([(hostile, (Passage(0, 19),))], is_cleaned=True))
    assert (citation.title, citation.url) == ("ab", None)


def test_brackets_in_quoted_words_are_the_documents_own() -> None:
    text = "Viruses spread fast [3], as a study of bats shows."
    extracts = extracts_for([(Document("d", text), (Passage(0, len(text)),))], is_cleaned=True)
    (citation,) = resolve(f"“{text}” [1]", extracts)
    assert (citation.status, citation.quote) == ("verified", text)


def test_brackets_in_words_that_were_quoted_with_a_link_less_are_the_documents_own() -> None:
    text = "The account is 6666 [1] [2] [Plan](#) now."
    extracts = extracts_for([(Document("d", text), (Passage(0, len(text)),))], is_cleaned=True)
    answer = "“The account is 6666 [1] [2] [Plan] now.” [1]"
    assert [citation.answer_start for citation in resolve(answer, extracts)] == [len(answer) - 3]
    assert [citation.answer_start for citation in resolve("“It is 6666 [3] now.” [1]", extracts)] == [12, 22]


def test_words_that_stand_on_both_sides_of_a_joint_are_not_a_quotation() -> None:
    extracts = extracts_for([(PLAN, (Passage(0, 50), Passage(86, 128)))], is_cleaned=True)
    assert " … " in extracts[0].text
    (citation,) = resolve("“per year. … Employees enrol” [1]", extracts)
    assert citation.status == "unsupported"


def test_what_the_model_did_not_see_proves_nothing() -> None:
    for seen, status in ((Passage(0, len(PLAN.text)), "verified"), (Passage(4, 31), "unsupported")):
        (citation,) = resolve(
            "The plan covers dental care up to $1,500 per year [1].", extracts_for([(PLAN, (seen,))], is_cleaned=True)
        )
        assert citation.status == status


def test_what_the_model_saw_proves_what_stands_unseen_above_it_too() -> None:
    text = "The ferry leaves at nine. Dogs are not allowed. The ferry leaves at nine."
    seen = Passage(4, 9), Passage(text.rindex("The"), len(text))
    (citation,) = resolve("The ferry leaves at nine [1].", extracts_for([(Document("d", text), seen)], is_cleaned=True))
    assert (citation.status, citation.start) == ("verified", text.rindex("The"))


def test_snippets_are_quoted_from_what_the_reply_shows() -> None:
    for text, status in (
        ("The <em>plan</em> covers R&amp;D costs.", "verified"),
        ("plan covers R&amp;D costs.", "near"),
        ("The plan covers R&amp;D costs … of last year.", "near"),
    ):
        document = Document("d", text, field="highlighting", title="T")
        extracts = extracts_for([(document, (Passage(0, len(text)),))], is_cleaned=True)
        (citation,) = resolve("“The plan covers R&D costs” [T]", extracts)
        assert citation.status == status
        assert citation.quote == extracts[0].text[citation.start : citation.end] == extracts[0].text.strip()


@pytest.mark.parametrize(
    ("text", "answer", "status"),
    [
        pytest.param("该计划不包括视力检查。", "“包括视力检查” [1]", "unsupported", id="a Chinese negation cut off"),
        pytest.param("该计划包括视力检查。", "“该计划包括视力检查” [1]", "verified", id="a script without spaces"),
        pytest.param("Eine ﬂotte Fahrt.", "“lotte Fahrt” [1]", "unsupported", id="half a ligature"),
        pytest.param("Eine ﬂotte Fahrt.", "“Eine flotte Fahrt” [1]", "verified", id="a ligature"),
        pytest.param("The cats sleep all day. " * 300, "“The cats sleep all day” [1]", "verified", id="one of many"),
        pytest.param(
            "incorrectly handled requests are void.",
            "“correctly handled requests are void” [1]",
            "unsupported",
            id="a prefix",
        ),
    ],
)
def test_a_quotation_is_made_of_whole_words(text: str, answer: str, status: str) -> None:
    extracts = extracts_for([(Document("d", text), (Passage(0, len(text)),))], is_cleaned=True)
    assert [citation.status for citation in resolve(answer, extracts)] == [status]


def test_sentences_that_stand_together_are_one_place_also_where_each_stands_elsewhere_too() -> None:
    start, twice = "The default is one minute.", "It can only be set at the start."
    text = f"The port is a number. {twice}\n\nThe nap is a time.\n\n{start}\n{twice}"
    extracts = extracts_for([(Document("d", text), (Passage(0, len(text)),))], is_cleaned=True)

    (citation,) = resolve(f"“{start}\n{twice}” [1].", extracts)

    assert (citation.status, citation.quote) == ("verified", f"{start}\n{twice}")


def test_without_brackets_or_documents_there_is_nothing_to_resolve() -> None:
    assert resolve("No marks.", EXTRACTS) == ()
    assert [citation.status for citation in resolve("A mark [1].", ())] == ["unknown"]


def test_behind_the_work_of_an_answer_nothing_is_proved() -> None:
    """Words that both sides have over and over are the most work there is: it is bounded for all claims together."""
    claim = "So " + " ".join(f"a{n % 2} b{n % 3}" for n in range(113)) + " end"
    place = "So " + " ".join(f"a{n % 2} b{n % 3}" for n in range(1, 113)) + " stop. "
    text = f"Cats sleep all day. Dogs run at night.\n\n{place * 40}"
    extracts = extracts_for([(Document("d", text), (Passage(0, len(text)),))], is_cleaned=True)
    answer = f"Cats sleep all day [1]. {claim} [1]. Dogs run at night [1]."
    for most, status in ((5_000, "unsupported"), (10_000, "verified")):
        first, _, last = resolve(answer, extracts, sources=seen_of(extracts, ComparedText("en", most)))
        assert (first.claim, first.status) == ("Cats sleep all day.", "verified")
        assert (last.claim, last.status) == ("Dogs run at night.", status)


def test_an_extract_without_a_way_back_proves_nothing() -> None:
    extract = Extract(1, "A", Document("a", "Cats sleep all day long."), (), "Cats sleep all day long.")
    assert [c.status for c in resolve("“Cats sleep all day” [1]. Cats sleep [1].", [extract])] == ["unsupported"] * 2


@pytest.mark.parametrize("claim", ["Vision is not covered by the plan.", "The Gold option costs 46 euros."])
def test_a_document_is_freed_with_the_last_who_asks_what_it_says(claim: str) -> None:
    checked = CheckedExtract(EXTRACTS[0], ComparedText("en"))
    checked.finding(claim)
    checked.nearest(claim)
    left = weakref.ref(checked)

    del checked

    assert left() is None  # at once: no circle keeps the text until the next collection
