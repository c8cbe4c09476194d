"""
Mails as they are sent (EML, MIME) and of Outlook (MSG), and mailboxes: the text, and the attachments by name.

The subject becomes the heading; below it who wrote to whom and when, then what was written: all parts that a mail
program shows one below the other. A mail in a mail is a file in it, and so is each mail of a mailbox.
"""

from __future__ import annotations

import email
import email.policy
import re
import struct
from collections.abc import Iterator, Sequence
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

_FROM = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From [^\n]{1,998}\n(?=[!-9;-~]{1,100}:)")
"""The line above each mail of a mailbox; in a mail no such line is followed by a header."""

_ENCRYPTED = "encrypted part"
_SHOWN = frozenset({"text/plain", "text/html"})


def parse_eml(file: BinaryIO) -> Parsed:
    """Return the text of the mail *file*, and the names of what is attached. Raises: OSError, Unreadable."""
    mail = _read(file)
    try:
        names = tuple((name, str(mail.get(name) or "")) for name in _NAMES)
        if not any(value for _, value in names):
            raise Unreadable("This is not a mail.")
        parts = list(_parts(mail))
        texts = [(part.get_content_type(), _text(part)) for part, is_file in parts if not is_file]
        result = _rendered(str(mail.get("Subject") or ""), names, texts)
        if unread := sum(part.get_content_type() == "multipart/encrypted" for part in mail.walk()):
            result = replace(result, left_out={**result.left_out, _ENCRYPTED: unread})
        return replace(result, members=tuple(_name(part) for part, is_file in parts if is_file))
    except RecursionError as error:
        raise Unreadable("This mail is nested too deeply.") from error
    except _BROKEN as error:
        raise Unreadable("This mail is broken.") from error


def eml_member(file: BinaryIO, number: int) -> bytes:
    """Return the attachment of *number* among those of `parse_eml`. Raises: OSError, Unreadable."""
    try:
        part = [part for part, is_file in _parts(_read(file)) if is_file][number]
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
    try:
        mail = email.message_from_binary_file(file, policy=email.policy.default)
    except RecursionError as error:
        raise Unreadable("This mail is nested too deeply.") from error
    except _BROKEN as error:
        raise Unreadable("This mail is broken.") from error
    if not isinstance(mail, EmailMessage):
        raise Unreadable("This mail is broken.")
    return mail


def _parts(mail: EmailMessage) -> Iterator[tuple[EmailMessage, bool]]:
    """
    Yield the parts that are shown or attached, in their order, and whether each is a file: named, or a mail.

    Parts of parts, too, but nothing of an attached mail, and of several forms of one text a single one.
    """
    waiting: list[EmailMessage] = [mail]
    count = 0
    while waiting:
        part = waiting.pop()
        count += 1
        if count > MAX_PARTS:
            raise Unreadable(f"This mail has more than {MAX_PARTS:,} parts.")
        inner = part.get_payload()
        if part is not mail and (part.get_filename() or part.get_content_maintype() == "message"):
            yield part, True
        elif part.get_content_maintype() == "multipart":
            members = [member for member in inner if isinstance(member, EmailMessage)] if type(inner) is list else []
            waiting += reversed(_best(members) if part.get_content_subtype() == "alternative" else members)
        elif part.get_content_type() in _SHOWN or part is mail:
            yield part, False
        else:
            yield part, True


def _best(forms: list[EmailMessage]) -> list[EmailMessage]:
    """Return the *forms* of one text without those that say less: plain text, unless the page says much more."""
    by_type = {form.get_content_type(): form for form in forms}
    plain, page = by_type.get("text/plain"), by_type.get("text/html")
    if plain is None or len(forms) == 1:
        return forms
    text = _text(plain).strip()
    if page is not None:
        other = _rendered("", (), [("text/html", _text(page))]).text
        is_plain = bool(text) and len(other) <= RICHER * len(text)
        return [form for form in forms if form is not (page if is_plain else plain)]
    # A page with its pictures: they are attachments beside the text.
    return [form for form in forms if form is plain or form.get_content_maintype() != "text"] if not text else [plain]


def _text(part: EmailMessage) -> str:
    raw = part.get_payload(decode=True)
    return decoded(raw.replace(b"\0", b""), part.get_content_charset()) if isinstance(raw, bytes) else ""


def _name(part: EmailMessage) -> str:
    name = part.get_filename() or ""
    if part.get_content_maintype() == "message" and not name.lower().endswith(".eml"):
        return f"{name or 'mail'}.eml"
    if name:
        return name
    return "calendar.txt" if part.get_content_type() == "text/calendar" else part.get_content_type().replace("/", ".")


def parse_mbox(file: BinaryIO) -> Parsed:
    """Return the names of the mails in the mailbox *file*. Raises: OSError; Unreadable: it is none."""
    count = sum(1 for _ in _FROM.finditer(file.read(MAX_BYTES)))
    if not count:
        raise Unreadable("This is not a mailbox.")
    return Parsed("", members=tuple(f"{number}.eml" for number in range(1, count + 1)))


def mbox_member(file: BinaryIO, number: int) -> bytes:
    """Return the mail of *number* among those of `parse_mbox`. Raises: OSError, Unreadable."""
    raw = file.read(MAX_BYTES)
    starts = [start for _, start in zip(range(number + 2), _FROM.finditer(raw), strict=False)]
    if number >= len(starts):
        raise Unreadable("This mailbox is broken.")
    end = starts[number + 1].start() if len(starts) > number + 1 else len(raw)
    return re.sub(rb"(?m)^>(?=>*From )", b"", raw[starts[number].end() : end])


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
