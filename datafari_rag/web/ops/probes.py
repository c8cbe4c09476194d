"""What the service depends on, one row for each part: readiness asks them, and `doctor` prints them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from datafari_rag.web.runtime import ServiceSnapshot


@dataclass(frozen=True, slots=True)
class Probe:
    """
    One part by its name in readiness; *of* finds it in a service, None where it is not configured.

    *problem* says in a sentence what is wrong with the part, None when nothing is. One that *sends* makes a request
    for it, whose result is kept for a while. Without a part that is *needed* no question is answered.
    """

    what: str
    of: Callable[[ServiceSnapshot], Any]
    problem: Callable[[Any], str | None]
    sends: bool = False
    is_needed: bool = True


def _asked(part: Any) -> str | None:
    # Rights that come with each request have nothing to be asked.
    return getattr(part, "probe", lambda: None)()


def _watched(part: Any) -> str | None:
    return part.problem()  # type: ignore[no-any-return] # as the ports have it


PROBES = (
    Probe("search", lambda service: service.dependencies.retriever, _asked, sends=True),
    Probe("rights", lambda service: service.rights, _asked, sends=True),
    # Never called for this: that would cost money, or wake it.
    Probe("model", lambda service: service.dependencies.model, lambda model: None),
    Probe("audit", lambda service: service.audit, _watched),
    Probe("meaning", lambda service: service.dependencies.meaning, _watched, sends=True, is_needed=False),
    Probe("conversations", lambda service: service.conversations, _watched, is_needed=False),
    Probe("usage", lambda service: service.usage, _watched, is_needed=False),
)
