"""Signed tokens attacked where the keys come from: the provider's replies, rotation, floods of unknown keys, names."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from datafari_rag.adapters.identity.jwt import MIN_REFETCH_S, STALE_S, JwkSet, JwtIdentity, TokenRules
from datafari_rag.core.errors import AuthorityError, RagError
from tests.adapters.identity.test_jwt import RULES, claims, jwk
from tests.adapters.test_single_flight import together
from tests.attack.report import Record, judge
from tests.attack.wrong_server import KEYS, Plan, Wrong, wrong_server
from tests.support.clock import Clock
from tests.support.server import Loopback, Reply, serving
from tests.support.waiting import until

OLD = rsa.generate_private_key(public_exponent=65537, key_size=2048)
NEW = rsa.generate_private_key(public_exponent=65537, key_size=2048)
CURVE = ec.generate_private_key(ec.SECP256R1())
EVIL = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def signed(key: Any, key_id: str | None = "k", algorithm: str = "RS256", **changes: Any) -> dict[str, str]:
    headers = {} if key_id is None else {"kid": key_id}
    return {"Authorization": "Bearer " + jwt.encode(claims(**changes), key, algorithm, headers=headers)}


def outcome(identity: JwtIdentity, headers: dict[str, str]) -> str:
    """Return the name that *identity* finds, or the label of its refusal; anything else is an exception of ours."""
    try:
        return identity.identify(headers, "192.0.2.1").name or "nobody"
    except RagError as error:
        return error.label


def _dripping(data: bytes, first: int) -> Plan:
    pieces = [data[:first], *(bytes([byte]) for byte in data[first:])]
    return Plan(pieces, [0.0] + [0.1] * (len(pieces) - 1), "dripping")


def key_set(*keys: dict[str, object]) -> Reply:
    return Reply(json.dumps({"keys": list(keys)}).encode(), headers=[("Content-Type", "application/json")])


@pytest.fixture
def provider() -> Iterator[Loopback]:
    with serving(lambda asked: key_set(jwk(OLD, "k"))) as running:
        yield running


NAMES = [
    "EVIL\\ann",
    "evil.example\\admin",
    "A\\B\\ann",
    "\\ann",
    "ann\\",
    ".\\ann",
    "EVIL\\\\ann",
    "EVIL/ann",
    "EVIL+ann",
]


@pytest.mark.parametrize("domain", ["", "example.org"])
def test_no_domain_in_a_signed_name_becomes_another_user(domain: str, record_property: Record) -> None:
    rules = TokenRules(domain=domain)
    identity = JwtIdentity(rules, secret="a secret of more than thirty-two bytes of text")
    holes = []
    for name in NAMES:
        token = jwt.encode(claims(preferred_username=name), "a secret of more than thirty-two bytes of text", "HS256")
        found = outcome(identity, {"Authorization": f"Bearer {token}"})
        if found.partition("@")[0] in ("ann", "admin"):
            holes.append(f"{name} is {found}")
    judge(
        record_property, f"domains in signed names, domain={domain!r}", against="tokens", tried=len(NAMES), holes=holes
    )


SETS: dict[str, Callable[[], Reply]] = {
    "an error page": lambda: Reply(b"<html>Down for maintenance</html>", 503),
    "a page that says 200": lambda: Reply(b"<html>Sign in</html>", headers=[("Content-Type", "text/html")]),
    "an empty set": lambda: Reply(b'{"keys": []}'),
    "no set": lambda: Reply(b"null"),
    "keys that are none": lambda: Reply(b'{"keys": [1, "x", null, [], {}]}'),
    "a set that is too deep": lambda: Reply(b'{"keys":' * 100_000),
    "a million keys": lambda: Reply(b'{"keys": [' + b"{}," * 400_000 + b"{}]}"),
    "a redirect": lambda: Reply(b"", 302, [("Location", "/elsewhere")]),
    "half a set": lambda: Reply(b'{"keys": [', length=500),
    "a number in place of a modulus": lambda: Reply(b'{"keys": [{"kty": "RSA", "kid": "k", "n": 5, "e": []}]}'),
    "a modulus of zero": lambda: Reply(b'{"keys": [{"kty": "RSA", "kid": "k", "n": "AA", "e": "AQAB"}]}'),
    "an unknown curve": lambda: Reply(b'{"keys": [{"kty": "EC", "kid": "k", "crv": "P-1", "x": "AA", "y": "AA"}]}'),
    "a point on no curve": lambda: Reply(
        b'{"keys": [{"kty": "EC", "kid": "k", "crv": "P-256", "x": "AA", "y": "AA"}]}'
    ),
    "a secret": lambda: key_set({"kty": "oct", "kid": "k", "k": "AAAA"}),
    "a key id that is a list": lambda: key_set({**jwk(OLD, "k"), "kid": ["k"]}),
    "a key type that is a list": lambda: key_set({**jwk(OLD, "k"), "kty": ["RSA"]}),
    "a use that is an object": lambda: key_set({**jwk(OLD, "k"), "use": {"sig": 1}}),
    "a private key": lambda: key_set(json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(EVIL)) | {"kid": "other"}),
}


@pytest.mark.parametrize("is_known", [False, True], ids=["at first", "after good keys"])
def test_a_provider_that_answers_nonsense_makes_nobody_believed(
    provider: Loopback, is_known: bool, record_property: Record
) -> None:
    good, holes = provider.answer, []
    for name, reply in SETS.items():
        clock = Clock()
        identity = JwtIdentity(RULES, keys=JwkSet(provider.url, clock=clock))
        provider.answer = good
        if is_known:
            assert outcome(identity, signed(OLD)) == "ann"
        provider.answer = lambda asked, reply=reply: reply()
        clock.now += STALE_S + 1
        for headers in (signed(EVIL), signed(EVIL, None), signed(CURVE, "k", "ES256"), signed(OLD, "x")):
            found = outcome(identity, headers)
            if found not in ("authorityUnavailable", "notAuthenticated"):
                holes.append(f"{name}: {found}")
        provider.answer = good
        clock.now += MIN_REFETCH_S + 301
        if outcome(identity, signed(OLD)) != "ann":
            holes.append(f"{name}: not well again afterwards")
    judge(record_property, f"nonsense for keys, {is_known=}", against="keys", tried=5 * len(SETS), holes=holes)


def test_a_rotated_key_is_not_the_old_one(provider: Loopback, record_property: Record) -> None:
    """One id, then another key under it, of the same kind and of another."""
    holes, tried = [], 0
    for number, (new, algorithm) in enumerate([(NEW, "RS256"), (CURVE, "ES256")] * 3):
        clock = Clock()
        identity = JwtIdentity(RULES, keys=JwkSet(provider.url, clock=clock))
        provider.answer = lambda asked: key_set(jwk(OLD, "k"))
        assert outcome(identity, signed(OLD)) == "ann"
        provider.answer = lambda asked, new=new: key_set(jwk(new, "k"))
        clock.now += 301 + number
        wanted = {
            "notAuthenticated": [signed(OLD), signed(EVIL), signed(OLD, None), signed(CURVE if new is NEW else NEW, "k",
                                 "ES256" if new is NEW else "RS256")],
            "ann": [signed(new, "k", algorithm), signed(new, None, algorithm)],
        }  # fmt: skip
        for label, several in wanted.items():
            for headers in several:
                tried += 1
                if (found := outcome(identity, headers)) != label:
                    holes.append(f"{algorithm} {number}: {found}, not {label}")
    judge(record_property, "rotation under one id", against="keys", tried=tried, holes=holes)


def test_unknown_keys_do_not_flood_the_provider(provider: Loopback, record_property: Record) -> None:
    clock, count = Clock(), 300
    identity = JwtIdentity(RULES, keys=JwkSet(provider.url, clock=clock))
    numbers = iter(range(10 * count))
    for _ in range(10):
        together(count // 10, lambda: outcome(identity, signed(EVIL, f"unknown{next(numbers)}")))
        clock.now += 1.0
    most = 1 + 10 / MIN_REFETCH_S
    holes = [] if len(provider.asked) <= most else [f"{len(provider.asked)} fetches in 10 seconds"]
    judge(record_property, "flood of unknown key ids", against="keys", tried=count, holes=holes)


def test_a_provider_that_hangs_does_not_hold_those_whose_keys_are_known(
    provider: Loopback, record_property: Record
) -> None:
    """Old keys are due for a look; one request waits for the provider, the others go on with what is known."""
    clock, gate = Clock(), threading.Event()
    identity = JwtIdentity(RULES, keys=JwkSet(provider.url, clock=clock))
    assert outcome(identity, signed(OLD)) == "ann"

    def hang(asked: object) -> Reply:
        gate.wait(120)
        return Reply(b"", 503)

    provider.answer = hang
    clock.now += 400
    first = threading.Thread(target=lambda: outcome(identity, signed(OLD)))
    first.start()
    until(lambda: len(provider.asked) == 2)
    found: list[object] = []
    try:
        others = threading.Thread(target=lambda: found.extend(together(50, lambda: outcome(identity, signed(OLD)))))
        others.start()
        others.join(60)
        holes = [] if found == ["ann"] * 50 else [f"{len(found)} of 50 had an answer: {set(map(str, found))}"]
    finally:
        gate.set()
    first.join(60)
    others.join(60)
    assert outcome(identity, signed(OLD)) == "ann"
    holes += [] if len(provider.asked) == 2 else [f"{len(provider.asked) - 1} requests to a provider that fails"]
    judge(record_property, "a provider that hangs", against="keys", tried=52, holes=holes)


def test_keys_that_change_while_tokens_are_checked(provider: Loopback, record_property: Record) -> None:
    """The provider changes its set at each fetch; whoever signs with a key that was never in it is never believed."""
    clock, rng, is_over = Clock(), random.Random(11), threading.Event()
    sets = [[jwk(OLD, "k")], [jwk(NEW, "k")], [jwk(OLD, "k"), jwk(NEW, "n")], [jwk(CURVE, "k")], []]
    provider.answer = lambda asked: key_set(*rng.choice(sets))
    identity = JwtIdentity(RULES, keys=JwkSet(provider.url, clock=clock))

    def tick() -> None:
        while not is_over.wait(0.005):
            clock.now += 301

    ticking = threading.Thread(target=tick)
    ticking.start()
    tokens = [signed(OLD), signed(NEW), signed(NEW, "n"), signed(CURVE, "k", "ES256"), signed(EVIL), signed(EVIL, "n")]
    try:
        found = together(24, lambda: [(n, outcome(identity, one)) for _ in range(10) for n, one in enumerate(tokens)])
    finally:
        is_over.set()
        ticking.join(5)
    holes, pairs = [], []
    for one in found:
        assert isinstance(one, list), one
        pairs += one
    for number, label in pairs:
        if label not in (("ann",) if number < 4 else ()) + ("notAuthenticated", "authorityUnavailable"):
            holes.append(f"token {number}: {label}")
    if not any(label == "ann" for _, label in pairs):
        holes.append("nobody was ever believed")
    judge(record_property, "keys that change under way", against="keys", tried=len(pairs), holes=holes)


@pytest.fixture
def wrong() -> Iterator[Wrong]:
    with wrong_server(20261122) as server:
        server.wrong = KEYS
        yield server


def test_wrong_replies_never_mix_two_sets(wrong: Wrong, record_property: Record) -> None:
    """Each fetch is for a set of its own, one key with the number of the fetch: no other number may come of it."""
    holes, clock, number, tried = [], Clock(), 0, 120
    wrong.key_set = lambda: {"keys": [{"kty": "RSA", "kid": f"k{number}", "n": "AQAB", "e": "AQAB"}]}
    keys = JwkSet(f"{wrong.url}/keys", fresh_s=1, clock=clock, timeout_s=(0.3, 0.3))
    for number in range(tried):
        clock.now += STALE_S + 1
        with suppress(AuthorityError):
            found = [str(key["kid"]) for key in keys.candidates(None)]
            if found != [f"k{number}"]:
                holes.append(f"fetch {number} gave {found} after {wrong.plans[-2:]}")
        wrong.settle()
    judge(record_property, "wrong replies, one fetch after another", against="keys", tried=tried, holes=holes)


def test_heads_and_bodies_that_drip_end_in_time(record_property: Record) -> None:
    """Each byte comes in time, all of them would take a minute."""
    holes = []
    for place in ("head", "body"):
        with wrong_server(1) as server:
            server.wrong = KEYS
            head, body = b"HTTP/1.1 200 OK\r\nContent-Length: 600\r\nX: ", b"\r\n\r\n" + b" " * 600
            data = head + body if place == "body" else head + b"a" * 600 + body
            first = len(head) + 4 if place == "body" else len(head)
            server.make = lambda rng, good, data=data, first=first: _dripping(data, first)
            keys = JwkSet(f"{server.url}/keys", timeout_s=(0.5, 0.5))
            found = outcome(JwtIdentity(RULES, keys=keys), signed(OLD))
            if found != "authorityTimeout":
                holes.append(f"{place}: {found}")
    judge(record_property, "a provider that drips", against="keys", tried=2, holes=holes)
