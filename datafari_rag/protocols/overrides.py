"""
What `context.overrides` of the chat dialects may decide: a record whose fields are read, described and explained by it.

Every key of those protocols is a field: it changes the ask, or its description says that it is not in use here. A value
that does not fit is a bad request that names the field; an unknown key never fails. Nothing here can widen rights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta, Struct, inspect

from datafari_rag.core.ask import (
    MAX_WHOLE,
    Ask,
    MaxCount,
    MaxSearches,
    MaxSeconds,
    Restriction,
    WantedEffort,
    with_effort,
)
from datafari_rag.core.errors import BadRequest
from datafari_rag.core.search_request import CATEGORY_FIELD
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.text.folding import is_unicode
from datafari_rag.core.text.language import language_code
from datafari_rag.protocols.records import DocumentIds, about, distinct, read, unknown_names

PATH = "context.overrides"
MAX_TEMPLATE_CHARS = 20_000
_LANGUAGE = r"^(\s*[A-Za-z]{2,3}([-_][A-Za-z0-9]{1,8}){0,3}\s*)?$"
_PLANS = "In use where effort is more than none: a limit of the steps before the answer; the settings have theirs."
_VECTORS = "Not in use here: the settings decide which vectors are compared."
_IMAGES = "Not in use here: only the text of documents is used."
_RIGHTS = "The user's rights always apply, whatever is sent; this cannot widen them."
_AGENTS = "Not in use here: only this service's own index is searched; effort says in how many steps."

Category = Annotated[str, Meta(max_length=200)]


class SearchSteps(Struct, frozen=True, kw_only=True):
    """What is searched, and in how many steps, for every dialect with a JSON body of its own; null is absent."""

    documents: Annotated[
        DocumentIds | None,
        about("In use: only these documents are searched; none where the list is empty.", extra={"field": "documents"}),
    ] = None
    effort: Annotated[
        WantedEffort | Literal[""] | None,
        about("In use: in how many steps is searched, and who plans them; medium is as low."),
    ] = None
    max_searches: Annotated[MaxSearches | None, about(_PLANS)] = None
    max_model_calls: Annotated[MaxCount | None, about(_PLANS)] = None
    max_seconds: Annotated[MaxSeconds | None, about(_PLANS)] = None


class Overrides(SearchSteps, frozen=True, kw_only=True):
    """Every key of the RAG chat protocols and of the demo behind them; unknown keys are ignored."""

    max_tokens: Annotated[MaxCount | None, about(_PLANS)] = None
    top: Annotated[
        Annotated[int, Meta(ge=1)] | None, about("In use: the maximum number of documents for this answer.")
    ] = None
    temperature: Annotated[Annotated[float, Meta(ge=0, le=2)] | None, about("In use: the model's temperature.")] = None
    retrieval_mode: Annotated[
        Literal["text", "vectors", "hybrid"] | None,
        about("Not in use here: the settings decide how documents are found; X-RAG-Retrieval says it."),
    ] = None
    semantic_ranker: Annotated[bool | None, about("Not in use here: documents are ranked by BM25.")] = None
    semantic_captions: Annotated[bool | None, about("In use: the model sees highlighted snippets.")] = None
    query_rewriting: Annotated[bool | None, about("Decided by chat.query.rewriting.enabled, not by the request.")] = (
        None
    )
    suggest_followup_questions: Annotated[bool | None, about("In use: follow-up questions.")] = None
    use_oid_security_filter: Annotated[bool | None, about(_RIGHTS)] = None
    use_groups_security_filter: Annotated[bool | None, about(_RIGHTS)] = None
    vector_fields: Annotated[list[str] | str | None, about(_VECTORS)] = None
    use_gpt4v: Annotated[bool | None, about(_IMAGES)] = None
    gpt4v_input: Annotated[Literal["text", "texts", "textAndImages", "images"] | None, about(_IMAGES)] = None
    prompt_template: Annotated[
        Annotated[str, Meta(max_length=MAX_TEMPLATE_CHARS)] | None,
        about("Not in use here: the instructions are the service's own."),
    ] = None
    prompt_template_prefix: Annotated[Any, about("Not in use here.")] = None
    prompt_template_suffix: Annotated[Any, about("Not in use here.")] = None
    minimum_search_score: Annotated[
        Annotated[float, Meta(ge=0)] | None, about("In use for administrators: weaker hits are dropped (BM25).")
    ] = None
    minimum_reranker_score: Annotated[
        Annotated[float, Meta(ge=0)] | None, about("Not in use here: results are not reranked.")
    ] = None
    include_category: Annotated[Category | None, about("In use: only this category.")] = None
    exclude_category: Annotated[Category | None, about("In use: not this category.")] = None
    language: Annotated[
        Annotated[str, Meta(pattern=_LANGUAGE, extra={"must": "a language code such as en or fr"})] | None,
        about("In use: the language of the answer."),
    ] = None
    seed: Annotated[Annotated[int, Meta(ge=-MAX_WHOLE, le=MAX_WHOLE)] | None, about("In use: sent to the model.")] = (
        None
    )
    reasoning_effort: Annotated[Any, about("Not in use here: the model's own default is used.")] = None
    send_text_sources: Annotated[bool | None, about("Not in use here: the text of the documents is always sent.")] = (
        None
    )
    send_image_sources: Annotated[bool | None, about(_IMAGES)] = None
    search_text_embeddings: Annotated[bool | None, about(_VECTORS)] = None
    search_image_embeddings: Annotated[bool | None, about(_IMAGES)] = None
    use_agentic_retrieval: Annotated[Any, about(_AGENTS)] = None
    use_agentic_knowledgebase: Annotated[Any, about(_AGENTS)] = None
    retrieval_reasoning_effort: Annotated[Any, about(_AGENTS)] = None
    results_merge_strategy: Annotated[Any, about(_AGENTS)] = None
    use_web_source: Annotated[Any, about(_AGENTS)] = None
    use_sharepoint_source: Annotated[Any, about(_AGENTS)] = None


@dataclass(frozen=True, slots=True)
class Need:
    """What must be so for an override to reach the model; *unmet* is what the thoughts say where it is not."""

    is_met: Callable[[Settings], bool]
    unmet: str


Effect = Callable[[Ask, Any, Settings], Ask]
Steps = TypeVar("Steps", bound=SearchSteps)


def applied(ask: Ask, overrides: Mapping[str, object], settings: Settings) -> Ask:
    """
    Return *ask* with everything that *overrides* decide, and a sentence for each key that was sent.

    A null is an absent key. Unknown keys are named in `ignored`.

    Raises:
        BadRequest: a value is of the wrong type or out of range; the reason names the field.
    """
    record = read_steps(Overrides, overrides, path=f"{PATH}.")
    most = settings.chat.limits.top
    if record.top is not None and record.top > most:
        raise BadRequest(f"{PATH}.top must be a whole number from 1 to {most}.", field=f"{PATH}.top")
    names = [name for name in SENTENCES if overrides.get(name) is not None]
    for name in names:
        if isinstance(value := getattr(record, name), str) and not is_unicode(value):
            raise BadRequest(f"{PATH}.{name} must be valid Unicode text.", field=f"{PATH}.{name}")
    sentences = {name: _sentence(name, settings, getattr(record, name)) for name in names}
    unknown = [f"{PATH}.{name}"[:60] for name in unknown_names(Overrides, overrides)][:20]
    ask = affected(ask, record, settings)
    return replace(ask, overrides={**ask.overrides, **sentences}, ignored=(*ask.ignored, *unknown))


def read_steps(record: type[Steps], values: Mapping[str, object], *, path: str = "", is_deep: bool = False) -> Steps:
    """Return *values* as *record*; a whole number of these may be written 3.0, as JSON has it. Raises: as `read`."""
    whole = {n: int(v) for n in _decided(record) if isinstance(v := values.get(n), float) and v.is_integer()}
    return read(record, {**values, **whole}, path=path, is_deep=is_deep)


def affected(ask: Ask, record: SearchSteps, settings: Settings) -> Ask:
    """Return *ask* with the effects of what is in use of *record*; an empty text has none."""
    for name in _decided(type(record)):
        if name in EFFECTS and (value := getattr(record, name)) not in (None, ""):
            ask = EFFECTS[name](ask, value, settings)
    return ask


def _decided(record: type[SearchSteps]) -> tuple[str, ...]:
    """Return the names of *record* that are overrides: of a body of its own, those of search in steps."""
    return (Overrides if issubclass(record, Overrides) else SearchSteps).__struct_fields__


def _sentence(name: str, settings: Settings, value: object) -> str:
    if name in EFFECTS and (value is False or value == ""):
        return "Not requested."
    return next((need.unmet for need in NEEDS.get(name, ()) if not need.is_met(settings)), SENTENCES[name])


def _set(field: str) -> Effect:
    return lambda ask, value, settings: replace(ask, **{field: value})


def _limit(field: str) -> Effect:
    return lambda ask, value, settings: replace(ask, limits=replace(ask.limits, **{field: value}))


def _category(*, is_excluded: bool) -> Effect:
    def effect(ask: Ask, value: Any, settings: Settings) -> Ask:
        narrowed = Restriction(CATEGORY_FIELD, value=value, is_excluded=is_excluded)
        return replace(ask, restrictions=(*ask.restrictions, narrowed))

    return effect


_A_MODEL = Need(
    lambda settings: settings.rag.api_endpoint != BUILTIN_MODEL,
    "Not in use here: the built-in model quotes sentences from the documents.",
)
_INSTRUCTIONS = Need(
    lambda settings: settings.rag.template == "openai" or settings.rag.add_instructions,
    "Not in use here: rag.addInstructions is off, so the model gets no instructions.",
)
_OPENAI = Need(
    lambda settings: settings.rag.template == "openai",
    "Not in use here: a Datafari External LLM service has no such parameter.",
)

NEEDS: Mapping[str, tuple[Need, ...]] = {
    "temperature": (_A_MODEL,),
    "suggest_followup_questions": (_A_MODEL, _INSTRUCTIONS),
    "language": (_A_MODEL, _INSTRUCTIONS),
    "seed": (_A_MODEL, _OPENAI),
}
"""The first that is not met says in place of the description why it is not in use: "In use" is only what is used."""

EFFECTS: Mapping[str, Effect] = {
    "top": _set("max_documents"),
    "temperature": _set("temperature"),
    "semantic_captions": _set("wants_captions"),
    "suggest_followup_questions": _set("wants_followups"),
    "minimum_search_score": _set("min_score"),
    "include_category": _category(is_excluded=False),
    "exclude_category": _category(is_excluded=True),
    "documents": lambda ask, value, settings: replace(ask, documents=distinct(value)),
    "language": lambda ask, value, settings: replace(ask, language=language_code(value)),
    "seed": lambda ask, value, settings: replace(ask, sampling={**ask.sampling, "seed": value}),
    "effort": lambda ask, value, settings: with_effort(ask, value),
    "max_searches": _limit("searches"),
    "max_model_calls": _limit("model_calls"),
    "max_tokens": _limit("tokens"),
    "max_seconds": _limit("seconds"),
}
"""What an override that is in use changes of the ask."""

SENTENCES: Mapping[str, str] = {
    field.encode_name: field.type.extra_json_schema["description"]
    for field in inspect.type_info(Overrides).fields  # type: ignore[attr-defined]  # a record's are there
}
"""What the thoughts say of each override that was sent: the field's own description."""
