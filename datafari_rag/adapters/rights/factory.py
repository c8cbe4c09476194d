"""Builds where a user's tokens come from, from the settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from datafari_rag.adapters.machine import MACHINE, Machine
from datafari_rag.adapters.rights.authority import UNWATCHED, AuthorityLimits, AuthorityRights, RightsWatch
from datafari_rag.adapters.rights.tokens_file import NoRights, RightsFile
from datafari_rag.core.settings.table import Settings
from datafari_rag.ports import RightsSource


class ClaimedRights:
    """Believes the claims, because the identity adapter has checked their signature."""

    def tokens_of(self, name: str, claimed: Iterable[str]) -> Iterable[str]:
        """Return *claimed* as they are; none for an identity without any."""
        return tuple(claimed)


Headers = Callable[[], Mapping[str, str]]
"""Returns the headers for an outgoing request: its id and its trace."""


def rights_source(
    settings: Settings, *, headers: Headers, watch: RightsWatch = UNWATCHED, machine: Machine = MACHINE
) -> RightsSource:
    """Return where a user's tokens come from, as `security.tokens` says; *headers* go to the authority."""
    sources: Mapping[str, Callable[[], RightsSource]] = {
        "file": partial(_file_rights, settings),
        "authority": partial(_authority_rights, settings, headers, watch, machine),
        "claims": ClaimedRights,
    }
    return sources[settings.security_tokens]()


def _file_rights(settings: Settings) -> RightsSource:
    return RightsFile(Path(settings.security_tokens_file)) if settings.security_tokens_file else NoRights()


def _authority_rights(settings: Settings, headers: Headers, watch: RightsWatch, machine: Machine) -> RightsSource:
    patience = settings.security_authority_limits
    limits = AuthorityLimits(patience.connect_s, patience.wait_s, settings.security_cache_s)
    url = settings.security_authority_url
    return AuthorityRights(url, limits, headers=headers, watch=watch, machine=machine)
