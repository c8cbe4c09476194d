"""
Log lines as text or JSON, to standard error, which the machine's own means collect; no answer fails for a line.

Lines hold ids, counts, milliseconds and labels. What libraries log is kept out below WARNING: some of them put whole
queries and answers into their records.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable

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


def configure(log: LogSettings, request_id: Callable[[], str] = str) -> None:
    """
    Send what this service logs to standard error; libraries' messages only from WARNING on.

    *request_id* gives the id of the request that is being answered here, "" outside one; it is in every line.
    """

    def named(record: logging.LogRecord) -> bool:
        record.request_id = request_id() or "-"
        return True

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
