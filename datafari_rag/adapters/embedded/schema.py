"""
The embedded index: its fields, the terms of a text, and how an index is made, opened and found to be whole.

One tantivy index. A document is one entry with its words and what is shown of it, and one entry for each passage of its
text; every entry carries the document's id, its number and its rights. So replacing a document is one commit, and the
same filter narrows a search for either. Words are read by `core.text.tokens` alone, here for texts and questions.

An index that is damaged, or that another version made, is refused with one sentence; it is never repaired or emptied.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

from tantivy import Index, Schema, SchemaBuilder, TextAnalyzerBuilder, Tokenizer

from datafari_rag.adapters.private_files import made_private
from datafari_rag.core.access import ACL_FIELDS
from datafari_rag.core.errors import SearchUnavailable
from datafari_rag.core.text.language import MAX_LANGUAGES, Remembered, language_codes, listed
from datafari_rag.core.text.tokens import Token, tokens

SCHEMA_VERSION = 8
"""Counts changes after which an index has to be made again: fields, tokens, how texts are cut, what is stored."""

RAW_FIELDS = ("extension", "language", "source")
"""Fields that can be filtered, ranged over and counted on, as raw terms."""

DATE_FIELD = "last_modified"

KIND, DOCUMENT, PASSAGE = "kind", "document", "passage"
"""The field that says whether an entry is a document or a passage of one."""

NUMBER, KEY = "number", "key"
"""The number of a document, which is never given twice; and of a passage: that number and its place in the text."""

WORDS, TITLE, NAME, PASSAGE_WORDS = "words", "title", "name", "passage_words"
"""Terms of a document's text, title and address, and of a passage with the heading and the lead above it."""

CARD, START, TEXT = "card", "start", "text"
"""What is stored: all that is shown of a document but its text, as JSON; a passage's place and its text."""

MAX_TERM_CHARS = 4096
"""Longest raw term; tantivy drops longer ones than 65,530 bytes without a word, a deny token too."""

META_FILE, VERSION_FILE, SUMS_FILE = "meta.json", "datafari-rag.json", "checksums.json"

VECTORS_FILE = "vectors.json"
"""The list of the vectors beside an index, absent where there are none."""

_SEGMENT_DIGITS = 32
_TAG = "\x1f"
_NO_ENDINGS = "\u0530"
"""From here on are scripts whose languages have no endings in their data: Latin, Greek and Cyrillic are before it."""

MAX_STEM_CHARS = 600
"""tantivy refuses terms of more than 65,530 bytes: no word of a language is a tenth of this."""

MAX_TERMS = 50_000
"""The most stems of a language that are remembered."""

Stamp = tuple[int, int, int]
"""Of a file that is replaced whole: inode, time of the last change in nanoseconds, and size in bytes."""


def terms_of(text: str, language: str) -> tuple[list[Token], list[str]]:
    """
    Return the tokens of *text* in order, and of each the term that is indexed and looked for, "" for none.

    A stem is marked with the language whose endings were taken off: "station" has another stem in French, which must
    not be found for an English one.
    """
    terms = _TERMS[language if language in stemmed_languages() else ""]
    read = tokens(text, language or None)
    return read, [terms[token.stem] for token in read]


def _marked_terms(language: str) -> Remembered[str, str]:
    mark = _TAG + language if language else ""
    return Remembered(
        lambda stem: stem[:MAX_STEM_CHARS] + mark if stem.isalpha() and stem < _NO_ENDINGS else stem[:MAX_STEM_CHARS],
        MAX_TERMS,
    )


_TERMS: Remembered[str, Remembered[str, str]] = Remembered(_marked_terms, MAX_LANGUAGES)
"""The term of a stem, by language and stem."""


def terms_in(text: str, language: str) -> list[str]:
    """Return the terms of *text* that are not empty, without their places."""
    return [term for term in terms_of(text, language)[1] if term]


@cache
def stemmed_languages() -> tuple[str, ...]:
    """Return the codes of the languages that have endings in their data, in order."""
    return tuple(code for code in language_codes() if listed(code, "suffixes"))


def schema() -> Schema:
    """Return the fields: six ACL fields as raw terms that are never stored, the others as named above."""
    builder = SchemaBuilder()
    for name in (KIND, "id", *ACL_FIELDS):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field(NUMBER, indexed=True, fast=True)
    builder.add_unsigned_field(KEY, indexed=True, fast=True)
    for name in (WORDS, TITLE, NAME):
        builder.add_text_field(name, tokenizer_name="terms")
    builder.add_text_field(PASSAGE_WORDS, tokenizer_name="terms", index_option="basic")
    builder.add_text_field("title_sort", tokenizer_name="raw", index_option="basic", fast=True)
    for name in RAW_FIELDS:
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic", fast=True)
    builder.add_date_field(DATE_FIELD, indexed=True, fast=True)
    # A text field would be indexed as well; as bytes a text is only kept.
    builder.add_bytes_field(CARD, stored=True)
    builder.add_bytes_field(TEXT, stored=True)
    builder.add_unsigned_field(START, stored=True)
    return builder.build()


def opened(directory: Path) -> Index:
    """
    Return the index in *directory*.

    Raises:
        SearchUnavailable: there is none, it is damaged, or another version made it; the sentence says which.
    """
    if not exists(directory):
        raise SearchUnavailable(
            "There is no search index yet: `datafari-rag index PATH` makes one.", log=str(directory)
        )
    try:
        made_by = json.loads((directory / VERSION_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise damaged(directory) from error
    if made_by != versions():
        raise SearchUnavailable(
            "The search index was made by another version: remove its folder and index the files again.",
            log=f"made by {made_by}, wanted {versions()}: {directory}",
        )
    made_private(directory)
    with translated(directory):
        # Opened first: what is open stays readable, whatever a writer removes while the sums are compared.
        index = Index.open(str(directory))
        index.searcher()
        if not are_whole(directory):
            raise damaged(directory)
        return _registered(index)


def created(directory: Path) -> Index:
    """Return the index in *directory*, made when there is none. Raises: SearchUnavailable as `opened`."""
    if exists(directory):
        return opened(directory)
    with translated(directory):
        made_private(directory)
        write_whole(directory / VERSION_FILE, json.dumps(versions()))
        return _registered(Index(schema(), path=str(directory)))


def exists(directory: Path) -> bool:
    """Say whether *directory* holds an index. Raises: SearchUnavailable: it holds what is left of one."""
    if (directory / META_FILE).exists():
        return True
    if any(directory.glob("*.store")):
        raise damaged(directory)
    return False


def versions() -> dict[str, object]:
    """Return what an index was made by, as far as it matters to those who open it."""
    # The format may change between minor versions of tantivy, never within one.
    return {"schema": SCHEMA_VERSION, "tantivy": ".".join(version("tantivy").split(".")[:2])}


def damaged(directory: Path) -> SearchUnavailable:
    """Return the error that names a damaged index."""
    return SearchUnavailable(
        "The search index is damaged: remove its folder and index the files again.", log=f"damaged: {directory}"
    )


@contextmanager
def translated(directory: Path) -> Iterator[None]:
    """
    Turn whatever tantivy raises into a SearchUnavailable that shows none of it.

    Raises:
        SearchUnavailable: the index is locked by another writer, damaged, or out of disk.
    """
    try:
        yield
    except (ValueError, OSError, RuntimeError) as error:
        raise _named(error, directory) from error
    except BaseException as error:
        # A panic in tantivy arrives as a BaseException of a module that cannot be imported.
        if type(error).__name__ != "PanicException":
            raise
        raise damaged(directory) from error


def seal(directory: Path) -> None:
    """
    Note the checksum of every file of the index, for `are_whole`. Raises: OSError.

    A file never changes once it is written, so only new ones are read. A crash before leaves them without a sum, and
    the next writer notes it.
    """
    known, sums = _sums(directory), dict[str, list[int]]()
    committed = (directory / META_FILE).read_text(encoding="utf-8").replace("-", "")
    for path in directory.iterdir():
        # Named by their segment, which the meta file writes with dashes; one not committed may still be written.
        segment = path.name.partition(".")[0]
        if len(segment) != _SEGMENT_DIGITS or segment not in committed:
            continue
        with suppress(FileNotFoundError):
            state, same = _state_of(path), known.get(path.name)
            sums[path.name] = same if same is not None and same[:2] == state else [*state, _sum_of(path)]
    if sums != known:
        write_whole(directory / SUMS_FILE, json.dumps(sums))


def are_whole(directory: Path) -> bool:
    """Say whether no file of the index was changed since its sum was noted; untouched files are not read again."""
    for name, (*state, checksum) in _sums(directory).items():
        path = directory / name
        try:
            if _state_of(path) != state and _sum_of(path) != checksum:
                return False
        except FileNotFoundError:
            # Merged into another one, or deletions that others took the place of.
            segments = (directory / META_FILE).read_text(encoding="utf-8").replace("-", "")
            if not name.endswith(".del") and name.partition(".")[0] in segments:
                return False
    return True


def last_number_in(directory: Path) -> int:
    """Return the last number of a document that vectors may have been written for, 0 for none."""
    try:
        return int(json.loads((directory / VECTORS_FILE).read_text(encoding="utf-8"))["last"])
    except FileNotFoundError:
        return 0
    except (ValueError, LookupError, TypeError) as error:
        raise damaged(directory) from error


def stamp_of(path: Path) -> Stamp | None:
    """Return the stamp of the file, None without one; a replaced file has another stamp."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def write_whole(path: Path, text: str) -> None:
    """Write *text* so that a crash leaves the old file or the new one. Raises: OSError."""
    # Several processes may write the same file: each needs a separate draft.
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    with draft.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def _registered(index: Index) -> Index:
    # What is indexed are terms already, with a blank between two.
    index.register_tokenizer("terms", TextAnalyzerBuilder(Tokenizer.whitespace()).build())
    return index


def _named(error: Exception, directory: Path) -> SearchUnavailable:
    text = str(error)
    if "LockBusy" in text:
        return SearchUnavailable(
            "Another program is writing to this search index: try again when it is done.", log=str(directory)
        )
    if isinstance(error, OSError) or "No space left" in text:
        why = getattr(error, "strerror", None) or "No space left on device"
        return SearchUnavailable("The search index cannot be written or read on its disk.", log=f"{why}: {directory}")
    return damaged(directory)


def _state_of(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]


def _sum_of(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            checksum = zlib.crc32(piece, checksum)
    return checksum


def _sums(directory: Path) -> dict[str, list[int]]:
    """Return size, time of the last change and checksum of each file by its name. Raises: ValueError, OSError."""
    try:
        sums = json.loads((directory / SUMS_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    if not isinstance(sums, dict) or not all(isinstance(row, list) and len(row) == 3 for row in sums.values()):
        raise ValueError("no checksums")
    return sums
