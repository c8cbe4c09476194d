"""The language of a page's own words: English, or a catalogue of the package; the answer's language is the answer's."""

from __future__ import annotations

import gettext
from collections.abc import Callable
from pathlib import Path

from flask import Request

from datafari_rag import resources

LANGUAGES = ("en", "fr")
"""Languages of the interface, the first one is the source's own."""

CATALOGUES = Path(resources.__file__).parent / "locale"

PARAMETER = "ui"
"""Names the interface's language in an address; `lang` is the answer's."""

Translate = Callable[[str], str]


def language_of(request: Request) -> str:
    """Return the display language: the one in the address, else the browser's best, else English."""
    wanted = request.args.get(PARAMETER)
    if wanted in LANGUAGES:
        return wanted
    return request.accept_languages.best_match(LANGUAGES, LANGUAGES[0])


def translator(language: str) -> Translate:
    """Return what turns English into *language*; a sentence without translation stays English."""
    # gettext keeps every catalogue that it has read once.
    return gettext.translation("messages", CATALOGUES, [language], fallback=True).gettext
