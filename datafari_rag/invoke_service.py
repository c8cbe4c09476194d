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
from collections.abc import Callable, Iterable, Mapping
from hmac import compare_digest
from typing import Annotated, Any

import gevent
from gevent.pywsgi import WSGIServer
from msgspec import Meta, Struct

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
from datafari_rag.ports import Model, reply_in
from datafari_rag.protocols.records import read

log = logging.getLogger(__name__)

MOST_BODY_BYTES = 200_000_000
"""Longest body: `rag.maxJsonLength` lets a context have 150 million characters."""

_FENCED = re.compile(r"Document (\d+)\. <data (\w{8,})>\n\[([^\n]*)\]\n(.*?)\n</data \2>", re.DOTALL)
_BARE = re.compile(r"(?:^|\n)[^\S\n]*Document (\d+)\. |(?<=[.!?…»”\"')\]]) +Document (\d+)\. ")
_WRITTEN_LINE_END = re.compile(r"(?<![:\\/])\\n(?![a-z])")
r"""The two characters `\n` for a line end, as Datafari RagAPI's example has them; those of `C:\new` are none."""

_NUMBER = re.compile(r"\d{1,9}(\.\d{1,9})?")


class GivenDocument(Struct):
    """One document of the API's last generation."""

    id: str | None = None
    title: str | None = None
    url: str | None = None
    content: str | None = None


class Given(Struct):
    """What `input` has; the documents are listed, or in the context."""

    question: str | None = None
    context: str = ""
    documents: list[GivenDocument] | None = None
    format: str = ""
    model: str = ""
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    max_tokens: Annotated[int, Meta(ge=1, le=10_000_000)] | None = None


def documents_in(context: str) -> tuple[str, tuple[Document, ...]]:
    r"""
    Return the text before the first document, and the documents in order.

    A context without any "Document N. " is one document of number 1 without words before it; a blank one has none.
    In bare contexts a line end may be the two characters `\n`. A document begins on a separate line, or after the
    end of a sentence when its number is the next one.
    """
    fenced = list(_FENCED.finditer(context))
    if fenced:
        documents = tuple(Document(id=match[1], title=match[3] or None, text=match[4]) for match in fenced)
        return context[: fenced[0].start()].strip(), documents
    context = _WRITTEN_LINE_END.sub("\n", context)
    heads: list[tuple[int, re.Match[str]]] = []
    for head in _BARE.finditer(context):
        number = int(head[1] or head[2])
        # On the line of another document only with the number after that one's.
        if head[2] is None or (heads and number == heads[-1][0] + 1):
            heads.append((number, head))
    if not heads:
        return "", (Document(id="1", text=context.strip()),) if context.strip() else ()
    ends = [*(head.start() for _, head in heads[1:]), len(context)]
    bare = (
        Document(id=str(number), text=context[head.end() : end].strip())
        for (number, head), end in zip(heads, ends, strict=True)
    )
    return context[: heads[0][1].start()].strip(), tuple(document for document in bare if document.text)


def prompt_of(instructions: str, model: str, body: object, nonce: str) -> Prompt:
    """
    Return the request in `{"input": {…}}`; its documents are fenced again with *nonce*.

    Instructions at the head of a context are kept in place of *instructions*; *model* is used where none is named. What
    is absent is left to the model. Numbers may be texts.

    Raises:
        BadRequest: the body, or a value in it, has not the form of the API; the reason names the field.
        NoQuery: there is no question.
    """
    fields = body.get("input") if isinstance(body, Mapping) else None
    if isinstance(fields, Mapping):
        fields = {name: value for name, value in fields.items() if value is not None and value != ""}
        for name in ("temperature", "max_tokens"):
            if isinstance(value := fields.get(name), str) and _NUMBER.fullmatch(value):
                fields[name] = int(number) if (number := float(value)).is_integer() else number
    given = read(Given, fields, whole="input")
    if not (given.question or "").strip():
        raise NoQuery("question: a text is expected.", field="question")
    question = given.question or ""
    before, documents = documents_in(given.context)
    if given.documents is not None:
        documents = tuple(
            Document(id=one.id or str(number), title=one.title or None, url=one.url or None, text=one.content or "")
            for number, one in enumerate(given.documents, 1)
        )
    answer_format = next((name for name in ANSWER_FORMATS if name == given.format.lower()), None)
    chosen = [(document, (Passage(0, len(document.text)),)) for document in documents]
    return Prompt(
        question=question,
        extracts=extracts_for(chosen, is_cleaned=True),
        instructions=before or instructions_for(instructions, language=None, answer_format=answer_format),
        nonce=nonce,
        answer_format=answer_format,
        language=detect(question),
        model=given.model or model,
        temperature=given.temperature,
        max_tokens=given.max_tokens,
    )


Environ = Mapping[str, Any]
Start = Callable[[str, list[tuple[str, str]]], object]
Application = Callable[[Environ, Start], Iterable[bytes]]
PromptFor = Callable[[object, str], Prompt]
"""Reads a body, with the nonce of its fences; `prompt_of`."""


def application(model: Model, prompt_for: PromptFor, *, token: str = "") -> Application:
    """
    Return the WSGI application that answers with *model*; with *token*, only to those who send it.

    A failure is an empty output and the error's text, as in the API's last version.
    """

    def answer(environ: Environ, start: Start) -> Iterable[bytes]:
        headers, status = [("Content-Type", "application/json")], "200 OK"
        try:
            body = _answered(environ, model, prompt_for, token)
        except RagError as error:
            log.warning("invoke label=%s %s", error.label, error.log)
            body = {"output": "", "error": error.reason, "label": error.label, "code": error.code}
            status = f"{error.code} {error.label}"
            if error.retry_after_s is not None:
                headers.append(("Retry-After", str(max(1, round(error.retry_after_s)))))
        data = json.dumps(body).encode()
        start(status, [*headers, ("Content-Length", str(len(data)))])
        return [data]

    return answer


def _answered(environ: Environ, model: Model, prompt_for: PromptFor, token: str) -> Mapping[str, object]:
    path, method = environ.get("PATH_INFO", "").rstrip("/"), environ["REQUEST_METHOD"]
    if path == "/health" and method in ("GET", "HEAD"):
        return {"status": "ok"}
    if path != "/invoke":
        raise NotFound
    if method != "POST":
        raise MethodNotAllowed
    if token and not compare_digest(environ.get("HTTP_AUTHORIZATION", "").encode(), f"Bearer {token}".encode()):
        raise NotAuthenticated("A valid token is required.")
    length = environ.get("CONTENT_LENGTH") or "0"
    if not re.fullmatch(r"[0-9]{1,9}", length) or int(length) > MOST_BODY_BYTES:
        raise BodyTooLarge
    try:
        body = json.loads(environ["wsgi.input"].read(int(length)))
    except (ValueError, RecursionError) as error:
        raise BadRequest("The body is not JSON.") from error
    text, ending = reply_in(model.generate(prompt_for(body, secrets.token_hex(8)), is_streamed=False))
    if ending.failure is not None:
        raise ending.failure
    if not text.strip():
        raise NoAnswer
    return {"output": text, "metadata": {"run_id": str(uuid.uuid4()), "feedback_tokens": []}}


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
