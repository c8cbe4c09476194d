"""One browser, one demo and one zoo for all; readers for each test, who must have nothing to complain of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.places import Zoo, demo, zoo
from tests.browser.shared_page import SharedPage
from tests.browser.surfing import PATIENCE_MS, Surfer, browsing, new_page
from tests.end_to_end.processes import Running

Come = Callable[..., Surfer]

SHARED_OPTIONS = {"locale", "java_script_enabled"}

# Its own limit is five seconds, and no context's option changes it.
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with browsing() as found:
        yield found


@pytest.fixture(scope="package")
def demo_service(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with demo(tmp_path_factory.mktemp("demo")) as found:
        yield found


@pytest.fixture(scope="package")
def zoo_service(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zoo]:
    with zoo(tmp_path_factory.mktemp("zoo")) as found:
        yield found


@pytest.fixture(scope="package")
def workbench(browser: Browser, demo_service: Running) -> Iterator[Page]:
    """A page of the service on which tests can call functions of its scripts; nothing of it is kept."""
    page = browser.new_page()
    page.goto(demo_service.url)
    yield page
    page.close()


@pytest.fixture(scope="package")
def shared_pages(browser: Browser) -> dict[str, SharedPage]:
    """The shared pages by their options, which are few: English or French, with or without script."""
    return {}


@pytest.fixture
def come(browser: Browser, shared_pages: dict[str, SharedPage]) -> Iterator[Come]:
    """
    Returns readers: `come(url)`, with options of a browser's context; none may be left with a complaint.

    The first with the same options gets the shared page. A second one, one with other options and one with `alone=True`
    get a context of their own.
    """
    surfers: list[tuple[Surfer, SharedPage | None]] = []

    def arrive(home: str, *, alone: bool = False, **options: Any) -> Surfer:
        shared = shared_pages.setdefault(repr(options), SharedPage(browser, options))
        is_shared = not (alone or shared.is_taken) and options.keys() <= SHARED_OPTIONS
        surfer = shared.take(home) if is_shared else Surfer(new_page(browser, options), home)
        surfer.watch()
        surfers.append((surfer, shared if is_shared else None))
        return surfer

    yield arrive
    for surfer, shared in surfers:
        if shared is None:
            surfer.page.context.close()
        else:
            shared.give_back(surfer)
    assert [surfer.complaints for surfer, _ in surfers if surfer.complaints] == []
    assert [surfer.strange_requests for surfer, _ in surfers if surfer.strange_requests] == []
