"""What the web layer needs from `bootstrap`: one snapshot of everything, and its problems."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from datafari_rag.core.access import NEVER, Revocation
from datafari_rag.core.answer.conversations import ConversationStore
from datafari_rag.core.errors import AuthorityUnavailable
from datafari_rag.core.settings.table import Settings
from datafari_rag.pipeline import Dependencies
from datafari_rag.ports import Identity, Model, Relay, Revocations, RightsSource, Trail, UsageStore


class NoRevocations:
    """No rights were revoked: for commands, which cache nothing."""

    def latest(self, name: str | None) -> Revocation:
        """Return none."""
        return NEVER

    def add(self, name: str | None, *, by: str) -> Revocation:
        """Keep nothing. Raises: AuthorityUnavailable."""
        raise AuthorityUnavailable(log="nothing keeps revocations here")


@dataclass(frozen=True, slots=True)
class ServiceSnapshot:
    """
    One snapshot: *settings* and all that was built from them; a request takes one and keeps to it.

    *bad_setting* says why every answer fails while a value cannot be used; plain search continues.
    """

    settings: Settings
    dependencies: Dependencies
    identity: Identity
    rights: RightsSource
    written: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The texts of the settings by key, as the file and the command line have them: references are unresolved."""
    relay: Relay | None = None
    bad_setting: str | None = None
    audit: Trail | None = None
    agent_identity: Identity | None = None
    """Identifies users at /mcp: tokens must be made for it. None if the name in such a token is unknown."""
    extractive: Model | None = None
    """Answers without a model of words: with sentences of the documents."""
    revocations: Revocations = field(default_factory=NoRevocations)
    """Whose rights were revoked by an administrator."""
    usage: UsageStore | None = None
    """Where tokens are counted; None where they are not."""
    conversations: ConversationStore | None = None
    """Where conversations of signed-in users are kept; None where they are not."""


class Service(Protocol):
    """The running service, as one worker sees it."""

    def snapshot(self) -> ServiceSnapshot:
        """Return the current snapshot; a changed settings file takes effect within two seconds."""
        ...

    def problems(self) -> Sequence[Mapping[str, object]]:
        """Return what keeps this service from being ready: one mapping each, with `what` and `problem`."""
        ...

    def weaknesses(self) -> Sequence[Mapping[str, object]]:
        """Return what is not as it should be while questions are answered all the same, in the form of `problems`."""
        ...

    def rejected_settings(self) -> str | None:
        """Return why the settings file is not used as it is now, while the settings before it answer; else None."""
        ...

    @property
    def clock(self) -> Callable[[], float]:
        """Seconds since the epoch."""
        ...
