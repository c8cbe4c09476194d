"""The model that the settings name: endpoints in order, each with its breaker, and perhaps the built-in one last."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from urllib.parse import urlsplit

from datafari_rag.adapters.machine import MACHINE, Machine
from datafari_rag.adapters.model.chain import Breaker, ChainMember, ModelChain
from datafari_rag.adapters.model.connection import Endpoint
from datafari_rag.adapters.model.endpoint import HttpModel
from datafari_rag.core.errors import RagError
from datafari_rag.core.events import ModelFacts
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.model.servers import completed
from datafari_rag.core.passages.extractive_answer import pieces
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from datafari_rag.core.settings.table import Settings
from datafari_rag.ports import Ending, Model, Offload, TextChunk, inline


def chain_for(
    settings: Settings,
    extractive: Model,
    *,
    headers: Callable[[], Mapping[str, str]] = dict,
    machine: Machine = MACHINE,
) -> ModelChain:
    """
    Return the models of `rag.api.endpoint` and `llm.fallback`, in order; *extractive* is `builtin:extractive`.

    Endpoints after `builtin:extractive` are never called, because that never fails. Nothing is opened yet. *headers*
    go along with each request.

    Raises:
        ValueError: an endpoint's URL or a PEM file of `llm.tls.*` cannot be used.
    """
    limits = settings.llm_limits
    links: list[ChainMember] = []

    def chain(last: Model | None = None) -> ModelChain:
        clock, sleep, chance = machine.monotonic, machine.sleep, machine.chance
        return ModelChain(links, last=last, limits=limits, clock=clock, sleep=sleep, chance=chance)

    for endpoint in endpoints_for(settings):
        if endpoint.url == BUILTIN_MODEL:
            return chain(extractive)
        model = HttpModel(
            replace(endpoint, headers=headers), template=settings.rag_template, limits=limits, machine=machine
        )
        breaker = Breaker(limits.breaker_failures, limits.breaker_reset_s, machine.monotonic)
        links.append(ChainMember(urlsplit(endpoint.url).hostname or "", model, breaker))
    return chain()


def endpoints_for(settings: Settings) -> tuple[Endpoint, ...]:
    """Return all endpoints in order; a fallback without its own token is sent none."""
    tls = settings.tls.llm
    proxy = settings.llm_proxy
    body = json.loads(settings.llm_body or "{}")
    first = Endpoint(
        settings.model_url, settings.rag_api_token, tls=tls, proxy=proxy, server=settings.llm_server, body=body
    )
    further = zip_longest(settings.llm_fallback, settings.llm_fallback_models, settings.llm_fallback_tokens)
    complete = completed if settings.rag_template == "openai" else str
    return (
        first,
        *(Endpoint(complete(url), token or "", model or None, tls, proxy) for url, model, token in further if url),
    )


class ExtractiveModel:
    """A `ports.Model` that needs no server and knows only the extracts of the prompt."""

    def __init__(self, offload: Offload = inline) -> None:
        """Look for sentences in long texts *offload*."""
        self._aside = offload

    def generate(self, prompt: Prompt, *, is_streamed: bool) -> Generator[TextChunk | Ending, None, None]:
        """Yield the answer, sentence by sentence when it is streamed, then an `Ending` with "stop"."""
        facts = ModelFacts(name=BUILTIN_MODEL)
        chars = sum(len(extract.text) for extract in prompt.extracts)
        try:
            found = self._aside(partial(_pieces, prompt), chars)
        except RagError as error:
            yield Ending(None, error, facts)
            return
        for text in found if is_streamed else ("".join(found),):
            yield TextChunk(text, facts)
        yield Ending("stop", facts=facts)


def _pieces(prompt: Prompt) -> tuple[str, ...]:
    return pieces(prompt.question, prompt.extracts, language=prompt.language, answer_format=prompt.answer_format)
