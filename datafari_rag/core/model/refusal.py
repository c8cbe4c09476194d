"""How a model's server refuses a request, as values; nothing of them is shown as it came."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MAX_NAME_SHOWN = 100
"""How much of a name that a caller sent an error repeats."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The HTTP *status* of a refusal and the words of its error object, None where they are absent."""

    status: int = 400
    code: str | None = None
    kind: str | None = None
    param: str | None = None


@dataclass(frozen=True, slots=True)
class Rejection:
    """An answer that is not 200: *error* is the model's own error object (empty when there is none)."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    size_bytes: int = 0
    error: Mapping[str, object] = field(default_factory=dict, repr=False)
