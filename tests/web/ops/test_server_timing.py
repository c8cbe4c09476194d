"""What the Server-Timing header adds up to, under a clock that only the parts move."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Mapping
from dataclasses import replace

import pytest

from datafari_rag.core.access import Filter
from datafari_rag.core.identity import VerifiedIdentity
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.search_request import Search, SearchResult
from datafari_rag.ports import Ending, TextChunk
from tests.fakes import FLIGHT, RABBIT, FakeIdentity, FakeModel, FakeRetriever, FakeRights, app_of, fake_snapshot
from tests.settings import settings_with
from tests.support.clock import Clock

QUESTION = "/search/select?action=rag&q=When+does+the+flight+take+off"
IDENTITY_S, RIGHTS_S, SEARCH_S, FIRST_S, REST_S = 0.003, 0.007, 0.011, 0.013, 0.017


class Identity(FakeIdentity):
    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock

    def identify(self, headers: Mapping[str, str], peer_address: str) -> VerifiedIdentity:
        self.clock.now += IDENTITY_S
        return super().identify(headers, peer_address)


class Rights(FakeRights):
    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock

    def tokens_of(self, name: str, claimed: Iterable[str]) -> Iterable[str]:
        self.clock.now += RIGHTS_S
        return super().tokens_of(name, claimed)


class Retriever(FakeRetriever):
    def __init__(self, clock: Clock) -> None:
        super().__init__(FLIGHT, RABBIT)
        self.clock = clock

    def search(self, search: Search, access: Filter) -> SearchResult:
        self.clock.now += SEARCH_S
        return super().search(search, access)


class Model(FakeModel):
    def __init__(self, clock: Clock) -> None:
        super().__init__("It takes off ", "at 15h50 [1].")
        self.clock = clock

    def generate(self, prompt: Prompt, *, is_streamed: bool) -> Generator[TextChunk | Ending, None, None]:
        self.clock.now += FIRST_S
        for said in super().generate(prompt, is_streamed=is_streamed):
            if isinstance(said, Ending):
                self.clock.now += REST_S
            yield said


def timed(path: str, user: str) -> tuple[dict[str, float], float]:
    """Return the header's milliseconds by name, and those that the whole request took."""
    clock = Clock(50.0)
    line = fake_snapshot(
        Retriever(clock),
        Model(clock),
        settings=settings_with(security_admins=("root",)),
        rights=Rights(clock),
        identity=Identity(clock),
    )
    client = app_of(replace(line, dependencies=replace(line.dependencies, clock=clock))).test_client()
    began = clock.now
    header = client.get(path, headers={"X-User": user}).headers.get("Server-Timing", "")
    parts = {name: float(ms) for name, ms in re.findall(r"(\w+);dur=([\d.]+)", header)}
    return parts, (clock.now - began) * 1000


def test_the_stages_of_a_whole_answer_and_the_edge_are_all_that_the_request_took() -> None:
    parts, took_ms = timed(QUESTION, "root")

    assert parts == {
        "search": 11.0,
        "passages": 0.0,
        "prompt": 0.0,
        "model": 30.0,
        "citations": 0.0,
        "edge": 10.0,
        "total": 51.0,
    }
    assert took_ms == pytest.approx(parts["total"])


def test_the_stages_of_a_stream_are_those_before_its_first_words() -> None:
    parts, took_ms = timed(f"{QUESTION}&stream=true", "root")

    assert parts == {"search": 11.0, "passages": 0.0, "prompt": 0.0, "edge": 23.0, "total": 34.0}
    assert took_ms == pytest.approx(parts["total"])  # nothing more was read of it


@pytest.mark.parametrize("more", ["", "&stream=true"], ids=["whole", "streamed"])
def test_others_than_administrators_see_no_times(more: str) -> None:
    parts, _ = timed(QUESTION + more, "ann")

    assert parts == {}
