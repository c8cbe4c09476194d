"""
Tokens of users from ManifoldCF's authority service: `GET <base>/UserACLs?username=…`, one line a fact.

Only good answers are remembered, for `security.cache_s` and until the user's rights are revoked; a failure of any kind
is raised and never becomes "no tokens". Requests for one user that come at the same time share one call, unless its
answer may be older than `security.cache_s` for one of them.
"""

from __future__ import annotations

import fcntl
import os
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import urlencode

from datafari_rag.adapters.http import TIMEOUTS, Client, Fault, Request, basic, without_credentials
from datafari_rag.adapters.machine import MACHINE, Machine
from datafari_rag.adapters.single_flight import Flights
from datafari_rag.core.access import NEVER, BadUsers, Revocation, line_of, read_line, same_user, users_in
from datafari_rag.core.errors import AuthorityError, AuthorityTimeout, AuthorityUnavailable
from datafari_rag.core.messages import message
from datafari_rag.core.settings.addresses import Tls
from datafari_rag.core.settings.table import SecuritySettings, SolrLimits
from datafari_rag.ports import RightsSource

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


class RightsServer:
    """
    One address that gives rights, read with GET; safe for many threads.

    Nothing but a whole answer of status 200 counts: a login page behind a redirect would look like a user without
    rights.
    """

    def __init__(self, url: str, timeout_s: tuple[float, float], max_bytes: int, machine: Machine = MACHINE) -> None:
        """Open nothing yet. *timeout_s* is the longest time to connect, and the longest for the whole answer."""
        self._url, self._timeout_s, self._max_bytes, self._machine = url, timeout_s, max_bytes, machine

    def get(self, params: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None) -> bytes:
        """
        Return the body of the answer.

        Raises:
            AuthorityTimeout: no whole answer in time.
            AuthorityUnavailable: no connection, another status than 200, or an answer that is cut, coded or too long.
        """
        until = self._machine.monotonic() + self._timeout_s[1]
        try:
            url, credentials = without_credentials(self._url)
            proof = {**(headers or {}), **({"Authorization": basic(*credentials)} if credentials else {})}
            query = f"?{urlencode(params)}" if params else ""
            request = Request("GET", url + query, self._timeout_s, self._max_bytes, headers=proof, is_safe=True)
            client = self._client
        except ValueError as error:
            raise AuthorityUnavailable(log="it cannot be requested") from error
        status, body = client.whole(request, lambda: until - self._machine.monotonic())
        if status != 200:
            raise AuthorityUnavailable(log=f"it answered {status}")
        return body

    @cached_property
    def _client(self) -> Client:
        # The one thing of the environment that is used: there is no setting for these two servers' certificates.
        return self._machine.client(self._url, _failed, Tls(ca_file=os.environ.get("REQUESTS_CA_BUNDLE", "")))


def _failed(fault: Fault, log: str) -> AuthorityError:
    if fault in TIMEOUTS:
        return AuthorityTimeout(log="it did not answer in time")
    return AuthorityUnavailable(log=f"it could not be read ({log})")


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
        self._answers: OrderedDict[str, tuple[object, Answer]] = OrderedDict()
        self._flights: Flights[Answer] = Flights(machine)

    def tokens_of(self, name: str, claimed: Iterable[str]) -> Iterable[str]:
        """Return the tokens of *name*, at most `cache_s` old. Raises: as `ports.RightsSource.tokens_of`."""
        revoked = self._watch.epoch(name)
        with self._lock:
            known, answer = self._answers.get(name, (None, None))
        if answer is None or known != revoked or self._clock() - answer[0] >= self._limits.cache_s:
            max_age_s = self._limits.cache_s
            answer = self._flights.once((name, revoked), lambda: self._requested(name, revoked), max_age_s=max_age_s)
        self._watch.used(max(0.0, self._clock() - answer[0]))
        return answer[1]

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

    def _requested(self, name: str, revoked: object) -> Answer:
        asked_at = self._clock()
        tokens, is_whole = _tokens(self._server.get({"username": name}, self._headers()))
        if is_whole and self._limits.cache_s > 0:
            with self._lock:
                self._answers[name] = (revoked, (asked_at, tokens))
                self._answers.move_to_end(name)
                while len(self._answers) > MAX_REMEMBERED:
                    self._answers.popitem(last=False)
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


Stamp = tuple[int, int, int, int]

_SETTLED_NS = 2_000_000_000
"""A file as young as this may change again within one tick of its time stamp: it is read each time."""


class NoRights:
    """`security.tokens=file` without a file: no user has tokens."""

    def tokens_of(self, name: str, claimed: Iterable[str]) -> Iterable[str]:
        """Return none."""
        return ()


class RightsFile:
    """The users of one file; safe for many threads."""

    def __init__(self, path: Path) -> None:
        """Remember *path*; the file is first read with the first question."""
        self._path = path
        self._lock = threading.Lock()
        self._read: tuple[Stamp, Mapping[str, tuple[str, ...]]] | None = None

    def tokens_of(self, name: str, claimed: Iterable[str]) -> Iterable[str]:
        """Return the tokens of *name* as the file says now. Raises: AuthorityUnavailable: it is not of this form."""
        return self.users().get(name, ())

    def users(self) -> Mapping[str, tuple[str, ...]]:
        """Return all users with their tokens. Raises: as `tokens_of`."""
        try:
            status = self._path.stat()
            stamp = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
            is_settled = time.time_ns() - max(stamp[:2]) > _SETTLED_NS
            with self._lock:
                if self._read is None or self._read[0] != stamp or not is_settled:
                    self._read = stamp, users_in(self._path.read_bytes())
                return self._read[1]
        except (OSError, BadUsers) as error:
            why = getattr(error, "strerror", None) or error
            raise AuthorityUnavailable(log=f"users file: {why}") from error

    def probe(self) -> str | None:
        """Return None when the file can be read now, else one sentence that says why not."""
        try:
            self.users()
        except AuthorityUnavailable as error:
            return message("The users file (security.tokens.file) cannot be used: {cause}.", cause=error.log)
        return None


class ClaimedRights:
    """Believes the claims, because the identity adapter has checked their signature."""

    def tokens_of(self, name: str, claimed: Iterable[str]) -> Iterable[str]:
        """Return *claimed* as they are; none for an identity without any."""
        return tuple(claimed)


Headers = Callable[[], Mapping[str, str]]
"""Returns the headers for an outgoing request: its id and its trace."""


def rights_source(
    security: SecuritySettings,
    patience: SolrLimits,
    *,
    headers: Headers,
    watch: RightsWatch = UNWATCHED,
    machine: Machine = MACHINE,
) -> RightsSource:
    """Return where a user's tokens come from, as `security.tokens` says; *headers* go to the authority."""
    if security.tokens == "claims":
        return ClaimedRights()
    if security.tokens == "authority":
        limits = AuthorityLimits(patience.connect_s, patience.wait_s, security.cache_s)
        return AuthorityRights(security.authority_url, limits, headers=headers, watch=watch, machine=machine)
    return RightsFile(Path(security.tokens_file)) if security.tokens_file else NoRights()


MAX_BYTES = 8_000_000
"""Largest file, some 80,000 revocations: each worker keeps the latest of each user in memory."""

_EVERYBODY = ""


class RevocationFile:
    """The revocations in one file, or in this process alone; safe for many threads and processes."""

    def __init__(self, path: Path | None = None, *, now: Callable[[], float] = time.time) -> None:
        """Remember *path*, None for none; it is made with the first revocation."""
        self._path, self._now = path, now
        self._lock = threading.Lock()
        self._latest: dict[str, Revocation] = {}
        self._inode: int | None = None
        self._read_bytes = 0
        self._generation = 0
        self._line = 0

    def latest(self, name: str | None) -> Revocation:
        """
        Return the latest revocation of *name*, None the anonymous; one of everybody concerns each user.

        Raises:
            AuthorityUnavailable: the file cannot be read, or is no file of revocations.
        """
        with self._lock:
            if self._path is not None:
                self._read_on(self._path)
            own, all_users = (self._latest.get(key, NEVER) for key in (same_user(name or _EVERYBODY), _EVERYBODY))
            # Under a new generation, nothing cached under an old file counts, whichever users the new file names.
            serial = max(own.serial, all_users.serial, (self._generation, 0))
            times = [revocation.at_s for revocation in (own, all_users) if revocation.at_s is not None]
            return Revocation(serial, max(times, default=None))

    def add(self, name: str | None, *, by: str) -> Revocation:
        """
        Revoke what is known of *name*, None of everybody; *by* is the administrator.

        In effect for every request that comes after the return, in every worker.

        Raises:
            AuthorityUnavailable: it could not be kept, so nothing is revoked.
        """
        line = line_of(name, at_s=self._now(), by=by)
        if self._path is None:
            with self._lock:
                self._take(line)
        else:
            _append(self._path, line)
        return self.latest(name)

    def _read_on(self, path: Path) -> None:
        try:
            status = path.stat()
        except FileNotFoundError:
            if self._inode is not None:
                self._begin_again(None)
            return
        except OSError as error:
            raise _unreadable(error) from error
        if self._inode is not None and (status.st_ino != self._inode or status.st_size < self._read_bytes):
            self._begin_again(status.st_ino)
        if status.st_size > MAX_BYTES:
            raise AuthorityUnavailable(log="the file of revocations is too large")
        if status.st_size > self._read_bytes:
            self._read(path)
        self._inode = status.st_ino

    def _read(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                file.seek(self._read_bytes)
                data = file.read(MAX_BYTES)
            # A line without its end is still being written: it is read the next time.
            whole = data[: data.rfind(b"\n") + 1]
            for line in whole.splitlines():
                self._take(line)
        except (OSError, ValueError, RecursionError) as error:
            raise _unreadable(error) from error
        self._read_bytes += len(whole)

    def _take(self, line: bytes) -> None:
        name, at_s = read_line(line)
        self._line += 1
        key = _EVERYBODY if name is None else same_user(name)
        # Clocks may be set back; what was refused once stays so.
        at_s = max(at_s, self._latest.get(key, NEVER).at_s or at_s)
        self._latest[key] = Revocation((self._generation, self._line), at_s)

    def _begin_again(self, inode: int | None) -> None:
        """Forget the old file; the new generation voids what was remembered under it."""
        self._latest.clear()
        self._generation += 1
        self._inode, self._read_bytes, self._line = inode, 0, 0


def _append(path: Path, line: bytes) -> None:
    """Add *line* as a whole or not at all. Raises: AuthorityUnavailable."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            # What a process that ended within a line has left is no line.
            end = os.pread(handle, MAX_BYTES, 0).rfind(b"\n") + 1
            if end + len(line) > MAX_BYTES:
                raise AuthorityUnavailable(log="the file of revocations is full")
            os.ftruncate(handle, end)
            if os.pwrite(handle, line, end) < len(line):
                os.ftruncate(handle, end)
                raise AuthorityUnavailable(log="the disk is full: the revocation was not kept")
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise _unreadable(error) from error


def _unreadable(error: Exception) -> AuthorityUnavailable:
    kind = os.strerror(error.errno or 0) if isinstance(error, OSError) else type(error).__name__
    return AuthorityUnavailable(log=f"file of revocations: {kind}")
