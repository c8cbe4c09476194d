"""Writes conf/rag.properties, docs/settings.md and the packaged copies of conf from the settings table."""

from pathlib import Path

from datafari_rag.core.settings.reference import as_markdown, on_one_screen

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Write the files where they differ."""
    packaged = ROOT / "datafari_rag" / "resources" / "conf"
    packaged.mkdir(parents=True, exist_ok=True)
    (ROOT / "conf" / "rag.properties").write_text(on_one_screen(), "utf-8")
    (ROOT / "docs" / "settings.md").write_text(as_markdown(), "utf-8")
    for name in ("rag.properties", "rag-instructions.txt"):
        (packaged / name).write_bytes((ROOT / "conf" / name).read_bytes())


if __name__ == "__main__":
    main()
