"""Two readers with different rights, and those who try to make the page do harm."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import Route

from tests.browser.conftest import Come
from tests.browser.places import ATTACK, Zoo
from tests.end_to_end.processes import Running
from tests.hostile_texts import ATTACKS, QUERIES

pytestmark = pytest.mark.browser

ENUM = "How are Enums and Flags different?"


def test_alice_sees_what_bob_does_not(demo_service: Running, come: Come) -> None:
    alice, bob = come(demo_service.url), come(demo_service.url)
    for reader, name in ((alice, "alice"), (bob, "bob")):
        reader.open()
        reader.be(name)
        reader.ask(ENUM)

    assert "enum" in alice.page.locator("#found").inner_text().lower()
    assert "py-howto-enum" in alice.page.content()
    assert "py-howto-enum" not in bob.page.content()
    bob.ask("Why Python?")
    for reader in (alice, bob):
        reader.page.get_by_role("textbox", name="Ask a follow-up question").fill(ENUM)
        reader.page.keyboard.press("Enter")
        reader.page.locator(".turn:nth-child(2) .card:not(.busy)").wait_for()
    assert "py-howto-enum" in alice.page.locator(".turn:nth-child(2)").inner_html()
    assert "py-howto-enum" not in bob.page.content()
    bob.open("/documents?id=py-howto-enum")
    assert bob.page.get_by_role("heading", name="Not found").is_visible()
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
        page.locator(".prose a.badge").first.click()
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


def attacks() -> list[str]:
    """Return strings that break things: every fortieth of the fuzzed queries, each with markup, and some injections."""
    queries = [query for place, query in enumerate(QUERIES) if place % 40 == 0 or "<" in query]
    return queries[:40] + [attack["text"] for attack in ATTACKS[::20]]


NDJSON = "application/x-ndjson"
OWN = [
    ATTACK,
    "javascript:alert(1)",
    '"><svg onload=alert(1)>',
    "[x](javascript:alert(1)) ![y](https://exfil.invalid/p)",
]


def strings() -> list[str]:
    return [*OWN, *attacks()]


def groups(size: int = 5) -> list[list[str]]:
    """Return the strings as they stand together in one answer."""
    every = strings()
    return [every[place : place + size] for place in range(0, len(every), size)]


def content(*texts: str) -> dict[str, object]:
    """Return an answer in which everything that can be a text is one of *texts*, or all of them."""
    parts, cited, every = [], [], "\n\n".join(texts)
    for text in texts:
        start = len("\n\n".join([*parts, text])) + 1
        place = {"answer_start": start, "answer_end": start + 3, "start": 0, "end": 3}
        mark = {"label": text, "document_id": text, "url": text, "title": text, "field": text, "quote": text, **place}
        cited += [{**mark, "status": status} for status in ("verified", text)]
        parts.append(f"{text} [1] {text}")
    steps = [{"step": text, "query": text, "found": 1} for text in texts]
    candidates = [{"id": text, "score": 1, "verdict": text} for text in texts]
    props = {"steps": steps, "candidates": candidates, "passages": []}
    thoughts = [{"title": every, "description": every, "props": props} for _ in range(4)]
    documents = [{"id": text, "url": text, "title": text, "content": f"What is {text} here?"} for text in texts]
    return {"message": "\n\n".join(parts), "documents": documents, "citations": cited, "thoughts": thoughts}


def lines_of(*texts: str) -> str:
    """Return the stream of that answer."""
    whole = content(*texts)
    events = [
        {"type": "sources.final", "data": {"items": whole.pop("documents")}},
        {"type": "message.delta", "data": {"text": whole["message"]}},
        {"type": "message.final", "data": {"text": whole.pop("message"), **whole, "followup_questions": texts}},
        {"type": "stream.completed", "data": {"status": "OK"}},
    ]
    return "".join(json.dumps(event) + "\n" for event in events)


HARM = """(host) => {
  const found = [];
  const isOwn = (place) => /^(\\/static\\/|http:\\/\\/127)/.test(place.getAttribute("src") ?? "");
  const harms = [
    (place) => place.matches("iframe, object, embed, base, svg [href]"),
    (place) => place.getAttributeNames().some((name) => name.startsWith("on")),
    (place) => place.matches("img, script") && !isOwn(place),
    (place) => place.matches("a[href]") && !place.href.startsWith(host),
  ];
  const look = (root) => {
    for (const place of root.querySelectorAll("*")) {
      if (place.shadowRoot) look(place.shadowRoot);
      if (harms.some((harm) => harm(place))) found.push(place.outerHTML);
    }
  };
  look(document);
  return found;
}"""
"""What could do harm in a page: nothing may load, run or lead away from *host*."""


def replying(body: object, kind: str, **headers: str) -> Callable[[Route], None]:
    """Return how a request is answered with *body*, text or an object for JSON."""
    text = body if isinstance(body, str) else json.dumps(body)
    return lambda route: route.fulfill(body=text, content_type=kind, headers=headers)


def answering(*texts: str) -> Callable[[Route], None]:
    """Return how a request for an answer is answered."""
    return replying(lines_of(*texts), NDJSON)


def test_strings_that_break_things_break_nothing(zoo_service: Zoo, come: Come) -> None:
    """As everything that an answer holds, on the page and when it comes back from what the browser kept."""
    zoo_service.behave("echo")
    reader = come(zoo_service.url)
    page = reader.open()
    for place, texts in enumerate(groups()):
        page.unroute_all()
        page.route("**/talk*", answering(*texts))
        if place:
            page.get_by_role("button", name="Ask again").click()
        else:
            reader.ask("giraffe")
        page.locator(".card:not(.busy) .made > summary").click()
        assert page.locator(".next button").count() == len(texts)
        assert page.evaluate(HARM, zoo_service.url) == []
        before = page.locator(".prose").inner_text()
        page.reload()
        page.wait_for_selector(".again")
        assert page.locator(".prose").inner_text() == before
        assert page.evaluate(HARM, zoo_service.url) == []


KEEP = """([turns, address]) => {
  const key = Object.keys(sessionStorage).find((name) => name.startsWith("datafari_rag conversation"));
  sessionStorage.setItem(key, JSON.stringify({ address, turns }));
}"""


NO_TURNS: dict[str, list[object]] = {
    "no answer": [{"question": 3, "answer": None}],
    "no turn": [None],
    "other types": [{"question": "a", "answer": {"content": {"message": 1, "documents": 2}}}],
}


def test_a_kept_conversation_that_is_none_is_asked_again(zoo_service: Zoo, come: Come) -> None:
    zoo_service.behave("cite")
    reader = come(zoo_service.url)
    page = reader.ask("giraffe fence")
    address = page.evaluate("JSON.parse(Object.values(sessionStorage)[0]).address")
    for name, turns in NO_TURNS.items():
        page.evaluate(KEEP, [turns, address])
        page.reload()
        reader.ended()

        assert "giraffe" in page.locator(".prose").inner_text(), name
        assert page.locator(".turn").count() == 1, name


def test_a_kept_conversation_with_attacks_stays_text(zoo_service: Zoo, come: Come) -> None:
    zoo_service.behave("cite")
    reader = come(zoo_service.url)
    page = reader.ask("giraffe fence")
    address = page.evaluate("JSON.parse(Object.values(sessionStorage)[0]).address")
    for text in OWN:
        answer = {"content": content(text), "model": text, "id": text, "followups": [text]}
        page.evaluate(KEEP, [[{"question": text, "answer": answer}] * 2, address])
        page.reload()
        page.wait_for_selector(".again")

        assert text in page.locator(".asked").inner_text()
        assert page.locator(".next button").last.inner_text() == text
        assert page.evaluate(HARM, zoo_service.url) == []


PLANTED = (
    "<img src=x>",
    "<a href='javascript:0'>a</a>",
    "<p onclick='0'>a</p>",
    "<iframe></iframe>",
    "<base href='/'>",
)

PLANT = """(html) => {
  const place = document.createElement("div");
  const root = place.attachShadow({ mode: "open" });
  document.querySelector("main").replaceChildren(place);
  root.innerHTML = html;
  // An image that is not there is complained of when it has failed: what is cleared at the end has come by then.
  const failed = (image) => image.complete || new Promise((done) => { image.onerror = done; });
  return Promise.all([...root.querySelectorAll("img")].map(failed)).then(() => null);
}"""


def test_harm_that_is_there_is_found(zoo_service: Zoo, come: Come) -> None:
    """Else its absence would mean nothing; also in the shadow of an element."""
    reader = come(zoo_service.url)
    page = reader.open()
    for planted in PLANTED:
        page.evaluate(PLANT, planted)

        assert len(page.evaluate(HARM, zoo_service.url)) == 1, planted
    reader.complaints.clear()  # the policy of the page, too, has found it
    reader.strange_requests.clear()
