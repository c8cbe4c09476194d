"""
The /invoke service of Datafari: a program of its own that stands between Datafari RagAPI and a model.

It reads the documents back out of what it is sent: our own fenced messages, and the bare ones of Datafari RagAPI.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import signal
import socket
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from hmac import compare_digest
from typing import Any

import gevent
from gevent.pywsgi import WSGIServer

from datafari_rag.core.ask import ANSWER_FORMATS
from datafari_rag.core.documents import Document, Passage
from datafari_rag.core.errors import (
    BadRequest,
    BodyTooLarge,
    MethodNotAllowed,
    NoAnswer,
    NoQuery,
    NotAuthenticated,
    NotFound,
    RagError,
)
from datafari_rag.core.evidence.extracts import extracts_for
from datafari_rag.core.model.prompt import Prompt, instructions_for
from datafari_rag.core.text.language import detect
from datafari_rag.core.text.sentences import spans
from datafari_rag.ports import Ending, Model

_FENCED = re.compile(r"Document (\d+)\. <data (\w{8,})>\n\[([^\n]*)\]\n(.*?)\n</data \2>", re.DOTALL)
_BARE = re.compile(r"(?:^|\n)[^\S\n]*Document (\d+)\. |(?<=[.!?…»”\"')\]]) +Document (\d+)\. ")
_WRITTEN_LINE_END = re.compile(r"(?<![:\\/])\\n(?![a-z])")
r"""The two characters `\n` for a line end, as Datafari RagAPI's example has them; those of `C:\new` are none."""

_PARAGRAPHS = re.compile(r"\n\s*\n|[^\S\n]{2,}")


@dataclass(frozen=True, slots=True)
class PromptDocument:
    """One document as a model was given it; *label* is empty where none was."""

    number: int
    label: str
    text: str


def documents_in(context: str) -> tuple[str, tuple[PromptDocument, ...]]:
    r"""
    Return the text before the first document, and the documents in order.

    A context without any "Document N. " is one document of number 1 without words before it; a blank one has none.
    In bare contexts a line end may be the two characters `\n`. A document begins on a separate line, or after the
    end of a sentence when its number is the next one.
    """
    fenced = list(_FENCED.finditer(context))
    if fenced:
        documents = tuple(PromptDocument(int(match[1]), match[3], match[4]) for match in fenced)
        return context[: fenced[0].start()].strip(), documents
    context = _WRITTEN_LINE_END.sub("\n", context)
    heads: list[re.Match[str]] = []
    for head in _BARE.finditer(context):
        # On the line of another document only with the number after that one's.
        if head[2] is None or (heads and _place(head) == _place(heads[-1]) + 1):
            heads.append(head)
    if not heads:
        return "", (PromptDocument(1, "", context.strip()),) if context.strip() else ()
    ends = [*(head.start() for head in heads[1:]), len(context)]
    bare = (
        PromptDocument(_place(head), "", context[head.end() : end].strip())
        for head, end in zip(heads, ends, strict=True)
    )
    return context[: heads[0].start()].strip(), tuple(document for document in bare if document.text)


def _place(head: re.Match[str]) -> int:
    return int(head[1] or head[2])


def first_sentence(text: str) -> str:
    """Return the first sentence of *text* that says something, with its mark, or all of it when it has none."""
    # Between two paragraphs are an empty line or two blanks: a heading is no part of the sentence below it.
    for paragraph in _PARAGRAPHS.split(text):
        sentences = (paragraph[start:end] for start, end in spans(paragraph))
        first = next((sentence for sentence in sentences if sentence.endswith((".", "!"))), None)
        if first is not None:
            return first
    return text.strip()


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
    fields = body.get("input") if isinstance(body, Mapping) else None
    if not isinstance(fields, Mapping):
        raise BadRequest("input: an object is expected.", field="input")
    question = _text(fields, "question")
    if not question.strip():
        raise NoQuery("question: a text is expected.", field="question")
    before, documents = _documents(fields)
    language, format_name = detect(question), _text(fields, "format").lower()
    answer_format = next((name for name in ANSWER_FORMATS if name == format_name), None)
    chosen = [(document, (Passage(0, len(document.text)),)) for document in documents]
    instructions = before or instructions_for(defaults.instructions, language=None, answer_format=answer_format)
    return Prompt(
        question=question,
        extracts=extracts_for(chosen, is_cleaned=True),
        instructions=instructions,
        nonce=nonce,
        answer_format=answer_format,
        language=language,
        model=_text(fields, "model") or defaults.model,
        temperature=_number(fields, "temperature", 0.0, 2.0),
        max_tokens=_count(fields, "max_tokens"),
    )


def reply(text: str, run_id: str) -> dict[str, object]:
    """Return the body of a good answer."""
    return {"output": text, "metadata": {"run_id": run_id, "feedback_tokens": []}}


def failure(error: RagError) -> dict[str, object]:
    """Return the body of a failure: an empty output and the error's text, as in the API's last version."""
    return {"output": "", "error": error.reason, "label": error.label, "code": error.code}


def _documents(fields: Mapping[str, object]) -> tuple[str, tuple[Document, ...]]:
    """Return the instructions that came along (empty when none did) and the documents, of either generation."""
    listed = fields.get("documents")
    if listed is None:
        before, parts = documents_in(_text(fields, "context"))
        return before, tuple(Document(id=str(part.number), title=part.label or None, text=part.text) for part in parts)
    if not isinstance(listed, list) or not all(isinstance(item, Mapping) for item in listed):
        raise BadRequest("documents: a list of objects is expected.", field="documents")
    before = documents_in(_text(fields, "context"))[0]
    return before, tuple(_document(item, number) for number, item in enumerate(listed, 1))


def _document(item: Mapping[str, object], number: int) -> Document:
    return Document(
        id=_text(item, "id") or str(number),
        title=_text(item, "title") or None,
        url=_text(item, "url") or None,
        text=_text(item, "content"),
    )


def _text(fields: Mapping[str, object], key: str) -> str:
    value = fields.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadRequest(f"{key}: a text is expected.", field=key)
    return value


def _number(fields: Mapping[str, object], key: str, low: float, high: float) -> float | None:
    """Return a number that may have come as a text ("0.4"); None when it is absent or empty."""
    value = fields.get(key)
    if value is None or value == "":
        return None
    try:
        number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None
    except (ValueError, OverflowError):
        number = None
    if number is None or not low <= number <= high:
        raise BadRequest(f"{key}: a number between {low:g} and {high:g} is expected.", field=key)
    return number


def _count(fields: Mapping[str, object], key: str) -> int | None:
    number = _number(fields, key, 1, 10_000_000)
    if number is not None and number != int(number):
        raise BadRequest(f"{key}: an integer is expected.", field=key)
    return None if number is None else int(number)


log = logging.getLogger(__name__)

MOST_BODY_BYTES = 200_000_000
"""Longest body: `rag.maxJsonLength` lets a context have 150 million characters."""

Environ = Mapping[str, Any]
Start = Callable[[str, list[tuple[str, str]]], object]
Application = Callable[[Environ, Start], Iterable[bytes]]


def application(model: Model, defaults: ServiceDefaults, *, token: str = "") -> Application:
    """Return the WSGI application that answers with *model*; with *token*, only to those who send it."""

    def answer(environ: Environ, start: Start) -> Iterable[bytes]:
        headers = [("Content-Type", "application/json")]
        try:
            body = _answered(environ, model, defaults, token)
            status = "200 OK"
        except RagError as error:
            log.warning("invoke label=%s %s", error.label, error.log)
            body, status = failure(error), f"{error.code} {error.label}"
            if error.retry_after_s is not None:
                headers.append(("Retry-After", str(max(1, round(error.retry_after_s)))))
        data = json.dumps(body).encode()
        start(status, [*headers, ("Content-Length", str(len(data)))])
        return [data]

    return answer


def serve(app: Application, port: int, *, host: str, on_ready: Callable[[int], object]) -> None:
    """
    Serve *app* until SIGINT or SIGTERM; parallel requests need gevent's patches.

    *port* 0 is any free port. *on_ready* is called with the port once it is open.

    Raises:
        OSError: the port cannot be opened.
    """
    listener = socket.create_server((host, port), backlog=1024)
    # Head and body are two segments: without this the second waits 40 ms for the first to be acknowledged.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.setblocking(False)
    serving = WSGIServer(listener, app, log=None, error_log=log)
    for number in (signal.SIGINT, signal.SIGTERM):
        gevent.signal_handler(number, serving.stop)
    serving.start()
    on_ready(serving.server_port)
    serving.serve_forever()


def _answered(environ: Environ, model: Model, defaults: ServiceDefaults, token: str) -> Mapping[str, object]:
    path, method = environ.get("PATH_INFO", "").rstrip("/"), environ["REQUEST_METHOD"]
    if path == "/health" and method in ("GET", "HEAD"):
        return {"status": "ok"}
    if path != "/invoke":
        raise NotFound
    if method != "POST":
        raise MethodNotAllowed
    if token and not compare_digest(environ.get("HTTP_AUTHORIZATION", "").encode(), f"Bearer {token}".encode()):
        raise NotAuthenticated("A valid token is required.")
    prompt = prompt_of(_body(environ), defaults, nonce=secrets.token_hex(8))
    with closing(model.generate(prompt, is_streamed=False)) as answer:
        text = "".join(_texts(answer))
    if not text.strip():
        raise NoAnswer
    return reply(text, str(uuid.uuid4()))


def _texts(pieces: Iterable[object]) -> Iterator[str]:
    """Yield the texts of the pieces. Raises: RagError, the ending's failure."""
    for piece in pieces:
        if not isinstance(piece, Ending):
            yield piece.text  # type: ignore[attr-defined]  # a Piece: nothing else is yielded
        elif piece.failure is not None:
            raise piece.failure


def _body(environ: Environ) -> object:
    try:
        size = int(environ.get("CONTENT_LENGTH") or 0)
    except ValueError:
        size = -1
    if not 0 <= size <= MOST_BODY_BYTES:
        raise BodyTooLarge
    try:
        return json.loads(environ["wsgi.input"].read(size))
    except (ValueError, RecursionError) as error:
        raise BadRequest("The body is not JSON.") from error
