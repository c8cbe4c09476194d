from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from datafari_rag.adapters.observability.logs import configure
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


def test_a_line_of_json_has_the_requests_id_and_an_exceptions_type_alone(tmp_path: Path) -> None:
    configure(settings_with(log_file=str(tmp_path / "log"), log_format="json").log, lambda: "r-1")
    try:
        fail()
    except ValueError:
        LOG.exception("it broke")
    (line,) = (tmp_path / "log").read_text().splitlines()

    assert json.loads(line) | {"time": ""} == {
        "time": "",
        "level": "ERROR",
        "logger": "datafari_rag.tests",
        "request_id": "r-1",
        "message": "it broke",
        "exception": "ValueError",
    }


def test_a_line_of_text_has_it_too_and_a_dash_outside_a_request(tmp_path: Path) -> None:
    configure(settings_with(log_file=str(tmp_path / "log")).log)
    LOG.info("counted n=%d", 3)
    try:
        fail()
    except ValueError:
        LOG.exception("it broke")
    text = (tmp_path / "log").read_text()

    assert "INFO datafari_rag.tests - counted n=3" in text
    assert "canary-of-a-library" not in text


def test_a_file_moved_away_is_begun_anew(tmp_path: Path) -> None:
    configure(settings_with(log_file=str(tmp_path / "log")).log)
    LOG.info("one")
    (tmp_path / "log").rename(tmp_path / "log.1")
    LOG.info("two")

    assert "two" in (tmp_path / "log").read_text()
    assert "two" not in (tmp_path / "log.1").read_text()


def test_lines_go_to_standard_error_while_the_folder_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(settings_with(log_file=str(tmp_path / "none" / "log")).log)
    LOG.info("first")
    (tmp_path / "none").mkdir()
    LOG.info("second")

    assert "first" in capsys.readouterr().err
    assert "second" in (tmp_path / "none" / "log").read_text()


def test_what_libraries_log_is_kept_out_below_warning(tmp_path: Path) -> None:
    configure(settings_with(log_file=str(tmp_path / "log"), log_level="DEBUG").log)
    logging.getLogger("urllib3").info("canary of a query")
    LOG.debug("ours")

    assert "canary" not in (tmp_path / "log").read_text()
