from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from datafari_rag.adapters.observability.logs import configure
from datafari_rag.core.settings.table import Settings
from tests.settings import settings_with

LOG = logging.getLogger("datafari_rag.tests")


@pytest.fixture(autouse=True)
def put_back() -> Iterator[None]:
    """Leave the logging of the test run as it was."""
    root, ours = logging.getLogger(), logging.getLogger("datafari_rag")
    kept = root.handlers[:], root.level, ours.level, logging.raiseExceptions
    yield
    for handler in root.handlers:
        handler.close()
    root.handlers[:], logging.raiseExceptions = kept[0], kept[3]
    root.setLevel(kept[1])
    ours.setLevel(kept[2])


def fail() -> None:
    raise ValueError("canary-of-a-library")


def test_a_line_of_json_has_the_requests_id_and_an_exceptions_type_alone(capsys: pytest.CaptureFixture[str]) -> None:
    configure(settings_with(log_format="json").log, lambda: "r-1")
    try:
        fail()
    except ValueError:
        LOG.exception("it broke")
    (line,) = capsys.readouterr().err.splitlines()

    assert json.loads(line) | {"time": ""} == {
        "time": "",
        "level": "ERROR",
        "logger": "datafari_rag.tests",
        "request_id": "r-1",
        "message": "it broke",
        "exception": "ValueError",
    }


def test_a_line_of_text_has_it_too_and_a_dash_outside_a_request(capsys: pytest.CaptureFixture[str]) -> None:
    configure(Settings().log)
    LOG.info("counted n=%d", 3)
    try:
        fail()
    except ValueError:
        LOG.exception("it broke")
    text = capsys.readouterr().err

    assert "INFO datafari_rag.tests - counted n=3" in text
    assert "canary-of-a-library" not in text


def test_what_libraries_log_is_kept_out_below_warning(capsys: pytest.CaptureFixture[str]) -> None:
    configure(settings_with(log_level="DEBUG").log)
    logging.getLogger("urllib3").info("canary of a query")
    LOG.debug("ours")

    assert "canary" not in capsys.readouterr().err
