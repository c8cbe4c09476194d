"""`/invoke` from the server's side: both generations, numbers as texts, and what is refused by name."""

from __future__ import annotations

import pytest

from datafari_rag.core.errors import BadRequest, NoQuery
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.invoke_service import prompt_of

NONCE = "k3j9x2m5q8w1z7"
QUESTION = "when does the plane for Nice take off"


def read(body: object, nonce: str = NONCE) -> Prompt:
    return prompt_of("Answer in {language} as {format}.", "house-model", body, nonce)


def given(**values: object) -> dict[str, object]:
    return {"input": {"question": QUESTION, **values}}


def test_the_seeds_request_is_read() -> None:
    body = given(
        context="Document 1. Once uppon a time.\n Document 2. Boarding pass to Nice. 15h50.",
        max_tokens=200,
        temperature=0.4,
    )
    prompt = read(body)
    assert [(extract.number, extract.text) for extract in prompt.extracts] == [
        (1, "Once uppon a time."),
        (2, "Boarding pass to Nice. 15h50."),
    ]
    assert (prompt.question, prompt.max_tokens, prompt.temperature, prompt.nonce) == (QUESTION, 200, 0.4, NONCE)
    assert (prompt.model, prompt.language) == ("house-model", "en")
    assert prompt.instructions == "Answer in the language of the question as the form that suits the question best."


def test_the_generation_with_documents_is_read() -> None:
    documents = [
        {"id": "a", "title": "Ticket", "url": "http://x/a", "content": "Take off at 15:50."},
        {"id": "b", "content": "  "},
        {"title": "Other", "content": "Nothing."},
    ]
    prompt = read(given(documents=documents, format="StepByStep", model="m"))
    assert [(extract.number, extract.label, extract.text) for extract in prompt.extracts] == [
        (1, "Ticket", "Take off at 15:50."),
        (2, "Other", "Nothing."),
    ]
    assert prompt.extracts[0].document.url == "http://x/a"
    assert (prompt.answer_format, prompt.model) == ("stepbystep", "m")
    assert prompt.instructions == "Answer in the language of the question as numbered steps."


def test_instructions_that_come_along_win() -> None:
    assert read(given(context="Be brief.\nDocument 1. Text.")).instructions == "Be brief."


def test_labels_of_our_own_fences_are_kept() -> None:
    context = f"Document 1. <data {NONCE}>\n[Boarding pass]\nText.\n</data {NONCE}>"
    (extract,) = read(given(context=context), "another0nonce").extracts
    assert (extract.label, extract.text) == ("Boarding pass", "Text.")


@pytest.mark.parametrize("empty", [{}, {"context": ""}, {"documents": []}, {"context": None}])
def test_a_question_without_documents_is_a_question(empty: dict[str, object]) -> None:
    assert read(given(**empty)).extracts == ()


NUMBERS: dict[str, tuple[dict[str, object], tuple[float | None, int | None]]] = {
    "numbers": ({"temperature": 0.4, "max_tokens": 200}, (0.4, 200)),
    "texts": ({"temperature": "0.4", "max_tokens": "200"}, (0.4, 200)),
    "a whole number with a point": ({"max_tokens": "200.0"}, (None, 200)),
    "zero": ({"temperature": 0}, (0.0, None)),
    "absent": ({}, (None, None)),
    "empty": ({"temperature": "", "max_tokens": None}, (None, None)),
}


@pytest.mark.parametrize(("values", "numbers"), NUMBERS.values(), ids=NUMBERS.keys())
def test_numbers_may_come_as_texts(values: dict[str, object], numbers: tuple[float | None, int | None]) -> None:
    prompt = read(given(**values))
    assert (prompt.temperature, prompt.max_tokens) == numbers


REFUSED: dict[str, tuple[object, str]] = {
    "no object": ([], "input"),
    "no input": ({}, "input"),
    "an input that is a text": ({"input": "x"}, "input"),
    "documents that are a text": (given(documents="x"), "documents"),
    "a document that is a text": (given(documents=["x"]), "documents"),
    "a document's content that is a number": (given(documents=[{"content": 1}]), "documents"),
    "a context that is a list": (given(context=[]), "context"),
    "a question that is a number": ({"input": {"question": 1}}, "question"),
    "a temperature that is a word": (given(temperature="warm"), "temperature"),
    "a temperature that is true": (given(temperature=True), "temperature"),
    "a temperature out of range": (given(temperature=3), "temperature"),
    "a temperature that is no number": (given(temperature="nan"), "temperature"),
    "half a token": (given(max_tokens=1.5), "max_tokens"),
    "no token": (given(max_tokens=0), "max_tokens"),
    "a number beyond all numbers": (given(max_tokens=10**400), "max_tokens"),
}


@pytest.mark.parametrize(("body", "field"), REFUSED.values(), ids=REFUSED.keys())
def test_what_does_not_fit_is_refused_by_name(body: object, field: str) -> None:
    with pytest.raises(BadRequest) as refused:
        read(body)
    assert refused.value.field == field
    assert refused.value.reason.startswith(field)


@pytest.mark.parametrize("question", [None, "", "  "])
def test_no_question_has_its_own_label(question: object) -> None:
    with pytest.raises(NoQuery):
        read({"input": {"question": question}})
