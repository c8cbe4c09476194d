"""Whether spans are asked for: by `server.traces.endpoint`, or by OpenTelemetry's own environment variables."""

from __future__ import annotations

from collections.abc import Mapping

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


def is_wanted(endpoint: str, environ: Mapping[str, str]) -> bool:
    """
    Say whether to make spans: where *endpoint* or a variable says to which address, or `otlp` is named as exporter.

    `OTEL_SDK_DISABLED=true` turns them off in any case; another exporter (`none`) does so for the variables alone.
    Source: OpenTelemetry Environment Variable Specification.
    """
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporter = environ.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    is_addressed = exporter == "" and any(environ.get(name, "").strip() for name in ENDPOINTS)
    return bool(endpoint) or exporter == "otlp" or is_addressed
