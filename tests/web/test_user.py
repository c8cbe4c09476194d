"""Rights of one request: looked up when they are first needed, and once."""

from __future__ import annotations

from dataclasses import replace

from datafari_rag.core.identity import VerifiedIdentity
from datafari_rag.web.user import RightsOfRequest
from tests.fakes import FakeRights, fake_snapshot


def test_a_request_keeps_to_the_rights_that_it_began_with() -> None:
    source = FakeRights({"ann": ("s1",)})
    rights = RightsOfRequest(VerifiedIdentity("ann"), replace(fake_snapshot(), rights=source))
    assert rights.user().tokens == {"s1"}
    before = rights.fingerprint()
    source.users = {"ann": ("s1", "new")}
    assert (rights.user().tokens, rights.fingerprint()) == ({"s1"}, before)
    later = RightsOfRequest(VerifiedIdentity("ann"), replace(fake_snapshot(), rights=source))
    assert later.fingerprint() != before
