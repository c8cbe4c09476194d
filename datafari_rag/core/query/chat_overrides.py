"""
What `context.overrides` of the chat dialects may decide: one row a key, each with its check and its effect.

Every key of those protocols has a row: it changes the ask, or says in one sentence that it is not in use here. A value
that does not fit is a bad request that names the field; an unknown key never fails. Nothing here can widen rights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from datafari_rag.core.ask import MAX_DOCUMENTS, MAX_ID_CHARS, Ask, Restriction
from datafari_rag.core.effort import EFFORTS
from datafari_rag.core.errors import BadRequest
from datafari_rag.core.search_request import CATEGORY_FIELD
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.text.folding import is_unicode
from datafari_rag.core.text.language import language_code

PATH = "context.overrides"
MAX_TEMPLATE_CHARS = 20_000
MAX_SEED = 2**53 - 1
"""Largest whole number that every JSON reader takes as it is."""

_LANGUAGE = "[A-Za-z]{2,3}([-_][A-Za-z0-9]{1,8}){0,3}|"
_MAX_NOTED = 20
_MAX_NOTED_CHARS = 60

Check = Callable[[object, Settings], object]
Effect = Callable[[Ask, object, Settings], Ask]
Schema = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class OverrideKind:
    """
    What values a key takes: *check* returns the value as we use it or raises `ValueError` with what was wanted.

    *schema* says the same as JSON Schema, null apart.
    """

    check: Check
    schema: Schema


@dataclass(frozen=True, slots=True)
class Need:
    """What must be so for an override to reach the model; *unmet* is what the thoughts say where it is not."""

    is_met: Callable[[Settings], bool]
    unmet: str


@dataclass(frozen=True, slots=True)
class Override:
    """
    One key: the *kind* of its values, the sentence for the thoughts, and the *effect* that changes the ask.

    The first of its *needs* that is not met replaces the sentence: "In use" appears only for what is used.
    """

    kind: OverrideKind
    says: str
    effect: Effect | None = None
    needs: tuple[Need, ...] = ()


def applied(ask: Ask, overrides: Mapping[str, object], settings: Settings, *, path: str = PATH) -> Ask:
    """
    Return *ask* with everything that *overrides* decide, and a sentence for each key that was sent.

    A null is an absent key. Unknown keys are named in `ignored`. *path* is their place in the request.

    Raises:
        BadRequest: a value is of the wrong type or out of range; the reason names the field.
    """
    said: dict[str, str] = dict(ask.overrides)
    unknown: list[str] = []
    for name, value in overrides.items():
        if value is None:
            continue
        row = OVERRIDES.get(name)
        if row is None:
            unknown.append(f"{path}.{name}"[:_MAX_NOTED_CHARS])
            continue
        taken = _checked(f"{path}.{name}".lstrip("."), value, row, settings)
        ask = ask if row.effect is None else row.effect(ask, taken, settings)
        said[name] = _sentence(name, row, settings, taken=taken)
    return replace(ask, overrides=said, ignored=(*ask.ignored, *unknown[:_MAX_NOTED]))


def searching(ask: Ask, values: Mapping[str, object], settings: Settings, *, names: Collection[str]) -> Ask:
    """
    Return *ask* with the documents, the effort and the limits under *names* in *values*, by the same rows.

    For requests that have no overrides. Raises: BadRequest.
    """
    return applied(ask, {name: values[name] for name in names if name in values}, settings, path="")


def instructed(template: str | None, instructions: str) -> str:
    """Return *instructions* as `prompt_template` changes them: replaced, or with ">>>" in front added to."""
    if template is None:
        return instructions
    if template.startswith(">>>"):
        return f"{instructions}\n{template[3:]}"
    return template


def _checked(field: str, value: object, row: Override, settings: Settings) -> object:
    try:
        return row.kind.check(value, settings)
    except ValueError as error:
        raise BadRequest(f"{field} must be {error}.", field=field) from None


def _sentence(name: str, row: Override, settings: Settings, *, taken: object) -> str:
    if row.effect is not None and (taken is False or taken == ""):
        return "Not requested."
    return next((need.unmet for need in row.needs if not need.is_met(settings)), row.says)


# Kinds: each check returns the value, or raises ValueError with what "must be …" is completed by.


def _check_flag(value: object, _: Settings) -> object:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def _number(lowest: float, highest: float = math.inf) -> OverrideKind:
    wanted = (
        f"a number between {lowest:g} and {highest:g}" if highest != math.inf else f"a number of at least {lowest:g}"
    )

    def check(value: object, _: Settings) -> object:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError(wanted)
        if not lowest <= value <= highest or value == math.inf:
            raise ValueError(wanted)
        return float(value)

    bounds = {"minimum": lowest} if highest == math.inf else {"minimum": lowest, "maximum": highest}
    return OverrideKind(check, {"type": "number", **bounds})


def _check_top(value: object, settings: Settings) -> object:
    number = _whole(value)
    if number is None or not 1 <= number <= settings.chat_limits.top:
        raise ValueError(f"an integer between 1 and {settings.chat_limits.top}")
    return number


def _check_integer(value: object, _: Settings) -> object:
    number = _whole(value)
    if number is None or abs(number) > MAX_SEED:
        raise ValueError(f"an integer between {-MAX_SEED} and {MAX_SEED}")
    return number


def _at_least(lowest: int) -> OverrideKind:
    def check(value: object, _: Settings) -> object:
        number = _whole(value)
        if number is None or not lowest <= number <= MAX_SEED:
            raise ValueError(f"an integer from {lowest} up")
        return number

    return OverrideKind(check, {"type": "integer", "minimum": lowest})


def _whole(value: object) -> int | None:
    """Return a whole number as JSON has them, 3.0 too; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if isinstance(value, int) or value.is_integer() else None


def _one_of(*words: str) -> OverrideKind:
    def check(value: object, _: Settings) -> object:
        if value not in words:
            raise ValueError("one of " + ", ".join(filter(None, words)))
        return value

    return OverrideKind(check, {"enum": list(words)})


def _text(max_chars: int) -> OverrideKind:
    def check(value: object, _: Settings) -> object:
        if not isinstance(value, str) or len(value) > max_chars or not is_unicode(value):
            raise ValueError(f"a string of at most {max_chars} characters")
        return value

    return OverrideKind(check, {"type": "string", "maxLength": max_chars})


def _check_language(value: object, _: Settings) -> object:
    code = language_code(value) if isinstance(value, str) else None
    if code is None and value != "":
        raise ValueError("a language code such as en or fr")
    return code or ""


def _check_names(value: object, _: Settings) -> object:
    if isinstance(value, str) or (isinstance(value, list) and all(isinstance(name, str) for name in value)):
        return value
    raise ValueError("a list of strings")


def _check_ids(value: object, _: Settings) -> object:
    given = value if isinstance(value, list) else [None]
    if len(given) > MAX_DOCUMENTS or not all(isinstance(one, str) and 0 < len(one) <= MAX_ID_CHARS for one in given):
        raise ValueError(f"a list of at most {MAX_DOCUMENTS} ids of documents")
    return tuple(dict.fromkeys(given))


def _check_nothing(value: object, _: Settings) -> object:
    return value


# Effects: an empty text is as good as none.


def _set(field: str) -> Effect:
    def effect(ask: Ask, value: object, _: Settings) -> Ask:
        return replace(ask, **{field: value}) if value != "" else ask  # type: ignore[arg-type]  # the rows know their fields

    return effect


def _category(*, is_excluded: bool) -> Effect:
    def effect(ask: Ask, value: object, _: Settings) -> Ask:
        if not isinstance(value, str) or not value:
            return ask
        narrowed = Restriction(CATEGORY_FIELD, value=value, is_excluded=is_excluded)
        return replace(ask, restrictions=(*ask.restrictions, narrowed))

    return effect


def _template(ask: Ask, value: object, settings: Settings) -> Ask:
    if not settings.chat_client.prompt_template or not isinstance(value, str) or not value:
        return ask
    return replace(ask, prompt_template=value)


def _limit(name: str) -> Effect:
    def effect(ask: Ask, value: object, _: Settings) -> Ask:
        return replace(ask, limits=replace(ask.limits, **{name: value}))  # type: ignore[arg-type]  # as above

    return effect


def _seed(ask: Ask, value: object, _: Settings) -> Ask:
    return replace(ask, sampling={**ask.sampling, "seed": value})


_FLAG = OverrideKind(_check_flag, {"type": "boolean"})
_TOP = OverrideKind(_check_top, {"type": "integer", "minimum": 1})
_INTEGER = OverrideKind(_check_integer, {"type": "integer", "minimum": -MAX_SEED, "maximum": MAX_SEED})
_CODE = OverrideKind(_check_language, {"type": "string", "pattern": f"^({_LANGUAGE})$"})
_NAMES = OverrideKind(_check_names, {"type": ["string", "array"], "items": {"type": "string"}})
_IDS = OverrideKind(
    _check_ids,
    {
        "type": "array",
        "maxItems": MAX_DOCUMENTS,
        "items": {"type": "string", "minLength": 1, "maxLength": MAX_ID_CHARS},
    },
)
_ANYTHING = OverrideKind(_check_nothing, {})

_A_MODEL = Need(
    lambda settings: settings.rag_api_endpoint != BUILTIN_MODEL,
    "Not in use here: the built-in model quotes sentences from the documents.",
)
_INSTRUCTIONS = Need(
    lambda settings: settings.rag_template == "openai" or settings.rag_add_instructions,
    "Not in use here: rag.addInstructions is off, so the model gets no instructions.",
)
_OPENAI = Need(
    lambda settings: settings.rag_template == "openai",
    "Not in use here: a Datafari External LLM service has no such parameter.",
)
_TEMPLATES = Need(
    lambda settings: settings.chat_client.prompt_template,
    "Not in use here: prompt_template of chat.client is off.",
)
_TOLD = (_A_MODEL, _INSTRUCTIONS)
"""What reaches the model as a part of the instructions."""

_VECTORS = "Not in use here: the settings decide which vectors are compared."
_IMAGES = "Not in use here: only the text of documents is used."
_RIGHTS = "The user's rights always apply, whatever is sent; this cannot widen them."
_AGENTS = "Not in use here: only this service's own index is searched; effort says in how many steps."
_PLANS = "In use where effort is more than none: a limit of the steps before the answer; the settings have theirs."
_INPUTS = ("text", "texts", "textAndImages", "images")

OF_SEARCH = ("documents", "effort", "max_searches", "max_model_calls", "max_tokens", "max_seconds")
"""The overrides that decide what is searched, and in how many steps, for dialects that have no others."""

OVERRIDES: Mapping[str, Override] = {
    "top": Override(_TOP, "In use: the maximum number of documents for this answer.", _set("max_documents")),
    "temperature": Override(_number(0, 2), "In use: the model's temperature.", _set("temperature"), (_A_MODEL,)),
    "retrieval_mode": Override(
        _one_of("text", "vectors", "hybrid"),
        "Not in use here: the settings decide how documents are found; X-RAG-Retrieval says it.",
    ),
    "semantic_ranker": Override(_FLAG, "Not in use here: documents are ranked by BM25."),
    "semantic_captions": Override(_FLAG, "In use: the model sees highlighted snippets.", _set("wants_captions")),
    "query_rewriting": Override(_FLAG, "Decided by chat.query.rewriting.enabled, not by the request."),
    "suggest_followup_questions": Override(_FLAG, "In use: follow-up questions.", _set("wants_followups"), _TOLD),
    "use_oid_security_filter": Override(_FLAG, _RIGHTS),
    "use_groups_security_filter": Override(_FLAG, _RIGHTS),
    "vector_fields": Override(_NAMES, _VECTORS),
    "use_gpt4v": Override(_FLAG, _IMAGES),
    "gpt4v_input": Override(_one_of(*_INPUTS), _IMAGES),
    "prompt_template": Override(
        _text(MAX_TEMPLATE_CHARS), "In use: changes the instructions.", _template, (_TEMPLATES, *_TOLD)
    ),
    "prompt_template_prefix": Override(_ANYTHING, "Not in use here."),
    "prompt_template_suffix": Override(_ANYTHING, "Not in use here."),
    "minimum_search_score": Override(
        _number(0), "In use for administrators: weaker hits are dropped (BM25).", _set("min_score")
    ),
    "minimum_reranker_score": Override(_number(0), "Not in use here: results are not reranked."),
    "include_category": Override(_text(200), "In use: only this category.", _category(is_excluded=False)),
    "exclude_category": Override(_text(200), "In use: not this category.", _category(is_excluded=True)),
    "documents": Override(
        _IDS, "In use: only these documents are searched; none where the list is empty.", _set("documents")
    ),
    "language": Override(_CODE, "In use: the language of the answer.", _set("language"), _TOLD),
    "seed": Override(_INTEGER, "In use: sent to the model.", _seed, (_A_MODEL, _OPENAI)),
    "effort": Override(
        _one_of(*EFFORTS, ""), "In use: in how many steps is searched, and who plans them.", _set("effort")
    ),
    "max_searches": Override(_at_least(1), _PLANS, _limit("searches")),
    "max_model_calls": Override(_at_least(0), _PLANS, _limit("model_calls")),
    "max_tokens": Override(_at_least(0), _PLANS, _limit("tokens")),
    "max_seconds": Override(_number(0), _PLANS, _limit("seconds")),
    "reasoning_effort": Override(_ANYTHING, "Not in use here: the model's own default is used."),
    "send_text_sources": Override(_FLAG, "Not in use here: the text of the documents is always sent."),
    "send_image_sources": Override(_FLAG, _IMAGES),
    "search_text_embeddings": Override(_FLAG, _VECTORS),
    "search_image_embeddings": Override(_FLAG, _IMAGES),
    "use_agentic_retrieval": Override(_ANYTHING, _AGENTS),
    "use_agentic_knowledgebase": Override(_ANYTHING, _AGENTS),
    "retrieval_reasoning_effort": Override(_ANYTHING, _AGENTS),
    "results_merge_strategy": Override(_ANYTHING, _AGENTS),
    "use_web_source": Override(_ANYTHING, _AGENTS),
    "use_sharepoint_source": Override(_ANYTHING, _AGENTS),
}
"""Every key of the RAG chat protocols and of the demo behind them."""
