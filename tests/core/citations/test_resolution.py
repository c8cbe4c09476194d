from __future__ import annotations

import pytest

from datafari_rag.core.citations.resolution import resolve
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
        pytest.param('It "covers dental care up to $1,500" [1].', "covers dental care up to $1,500", id="straight"),
        pytest.param("“EMPLOYEES ENROL WITHIN 30 DAYS” [1]", "Employees en\u00adrol within 30 days", id="soft hyphen"),
        pytest.param("«per year.  Vision is» [1]", "per year.\nVision is", id="over a line end"),
        pytest.param('“the "gold" option costs” 【1】', "The “Gold” option costs", id="marks inside"),
        pytest.param('Only "Gold" costs 45 euros [1]', "Gold", id="one word, and the rest is carried"),
        pytest.param('"Gold" [1]', "Gold", id="one word and nothing else"),
        pytest.param('It is not "covered by the plan" [1]', "covered by the plan", id="with the negation before it"),
        pytest.param('"within 30 days," he says [1]', "within 30 days", id="a comma inside the marks"),
        pytest.param('"Vision" and "covered by the plan" are not one [1]', "covered by the plan", id="the longest"),
    ],
)
def test_quoted_words_that_are_there_are_verified(answer: str, quote: str) -> None:
    assert proofs(answer) == [("verified", quote)]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param('"covers dental care up to $2,500" [1]', id="another number"),
        pytest.param('"Vision is covered by the plan" [1]', id="a negation left out"),
        pytest.param('"covered by the plan" [1]', id="cut from behind a negation"),
        pytest.param('"able to pay" [1]', id="cut out of a word that says the contrary"),
        pytest.param('"5 euros" [1]', id="cut out of a number"),
        pytest.param('It pays "$1" [1]', id="a number cut short"),
        pytest.param('"102 points" [1]', id="a power flattened"),
        pytest.param('"The plan covers dental care. Employees enrol" [1]', id="stitched"),
        pytest.param('"The plan covers … within 30 days" [1]', id="stitched with dots"),
        pytest.param('"Le congé annuel est de 25 jours" [1]', id="of another document"),
        pytest.param('"the code is 1234" [1]', id="of a part that the model did not see"),
        pytest.param('"Gold" costs 54 euros [1]', id="one word, and the rest is not carried"),
        pytest.param('"covers dental care up to" and "for life" [1]', id="one of two"),
        pytest.param('"!!!" is what the plan says of vision [1]', id="nothing to look for"),
    ],
)
def test_quoted_words_that_are_not_there_prove_nothing(answer: str) -> None:
    assert proofs(answer) == [("unsupported", None)]


@pytest.mark.parametrize(
    ("answer", "quote"),
    [
        pytest.param("Vision is not covered [1].", "Vision is not covered by the plan.", id="a sentence"),
        pytest.param("Dental care is covered for pets [1].", None, id="a word too many"),
        pytest.param(
            "Dental care is covered per year, employees enrol within 30 days [1].", None, id="facts far from each other"
        ),
        pytest.param("Vision is covered by the plan [1].", None, id="the contrary"),
        pytest.param('"Vision is not covered, by the plan" [1]', "Vision is not covered by the plan", id="other signs"),
        pytest.param("The “Plan final.pdf” covers dental care [1].", PLAN.text[:50], id="the label is no quotation"),
        pytest.param(
            "Per [Plan [final].pdf], vision is not covered.", "Vision is not covered by the plan.", id="after"
        ),
        pytest.param("[1]", None, id="no words at all"),
    ],
)
def test_a_claim_is_supported_by_the_sentence_that_has_its_facts(answer: str, quote: str | None) -> None:
    assert proofs(answer) == [("unsupported", None) if quote is None else ("supported", quote)]


@pytest.mark.parametrize(
    ("quote", "status"),
    [
        pytest.param("please write to help-desk@example.org.", "supported", id="an address without its brackets"),
        pytest.param("A dose of 1.5 mg is <given> twice", "supported", id="brackets put in"),
        pytest.param("A dose of 1, 5 mg is given twice", "unsupported", id="a number taken apart"),
        pytest.param("twice if the load is 5", "unsupported", id="a sign of arithmetic left out"),
    ],
)
def test_other_signs_are_forgiven_where_they_change_nothing(quote: str, status: str) -> None:
    document = Document(
        "d", "Then please write to <help-desk@example.org>. A dose of 1.5 mg is given twice if the load is < 5."
    )
    shown = extracts_for([(document, (Passage(0, len(document.text)),))], is_cleaned=True)
    assert [citation.status for citation in resolve(f"“{quote}” [1]", shown)] == [status]


def test_a_long_quotation_that_differs_at_its_end_is_soon_given_up() -> None:
    """With two ways to match the text between words, this would try all of their combinations."""
    document = Document("d", "again and again, " * 70 + "for ever.")
    shown = extracts_for([(document, (Passage(0, len(document.text)),))], is_cleaned=True)
    said = f"“{'again and again ' * 45}never” [1]"
    assert [citation.status for citation in resolve(said, shown)] == ["unsupported"]


def test_two_neighbouring_sentences_may_carry_a_claim_together() -> None:
    ((status, quote),) = proofs("Vision is not covered, employees enrol within 30 days [1].")
    assert status == "supported"
    assert quote == "Vision is not covered by the plan. Employees en\u00adrol within 30 days of hiring."


def test_claims_of_the_same_sentence_have_the_same_place() -> None:
    first, second = proofs("Vision is not covered [1]. The plan does not cover vision [1].")
    assert first == second == ("supported", "Vision is not covered by the plan.")


def test_french_is_compared_as_french() -> None:
    answer = "Le congé est de 25 jours [Congés]. L’employé a droit au télétravail [2]."
    assert [status for status, _ in proofs(answer, "fr")] == ["supported", "unsupported"]


def test_every_mark_has_its_citation_in_order() -> None:
    answer = "Vision is not covered [1][Nowhere.pdf]. Dogs bark [1, 2].\n```\n[2]\n```"
    assert [(citation.label, citation.status) for citation in resolve(answer, EXTRACTS)] == [
        ("Plan final.pdf", "supported"),
        ("Nowhere.pdf", "unknown"),
        ("Plan final.pdf", "unsupported"),
        ("Congés", "unsupported"),
    ]


def test_what_is_not_known_is_null() -> None:
    supported, unsupported, unknown = resolve("Vision is not covered [1]. Dogs bark [1]. Cats [X.pdf].", EXTRACTS)
    assert supported == Citation(
        "Plan final.pdf",
        "supported",
        "plan",
        answer_start=22,
        answer_end=25,
        claim="Vision is not covered.",
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
        answer_start=37,
        answer_end=40,
        claim="Dogs bark.",
        url="file:///plan.pdf",
        title="Plan [final].pdf",
    )
    assert unknown == Citation("X.pdf", "unknown", answer_start=47, answer_end=54, claim="Cats.")


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


def test_what_is_shown_and_followed_of_a_document_is_harmless() -> None:
    hostile = Document("d", "Cats sleep.", title="a\u202eb", url="javascript:alert(1)")
    (citation,) = resolve("Cats sleep [1].", extracts_for([(hostile, (Passage(0, 11),))], is_cleaned=True))
    assert (citation.title, citation.url) == ("ab", None)


def test_brackets_in_quoted_words_are_the_documents_own() -> None:
    text = "Viruses spread fast [3], says the study of bats."
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


def test_a_sentence_is_cut_to_what_the_model_saw() -> None:
    extracts = extracts_for([(PLAN, (Passage(4, 31),))], is_cleaned=True)
    (citation,) = resolve("The plan covers dental care [1].", extracts)
    assert citation.quote == "plan covers dental care up "


def test_snippets_are_quoted_from_what_the_reply_shows() -> None:
    text = "The <em>plan</em> covers R&amp;D costs."
    document = Document("d", text, field="highlighting", title="T")
    extracts = extracts_for([(document, (Passage(0, len(text)),))], is_cleaned=True)
    (citation,) = resolve("“covers R&D costs” [T]", extracts)
    assert (citation.status, citation.field) == ("verified", "highlighting")
    assert extracts[0].text[citation.start : citation.end] == citation.quote == "covers R&D costs"


@pytest.mark.parametrize(
    ("text", "answer", "status"),
    [
        pytest.param("该计划不包括视力检查。", "“包括视力检查” [1]", "unsupported", id="a Chinese negation cut off"),
        pytest.param("该计划包括视力检查。", "“包括视力检查” [1]", "verified", id="words of a script without spaces"),
        pytest.param("Eine ﬂotte Fahrt.", "“lotte Fahrt” [1]", "unsupported", id="half a ligature"),
        pytest.param("no cats. " * 300, "“no cats. no cats” [1]", "verified", id="one place of many"),
        pytest.param("no cats. " * 300, "“cats” [1]", "unsupported", id="none of many places"),
        pytest.param(
            "incorrectly handled requests are void.",
            "“correctly handled requests are” [1]",
            "unsupported",
            id="a long quotation cut out of the contrary",
        ),
        pytest.param(
            "The rehandled requests are void now.",
            "“handled requests are void now” [1]",
            "verified",
            id="a long quotation cut out of another word",
        ),
    ],
)
def test_a_quotation_must_stand_by_itself(text: str, answer: str, status: str) -> None:
    extracts = extracts_for([(Document("d", text), (Passage(0, len(text)),))], is_cleaned=True)
    assert [citation.status for citation in resolve(answer, extracts)] == [status]


def test_without_brackets_or_documents_there_is_nothing_to_resolve() -> None:
    assert resolve("No marks.", EXTRACTS) == ()
    assert [citation.status for citation in resolve("A mark [1].", ())] == ["unknown"]


def test_an_extract_without_a_way_back_proves_nothing() -> None:
    extract = Extract(1, "A", Document("a", "Cats sleep all day long."), (), "Cats sleep all day long.")
    assert [c.status for c in resolve("“Cats sleep all day” [1]. Cats sleep [1].", [extract])] == ["unsupported"] * 2
