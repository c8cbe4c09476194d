"""A Flask request into plain values; every way in which it cannot be read is a typed error."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from typing import IO

import orjson
from flask import Request
from werkzeug.datastructures import FileStorage, MultiDict
from werkzeug.exceptions import ClientDisconnected, RequestEntityTooLarge
from werkzeug.formparser import FormDataParser

from datafari_rag.core.ask import Attachment
from datafari_rag.core.errors import BadRequest, BodyTooLarge, TooManyValues, UnsupportedMediaType
from datafari_rag.core.identity import normalized
from datafari_rag.protocols.request import Incoming, Params

FORM_TYPES = frozenset({"application/x-www-form-urlencoded", "multipart/form-data"})

KINDS = {
    "json": "application/json",
    "form": "application/x-www-form-urlencoded",
    "files": "multipart/form-data",
}
"""The media type of each kind of body that a path takes."""

MAX_LEVELS = 100
"""
Most levels of a JSON body. What is nested deeper no caller needs, and no reply or request that repeats it could be
written: the libraries that write JSON take 254 levels, or as many as Python may have calls in each other.
"""

MAX_FIELDS = 1000
"""Most fields of a JSON body, of its context and of the overrides in it."""


def incoming_from(request: Request, bare: Incoming, *, takes: frozenset[str]) -> Incoming:
    """
    Return *bare* with the body of *request*; *takes* are the body types of its path ("json", "form", "files").

    Raises:
        BodyTooLarge: more bytes than are taken were sent.
        TooManyValues: more fields than any caller needs.
        UnsupportedMediaType: a body of a type this path does not take.
        BadRequest: a body that is not what it says it is.
    """
    if request.method in ("GET", "HEAD", "DELETE"):
        return bare
    try:
        return _with_body(request, bare, takes)
    except RequestEntityTooLarge as error:
        raise BodyTooLarge from error
    except ClientDisconnected as error:
        raise BadRequest("The request body ended too early.") from error


def watch_client(request: Request) -> None:
    """Stop this request when its client disconnects, where the server can see that; call it once the body is read."""
    watch = request.environ.get("datafari_rag.watch")
    if watch is not None:
        watch()


def bodyless(request: Request, now_s: float) -> Incoming:
    """Return *request* as plain values, without its body."""
    return Incoming(
        request.path,
        _params(request.args),
        headers={name.lower(): value for name, value in request.headers.items()},
        now_s=now_s,
        # Empty for a host that cannot be one.
        base_url=f"{request.scheme}://{request.host}" if normalized(request.host) else "",
    )


def _with_body(request: Request, bare: Incoming, takes: frozenset[str]) -> Incoming:
    kind = request.mimetype
    if kind == "multipart/form-data" and "files" in takes:
        return _multipart(request, bare)
    if kind in FORM_TYPES and "form" in takes:
        return replace(bare, form=_params(request.form))
    if "json" in takes and (kind == "application/json" or kind.endswith("+json")):
        return replace(bare, body=_json(whole_body(request)))
    if not request.content_length and "Transfer-Encoding" not in request.headers and "form" in takes:
        return bare
    raise UnsupportedMediaType.wanting([name for kind, name in KINDS.items() if kind in takes])


def _multipart(request: Request, bare: Incoming) -> Incoming:
    """Read the published client's form: a JSON part and files (reference: AI Chat Protocol)."""
    body = _json(request.form["json"].encode("utf-8", "surrogatepass")) if "json" in request.form else None
    files = tuple(_attachment(file) for _, file in request.files.items(multi=True))
    return replace(bare, form=_params(request.form), body=body, files=files)


def _attachment(file: FileStorage) -> Attachment:
    name = file.filename or "file"
    if not (file.mimetype.startswith("text/") or file.mimetype in ("application/json", "")):
        raise UnsupportedMediaType(f"A file of type {file.mimetype[:80]} cannot be read here; text files can.")
    try:
        return Attachment(name, file.read().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UnsupportedMediaType("A file sent along is not UTF-8 text.") from error


def _json(data: bytes) -> object:
    try:
        body: object = orjson.loads(data)
    except (orjson.JSONDecodeError, RecursionError) as error:
        raise BadRequest("The request body is not valid JSON.") from error
    # Brackets in texts count here as well: few bodies have so many, and these alone are walked through.
    if data.count(b"[") + data.count(b"{") > MAX_LEVELS:
        _check_levels(body)
    context = body.get("context") if isinstance(body, dict) else None
    overrides = context.get("overrides") if isinstance(context, dict) else None
    for name, part in (("the body", body), ("context", context), ("context.overrides", overrides)):
        if isinstance(part, dict) and len(part) > MAX_FIELDS:
            raise TooManyValues.of(name, MAX_FIELDS)
    return body


def _check_levels(body: object) -> None:
    level = [body] if isinstance(body, (dict, list)) else []
    for _ in range(MAX_LEVELS):
        inner = [value.values() if isinstance(value, dict) else value for value in level]
        level = [value for several in inner for value in several if isinstance(value, (dict, list))]
        if not level:
            return
    raise BadRequest(f"The request body is nested too deeply: at most {MAX_LEVELS} levels.")


def _params(values: MultiDict[str, str]) -> Params:
    return {name: tuple(several) for name, several in values.lists()}


URLENCODED = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"

FORM_BYTES = 1_000_000
"""Largest form, and largest field of a multipart one; files may be as large as the body."""

MAX_PAIRS = 1000
"""Most pairs of a query or a form."""

MAX_PARTS = 100
"""Most fields and files of a multipart form."""

Parsed = tuple[IO[bytes], MultiDict[str, str], MultiDict[str, FileStorage]]


class CountedForms(FormDataParser):
    """Werkzeug's parser of forms, which has no bound on the pairs of a form that is not multipart."""

    def parse(
        self, stream: IO[bytes], mimetype: str, content_length: int | None, options: dict[str, str] | None = None
    ) -> Parsed:
        """Return the rest of the stream, fields and files. Raises: TooManyValues, BadRequest, and as werkzeug does."""
        if mimetype == URLENCODED:
            data = stream.read()
            _check_uncut(data, content_length, self.max_content_length)
            if data.count(b"&") >= MAX_PAIRS:
                raise TooManyValues.of("the form", MAX_PAIRS)
            stream = BytesIO(data)
        elif mimetype == MULTIPART:
            # A length that was announced is checked before; chunks are counted here.
            most = self.max_content_length if content_length is None else None
            stream = _CountedParts(stream, (options or {}).get("boundary", ""), most)
        # Not silent: half a form would be treated as a whole one.
        self.silent = False
        try:
            return super().parse(stream, mimetype, content_length, options)
        except ValueError as error:
            raise BadRequest("The form could not be read.") from error


class CountedRequest(Request):
    """A request whose form fields are counted, whichever code reads them."""

    form_data_parser_class = CountedForms


def whole_body(request: Request) -> bytes:
    """
    Return the body of *request*, which is kept nowhere else.

    Raises:
        BodyTooLarge: it came in chunks and is as long as the limit: werkzeug hands over what fits as if it were all.
    """
    data = request.get_data(cache=False)
    _check_uncut(data, request.content_length, request.max_content_length)
    return data


def _check_uncut(data: bytes, announced: int | None, limit: int | None) -> None:
    if announced is None and limit is not None and len(data) >= limit:
        raise BodyTooLarge


class _CountedParts(BytesIO):
    """A stream that fails when it has more delimiters of a multipart form than parts are allowed, or *most* bytes."""

    def __init__(self, stream: IO[bytes], boundary: str, most: int | None) -> None:
        super().__init__()
        self._stream, self._room = stream, most
        self._delimiter = b"--" + boundary.encode("ascii", "replace")
        self._last = b""
        self._count = 0

    def read(self, size: int | None = -1) -> bytes:
        data = self._stream.read(-1 if size is None else size)
        if self._room is not None:
            self._room -= len(data)
            if self._room <= 0:
                raise BodyTooLarge
        window = self._last + data
        self._count += window.count(self._delimiter)
        # What was counted is not kept, and of the rest what may be the beginning of another one.
        rest = window.rpartition(self._delimiter)[2]
        self._last = rest[-(len(self._delimiter) - 1) :]
        if self._count > MAX_PARTS + 1:
            raise TooManyValues.of("the form", MAX_PARTS)
        return data
