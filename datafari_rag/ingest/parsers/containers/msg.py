"""Mails of Outlook (MSG): headers, the text, the attachments by name."""

from __future__ import annotations

import struct
from typing import BinaryIO

from oxmsg import Message
from oxmsg.attachment import Attachment

from datafari_rag.ingest.parsers.containers.mail import Mail, rendered
from datafari_rag.ingest.parsers.parsed import Parsed, Unreadable

MAX_BYTES = 200_000_000
_BROKEN = (ValueError, LookupError, AttributeError, TypeError, OSError, AssertionError, OverflowError, struct.error)
"""What a broken container makes the parser raise; it reads from memory, so that OSError is its own."""


def parse(file: BinaryIO) -> Parsed:
    """Return the text of the mail *file*, and the names of what is attached. Raises: OSError, Unreadable."""
    raw = file.read(MAX_BYTES)
    try:
        mail = Message.load(raw)
        sent = mail.sent_date
        names = (
            ("From", mail.sender or ""),
            ("To", ", ".join(f"{one.name} <{one.email_address}>" for one in mail.recipients)),
            ("Date", "" if sent is None else sent.isoformat(" ", timespec="minutes")),
        )
        plain = _plain(mail)
        page = "" if plain.strip() else mail.html_body or ""
        attached = tuple(one.file_name or "" for one in _files(mail))
    except RecursionError as error:
        raise Unreadable("This mail is nested too deeply.") from error
    except _BROKEN as error:
        raise Unreadable("This mail is broken.") from error
    return rendered(Mail(mail.subject, names, plain, page, attached))


def member(file: BinaryIO, number: int) -> bytes:
    """Return the attachment of *number* among those of `parse`. Raises: OSError, Unreadable."""
    raw = file.read(MAX_BYTES)
    try:
        return _files(Message.load(raw))[number].file_bytes or b""
    except (RecursionError, *_BROKEN) as error:
        raise Unreadable("This attachment is broken.") from error


def _plain(mail: Message) -> str:
    try:
        return mail.body or ""
    except LookupError:
        # A code page that Python does not know; the code page of the text is named separately.
        return ""


def _files(mail: Message) -> list[Attachment]:
    return [one for one in mail.attachments if one.attached_by_value]
