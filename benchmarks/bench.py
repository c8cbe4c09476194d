"""One run of the benchmark: what every row is given, and the order of the targets."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.measuring import Result, Target
from benchmarks.services import Stubs, direct, service, stubs

Maker = Callable[[Stubs], AbstractContextManager[Target]]
Measure = Callable[[Stubs, Target], Result]


class TooLong(BaseException):
    """A row took longer than it may; not an Exception, so that nothing on the way takes it for a failure of its own."""


@dataclass(frozen=True, slots=True)
class Bench:
    """One run: where its files go, which targets are asked for (none: all)."""

    folder: Path
    wanted: Sequence[str] = ()
    done: Result = field(default_factory=dict)
    """What a row has measured so far: kept when the rest of it takes too long."""

    def beside(self, name: str, measure: Measure) -> Result:
        """Return what *measure* gives for each target: the model itself, the service."""
        with stubs(self.folder / name) as behind:
            for key, make in MAKERS.items():
                if not self.wanted or key in self.wanted:
                    self.done[key] = tried(lambda make=make: with_target(behind, make, measure))  # type: ignore[misc]
        return self.done


def with_target(behind: Stubs, make: Maker, measure: Measure) -> Result:
    """Return what *measure* gives while the target runs."""
    with make(behind) as target:
        return measure(behind, target)


def tried(measure: Callable[[], Result]) -> Result:
    """Return what *measure* gives, or under "error" why there is nothing: one failure leaves the other rows alone."""
    try:
        return measure()
    except Exception as error:
        return {"error": f"{type(error).__name__}: {str(error)[-600:]}"}


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Raise TooLong in the block when it takes longer than *seconds*; what it started is ended on the way out."""

    def stop(*_: object) -> None:
        raise TooLong(f"took longer than {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


MAKERS: dict[str, Maker] = {
    "direct": lambda behind: nullcontext(direct(behind)),
    "service": service,
}
