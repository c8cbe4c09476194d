"""Each way in which an answer can fail says something of its own, and the question stays."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Route

from datafari_rag.web.pages.messages import failures
from tests.browser.conftest import Come
from tests.browser.places import Zoo

pytestmark = pytest.mark.browser

BY_MODEL = [
    pytest.param("status-500", "modelUnavailable", id="the model's server fails"),
]


@pytest.mark.parametrize(("model", "label"), BY_MODEL)
def test_a_failing_model_is_named_and_results_stay(zoo_service: Zoo, come: Come, model: str, label: str) -> None:
    zoo_service.behave(model)
    page = come(zoo_service.url).ask("giraffe fence")

    title, hint = failures(str)[label]
    assert page.locator(".notice h2").inner_text() == title
    assert hint in page.locator(".notice").inner_text()
    assert page.locator("#q").input_value() == "giraffe fence"
    assert page.locator(".hits li").count() == 1
    assert page.get_by_role("button", name="Ask again").is_visible()


def partly(route: Route) -> None:
    """Let a question go on, and say of its answer that a shard was missing."""
    found = route.fetch()
    route.fulfill(response=found, body=found.text().replace('"items":', '"partial_results":true,"items":', 1))


def test_an_answer_from_a_part_of_the_collection_says_so(zoo_service: Zoo, come: Come) -> None:
    zoo_service.behave("cite")
    reader = come(zoo_service.url)
    reader.open().route("**/talk*", partly)
    page = reader.ask("giraffe fence")

    assert "A part of the collection did not answer" in page.locator(".card .warn").first.inner_text()
    assert "giraffe" in page.locator(".prose").inner_text()


def test_nothing_found_under_a_filter_can_be_asked_without_it(zoo_service: Zoo, come: Come) -> None:
    zoo_service.behave("cite")
    reader = come(zoo_service.url)
    page = reader.open("/?q=giraffe+fence&fq=language:%22ar%22")
    reader.ended()
    assert page.locator(".notice h2").inner_text() == "No document answers this question"
    page.get_by_role("link", name="Ask all documents").click()
    reader.ended()

    assert "giraffe" in page.locator(".prose").inner_text()
    assert "fq=" not in page.url


def test_an_answer_that_breaks_off_keeps_what_came(zoo_service: Zoo, come: Come) -> None:
    zoo_service.behave("words-40-cut-after-6")
    page = come(zoo_service.url).ask("giraffe fence")

    assert "word3" in page.locator(".prose").inner_text()
    assert page.locator(".phase").inner_text() == "The answer was interrupted here."


OTHERS = [label for label in failures(str) if label not in ("network", "notFound", "noQuery")]


def failing(label: str) -> Callable[[Route], None]:
    """Return how a request for an answer fails with *label*."""
    error = {"code": 500, "label": label, "reason": "Its id is 4711."}

    def reply(route: Route) -> None:
        route.fulfill(json={"status": "ERROR", "content": {"error": error}})

    return reply


def test_every_label_has_its_own_words(zoo_service: Zoo, come: Come) -> None:
    """The service's replies are simulated here, so that every label is seen, including those that are hard to cause."""
    reader = come(zoo_service.url)
    page = reader.open()
    for place, label in enumerate(OTHERS):
        page.unroute_all()
        page.route("**/talk*", failing(label))
        if place:
            page.get_by_role("button", name="Ask again").click()
        else:
            reader.ask("giraffe")
        page.locator(f".notice[data-label={label}]").wait_for()

        assert page.locator(".notice h2").inner_text() == failures(str)[label][0]
        assert ("4711" in page.locator(".notice").inner_text()) == (label in ("internal", "badSetting"))


def test_a_lost_connection_is_said(zoo_service: Zoo, come: Come) -> None:
    reader = come(zoo_service.url)
    reader.open()
    reader.page.route("**/talk*", lambda route: route.abort())
    page = reader.ask("giraffe fence")

    assert page.locator(".notice h2").inner_text() == "The connection was lost"
    assert all("ERR_FAILED" in complaint for complaint in reader.complaints)
    reader.complaints.clear()
