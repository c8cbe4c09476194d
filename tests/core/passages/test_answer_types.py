import pytest

from datafari_rag.core.passages.term_matching import cue_of


@pytest.mark.parametrize(
    ("question", "fitting", "other"),
    [
        ("When did the war end?", "It ended in 1945.", "It ended badly."),
        ("Quand part le bateau ?", "Il part le 3 mars.", "Il part tôt."),
        ("How many people live there?", "About two million do.", "Many people do."),
        ("Combien coûte le billet ?", "Il coûte 9 euros.", "Il est cher."),
        ("Who wrote the letter?", "It was written by Ada Moss.", "It was written by hand."),
        ("Why was it closed?", "It closed because of the storm.", "It closed on a Monday."),
        ("Warum schloss er?", "Er schloss, weil es stürmte.", "Er schloss um neun."),
    ],
    ids=lambda value: value if str(value).endswith("?") else "",
)
def test_a_sentence_may_hold_what_the_question_asks_for(question: str, fitting: str, other: str) -> None:
    cue = cue_of(question)
    assert cue is not None
    assert cue.search(fitting)
    assert not cue.search(other)


def test_a_question_may_ask_for_nothing_in_particular() -> None:
    assert cue_of("Describe the ferry.") is None
