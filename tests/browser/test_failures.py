"""Each way in which an answer can fail says something of its own, and the question stays."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Route

from datafari_rag.web.pages.messages import failures
from tests.browser.conftest import Come
from tests.browser.places import Zoo

pytestmark = pytest.mark.browser

BY_MODEL = [
    pytest.param("status-429", "modelBusy", id="the model is busy"),
    pytest.param("status-500", "modelUnavailable", id="the model's server fails"),
    pytest.param("status-401", "modelKeyRefused", id="the model refuses the token"),
    pytest.param("garbage", "modelGarbled", id="the model says something unreadable"),
    pytest.param("empty", "noAnswer", id="the model says nothing"),
    pytest.param("policy", "contentFiltered", id="the provider's filter stops it"),
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
    """Let a request go on, and say of its answer that a shard was missing."""
    if "action=rag" not in (route.request.post_data or ""):
        route.continue_()
        return
    found = route.fetch()
    route.fulfill(response=found, body=found.text().replace('"items":', '"partial_results":true,"items":', 1))


def test_an_answer_from_a_part_of_the_collection_says_so(zoo_service: Zoo, come: Come) -> None:
    zoo_service.behave("cite")
    reader = come(zoo_service.url)
    reader.open().route("**/search/select", partly)
    page = reader.ask("giraffe fence")

    assert "A part of the collection did not answer" in page.locator(".card .warn").first.inner_text()
    assert "giraffe" in page.locator(".prose").inner_text()


@pytest.mark.parametrize(
    ("support", "warning", "counts"),
    [
        pytest.param(
            {"dropped": 2, "replaced": None}, "2 sentences that the documents do not", "3 of 5", id="left out"
        ),
        pytest.param({"dropped": 0, "replaced": "nothing"}, "The documents prove nothing, or", None, id="replaced"),
    ],
)
def test_what_was_changed_of_an_answer_is_said(
    zoo_service: Zoo, come: Come, support: dict[str, object], warning: str, counts: str | None
) -> None:
    def with_support(route: Route) -> None:
        if "action=rag" not in (route.request.post_data or ""):
            route.continue_()
            return
        found = route.fetch()
        told = json.dumps({"checked": 5, "proved": 3, **support})
        route.fulfill(response=found, body=re.sub(r'"support":\{[^{}]*\}', f'"support":{told}', found.text()))

    zoo_service.behave("cite")
    reader = come(zoo_service.url)
    reader.open().route("**/search/select", with_support)
    page = reader.ask("giraffe fence")

    assert warning in page.locator(".card .warn").first.inner_text()
    said = page.locator(".card .counts").inner_text()
    assert (f"Sentences proved by the documents: {counts}" in said) == (counts is not None)


def test_nothing_found_is_said_without_a_hint(zoo_service: Zoo, come: Come) -> None:
    zoo_service.behave("cite")
    page = come(zoo_service.url).ask("xylophone quarantine")

    assert page.locator(".notice h2").inner_text() == "No document answers this question"
    assert page.locator("#found h2").inner_text() == "No documents found"


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


def test_an_administrator_is_led_to_what_he_can_mend(zoo_service: Zoo, come: Come) -> None:
    zoo_service.behave("status-401")
    reader = come(zoo_service.url)
    assert reader.ask("giraffe fence").locator(".notice a.button").count() == 0
    reader.be("admin")
    page = reader.ask("giraffe fence")

    assert page.locator(".notice a.button").get_attribute("href") == "/admin"


def test_an_answer_that_breaks_off_keeps_what_came(zoo_service: Zoo, come: Come) -> None:
    zoo_service.behave("words-40-cut-after-6")
    page = come(zoo_service.url).ask("giraffe fence")

    assert "word3" in page.locator(".prose").inner_text()
    assert page.locator(".phase").inner_text() == "The answer was interrupted here."


def test_a_cut_answer_says_so(zoo_service: Zoo, come: Come) -> None:
    zoo_service.behave("words-10-length")
    page = come(zoo_service.url).ask("giraffe fence")

    assert "maximum length" in page.locator(".warn").inner_text()


@pytest.mark.parametrize("has_script", [True, False], ids=["with script", "without script"])
def test_an_answer_that_its_documents_do_not_support_is_marked_and_said(
    zoo_service: Zoo, come: Come, has_script: bool
) -> None:
    zoo_service.behave("miscite")
    reader = come(zoo_service.url, java_script_enabled=has_script)
    page = reader.open("/?q=giraffe+fence")
    page.wait_for_selector(".card .counts")

    assert page.locator(".answer .warn").count() == 0
    assert page.locator(".counts").inner_text().endswith("Sentences proved by the documents: 0 of 2")
    assert page.locator(".prose .badge.unsupported").inner_text().split() == [
        "1",
        "–",
        *["not", "found", "in", "these", "words"],
    ]
    assert page.locator(".prose .badge.unknown").inner_text().split() == ["?", "unknown", "source"]


def test_an_answer_without_model_says_so(zoo_service: Zoo, come: Come) -> None:
    zoo_service.behave("status-500", llm__fallback="builtin:extractive")
    page = come(zoo_service.url).ask("giraffe fence")

    assert "The usual language model did not answer" in page.locator(".note").inner_text()
    assert "the documents' own words" in page.locator(".note").inner_text()
    zoo_service.behave("cite")


OTHERS = [label for label in failures(str) if label not in ("network", "notFound", "noQuery")]


def failing(label: str) -> Callable[[Route], None]:
    """Return how a request for an answer fails with *label*; any other goes on."""
    error = {"code": 500, "label": label, "reason": "Its id is 4711."}

    def reply(route: Route) -> None:
        if "action=rag" in (route.request.post_data or ""):
            route.fulfill(json={"status": "ERROR", "content": {"error": error}})
        else:
            route.continue_()

    return reply


def test_every_label_has_its_own_words(zoo_service: Zoo, come: Come) -> None:
    """The service's replies are simulated here, so that every label is seen, including those that are hard to cause."""
    reader = come(zoo_service.url)
    page = reader.open()
    for place, label in enumerate(OTHERS):
        page.unroute_all()
        page.route("**/search/select", failing(label))
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
    reader.page.route("**/search/select", lambda route: route.abort())
    page = reader.ask("giraffe fence")

    assert page.locator(".notice h2").inner_text() == "The connection was lost"
    assert all("ERR_FAILED" in complaint for complaint in reader.complaints)
    reader.complaints.clear()


def test_no_two_failures_sound_alike() -> None:
    titles = [title for title, _ in failures(str).values()]
    assert len(titles) == len(set(titles))
    assert json.dumps(titles).count("permission") == 0
