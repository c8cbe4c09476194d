from __future__ import annotations

import pytest

from datafari_rag.core.citations.claims import Claim, claims_of, marks_in, stated_in
from datafari_rag.core.citations.labels import DocumentLabels

LABELS = DocumentLabels(["Plan final.pdf", "Guide", "Notes"])
QUOTED = "the [3] dogs"


def found(answer: str) -> list[str]:
    return [mark.inside for mark in marks_in(answer, LABELS, lambda words: words == QUOTED)]


@pytest.mark.parametrize(
    ("answer", "insides"),
    [
        pytest.param("Yes [1].", ["1"], id="a number"),
        pytest.param("Yes [Guide][2] [Notes].", ["Guide", "2", "Notes"], id="several in a row"),
        pytest.param("Yes 【1】 ［Guide］", ["1", "Guide"], id="full-width brackets"),
        pytest.param("Yes [Plan [final].pdf].", ["Plan [final].pdf"], id="brackets in a file name"),
        pytest.param("Yes [see [2]].", ["2"], id="a mark in other brackets"),
        pytest.param("Yes [Other.pdf] [9].", ["Other.pdf", "9"], id="unknown ones"),
        pytest.param("- [ ] a\n- [x] b […] [sic] [iv]", [], id="boxes and omissions are none"),
        pytest.param("a[i] [b](http://x) ![c](y) [ab](z)", [], id="links and indexes are none"),
        pytest.param("[Guide](http://x) [2](<http://x y>) on", ["Guide", "2"], id="a mark with a target is one"),
        pytest.param("`a[1]` ``b`[2]`` and [3]", ["3"], id="code in a line"),
        pytest.param("```py\na[1]\n```\nYes [2].\n~~~\n[3]\n~~~", ["2"], id="blocks of code"),
        pytest.param("Yes [1].\n```\na[2]", ["1"], id="a block that was cut"),
        pytest.param(f'He saw "{QUOTED}" [1] and "no [2] dogs" here', ["1", "2"], id="brackets that a document has"),
        pytest.param("[1] `a[2]`[3] `a[1]`", ["1", "3"], id="before code and behind it"),
        pytest.param(f'“[1]” [2] "{QUOTED}"', ["1", "2"], id="before words that a document has"),
        pytest.param("a [b\nc] [1", [], id="a bracket over a line end, and half a mark"),
        pytest.param("a [see [2\n] 【1】", ["1"], id="brackets that their line does not close"),
        pytest.param("a ![cats] [1]", ["1"], id="a picture is none"),
        pytest.param("[" + "a" * 240 + "] [" + "b" * 241 + "] [1]", ["a" * 240, "1"], id="long brackets are none"),
        pytest.param("[1]" * 501, ["1"] * 500, id="so many of them"),
        pytest.param("[ ]" * 1999 + "[1][2]", ["1"], id="so many brackets"),
        pytest.param("", [], id="no answer"),
    ],
)
def test_marks_are_found(answer: str, insides: list[str]) -> None:
    assert found(answer) == insides


def test_a_mark_with_several_numbers_names_several_documents() -> None:
    (mark,) = marks_in("Yes [1, 3].", LABELS, lambda _: False)
    assert mark.places == (0, 2)
    assert (mark.start, mark.end) == (4, 10)


@pytest.mark.parametrize("mark", ["[1](http://x)", "[1]", "[Other.pdf]"])
def test_a_mark_ends_behind_its_bracket_or_its_target(mark: str) -> None:
    (one,) = marks_in(f"Yes {mark} (s).", LABELS, lambda _: False)
    assert (one.start, one.end) == (4, 4 + len(mark))


def claims(answer: str) -> list[Claim]:
    marks = marks_in(answer, LABELS, lambda _: False)
    return list(claims_of(answer, marks, lambda words: any(len(word) > 3 for word in words.split())))


@pytest.mark.parametrize(
    ("answer", "texts"),
    [
        pytest.param("Cats sleep [1]. Dogs bark [2].", ["Cats sleep.", "Dogs bark."], id="its sentence"),
        pytest.param("Cats sleep. [1] Dogs bark. [2]", ["Cats sleep.", "Dogs bark."], id="behind the full stop"),
        pytest.param("Cats sleep [1] and dogs bark [2].", ["Cats sleep and dogs bark."] * 2, id="two in a sentence"),
        pytest.param("Cats sleep [1][2], [3].", ["Cats sleep,."] * 3, id="in a row they share"),
        pytest.param("As [1] has it, cats sleep.", ["As has it, cats sleep."], id="in the middle"),
        pytest.param("[1] says that cats sleep.\nDogs [2]", ["says that cats sleep.", "Dogs"], id="at the beginning"),
        pytest.param("Cats sleep.\n\n[1] Dogs bark.", ["Dogs bark."], id="a mark that begins a paragraph"),
        pytest.param("Cats.\n\n[1] Dogs bark,\nall night.", ["Dogs bark,\nall night."], id="of more than a line"),
        pytest.param("“Cats\n \nsleep.” [1] Dogs bark.", ["“Cats\n \nsleep.”"], id="an empty line in a quotation"),
        pytest.param("Cats sleep.\n[1] Dogs bark.", ["Cats sleep."], id="a line alone begins none"),
        pytest.param("**Cats sleep**\n[1] Dogs bark.", ["**Cats sleep**"], id="nor behind bold words"),
        pytest.param("Cats sleep. [1] says dogs bark.", ["Cats sleep. says dogs bark."], id="before a small letter"),
        pytest.param("Cats sleep [1]. [2] Dogs bark.", ["Cats sleep."] * 2, id="after another's"),
        pytest.param("- Cats sleep [1]\n- Dogs bark [2]", ["- Cats sleep", "- Dogs bark"], id="each line its own"),
        pytest.param(
            "- [1] Cats sleep.\n- [2] Dogs bark.", ["- Cats sleep.", "- Dogs bark."], id="in front, in a list"
        ),
        pytest.param("Cats sleep [1].\nDogs bark.\n\n[2]", ["Cats sleep.", "Dogs bark."], id="on a line of its own"),
        pytest.param("Cats sleep.\n- [1]\n\nDogs bark.", ["Cats sleep."], id="an item of its own"),
        pytest.param("[1]\nCats sleep.", [""], id="a line of its own at the beginning"),
        pytest.param("Cats sleep [1]. No [2].", ["Cats sleep.", ""], id="words that state nothing of their own"),
        pytest.param("[1]", [""], id="no words at all"),
        pytest.param("Is it 3.5 metres? Yes, exactly [1].", ["Yes, exactly."], id="numbers do not end a sentence"),
        pytest.param("“Cats” [1] “dogs bark” [2]", ["“Cats”", "“dogs bark”"], id="quotations one behind the other"),
        pytest.param("“Cats sleep.” [1] Dogs bark. [2]", ["“Cats sleep.”", "Dogs bark."], id="a quoted full stop"),
        pytest.param("“Cats” [1] is wrong.", ["“Cats” is wrong."], id="a quotation that words follow"),
        pytest.param("“Cats”, [1] “dogs” [2]", ["“Cats”, “dogs”"] * 2, id="quotations with a comma between them"),
        pytest.param("“Cats” [1] (“many dogs”)", ["“Cats” (“many dogs”)"], id="a quotation in brackets"),
        pytest.param("“Cats” “dogs bark” [1]", ["“Cats” “dogs bark”"], id="quotations without a mark between them"),
        pytest.param("“Cats sleep\nAll.” [1]", ["“Cats sleep\nAll.”"], id="a quoted line end"),
        pytest.param("“They go in\nB” [1].", ["“They go in\nB”."], id="a quoted line end before its last letter"),
        pytest.param(
            "It is a lie, " + "very " * 300 + "cats [1].", ["It is a lie, " + "very " * 300 + "cats."], id="long"
        ),
        pytest.param("Cats ~~never~~ sleep [1]. Dogs bark [2].", ["", "Dogs bark."], id="words struck out"),
        pytest.param("Cats ~do not~ sleep [1].", [""], id="struck out between single tildes"),
        pytest.param("It takes ~5 cats [1] or (~6 dogs).", ["It takes ~5 cats or (~6 dogs)."], id="about so many"),
        pytest.param("Cats <s>never</S > sleep [1]. Dogs bark [2].", ["", "Dogs bark."], id="struck out in HTML"),
        pytest.param("Cats <del class=x>never.\n\nDogs bark [1].", [""], id="struck out to the end"),
        pytest.param("Cats `~~x~~` sleep [1].", ["Cats `~~x~~` sleep."], id="tildes in code"),
        pytest.param("Cats `~~` ~~never~~ sleep [1].", [""], id="words struck out behind code"),
        pytest.param("Cats ~~do~~n't sleep [1].", [""], id="half a word struck out"),
        pytest.param("Many big cats ~~never~~ sleep. Dogs bark [1].", ["Dogs bark."], id="behind words struck out"),
        pytest.param("It has ~ 5 cats~ [1].", ["It has ~ 5 cats~."], id="a tilde before a blank"),
        pytest.param(
            "Cats ~~sleep [1]. Dogs ~~run [2]. Mice~~ hide [3].", [""] * 3, id="tildes before a word end none"
        ),
        pytest.param("Cats ~~sleep.~~I know [1].", ["Cats ~~sleep.~~I know."], id="tildes between a sign and a word"),
        pytest.param("Cats ~~sleep.~~ It is [1].", [""], id="struck out to a full stop"),
        pytest.param("Cats </s>sleep [1].", ["Cats </s>sleep."], id="an end that nothing begins"),
        pytest.param("Cats ~sleep [1]. Dogs <s>do</s> bark [2].", ["Cats ~sleep.", ""], id="one that nothing ends"),
    ],
)
def test_a_mark_speaks_for_its_words(answer: str, texts: list[str]) -> None:
    assert [claim.text for claim in claims(answer)] == texts


def test_each_sentence_of_a_text_has_its_place_and_what_it_claims_without_marks() -> None:
    text = "“Cats [Guide] sleep.” No.\n\n Dogs <s>never</s> bark “all night”."
    stated = stated_in(text, ["Guide"], lambda words: words != "No.")
    assert [(text[slice(*span)], claim) for span, claim in stated] == [
        ("“Cats [Guide] sleep.”", Claim("“Cats sleep.”")),
        ("No.", None),
        ("Dogs <s>never</s> bark “all night”.", Claim("")),
    ]
