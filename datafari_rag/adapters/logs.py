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

from datafari_rag.core.settings import Settings

OURS = "datafari_rag"


class JsonLines(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, message."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; an exception is named by its type alone, for its text may hold anything."""
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, object] = {
            "time": f"{when}.{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["exception"] = record.exc_info[0].__name__
        return json.dumps(line, ensure_ascii=False)


def configure(settings: Settings) -> None:
    """Send what this service logs where the settings say; libraries' messages only from WARNING on."""
    handler: logging.Handler
    if settings.log_file:
        handler = logging.FileHandler(settings.log_file, encoding="utf-8", delay=True)
    else:
        handler = logging.StreamHandler(sys.stderr)
    is_json = settings.log_format == "json"
    handler.setFormatter(
        JsonLines() if is_json else logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s")
    )
    # A log that cannot be written (a full disk) is lost; the answer is not.
    logging.raiseExceptions = False
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(OURS).setLevel(settings.log_level)
