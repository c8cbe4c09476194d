"""
Search in steps: the question first, then what the first passages or the model lead to, within a budget.

Every search goes through `retrieval.searched` under the filter that the line hands in; no filter is made here. What a
step finds competes with what all others found. A further step that fails ends the steps and never the answer: the
activity says so. Nothing of a question is kept.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import replace

from datafari_rag.core.access import Filter
from datafari_rag.core.answer.prompt import Prompt
from datafari_rag.core.ask import Ask
from datafari_rag.core.events import Event, Finished, ModelFacts, StepEvent
from datafari_rag.core.query.plan import searches_for
from datafari_rag.core.query.rewriting import is_wanted, with_query
from datafari_rag.core.query.rewriting import prompt_for as query_prompt
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.steps.activity import Activity, ActivityStep
from datafari_rag.core.steps.budgets import LEVELS, Effort, budget_for
from datafari_rag.ports import Ending
from datafari_rag.retrieval import searched, searched_in
from datafari_rag.stepping.tool_loop import ToolLoop
from datafari_rag.stepping.walk import StepMeter, StepParts, Stepped, StepWalk, tokens_in


def rewritten(ask: Ask, language: str, *, settings: Settings, parts: StepParts) -> Ask:
    """
    Return *ask* with the search query that the model wrote, where that is on; unchanged when it could not.

    With an effort no query is written here: `minimal` calls no model, and the plan of the others is in their budget.
    """
    is_enabled = settings.chat_query_rewriting_enabled and _effort_of(ask, settings) == "none"
    if not is_wanted(ask, is_enabled=is_enabled):
        return ask
    prompt = query_prompt(ask, model=settings.rag_model, nonce=parts.new_nonce(), language=language)
    words: list[str] = []
    with closing(parts.model.generate(prompt, is_streamed=False)) as said_by_model:
        for said in said_by_model:
            if isinstance(said, Ending):
                return ask if said.failure is not None else with_query(ask, "".join(words))
            words.append(said.text)
    return ask


def stepped(
    ask: Ask, access: Filter, *, language: str, settings: Settings, parts: StepParts
) -> Generator[StepEvent, None, Stepped]:
    """
    Search for *ask*, in as many steps as its effort and budget allow, and report each.

    Raises:
        SearchError: the search for the question itself failed.
        NotFound: the ask names documents, and this user can see none of them.
    """
    if ask.document_ids:
        found = searched_in(
            ask.document_ids, access, content=settings.rag_solr_field, retriever=parts.engines.retriever
        )
        return Stepped(found, ask)
    effort = _effort_of(ask, settings)
    searches = searches_for(ask, language=language, settings=settings)
    if effort == "none":
        return Stepped(searched(searches, access, settings=settings, engines=parts.engines), ask)
    has_tools = ask.wants_tools and effort == "medium"
    meter = StepMeter(budget_for(effort, ask.limits, settings.rag_effort_limits, has_tools=has_tools), parts.clock)
    walk = StepWalk(ask, access, meter, settings=settings, parts=parts)
    yield from walk.first(list(searches))
    if has_tools:
        yield from ToolLoop(walk).run()
    else:
        yield from walk.planned(LEVELS[effort].model_calls)
    yield from walk.followed(LEVELS[effort].follows)
    return walk.result(effort)


def returned_by(steps: Generator[StepEvent, None, Stepped]) -> Stepped:
    """Return the result of *steps* without reporting each."""
    while True:
        try:
            next(steps)
        except StopIteration as ended:
            whole: Stepped = ended.value
            return whole


def accounted(
    events: Generator[Event, None, None], activity: Activity, prompt: Prompt, parts: StepParts
) -> Generator[Event, None, None]:
    """Yield *events* of the answer to *prompt*, the last one with *activity* and what the answer itself took."""
    began = parts.clock()
    with closing(events):
        for event in events:
            if isinstance(event, Finished):
                step = replace(_answering(event, prompt, parts), elapsed_ms=(parts.clock() - began) * 1000)
                event = replace(event, activity=activity.plus(step))
            yield event


def _effort_of(ask: Ask, settings: Settings) -> Effort:
    return settings.rag_effort if ask.effort is None else ask.effort


def _answering(finished: Finished, prompt: Prompt, parts: StepParts) -> ActivityStep:
    """Return the step of the answer: the built-in model is no call."""
    if finished.facts.name == BUILTIN_MODEL:
        return ActivityStep("answer")
    took = _usage(finished.facts) or (tokens_in(prompt, parts.count), parts.count(finished.text))
    return ActivityStep("answer", model_calls=1, input_tokens=took[0], output_tokens=took[1])


def _usage(facts: ModelFacts) -> tuple[int, int] | None:
    """Return the tokens that the model's server counted, None where it does not say."""
    usage = facts.extras.get("usage")
    numbers = [usage.get(key) for key in ("prompt_tokens", "completion_tokens")] if isinstance(usage, Mapping) else []
    whole = [number for number in numbers if isinstance(number, int) and not isinstance(number, bool) and number >= 0]
    return (whole[0], whole[1]) if len(whole) == 2 else None
