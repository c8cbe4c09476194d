"""The command that installs an extra where this program runs."""

from __future__ import annotations

import shlex
import sys


def command_for(extra: str) -> str:
    """
    Return the command for a shell that adds *extra* to the environment of this program.

    It names this environment's own interpreter, for which the package is there already: no index needs to have it.
    """
    return f"{shlex.quote(sys.executable)} -m pip install 'datafari-rag[{extra}]'"
