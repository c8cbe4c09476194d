"""
Mails as they are sent (EML, MIME) and of Outlook (MSG), and mailboxes: the text, and the attachments by name.

The subject becomes the heading; below it who wrote to whom and when, then what was written: all parts that a mail
program shows one below the other. A mail in a mail is a file in it, and so is each mail of a mailbox.
"""

from __future__ import annotations

import contextlib
import email
import email.policy
import os
import re
import struct
from collections.abc import Sequence
from dataclasses import replace
from email.errors import MessageError
from email.message import EmailMessage
from typing import TYPE_CHECKING, BinaryIO

from datafari_rag.ingest.parsers.blocks import EMBEDDED, Blocks, taken
from datafari_rag.ingest.parsers.parsed import Parsed, Unreadable
from datafari_rag.ingest.parsers.texts import decoded

if TYPE_CHECKING:
    from oxmsg import Message
    from oxmsg.attachment import Attachment

MAX_NAMES_CHARS = 2000
"""How much of a line of recipients is kept."""

MAX_PARTS = 2000
RICHER = 3
"""Of a mail in two forms the page is read where its text is so much longer: some plain texts say "see the page"."""

_NAMES = ("From", "To", "Cc", "Date")
_BROKEN = (MessageError, ValueError, LookupError, AttributeError, TypeError, AssertionError)
"""What broken headers and codes make the parser raise."""

MAX_BYTES = 200_000_000
_BROKEN_MSG = (ValueError, LookupError, AttributeError, TypeError, OSError, AssertionError, OverflowError, struct.error)
"""What a broken container makes the parser raise; it reads from memory, so that OSError is its own."""

_FROM = re.compile(rb"(?m)^From [^\n]{1,998}\n(?=[!-9;-~]{1,100}:)")
"""The line above each mail of a mailbox, where a time is in it: a line of a mail is not followed by a header."""

_TIME = re.compile(rb"\d:\d\d")
_GAP = re.compile(rb"\r?\n\r?\n")
_ENCRYPTED = "encrypted part"
_MAILS = ("message/rfc822", "message/global")
_SHOWN = ("text/plain", "text/html")


def parse_eml(file: BinaryIO) -> Parsed:
    """Return the text of the mail *file*, and the names of what is attached. Raises: OSError, Unreadable."""
    mail = _read(file)
    try:
        names = tuple((name, str(mail.get(name) or "")) for name in _NAMES)
        if not any(value for _, value in names):
            raise Unreadable("This is not a mail.")
        texts, files = _parts(mail)
        result = _rendered(str(mail.get("Subject") or ""), names, texts)
        if unread := sum(part.get_content_type() == "multipart/encrypted" for part in mail.walk()):
            result = replace(result, left_out={**result.left_out, _ENCRYPTED: unread})
        return replace(result, members=tuple(map(_name, files)))
    except RecursionError as error:
        raise Unreadable("This mail is nested too deeply.") from error
    except _BROKEN as error:
        raise Unreadable("This mail is broken.") from error


def eml_member(file: BinaryIO, number: int) -> bytes:
    """Return the attachment of *number* among those of `parse_eml`. Raises: OSError, Unreadable."""
    try:
        part = _parts(_read(file))[1][number]
        if part.get_content_maintype() == "message":
            return bytes(part.get_content())
        raw = part.get_payload(decode=True)
        if not isinstance(raw, bytes):
            return b""
        if part.get_content_maintype() == "text" and part.get_content_charset():
            # The mail says in what code it is; the file itself may not. The mark says which it is now.
            return decoded(raw, part.get_content_charset()).encode("utf-8-sig", "replace")
    except (RecursionError, *_BROKEN) as error:
        raise Unreadable("This attachment is broken.") from error
    return raw


def _read(file: BinaryIO) -> EmailMessage:
    raw = file.read()
    gap = _GAP.search(raw)
    end = len(raw) if gap is None else gap.start()
    try:
        # The parser knows headers in UTF-8; old programs write the Western single-byte code as it is.
        raw = decoded(raw[:end].replace(b"\0", b"")).encode() + raw[end:]
        mail = email.message_from_bytes(raw, policy=email.policy.default)
    except RecursionError as error:
        raise Unreadable("This mail is nested too deeply.") from error
    except _BROKEN as error:
        raise Unreadable("This mail is broken.") from error
    if not isinstance(mail, EmailMessage):
        raise Unreadable("This mail is broken.")
    return mail


_Texts = list[tuple[str, str]]
"""What a mail shows: the type and the text of each part."""


def _parts(mail: EmailMessage) -> tuple[_Texts, list[EmailMessage]]:
    """
    Return the texts that *mail* shows, and what is attached: what has a name, is a mail, or no text.

    Of several forms of one text only one is shown, but what is attached to any of them is. Raises: Unreadable: it has
    too many parts. RecursionError.
    """
    if sum(1 for _ in zip(range(MAX_PARTS + 1), mail.walk(), strict=False)) > MAX_PARTS:
        raise Unreadable(f"This mail has more than {MAX_PARTS:,} parts.")

    def found(part: EmailMessage) -> tuple[_Texts, list[EmailMessage]]:
        # The library would decode a text here, in whatever code its sender names.
        kind, inner = part.get_content_type(), part.get_payload() if part.is_multipart() else None
        if part.get_content_maintype() == "multipart":
            members = [member for member in inner if isinstance(member, EmailMessage)] if type(inner) is list else []
            forms = [found(member) for member in members]
            shown = [texts for texts, _ in forms if texts]
            if part.get_content_subtype() == "alternative":
                shown = [_best(shown)]
            return [text for texts in shown for text in texts], [file for _, files in forms for file in files]
        if kind in _MAILS or part.get_filename():
            return [], [part]
        if part.get_content_maintype() == "message" and type(inner) is list:
            # What became of a mail: groups of headers.
            return [("text/plain", "\n".join(map(str, inner)))], []
        if kind not in _SHOWN:
            return [], [part]
        return [(kind, _text(part))], []

    return found(mail)


def _best(forms: list[_Texts]) -> _Texts:
    """Return the one of the *forms* of a text to show: plain text, unless it is empty or the page says much more."""
    plain = next((form for form in forms if all(kind == "text/plain" for kind, _ in form)), None)
    page = next((form for form in reversed(forms) if any(kind == "text/html" for kind, _ in form)), None)
    if plain is None or page is None:
        return plain or page or []
    size = sum(len(text.strip()) for _, text in plain)
    return plain if size and len(_rendered("", (), page).text) <= RICHER * size else page


def _text(part: EmailMessage) -> str:
    raw = part.get_payload(decode=True)
    if not isinstance(raw, bytes):
        return ""
    code = part.get_content_charset()
    if part.get_content_type() == "text/html" and code is None:
        from datafari_rag.ingest.parsers import html

        return html.text_of(raw)
    try:
        return decoded(raw, code).replace("\0", "")
    except Unreadable:
        return decoded(raw.replace(b"\0", b""), code)


def _name(part: EmailMessage) -> str:
    name = part.get_filename() or ""
    if part.get_content_type() in _MAILS and not name.lower().endswith(".eml"):
        return f"{name or 'mail'}.eml"
    if name:
        return name
    return "calendar.txt" if part.get_content_type() == "text/calendar" else part.get_content_type().replace("/", ".")


def parse_mbox(file: BinaryIO) -> Parsed:
    """Return the names of the mails in the mailbox *file*. Raises: OSError; Unreadable: it is none."""
    count = len(_places(file))
    if not count:
        raise Unreadable("This is not a mailbox.")
    return Parsed("", members=tuple(f"{number}.eml" for number in range(1, count + 1)))


def mbox_member(file: BinaryIO, number: int) -> bytes:
    """Return the mail of *number* among those of `parse_mbox`. Raises: OSError, Unreadable."""
    places = _places(file)
    if number >= len(places):
        raise Unreadable("This mailbox is broken.")
    start, end = places[number]
    file.seek(start)
    return re.sub(rb"(?m)^>(?=>*From )", b"", file.read(end - start))


_KEPT: dict[object, Sequence[tuple[int, int]]] = {}
"""The places of the mailbox that was read last in this process, which reads its mails one after the other."""


def _places(file: BinaryIO) -> Sequence[tuple[int, int]]:
    """Return where each mail begins and ends; a mailbox of thousands is looked through once, not for each of them."""
    key: object = None
    # What is in memory is a file in a file.
    with contextlib.suppress(OSError):
        status = os.fstat(file.fileno())
        key = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    if key is None or key not in _KEPT:
        raw = file.read(MAX_BYTES)
        lines = [(line.start(), line.end()) for line in _FROM.finditer(raw) if _TIME.search(line[0])]
        ends = [*(start for start, _ in lines[1:]), len(raw)]
        _KEPT.clear()
        _KEPT[key] = [(end, following) for (_, end), following in zip(lines, ends, strict=False)]
    return _KEPT[key]


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
        texts = [("text/plain", plain) if plain.strip() else ("text/html", mail.html_body or "")]
        files = _files(mail)
        result = _rendered(mail.subject, names, texts)
        if others := len(mail.attachments) - len(files):
            result = replace(result, left_out={**result.left_out, EMBEDDED: others})
        return replace(result, members=tuple(attachment.file_name or "" for attachment in files))
    except RecursionError as error:
        raise Unreadable("This mail is nested too deeply.") from error
    except _BROKEN_MSG as error:
        raise Unreadable("This mail is broken.") from error


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


def _rendered(subject: str, names: Sequence[tuple[str, str]], texts: Sequence[tuple[str, str]]) -> Parsed:
    """Return a mail as a text, *subject* as its title; *texts* are its parts, each with its type."""

    def read(blocks: Blocks) -> None:
        blocks.line(subject, level=1)
        shown = ((name, " ".join(value.split())[:MAX_NAMES_CHARS]) for name, value in names)
        blocks.line("\n".join(f"{name}: {value}" for name, value in shown if value))
        for kind, text in texts:
            if kind == "text/html":
                # Most mails have a plain text; the library is loaded for those that do not.
                from datafari_rag.ingest.parsers import html

                html.read(html.page_of(text), blocks)
            else:
                blocks.line(text.replace("\r\n", "\n").replace("\r", "\n"))

    return taken(read).parsed(subject)
