from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datafari_rag.core.ask import AnswerFormat
from datafari_rag.core.documents import Document, Extract, Nearness, Passage
from datafari_rag.core.evidence.answer import MAX_CHARS, MAX_WHOLE_CHARS, answer, nothing_found, perhaps, pieces
from datafari_rag.core.evidence.extracts import extracts_for
from datafari_rag.core.proof.checking import resolve

BRIDGE = (
    "The bridge\n\nThe Nine Arch bridge was opened in 1932 by the mayor.\nIt has nine arches of red stone. "
    "Trains use it twice a day. When was it repaired? It was repaired in 1987.\n\n"
    "Fishing is allowed under the bridge from May to August."
)
FERRY = "The ferry was sold in 1931. Its captain, Ada Moss, moved to the harbour of Lindau."


def extracts(*texts: str, field: str = "exactContent") -> tuple[Extract, ...]:
    documents = [Document(f"d{n}", text, field=field, title=f"T{n}", score=9.0 - n) for n, text in enumerate(texts)]
    return extracts_for([(d, (Passage(0, len(d.text)),)) for d in documents], is_cleaned=True)


FISHING = "It was opened in 1932 by the mayor.\n\nFishing is allowed from May to August."
BOTH = extracts(BRIDGE, FERRY)


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        pytest.param(
            "When was the bridge opened?", "“The Nine Arch bridge was opened in 1932 by the mayor.", id="its words"
        ),
        pytest.param("When was the bridge repaired?", "It was repaired in 1987.", id="the line behind a question"),
        pytest.param("Who was the captain of the ferry?", "Its captain, Ada Moss, moved", id="another document"),
    ],
)
def test_the_sentence_that_answers_is_said(question: str, sentence: str) -> None:
    assert sentence in answer(question, BOTH, language="en")


def test_a_row_answers_however_few_words_its_cells_have() -> None:
    boats = extracts("| boat | price |\n| --- | --- |\n| Swallow | 40 |\n| Swift | 50 |")
    assert "boat: Swallow; price: 40 [1]" in answer("What does the Swallow cost?", boats, language="en")


def test_every_quotation_is_cited_and_verified() -> None:
    text = answer(
        "When was the ferry sold?", extracts("The ferry of the lake.\n\nIt was sold in 1931.", FERRY), language="en"
    )
    citations = resolve(text, extracts("The ferry of the lake.\n\nIt was sold in 1931.", FERRY))
    assert {citation.status for citation in citations} == {"verified"}
    assert {citation.document_id for citation in citations} == {"d0", "d1"}


def test_a_quotation_is_the_stored_text_whatever_the_model_would_be_sent() -> None:
    """The words "word for word" stood over `'hello, world/n'`."""
    code = "The greeting is written with print('hello, world\\n') on C:\\share."
    text = answer("How is the greeting written?", extracts(code), language="en")
    assert text == f"“{code}” [1]"
    assert [(one.status, one.quote) for one in resolve(text, extracts(code))] == [("verified", code)]


@pytest.mark.parametrize(
    ("answer_format", "lines"),
    [
        pytest.param("bulletpoint", [r"- “.*” \[1\]", r"- “.*” \[1\]"], id="points"),
        pytest.param("stepbystep", [r"1\. “.*” \[1\]", r"2\. “.*” \[1\]"], id="steps"),
        pytest.param("text", [r"“.*” \[1\] “.*” \[1\]"], id="text"),
        pytest.param("default", [r"“.*” \[1\] “.*” \[1\]"], id="as it likes"),
        pytest.param(None, [r"“.*” \[1\] “.*” \[1\]"], id="nothing asked"),
    ],
)
def test_the_form_is_the_one_asked_for(answer_format: AnswerFormat | None, lines: list[str]) -> None:
    text = answer("When was it opened? Fishing allowed?", extracts(FISHING), language="en", answer_format=answer_format)
    assert [re.fullmatch(line, got) is not None for line, got in zip(lines, text.split("\n"), strict=True)] == [
        True
    ] * len(lines)


@pytest.mark.parametrize(
    ("language", "opening", "nothing"),
    [
        pytest.param("en", "“", "I found no answer", id="English"),
        pytest.param("fr-CA", "« ", "Je n'ai trouvé aucune réponse", id="French"),
        pytest.param("de", "„", "Ich habe in den Dokumenten keine", id="German"),
        pytest.param("es", "«", "No he encontrado", id="Spanish"),
        pytest.param("fi", "“", "I found no answer", id="another one"),
    ],
)
def test_the_language_sets_the_marks_and_the_words_for_nothing(language: str, opening: str, nothing: str) -> None:
    assert answer("bridge 1932", BOTH, language=language).startswith(opening)
    assert answer("zebra crossing", BOTH, language=language).startswith(nothing)
    assert answer("bridge", (), language=language).startswith(nothing)


def test_the_language_of_the_answer_does_not_change_which_sentences_are_said() -> None:
    question = "How do I open the bridge and the when of it?"
    english, french = (answer(question, BOTH, language=code) for code in ("en", "fr"))
    assert re.sub("[“”]", "", english) == re.sub("« | »", "", french)


def test_a_long_sentence_is_said_whole_where_no_other_fits() -> None:
    text = "The " + "very " * 100 + "old bridge opened in 1932 with a feast."
    said = answer("When was the bridge opened?", extracts(text), language="en")
    assert said == f"“{text}” [1]" and MAX_CHARS < len(said) <= MAX_WHOLE_CHARS


def test_a_word_longer_than_any_answer_is_left_out() -> None:
    long = "bridge_" + "x" * MAX_WHOLE_CHARS
    assert answer("bridge", extracts(long, FERRY), language="en").startswith("I found no answer")


def test_a_sentence_that_cannot_be_shortened_is_said_whole() -> None:
    text = (
        "The bridge which "
        + "crosses the river and the road and " * 12
        + "is old may be crossed in 1932 if nobody waits."
    )
    said = answer("When was the bridge crossed?", extracts(text), language="en")
    assert said == f"“{text}” [1]"
    assert [one.status for one in resolve(said, extracts(text))] == ["verified"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(
            "What the plan does not cover:\n\n- massage therapy for fun.\n- cosmetic work on teeth.",
            "What the plan does not cover: “massage therapy for fun.” [1]",
            id="an item",
        ),
        pytest.param(
            "Values:\n1. Care: massage therapy is paid.\n2. Trust: we trust.",
            "Values: “Care: massage therapy is paid.” [1]",
            id="a numbered item",
        ),
    ],
)
def test_what_stands_under_a_label_is_said_with_it(text: str, said: str) -> None:
    """Alone it would be a claim that the document does not make."""
    assert answer("massage therapy", extracts(text), language="en") == said
    assert [one.status for one in resolve(said, extracts(text))] == ["verified"]


def test_sentences_on_neighbouring_lines_are_said_in_their_order_and_proved_as_one() -> None:
    text = "The bridge is closed on Mondays.\nThe old bridge stays closed.\nNobody has the key."
    said = answer("Which bridge stays closed?", extracts(text), language="en")
    assert said == "“The bridge is closed on Mondays. The old bridge stays closed.” [1]"
    assert [one.status for one in resolve(said, extracts(text))] == ["verified"]


def test_a_label_is_said_with_its_item_alone() -> None:
    text = "Massage therapy is paid by the plan.\n\nThe plan does not pay for:\n- massage therapy for fun.\n- wine."
    said = answer("massage therapy", extracts(text), language="en")
    assert "The plan does not pay for: “massage therapy for fun.” [1]" in said
    assert "“Massage therapy is paid by the plan.” [1]" in said
    assert {one.status for one in resolve(said, extracts(text))} == {"verified"}


def test_of_a_very_long_text_the_parts_with_the_words_are_looked_at() -> None:
    line = "Nothing is said here about it at all.\n"
    text = line * 2000 + "The Nine Arch bridge opened in 1932.\n" + line * 2000
    assert "opened in 1932" in answer("When was the Nine Arch bridge opened?", extracts(text), language="en")


def test_no_sentence_far_below_the_best_one_fills_the_answer() -> None:
    mail = (
        "The office chair Nordic costs 189 euros and is supplied by Ergo SARL.\n\nThe date of the office party is open."
    )
    assert answer("Who supplies the office chair Nordic?", extracts(mail), language="en").count("[1]") == 1
    assert answer("office", extracts(mail), language="en").count("[1]") == 2


def test_neighbours_are_one_quotation() -> None:
    said = answer("nine arches, trains twice a day", extracts("It has nine arches. Trains use it."), language="en")
    assert said == "“It has nine arches. Trains use it.” [1]"


def test_what_stands_apart_is_never_one_quotation() -> None:
    text = "The key is kept in main.py of the tool.\nNobody knows why.\nThe key is read by load.py at start."
    document = Document("d", text, title="T", score=1.0)
    shown = extracts_for([(document, (Passage(0, 39), Passage(58, len(text))))], is_cleaned=True)
    said = answer("key kept in main.py, key read by load.py", shown, language="en")
    assert said.count("[1]") == 2
    assert {citation.status for citation in resolve(said, shown)} == {"verified"}


def test_headings_and_questions_are_not_said_where_there_is_more() -> None:
    text = "Opening hours of the museum\n\nWhen is the museum open?\nThe museum opens at nine every day but Monday."
    said = answer("When is the museum open?", extracts(text), language="en")
    assert said == "“The museum opens at nine every day but Monday.” [1]"


def test_a_question_that_a_document_quotes_is_not_said() -> None:
    text = 'The guide asks: "Who opens the museum, and when is the museum open?" The museum opens at nine every day.'
    said = answer("When is the museum open?", extracts(text), language="en")
    assert said == "“The museum opens at nine every day.” [1]"


def test_a_heading_is_said_where_there_is_nothing_else() -> None:
    said = answer("When is the museum open?", extracts("Opening hours of the museum"), language="en")
    assert said == "“Opening hours of the museum” [1]"


def test_an_item_of_a_list_is_said_without_its_bullet() -> None:
    text = "What you need for the ferry\n\n- a ticket for the ferry, bought before.\n- a warm coat, it is windy."
    said = answer("What is needed, a ticket for the ferry?", extracts(text), language="en", answer_format="bulletpoint")
    assert said.startswith("- “a ticket for the ferry, bought before.” [1]")
    assert {citation.status for citation in resolve(said, extracts(text))} == {"verified"}


def test_nothing_is_said_twice() -> None:
    text = "The museum opens at nine.\n\nThe cellar is damp.\n\nThe  museum opens at nine."
    assert answer("When does the museum open?", extracts(text, text), language="en").count("opens at nine") == 1


def test_the_likeliest_sentence_comes_first() -> None:
    text = "The harbour has a museum.\n\nCats sleep in the yard.\n\nThe museum of the harbour opens at nine o'clock."
    said = answer("When does the museum of the harbour open?", extracts(text), language="en")
    assert said.startswith("“The museum of the harbour opens at nine o'clock.” [1]")


@pytest.mark.parametrize("opening", ["“Peace” ", "[81] ", "» ", ") "])
def test_what_opens_a_stretch_never_closes_the_one_before(opening: str) -> None:
    text = (
        f"The bridge has nine arches. Boats pass under it a lot. {opening}The bridge is of red stone, says the mayor."
    )
    document = Document("d", text, title="T", score=1.0)
    shown = extracts_for([(document, (Passage(0, 27), Passage(55, len(text))))], is_cleaned=True)
    said = answer("bridge arches stone", shown, language="fr")
    assert {citation.status for citation in resolve(said, shown, language="fr")} == {"verified"}


def test_no_sentence_reaches_over_a_joint() -> None:
    document = Document("d", BRIDGE, title="T", score=1.0)
    (extract,) = extracts_for([(document, (Passage(12, 30), Passage(66, 99)))], is_cleaned=True)
    assert " … " in extract.text
    assert "…" not in answer("bridge arches stone", [extract], language="en")


def test_snippets_are_said_as_the_reply_shows_them() -> None:
    said = answer("R&D costs", extracts("The <em>plan</em> covers R&amp;D costs.", field="highlighting"), language="en")
    assert said == "“The plan covers R&D costs.” [1]"


def test_the_pieces_are_the_answer() -> None:
    assert "".join(pieces("bridge", BOTH, language="en")) == answer("bridge", BOTH, language="en")


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="bridge ferry?1 éß中.", max_size=60), st.lists(st.text(max_size=600), max_size=3))
def test_whatever_is_asked_the_answer_is_short_and_verified(question: str, texts: list[str]) -> None:
    shown = extracts(BRIDGE, FERRY, *texts)
    said = answer(question, shown, language="en")
    assert 0 < len(said) <= MAX_WHOLE_CHARS


LEAVE = (
    "The car park opens at six. Mothers stay at home for twenty weeks after a birth. Bicycles stand behind the gate."
)


@pytest.mark.parametrize("is_cut", [False, True], ids=["all of the document", "only passages of it"])
def test_where_passages_were_compared_the_nearest_sentence_is_said_though_it_has_no_word(*, is_cut: bool) -> None:
    start, end = LEAVE.index("Mothers"), LEAVE.index(" Bicycles")
    near = (Nearness(0, start, 5.0), Nearness(start, end, 9.0), Nearness(end, len(LEAVE), 5.0))
    document = Document("d", LEAVE, score=1.0, near=near)
    passages = (Passage(0, start - 1), Passage(start, end)) if is_cut else (Passage(0, len(LEAVE)),)

    def said(one: Document) -> str:
        return answer("How long is parental leave?", extracts_for([(one, passages)], is_cleaned=True), language="en")

    assert said(document).startswith("“Mothers stay at home for twenty weeks after a birth.")
    assert "Mothers" not in said(replace(document, near=()))


def test_where_a_document_has_all_words_of_the_question_its_words_find_the_sentence() -> None:
    """A question that names its document is nearest to where that introduces itself."""
    text = "Supply contract of Hill and Dale. The parties like each other. The contract ends after two years."
    end = text.index(" The parties")
    near = (Nearness(0, end, 9.0), Nearness(end, len(text), 5.0))

    def said(one: Document) -> str:
        shown = extracts_for([(one, (Passage(0, len(text)),))], is_cleaned=True)
        return answer("When does the contract end?", shown, language="en")

    assert said(Document("d", text, near=near)) == said(Document("d", text))
    assert said(Document("d", text)).startswith("“The contract ends after two years.”")


@pytest.mark.parametrize(
    ("language", "text"),
    [
        pytest.param(
            "en", "Bridge rules. Every bridge has 25 arches a year.", id="one line, which is its title as well"
        ),
        pytest.param(
            "en", "bridge opening\n\nThe bridge opens Mr. Smith's way at 9 a.m. on Mondays", id="no final stop"
        ),
        pytest.param("en", "# Bridge\n\n| bridge | opened |\n|---|---|\n| Nine Arch | 1932 |\n", id="a table"),
        pytest.param("en", "Is the bridge open? Yes. The bridge is open from Jan. 5 to Feb. 3…", id="abbreviations"),
        pytest.param("en", "Bridge\n- bridge of stone\n- bridge of wood, e.g. oak\n3. bridge of iron", id="a list"),
        pytest.param("en", "> You: “Is the bridge open?”\n> They: the bridge is never open", id="a talk"),
        pytest.param("fr", "Pont. Le pont n’a jamais été ouvert avant 1932 : il est « fermé ».", id="French"),
        pytest.param("de", "Brücke. Die Brücke ist nicht vor dem 5. Mai offen, z. B. im April", id="German"),
        pytest.param("es", "Puente. ¿El puente? El puente no abre los lunes.", id="Spanish"),
        pytest.param("it", "Ponte. Il ponte dell'isola non apre mai il lunedì.", id="Italian"),
        pytest.param("pl", "Most. Most nie jest otwarty w poniedziałki.", id="Polish"),
        pytest.param("ru", "Мост. Мост не открыт по понедельникам.", id="Russian"),
        pytest.param("ar", "الجسر. الجسر ليس مفتوحا يوم الاثنين.", id="Arabic"),
        pytest.param("zh", "大桥。大桥星期一不开放。", id="Chinese"),
        pytest.param("fi", "Silta. Silta ei ole auki maanantaisin.", id="a language without data"),
    ],
)
def test_whatever_is_quoted_is_verified(language: str, text: str) -> None:
    shown = extracts_for([(Document("d", text, title=text[:60]), (Passage(0, len(text)),))], is_cleaned=True)
    for question in ("bridge", "rules, every bridge, opened, 1932", text[:30], text):
        said = answer(question, shown, language=language)
        found = [one for one in resolve(said, shown, language=language) if one.claim]
        assert {one.status for one in found} <= {"verified"}, said
    assert found


def test_what_stands_under_a_heading_that_asks_is_the_answer() -> None:
    text = "# Where is the key?\n\nThe key is heavy.\n\n# How is the bridge closed?\n\nA guard locks the gate."
    said = answer("How is the bridge closed?", extracts(text), language="en")
    assert said.startswith("“A guard locks the gate.” [1]")


def test_the_answer_begins_with_what_defines_the_subject_of_the_question() -> None:
    text = (
        "With a list, VACUUM reads only these tables: VACUUM t.\n\nVACUUM reclaims storage of dead rows. "
        "It is run often.\n\nVACUUM cannot be run in a transaction, since a VACUUM ends it."
    )
    assert answer("What does VACUUM do?", extracts(text), language="en").startswith("“VACUUM reclaims storage")


def test_a_worse_document_adds_nothing_to_a_good_answer() -> None:
    said = answer("Who opened the bridge?", extracts("The mayor opened the bridge.", "A bridge."), language="en")
    assert said == "“The mayor opened the bridge.” [1]"


def test_perhaps_shows_passages_with_the_names_of_their_documents_and_no_mark() -> None:
    said = perhaps("When was the bridge opened?", extracts(BRIDGE), language="fr")
    assert said.startswith("Je n'ai trouvé aucune réponse claire") and "\n- " in said
    assert "[1]" not in said and "1932" in said
    assert perhaps("Who sings?", extracts("Nothing of it."), language="en") == nothing_found("en")


def test_the_header_of_a_table_is_no_answer() -> None:
    table = "Building | Room | Seats\nHarbour | Blue | 12\nHarbour | Green | 30"
    said = answer("How many seats has the Green room?", extracts(table), language="en")
    assert said.startswith("Building: Harbour; Room: Green; Seats: 30 [1].")
    assert "“Building" not in said


def test_what_only_introduces_others_is_not_said_alone() -> None:
    text = "You may make an array of several dimensions so:\n\n- one\n- two\n\nAn array of arrays is a list of lists."
    said = answer("How do I make an array of several dimensions?", extracts(text), language="en")
    assert said == "“An array of arrays is a list of lists.” [1]"
