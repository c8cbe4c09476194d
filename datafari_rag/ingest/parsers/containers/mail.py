"""How a mail becomes a text: its subject as the heading, who wrote to whom and when, then what was written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from io import BytesIO

from datafari_rag.ingest.parsers.parsed import Parsed, heading_line, parsed

MAX_NAMES_CHARS = 2000
"""How much of a line of recipients is kept."""


@dataclass(frozen=True, slots=True)
class Mail:
    """What is read of a mail; *body* is plain text, *page* HTML where there is no plain text."""

    subject: str
    names: tuple[tuple[str, str], ...]
    """Lines above the text: "From" and its value."""
    body: str
    page: str = ""
    attachments: tuple[str, ...] = ()


def rendered(mail: Mail) -> Parsed:
    """Return *mail* as a text, its subject as the title, its attachments as members."""
    above = [f"{name}: {' '.join(value.split())[:MAX_NAMES_CHARS]}" for name, value in mail.names if value.strip()]
    page = Parsed("") if mail.body.strip() else _of(mail.page)
    text = "\n".join([heading_line(1, mail.subject), "", *above, "", page.text or mail.body])
    return replace(parsed(text, mail.subject), members=mail.attachments, unseen=page.unseen)


def _of(page: str) -> Parsed:
    if not page.strip():
        return Parsed("")
    # Most mails have a plain text; the library is loaded for those that do not.
    from datafari_rag.ingest.parsers import html

    return html.parse(BytesIO(page.encode("utf-8", "replace")))
