"""What the web layer needs from `bootstrap`: one snapshot of everything, and its problems."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from datafari_rag.core.access import NEVER, Revocation
from datafari_rag.core.answer.conversations import ConversationStore
from datafari_rag.core.errors import AuthorityUnavailable
from datafari_rag.core.settings.parsing import Problem
from datafari_rag.core.settings.table import Settings
from datafari_rag.pipeline import Dependencies
from datafari_rag.ports import Identity, Ledger, Model, QuestionStore, Relay, Revocations, RightsSource, Trail


class NoRevocations:
    """No rights were revoked: for commands, which cache nothing."""

    def latest(self, name: str | None) -> Revocation:
        """Return none."""
        return NEVER

    def mark(self) -> object:
        """Return the same each time."""
        return None

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
    relay: Relay | None = None
    bad_setting: str | None = None
    audit: Trail | None = None
    agent_identity: Identity | None = None
    """Identifies users at /mcp: tokens must be made for it. None if the name in such a token is unknown."""
    extractive: Model | None = None
    """Answers without a model of words: with sentences of the documents."""
    revocations: Revocations = field(default_factory=NoRevocations)
    """Whose rights were revoked by an administrator."""
    accounts: Ledger | None = None
    """Where tokens and costs are counted; None where they are not."""
    questions: QuestionStore | None = None
    """Where questions are kept for the report; None where they are not."""
    conversations: ConversationStore | None = None
    """Where conversations of signed-in users are kept; None where they are not."""


class SettingsPreview(Protocol):
    """The settings that some changes would give, and every problem with them."""

    @property
    def settings(self) -> Settings:
        """The settings; a bad value has left its default."""
        ...

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All problems of the file, as `datafari-rag check` says them."""
        ...


class EditableSettings(Protocol):
    """The settings file as the administration sees it; changes are key → text, None for the default."""

    @property
    def name(self) -> str:
        """The file's name."""
        ...

    def file_values(self) -> Mapping[str, str]:
        """Return the texts of the file by key, references unresolved; it contains secrets as the file does."""
        ...

    def fixed(self) -> Collection[str]:
        """Return the keys that the command line decides."""
        ...

    def preview(self, changes: Mapping[str, str | None]) -> SettingsPreview:
        """Return what the file would give after *changes*; nothing is written."""
        ...

    def save(self, changes: Mapping[str, str | None], who: str) -> tuple[Problem, ...]:
        """Write *changes*, logged under *who*; return what stopped it, nothing when it is done. Raises: OSError."""
        ...

    def history(self) -> Sequence[Mapping[str, object]]:
        """Return the latest savings, the newest first, without secrets."""
        ...

    def trial(self, changes: Mapping[str, str | None], present: ServiceSnapshot) -> ServiceSnapshot:
        """Return *present* with *changes* of answer settings alone, for one answer; rights and search stay."""
        ...


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
