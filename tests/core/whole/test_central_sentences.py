"""Which sentences represent a document."""

from __future__ import annotations

from datafari_rag.core.documents import Passage
from datafari_rag.core.whole import chosen, condensed, weigh, weighed_in, words_at

REPORT = """Annual report of the harbour

The harbour of Brest handled 2.4 million tonnes of freight in 2023, which is 6 % more than in the year before.
Container traffic grew most, because a new crane was installed at the northern quay in March.
See below.
Why did it grow?
Quay | Tonnes | Ships
North | 1,200 | 88

Staff

The harbour employs 412 people, of whom 60 work at night on the northern quay.
It was so.
The harbour plans to install a second crane at the northern quay in 2025 for container traffic.
"""


def words(text: str, number: int, title: str = "") -> list[str]:
    weighed = weigh(text, title=title, language="en")
    return [text[one.start : one.end] for one in chosen(weighed, number)]


def test_central_sentences_come_in_the_order_of_the_document() -> None:
    found = words(REPORT, 3)
    assert found == sorted(found, key=REPORT.index)
    assert found[0].startswith("The harbour of Brest handled")
    assert len(found) == 3


def test_headings_rows_questions_and_remarks_are_not_chosen_before_sentences() -> None:
    found = " ".join(words(REPORT, 4))
    for poor in ("Annual report", "Staff\n", "North |", "See below", "Why did it grow", "It was so"):
        assert poor not in found


def test_of_some_passages_only_whole_sentences_in_them_are_taken() -> None:
    weighed = weigh(REPORT, title="", language="en")
    begin, end = REPORT.index("Container traffic"), REPORT.index("See below")
    staff = REPORT.index("The harbour employs")
    within = weighed_in(weighed, (Passage(begin, end), Passage(staff, staff + 30)))
    assert [REPORT[one.start : one.end].split()[0] for one in within.sentences] == ["Container"]
    assert weighed_in(weighed, (Passage(0, len(REPORT)),)) == weighed


def test_the_same_is_not_said_twice_while_something_else_is_left() -> None:
    twice = (
        "The contract ends in March 2025 for all suppliers.\n" * 5
        + "Penalties apply to late deliveries of spare parts.\n"
    )
    assert len(set(words(twice, 2))) == 2


def test_words_of_the_title_count_more() -> None:
    text = (
        "Alpha sensors measure heat near the furnace. Every week the blue pumps move water there.\n"
        "Some men walk slowly past green hills. Spare pumps stand ready behind iron gates."
    )
    assert "pumps" in words(text, 1, title="Pumps, pumps ready")[0]


def test_where_nothing_stands_out_the_first_sentences_are_taken() -> None:
    table = "a | b\n1 | 2\n3 | 4\n"
    assert words(table, 2) == ["a | b", "1 | 2"]
    assert words("", 3) == []
    assert words(REPORT, 0) == []


def test_a_text_without_spaces_has_central_sentences() -> None:
    text = "港口去年处理了大量货物并且增加了起重机数量。今天天气很好我们去散步了。港口计划再增加一台起重机处理货物。"
    assert "港口" in words(text, 1)[0]


def test_a_text_that_fits_is_kept_whole_and_a_longer_one_by_its_best_sentences() -> None:
    weighed = weigh(REPORT, title="", language="en")
    everything = (0, len(REPORT))
    assert condensed(weighed, everything, 10_000) == (Passage(0, weighed.sentences[-1].end),)
    kept = condensed(weighed, everything, 220)
    assert 0 < sum(one.end - one.start for one in kept) <= 220
    assert REPORT[kept[0].start :].startswith("The harbour of Brest")
    assert condensed(weighed, everything, 5) == (Passage(0, 5),)
    assert condensed(weighed, (5_000, 6_000), 100) == ()


def test_a_sentence_is_said_on_one_line() -> None:
    text = "One two\nthree.  Four\tfive\n\nSix seven."
    parts = [Passage(0, 14), Passage(16, 25), Passage(27, 37)]
    assert [words_at(text, one) for one in parts] == ["One two three.", "Four five", "Six seven."]


def test_what_is_said_of_a_text_is_its_own_words_on_one_line() -> None:
    text = "Use\tC:\\share\nor\u200b 1\\2."
    assert words_at(text, Passage(0, len(text))) == "Use C:\\share or 1\\2."
