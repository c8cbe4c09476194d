"""
The Server-Timing header, for administrators alone.

Others could read from it, without the noise of the network, what their own search met in documents they may not see.
"""

from __future__ import annotations


def server_timing(stages_ms: tuple[tuple[str, float], ...], total_ms: float) -> str:
    """
    Return the header's value, milliseconds; the parts add up to the total.

    What no stage claims is the edge's own: reading, identity, rights, encoding.
    """
    edge = max(0.0, total_ms - sum(took for _, took in stages_ms))
    parts = [f"{stage};dur={took:.2f}" for stage, took in (*stages_ms, ("edge", edge))]
    return ", ".join([*parts, f"total;dur={total_ms:.2f}"])
