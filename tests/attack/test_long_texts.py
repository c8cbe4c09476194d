"""Stored texts of 5 and 18 MB, made of hostile units, behind every door that reads one: time grows as the text does."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial

import pytest

from datafari_rag.core.settings.table import RequestRates
from tests.attack.hostile import text_of, units
from tests.attack.report import Record, judge
from tests.fakes import FLIGHT, RABBIT, FakeRetriever, fake_snapshot
from tests.growth import too_fast
from tests.settings import settings_with
from tests.web.api.test_exchange import DOORS, Door, client_of

NAMES = ("select rag", "ai summarize", "documents", "documents page", "mcp fetch", "mcp check", "chat stream")
READING = tuple(one for one in DOORS if one.name in NAMES)
"""Doors behind which a stored text is read whole."""

QUICK = tuple(one for one in READING if one.name not in ("ai summarize", "chat stream"))
"""Those that take less than a second."""

SEED, SOME = 33, 3


def holes_of(door: Door, labels: list[str], chars: int) -> list[str]:
    def send(text: str) -> None:
        retriever = FakeRetriever(replace(FLIGHT, text=f"{FLIGHT.text} {text}"), RABBIT)
        response = door.send(
            client_of(fake_snapshot(retriever, settings=settings_with(server_rate=RequestRates(work=0))))
        )
        assert response.status_code == 200 and response.get_data(), response.get_data(as_text=True)[:300]

    return [
        f"{door.name}: {label}, {found}"
        for label in labels
        if (found := too_fast(send, partial(text_of, units()[label]), chars))
    ]


def labels_for(door: Door, number: int) -> list[str]:
    return random.Random(f"{SEED} {door.name}").sample(list(units()), number)


def test_no_door_is_slow_on_a_stored_text_of_5_mb(record_property: Record) -> None:
    holes = [hole for door in QUICK for hole in holes_of(door, labels_for(door, 1), 5_000_000)]
    judge(record_property, "stored texts of 5 MB", against="pages", tried=len(QUICK), holes=holes)


@pytest.mark.trials
@pytest.mark.parametrize("door", READING, ids=lambda door: door.name)
def test_no_door_is_slow_on_stored_texts_of_18_mb(door: Door, record_property: Record) -> None:
    holes = holes_of(door, labels_for(door, SOME), 18_000_000)
    judge(record_property, f"stored texts of 18 MB: {door.name}", against="pages", tried=SOME, holes=holes)
