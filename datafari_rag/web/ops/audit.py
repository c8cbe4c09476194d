"""Writes one record for each finished answer to the audit trail, if there is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from datafari_rag.core.audit_record import AuditEvent, record_of
from datafari_rag.core.documents import Extract
from datafari_rag.core.events import ModelFacts, Support
from datafari_rag.web.runtime import ServiceSnapshot


@dataclass(frozen=True, slots=True)
class Audited:
    """What is known of a request; *question* None where it failed before it was read."""

    at_s: float
    request_id: str
    dialect: str
    user: str | None
    question: str | None = None
    support: Support | None = None
    """How much of the answer is proved; None where there is none."""


def audit(
    snapshot: ServiceSnapshot,
    audited: Audited,
    outcome: str,
    *,
    facts: ModelFacts | None = None,
    extracts: tuple[Extract, ...] = (),
) -> None:
    """Pass the line of one finished request to the trail; returns immediately and never fails."""
    if snapshot.audit is None:
        return
    usage = facts.extras.get("usage") if facts else None
    total = usage.get("total_tokens") if isinstance(usage, Mapping) else None
    happening = AuditEvent(
        at_s=audited.at_s,
        request_id=audited.request_id,
        dialect=audited.dialect,
        outcome=outcome,
        user=audited.user,
        mode=snapshot.settings.security_mode,
        extracts=extracts,
        model=facts.name if facts else None,
        tokens=total if isinstance(total, int) else None,
        support=audited.support,
    )
    snapshot.audit.append(record_of(happening), question=audited.question)
