"""How a model's server spells a refusal, as a value."""

from __future__ import annotations

from dataclasses import dataclass

MAX_NAME_SHOWN = 100
"""How much of a name that a caller sent an error repeats."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The HTTP *status* of a refusal and the words of its error object, None where they are absent."""

    status: int = 400
    code: str | None = None
    kind: str | None = None
    param: str | None = None
