"""The current state of the parts that a question needs, for administrators; the model is never called for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from datafari_rag.core.messages import translated
from datafari_rag.web.api.exchange import WorkerContext
from datafari_rag.web.ops.health import parts_of
from datafari_rag.web.pages.locale import Translate
from datafari_rag.web.pages.messages import part_names, title_and_hint


@dataclass(frozen=True, slots=True)
class PartStatus:
    """One part: *problem* is what is wrong with it now, empty for nothing; *last* its last failure, empty for none."""

    what: str
    name: str
    problem: str
    last: str


def state_of(worker: WorkerContext, translate: Translate) -> tuple[PartStatus, ...]:
    """Return every part with its state, in the order of readiness."""
    names = part_names(translate)
    return tuple(
        PartStatus(
            what=str(one["what"]),
            name=names.get(str(one["what"]), str(one["what"])),
            problem=_problem(one, translate),
            last=_last(worker.failures.latest(str(one["what"])), translate),
        )
        for one in parts_of(worker, worker.service.problems())
    )


def _problem(part: Mapping[str, Any], translate: Translate) -> str:
    if part["problem"]:
        return translated(part["problem"], translate)
    return "" if part["ok"] else translate("not used for a while after repeated failures")


def _last(failure: Mapping[str, str] | None, translate: Translate) -> str:
    if failure is None:
        return ""
    title, _ = title_and_hint(failure["label"], translate)
    return f"{title} ({failure['at']})"
