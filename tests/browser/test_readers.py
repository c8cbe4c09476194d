"""Two readers with different rights, and those who try to make the page do harm."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Route

from tests.browser.conftest import Come
from tests.browser.places import ATTACK, Zoo
from tests.end_to_end.processes import Running

pytestmark = pytest.mark.browser

ENUM = "How are Enums and Flags different?"
DATA = Path(__file__).parents[2].parent / "shared" / "data"


def test_alice_sees_what_bob_does_not(demo_service: Running, come: Come) -> None:
    alice, bob = come(demo_service.url), come(demo_service.url)
    for reader, name in ((alice, "alice"), (bob, "bob")):
        reader.open()
        reader.be(name)
        reader.ask(ENUM)

    assert "enum" in alice.page.locator("#found").inner_text().lower()
    assert "py-howto-enum" in alice.page.content()
    assert "py-howto-enum" not in bob.page.content()
    bob.open("/documents?id=py-howto-enum")
    assert bob.page.get_by_role("heading", name="Nothing is here").is_visible()
    bob.complaints.clear()  # the browser itself notes the 404


def test_a_conversation_is_not_shown_to_the_next_user(demo_service: Running, come: Come) -> None:
    reader = come(demo_service.url)
    page = reader.open()
    reader.be("alice")
    reader.ask(ENUM)
    assert "alice" in page.evaluate("Object.keys(sessionStorage).join()")
    reader.be("bob")
    reader.ended()

    assert "py-howto-enum" not in page.content()
    assert "alice" not in page.evaluate("Object.keys(sessionStorage).join()")


@pytest.mark.parametrize("model", ["cite", "quote", "miscite", "links", "gullible"])
def test_a_hostile_document_stays_text(zoo_service: Zoo, come: Come, model: str) -> None:
    zoo_service.behave(model)
    page = come(zoo_service.url).ask("zebra rule stripes")

    if model == "cite":
        assert ATTACK in page.locator("#found").inner_text()
        page.locator(".badge").first.click()
        page.wait_for_selector("dialog .stored")
    assert page.locator("main img, main script, dialog img, dialog script, iframe").count() == 0
    links = page.eval_on_selector_all("a[href]", "all => all.map(a => a.href)")
    assert [link for link in links if not link.startswith(zoo_service.url)] == []


@pytest.mark.parametrize("has_script", [True, False], ids=["with script", "without script"])
def test_a_hostile_question_stays_text(zoo_service: Zoo, come: Come, has_script: bool) -> None:
    zoo_service.behave("echo")
    reader = come(zoo_service.url, java_script_enabled=has_script)
    strings = ['"><script>alert(1)</script>', "'-alert(1)-'", "{{7*7}}${7*7}", "javascript:alert(1)", f"zebra {ATTACK}"]
    for text in strings:
        reader.page.goto(f"{zoo_service.url}/?q={text.replace('&', '%26').replace('#', '%23')}")
        reader.page.wait_for_selector(".card:not(.busy)")
        assert reader.page.locator("#q").input_value() == text
        assert "49" not in reader.page.locator("#answers").inner_text()
        assert reader.page.locator("main img, main script").count() == 0


def test_a_hostile_filter_and_language_stay_text(zoo_service: Zoo, come: Come) -> None:
    zoo_service.behave("cite")
    reader = come(zoo_service.url)
    reader.open('/?q=giraffe&fq=source:"><script>alert(1)</script>&ui="><script>alert(2)</script>&format=<b>')
    reader.page.wait_for_selector(".card:not(.busy)")

    assert reader.page.locator("main script").count() == 0


def replying(lines: str) -> Callable[[Route], None]:
    return lambda route: route.fulfill(body=lines, content_type="application/x-ndjson")


@pytest.mark.skipif(not DATA.exists(), reason="the evaluation data is not beside the repository")
def test_strings_that_break_things_break_nothing(zoo_service: Zoo, come: Come) -> None:
    """Every ninth of the fuzzed queries, and every markup among them, through the answer of an echoing model."""
    zoo_service.behave("echo")
    queries = [json.loads(line)["q"] for line in (DATA / "query-fuzz/queries.jsonl").read_text("utf-8").splitlines()]
    attacks = [json.loads(line)["text"] for line in (DATA / "injection/attacks.jsonl").read_text("utf-8").splitlines()]
    chosen = [query for place, query in enumerate(queries) if place % 40 == 0 or "<" in query][:40] + attacks[::20]
    reader = come(zoo_service.url)
    page = reader.open()
    for text in chosen:
        body = {
            "message": f"{text} [1] {text}",
            "documents": [{"id": text, "url": text, "title": text, "content": text}],
        }
        events = [
            {"type": "sources.final", "data": {"items": body["documents"]}},
            {"type": "message.delta", "data": {"text": body["message"]}},
            {"type": "message.final", "data": {"text": body["message"], "citations": []}},
            {"type": "stream.completed", "data": {"status": "OK"}},
        ]
        lines = "".join(json.dumps(event) + "\n" for event in events)
        page.unroute_all()
        page.route("**/search/select", replying(lines))
        reader.ask("giraffe")
        assert page.locator(".prose img, .prose script, .prose iframe, .prose [onerror], .prose form").count() == 0
        links = page.eval_on_selector_all("main a[href]", "all => all.map(a => a.href)")
        assert [link for link in links if not link.startswith(zoo_service.url)] == []
    page.unroute_all()
