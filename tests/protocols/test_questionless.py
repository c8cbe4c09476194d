"""A dialect without questions: it refuses them, and spells failures as its route does."""

from __future__ import annotations

import pytest

from datafari_rag.core.errors import NotAllowed, RagError
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols.request import Incoming, Questionless
from tests.protocols.values import ANSWER, context, events


def failure(error: RagError, settings: Settings) -> tuple[int, dict[str, object]]:
    return error.code, {"why": error.label}


DIALECT = Questionless(failure)


def test_a_question_is_refused_and_nothing_is_answered() -> None:
    with pytest.raises(NotAllowed):
        DIALECT.parse(Incoming("/search/select", {"q": ("rabbits",)}), Settings())
    assert DIALECT.reply(ANSWER, context()) == {}
    assert list(DIALECT.stream(iter(events()), context())) == []


def test_a_failure_is_spelt_by_its_route() -> None:
    assert DIALECT.failure(NotAllowed(), Settings()) == (403, {"why": "notAllowed"})
