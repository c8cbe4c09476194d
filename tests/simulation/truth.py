"""What is true in the world: who has which tokens and which document has which rights, and since when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from datafari_rag.core.access import ACL_FIELDS, LEVELS, NO_SECURITY, is_visible

T = TypeVar("T")
Acl = Mapping[str, tuple[str, ...]]

USERS = ("alice", "bob", "carol")
GROUPS = ("g1", "g2", "g3")
DEAD = "ad:DEAD_AUTHORITY"
OPEN: Acl = dict.fromkeys(ACL_FIELDS, (NO_SECURITY,))


def canary(document: str) -> str:
    """Return the word that stands in *document* and nowhere else."""
    return f"zq{document}k"


@dataclass
class Truth:
    """Every state of every user's tokens and every document's rights, each with its beginning; None is deleted."""

    tokens: dict[str, list[tuple[float, frozenset[str]]]] = field(default_factory=dict)
    acls: dict[str, list[tuple[float, Acl | None]]] = field(default_factory=dict)

    def tokens_now(self, user: str) -> frozenset[str]:
        """Return the tokens that the authority gives *user* now."""
        return self.tokens[user][-1][1] if user in self.tokens else frozenset()

    def acl_now(self, document: str) -> Acl | None:
        """Return the rights of *document* now, None where it is deleted."""
        return self.acls[document][-1][1]

    def token_sets(self, user: str | None, since: float) -> list[frozenset[str]]:
        """Return all that were the tokens of *user* at some time after *since*; nobody has none."""
        if user is None:
            return [frozenset()]
        # What a dead authority behind the service leaves of the rights is a state of its own.
        return [*_since(self.tokens[user], since), frozenset({DEAD})]

    def may_see(self, user: str | None, document: str, *, tokens_since: float, rights_since: float) -> bool:
        """Say whether *user* could see *document* by some tokens and rights since then."""
        rights = [acl for acl in _since(self.acls[document], rights_since) if acl is not None]
        return any(is_visible(acl, tokens) for tokens in self.token_sets(user, tokens_since) for acl in rights)

    def visible_now(self, user: str | None) -> list[str]:
        """Return the documents that *user* may see now."""
        tokens = frozenset() if user is None else self.tokens_now(user)
        return [one for one in self.acls if (acl := self.acl_now(one)) is not None and is_visible(acl, tokens)]


def _since(states: list[tuple[float, T]], since: float) -> Iterator[T]:
    """Yield the states that held at some moment from *since* on."""
    for (_, state), (ends, _) in zip(states, [*states[1:], (float("inf"), states[-1][1])], strict=True):
        if ends > since:
            yield state


def some_tokens(user: str, random: Random) -> frozenset[str]:
    """Return tokens of *user*: his own and those of some groups."""
    return frozenset({f"ad:{user}", *(f"ad:{group}" for group in GROUPS if random.random() < 0.5)})


def some_acl(random: Random) -> Acl:
    """Return rights: open, or narrowed on one level to a group or a user, perhaps with a group denied."""
    if random.random() < 0.15:
        return OPEN
    level = random.choice(LEVELS)
    allowed = f"ad:{random.choice((*GROUPS, *USERS))}"
    denied = [DEAD, *(f"ad:{group}" for group in GROUPS if random.random() < 0.15)]
    return {**OPEN, f"allow_token_{level}": (allowed,), f"deny_token_{level}": tuple(denied)}
