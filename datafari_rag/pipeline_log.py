"""The lines that `rag.enable.logs` adds for each step of the line: counts, sizes and names, never a word of anybody."""

from __future__ import annotations

import logging

from datafari_rag.core.answer.reasoning_steps import SearchAttempt
from datafari_rag.core.model.replies import header_value
from datafari_rag.core.passages.budget_fitting import Selected
from datafari_rag.core.search_request import SearchResult
from datafari_rag.core.settings.table import Settings
from datafari_rag.ports import Ending

log = logging.getLogger(__name__)


def log_model(ending: Ending, chars: int, settings: Settings) -> None:
    """Log the line of the model's step: who, how often it was tried, how much came and how it ended."""
    if settings.rag_enable_logs:
        outcome = ending.finish_reason if ending.failure is None else ending.failure.label
        log.info("model %s chars=%d ended=%r", header_value(ending.facts), chars, outcome)


def log_steps(found: SearchResult, tried: tuple[SearchAttempt, ...], selected: Selected) -> None:
    """Log one line for each step: counts, sizes and names of steps, never a word of anybody (`rag.enable.logs`)."""
    for step in tried:
        log.info("search step=%r found=%d", step.name, step.total)
    took_ms = 0.0 if found.took_ms is None else found.took_ms
    log.info("documents ids=%r took_ms=%.1f", [document.id for document in found.documents], took_ms)
    log.info("passages documents=%d chars=%d", len(selected.extracts), sum(len(e.text) for e in selected.extracts))
