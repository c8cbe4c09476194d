"""Where every command finds its settings: --conf FILE or FOLDER, else conf/rag.properties."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import click

FILE = "rag.properties"


class SettingsPath(click.ParamType[Path]):
    """A properties file, or a folder: one that holds `rag.properties`, or one that `demo FOLDER` serves."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the properties file; whether one that is named itself is there is said where it is read."""
        path = Path(value)
        if not path.is_dir():
            return path
        found = next((one / FILE for one in (path, demo_place(path)) if (one / FILE).exists()), None)
        if found is None:
            self.fail(
                f"{path} has no {FILE}: run `datafari-rag demo {path}` once, or name a settings file.", param, ctx
            )
        return found


CONF = click.option(
    "--conf",
    type=SettingsPath(),
    default=f"conf/{FILE}",
    show_default=True,
    help="The settings: a properties file, a folder with a rag.properties, or a folder that `demo FOLDER` serves.",
)


def demo_place(folder: Path | None, *, is_near: bool = False) -> Path:
    """Return where the demo of *folder*, None for the shipped documents, keeps its index and settings."""
    base = Path.home() / ".local/share"
    home = Path(os.environ.get("DATAFARI_RAG_HOME") or Path(os.environ.get("XDG_DATA_HOME") or base) / "datafari-rag")
    if folder is None:
        return home / ("demo-meaning" if is_near else "demo")
    return home / "folders" / hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:12]
