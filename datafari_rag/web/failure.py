"""The shape of an error where no dialect has one: `/documents`, health and unknown paths."""

from __future__ import annotations

from datafari_rag.core.errors import RagError
from datafari_rag.core.settings.table import Settings


def failure(error: RagError, settings: Settings) -> tuple[int, dict[str, object]]:
    """Return `{"error": {"code", "label", "reason"}}` with the code as HTTP status (contract §2)."""
    return error.code, {"error": {"code": error.code, "label": error.label, "reason": error.reason}}
