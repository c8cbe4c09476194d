"""
Keys of the audit chain: with a key, write access to the files is not enough to forge a line.

A key has a short id that reveals nothing about it. The newest key signs; older ones still verify what they signed.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

ID_CHARS = 12


@dataclass(frozen=True, slots=True, repr=False)
class AuditKey:
    """One key; *secret* is never shown."""

    secret: str

    @property
    def id(self) -> str:
        """What a line says of the key that signed it."""
        return hashlib.sha256(f"datafari-rag audit key {self.secret}".encode()).hexdigest()[:ID_CHARS]

    def signed(self, purpose: str, text: str) -> str:
        """Return the signature (HMAC-SHA256) of *text*; one made for another *purpose* is not valid for this one."""
        return hmac.new(self.secret.encode(), f"{purpose} {text}".encode(), hashlib.sha256).hexdigest()


Keys = Mapping[str, AuditKey]


def keys_by_id(secrets: Iterable[str]) -> Keys:
    """Return the keys of *secrets* by their ids, without empty texts."""
    return {key.id: key for key in (AuditKey(secret) for secret in secrets if secret)}
