"""How a document is named on the command line: by its id, or by the path of the file that it was made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


class DocumentId(click.ParamType[str]):
    """The id of a document; of a file that is there, the id under which `index` keeps it."""

    name = "id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the id."""
        path = Path(value)
        return path.resolve().as_uri() if path.is_file() else str(value)
