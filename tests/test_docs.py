"""The pages say what is so: every key, value, command, target and link of theirs is one that there is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from datafari_rag.commands.main import commands
from datafari_rag.core.settings.table import BY_KEY, ROWS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md"), *(ROOT / "extras").glob("*/*.md")])
"""What is promised is one page, and the page of settings is written from their table."""

SHIPPED = [
    *PAGES,
    *(path for path in (ROOT / "deploy").rglob("*") if path.is_file()),
    *(path for path in (ROOT / "datafari_rag").rglob("*") if path.suffix in {".py", ".json", ".properties", ".html"}),
]
GROUPS = {row.key.partition(".")[0] for row in ROWS}
FENCE = re.compile(r"^```\w*\n(.*?)^```$", re.M | re.S)


def texts() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        yield str(page.relative_to(ROOT)), page.read_text("utf-8")


def snippets(text: str) -> Iterator[str]:
    """Yield what a page shows as code: inline, and each line of its fenced and indented blocks."""
    for block in FENCE.findall(text):
        yield from block.splitlines()
    yield from (line.strip() for line in text.splitlines() if line.startswith("    "))
    yield from re.findall(r"`([^`\n]+)`", FENCE.sub("", text))


def anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_the_index_names_every_page() -> None:
    named = set(re.findall(r"\]\(([\w-]+\.md)\)", (DOCS / "README.md").read_text("utf-8")))
    assert named == {page.name for page in DOCS.glob("*.md")} - {"README.md"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_link_leads_to_a_page_and_to_a_heading_of_it(page: Path) -> None:
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text("utf-8")):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_commands_and_targets_that_are_named_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z][\w-]*):", makefile, re.M))
    lines = [line for _, text in texts() for line in snippets(text)]
    made = {target for line in lines for target in re.findall(r"\bmake ([a-z][\w-]*)", line)}
    called = {name for line in lines for name in re.findall(r"(?:^|[/\s(])(?<!-g )datafari-rag ([a-z][a-z-]+)", line)}

    assert made - targets == set()
    assert called - commands().keys() == set()


def test_a_value_that_is_shown_is_one_that_its_setting_takes() -> None:
    shown = set()
    # The page of mistakes shows values that are refused.
    for name, text in ((name, text) for name, text in texts() if name != "docs/faults.md"):
        for key, value in (found for line in snippets(text) for found in re.findall(r"^([a-z]+\.[\w.]+)=(.*)$", line)):
            if key.partition(".")[0] in GROUPS and "…" not in value:
                shown.add((name, key, value))
    wrong = []
    for name, key, value in sorted(shown):
        row = BY_KEY.get(key)
        try:
            assert row is not None
            row.read(value)
        except (AssertionError, ValueError):
            wrong.append((name, key, value))

    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_group_of_keys_that_is_named_has_keys(page: Path) -> None:
    groups = re.findall(r"`([a-z][\w.*]*\.)\*`", page.read_text("utf-8"))
    assert [group for group in groups if not any(row.key.startswith(group) for row in ROWS)] == []
