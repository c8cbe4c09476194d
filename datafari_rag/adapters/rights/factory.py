"""Builds where a user's tokens come from, from the settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from datafari_rag.adapters.machine import MACHINE, Machine
from datafari_rag.adapters.rights.authority import AuthorityLimits, AuthorityRights
from datafari_rag.adapters.rights.claims import ClaimedRights
from datafari_rag.adapters.rights.tokens_file import NoRights, RightsFile
from datafari_rag.core.settings.table import Settings
from datafari_rag.ports import RightsSource

Headers = Callable[[], Mapping[str, str]]
"""Returns the headers that go along with a request of ours: its id, and its trace."""


def rights_source(settings: Settings, *, headers: Headers, machine: Machine = MACHINE) -> RightsSource:
    """Return where a user's tokens come from, as `security.tokens` says; *headers* go to the authority."""
    return RIGHTS[settings.security_tokens](settings, headers, machine)


def _file_rights(settings: Settings, headers: Headers, machine: Machine) -> RightsSource:
    return RightsFile(Path(settings.security_tokens_file)) if settings.security_tokens_file else NoRights()


def _authority_rights(settings: Settings, headers: Headers, machine: Machine) -> RightsSource:
    limits = AuthorityLimits(
        settings.security_authority_connect_timeout_s,
        settings.security_authority_timeout_s,
        settings.security_cache_s,
    )
    return AuthorityRights(settings.security_authority_url, limits, headers=headers, machine=machine)


RIGHTS: Mapping[str, Callable[[Settings, Headers, Machine], RightsSource]] = {
    "file": _file_rights,
    "authority": _authority_rights,
    "claims": lambda settings, headers, machine: ClaimedRights(),
}
