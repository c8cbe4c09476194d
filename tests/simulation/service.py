"""The service of a world; what is the same in all worlds is built once for a process."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from werkzeug.routing import Map

from datafari_rag.adapters.settings.file import SettingsFile
from datafari_rag.bootstrap import Application


@cache
def url_rules() -> Map:
    """Return the service's URL rules, which know no view: compiling them would take a sixth of each world."""
    return Application(SettingsFile(None, environ={})).url_map


class SimulatedApplication(Application):
    """The service with the URL rules that all worlds share, and views of its own."""

    def __init__(self, *built_from: Any) -> None:
        """Build everything but the rules."""
        super().__init__(*built_from)
        self.url_map = url_rules()

    def add_url_rule(
        self, rule: str, endpoint: str | None = None, view_func: Callable[..., Any] | None = None, **options: Any
    ) -> None:
        """Keep the view of *endpoint*; its rule is among those that are shared."""
        assert endpoint is not None, rule
        assert view_func is not None, rule
        self.view_functions[endpoint] = view_func
