"""What gives failures their form where a route requires a dialect, and no question is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from datafari_rag.core.ask import Ask
from datafari_rag.core.errors import NotAllowed, RagError
from datafari_rag.core.events import Answer, Event
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols.request import Incoming, PassThrough, ReplyContext

Failure = Callable[[RagError, Settings], tuple[int, Mapping[str, object]]]


class Questionless:
    """A dialect without questions and answers."""

    def __init__(self, failure: Failure) -> None:
        """Spell failures as *failure* does."""
        self.failure = failure

    def parse(self, incoming: Incoming, settings: Settings) -> Ask | PassThrough:
        """Refuse. Raises: NotAllowed."""
        raise NotAllowed

    def reply(self, answer: Answer, context: ReplyContext) -> Mapping[str, object]:
        """Return nothing: there is no answer."""
        return {}

    def stream(self, events: Iterator[Event], context: ReplyContext) -> Iterator[Mapping[str, object]]:
        """Yield nothing."""
        return iter(())
