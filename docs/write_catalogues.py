"""Writes the binary catalogues of the pages' words from the .po files, and names sentences without translation."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

from datafari_rag.core.errors import ModelError, SearchError, leaves

ROOT = Path(__file__).resolve().parent.parent
LOCALES = ROOT / "datafari_rag" / "resources" / "locale"
METHODS = [
    ("web/**.py", "python"),
    ("core/settings/**.py", "python"),
    ("adapters/**.py", "python"),
    ("resources/templates/**.html", "jinja2"),
]
KEYWORDS = {"_": None, "translate": None, "message": None}


def sentences() -> set[str]:
    """Return every sentence of the pages, as the code has it."""
    found = extract_from_dir(ROOT / "datafari_rag", METHODS, keywords=KEYWORDS)
    of_parts = {kind.sentence for root in (SearchError, ModelError) for kind in leaves(root)}
    return {str(text) for _, _, text, _, _ in found} | of_parts


def compiled(source: Path) -> bytes:
    """Return the binary catalogue of the .po file *source*."""
    written = io.BytesIO()
    with source.open("rb") as file:
        write_mo(written, read_po(file))
    return written.getvalue()


def missing(source: Path) -> set[str]:
    """Return the sentences that *source* does not translate."""
    with source.open("rb") as file:
        known = {str(message.id) for message in read_po(file) if message.string}
    return sentences() - known


def sources() -> Iterator[Path]:
    """Yield every .po file."""
    yield from sorted(LOCALES.glob("*/LC_MESSAGES/messages.po"))


if __name__ == "__main__":
    for path in sources():
        path.with_suffix(".mo").write_bytes(compiled(path))
        for sentence in sorted(missing(path)):
            print(f"{path.relative_to(ROOT)}: not translated: {sentence}")  # noqa: T201 # a command prints
