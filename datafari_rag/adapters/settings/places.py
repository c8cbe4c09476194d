"""Whether this account can use the files and folders that settings name: tried, for modes alone do not say it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from datafari_rag.core.messages import message
from datafari_rag.core.settings.table import Settings


def unusable(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield the key and one sentence for each file or folder that cannot be written or read as it has to be."""
    if settings.log_file and not is_writable(Path(settings.log_file)):
        yield "log.file", message("The log cannot be written to {path}: its folder must exist.", path=settings.log_file)
    for key, folder in (("audit.folder", settings.audit_folder), ("chat.store.folder", settings.chat_store_folder)):
        if folder and not is_writable_folder(Path(folder)):
            yield key, message("This account cannot write to the folder {path}.", path=folder)
    is_read = settings.security_mode == "tokens" and settings.security_tokens == "file"
    if is_read and settings.security_tokens_file and not is_readable(Path(settings.security_tokens_file)):
        yield (
            "security.tokens.file",
            message("The file {path} cannot be read.", path=settings.security_tokens_file),
        )


def is_writable(file: Path) -> bool:
    """Say whether lines can be added to *file*, which is made when the first one comes: its folder is not."""
    if not file.exists():
        return file.parent.is_dir() and is_writable_folder(file.parent)
    try:
        with file.open("ab"):
            return True
    except OSError:
        return False


def is_writable_folder(folder: Path) -> bool:
    """Say whether files can be made in *folder*, or in the nearest one above it that exists; nothing is left there."""
    nearest = next((one for one in (folder, *folder.parents) if one.exists()), Path("/"))
    try:
        with tempfile.TemporaryFile(dir=nearest):
            return True
    except OSError:
        return False


def is_readable(file: Path) -> bool:
    """Say whether *file* is there and can be read."""
    try:
        with file.open("rb"):
            return True
    except OSError:
        return False
