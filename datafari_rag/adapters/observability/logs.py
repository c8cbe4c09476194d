"""
Log lines as text or JSON, to standard error or a file; a full disk never stops an answer.

Lines hold ids, counts, milliseconds and labels. What libraries log is kept out below WARNING: some of them put whole
queries and answers into their records.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from io import TextIOWrapper
from logging.handlers import WatchedFileHandler
from pathlib import Path

from datafari_rag.adapters.private_files import take_from_others
from datafari_rag.core.settings.table import LogSettings

OURS = "datafari_rag"

TEXT = "%(asctime)s %(levelname)s %(name)s %(request_id)s %(message)s"


class JsonLines(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, the request's id where there is one, message."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; an exception is named by its type alone, for its text may hold anything."""
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, object] = {
            "time": f"{when}.{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "request_id": getattr(record, "request_id", "-"),
            "message": record.getMessage(),
        }
        if line["request_id"] == "-":
            del line["request_id"]
        if record.exc_info and record.exc_info[0] is not None:
            line["exception"] = record.exc_info[0].__name__
        return json.dumps(line, ensure_ascii=False)


class TextLines(logging.Formatter):
    """One line of text for each record, the request's id or "-" in it."""

    def formatException(self, ei: object) -> str:  # noqa: N802 # the library's name
        """Return the exception's type alone, for its text may hold anything."""
        kind = ei[0] if isinstance(ei, tuple) else None
        return getattr(kind, "__name__", "")


class LogFile(WatchedFileHandler):
    """A file that another program may move away; while it cannot be written, lines go to standard error."""

    def _open(self) -> TextIOWrapper:
        opened = super()._open()
        take_from_others(Path(self.baseFilename))
        return opened

    def emit(self, record: logging.LogRecord) -> None:
        """Write *record*; where the file cannot be opened, the next line tries again."""
        try:
            super().emit(record)
        except OSError:
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 # the library's name
        """Write *record* to standard error in place of a folder that is gone, or a disk without room."""
        with suppress(OSError):
            sys.stderr.write(f"{self.format(record)}\n")


def configure(log: LogSettings, request_id: Callable[[], str] = str) -> None:
    """
    Send what this service logs where the settings say; libraries' messages only from WARNING on.

    *request_id* gives the id of the request that is being answered here, "" outside one; it is in every line.
    """

    def named(record: logging.LogRecord) -> bool:
        record.request_id = request_id() or "-"
        return True

    handler: logging.Handler
    if log.file:
        handler = LogFile(log.file, encoding="utf-8", delay=True)
    else:
        handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if log.format == "json" else TextLines(TEXT))
    handler.addFilter(named)
    # Standard error that cannot be written loses a line; no answer fails for it.
    logging.raiseExceptions = False
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(OURS).setLevel(log.level)
    # Its messages hold what the collector answered; `tracing.py` says in its place that one did not take the spans.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
