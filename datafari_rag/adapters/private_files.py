"""
Files that hold texts or ids of documents: made for the account of the service alone.

What is there already loses the rights of accounts that are not of its group. Rights of its group stay: somebody gave
them, and `check` and `doctor` name them.
"""

from __future__ import annotations

import grp
import os
import stat
from contextlib import suppress
from pathlib import Path

OTHERS, GROUP, EXECUTE = 0o007, 0o070, 0o111


def made_private(folder: Path) -> None:
    """
    Make *folder* for this account alone, or take the rights of others from it and from all in it.

    Where its group may read it, so may the group its files, the new ones included: call it again after writing.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    take_from_others(folder)
    group = stat.S_IMODE(folder.stat().st_mode) & GROUP & ~EXECUTE
    for path in folder.rglob("*"):
        take_from_others(path, group)


def take_from_others(path: Path, group: int = 0) -> None:
    """Take the rights of others from *path*, where it is ours and no link; a file gets those of *group* besides."""
    # What is another account's, or gone by now, is not ours to change.
    with suppress(OSError):
        mode = path.lstat().st_mode
        more = group if stat.S_ISREG(mode) else 0
        if not stat.S_ISLNK(mode) and (mode & OTHERS or mode & more != more):
            path.chmod((stat.S_IMODE(mode) | more) & ~OTHERS)


def group_with_rights(folder: Path) -> str | None:
    """Return the name of the group that may read *folder*, None where only its owner may, or where it is absent."""
    try:
        status = folder.stat()
    except OSError:
        return None
    if not status.st_mode & GROUP:
        return None
    try:
        return grp.getgrgid(status.st_gid).gr_name
    except KeyError:
        return str(status.st_gid)


def write_for_this_account_alone() -> None:
    """Give no rights to group and others on what this process, and those it starts, makes from here on."""
    os.umask(0o077)
