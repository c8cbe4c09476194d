"""
Planted faults: one function of the production code each, replaced by one that is wrong in a way somebody could write.

The number is a seed whose world shows the fault, the smallest that was found;
`python -m tests.simulation --mutants` looks again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from datafari_rag import pipeline
from datafari_rag.adapters.model import chain as model_chain
from datafari_rag.adapters.model.chain import Breaker, ModelChain
from datafari_rag.adapters.model.endpoint import ReadDeadline
from datafari_rag.adapters.observability import audit_trail
from datafari_rag.adapters.observability.audit_trail import AuditTrail
from datafari_rag.adapters.rights import AuthorityRights
from datafari_rag.adapters.settings.file import SettingsFile
from datafari_rag.adapters.single_flight import Flights
from datafari_rag.core.access import filter_for
from datafari_rag.core.answer.audit_record import record_of
from datafari_rag.core.errors import AuthorityError, NotAuthenticated
from datafari_rag.core.events import Failed
from datafari_rag.core.solr import parameters
from datafari_rag.ports import Ending
from datafari_rag.web import turn
from datafari_rag.web.ops.rate_limits import RateLimits, Streams
from tests.simulation.world import Outcome, run


@dataclass(frozen=True)
class Mutant:
    """*owner*'s *name* is *wrong* in place of what it is; *seed* shows it."""

    owner: Any
    name: str
    wrong: Callable[[], Any]
    seed: int

    @property
    def real(self) -> Any:
        """What it replaces."""
        return self.owner.__dict__[self.name]

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Put it in place for the block."""
        real = self.real
        setattr(self.owner, self.name, self.wrong())
        try:
            yield
        finally:
            setattr(self.owner, self.name, real)


def outcome_with(mutant: Mutant, seed: int) -> Outcome:
    """Run the world of *seed* with *mutant* in place."""
    with mutant.planted():
        return run(seed)


def _real(owner: Any, name: str) -> Any:
    return owner.__dict__[name]


# The cache of rights


def _remembered_for_ever() -> Any:
    return _remembered(lambda self, name: self._answers.get(name))


def _remembered_for_all() -> Any:
    return _remembered(lambda self, name: next(iter(self._answers.values()), None))


def _remembered(known_by: Callable[[Any, str], Any]) -> Any:
    real = _real(AuthorityRights, "tokens_of")

    def tokens_of(self: AuthorityRights, name: str, claimed: Any) -> Any:
        known = known_by(self, name)
        if known is None:
            return real(self, name, claimed)
        self._watch.used(max(0.0, self._clock() - known[1][0]))
        return known[1][1]

    return tokens_of


def _dated_when_it_came() -> Any:
    def asked(self: AuthorityRights, name: str, revoked: object) -> Any:
        before = dict(self._answers)
        _, tokens = real(self, name, revoked)
        if self._answers.get(name) != before.get(name):
            self._answers[name] = (revoked, (self._clock(), tokens))
        return self._clock(), tokens

    real = _real(AuthorityRights, "_requested")
    return asked


def _none_when_it_fails() -> Any:
    real = _real(AuthorityRights, "tokens_of")

    def tokens_of(self: AuthorityRights, name: str, claimed: Any) -> Any:
        try:
            return real(self, name, claimed)
        except AuthorityError:
            return ()

    return tokens_of


def _half_is_whole() -> Any:
    def asked(self: AuthorityRights, name: str, revoked: object) -> Any:
        asked_at, tokens = real(self, name, revoked)
        self._answers[name] = (revoked, (asked_at + 3600, tokens))
        return asked_at, tokens

    real = _real(AuthorityRights, "_requested")
    return asked


# Single flight


def _one_flight_for_all() -> Any:
    real = _real(Flights, "once")
    return lambda self, key, call, **how: real(self, "everybody", call, **how)


def _never_shared() -> Any:
    return lambda self, key, call, **how: call()


def _shared_however_old() -> Any:
    real = _real(Flights, "once")
    return lambda self, key, call, **how: real(self, key, call)


def _lands_only_when_well() -> Any:
    real = _real(Flights, "once")

    def once(self: Flights[Any], key: Any, call: Any, **how: Any) -> Any:
        lost, unset = list[Any](), list[Any]()

        def called() -> Any:
            try:
                return call()
            except BaseException:
                # Those who wait for it already hold the signal that nobody sets now.
                lost.append(self._open[key])
                unset.append(lost[0].landed)
                lost[0].landed = self._machine.signal()
                raise

        try:
            return real(self, key, called, **how)
        except BaseException:
            for flight, landed in zip(lost, unset, strict=True):
                flight.landed = landed
                self._open.setdefault(key, flight)
            raise

    return once


# Retries, breaker and the chain of models


def _without_end() -> Any:
    def in_turn(self: ModelChain, attempts: Any, **more: Any) -> Generator[Any, None, None]:
        self._limits = self._limits.replaced(retries=9)
        yield from real(self, attempts, **more)

    real = _real(ModelChain, "_in_turn")
    return in_turn


def _past_the_deadline() -> Any:
    real = _real(model_chain, "retry_wait_s")
    return lambda failure, number, *, left_s, chance: real(failure, number, left_s=1e9, chance=chance)


def _passed_on_after_words() -> Any:
    def in_turn(self: ModelChain, attempts: Any, **more: Any) -> Generator[Any, None, None]:
        until = self._clock() + self._limits.total_s
        for number, attempt in enumerate(attempts, 1):
            with closing(attempt(until)) as answering:
                said = next(answering)
                while True:
                    failed = isinstance(said, Ending) and said.failure is not None
                    if failed and number < len(attempts):
                        break
                    yield said
                    if isinstance(said, Ending):
                        return
                    said = next(answering)

    return in_turn


def _cut_as_an_end() -> Any:
    def in_turn(self: ModelChain, turns: Any, **more: Any) -> Generator[Any, None, None]:
        has_words = False
        for said in real(self, turns, **more):
            is_cut = has_words and isinstance(said, Ending) and said.failure is not None
            yield replace(said, failure=None) if is_cut else said
            has_words = True

    real = _real(ModelChain, "_in_turn")
    return in_turn


def _never_open() -> Any:
    return lambda self: 0.0


def _open_for_ever() -> Any:
    return lambda self: 0.0 if self._next_at is None else 5.0


def _all_probe() -> Any:
    return lambda self: 0.0 if self._next_at is None else max(0.0, self._next_at - self._clock())


def _silent_while_read() -> Any:
    def lent(self: ReadDeadline, said: Any) -> Iterator[Any]:
        if self.is_streamed:
            self._next = self._clock() + self._limits.stall_s
        yield said

    return lent


# The filter


def _no_filter() -> Any:
    return lambda access, schema: {}


def _no_deny() -> Any:
    real = _real(parameters, "filter_params")

    def params(access: Any, schema: Any) -> Any:
        found = real(access, schema)
        queries = [query.partition(" must_not=")[0].rstrip("}") + "}" for query in found.get("fq", ())]
        return {**found, "fq": queries} if queries else found

    return params


def _of_the_one_before() -> Any:
    memory: list[Any] = []

    def mutant(user: Any, **rules: Any) -> Any:
        memory.append(user)
        return filter_for(memory[max(0, len(memory) - 2)], **rules)

    return mutant


def _without_parents() -> Any:
    return ("share", "document")


def _anonymous_let_in() -> Any:
    def mutant(user: Any, **rules: Any) -> Any:
        try:
            return filter_for(user, **rules)
        except NotAuthenticated:
            return filter_for(user, **{**rules, "anonymous": "public", "mode": "none"})

    return mutant


# The audit trail


def _half_lines_stay() -> Any:
    def add(self: Any, record: Any) -> None:
        real_truncate, os.ftruncate = os.ftruncate, lambda *how: None
        try:
            real(self, record)
        finally:
            os.ftruncate = real_truncate

    real = _real(audit_trail._ChainFile, "add")
    return add


def _lost_when_full() -> Any:
    real = _real(AuditTrail, "_write")

    def write(self: Any, record: Any, question: Any) -> None:
        with suppress(OSError):
            real(self, record, question)

    return write


def _written_twice() -> Any:
    real = _real(AuditTrail, "_write")

    def write(self: Any, record: Any, question: Any) -> None:
        real(self, record, question)
        real(self, record, question)

    return write


def _head_not_kept() -> Any:
    def mutant(record: Any, head: Any, key: Any = None) -> Any:
        line, after = real(record, head, key)
        return line, replace(after, last=head.last)

    real = _real(audit_trail, "chained")
    return mutant


def _without_documents() -> Any:
    return lambda happening: {**record_of(happening), "documents": []}


# Streams, limits, reload


def _place_kept() -> Any:
    return lambda self: None


def _no_most() -> Any:
    real = _real(Streams, "enter")
    return lambda self, limit: real(self, 10_000)


def _ends_untyped() -> Any:
    real = _real(pipeline, "speak")

    def speak(*line: Any, **more: Any) -> Any:
        for event in real(*line, **more):
            if isinstance(event, Failed):
                return
            yield event

    return speak


def _ends_twice() -> Any:
    real = _real(pipeline, "speak")

    def speak(*line: Any, **more: Any) -> Any:
        for event in real(*line, **more):
            yield event
            if isinstance(event, Failed):
                yield event

    return speak


def _not_counted() -> Any:
    return lambda self, settings, name: None


def _bad_file_taken() -> Any:
    def take(self: SettingsFile) -> None:
        self._current = self._read()
        self._watched = self._current.watched

    return take


MUTANTS: dict[str, Mutant] = {
    "cache: rights are remembered for ever": Mutant(AuthorityRights, "tokens_of", _remembered_for_ever, 0),
    "cache: rights are remembered without the user": Mutant(AuthorityRights, "tokens_of", _remembered_for_all, 0),
    "cache: rights are dated by their answer": Mutant(AuthorityRights, "_requested", _dated_when_it_came, 259),
    "cache: a failure counts as no tokens": Mutant(AuthorityRights, "tokens_of", _none_when_it_fails, 34),
    "cache: rights of a dead directory are remembered": Mutant(AuthorityRights, "_requested", _half_is_whole, 0),
    "single flight: one call for all users": Mutant(Flights, "once", _one_flight_for_all, 3),
    "single flight: nothing is shared": Mutant(Flights, "once", _never_shared, 0),
    "single flight: shared however old it is": Mutant(Flights, "once", _shared_however_old, 1559),
    "single flight: a call that ends badly never lands": Mutant(Flights, "once", _lands_only_when_well, 0),
    "retries: more than are allowed": Mutant(ModelChain, "_in_turn", _without_end, 3),
    "retries: past the deadline": Mutant(model_chain, "retry_wait_s", _past_the_deadline, 181),
    "chain: passed on after the first words": Mutant(ModelChain, "_in_turn", _passed_on_after_words, 112),
    "chain: a failure after the first words is told as an end": Mutant(ModelChain, "_in_turn", _cut_as_an_end, 39),
    "breaker: never open": Mutant(Breaker, "wait_s", _never_open, 18),
    "breaker: open for ever": Mutant(Breaker, "wait_s", _open_for_ever, 30),
    "breaker: all requests are probes": Mutant(Breaker, "wait_s", _all_probe, 18),
    "breaker: slow readers count as failures": Mutant(ReadDeadline, "lent", _silent_while_read, 17),
    "filter: none": Mutant(parameters, "filter_params", _no_filter, 0),
    "filter: deny ignored": Mutant(parameters, "filter_params", _no_deny, 1),
    "filter: of the request before": Mutant(pipeline, "filter_for", _of_the_one_before, 0),
    "filter: level parent left out": Mutant(parameters, "LEVELS", _without_parents, 0),
    "filter: the anonymous see all": Mutant(pipeline, "filter_for", _anonymous_let_in, 1),
    "audit: half a line stays on a full disk": Mutant(audit_trail._ChainFile, "add", _half_lines_stay, 0),
    "audit: a line is lost on a full disk": Mutant(AuditTrail, "_write", _lost_when_full, 0),
    "audit: each line twice": Mutant(AuditTrail, "_write", _written_twice, 0),
    "audit: a line names the wrong one before it": Mutant(audit_trail, "chained", _head_not_kept, 0),
    "audit: documents left out": Mutant(turn, "record_of", _without_documents, 0),
    "streams: places are kept": Mutant(Streams, "leave", _place_kept, 0),
    "streams: any number": Mutant(Streams, "enter", _no_most, 2),
    "streams: a failure is no end": Mutant(pipeline, "speak", _ends_untyped, 2),
    "streams: a failure ends twice": Mutant(pipeline, "speak", _ends_twice, 2),
    "limits: requests of a user are not counted": Mutant(RateLimits, "check_user", _not_counted, 0),
    "reload: a bad file is taken": Mutant(SettingsFile, "_take", _bad_file_taken, 7),
}
"""What was planted: name → mutant."""
