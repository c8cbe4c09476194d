"""The Server-Timing header: stages for administrators, the total for everybody."""

from __future__ import annotations


def server_timing(stages_ms: tuple[tuple[str, float], ...], total_ms: float, *, is_admin: bool) -> str:
    """
    Return the header's value, milliseconds; the parts add up to the total.

    What no stage claims is the edge's own: reading, identity, rights, encoding.
    """
    if not is_admin:
        return f"total;dur={total_ms:.2f}"
    edge = max(0.0, total_ms - sum(took for _, took in stages_ms))
    parts = [f"{stage};dur={took:.2f}" for stage, took in (*stages_ms, ("edge", edge))]
    return ", ".join([*parts, f"total;dur={total_ms:.2f}"])
