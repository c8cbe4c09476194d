"""An administrator can change settings safely; no other user can open them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Come
from tests.browser.places import DEMO, demo
from tests.browser.surfing import Surfer
from tests.end_to_end.processes import Running

pytestmark = pytest.mark.browser

SECRET = DEMO["rag.api.token"]


@pytest.fixture(scope="module")
def own_demo(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A separate demo for this module: its settings change. Two workers: both must give the same answers."""
    with demo(tmp_path_factory.mktemp("settings"), workers=2) as found:
        conf = conf_of(found)
        conf.write_text("# kept: the first line\n" + conf.read_text("utf-8") + "# kept: the last line\n", "utf-8")
        yield found


def conf_of(service: Running) -> Path:
    return service.log.parent / "rag.properties"


def office(service: Running, come: Come) -> Page:
    return administrator(service, come).page


def administrator(service: Running, come: Come, *, alone: bool = False) -> Surfer:
    reader = come(service.url, alone=alone)
    reader.open()
    page = reader.be("admin")
    page.get_by_role("link", name="Settings").click()
    page.wait_for_selector("#settings")
    return reader


@pytest.mark.parametrize("name", ["", "alice"], ids=["anonymous", "a user who is no administrator"])
def test_the_page_is_closed_to(own_demo: Running, come: Come, name: str) -> None:
    reader = come(own_demo.url)
    reader.open()
    if name:
        reader.be(name)
    assert reader.page.get_by_role("link", name="Settings").count() == 0
    reader.open("/admin")

    assert reader.page.get_by_role("heading", name="You do not have access to this page").is_visible()
    reader.complaints.clear()  # the browser itself notes the 403


def test_a_bad_value_is_told_as_it_is_typed_and_a_good_one_is_saved(own_demo: Running, come: Come) -> None:
    page = office(own_demo, come)
    page.get_by_label("rag.temperature", exact=True).fill("9")
    row = page.locator("[data-key='rag.temperature']")
    row.locator(".problem:not(:empty)").wait_for()
    assert (
        row.locator(".problem").inner_text().removeprefix("✕ ")
        == 'Invalid value for rag.temperature property: "9". A number between 0 and 2 is expected.'
    )
    assert page.get_by_role("button", name="Save").is_disabled()
    page.get_by_label("rag.temperature", exact=True).fill("0.25")
    page.wait_for_selector("#save:not([disabled])")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("1 setting saved").wait_for()
    text = conf_of(own_demo).read_text("utf-8")

    assert "rag.temperature=0.25" in text
    assert text.startswith("# kept: the first line") and "# kept: the last line" in text
    assert page.locator("#history").inner_text().count("rag.temperature") == 1
    assert "admin" in page.locator("#history tbody").inner_text()
    assert "differs" in (row.get_attribute("class") or "")
    log = json.loads(conf_of(own_demo).with_name("rag.properties.changes.jsonl").read_text("utf-8").splitlines()[-1])
    assert log["who"] == "admin" and log["changes"] == [{"key": "rag.temperature", "from": None, "to": "0.25"}]


def test_a_bad_value_sent_all_the_same_is_not_saved_and_kept(own_demo: Running, come: Come) -> None:
    reader = administrator(own_demo, come)
    page = reader.page
    before = conf_of(own_demo).read_bytes()
    page.get_by_label("rag.maxFiles", exact=True).fill("many")
    page.evaluate("document.getElementById('settings').submit()")
    page.wait_for_selector("[role=alert]")

    assert page.get_by_label("rag.maxFiles", exact=True).input_value() == "many"
    assert "An integer is expected." in page.locator("[data-key='rag.maxFiles']").inner_text()
    assert conf_of(own_demo).read_bytes() == before
    page.evaluate("document.querySelectorAll('.touched').forEach(row => row.classList.remove('touched'))")
    reader.complaints.clear()  # the browser itself notes the 422


def test_no_secret_reaches_the_browser_and_none_can_be_sent_elsewhere(own_demo: Running, come: Come) -> None:
    page = office(own_demo, come)
    assert SECRET not in page.content()
    assert page.get_by_label("rag.api.token", exact=True).get_attribute("placeholder") == "is set"
    for key in ("rag.api.endpoint", "openai.indexes", "security.mode", "solr.fields"):
        assert page.get_by_label(key, exact=True).is_disabled(), key
        assert "cannot be changed in a browser" in page.locator(f"[data-key='{key}'] .notes").inner_text()


def test_a_field_that_was_opened_by_hand_changes_nothing(own_demo: Running, come: Come) -> None:
    reader = administrator(own_demo, come)
    page = reader.page
    before = conf_of(own_demo).read_bytes()
    field = page.get_by_label("rag.api.endpoint", exact=True)
    field.evaluate("field => field.removeAttribute('disabled')")
    field.fill("https://elsewhere.invalid/v1/chat/completions")
    problem = page.locator("[data-key='rag.api.endpoint'] .problem:not(:empty)")
    problem.wait_for()

    assert "can only be changed in the settings file" in problem.inner_text()
    page.evaluate("document.getElementById('settings').requestSubmit()")
    page.wait_for_selector("[role=alert]")
    assert conf_of(own_demo).read_bytes() == before
    page.evaluate("document.querySelectorAll('.touched').forEach(row => row.classList.remove('touched'))")
    reader.complaints.clear()  # the browser itself notes the 422


def test_settings_are_tried_side_by_side_before_they_are_saved(own_demo: Running, come: Come) -> None:
    page = office(own_demo, come)
    before = conf_of(own_demo).read_bytes()
    page.get_by_label("rag.maxFiles", exact=True).fill("1")
    page.get_by_text("1 change, not saved yet").wait_for()
    page.get_by_role("button", name="Ask with these settings").click()
    page.fill("#try", "How do I delete a file?")
    page.press("#try", "Enter")
    page.wait_for_selector("#changed .counts")

    assert page.locator("#tried").inner_text() == "rag.maxFiles=1"
    assert "1 document used" in page.locator("#changed .counts").inner_text()
    assert "1 document used" not in page.locator("#present .counts").inner_text()
    assert conf_of(own_demo).read_bytes() == before


def test_the_state_is_shown_and_the_model_tried(own_demo: Running, come: Come) -> None:
    reader = administrator(own_demo, come)
    reader.open()
    reader.ask("How do I copy a file in Python?")
    reader.open("/admin")
    page = reader.page
    assert page.locator(".state .good").count() == 5
    page.get_by_role("button", name="Test the language model now").click()
    expect(page.locator("#model-state [role=status]")).to_contain_text("It answered in")

    assert page.locator(".tiles .bars .value").count() > 0


def test_the_last_minutes_are_drawn_as_they_go_by(own_demo: Running, come: Come) -> None:
    reader = administrator(own_demo, come, alone=True)
    page = reader.page
    page.clock.install()
    page.reload()
    expect(page.locator("#rates")).to_contain_text("No questions in the last minute")
    form = {"action": "rag", "q": "How do I copy a file in Python?"}
    for _ in range(8):
        # A connection of its own each time, so that it falls to either worker to count.
        asked = requests.post(f"{own_demo.url}/search/select", data=form, timeout=60)
        assert asked.json()["status"] == "OK"
    with page.expect_response("**/admin/now"):
        page.clock.run_for(5_000)

    expect(page.locator("#rates")).to_contain_text("8 answers and searches in the last minute, 0 failed")
    expect(page.locator("#waits")).to_contain_text("Half of the answers were complete within")
    assert page.locator("#rates rect").count() == 1
    expect(page.locator("#outcomes")).to_contain_text("answered")
    for _ in range(13):
        with page.expect_response("**/admin/now"):
            page.clock.run_for(5_000)
    expect(page.locator("#rates")).to_contain_text("No questions in the last minute")


def test_a_service_that_went_away_is_said_and_comes_back(own_demo: Running, come: Come) -> None:
    reader = administrator(own_demo, come, alone=True)
    page = reader.page
    page.clock.install()
    page.reload()
    page.wait_for_selector("#rates p")
    page.route("**/admin/now", lambda route: route.fulfill(status=502, body="{}"))
    page.clock.run_for(5_000)
    expect(page.locator("#rates .warn")).to_have_text("The service is not responding; these numbers are out of date.")
    part = {"what": "search", "name": "search engine", "problem": "It is gone <b>", "last": ""}
    now = {"state": [part], "outcomes": {}, "whole": [], "charts": {}}
    page.unroute("**/admin/now")
    page.route("**/admin/now", lambda route: route.fulfill(json=now))
    page.clock.run_for(5_000)

    expect(page.locator("#state .bad .said")).to_have_text("It is gone <b>")
    assert page.locator("#rates .warn").count() == 0
    reader.complaints.clear()  # the browser itself notes the 502


LIVE = """async ([counts, at]) => {
  const { kept, quantile, MOST } = await import("/static/live.js");
  const samples = [];
  for (const ok of counts) kept(samples, { at: 0, outcomes: { ok }, whole: [[0.5, ok / 2], [1, ok], [null, ok]] });
  return { kept: samples.length, most: MOST, slow: quantile(samples[0], samples.at(-1), at) };
}"""


@pytest.mark.parametrize(
    ("counts", "at", "kept", "slow"),
    [
        pytest.param([4, 8], 0.5, 2, 0.5, id="a difference"),
        pytest.param([4, 8], 1.0, 2, 1.0, id="all of them"),
        pytest.param([8, 8], 0.5, 2, None, id="nothing happened"),
        pytest.param([8, 2, 4], 0.5, 2, 0.5, id="a restarted service begins again"),
        pytest.param(range(500), 0.5, 121, 0.5, id="no more than ten minutes are kept"),
    ],
)
def test_what_is_kept_in_the_browser(
    workbench: Page, counts: list[int], at: float, kept: int, slow: float | None
) -> None:
    found = workbench.evaluate(LIVE, [list(counts), at])
    assert (found["kept"], found["slow"], found["most"]) == (kept, slow, 121)


def test_settings_are_found_and_narrowed(own_demo: Running, come: Come) -> None:
    page = office(own_demo, come)
    page.get_by_label("Find a setting").fill("temperature")
    assert page.locator(".setting:visible").count() <= 3
    page.get_by_label("Find a setting").fill("")
    page.get_by_label("Only changed settings").check()

    assert 3 <= page.locator(".setting:visible").count() < 20
