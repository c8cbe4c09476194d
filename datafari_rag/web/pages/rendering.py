"""Templates into pages that must not be cached; the frame of each knows its reader, and the language they read in."""

from __future__ import annotations

import gettext
import gzip
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePath
from urllib.parse import urlencode

from flask import Request, Response, render_template, request
from werkzeug.datastructures import MultiDict
from werkzeug.urls import iri_to_uri

from datafari_rag import resources
from datafari_rag.core.errors import NotFound, RagError, TooManyRequests, UnknownHost
from datafari_rag.web.pages.messages import script_words, title_and_hint
from datafari_rag.web.responses import json_response, plain
from datafari_rag.web.runtime import ServiceSnapshot
from datafari_rag.web.turn import Turn
from datafari_rag.web.user import is_admin

DEMO_USERS = ("alice", "bob", "admin")
"""The users in the menu, besides the anonymous user; the demo's users.json has their rights."""

LANGUAGES = ("en", "fr")
"""Languages of the interface, the first one is the source's own."""

CATALOGUES = Path(resources.__file__).parent / "locale"

PARAMETER = "ui"
"""Names the interface's language in an address; `lang` is the answer's."""

Translate = Callable[[str], str]


def language_of(request: Request) -> str:
    """Return the display language: the one in the address, else the browser's best, else English."""
    chosen = request.args.get(PARAMETER)
    if chosen in LANGUAGES:
        return chosen
    return request.accept_languages.best_match(LANGUAGES, LANGUAGES[0])


def translator(language: str) -> Translate:
    """Return what turns English into *language*; a sentence without translation stays English."""
    # gettext keeps every catalogue that it has read once.
    return gettext.translation("messages", CATALOGUES, [language], fallback=True).gettext


@dataclass(frozen=True, slots=True)
class PageReader:
    """One reader of one page; *name* None is the anonymous user. Nothing here widens their rights."""

    name: str | None
    is_admin: bool
    language: str
    translate: Translate


def reader_of(turn: Turn) -> PageReader:
    """
    Return who sent this request.

    Raises:
        NotAuthenticated: a credential was given and is not valid.
    """
    snapshot = turn.snapshot
    return _reader(turn.rights().identified.name, snapshot)


def reader_of_failure(turn: Turn, error: RagError) -> PageReader:
    """Return the reader of *error*: anonymous if their identity is unknown, or if another site may read the page."""
    snapshot = turn.snapshot
    if isinstance(error, UnknownHost | TooManyRequests):
        return _reader(None, snapshot)
    try:
        return _reader(turn.rights().identified.name, snapshot)
    except RagError:
        return _reader(None, snapshot)


def _reader(name: str | None, snapshot: ServiceSnapshot) -> PageReader:
    language = language_of(request)
    return PageReader(name, is_admin(name, snapshot.settings.security), language, translator(language))


STATIC = Path(resources.__file__).parent / "static"

WITH_PARAMETERS = frozenset({"/", "/documents"})
"""Pages whose parameters say what they show; no other repeats anything of its address."""


def page(turn: Turn, reader: PageReader, template: str, values: Mapping[str, object], *, status: int = 200) -> Response:
    """Return *template* as a page for *reader*."""
    has_users = turn.snapshot.settings.security.identity == "demo"
    body = render_template(
        template,
        _=reader.translate,
        reader=reader,
        users=DEMO_USERS if has_users else (),
        form_token=turn.worker.signer.form_token(reader.name or ""),
        root=request.script_root,
        here=request.script_root + _path_shown(),
        languages=[(code, _with(PARAMETER, code)) for code in LANGUAGES],
        static_version=static_version(),
        **values,
    )
    response = Response(body, status, mimetype="text/html")
    response.headers["Cache-Control"] = "no-store"
    response.headers["Vary"] = "Cookie, Accept-Language"
    return response


def _path_shown() -> str:
    has_parameters = request.path in WITH_PARAMETERS and request.query_string
    return request.full_path if has_parameters else request.path


def failure_page(turn: Turn, error: RagError) -> Response:
    """Return the page of one failure, in the reader's language."""
    reader = reader_of_failure(turn, error)
    title, hint = title_and_hint(error.label, reader.translate)
    values = {"code": error.code, "title": title, "hint": hint, "reason": error.reason}
    return page(turn, reader, "failure.html", values, status=error.code)


@lru_cache(maxsize=1)
def static_version() -> str:
    """Return a word that changes with any of our scripts and styles, so that browsers may keep them."""
    files = sorted(path for path in STATIC.rglob("*") if path.is_file())
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


def _with(name: str, value: str) -> str:
    """Return the current address with one parameter replaced."""
    arguments = MultiDict(request.args if request.path in WITH_PARAMETERS else {})
    arguments[name] = value
    return (
        iri_to_uri(request.script_root + request.path)
        + "?"
        + urlencode([(key, text) for key, text in arguments.items(multi=True)])
    )


TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}

LEVEL = 6
_TOO_SMALL_BYTES = 600


@lru_cache(maxsize=1)
def static_files() -> Mapping[str, tuple[bytes, bytes]]:
    """Return every file of the package's folder by its name, as it is and compressed."""
    bodies = {path.name: path.read_bytes() for path in STATIC.iterdir() if path.suffix in TYPES}
    return {name: (body, packed(body)) for name, body in bodies.items()}


def static_file(name: str) -> Response:
    """Return the file *name* of the package; no other name is ever looked for on the disk. Raises: NotFound."""
    if name not in static_files():
        raise NotFound
    whole, small = static_files()[name]
    is_small = request.accept_encodings["gzip"] > 0 and len(whole) >= _TOO_SMALL_BYTES
    response = Response(small if is_small else whole, mimetype=TYPES[PurePath(name).suffix])
    if is_small:
        response.headers["Content-Encoding"] = "gzip"
    response.vary.add("Accept-Encoding")
    is_named = request.args.get("v") == static_version()
    response.headers["Cache-Control"] = "public, max-age=31536000, immutable" if is_named else "public, max-age=60"
    # The widget's modules are loaded by pages of other sites.
    response.headers["Access-Control-Allow-Origin"] = "*"
    # One tag for both forms: weak, since their bytes differ.
    response.set_etag(static_version(), weak=True)
    response.make_conditional(request)
    return response


def widget_setup(turn: Turn) -> Response:
    """Return the words that the widget needs first, in the page's language."""
    response = json_response(plain({"words": script_words(translator(language_of(request)))}))
    response.headers["Access-Control-Allow-Origin"] = "*"
    return response


def packed(body: bytes) -> bytes:
    """Return *body* compressed, with no time in it: the same file is the same bytes each time."""
    return gzip.compress(body, LEVEL, mtime=0)
