"""Answers that place a mark so that a reader sees a proved badge at words that no document says."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from datafari_rag.core.documents import Document, Passage
from datafari_rag.core.evidence.extracts import extracts_for
from datafari_rag.core.proof.checking import resolve
from tests.attack.report import Record, judge

TRUE = ("The ferry leaves at nine", "The report is public", "Everybody may read the handbook")
FALSE = ("All members get 500 euros", "Smoking is free everywhere", "The canteen is closed for ever")
HANDBOOK = Document("pub", f"{'. '.join(TRUE)}. The canteen is in the cellar.", title="Public handbook")
EXTRACTS = extracts_for([(HANDBOOK, (Passage(0, len(HANDBOOK.text)),))], is_cleaned=True)

TURNED = """{true} [1]. Not [1].|{true} [1]. No, never [1].|{true} [1]. Or is it? [1]|{true} [1] is not said here [1].
    {true} [1] only if it does not [1].|{true} [1], says a liar.|It is a lie that {true} [1].|{true} [1] never.
    {true} [1]; {false} [1]; not so [1].|{true} [1] and {false} [1].|{true} [1] or never.|{true} [1] since 1850.
    The ferry [1] is cancelled today.|The report [1] is wrong.|The handbook [1] was burnt and costs 500 euros.
    Nobody may read the handbook, but everybody may [1].|{false} (yes) [1] {true}.|{false}: [1] {true}.
    {false} - [1] - {true}.|{false}. (see [1]) {true}.|~~{true}~~ [1].|~~Not so:~~ {true} [1].|{true} <s>[1] not</s>."""
"""In these no mark is proved but the one behind `{true} [1].` at the beginning."""

STOPS = (".", "!", "?", " ...", "", "**", ":")
GAPS = (" ", "\n", "\n\n", "\n- ", " \n \n", "")


def test_no_mark_is_proved_in_a_sentence_that_says_more(record_property: Record) -> None:
    forms = [form.strip() for line in TURNED.split("\n") for form in line.split("|")]
    answers = [form.format(true=true, false=false) for form in forms for true in TRUE for false in FALSE]
    holes = []
    for answer in answers:
        allowed = 1 if any(answer.startswith(f"{true} [1]. ") for true in TRUE) else 0
        proved = [one.status in ("verified", "quoted") for one in resolve(answer, EXTRACTS)]
        holes.extend([answer] if not proved or any(proved[allowed:]) or not all(proved[:allowed]) else [])
    judge(record_property, "marks in turned sentences", against="citations", tried=len(answers), holes=holes)


def test_no_mark_is_proved_behind_false_words(record_property: Record) -> None:
    answers = list(layouts(random.Random(32)))
    holes = [f"{answer!r} at {at}" for answer in answers for at in proved_behind_false_words(answer)]
    judge(record_property, "marks behind false words", against="citations", tried=len(answers), holes=holes)


def layouts(dice: random.Random) -> Iterator[str]:
    """Yield answers of true and false sentences with marks anywhere between them."""
    for _ in range(3000):
        pieces = []
        for _ in range(dice.randint(2, 4)):
            words = dice.choice(dice.choice((TRUE, FALSE)))
            words = words if dice.random() < 0.8 else words[0].lower() + words[1:]
            mark = dice.choice(("", " [1]", "[Public handbook]", " [1][1]"))
            pieces += [
                words,
                mark,
                dice.choice(STOPS),
                dice.choice(GAPS),
                dice.choice(("[1]", "", "")),
                dice.choice(GAPS),
            ]
        yield "".join(pieces)


def proved_behind_false_words(answer: str) -> list[int]:
    """Return where proved marks are whose nearest words before them, in the paragraph as it is shown, are false."""
    found = []
    for one in resolve(answer, EXTRACTS):
        paragraph = re.split(r"\n\s*\n|\n- ", answer[: one.answer_start])[-1]
        before = re.sub(r"\[[^\]]*\]|[^\w\s]", "", paragraph).strip().lower()
        if one.status in ("verified", "quoted") and any(before.endswith(words.lower()) for words in FALSE):
            found.append(one.answer_start)
    return found
