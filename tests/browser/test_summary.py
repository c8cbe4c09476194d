"""The summary of a document on its page: sentences, and marks that open the words which prove them."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Come
from tests.end_to_end.processes import Running

pytestmark = pytest.mark.browser


def test_a_document_is_summarised_and_each_mark_opens_its_proof(demo_service: Running, come: Come) -> None:
    found = demo_service.get("/search/select?q=copy+a+file&fl=id&rows=1").json()["response"]["docs"][0]["id"]
    page = come(demo_service.url).open(f"/documents?id={found}")
    page.click("#summary button")
    marks = page.locator("#summary a.mark")
    expect(marks.first).to_have_text("[1]")
    expect(page.locator("#summary button")).to_have_count(0)
    assert {
        "verified" in name or "quoted" in name for name in marks.evaluate_all("all => all.map((a) => a.className)")
    } == {True}
    text = page.locator("#summary .told").inner_text()
    sentence = text.split(" [1]")[0]
    marks.first.click()
    page.wait_for_url("**/documents?**#passage")
    proof = " ".join(page.locator("#passage").inner_text().split())
    assert sentence.strip("“”") in proof or proof in sentence


def test_without_script_there_is_no_button(demo_service: Running, come: Come) -> None:
    found = demo_service.get("/search/select?q=copy+a+file&fl=id&rows=1").json()["response"]["docs"][0]["id"]
    page = come(demo_service.url, java_script_enabled=False).open(f"/documents?id={found}")
    assert not page.locator("#summary").is_visible()
