"""Rights of one request: looked up once, and looked at again while a long answer is written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from datafari_rag.core.errors import AuthorityUnavailable, NotAllowed
from datafari_rag.core.identity import VerifiedIdentity
from datafari_rag.web.user import RECHECK_S, RightsOfRequest
from tests.fakes import FakeModel, FakeRetriever, FakeRights, fake_snapshot, parts_of
from tests.settings import settings_with


class Changing(FakeRights):
    """Rights that a test changes, and how often they were looked up."""

    def __init__(self) -> None:
        super().__init__({"ann": ("s1",)})
        self.calls = 0

    def tokens_of(self, name: str, claimed: object) -> tuple[str, ...]:
        self.calls += 1
        if self.error is not None:
            raise self.error
        return tuple(self.users.get(name, ()))


def rights(now: list[float], cache_s: float) -> tuple[RightsOfRequest, Changing]:
    source = Changing()
    settings = settings_with(security_cache_s=cache_s)
    parts = replace(parts_of(FakeRetriever(), FakeModel()), clock=lambda: now[0])
    snapshot = replace(fake_snapshot(), settings=settings, dependencies=parts, rights=source)
    return RightsOfRequest(VerifiedIdentity("ann"), snapshot), source


@pytest.mark.parametrize(("cache_s", "due_s"), [(60.0, 60.0), (0.0, RECHECK_S)])
def test_rights_that_change_at_their_source_end_a_long_answer(cache_s: float, due_s: float) -> None:
    now = [100.0]
    held, source = rights(now, cache_s)
    held.require_held()
    source.users = {"ann": ("s1", "new")}
    now[0] += due_s - 0.1
    held.require_held()
    assert source.calls == 1
    now[0] += 0.1
    with pytest.raises(NotAllowed, match="revoked"):
        held.require_held()


def test_the_same_rights_are_not_looked_up_with_every_word() -> None:
    now = [0.0]
    held, source = rights(now, 0.0)
    for at in range(20):
        now[0] = float(at)
        held.require_held()
    assert source.calls == 4


def test_a_source_that_fails_ends_a_long_answer() -> None:
    now = [0.0]
    held, source = rights(now, 0.0)
    assert held.user().tokens == {"s1"}
    source.error = AuthorityUnavailable()
    now[0] = RECHECK_S
    with pytest.raises(AuthorityUnavailable):
        held.require_held()
