"""
Word documents of before 2007 (`.doc`), by antiword or catdoc: no library in Python for them is kept up.

Both read one file and write its text. They run inside the sandbox, under its limits; LibreOffice would write files
there, which nothing in it may.
"""

from __future__ import annotations

import os
import shutil
import subprocess  # nosec B404
from typing import BinaryIO

from datafari_rag.ingest.parsers.parsed import Parsed, Unreadable, parsed

COMMANDS = (("antiword", "-m", "UTF-8.txt", "-w", "0"), ("catdoc", "-d", "utf-8", "-w"))
NEEDED = "antiword or catdoc is not installed"


def parse(file: BinaryIO) -> Parsed:
    """Return the text of *file*. Raises: OSError; Unreadable: no such document, or no program for it."""
    commands = installed()
    if not commands:
        raise Unreadable(f"Reading .doc files needs one of two Debian packages: {NEEDED}.")
    number = file.fileno()
    for command in commands:
        # No file is opened by a name that somebody chose: the descriptor is what the program gets.
        done = subprocess.run(  # noqa: S603 # nosec B603
            [*command, f"/proc/self/fd/{number}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=(number,),
            check=False,
        )
        text = done.stdout.decode("utf-8", "replace")
        # antiword reads no document of a few lines, and says so on its standard output.
        if not done.returncode and text.strip():
            return parsed(text)
    raise Unreadable("This is not a Word document, or it is protected.")


def installed() -> list[tuple[str, ...]]:
    """Return the commands of the programs that are here, the better one first."""
    found = ((shutil.which(name, path=os.defpath), options) for name, *options in COMMANDS)
    return [(path, *options) for path, options in found if path is not None]
