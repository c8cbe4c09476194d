"""
What a browser may not change, whoever asks: so that no secret and no file of the server can be got out by a setting.

Pure. Whoever can edit the file itself may do all of it; the administration page may do less.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from datafari_rag.core.settings.parsing import Problem
from datafari_rag.core.settings.table import HIDDEN, row_for

SENT_TO: Mapping[str, tuple[str, ...]] = {
    "rag.api.token": ("rag.api.endpoint", "llm.proxy"),
    "llm.fallback.tokens": ("llm.fallback", "llm.proxy"),
    "embeddings.token": ("embeddings.endpoint",),
    "solr.password": ("solr.url",),
}
"""Each secret that is sent somewhere, and the settings that say where."""


def refusals(written: Mapping[str, str], changes: Mapping[str, str | None]) -> tuple[Problem, ...]:
    """
    Return why *changes* (key → text, None for the default) may not be made from a browser; empty when they may.

    *written* are the texts of the file as they stand there, references unresolved.
    """
    return (*_one_by_one(changes), *_redirected(written, changes))


def _one_by_one(changes: Mapping[str, str | None]) -> Iterator[Problem]:
    for key, text in changes.items():
        row = row_for(key)
        if row is None:
            yield Problem(key, f"Unknown key {key}.", kind="unknown")
        elif row.check.kind == "path":
            yield Problem(key, f"{key} names a file of the server: it can be changed in the settings file only.")
        elif text is not None and ("${" in text or (row.is_secret and text.strip().startswith("file:"))):
            yield Problem(key, f"A reference in {key} can be written in the settings file only.")
        elif text is not None and HIDDEN in text:
            yield Problem(key, f"The password in {key} is hidden here: write the whole address anew.")


def _redirected(written: Mapping[str, str], changes: Mapping[str, str | None]) -> Iterator[Problem]:
    for secret, places in SENT_TO.items():
        moved = [place for place in places if place in changes]
        if moved and written.get(secret, "").strip() and secret not in changes:
            message = f"{secret} would be sent to another place: write it anew, or remove it, with a new {moved[0]}."
            yield Problem(moved[0], message)
