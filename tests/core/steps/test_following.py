from __future__ import annotations

from datafari_rag.core.documents import Document
from datafari_rag.core.steps import MAX_NAMES, lead_from

SONG = Document(
    "song",
    'The album "Diamond Cut" was recorded by the Welsh singer Bonnie Tyler in 1979. It has ten songs.',
    title="Diamond Cut",
)
QUESTION = "When was the singer of Diamond Cut born?"


def test_a_lead_has_new_names_and_what_the_document_lacks() -> None:
    lead = lead_from(QUESTION, SONG, language="en")

    assert lead.names == ("Welsh", "Bonnie", "Tyler")
    assert lead.lacks == ("born",)
    assert lead.words == ("Welsh", "Bonnie", "Tyler", "born")


def test_nothing_is_promised_where_the_document_has_all_words() -> None:
    assert lead_from("Who recorded the album Diamond Cut?", SONG, language="en").words == ()


def test_nothing_is_promised_where_there_is_no_new_name() -> None:
    plain = Document("d", "the diamond was cut in a hurry", title="diamond cut")
    assert lead_from(QUESTION, plain, language="en").words == ()


def test_a_text_of_names_gives_no_more_than_one_search_takes() -> None:
    crowd = Document("d", " ".join(f"Name{number}x" for number in range(5000)))
    assert len(lead_from(QUESTION, crowd, language="en").names) == MAX_NAMES


def test_names_are_read_near_the_words_of_the_question() -> None:
    padding = "Alice Brown met Carl Davis there. " * 400
    long = Document("d", f"{padding}\n\n{SONG.text}\n\n{padding}", title="Diamond Cut")

    assert "Bonnie" in lead_from(QUESTION, long, language="en").names


def test_an_empty_document_leads_nowhere() -> None:
    assert lead_from(QUESTION, Document("d", ""), language="en").words == ()
