"""From settings to a chain of endpoints."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace

import pytest

from datafari_rag.adapters.machine import MACHINE
from datafari_rag.adapters.model.chain import chain_for, endpoints_for
from datafari_rag.adapters.model.endpoint import Endpoint
from datafari_rag.core.events import ModelFacts
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.model.replies import header_value
from datafari_rag.core.settings.addresses import Tls, TlsByServer
from datafari_rag.core.settings.table import ModelLimits, Settings
from datafari_rag.ports import Ending, TextChunk
from tests.settings import settings_with
from tests.support.stub import Stub, running_stub

BUILTIN = "builtin:extractive"


class FakeExtractive:
    def generate(self, prompt: Prompt, *, is_streamed: bool) -> Generator[TextChunk | Ending, None, None]:
        yield TextChunk("verbatim", ModelFacts(BUILTIN))
        yield Ending("stop", facts=ModelFacts(BUILTIN))


@pytest.fixture(scope="module")
def stub() -> Iterator[Stub]:
    with running_stub() as running:
        yield running


def told(settings: Settings, model: str) -> tuple[str, Ending]:
    chain = chain_for(
        settings.rag,
        settings.llm,
        settings.tls.llm,
        FakeExtractive(),
        machine=replace(MACHINE, sleep=lambda seconds: None),
    )
    *pieces, ending = chain.generate(Prompt("What?", (), None, "n", model=model), is_streamed=True)
    assert isinstance(ending, Ending)
    return "".join(piece.text for piece in pieces if isinstance(piece, TextChunk)), ending


def test_endpoints_keep_their_order_and_a_fallback_never_gets_the_first_ones_token() -> None:
    settings = settings_with(
        rag_api_endpoint="http://a/v1/chat/completions",
        rag_api_token="sk-a",
        llm_fallback=("http://b/v1#model-b", "http://c/"),
        llm_fallback_tokens=("sk-b",),
        tls=TlsByServer(llm=Tls("ca.pem")),
    )
    tls = Tls("ca.pem")
    assert endpoints_for(settings.rag, settings.llm, settings.tls.llm) == (
        Endpoint("http://a/v1/chat/completions", "sk-a", tls=tls),
        Endpoint("http://b/v1/chat/completions", "sk-b", "model-b", tls),
        Endpoint("http://c/v1/chat/completions", "", None, tls),
    )


def test_a_token_is_never_in_a_repr() -> None:
    assert "sk-a" not in repr(Endpoint("http://a/", "sk-a"))


def test_the_built_in_model_needs_no_endpoint() -> None:
    text, ending = told(settings_with(rag_api_endpoint=BUILTIN), "m")
    assert (text, header_value(ending.facts)) == ("verbatim", "builtin:extractive; tries=1; fallback=0")


def test_fallbacks_are_asked_in_turn_and_the_built_in_one_last(stub: Stub) -> None:
    settings = settings_with(
        rag_api_endpoint=stub.url, llm_fallback=(stub.url, BUILTIN), llm_limits=ModelLimits(retries=1)
    )
    text, ending = told(settings, "status-503")
    assert (text, header_value(ending.facts)) == ("verbatim", "builtin:extractive; tries=5; fallback=1")


@pytest.mark.parametrize(
    "settings",
    [
        settings_with(rag_api_endpoint="gopher://a"),
        settings_with(rag_api_endpoint="https://a/", tls=TlsByServer(llm=Tls("/no/such/file"))),
    ],
    ids=["an address of another kind", "a file of authorities that is not there"],
)
def test_what_cannot_be_used_is_said_when_it_is_built(settings: Settings) -> None:
    with pytest.raises(ValueError, match="expected"):
        chain_for(settings.rag, settings.llm, settings.tls.llm, FakeExtractive())
