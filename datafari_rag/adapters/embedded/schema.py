"""
The embedded index's fields and analysers, and how an index is created and opened: Datafari's schema, in tantivy.

Knows nothing of users and queries. An index that is damaged, or was made by another version, is named and refused; it
is never repaired or emptied here.

Each file of an index ends with a checksum of itself. A file never changes once it is written, so each is read for its
checksum once, by the first process that opens the index; what was checked is noted beside the files. The note is an
economy, never needed: where it cannot be read or written, files are checked again.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path

from tantivy import Filter, Index, Schema, SchemaBuilder, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from datafari_rag.adapters.private_files import made_private
from datafari_rag.core.access import ACL_FIELDS
from datafari_rag.core.documents import FILE_FIELD, PLACES_FIELD
from datafari_rag.core.errors import SearchUnavailable
from datafari_rag.core.text.words import Remembered

SCHEMA_VERSION = 6
"""Counts changes after which an index has to be made again: fields, analysers, what is stored."""

LANGUAGES = {"en": "english", "fr": "french", "de": "german", "es": "spanish"}
"""Languages with a separate field, as in Datafari's schema, and the names of their stemmers."""

RAW_FIELDS = ("extension", "language", "source")
"""Fields that can be filtered, ranged over and counted on, as raw terms."""

SHOWN_FIELDS = ("title", "url", "preview_content", PLACES_FIELD, FILE_FIELD)
"""Fields that are stored for display or for positions in the file, and have no terms."""

STORED_FIELDS = ("id", "title", "url", "exactContent", "preview_content", "last_modified", *RAW_FIELDS)
"""What a hit can show. `content_<language>` holds the same text as exactContent and is answered from it."""

MAX_TERM_CHARS = 4096
"""Longest raw term; tantivy drops longer ones than 65,530 bytes without a word, a deny token too."""

BLOCK_FIELD = "block"
"""Number of a document's vectors in the files beside the index; a document without vectors has none."""

VERSION_FILE = "datafari-rag.json"

MAX_WORDS = 4096
"""Words of which the terms are remembered: the same few analysers look at each for eleven fields."""

TermsOfWords = Remembered[tuple[str, str], tuple[str, ...]]
"""The terms of a word by the name of an analyser, in order."""

_MAX_WORD_BYTES = 120
# A character of a script without spaces is a separate word, so that any stretch of them is found as a phrase.
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Myanmar}\p{Khmer}"
_WORD_PATTERN = rf"[{_UNSPACED}]|[\p{{L}}\p{{M}}\p{{N}}&&[^{_UNSPACED}]]+"


def schema() -> Schema:
    """Return the fields: six ACL fields as raw terms that are never stored, the others as Datafari names them."""
    builder = SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    for name in SHOWN_FIELDS:
        # A text field would be indexed as well; as bytes a text is only kept.
        builder.add_bytes_field(name, stored=True)
    builder.add_text_field("exactContent", stored=True, tokenizer_name="plain")
    builder.add_text_field("exactTitle", tokenizer_name="plain")
    builder.add_text_field("url_search", tokenizer_name="plain")
    builder.add_text_field("title_sort", tokenizer_name="raw", index_option="basic", fast=True)
    for code in LANGUAGES:
        builder.add_text_field(f"content_{code}", tokenizer_name=code)
        # A title is too short to detect its language, so every analysis has it.
        builder.add_text_field(f"title_{code}", tokenizer_name=code)
    for name in RAW_FIELDS:
        builder.add_text_field(name, stored=True, tokenizer_name="raw", index_option="basic", fast=True)
    builder.add_date_field("last_modified", stored=True, indexed=True, fast=True)
    builder.add_unsigned_field(BLOCK_FIELD, stored=True, indexed=True, fast=True)
    for name in ACL_FIELDS:
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    return builder.build()


def analyzers() -> Mapping[str, TextAnalyzer]:
    """Return the analysers by name: one for each language (stemmed, accents folded) and `plain` (lower case only)."""
    # The pattern costs as much time as stemming, so only the field that has every document's text is cut by it.
    by_name = {"plain": _lowered(Tokenizer.regex(_WORD_PATTERN)).build()}
    for code, language in LANGUAGES.items():
        # Folding comes after the stemmer, whose rules know the accents.
        words = _lowered(Tokenizer.simple()).filter(Filter.stemmer(language)).filter(Filter.ascii_fold())
        by_name[code] = words.build()
    return by_name


def terms_of_words() -> TermsOfWords:
    """Return what the analysers make of words, nothing remembered yet."""
    tools = analyzers()
    return Remembered(lambda key: tuple(tools[key[1]].analyze(key[0])), MAX_WORDS)


def analyzer_of(field: str) -> str:
    """Return the name of the analyser of the text field *field*."""
    suffix = field.rpartition("_")[2]
    return suffix if suffix in LANGUAGES else "plain"


def opened(directory: Path) -> Index:
    """
    Return the index in *directory*, its analysers registered, every one of its files checked.

    Raises:
        SearchUnavailable: there is none, it is damaged, or another version made it; the sentence says which.
    """
    if not exists(directory):
        raise SearchUnavailable(
            "There is no search index yet: create one with `datafari-rag index`.", log=str(directory)
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
    if not are_whole(directory):
        raise damaged(directory)
    made_private(directory)
    with translated(directory):
        return _registered(Index.open(str(directory)))


def created(directory: Path, fields: Callable[[], Schema] = schema) -> Index:
    """Return the index in *directory*, made of *fields* when there is none. Raises: SearchUnavailable as `opened`."""
    if exists(directory):
        return opened(directory)
    with translated(directory):
        made_private(directory)
        write_whole(directory / VERSION_FILE, json.dumps(versions()))
        return _registered(Index(fields(), path=str(directory)))


def exists(directory: Path) -> bool:
    """Say whether *directory* holds an index. Raises: SearchUnavailable: it holds what is left of one."""
    if (directory / META_FILE).exists():
        return True
    if any(directory.glob("*.store")):
        raise damaged(directory)
    return False


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


def versions() -> dict[str, object]:
    """Return what an index was made by, as far as it matters to those who open it."""
    # The format may change between minor versions of tantivy, never within one.
    return {"schema": SCHEMA_VERSION, "tantivy": ".".join(version("tantivy").split(".")[:2])}


def _lowered(tokenizer: Tokenizer) -> TextAnalyzerBuilder:
    return TextAnalyzerBuilder(tokenizer).filter(Filter.remove_long(_MAX_WORD_BYTES)).filter(Filter.lowercase())


def _registered(index: Index) -> Index:
    for name, analyzer in analyzers().items():
        index.register_tokenizer(name, analyzer)
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


META_FILE = "meta.json"
CHECKED_FILE = "checked.json"

_FOOTER = struct.Struct("<II")
_FOOTER_MAGIC = 1337
_PARTS = ("term", "idx", "pos", "store", "fieldnorm", "fast")

Stamp = tuple[int, int, int]
"""Of a file that is replaced whole: inode, time of the last change in nanoseconds, and size in bytes."""

State = list[int]
"""Of a file: its size in bytes, and when it was last changed in nanoseconds."""


def stamp_of(path: Path) -> Stamp | None:
    """Return the stamp of the file, None without one; a replaced file has another stamp."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def are_whole(directory: Path) -> bool:
    """Return whether every file of the index in *directory* exists and is neither truncated nor changed."""
    before = None
    while (meta := _bytes_of(directory / META_FILE)) != before:
        if meta is not None and _are_named_files_whole(directory, meta):
            return True
        # A writer may have replaced these files in the meantime: then the list is a new one.
        before = meta
    return False


def write_whole(path: Path, text: str) -> None:
    """Write *text* so that a crash leaves the old file or the new one. Raises: OSError."""
    # Several processes may write the same file: each needs a separate draft.
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    with draft.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def _are_named_files_whole(directory: Path, meta: bytes) -> bool:
    names = list(_file_names(meta))
    states = {name: _state_of(directory / name) for name in names}
    checked = _checked(directory)
    unchecked = [name for name in names if states[name] is None or checked.get(name) != states[name]]
    if not all(_is_whole(directory / name) for name in unchecked):
        return False
    if unchecked:
        # A folder that this process may only read keeps no note.
        with suppress(OSError):
            write_whole(directory / CHECKED_FILE, json.dumps(states))
    return True


def _checked(directory: Path) -> Mapping[str, object]:
    """Return the state in which each file was found whole; empty where that was not noted."""
    try:
        noted = json.loads(_bytes_of(directory / CHECKED_FILE) or b"{}")
    except ValueError:
        return {}
    return noted if isinstance(noted, dict) else {}


def _state_of(path: Path) -> State | None:
    try:
        state = path.stat()
    except OSError:
        return None
    return [state.st_size, state.st_mtime_ns]


def _bytes_of(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _file_names(meta: bytes) -> Iterator[str]:
    """Yield the names of all files of the segments; one that cannot exist when *meta* is unreadable."""
    try:
        for segment in json.loads(meta)["segments"]:
            name = segment["segment_id"].replace("-", "")
            yield from (f"{name}.{part}" for part in _PARTS)
            if segment["deletes"] is not None:
                yield f"{name}.{segment['deletes']['opstamp']}.del"
    except (ValueError, LookupError, TypeError, AttributeError):
        yield ""


def _is_whole(path: Path) -> bool:
    """Compare the file with its own footer: JSON with a CRC-32 of the rest, its length, a magic number."""
    try:
        with path.open("rb") as file:
            body = file.seek(-_FOOTER.size, os.SEEK_END)
            length, magic = _FOOTER.unpack(file.read(_FOOTER.size))
            body = file.seek(body - length)
            footer = json.loads(file.read(length)) if magic == _FOOTER_MAGIC else {}
            file.seek(0)
            checksum = 0
            while body > 0 and (piece := file.read(min(body, 1 << 20))):
                checksum = zlib.crc32(piece, checksum)
                body -= len(piece)
            return bool(checksum == footer["crc"])
    except (OSError, ValueError, LookupError, struct.error):
        return False
