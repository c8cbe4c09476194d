"""What a policy keeps back of an answer, what it says of it, and that a stream and a whole answer are the same."""

from __future__ import annotations

from typing import Any

import pytest

from datafari_rag.core.answer.output_filter import OutputFilter
from datafari_rag.core.answer.support_policy import SupportedOutput, SupportPolicy
from datafari_rag.core.answer.text_check import MAX_SENTENCES
from datafari_rag.core.documents import Document, Passage
from datafari_rag.core.events import Support, UnsupportedPolicy
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.passages.extracts import extracts_for

FERRY = "The ferry leaves at nine, on Sundays. A ticket costs 12 euros.\nDogs are not allowed, but birds are."
TRUE, FALSE, ALSO = "The ferry leaves at nine [1]. ", "Cats travel free of charge [1]. ", "A ticket costs 12 euros."
NEAR_TRUE = "On Sundays at nine leaves the ferry [1]. "
REMARKED_NEAR = "On Sundays at nine leaves the ferry (close to the documents, not proved) [1]."
NOTHING = "I found no answer to this question in the documents."


def prompt_of(text: str = FERRY, language: str = "en") -> Prompt:
    documents = [(Document("d", text, title="Ferry"), (Passage(0, len(text)),))] if text else []
    extracts = extracts_for(documents, is_cleaned=True)
    return Prompt("What does a ticket cost?", extracts, None, "n", language=language)


def shown(policy: SupportPolicy, answer: str, *, size: int = 9, **how: str) -> tuple[SupportedOutput, list[str]]:
    prompt = prompt_of(**how)
    output = SupportedOutput(prompt, OutputFilter(prompt.extracts, wants_followups=False, links="none"), policy)
    pieces = [output.feed(answer[at : at + size]) for at in range(0, len(answer), size)]
    return output, [*pieces, output.end()]


def told(policy: SupportPolicy, answer: str, **how: Any) -> tuple[str, Support | None]:
    """Return the displayed part of *answer* and its support, which do not depend on how it is split into pieces."""
    output, pieces = shown(policy, answer, **how)
    assert "".join(pieces) == output.text
    whole, _ = shown(policy, answer, **{**how, "size": 10_000})
    assert (whole.text, whole.support) == (output.text, output.support)
    for start, end in output.support.unsupported if output.support else ():
        assert output.text[start:end].strip() == output.text[start:end] != ""
    return output.text, output.support


def test_mark_shows_all_and_names_what_is_not_proved() -> None:
    text, support = told(SupportPolicy(), TRUE + FALSE + ALSO)
    assert text == TRUE + FALSE + ALSO
    assert support == Support(3, 2, unsupported=((30, 61),))
    assert text[30:61] == FALSE.strip()
    assert support.share == 0.6667


def test_mark_holds_nothing_back() -> None:
    _, pieces = shown(SupportPolicy(), TRUE + FALSE)
    assert all(pieces[:-1])


@pytest.mark.parametrize(
    ("sentence", "language", "expected"),
    [
        pytest.param(FALSE, "en", "Cats travel free of charge (not proved by the documents) [1]. ", id="English"),
        pytest.param(FALSE, "fr-CA", "Cats travel free of charge (non prouvé par les documents) [1]. ", id="French"),
        pytest.param(FALSE, "fi", "Cats travel free of charge (not proved by the documents) [1]. ", id="Finnish"),
        pytest.param(
            "**Cats travel free.**\n", "en", "**Cats travel free (not proved by the documents).**\n", id="bold"
        ),
        pytest.param("| Cats | free |\n", "en", "| Cats | free (not proved by the documents) |\n", id="a row"),
        pytest.param("Cats travel free. [1] ", "en", "Cats travel free (not proved by the documents). [1] ", id="mark"),
    ],
)
def test_hold_says_in_the_sentence_that_it_is_not_proved(sentence: str, language: str, expected: str) -> None:
    text, support = told(SupportPolicy("hold"), f"{sentence}{ALSO}", language=language)
    assert text == expected + ALSO
    assert support == Support(2, 1, "hold", unsupported=((0, len(expected.rstrip())),))


def test_hold_changes_no_proof_of_what_follows() -> None:
    output, _ = shown(SupportPolicy("hold"), f"Cats travel free. [1] {TRUE}")
    assert [one.status for one in output.citations()] == ["unsupported", "verified"]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(TRUE + FALSE + ALSO, TRUE + ALSO, id="in the middle"),
        pytest.param(FALSE + ALSO, ALSO, id="first"),
        pytest.param(f"{ALSO} {FALSE}", f"{ALSO} ", id="last"),
        pytest.param(
            f"- {ALSO}\n- Cats are free.\n- Dogs are not allowed.", f"- {ALSO}\n- Dogs are not allowed.", id="item"
        ),
        pytest.param(
            f"{ALSO} Cats are free.\n\nDogs are not allowed.", f"{ALSO} \n\nDogs are not allowed.", id="paragraph"
        ),
        pytest.param(f"Cats are free. [1] {ALSO}", ALSO, id="with its mark"),
    ],
)
def test_drop_leaves_out_what_is_not_proved(answer: str, expected: str) -> None:
    text, support = told(SupportPolicy("drop"), answer)
    assert text == expected
    assert support is not None
    assert (support.dropped, support.unsupported, support.replaced) == (1, (), None)


@pytest.mark.parametrize(
    ("unsupported", "shown", "dropped"),
    [
        pytest.param("mark", NEAR_TRUE, 0, id="mark shows it as it is"),
        pytest.param("hold", f"{REMARKED_NEAR} ", 0, id="hold says that it is close"),
        pytest.param("drop", f"{REMARKED_NEAR} ", 0, id="drop leaves it in, and says so"),
        pytest.param("strict", "", 1, id="strict leaves it out"),
    ],
)
def test_what_is_near_is_never_counted_as_proved(unsupported: UnsupportedPolicy, shown: str, dropped: int) -> None:
    text, support = told(SupportPolicy(unsupported), f"{TRUE}{NEAR_TRUE}{ALSO}")
    assert text == f"{TRUE}{shown}{ALSO}"
    assert support is not None
    assert (support.checked, support.proved, support.near, support.dropped) == (3, 2, 1, dropped)
    assert len(support.unsupported) == 1 - dropped


def test_where_only_something_near_is_left_that_is_shown() -> None:
    assert told(SupportPolicy("drop"), f"{NEAR_TRUE}{FALSE}")[0] == f"{REMARKED_NEAR} "
    assert told(SupportPolicy("strict"), f"{NEAR_TRUE}{FALSE}")[0] == NOTHING


def test_where_nothing_is_left_that_is_said() -> None:
    assert told(SupportPolicy("drop"), FALSE) == (NOTHING, Support(1, 0, "drop", dropped=1, replaced="nothing"))
    text, _ = told(SupportPolicy("drop"), f"It is so:\n\n{FALSE}")
    assert text == f"It is so:\n\n{NOTHING}"
    text, _ = told(SupportPolicy("drop"), "Les chats voyagent gratuitement.", language="fr")
    assert text.startswith("Je n'ai trouvé aucune réponse")


def test_a_sentence_leaves_when_the_next_is_known() -> None:
    _, pieces = shown(SupportPolicy("hold"), (TRUE + FALSE) * 4, size=64)
    assert sum(map(bool, pieces)) > 2


def test_below_the_least_support_documents_speak_for_themselves() -> None:
    text, support = told(SupportPolicy(least=0.6), TRUE + FALSE)
    assert text.startswith("“") and "A ticket costs 12 euros." in text
    assert support == Support(2, 1, replaced="extractive")
    output, pieces = shown(SupportPolicy(least=0.6), TRUE + FALSE)
    assert not any(pieces[:-1])
    assert {one.status for one in output.citations()} == {"verified"}


def test_below_the_least_support_nothing_may_be_said_either() -> None:
    policy = SupportPolicy(least=0.6, below="nothing")
    assert told(policy, TRUE + FALSE) == (NOTHING, Support(2, 1, replaced="nothing"))


@pytest.mark.parametrize(
    ("unsupported", "expected"),
    [("mark", TRUE + FALSE + ALSO), ("drop", TRUE + ALSO)],
)
def test_above_the_least_support_the_answer_stays(unsupported: Any, expected: str) -> None:
    text, support = told(SupportPolicy(unsupported, least=0.6), TRUE + FALSE + ALSO)
    assert (text, support and support.replaced) == (expected, None)


@pytest.mark.parametrize("policy", [SupportPolicy("drop"), SupportPolicy(least=1)], ids=["drop", "least"])
def test_what_states_nothing_needs_no_proof(policy: SupportPolicy) -> None:
    text, support = told(policy, "It is so: […]")
    assert text == "It is so: […]"
    assert support is not None
    assert (support.checked, support.share) == (0, None)


@pytest.mark.parametrize("policy", [SupportPolicy(), SupportPolicy("drop"), SupportPolicy(least=1)])
def test_without_documents_there_is_nothing_to_check(policy: SupportPolicy) -> None:
    assert told(policy, FALSE, text="") == (FALSE, None)


@pytest.mark.parametrize("policy", [SupportPolicy("drop"), SupportPolicy(least=1)])
def test_a_blank_answer_stays_one(policy: SupportPolicy) -> None:
    output, pieces = shown(policy, " \n ")
    assert (output.is_blank, "".join(pieces), output.support) == (True, "", None)


def test_behind_so_many_sentences_nothing_is_proved() -> None:
    text, support = told(SupportPolicy("drop"), f"{ALSO} " * (MAX_SENTENCES + 20), size=4000)
    assert support == Support(MAX_SENTENCES + 20, MAX_SENTENCES, "drop", dropped=20)
    assert text.count("12") == MAX_SENTENCES
