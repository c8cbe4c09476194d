"""What documents prove of a text: word for word, in part, much the same, or nothing; and which marks say so."""

from __future__ import annotations

import pytest

from datafari_rag.core.documents import HIGHLIGHTING, Document, Extract, Passage
from datafari_rag.core.errors import BadRequest
from datafari_rag.core.evidence.extracts import extracts_for
from datafari_rag.core.proof.checking import MAX_SENTENCES, Proof, checked_against, resolve
from datafari_rag.core.text.sentences import statements
from tests.core.hostile_claims import Case, written

LEAVE = "Employees get 30 days of leave, with the exception of interns."
TEXT = (
    f"The ferry to the island leaves at nine. {LEAVE} The notice must be in writing; e-mail is not enough.\n\n"
    "You must:\n- keep the receipt\n- write a letter to the office\n\n"
    "Country | Limit\nGermany | 110 euros\nFrance | 120 euros\n"
)


def seen(*texts: str) -> tuple[Extract, ...]:
    documents = [Document(str(number), text, title=f"Paper {chr(65 + number)}") for number, text in enumerate(texts)]
    return extracts_for([(one, (Passage(0, len(one.text)),)) for one in documents], is_cleaned=True)


def statuses(answer: str, *texts: str) -> list[str]:
    return [one.status for one in resolve(answer, seen(*(texts or (TEXT,))))]


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        pytest.param("The ferry to the island leaves at nine [1].", "verified", id="a whole sentence"),
        pytest.param("THE FERRY TO THE ISLAND LEAVES AT NINE [1].", "verified", id="in capitals"),
        pytest.param("“The ferry to the island leaves at nine.” [1]", "verified", id="quoted"),
        pytest.param("Employees get 30 days of leave [1].", "quoted", id="without its exception"),
        pytest.param("The notice must be in writing [1].", "quoted", id="before a semicolon"),
        pytest.param("- keep the receipt [1]", "quoted", id="an item without its introduction"),
        pytest.param("You must keep the receipt [1].", "verified", id="an item with its introduction"),
        pytest.param("You must:\n- keep the receipt [1]", "verified", id="the same list"),
        pytest.param("Germany | 110 euros [1]", "quoted", id="a row without its header"),
        pytest.param("Country: Germany; Limit: 110 euros [1].", "verified", id="a row with the names of its columns"),
        pytest.param("It says “the ferry to the island leaves” [1].", "quoted", id="a quotation with a few words"),
        pytest.param("The ferry for the island leaves daily at nine [1].", "near", id="other words"),
        pytest.param("The ferry to the island leaves at ten [1].", "unsupported", id="another number"),
        pytest.param("The ferry to the island does not leave at nine [1].", "unsupported", id="denied"),
        pytest.param("The ferry to the ~~island~~ leaves at nine [1].", "unsupported", id="struck out"),
        pytest.param("The ferry to the island leaves at nine [7].", "unknown", id="no such document"),
    ],
)
def test_a_sentence_is_judged_by_whole_statements(answer: str, status: str) -> None:
    assert statuses(answer) == [status]


def test_a_quote_is_the_whole_statement_with_the_words_and_what_introduces_it() -> None:
    leave, item = resolve("Employees get 30 days of leave [1].\n\n- keep the receipt [1]", seen(TEXT))
    assert (leave.quote, TEXT[leave.match_start : leave.match_end]) == (LEAVE, "Employees get 30 days of leave")
    assert (item.quote, item.context) == ("keep the receipt", "You must:")
    assert all(TEXT[one.start : one.end] == one.quote for one in (leave, item))


def test_near_says_which_words_differ_and_what_is_not_found_leads_to_the_nearest_place() -> None:
    near, lost = resolve(
        "The ferry for the isle leaves the island at nine [1]. The ferry leaves in May [1].", seen(TEXT)
    )
    assert (near.status, near.missing, near.added) == ("near", ("isle",), ())
    assert (lost.status, lost.quote) == ("unsupported", None)
    assert lost.start is not None and TEXT[lost.start : lost.end].startswith("The ferry")


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        pytest.param("The flexible office finds five flats.", "The ﬂexible oﬃce ﬁnds ﬁve ﬂats.", id="ligatures"),
        pytest.param("The US sends it to Rome.", "The U.S. sends it to Rome.", id="initials"),
        pytest.param(
            "The cooperation began in Paris.", "The coop\u00aderation began in Par\u00adis.", id="soft hyphens"
        ),
        pytest.param("Le cœur bat à Orléans.", "Le coeur bat à Orléans.", id="a letter for two"),
        pytest.param("Le café ouvre à Orléans.", "Le cafe\u0301 ouvre à Orle\u0301ans.", id="accents apart"),
    ],
)
def test_a_word_is_found_however_it_is_spelled(sentence: str, text: str) -> None:
    long = f"{'Nothing else is said of this here. ' * 20}\n\n{text}\n\nSomething else follows."
    assert [one.status for one in checked_against(sentence, [Document("d", long)]).sentences] == ["verified"]


def test_a_question_proves_nothing_but_itself() -> None:
    assert statuses("May dogs enter the cabin [1].", "May dogs enter the cabin?") == ["unsupported"]
    assert statuses("May dogs enter the cabin? [1]", "May dogs enter the cabin?") == ["verified"]


@pytest.mark.parametrize("heading", ["May dogs enter the cabin?", "## May dogs enter the cabin?"])
@pytest.mark.parametrize("sentence", ["Dogs may enter the cabin [1].", "Dogs enter the cabin [1]."])
def test_a_heading_that_asks_proves_nothing_either(heading: str, sentence: str) -> None:
    assert statuses(sentence, f"We sail at six.\n\n{heading}\n\nAsk the crew.") == ["unsupported"]


def test_at_the_edge_of_a_snippet_nothing_is_whole() -> None:
    document = Document("d", "the ferry leaves at nine. It is blue and new. It costs", field=HIGHLIGHTING)
    extracts = extracts_for([(document, (Passage(0, len(document.text)),))], is_cleaned=True)
    found = resolve("The ferry leaves at nine [1]. It is blue and new [1].", extracts)
    assert [one.status for one in found] == ["quoted", "verified"]


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ("The ferry leaves at nine [1][2].", [(25, "1"), (28, "2")]),
        ("The ferry leaves at nine [1, 2].", [(25, "1"), (25, "2")]),
        ("The ferry leaves at nine [1-2].", [(25, "1"), (25, "2")]),
        ("The ferry leaves at nine 【2†source】.", [(25, "2")]),
        ("The ferry leaves at nine [^1].", [(25, "1")]),
        ("The ferry leaves at nine **[1]**.", [(27, "1")]),
        ("See [the plan]\xa0(https://x/y), ! [it] \xa0(u) and [the plan] : https://x/y", []),
        ("The ferry leaves at nine [1]\xa0(https://x/y).", [(25, "1")]),
        ("Use `a[1]` and a[1] = 2, or row_ids[2], $x[1]$, [x] and [](u).", []),
        ("```\nThe ferry [1]\n```", []),
    ],
)
def test_marks_are_found_and_other_brackets_are_not(answer: str, wanted: list[tuple[int, str]]) -> None:
    found = resolve(answer, seen("The ferry leaves at nine.", "Nothing else."))
    assert [(one.answer_start, str(int(one.document_id or "-1") + 1)) for one in found] == wanted


@pytest.mark.parametrize(
    "answer",
    [
        "# The times of the ferry",
        "**The times of the old ferry**",
        "The times are:\n\n- It is.",
        "It is.",
        "I found no answer to this question in the documents.",
        "Would you like to know more about the ferry?",
        "```\nthe ferry leaves at ten\n```",
    ],
)
def test_what_states_nothing_counts_in_no_share(answer: str) -> None:
    assert Proof(seen(TEXT), "en").check(answer).stated == ()


def test_a_sentence_is_judged_by_the_documents_that_its_marks_name_else_by_all() -> None:
    check = Proof(seen("The bus is blue and new.", TEXT), "en").check(
        "The bus is blue and new [2]. The bus is blue and new."
    )
    assert [one.status for one in check.sentences] == ["unsupported", "verified"]


@pytest.mark.parametrize(
    "sentence",
    [
        "Das Schiff fährt um neun Uhr zur Insel.",
        "Le bateau part à neuf heures pour l’île.",
        "船は九時に島へ出ます。",
        "渡轮九点开往岛上。",
        "เรือออกเวลาเก้าโมงไปเกาะ",
        "Паром отходит в девять часов.",
        "تغادر العبارة الساعة التاسعة.",
        "המעבורת יוצאת בשעה תשע.",
        "नाव नौ बजे द्वीप के लिए निकलती है।",
        "Tàu rời bến lúc chín giờ.",
        "페리는 아홉 시에 섬으로 떠난다.",
        "Vapur saat dokuzda adaya kalkar.",
        "Lauttamme lähtee saarelle yhdeksältä.",
        "Το πλοίο φεύγει στις εννέα.",
    ],
)
def test_a_sentence_is_verified_in_any_language(sentence: str) -> None:
    assert statuses(f"{sentence} [1]", f"Breakfast is at seven.\n\n{sentence}\n\nLunch is at one.") == ["verified"]


TAILS = """with the exception of interns|pending approval|so long as funds last|barring objections|subject to consent|
    before the reform|in the draft|at the discretion of the manager|hypothetically|which was later retracted|
    provided that they ask|unless they object|if they work full time|save for apprentices|other than trainees|
    except in July|only on request|until further notice|according to rumours|as was once claimed|in theory|
    where the law allows|failing which nothing is paid|but not in the first year|and interns none|
    excluding contractors|apart from the night shift|interns aside|not counting weekends|with few exceptions|
    in the absence of a works agreement|given two years of service|on condition that they return|in exceptional cases|
    once they have passed the trial period|as a rule|at most|at best|ironically|allegedly|supposedly|on paper|
    under the old contract|prior to 2019|from next year|in the proposal|as a joke|reportedly|contrary to the law|
    had the board agreed|should the board agree|which the court struck down|which nobody believes|
    a claim the company denies|or so it was said"""
FRAMES = """It is untrue that {}|The manager denied that {}|Nobody confirmed that {}|The union doubts that {}|
    The draft proposed that {}|We were wrong to write that {}|It would be fair if {}|There is no rule that {}|
    The court annulled the clause that {}|The board refused to accept that {}|It may be that {}|
    They asked whether {}|The rumour that {} is false|The old rule, that {}, ended in May"""
CLAIM = "employees get 30 days of leave"


def test_there_are_as_many_exceptions_as_an_attack_wrote() -> None:
    assert len({tail.strip() for tail in TAILS.split("|")}) == 55


@pytest.mark.parametrize("tail", [tail.strip() for tail in TAILS.split("|")])
def test_no_sentence_is_verified_without_its_exception(tail: str) -> None:
    for text in (f"Employees get 30 days of leave, {tail}.", f"{tail.capitalize()}, {CLAIM}."):
        (found,) = resolve("Employees get 30 days of leave [1].", seen(text))
        assert (found.status, found.quote) == ("quoted", text)


@pytest.mark.parametrize("frame", [frame.strip() for frame in FRAMES.split("|")])
def test_no_sentence_is_verified_without_what_denies_or_hedges_it(frame: str) -> None:
    text = f"{frame.format(CLAIM)}."
    (found,) = resolve("Employees get 30 days of leave [1].", seen(text))
    assert (found.status, found.quote) == ("quoted", text)


@pytest.mark.parametrize("case", [one for one in written() if one.kind.startswith("negation") and not one.is_said])
def test_no_dropped_denial_is_verified_in_any_language(case: Case) -> None:
    (found,) = resolve(f"{case.claim} [1]", seen(case.document.text))
    assert found.status in ("quoted", "near", "unsupported")
    if found.quote is not None:
        starts, ends = zip(*((one.start, one.end) for one in statements(case.document.text)), strict=True)
        assert found.start in starts and found.end in ends


def test_too_many_sentences_are_refused_and_in_an_answer_the_rest_is_not_proved() -> None:
    text = "The ferry leaves at nine. " * (MAX_SENTENCES + 1)
    with pytest.raises(BadRequest, match="501 sentences"):
        checked_against(text, [Document("d", "The ferry leaves at nine.")])
    last = Proof(seen("The ferry leaves at nine."), "en").check(text).sentences[-1]
    assert last.status == "unsupported"


def test_a_row_far_below_its_header_is_a_whole_statement() -> None:
    """Both are seen, and nothing between them."""
    rows = [f"Van{number}\tdepot {number % 7}\t{100 + number} kg" for number in range(400)]
    text = "Vehicles of the harbour.\n\nVehicle\tDepot\tLoad\n" + "\n".join(rows)
    header, place = text.index("Vehicle\t"), text.index(rows[390])
    document = Document("t", text)
    passages = (Passage(header, text.index("\n", header)), Passage(place, place + len(rows[390])))
    extracts = extracts_for([(document, passages)], is_cleaned=True)
    (one,) = resolve("Vehicle: Van390; Depot: depot 5; Load: 490 kg [1].", extracts)
    assert one.status == "verified"
