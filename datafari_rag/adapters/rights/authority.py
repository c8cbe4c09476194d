"""
Tokens of users from ManifoldCF's authority service: `GET <base>/UserACLs?username=…`, one line a fact.

Only good answers are remembered, for `security.cache_s` and until the user's rights are revoked; a failure of any kind
is raised and never becomes "no tokens". Requests for one user that come at the same time share one call, unless its
answer may be older than `security.cache_s` for one of them.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from datafari_rag.adapters.http.rights_server import Flights, RightsServer
from datafari_rag.adapters.machine import MACHINE, Machine
from datafari_rag.core.errors import AuthorityTimeout, AuthorityUnavailable
from datafari_rag.core.messages import message

MAX_ANSWER_BYTES = 4_000_000
"""Longest answer that is read: some 50,000 tokens; more holds a worker for too long."""

MAX_REMEMBERED = 10_000

_TOKEN = "TOKEN:"  # noqa: S105 - the word before each token in the answer, no secret
Answer = tuple[float, tuple[str, ...]]
"""When the service was called, by the clock, and the tokens."""

_FACT = re.compile(r"[A-Z_]{1,40}:")
_UNREACHABLE = "UNREACHABLEAUTHORITY:"
_DEAD = "DEAD_AUTHORITY"


@dataclass(frozen=True, slots=True)
class AuthorityLimits:
    """Seconds: to connect, for the whole answer, and how long a good answer is believed (0 = not remembered)."""

    connect_s: float = 5.0
    total_s: float = 15.0
    cache_s: float = 60.0


@dataclass(frozen=True, slots=True)
class RightsWatch:
    """
    What else there is to know of remembered rights.

    *epoch* returns a value that changes when a user's rights are revoked: what was remembered before does not count.
    *used* takes the age in seconds of the rights of each request.
    """

    epoch: Callable[[str], object] = lambda name: None
    used: Callable[[float], None] = lambda age_s: None


UNWATCHED = RightsWatch()


class AuthorityRights:
    """The authority service at one address; safe for many threads."""

    def __init__(
        self,
        base_url: str,
        limits: AuthorityLimits | None = None,
        *,
        headers: Callable[[], Mapping[str, str]] = dict,
        watch: RightsWatch = UNWATCHED,
        machine: Machine = MACHINE,
    ) -> None:
        """Remember the address; nothing is sent yet. *headers* are sent with each request."""
        self._headers, self._watch = headers, watch
        self._limits = limits or AuthorityLimits()
        timeout_s = (self._limits.connect_s, self._limits.total_s)
        self._server = RightsServer(base_url.rstrip("/") + "/UserACLs", timeout_s, MAX_ANSWER_BYTES, machine)
        self._clock = machine.monotonic
        self._lock = threading.Lock()
        self._known: OrderedDict[str, tuple[object, Answer]] = OrderedDict()
        self._flights: Flights[Answer] = Flights(machine)

    def tokens_of(self, name: str, claimed: Iterable[str]) -> Iterable[str]:
        """
        Return the tokens of *name*, at most `cache_s` old; *claimed* count for nothing.

        Raises:
            AuthorityUnavailable: no connection, another status than 200, or an answer of another form.
            AuthorityTimeout: no whole answer in time.
        """
        revoked = self._watch.epoch(name)
        known = self._remembered(name, revoked)
        if known is None:
            max_age_s = self._limits.cache_s
            known = self._flights.once((name, revoked), lambda: self._requested(name, revoked), max_age_s=max_age_s)
        self._watch.used(max(0.0, self._clock() - known[0]))
        return known[1]

    def probe(self) -> str | None:
        """Return None when a question would be answered now, else one sentence that says what is wrong."""
        try:
            self._requested("datafari-rag-probe", None)
        except (AuthorityUnavailable, AuthorityTimeout) as error:
            return message(
                "The authority service (security.authority.url) did not return the access rights: {cause}.",
                cause=error.log,
            )
        return None

    def _remembered(self, name: str, revoked: object) -> Answer | None:
        with self._lock:
            found = self._known.get(name)
        if found is None or found[0] != revoked:
            return None
        return found[1] if self._clock() - found[1][0] < self._limits.cache_s else None

    def _requested(self, name: str, revoked: object) -> Answer:
        asked_at = self._clock()
        tokens, is_whole = _tokens(self._server.get({"username": name}, self._headers()))
        if is_whole and self._limits.cache_s > 0:
            with self._lock:
                self._known[name] = (revoked, (asked_at, tokens))
                self._known.move_to_end(name)
                while len(self._known) > MAX_REMEMBERED:
                    self._known.popitem(last=False)
        return asked_at, tokens


def _tokens(body: bytes) -> tuple[tuple[str, ...], bool]:
    """
    Return the tokens of an answer, and whether all authorities behind the service have spoken.

    An authority that could not be reached is represented by a DEAD_AUTHORITY token, which every document of that
    authority denies; without one the answer cannot be used, because deny tokens are missing in it.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise AuthorityUnavailable(log="its answer is not UTF-8") from error
    # Not splitlines(): a token may hold U+2028 and other characters that only Python takes for line ends.
    lines = [line for line in re.split(r"\r\n|\n|\r", text) if line.strip()]
    if not all(_FACT.match(line) for line in lines):
        raise AuthorityUnavailable(log="its answer is not in the form of UserACLs")
    tokens = tuple(line[len(_TOKEN) :] for line in lines if line.startswith(_TOKEN))
    is_whole = not any(line.startswith(_UNREACHABLE) for line in lines)
    if not is_whole and not any(token.endswith(_DEAD) for token in tokens):
        raise AuthorityUnavailable(log="an authority behind it could not be reached")
    return tokens, is_whole
