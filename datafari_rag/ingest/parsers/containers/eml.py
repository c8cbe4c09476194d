"""Mails as they are sent (EML, MIME): headers, the text, the attachments by name."""

from __future__ import annotations

import email
import email.policy
from collections.abc import Iterator
from email.errors import MessageError
from email.message import EmailMessage
from typing import BinaryIO

from datafari_rag.ingest.parsers.containers.mail import Mail, rendered
from datafari_rag.ingest.parsers.parsed import Parsed, Unreadable

MAX_PARTS = 2000
_NAMES = ("From", "To", "Cc", "Date")
_BROKEN = (MessageError, ValueError, LookupError, AttributeError, TypeError, AssertionError)
"""What broken headers and codes make the parser raise."""


def parse(file: BinaryIO) -> Parsed:
    """Return the text of the mail *file*, and the names of what is attached. Raises: OSError, Unreadable."""
    mail = _read(file)
    try:
        names = tuple((name, str(mail.get(name) or "")) for name in _NAMES)
        if not any(value for _, value in names):
            raise Unreadable("This is not a mail.")
        plain, page = _text(mail, "plain"), ""
        if not plain.strip():
            page = _text(mail, "html")
        attached = tuple(_name(part) for part in _attachments(mail))
        return rendered(Mail(str(mail.get("Subject") or ""), names, plain, page, attached))
    except RecursionError as error:
        raise Unreadable("This mail is nested too deeply.") from error
    except _BROKEN as error:
        raise Unreadable("This mail is broken.") from error


def member(file: BinaryIO, number: int) -> bytes:
    """Return the attachment of *number* among those of `parse`. Raises: OSError, Unreadable."""
    try:
        part = list(_attachments(_read(file)))[number]
        if part.get_content_maintype() == "message":
            return bytes(part.get_content())
        raw = part.get_payload(decode=True)
    except (RecursionError, *_BROKEN) as error:
        raise Unreadable("This attachment is broken.") from error
    return raw if isinstance(raw, bytes) else b""


def _read(file: BinaryIO) -> EmailMessage:
    try:
        mail = email.message_from_binary_file(file, policy=email.policy.default)
    except RecursionError as error:
        raise Unreadable("This mail is nested too deeply.") from error
    except _BROKEN as error:
        raise Unreadable("This mail is broken.") from error
    if not isinstance(mail, EmailMessage):
        raise Unreadable("This mail is broken.")
    return mail


def _text(mail: EmailMessage, kind: str) -> str:
    part = mail.get_body((kind,))
    if part is None:
        return ""
    try:
        return str(part.get_content())
    except LookupError:
        # A code that Python does not know.
        raw = part.get_payload(decode=True)
        return raw.decode("latin-1") if isinstance(raw, bytes) else ""


def _attachments(mail: EmailMessage) -> Iterator[EmailMessage]:
    """Yield the parts that are files: named, or mails; parts of parts, too, but nothing of an attached mail."""
    waiting: list[EmailMessage] = [mail]
    count = 0
    while waiting:
        part = waiting.pop()
        count += 1
        if count > MAX_PARTS:
            raise Unreadable(f"This mail has more than {MAX_PARTS:,} parts.")
        if part is not mail and (part.get_filename() or part.get_content_maintype() == "message"):
            yield part
        elif part.is_multipart() and part.get_content_maintype() == "multipart":
            inner = part.get_payload()
            waiting += [one for one in reversed(inner) if isinstance(one, EmailMessage)] if type(inner) is list else []


def _name(part: EmailMessage) -> str:
    name = part.get_filename() or ""
    if part.get_content_maintype() == "message" and not name.lower().endswith(".eml"):
        return f"{name or 'mail'}.eml"
    return name
