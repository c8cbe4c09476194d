"""From the fields of a JSONL line, or the text of a file, to a document in Solr's shape; rights are never widened."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import quote, urlsplit

from datafari_rag.core.access import ACL_FIELDS, LEVELS, NO_SECURITY
from datafari_rag.core.documents import PLACES_FIELD
from datafari_rag.core.text.cleaning import encodable
from datafari_rag.core.text.language import SAMPLE_CHARS, detect
from datafari_rag.core.text.structure import without_names
from datafari_rag.ingest.parsers.parsed import MAX_TITLE_CHARS, Parsed

PREVIEW_CHARS = 500
MAX_ID_CHARS = 4096
MAX_PREVIEW_CHARS = 10_000
FIELD_LANGUAGES = ("en", "fr", "de", "es")
"""Languages with a separate stemmed field for their text."""

Document = dict[str, object]


@dataclass(frozen=True, slots=True)
class Rights:
    """
    Tokens of the command line, for documents that set no rights on the level document.

    Where *is_bound* is set, they hold for the others as well, whose own rights then only narrow them.
    """

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    is_bound: bool = False


class BadDocument(Exception):
    """A JSONL line that cannot become a document; the text says why."""


def from_line(fields: Mapping[str, object], rights: Rights) -> Document:
    """
    Return the document of one JSONL line; names that are not known are left out.

    Raises:
        BadDocument: no id, a value of the wrong kind, or rights that cannot be read.
    """
    document_id = _text(fields, "id")
    if not document_id or len(document_id) > MAX_ID_CHARS:
        raise BadDocument(f"id: a text of 1 to {MAX_ID_CHARS} characters is expected.")
    if not isinstance(fields.get("content"), str):
        raise BadDocument("content: a text is expected.")
    texts = {name: _text(fields, name) for name in ("title", "url", "source", "language", "extension")}
    texts["title"] = texts["title"][:MAX_TITLE_CHARS]
    if long := next((name for name, text in texts.items() if len(text) > MAX_ID_CHARS), None):
        raise BadDocument(f"{long}: a text of at most {MAX_ID_CHARS} characters is expected.")
    document = _document(document_id, _text(fields, "content"), texts)
    if preview := _text(fields, "preview_content"):
        document["preview_content"] = preview[:MAX_PREVIEW_CHARS]
    if modified := _text(fields, "last_modified"):
        document["last_modified"] = _moment(modified)
    document |= _acl(fields, rights)
    return document


def from_file(path: Path, parsed: Parsed, *, modified_s: float, source: str, rights: Rights) -> Document:
    """
    Return the document of one file: its `file:` address is its id and its URL.

    *modified_s* is the file's time in seconds since 1970, *source* names the folder that was indexed.
    """
    address = encodable(path.as_uri())
    title = parsed.title or " ".join(encodable(path.name).split())
    texts = {"title": title, "url": address, "source": source, "extension": extension_of(path.name)}
    document = _document(address, parsed.text, texts)
    if parsed.places:
        document[PLACES_FIELD] = parsed.places
    document["last_modified"] = _iso(datetime.datetime.fromtimestamp(modified_s, datetime.UTC))
    document |= _acl({}, rights)
    return document


def from_member(parent: Document, names: Sequence[str], parsed: Parsed) -> Document:
    """
    Return the document of a file in a file, *names* being the way to it from *parent*, the document of the outer one.

    Its id is the outer file's address with the way as its fragment. Rights and date are the outer file's, whatever
    the inner one says.

    Raises:
        BadDocument: the way is longer than an id may be.
    """
    # In the name of a level no "!" is left, so that no two ways look alike.
    way = "!/".join(quote(encodable(name)) for name in names)
    address = f"{parent['id']}#{way}"
    if len(address) > MAX_ID_CHARS:
        raise BadDocument("Its name is too long.")
    name = PurePosixPath(encodable(names[-1])).name
    source = str(parent.get("source", ""))
    texts = {"title": parsed.title or " ".join(name.split()), "url": address, "source": source}
    document = _document(address, parsed.text, texts | {"extension": extension_of(name)})
    if parsed.places:
        document[PLACES_FIELD] = parsed.places
    return document | {field: parent[field] for field in ("last_modified", *ACL_FIELDS)}


def extension_of(name: str) -> str:
    """Return the ending of a file's name in lower case without its dot, "" when it has none."""
    return encodable(PurePosixPath(name).suffix.removeprefix(".").lower())


def _document(document_id: str, content: str, texts: Mapping[str, str]) -> Document:
    language = texts.get("language") or detect(without_names(content[:SAMPLE_CHARS]))
    document: Document = {"id": document_id, "exactContent": content}
    document |= {"language": language} if language else {}
    document |= {name: text for name, text in texts.items() if text}
    if "extension" not in document and (extension := _extension_of_url(texts.get("url", ""))):
        document["extension"] = extension
    document["preview_content"] = content[:PREVIEW_CHARS]
    if language in FIELD_LANGUAGES:
        document[f"content_{language}"] = content
    return document


def _extension_of_url(url: str) -> str:
    try:
        extension = extension_of(urlsplit(url).path.rpartition("/")[2])
    except ValueError:
        return ""
    return extension if extension.isalnum() and len(extension) <= 5 else ""


def _acl(fields: Mapping[str, object], rights: Rights) -> Document:
    acl = {name: _tokens(fields, name) for name in ACL_FIELDS}
    if not acl["allow_token_document"] and not acl["deny_token_document"]:
        acl |= {"allow_token_document": [*rights.allow], "deny_token_document": [*rights.deny]}
    elif rights.is_bound and (rights.allow or rights.deny):
        # A user has to pass every level; so on a level of their own the rights of the command line hold beside those
        # of the document, whatever these say.
        level = _free_level(acl)
        acl |= {f"allow_token_{level}": [*rights.allow], f"deny_token_{level}": [*rights.deny]}
    return {name: tokens or [NO_SECURITY] for name, tokens in acl.items()}


def _free_level(acl: Mapping[str, list[str]]) -> str:
    for level in LEVELS:
        tokens = {*acl[f"allow_token_{level}"], *acl[f"deny_token_{level}"]}
        if level != "document" and tokens <= {NO_SECURITY}:
            return level
    raise BadDocument("The document uses all three levels of rights, so --allow and --deny cannot be added.")


def _tokens(fields: Mapping[str, object], name: str) -> list[str]:
    value = fields.get(name)
    if value is None:
        return []
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(token, str) for token in values):
        # A document whose rights are not understood must not become public.
        raise BadDocument(f"{name}: a list of texts is expected.")
    if any(len(token) > MAX_ID_CHARS or token != encodable(token) for token in values):
        raise BadDocument(f"{name}: tokens of at most {MAX_ID_CHARS} characters are expected.")
    return values


def _text(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name)
    if value is None:
        return ""
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 1:
        value = value[0]
    if not isinstance(value, str):
        raise BadDocument(f"{name}: a text is expected.")
    return encodable(value)


def _moment(text: str) -> str:
    try:
        moment = datetime.datetime.fromisoformat(text)
        return _iso(moment.replace(tzinfo=datetime.UTC) if moment.tzinfo is None else moment.astimezone(datetime.UTC))
    except (ValueError, OverflowError) as error:
        raise BadDocument("last_modified: a date like 2024-01-31T12:00:00Z is expected.") from error


def _iso(moment: datetime.datetime) -> str:
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
