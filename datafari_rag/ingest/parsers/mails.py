"""
Mails, as they are sent (EML, MIME) and of Outlook (MSG): the text, and the attachments by name.

The subject becomes the heading; below it who wrote to whom and when, then what was written.
"""

from __future__ import annotations

import email
import email.policy
import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from email.errors import MessageError
from email.message import EmailMessage
from io import BytesIO
from typing import TYPE_CHECKING, BinaryIO

from datafari_rag.ingest.parsers.parsed import Parsed, Unreadable, heading_line, parsed

if TYPE_CHECKING:
    from oxmsg import Message
    from oxmsg.attachment import Attachment

MAX_NAMES_CHARS = 2000
"""How much of a line of recipients is kept."""

MAX_PARTS = 2000
_NAMES = ("From", "To", "Cc", "Date")
_BROKEN = (MessageError, ValueError, LookupError, AttributeError, TypeError, AssertionError)
"""What broken headers and codes make the parser raise."""

MAX_BYTES = 200_000_000
_BROKEN_MSG = (ValueError, LookupError, AttributeError, TypeError, OSError, AssertionError, OverflowError, struct.error)
"""What a broken container makes the parser raise; it reads from memory, so that OSError is its own."""


def parse_eml(file: BinaryIO) -> Parsed:
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
        return _rendered(str(mail.get("Subject") or ""), names, body=plain, page=page, attachments=attached)
    except RecursionError as error:
        raise Unreadable("This mail is nested too deeply.") from error
    except _BROKEN as error:
        raise Unreadable("This mail is broken.") from error


def eml_member(file: BinaryIO, number: int) -> bytes:
    """Return the attachment of *number* among those of `parse_eml`. Raises: OSError, Unreadable."""
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
            waiting += [m for m in reversed(inner) if isinstance(m, EmailMessage)] if type(inner) is list else []


def _name(part: EmailMessage) -> str:
    name = part.get_filename() or ""
    if part.get_content_maintype() == "message" and not name.lower().endswith(".eml"):
        return f"{name or 'mail'}.eml"
    return name


def parse_msg(file: BinaryIO) -> Parsed:
    """Return the text of the mail *file*, and the names of what is attached. Raises: OSError, Unreadable."""
    from oxmsg import Message

    raw = file.read(MAX_BYTES)
    try:
        mail = Message.load(raw)
        moment = mail.sent_date
        names = (
            ("From", mail.sender or ""),
            ("To", ", ".join(f"{recipient.name} <{recipient.email_address}>" for recipient in mail.recipients)),
            ("Date", "" if moment is None else moment.isoformat(" ", timespec="minutes")),
        )
        plain = _plain(mail)
        page = "" if plain.strip() else mail.html_body or ""
        attached = tuple(attachment.file_name or "" for attachment in _files(mail))
    except RecursionError as error:
        raise Unreadable("This mail is nested too deeply.") from error
    except _BROKEN_MSG as error:
        raise Unreadable("This mail is broken.") from error
    return _rendered(mail.subject, names, body=plain, page=page, attachments=attached)


def msg_member(file: BinaryIO, number: int) -> bytes:
    """Return the attachment of *number* among those of `parse_msg`. Raises: OSError, Unreadable."""
    from oxmsg import Message

    raw = file.read(MAX_BYTES)
    try:
        return _files(Message.load(raw))[number].file_bytes or b""
    except (RecursionError, *_BROKEN_MSG) as error:
        raise Unreadable("This attachment is broken.") from error


def _plain(mail: Message) -> str:
    try:
        return mail.body or ""
    except LookupError:
        # A code page that Python does not know; the code page of the text is named separately.
        return ""


def _files(mail: Message) -> list[Attachment]:
    return [attachment for attachment in mail.attachments if attachment.attached_by_value]


def _rendered(
    subject: str, names: Sequence[tuple[str, str]], *, body: str, page: str, attachments: tuple[str, ...]
) -> Parsed:
    """Return a mail as a text, *subject* as its title; *page* is HTML, for where *body*, the plain text, is empty."""
    above = [f"{name}: {' '.join(value.split())[:MAX_NAMES_CHARS]}" for name, value in names if value.strip()]
    content = Parsed("")
    if not body.strip() and page.strip():
        # Most mails have a plain text; the library is loaded for those that do not.
        from datafari_rag.ingest.parsers import html

        content = html.parse(BytesIO(page.encode("utf-8", "replace")))
    text = "\n".join([heading_line(1, subject), "", *above, "", content.text or body])
    return replace(parsed(text, subject), members=attachments, unseen=content.unseen)
