"""The widget on hostile pages, and our page with hostile results and streams: nothing runs or is asked elsewhere."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest
from playwright.sync_api import Page, Route

from tests.attack.report import Record, judge
from tests.attack.test_pages import HOSTILE
from tests.browser.conftest import Come
from tests.browser.places import Zoo
from tests.browser.surfing import Surfer
from tests.browser.test_readers import HARM, NDJSON, lines_of, replying
from tests.support.server import Asked, Reply, serving

pytestmark = pytest.mark.browser

POLICY = (
    "default-src 'none'; script-src {service} 'unsafe-inline'; connect-src {service}; img-src data:; "
    "require-trusted-types-for 'script'"
)

NAMES = "innerHTML outerHTML srcdoc src href style onclick onload onerror is title class target url quote label id"

BEFORE = {
    "nothing": "",
    "a polluted prototype": f"""
        for (const name of "{NAMES}".split(" ")) {{
          const value = "javascript:alert(1)";
          Object.defineProperty(Object.prototype, name, {{ value, writable: true, configurable: true }});
        }}
        Array.prototype.onclick = "alert(1)";
    """,
    "an enumerable prototype": """
        Object.prototype.onmouseover = "alert(1)";
        Object.prototype.srcdoc = "<b onclick=alert(1)>";
    """,
    "overridden globals": """
        const [parse, fetched, set] = [JSON.parse, window.fetch, Element.prototype.setAttribute];
        JSON.parse = (...all) => parse(...all);
        window.fetch = (...all) => fetched(...all);
        Element.prototype.setAttribute = function (...all) { return set.apply(this, all); };
    """,
    "globals that are gone": "delete navigator.clipboard; delete window.reportError; delete window.name;",
    "clobbered names": """
        for (const name of ["words", "documentElement", "location", "shadowRoot", "getAttribute"]) {
          const made = document.createElement("img");
          made.name = made.id = made.dataset.own = name;
          document.body.append(made);
        }
    """,
}
"""What the surrounding page does before the widget loads, or an attacker who can write markup into it."""


@dataclass
class Site:
    """Another site, whose every page is *page* under *policy*."""

    url: str = ""
    page: str = ""
    policy: str = ""


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    shown = Site()

    def answer(asked: Asked) -> Reply:
        headers = (("Content-Type", "text/html; charset=utf-8"), ("Content-Security-Policy", shown.policy))
        return Reply(shown.page.encode() if asked.path == "/" else b"", headers=headers)

    with serving(answer) as server:
        shown.url = server.url
        yield shown


@dataclass
class Visit:
    """Readers of pages of another site that have the widget of *zoo*."""

    come: Come
    site: Site
    zoo: Zoo

    def __call__(self, body: str, answer: str, *, before: str = "") -> Surfer:
        """Return a reader of a page with *body* and the script; the service's answer is *answer*."""
        reader = self.come(self.site.url, alone=True)
        script = f'<script type="module" src="{self.zoo.url}/static/widget.js"></script>'
        run = f"<script data-own>{before}</script>" if before else ""
        self.site.page = (
            f"<!doctype html><html lang=en><link rel=icon href=data:,><body>{run}{body}{script}</body></html>"
        )
        self.site.policy = POLICY.format(service=self.zoo.url)
        reader.page.route("**/search/select", self.replying(answer))
        reader.page.goto(f"{self.site.url}/")
        return reader

    def replying(self, answer: str) -> Callable[[Route], None]:
        headers = {"Access-Control-Allow-Origin": self.site.url, "Access-Control-Allow-Credentials": "true"}
        return replying(answer, NDJSON, **headers)

    def judged(self, reader: Surfer) -> list[str]:
        """Return what ran, was asked elsewhere or was complained of; nothing of it is left."""
        ours = (f"{self.zoo.url}/", f"{self.site.url}/")
        own = ("data-own", f"{self.zoo.url}/static/")
        harm: list[str] = reader.page.evaluate(HARM, self.zoo.url)
        found = [place for place in harm if not any(mark in place for mark in own)]
        found += [url for url in reader.strange_requests if not url.startswith(ours)]
        found += reader.complaints
        reader.strange_requests.clear()
        reader.complaints.clear()
        return found


@pytest.fixture
def visit(come: Come, site: Site, zoo_service: Zoo) -> Visit:
    return Visit(come, site, zoo_service)


@pytest.mark.slow
def test_hostile_answers_on_hostile_pages(record_property: Record, visit: Visit) -> None:
    holes, tried = [], 0
    for (name, before), text in product(BEFORE.items(), HOSTILE[::3]):
        reader = visit('<datafari-answer question="x"></datafari-answer>', lines_of(text), before=before)
        reader.page.wait_for_selector("datafari-answer .card", state="attached")
        reader.page.wait_for_function(ENDED)
        tried += 1
        holes += [f"{name}, {text!r}: {one}" for one in visit.judged(reader)]
        reader.page.close()
    judge(record_property, "widget: hostile page and hostile answer", against="pages", tried=tried, holes=holes)


ENDED = "() => !document.querySelector('datafari-answer').shadowRoot.querySelector('.card.busy')"

ATTRIBUTES = (
    "question",
    "form",
    "parameter",
    "format",
    "lang",
    "with-credentials",
    "stay",
    "base",
    "src",
    "href",
    "style-src",
)
SELECTORS = ["[", "body", "script", "*", ":has(:has(*))", "#none", "form", "iframe", "::before", "\\", ""]


Elements = list[list[tuple[str, str]]]
"""The attributes of each element that is tried."""

EACH_ALONE: Elements = [[one] for one in product(ATTRIBUTES, HOSTILE)]
A_SAMPLE: Elements = [*EACH_ALONE[::7], *([(name, text) for name in ATTRIBUTES] for text in HOSTILE)]
"""Each text in all attributes at a time; every seventh element of those with one."""


@pytest.mark.parametrize(
    "elements",
    [pytest.param(A_SAMPLE, id="a sample"), pytest.param(EACH_ALONE, id="each alone", marks=pytest.mark.slow)],
)
def test_hostile_attributes(record_property: Record, visit: Visit, elements: Elements) -> None:
    """An attacker who can write markup but no script into the page writes the element too."""
    reader = visit("<form><input name=q value=x></form>", lines_of("nine"))
    tried: Elements = [*elements, *([("form", one)] for one in SELECTORS)]
    reader.page.evaluate(
        """async (elements) => {
          for (const attributes of elements) {
            document.querySelector("datafari-answer")?.remove();
            const made = document.createElement("datafari-answer");
            made.setAttribute("question", "nine");
            for (const [name, text] of attributes) made.setAttribute(name, text);
            document.body.append(made);
            await new Promise(setTimeout);  // so that it begins
          }
        }""",
        tried,
    )
    reader.page.wait_for_selector("datafari-answer .counts")
    reader.page.evaluate("document.forms[0].addEventListener('submit', (event) => event.preventDefault())")
    reader.page.evaluate("document.forms[0].requestSubmit()")
    holes = visit.judged(reader)
    judge(record_property, "widget: hostile attributes", against="pages", tried=len(tried), holes=holes)


def test_several_widgets_have_their_own_answers(visit: Visit) -> None:
    body = "".join(f'<datafari-answer id=w{one} question="number {one}"></datafari-answer>' for one in range(4))
    reader = visit("", "")
    visit.site.page = visit.site.page.replace("<body>", f"<body>{body}")

    def reply(route: Route) -> None:
        words = (route.request.post_data or "").partition("q=")[2].partition("&")[0]
        visit.replying(lines_of(words))(route)

    reader.page.unroute("**/search/select")
    reader.page.route("**/search/select", reply)
    reader.page.reload()
    for one in range(4):
        place = reader.page.locator(f"#w{one} .prose")
        reader.page.wait_for_selector(f"#w{one} .counts")
        assert f"number+{one}" in place.inner_text()
    reader.page.evaluate("document.querySelector('#w1').remove()")
    assert reader.page.locator("#w2 .prose").count() == 1
    assert visit.judged(reader) == []


MESSAGES: list[object] = [
    "javascript:alert(1)",
    {"type": "ask", "question": "x"},
    {"__proto__": {"onclick": "alert(1)"}},
    {"type": "message.delta", "data": {"text": "<script>alert(1)</script>"}},
    [[["a"]]],
    None,
    json.dumps({"type": "sources.final"}),
]


def test_messages_of_other_frames_do_nothing(record_property: Record, visit: Visit) -> None:
    reader = visit('<datafari-answer question="x"></datafari-answer>', lines_of("nine"))
    reader.page.wait_for_selector("datafari-answer .counts")
    look = "document.querySelector('datafari-answer').shadowRoot.innerHTML + document.body.innerHTML"
    before = reader.page.evaluate(look)
    asked: list[str] = []
    reader.page.on("request", lambda request: asked.append(request.url))
    for message in MESSAGES:
        reader.page.evaluate(
            "(message) => { window.postMessage(message, '*'); return new Promise(setTimeout); }", message
        )
    holes = [*visit.judged(reader), *asked]
    holes += [] if reader.page.evaluate(look) == before else ["the page changed"]
    judge(record_property, "widget: messages of other frames", against="pages", tried=len(MESSAGES), holes=holes)


@pytest.mark.slow
def test_no_page_of_ours_is_framed(record_property: Record, visit: Visit) -> None:
    paths = ("/", "/?q=giraffe", "/documents?id=plain", "/admin", "/nowhere", "/search/select?q=giraffe")
    holes = []
    for path, kind in product(paths, ("iframe", "object", "embed")):
        address = html.escape(f"{visit.zoo.url}{path}")
        reader = visit("", "")
        visit.site.page = f"<!doctype html><{kind} {'data' if kind == 'object' else 'src'}='{address}'></{kind}>"
        visit.site.policy = "frame-src *; object-src *"
        reader.page.goto(f"{visit.site.url}/")
        framed = [frame for frame in reader.page.frames[1:] if frame.url.startswith(visit.zoo.url)]
        texts = [frame.evaluate("document.body?.innerText ?? ''") for frame in framed]
        holes += [f"{kind} {path}: {text[:60]!r}" for text in texts if text.strip()]
        visit.judged(reader)  # the browser itself says that it refuses
        reader.page.close()
    judge(record_property, "our pages in frames", against="pages", tried=3 * len(paths), holes=holes)


def found_with(text: str) -> Mapping[str, object]:
    """Return the reply of a plain search in which everything that can be a text is *text*."""
    row = {"id": text, "title": [text], "url": text, "last_modified": text, "extension": text, "preview_content": text}
    marked = {text: {"exactContent": [f"{text}<em>{text}</em>&#x3c;script&#62;{text}"]}}
    fields = {"source": [text, 3, "__proto__", 2, "constructor", 1], "extension": [text, 1], "__proto__": [text, 1]}
    response = {"numFound": 30, "start": 10, "docs": [row, {**row, "id": "__proto__"}, {**row, "id": "constructor"}]}
    return {"response": response, "highlighting": marked, "facet_counts": {"facet_fields": fields}}


def streams_with(text: str) -> list[str]:
    """Return streams that the service never sends: unknown and torn events, names of every object, other types."""
    events: list[list[Any]] = [
        [{"type": text, "data": text}, {"type": "__proto__", "data": {"__proto__": {"onclick": text}}}],
        [{"type": "error", "data": {"label": "__proto__", "reason": text}}],
        [{"type": "error", "data": {"label": "constructor", "reason": text}}],
        [{"type": "error", "data": {"label": text, "reason": text}}],
        [{"type": "error", "data": {"label": "internal", "reason": text}}],
        [{"type": "message.delta", "data": {"text": text}}, {"type": "error", "data": {"label": text, "reason": text}}],
        [
            json.loads('{"type": "message.delta", "data": {"text": "x", "__proto__": {"text": "y"}}}'),
            {"type": "stream.completed"},
        ],
    ]
    return [
        *("".join(json.dumps(event) + "\n" for event in one) for one in events),
        text,
        f"{{{text}",
        "null\n",
        "[]\n",
    ]


@pytest.mark.slow
def test_hostile_results_and_streams_on_our_page(record_property: Record, zoo_service: Zoo, come: Come) -> None:
    zoo_service.behave("cite")
    reader = come(zoo_service.url)
    page = reader.open()
    holes, tried = [], 0
    for text in HOSTILE[::3]:
        for stream in streams_with(text):
            answering(page, stream, found_with(text))
            page.fill("#q", "giraffe")
            page.press("#q", "Enter")
            page.wait_for_selector(".card:not(.busy)")
            page.wait_for_selector("#found:not([aria-busy])", state="attached")
            tried += 1
            complaints = [one for one in reader.complaints if "status of" not in one]
            harm = page.evaluate(HARM, zoo_service.url)
            polluted = page.evaluate("[({}).onclick, [].onclick].filter(Boolean)")
            holes += [f"{stream[:80]!r}: {one}" for one in (*harm, *complaints, *polluted, *reader.strange_requests)]
            reader.complaints.clear()
            reader.strange_requests.clear()
    judge(record_property, "page: hostile results, facets, errors, events", against="pages", tried=tried, holes=holes)


def answering(page: Page, stream: str, found: Mapping[str, object]) -> None:
    """Have the next answer and the next plain search be these."""

    page.unroute_all()
    page.route("**/talk*", replying(stream, NDJSON))
    page.route("**/search/select", replying(found, "application/json"))


def test_a_page_that_was_kept_is_asked_for_again(zoo_service: Zoo, come: Come) -> None:
    """A user who goes back after another user signed out sees only what he may see."""
    reader = come(zoo_service.url)
    for path in ("/", "/documents?id=plain", "/documents?id=none"):
        page = reader.open(path)
        page.wait_for_load_state("networkidle")
        with page.expect_navigation():
            page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    reader.complaints.clear()  # the browser itself notes the 404
