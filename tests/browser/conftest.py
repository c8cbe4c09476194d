"""One browser, one demo and one zoo for all; a fresh reader for each test, who must have nothing to complain of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.places import Zoo, demo, zoo
from tests.browser.surfing import Surfer, browsing
from tests.end_to_end.processes import Running

Come = Callable[..., Surfer]

PATIENCE_MS = 45_000
"""Far more than a page takes: a busy machine is no fault of it."""

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


@pytest.fixture
def come(browser: Browser) -> Iterator[Come]:
    """Returns readers: `come(url)`, with options of a browser's context; none may be left with a complaint."""
    surfers: list[Surfer] = []

    def arrive(home: str, **options: Any) -> Surfer:
        context = browser.new_context(**{"reduced_motion": "reduce", "locale": "en-GB", **options})
        context.set_default_timeout(PATIENCE_MS)
        surfer = Surfer(context.new_page(), home)
        surfer.watch()
        surfers.append(surfer)
        return surfer

    yield arrive
    for surfer in surfers:
        surfer.page.context.close()
    assert [surfer.complaints for surfer in surfers if surfer.complaints] == []
    assert [surfer.strange_requests for surfer in surfers if surfer.strange_requests] == []
