"""What the page writes of a thumb: ids alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Come
from tests.browser.places import Zoo
from tests.end_to_end.processes import Running

pytestmark = pytest.mark.browser

COPY = "How do I copy a file in Python?"
NAMES = {"at", "request_id", "verdict", "reason", "documents", "cited"}


def last_of(path: Path) -> dict[str, Any]:
    kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8").splitlines()[-1])
    return kept


def down(page: Page, reason: str) -> None:
    """Say of the last answer that it did not help, and why."""
    thumbs = page.locator(".thumbs").last
    thumbs.get_by_role("button", name="No").click()
    thumbs.locator("select").select_option(reason)
    thumbs.get_by_role("button", name="Send").click()
    thumbs.get_by_text("Thank you").wait_for()


def test_a_thumb_is_kept_with_ids_only(demo_service: Running, come: Come) -> None:
    path = demo_service.log.parent / "feedback.jsonl"
    page = come(demo_service.url).ask(COPY)
    down(page, "incomplete")
    kept = last_of(path)

    assert (kept["verdict"], kept["reason"], set(kept)) == ("down", "incomplete", NAMES)
    assert kept["documents"] and set(kept["cited"]) <= set(kept["documents"])
    assert "shutil" not in path.read_text("utf-8") and "copy a file" not in path.read_text("utf-8")
    assert page.locator(".thumbs [role=status]").evaluate("said => said === document.activeElement")


@pytest.fixture
def thumbs(zoo_service: Zoo) -> Path:
    """The file of a service, empty at first."""
    path = zoo_service.folder / "feedback.jsonl"
    path.unlink(missing_ok=True)
    zoo_service.behave("quote", feedback__file="feedback.jsonl")
    return path


def test_a_reader_without_script_gives_a_thumb_too(zoo_service: Zoo, thumbs: Path, come: Come) -> None:
    page = come(zoo_service.url, java_script_enabled=False).open("/?q=giraffe+fence")
    page.get_by_role("button", name="Yes").click()
    page.get_by_role("heading", name="Thank you").wait_for()

    kept = last_of(thumbs)
    assert (kept["verdict"], kept["cited"], kept["documents"]) == ("up", ["plain"], ["plain"])


def test_a_thumb_that_was_not_kept_says_so(demo_service: Running, come: Come) -> None:
    reader = come(demo_service.url)
    page = reader.ask(COPY)
    page.route("**/feedback", lambda route: route.fulfill(status=503, json={}))
    page.locator(".thumbs").get_by_role("button", name="Yes").click()

    page.locator(".thumbs").get_by_text("The connection was lost").wait_for()
    reader.complaints.clear()  # the browser itself notes the 503
