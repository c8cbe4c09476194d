"""The name under which a file of a caller is kept: what the caller calls it, without what could make it a path."""

from __future__ import annotations

import unicodedata

MAX_NAME_BYTES = 200
"""File systems take 255; some of them is left for what is put around a name while a file is written."""

MAX_ENDING_CHARS = 16

MAX_READ_CHARS = 4000
"""Of a longer name only the end is read, because it has the extension."""


def file_name_of(named: str) -> str | None:
    """
    Return the name for a file that its sender calls *named*; None where no part of it is usable.

    It has no folder, is never hidden, has no character that cannot be seen (ends of lines, commands to a terminal,
    marks that turn the direction of writing), and at most `MAX_NAME_BYTES` in UTF-8; of a longer one the stem is cut.
    """
    last = named[-MAX_READ_CHARS:].replace("\\", "/").rpartition("/")[2]
    shown = "".join(one for one in unicodedata.normalize("NFC", last) if one.isprintable())
    stem, dot, ending = shown.strip(" .").rpartition(".")
    stem = stem.rstrip(" .")
    if not dot or not stem or not ending or len(ending) > MAX_ENDING_CHARS:
        return None
    room = MAX_NAME_BYTES - len(f".{ending}".encode())
    return f"{stem.encode()[:room].decode(errors='ignore').rstrip(' .')}.{ending}"
