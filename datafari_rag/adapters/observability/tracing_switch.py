"""Whether spans are asked for, by OpenTelemetry's own environment variables."""

from __future__ import annotations

from collections.abc import Mapping

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


def is_wanted(environ: Mapping[str, str]) -> bool:
    """
    Say whether to make spans: where a variable says to which address, or `otlp` is named as exporter.

    `OTEL_SDK_DISABLED=true` turns them off in any case, and so does another exporter (`none`).
    Source: OpenTelemetry Environment Variable Specification.
    """
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporter = environ.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    is_addressed = exporter == "" and any(environ.get(name, "").strip() for name in ENDPOINTS)
    return exporter == "otlp" or is_addressed
