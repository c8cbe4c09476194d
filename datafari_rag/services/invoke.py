"""
The "Datafari External LLM" API from the server's side, in its generations: `context`, `documents`, numeric strings.

Pure: the body comes in as parsed JSON, the reply goes out as a dict. Datafari RagAPI is the authority.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from datafari_rag.core.answer.prompt import Prompt, instructions_for
from datafari_rag.core.ask import ANSWER_FORMATS, AnswerFormat
from datafari_rag.core.documents import Document, Passage
from datafari_rag.core.errors import BadRequest, NoQuery, RagError
from datafari_rag.core.passages.extracts import extracts_for
from datafari_rag.core.text.language import detect
from datafari_rag.services.prompt_contexts import documents_in


@dataclass(frozen=True, slots=True)
class ServiceDefaults:
    """What the service adds to a request: its own *instructions*, used where none came along, and *model*'s name."""

    instructions: str
    model: str = ""


def prompt_of(body: object, defaults: ServiceDefaults, *, nonce: str) -> Prompt:
    """
    Return the request in `{"input": {…}}`; its documents are fenced again with *nonce*.

    Instructions at the head of a context are kept in place of the service's own. What is absent is left to the model.

    Raises:
        BadRequest: the body, or a value in it, has not the form of the API; the reason names the field.
        NoQuery: there is no question.
    """
    given = body.get("input") if isinstance(body, Mapping) else None
    if not isinstance(given, Mapping):
        raise BadRequest("input: an object is expected.", field="input")
    question = _text(given, "question")
    if not question.strip():
        raise NoQuery("question: a text is expected.", field="question")
    before, documents = _documents(given)
    language, answer_format = detect(question), _format(given)
    chosen = [(document, (Passage(0, len(document.text)),)) for document in documents]
    written = before or instructions_for(defaults.instructions, language=language, answer_format=answer_format)
    return Prompt(
        question=question,
        extracts=extracts_for(chosen, is_cleaned=True),
        instructions=written,
        nonce=nonce,
        answer_format=answer_format,
        language=language,
        model=_text(given, "model") or defaults.model,
        temperature=_number(given, "temperature", 0.0, 2.0),
        max_tokens=_count(given, "max_tokens"),
    )


def reply(text: str, run_id: str) -> dict[str, object]:
    """Return the body of a good answer."""
    return {"output": text, "metadata": {"run_id": run_id, "feedback_tokens": []}}


def failure(error: RagError) -> dict[str, object]:
    """Return the body of a failure: an empty output and the error's text, as in the API's last version."""
    return {"output": "", "error": error.reason, "label": error.label, "code": error.code}


def _documents(given: Mapping[str, object]) -> tuple[str, tuple[Document, ...]]:
    """Return the instructions that came along (empty when none did) and the documents, of either generation."""
    listed = given.get("documents")
    if listed is None:
        before, parts = documents_in(_text(given, "context"))
        return before, tuple(Document(id=str(part.number), title=part.label or None, text=part.text) for part in parts)
    if not isinstance(listed, list) or not all(isinstance(item, Mapping) for item in listed):
        raise BadRequest("documents: a list of objects is expected.", field="documents")
    before = documents_in(_text(given, "context"))[0]
    return before, tuple(_document(item, number) for number, item in enumerate(listed, 1))


def _document(item: Mapping[str, object], number: int) -> Document:
    return Document(
        id=_text(item, "id") or str(number),
        title=_text(item, "title") or None,
        url=_text(item, "url") or None,
        text=_text(item, "content"),
    )


def _text(given: Mapping[str, object], key: str) -> str:
    value = given.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadRequest(f"{key}: a text is expected.", field=key)
    return value


def _format(given: Mapping[str, object]) -> AnswerFormat | None:
    asked = _text(given, "format").lower()
    return next((known for known in ANSWER_FORMATS if known == asked), None)


def _number(given: Mapping[str, object], key: str, low: float, high: float) -> float | None:
    """Return a number that may have come as a text ("0.4"); None when it is absent or empty."""
    value = given.get(key)
    if value is None or value == "":
        return None
    try:
        number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None
    except (ValueError, OverflowError):
        number = None
    if number is None or not low <= number <= high:
        raise BadRequest(f"{key}: a number between {low:g} and {high:g} is expected.", field=key)
    return number


def _count(given: Mapping[str, object], key: str) -> int | None:
    number = _number(given, key, 1, 10_000_000)
    if number is not None and number != int(number):
        raise BadRequest(f"{key}: an integer is expected.", field=key)
    return None if number is None else int(number)
