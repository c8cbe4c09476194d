"""Counts and tables that are shown whatever pytest captures: what a passing property has seen is part of its result."""

from __future__ import annotations

from pytest import Config


def tell(config: Config, text: str) -> None:
    """Print *text* past pytest's capture."""
    manager = config.pluginmanager.getplugin("capturemanager")
    with manager.global_and_fixture_disabled():
        print(f"\n{text}", flush=True)  # noqa: T201 - it is what this module is for
