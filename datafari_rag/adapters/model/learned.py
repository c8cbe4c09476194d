"""
What one endpoint taught about its models by refusing requests, kept until the settings change.

Shared by all requests of a worker. The log says once for each model what was learned: parameters and roles, no texts.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from threading import Lock

from datafari_rag.core.model.lessons import Lesson
from datafari_rag.core.model.server_needs import ServerNeeds

log = logging.getLogger(__name__)

MAX_MODELS = 256
"""How many models of one endpoint are remembered: callers of /v1 may name any. The one not used for longest goes."""


class LearnedNeeds:
    """What the models of one endpoint want; safe for threads and greenlets."""

    def __init__(self, name: str, known: Callable[[str], ServerNeeds]) -> None:
        """Remember nothing yet. *name* is the endpoint's for the log; *known* is what its table says of a model."""
        self._name, self._known = name, known
        self._learned: OrderedDict[str, tuple[ServerNeeds, tuple[str, ...]]] = OrderedDict()
        self._lock = Lock()

    def of(self, model: str) -> ServerNeeds:
        """Return what *model* wants, as far as is known."""
        with self._lock:
            if model not in self._learned:
                return self._known(model)
            self._learned.move_to_end(model)
            return self._learned[model][0]

    def keep(self, model: str, lessons: Sequence[Lesson]) -> None:
        """Remember *lessons*, if any, which led to a request that *model* accepted, or which its reply taught."""
        if not lessons:
            return
        with self._lock:
            before = self._learned.get(model, (None, ()))[1]
            texts = dict.fromkeys((*before, *(lesson.text for lesson in lessons)))
            self._learned[model] = (lessons[-1].needs, tuple(texts))
            self._learned.move_to_end(model)
            if len(self._learned) > MAX_MODELS:
                self._learned.popitem(last=False)
        if tuple(texts) != before:
            log.info("model %s: learned: %s", self._name, "; ".join(texts))

    def texts(self) -> Mapping[str, Sequence[str]]:
        """Return what was learned of each model, in sentences."""
        with self._lock:
            return {model: texts for model, (_, texts) in self._learned.items()}
