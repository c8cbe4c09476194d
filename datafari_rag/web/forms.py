"""Forms with a bound on their fields: they are counted before any is decoded."""

from __future__ import annotations

from io import BytesIO
from typing import IO

from flask import Request
from werkzeug.datastructures import FileStorage, MultiDict
from werkzeug.formparser import FormDataParser

from datafari_rag.core.errors import BadRequest, BodyTooLarge, TooManyValues

URLENCODED = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"

FORM_BYTES = 1_000_000
"""Largest form, and largest field of a multipart one; files may be as large as the body."""

MAX_PAIRS = 1000
"""Most pairs of a query or a form: the settings page, the largest form, sends about 200."""

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
        self._stream, self._left = stream, most
        self._delimiter = b"--" + boundary.encode("ascii", "replace")
        self._last = b""
        self._count = 0

    def read(self, size: int | None = -1) -> bytes:
        data = self._stream.read(-1 if size is None else size)
        if self._left is not None:
            self._left -= len(data)
            if self._left <= 0:
                raise BodyTooLarge
        seen = self._last + data
        self._count += seen.count(self._delimiter)
        # What was counted is not kept, and of the rest what may be the beginning of another one.
        rest = seen.rpartition(self._delimiter)[2]
        self._last = rest[-(len(self._delimiter) - 1) :]
        if self._count > MAX_PARTS + 1:
            raise TooManyValues.of("the form", MAX_PARTS)
        return data
