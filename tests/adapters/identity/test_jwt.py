"""Signed tokens: who is believed, every way to forge one, and what happens when the keys cannot be had."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from datafari_rag.adapters.identity.jwt import MIN_REFETCH_S, JwkSet, JwtIdentity, TokenRules
from datafari_rag.core.errors import AuthorityUnavailable, ExpiredSignIn, InvalidSignIn, NotAuthenticated
from datafari_rag.core.identity import VerifiedIdentity
from tests.adapters.test_single_flight import together
from tests.support.clock import Clock
from tests.support.server import Loopback, Reply, serving

SECRET = "a shared secret of thirty-two bytes or more"
RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
NEW_RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
ED_KEY = ed25519.Ed25519PrivateKey.generate()
RULES = TokenRules(issuer="https://idp.example.org", audience="search")
SIGNERS = {"RS256": RSA_KEY, "RS512": RSA_KEY, "PS256": RSA_KEY, "ES256": EC_KEY, "EdDSA": ED_KEY}


def jwk(key: Any, key_id: str, **more: str) -> dict[str, object]:
    algorithm = {rsa.RSAPrivateKey: "RS256", ec.EllipticCurvePrivateKey: "ES256"}
    name = next((alg for kind, alg in algorithm.items() if isinstance(key, kind)), "EdDSA")
    made = jwt.get_algorithm_by_name(name).to_jwk(key.public_key(), as_dict=True)
    return {**made, "kid": key_id, **more}


SET = {"keys": [jwk(RSA_KEY, "r1", use="sig"), jwk(EC_KEY, "e1"), jwk(ED_KEY, "d1"), {"kty": "odd", "kid": "x"}, 7]}
IDS = {"RS256": "r1", "RS512": "r1", "PS256": "r1", "ES256": "e1", "EdDSA": "d1", "HS256": "h1"}


def claims(**changes: Any) -> dict[str, Any]:
    """Return the claims of a good token; None takes a claim out."""
    now = int(time.time())
    given = {
        "iss": "https://idp.example.org", "aud": "search", "exp": now + 300, "iat": now,
        "preferred_username": "ann", "groups": ["s1", "s2"], **changes,
    }  # fmt: skip
    return {name: value for name, value in given.items() if value is not None}


def token(
    algorithm: str = "RS256", *, key: Any = None, headers: Mapping[str, Any] | None = None, **changes: Any
) -> str:
    signer = key or SIGNERS.get(algorithm, SECRET)
    return jwt.encode(claims(**changes), signer, algorithm, headers={"kid": IDS[algorithm], **(headers or {})})


@pytest.fixture(scope="module")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write the key set to a file."""
    path = tmp_path_factory.mktemp("keys") / "jwks.json"
    path.write_text(json.dumps(SET))
    return str(path)


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def ask(identity: JwtIdentity, text: str) -> VerifiedIdentity:
    return identity.identify(bearer(text), "192.0.2.1")


@pytest.mark.parametrize("algorithm", ["RS256", "RS512", "PS256", "ES256", "EdDSA", "HS256"])
def test_a_good_token_names_its_user_and_his_tokens(key_file: str, algorithm: str) -> None:
    rules = TokenRules(issuer=RULES.issuer, audience=RULES.audience, domain="example.org")
    secret = SECRET if algorithm == "HS256" else ""
    identity = JwtIdentity(rules, keys=JwkSet(key_file), secret=secret)
    assert ask(identity, token(algorithm)) == VerifiedIdentity(name="ann@example.org", claims=("s1", "s2"))


def test_a_secret_allows_hs256_besides_the_usual_algorithms(key_file: str) -> None:
    identity = JwtIdentity(RULES, keys=JwkSet(key_file), secret=SECRET)
    assert ask(identity, token("HS256")).name == "ann"
    assert ask(identity, token("ES256")).name == "ann"


def test_a_token_without_key_id_finds_its_key(key_file: str) -> None:
    without = jwt.encode(claims(), EC_KEY, "ES256")
    assert ask(JwtIdentity(RULES, keys=JwkSet(key_file)), without).name == "ann"


def test_a_short_secret_does_not_warn_at_each_request() -> None:
    rules = TokenRules()
    forged = base64.urlsafe_b64encode(b'{"alg":"HS256"}').rstrip(b"=") + b"."
    forged += base64.urlsafe_b64encode(json.dumps(claims()).encode()).rstrip(b"=")
    mark = base64.urlsafe_b64encode(hmac.new(b"short", forged, hashlib.sha256).digest()).rstrip(b"=")
    assert ask(JwtIdentity(rules, secret="short"), (forged + b"." + mark).decode()).name == "ann"


def test_no_authorization_is_nobody_and_the_proxys_header_is_not_read(key_file: str) -> None:
    identity = JwtIdentity(RULES, keys=JwkSet(key_file))
    assert identity.identify({"X-Remote-User": "ann"}, "127.0.0.1") == VerifiedIdentity()


def unsigned(header: Mapping[str, object], signature: bytes = b"") -> str:
    parts = (json.dumps(header).encode(), json.dumps(claims()).encode(), signature)
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


def confused() -> str:
    """Sign with HMAC, the public RSA key as the secret: the classic confusion of algorithms."""
    public = RSA_KEY.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    body = unsigned({"alg": "HS256", "kid": "r1"}).rpartition(".")[0]
    return body + "." + base64.urlsafe_b64encode(hmac.new(public, body.encode(), hashlib.sha256).digest()).decode()


def tampered() -> str:
    head, _, tail = token().split(".")
    body = base64.urlsafe_b64encode(json.dumps(claims(preferred_username="root")).encode()).rstrip(b"=").decode()
    return f"{head}.{body}.{tail}"


NOW = int(time.time())
FORGED = {
    "algorithm none": unsigned({"alg": "none"}),
    "algorithm None in other letters": unsigned({"alg": "nOnE"}, b"x"),
    "no algorithm": unsigned({}),
    "an algorithm that is a list": unsigned({"alg": ["RS256"]}),
    "the public key as secret": confused(),
    "an algorithm that is not allowed": token("HS256"),
    "the key of another kind": jwt.encode(claims(), EC_KEY, "ES256", headers={"kid": "r1"}),
    "another key under a known id": jwt.encode(claims(), NEW_RSA_KEY, "RS256", headers={"kid": "r1"}),
    "an unknown key id": token(headers={"kid": "r9"}),
    "a key id that is no text": unsigned({"alg": "RS256", "kid": 7}),
    "its own key in the header": token(key=NEW_RSA_KEY, headers={"jwk": jwk(NEW_RSA_KEY, "r1"), "jku": "http://x/"}),
    "a critical extension": token(headers={"crit": ["exp"]}),
    "an unencoded payload": unsigned({"alg": "RS256", "b64": False, "crit": ["b64"]}),
    "changed claims": tampered(),
    "no signature": token().rpartition(".")[0] + ".",
    "expired": token(exp=NOW - 3600),
    "without expiry": token(exp=None),
    "not yet valid": token(nbf=NOW + 3600),
    "issued in the future": token(iat=NOW + 3600),
    "another issuer": token(iss="https://evil.example"),
    "no issuer": token(iss=None),
    "another audience": token(aud="payroll"),
    "no audience": token(aud=None),
    "no user": token(preferred_username=None),
    "a user that is no text": token(preferred_username=["ann"]),
    "a blank user": token(preferred_username=" "),
    "a user with a line end": token(preferred_username="ann\nroot"),
    "groups that are no list": token(groups={"s1": 1}),
    "a group that is no text": token(groups=["s1", 2]),
    "nothing": "",
    "rubbish": "x.y.z",
    "far too long": "a" * 100_000,
}


@pytest.mark.parametrize(
    "what", ["algorithm none", "the public key as secret", "the key of another kind", "no signature"]
)
def test_a_secret_beside_the_keys_proves_nothing_of_their_tokens(key_file: str, what: str) -> None:
    with pytest.raises(NotAuthenticated):
        ask(JwtIdentity(RULES, keys=JwkSet(key_file), secret=SECRET), FORGED[what])


@pytest.mark.parametrize("text", FORGED.values(), ids=FORGED.keys())
def test_a_token_that_is_not_valid_is_refused_and_nothing_of_it_is_told(key_file: str, text: str) -> None:
    with pytest.raises(NotAuthenticated) as caught:
        ask(JwtIdentity(RULES, keys=JwkSet(key_file)), text)
    assert "ann" not in f"{caught.value} {caught.value.log}"


def test_a_token_that_was_good_is_told_apart_from_one_that_never_was(key_file: str) -> None:
    identity = JwtIdentity(RULES, keys=JwkSet(key_file))
    with pytest.raises(ExpiredSignIn):
        ask(identity, FORGED["expired"])
    with pytest.raises(InvalidSignIn) as forged:
        ask(identity, token(key=NEW_RSA_KEY, exp=NOW - 3600))
    assert not isinstance(forged.value, ExpiredSignIn)


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "Basic YW5uOmFubg=="},
        {"Authorization": "Bearer"},
        {"Authorization": ""},
        {"Authorization": "Bearer a.b.c, Bearer d.e.f"},
        {"Authorization": f"Bearer {token()}", "authorization": f"Bearer {token()}"},
    ],
    ids=["another scheme", "no token", "an empty header", "two tokens in one", "two headers"],
)
def test_a_credential_that_is_none_is_refused(key_file: str, headers: dict[str, str]) -> None:
    with pytest.raises(NotAuthenticated):
        JwtIdentity(RULES, keys=JwkSet(key_file)).identify(headers, "127.0.0.1")


def test_clocks_may_differ_by_the_leeway_and_no_more(key_file: str) -> None:
    identity = JwtIdentity(RULES, keys=JwkSet(key_file))
    now = int(time.time())
    assert ask(identity, token(exp=now - 15)).name == "ann"
    with pytest.raises(NotAuthenticated):
        ask(identity, token(exp=now - 60))


TOKENS = {
    "a list": ({"groups": ["a", "b"]}, "groups", ("a", "b")),
    "one text": ({"groups": "a b"}, "groups", ("a b",)),
    "absent": ({"groups": None}, "groups", ()),
    "at a path": ({"realm_access": {"roles": ["r"]}}, "realm_access.roles", ("r",)),
    "a path that ends early": ({"realm_access": "x"}, "realm_access.roles", ()),
    "a name with dots goes before the path": ({"a.b": ["1"], "a": {"b": ["2"]}}, "a.b", ("1",)),
    "not wanted, whatever it is": ({"groups": 7, "_claim_names": {"groups": "src1"}}, None, ()),
}


@pytest.mark.parametrize(("changes", "path", "wanted"), TOKENS.values(), ids=TOKENS.keys())
def test_where_the_tokens_are(changes: dict[str, Any], path: str | None, wanted: tuple[str, ...]) -> None:
    identity = JwtIdentity(TokenRules(tokens_claim=path), secret=SECRET)
    assert ask(identity, token("HS256", **changes)).claims == wanted


@pytest.mark.parametrize("changes", [{"hasgroups": True}, {"_claim_names": {"groups": "src1"}}])
def test_groups_that_the_token_leaves_out_are_a_failure_and_not_none(changes: dict[str, Any]) -> None:
    with pytest.raises(AuthorityUnavailable):
        ask(JwtIdentity(TokenRules(), secret=SECRET), token("HS256", groups=None, **changes))


def test_rules_without_a_key_refuse_to_be_built() -> None:
    with pytest.raises(ValueError, match="no allowed algorithm"):
        JwtIdentity(TokenRules())


@pytest.fixture
def provider() -> Iterator[Loopback]:
    """Run an identity provider with the key set."""
    with serving(lambda asked: Reply(json.dumps(SET).encode())) as running:
        yield running


def test_keys_are_fetched_once_and_again_when_they_are_old(provider: Loopback) -> None:
    clock = Clock()
    identity = JwtIdentity(RULES, keys=JwkSet(provider.url, clock=clock))
    for later, calls in [(0, 1), (299, 1), (2, 2), (10, 2)]:
        clock.now += later
        assert ask(identity, token()).name == "ann"
        assert len(provider.asked) == calls


def test_a_new_key_is_found_when_a_token_names_it(provider: Loopback) -> None:
    clock = Clock()
    identity = JwtIdentity(RULES, keys=JwkSet(provider.url, clock=clock))
    ask(identity, token())
    provider.answer = lambda asked: Reply(json.dumps({"keys": [jwk(NEW_RSA_KEY, "r2")]}).encode())
    clock.now += MIN_REFETCH_S
    assert ask(identity, token(key=NEW_RSA_KEY, headers={"kid": "r2"})).name == "ann"
    with pytest.raises(NotAuthenticated):
        ask(identity, token())


def test_strangers_tokens_cannot_make_us_ask_all_the_time(provider: Loopback) -> None:
    clock = Clock()
    identity = JwtIdentity(RULES, keys=JwkSet(provider.url, clock=clock))
    for number in range(50):
        clock.now += 0.2
        with pytest.raises(NotAuthenticated):
            ask(identity, token(headers={"kid": f"unknown{number}"}))
    assert len(provider.asked) <= 1 + 10 / MIN_REFETCH_S


def test_a_hundred_first_tokens_are_one_fetch(provider: Loopback) -> None:
    identity, good = JwtIdentity(RULES, keys=JwkSet(provider.url)), token()
    found = together(100, lambda: ask(identity, good).name)
    assert found == ["ann"] * 100
    assert len(provider.asked) == 1


BAD_SETS = {
    "500": Reply(b"", 500),
    "a redirect": Reply(b"", 302, [("Location", "/x")]),
    "no JSON": Reply(b"<html>"),
    "no keys": Reply(b'{"keys": []}'),
    "a list": Reply(b"[]"),
    "too deep": Reply(b"[" * 200_000),
    "too large": Reply(b" " * 1_100_000),
}


@pytest.mark.parametrize("reply", BAD_SETS.values(), ids=BAD_SETS.keys())
def test_without_keys_nobody_is_believed(provider: Loopback, reply: Reply) -> None:
    provider.answer = lambda asked: reply
    keys = JwkSet(provider.url)
    with pytest.raises(AuthorityUnavailable):
        ask(JwtIdentity(RULES, keys=keys), token())
    assert keys.probe() is not None


def test_old_keys_serve_while_the_provider_is_away_but_not_for_ever(provider: Loopback) -> None:
    clock = Clock()
    identity = JwtIdentity(RULES, keys=JwkSet(provider.url, clock=clock))
    ask(identity, token())
    provider.answer = lambda asked: Reply(b"", 503)
    clock.now += 1800
    assert ask(identity, token()).name == "ann"
    clock.now += 1801
    with pytest.raises(AuthorityUnavailable):
        ask(identity, token())


def test_an_unknown_key_is_refused_while_the_provider_is_away(provider: Loopback) -> None:
    clock = Clock()
    identity = JwtIdentity(RULES, keys=JwkSet(provider.url, clock=clock))
    ask(identity, token())
    provider.answer = lambda asked: Reply(b"", 503)
    clock.now += MIN_REFETCH_S
    with pytest.raises(NotAuthenticated):
        ask(identity, token(headers={"kid": "r9"}))


def test_an_absent_key_file_is_a_failure_and_heals(tmp_path: Path) -> None:
    path = tmp_path / "jwks.json"
    keys = JwkSet(f"file:{path}")
    identity = JwtIdentity(RULES, keys=keys)
    with pytest.raises(AuthorityUnavailable):
        ask(identity, token())
    path.write_text(json.dumps(SET))
    assert keys.probe() is None
    assert ask(identity, token()).name == "ann"


BROKEN_KEYS = {
    "a key for encryption": {**jwk(RSA_KEY, "r1"), "use": "enc"},
    "a key for another algorithm": {**jwk(RSA_KEY, "r1"), "alg": "RS512"},
    "a secret in the set": {"kty": "oct", "kid": "r1", "k": "c2VjcmV0"},
    "a key with broken numbers": {"kty": "RSA", "kid": "r1", "n": "!", "e": "AQAB"},
    "a key without numbers": {"kty": "RSA", "kid": "r1"},
}


@pytest.mark.parametrize("key", BROKEN_KEYS.values(), ids=BROKEN_KEYS.keys())
def test_a_key_that_does_not_fit_is_not_used(tmp_path: Path, key: dict[str, object]) -> None:
    path = tmp_path / "jwks.json"
    path.write_text(json.dumps({"keys": [key]}))
    with pytest.raises(NotAuthenticated):
        ask(JwtIdentity(RULES, keys=JwkSet(str(path))), token())
