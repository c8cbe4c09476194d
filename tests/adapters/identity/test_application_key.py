"""A calling application's key, which proves no user, and its users' own signed tokens in headers of their own."""

from __future__ import annotations

import time
from typing import Any

import jwt
import pytest

from datafari_rag.adapters.identity.factory import UNKNOWN_KEY, AnonymousIdentity, KeyedIdentity
from datafari_rag.adapters.identity.jwt import NO_USER, TWO_USERS, JwtIdentity, TokenRules
from datafari_rag.core.errors import ExpiredSignIn, InvalidSignIn, NotAuthenticated
from datafari_rag.core.identity import VerifiedIdentity

KEYS = ("first-key-of-an-app", "second-key-of-an-app")
SECRET = "a-secret-that-both-programs-know"
USER_HEADER = "X-OpenWebUI-User-Jwt"
RULES = TokenRules(issuer="open-webui", user_claim="email", headers=(USER_HEADER,), tokens_claim=None)


def user_token(email: str | None = "alice@example.org", secret: str = SECRET, **more: Any) -> str:
    """Return a token as Open WebUI 0.12.4 makes it."""
    now = int(time.time())
    claims = {"sub": "1", "email": email, "name": "Alice", "role": "user", "iss": "open-webui", "iat": now}
    return jwt.encode({**claims, "exp": now + 300, **more}, secret, more.pop("algorithm", "HS256"))


def identify(keys: tuple[str, ...] = KEYS, rules: TokenRules = RULES, **headers: str) -> VerifiedIdentity:
    sent = {name.replace("_", "-").lower(): value for name, value in headers.items()}
    reads_tokens = "authorization" in (name.lower() for name in rules.headers)
    return KeyedIdentity(JwtIdentity(rules, secret=SECRET), keys, reads_tokens).identify(sent, "10.0.0.9")


@pytest.mark.parametrize("key", KEYS)
def test_a_key_and_a_user(key: str) -> None:
    found = identify(authorization=f"Bearer {key}", x_openwebui_user_jwt=user_token())
    assert found == VerifiedIdentity("alice@example.org", is_application=True)


def test_two_users_of_one_application_are_two() -> None:
    names = [identify(x_openwebui_user_jwt=user_token(f"{name}@x.org")).name for name in ("alice", "bob")]
    assert names == ["alice@x.org", "bob@x.org"]


def test_a_key_alone_proves_no_user() -> None:
    assert identify(authorization=f"bearer  {KEYS[0]} ") == VerifiedIdentity(None, is_application=True)


def test_a_user_needs_no_key() -> None:
    assert identify(x_openwebui_user_jwt=f"Bearer {user_token()}") == VerifiedIdentity("alice@example.org")


def test_nothing_is_nobody() -> None:
    assert identify() == VerifiedIdentity()


LATER = int(time.time()) + 86_400
"""Tokens of this table are made when the tests are collected, which may be long before they run."""

REFUSED = [
    ("a key that is not known", {"authorization": "Bearer another-key-of-an-app"}, UNKNOWN_KEY),
    ("half a key", {"authorization": f"Bearer {KEYS[0][:-1]}"}, UNKNOWN_KEY),
    ("a key of another scheme", {"authorization": f"Basic {KEYS[0]}"}, UNKNOWN_KEY),
    ("half a character", {"authorization": "Bearer \udcff"}, UNKNOWN_KEY),
    ("a wrong signature", {"x_openwebui_user_jwt": user_token(secret=SECRET + "!", exp=LATER)}, InvalidSignIn.sentence),
    ("an old token", {"x_openwebui_user_jwt": user_token(exp=int(time.time()) - 301)}, ExpiredSignIn.sentence),
    (
        "an old token with a wrong signature",
        {"x_openwebui_user_jwt": user_token(exp=1, secret="x" * 32)},
        InvalidSignIn.sentence,
    ),
    ("no signature", {"x_openwebui_user_jwt": jwt.encode({"email": "a"}, None, "none")}, InvalidSignIn.sentence),
    ("another issuer", {"x_openwebui_user_jwt": user_token(iss="else", exp=LATER)}, InvalidSignIn.sentence),
    ("no user", {"x_openwebui_user_jwt": user_token(None, exp=LATER)}, NO_USER),
    ("no token at all", {"x_openwebui_user_jwt": ""}, InvalidSignIn.sentence),
    ("a name in place of a token", {"x_openwebui_user_jwt": "alice@example.org"}, InvalidSignIn.sentence),
    ("a very long one", {"x_openwebui_user_jwt": "x" * 40_000}, InvalidSignIn.sentence),
]


@pytest.mark.parametrize(
    ("headers", "reason"), [pytest.param(headers, reason, id=name) for name, headers, reason in REFUSED]
)
def test_it_is_refused(headers: dict[str, str], reason: str) -> None:
    with pytest.raises(NotAuthenticated) as refused:
        identify(**headers)
    assert refused.value.reason == reason


def test_a_right_key_does_not_heal_a_wrong_token() -> None:
    with pytest.raises(NotAuthenticated):
        identify(authorization=f"Bearer {KEYS[0]}", x_openwebui_user_jwt=user_token(secret="x" * 32))


BOTH = TokenRules(
    user_claim="email",
    headers=("Authorization", USER_HEADER),
    tokens_claim=None,
)


def test_a_users_token_may_stand_where_a_key_does() -> None:
    found = identify(rules=BOTH, authorization=f"Bearer {user_token()}")
    assert found == VerifiedIdentity("alice@example.org")


def test_two_tokens_must_name_one_user() -> None:
    one = user_token()
    assert identify(rules=BOTH, authorization=f"Bearer {one}", x_openwebui_user_jwt=one).name == "alice@example.org"
    with pytest.raises(NotAuthenticated) as refused:
        identify(rules=BOTH, authorization=f"Bearer {one}", x_openwebui_user_jwt=user_token("bob@example.org"))
    assert refused.value.reason == TWO_USERS


def test_authorization_is_not_read_where_it_is_no_header_of_ours() -> None:
    found = JwtIdentity(RULES, secret=SECRET).identify({"authorization": "Bearer sk-unused"}, "")
    assert found == VerifiedIdentity()


def test_a_header_sent_twice_is_refused() -> None:
    token = user_token()
    with pytest.raises(NotAuthenticated):
        JwtIdentity(RULES, secret=SECRET).identify({USER_HEADER: token, USER_HEADER.lower(): token}, "")
    with pytest.raises(NotAuthenticated):
        KeyedIdentity(AnonymousIdentity(), KEYS, False).identify(
            {"Authorization": f"Bearer {KEYS[0]}", "authorization": f"Bearer {KEYS[0]}"}, ""
        )
