"""An administrator sees the settings; no other user can open them."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Come
from tests.browser.places import DEMO
from tests.end_to_end.processes import Running

pytestmark = pytest.mark.browser

SECRET = DEMO["rag.api.token"]


@pytest.mark.parametrize("name", ["", "alice"], ids=["anonymous", "a user who is no administrator"])
def test_the_page_is_closed_to(demo_service: Running, come: Come, name: str) -> None:
    reader = come(demo_service.url)
    reader.open()
    if name:
        reader.be(name)
    assert reader.page.get_by_role("link", name="Settings").count() == 0
    reader.open("/admin")

    assert reader.page.get_by_role("heading", name="You do not have access to this page").is_visible()
    reader.complaints.clear()  # the browser itself notes the 403


def test_an_administrator_sees_state_and_settings_and_tries_a_question(demo_service: Running, come: Come) -> None:
    reader = come(demo_service.url)
    reader.open()
    page = reader.be("admin")
    page.get_by_role("link", name="Settings").click()
    assert page.locator("#state .good").count() == 5
    assert SECRET not in page.content()
    expect(page.get_by_role("row", name="rag.api.token")).to_contain_text("***")
    page.get_by_label("Your question").fill("How do I copy a file in Python?")
    page.get_by_role("button", name="Ask").click()
    reader.ended()
    assert "shutil" in page.locator(".prose").inner_text()
