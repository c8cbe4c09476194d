"""What the web needs from whoever built the real things: one snapshot of everything, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from datafari_rag.core.errors import RagError
from datafari_rag.core.settings import Settings
from datafari_rag.pipeline import Parts
from datafari_rag.ports import Identity, Relay, RightsSource, Trail


@dataclass(frozen=True, slots=True)
class Line:
    """
    One snapshot: *settings* and all that was built from them; a request takes one and keeps to it.

    *bad_setting* is what every answer fails with while a value cannot be used; plain search goes on.
    """

    settings: Settings
    parts: Parts
    identity: Identity
    rights: RightsSource
    relay: Relay | None = None
    bad_setting: RagError | None = None
    audit: Trail | None = None


class Service(Protocol):
    """The running service, as one worker sees it."""

    def line(self) -> Line:
        """Return the present snapshot; a changed settings file is taken up within two seconds."""
        ...

    def problems(self) -> Sequence[Mapping[str, object]]:
        """Return what keeps this service from being ready: one mapping each, with `what` and `problem`."""
        ...

    @property
    def clock(self) -> Callable[[], float]:
        """Seconds since the epoch."""
        ...
