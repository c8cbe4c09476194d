"""The answer card in a page of another site, with one script and one element."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Come
from tests.browser.places import Zoo
from tests.browser.surfing import Surfer
from tests.browser.test_readers import HARM, NDJSON, groups, lines_of, replying
from tests.support.server import Reply, serving

pytestmark = pytest.mark.browser

EXAMPLE = Path(__file__).parents[2] / "docs" / "widget-example.html"


@contextmanager
def foreign_site(service: str) -> Iterator[str]:
    """Serve the example page on an origin of its own, under a strict policy."""
    page = EXAMPLE.read_text(encoding="utf-8").replace("RAG_SERVICE", service).encode()

    policy = f"default-src 'none'; script-src {service}; connect-src {service}"
    headers = (("Content-Type", "text/html; charset=utf-8"), ("Content-Security-Policy", policy))
    with serving(lambda asked: Reply(page if asked.path == "/" else b"", headers=headers)) as server:
        yield server.url


def visit(come: Come, site: str, service: Zoo) -> Surfer:
    reader = come(site, alone=True)
    reader.page.goto(f"{site}/?q=giraffe+fence")
    reader.page.wait_for_selector("datafari-answer .card:not(.busy)")
    reader.strange_requests = [url for url in reader.strange_requests if not url.startswith(service.url)]
    return reader


def test_a_named_site_gets_the_answer(zoo_service: Zoo, come: Come) -> None:
    with foreign_site(zoo_service.url) as site:
        zoo_service.behave("quote", server__cors__origins=site)
        page = visit(come, site, zoo_service).page

        assert "giraffe" in page.locator("datafari-answer .prose").inner_text()
        assert page.locator("datafari-answer .badge").first.get_attribute("href").startswith(zoo_service.url)
        assert page.locator("datafari-answer .badge").first.get_attribute("target") == "_blank"
        assert page.locator("datafari-answer .card").evaluate("card => getComputedStyle(card).borderRadius") == "16px"


def test_the_sites_own_form_asks(zoo_service: Zoo, come: Come) -> None:
    with foreign_site(zoo_service.url) as site:
        zoo_service.behave("cite", server__cors__origins=site)
        reader = visit(come, site, zoo_service)
        reader.page.fill("[name=q]", "zebra stripes")
        reader.page.click("#search button")
        expect(reader.page.locator("datafari-answer .prose")).to_contain_text("zebra")
        reader.strange_requests = [url for url in reader.strange_requests if not url.startswith(zoo_service.url)]

        assert reader.page.locator("datafari-answer script, datafari-answer img").count() == 0


def test_attacks_stay_text_in_the_page_of_another_site(zoo_service: Zoo, come: Come) -> None:
    with foreign_site(zoo_service.url) as site:
        zoo_service.behave("cite", server__cors__origins=site)
        reader = come(site, alone=True)
        reader.page.goto(f"{site}/")
        reader.page.fill("[name=q]", "giraffe")
        for texts in groups():
            reader.page.unroute_all()
            told = replying(lines_of(*texts), NDJSON, **{"Access-Control-Allow-Origin": site})
            reader.page.route("**/search/select", told)
            reader.page.click("#search button")
            reader.page.wait_for_selector("datafari-answer .counts")

            assert reader.page.locator("datafari-answer .prose").inner_text().strip()
            found = reader.page.evaluate(HARM, zoo_service.url)
            assert [place for place in found if zoo_service.url not in place] == []
        reader.strange_requests = [url for url in reader.strange_requests if not url.startswith(zoo_service.url)]


def test_any_other_site_gets_nothing(zoo_service: Zoo, come: Come) -> None:
    with foreign_site(zoo_service.url) as site:
        zoo_service.behave("cite", server__cors__origins="https://intranet.example.org")
        reader = visit(come, site, zoo_service)

        assert reader.page.locator("datafari-answer .notice h2").inner_text() == "The connection was lost"
        assert any("CORS" in complaint or "ERR_FAILED" in complaint for complaint in reader.complaints)
        reader.complaints.clear()
