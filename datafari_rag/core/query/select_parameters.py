"""
The whitelist of contract §5: what a caller of search/select may decide, and nothing else.

Every name and every value is read here into a value of our own; what does not fit is dropped and its *name* noted.
Nothing is handed on as it came, so no parameter can reach the search engine, name a user or widen their rights.
This module knows neither a framework's multi-dict nor an engine's query language.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from datafari_rag.core.access import ACL_FIELDS
from datafari_rag.core.ask import (
    MAX_DOCUMENTS,
    MAX_ID_CHARS,
    AnswerFormat,
    LineBreaks,
    MaxCount,
    MaxSearches,
    MaxSeconds,
    Restriction,
    WantedEffort,
    narrowings,
)
from datafari_rag.core.errors import BadRequest, TooManyValues
from datafari_rag.core.query.filter_queries import misread_field, restriction_of
from datafari_rag.core.search_request import MAX_ROWS, Browse
from datafari_rag.core.text.language import language_code

MAX_START = 100_000
"""Deepest first hit of a page; an engine holds all hits before it in memory."""

MAX_VALUES = 100
"""Most values of one parameter that takes several (fl, fq, facet.field, sort): more can only be meant to cost time."""

SORTS = ("score", "title", "last_modified")
"""What a caller may sort on."""

IDENTITY_NAMES = frozenset(
    {"mcf", "userTokens", "UserTokens", "shards", "shards.qt", "qt", "auth_claims", "session_state", "collection"}
)
"""Names that a caller can only have sent to act as another user, or to bypass the filter."""

_IDENTITY_PREFIX = "AuthenticatedUser"
_SESSION_STATE = "session_state"
_LEVELS_WITH_NAMES = 3
_MAX_NOTED = 40
_MAX_NOTED_CHARS = 60

Values = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class SelectParameters:
    """
    What one request to search/select decides, after the whitelist.

    *text* None is "no words given"; *action* is as sent, for the dialect to judge. *fields* None means all stored
    fields without the ACL's. *ignored* names what was sent and does not fit, once each, as sent; *for_search* names
    what was taken but has an effect only on a plain search.
    """

    text: str | None = None
    action: str | None = None
    answer_format: AnswerFormat | None = None
    linebreaks: LineBreaks | None = None
    language: str | None = None
    is_streamed: bool = False
    wants_trace: bool = False
    effort: WantedEffort | None = None
    max_searches: int | None = None
    max_model_calls: int | None = None
    max_tokens: int | None = None
    max_seconds: float | None = None
    restrictions: tuple[Restriction, ...] = ()
    documents: tuple[str, ...] | None = None
    start: int = 0
    rows: int = 10
    sort: tuple[str, bool] | None = None
    facet_fields: tuple[str, ...] = ()
    wants_highlighting: bool = False
    is_relaxed: bool = False
    fields: tuple[str, ...] | None = None
    ignored: tuple[str, ...] = ()
    for_search: tuple[str, ...] = ()


def read(values: Values, *, facets: Collection[str], acl_fields: Collection[str] = ()) -> SelectParameters:
    """
    Return what *values* decide: parameters of the query and of a form, merged, each with its values in order.

    *facets* are the fields of `solr.facets`, *acl_fields* the schema's own names of ACL fields; these and Datafari's
    are never taken, whatever *facets* say. Of a name sent twice the first value counts, but for fq, facet.field and fl.

    Raises:
        TooManyValues: fl, fq, facet.field or sort has more than `MAX_VALUES`, documents more than `MAX_DOCUMENTS`.
        BadRequest: an fq on one of *facets* cannot be read, or an id of documents is too long.
    """
    scope = _Scope(frozenset(facets) - {*acl_fields, *ACL_FIELDS}, frozenset({*acl_fields, *ACL_FIELDS}))
    fields: dict[str, Any] = {}
    ignored = [name for name in values if name not in READERS]
    for name, reader in READERS.items():
        if name in values:
            value, is_whole = reader.read(values[name], scope)
            if value is not None and reader.becomes is not None:
                fields.setdefault(reader.becomes, value)
            if not is_whole:
                ignored.append(name)
    if not fields.pop("is_counted", False):
        fields.pop("facet_fields", None)
    return SelectParameters(
        **fields,
        ignored=_noted(ignored),
        for_search=tuple(name for name in values if name in FOR_SEARCH),
    )


def merged(query: Values, form: Values) -> Values:
    """Return both kinds of parameters as one, those of the query first, as a servlet container has it."""
    return {name: [*query.get(name, ()), *form.get(name, ())] for name in (*query, *form)}


def browse_of(parameters: SelectParameters) -> Browse:
    """Return the plain search that *parameters* ask for; operator and language are the settings' to add."""
    text = None if parameters.text is None or parameters.text.strip() in ("", "*:*") else parameters.text
    return Browse(
        text=text,
        start=parameters.start,
        rows=parameters.rows,
        sort=parameters.sort,
        restrictions=narrowings(parameters.restrictions, parameters.documents),
        facet_fields=parameters.facet_fields,
        wants_highlighting=parameters.wants_highlighting,
        is_relaxed=parameters.is_relaxed,
        fields=parameters.fields,
    )


def identity_attempts(names: Collection[str]) -> int:
    """Return how many of the ignored *names* tried to name a user or to go round the filter, for the counters."""
    return sum(name in IDENTITY_NAMES or name.startswith(_IDENTITY_PREFIX) for name in names)


def forged_names(query: Collection[str], body: object) -> tuple[str, ...]:
    """
    Return the names in a request with which its sender tried to act as another user, once each.

    *body* is the decoded JSON; its own keys and those of the objects in it are looked at, two levels deep: there a
    chat has its overrides, and a tool its arguments. Session state is a separate key there and no attempt.
    """
    objects = [body] if isinstance(body, Mapping) else []
    names = list(query)
    for _ in range(_LEVELS_WITH_NAMES):
        names += [str(name) for part in objects for name in part if name != _SESSION_STATE]
        inner = [value for part in objects for name, value in part.items() if name != _SESSION_STATE]
        objects = [value for value in inner if isinstance(value, Mapping)]
    return tuple(dict.fromkeys(name for name in names if identity_attempts((name,))))


_FIELD_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]{0,99}")
_EXCLUSION = re.compile(r"^\{!ex=[A-Za-z0-9_.,-]{1,100}\}")
_SEPARATORS = re.compile(r"[,\s]+")
_TRUE, _FALSE = frozenset({"true", "1", "on", "yes"}), frozenset({"false", "0", "off", "no", ""})


@dataclass(frozen=True, slots=True)
class _Scope:
    facets: frozenset[str]
    acl_fields: frozenset[str]


Reading = Callable[[Sequence[str], _Scope], tuple[Any, bool]]
"""What the values of a name become, None without an effect, and whether all of them fit."""


@dataclass(frozen=True, slots=True)
class _Reader:
    becomes: str | None
    read: Reading
    says: str
    refused: str = "An invalid value is ignored."


def _noted(names: Sequence[str]) -> tuple[str, ...]:
    """Return each name once, shortened, at most so many: they are a stranger's words in a trace."""
    return tuple(dict.fromkeys(name[:_MAX_NOTED_CHARS] for name in names))[:_MAX_NOTED]


def _text(values: Sequence[str], scope: _Scope) -> tuple[Any, bool]:
    return (values[0] if values and values[0].strip() else None), True


def _word(values: Sequence[str], scope: _Scope) -> tuple[Any, bool]:
    return (values[0].strip() if values else None), True


def _flag(values: Sequence[str], scope: _Scope) -> tuple[Any, bool]:
    word = values[0].strip().lower() if values else ""
    return (True, True) if word in _TRUE else (False, word in _FALSE)


def _value(kind: Any) -> Reading:
    """Return how a value of *kind* is read: as in a JSON body, where the same value that does not fit is an error."""

    def read(values: Sequence[str], scope: _Scope) -> tuple[Any, bool]:
        try:
            return msgspec.convert(values[0].strip() if values else "", kind, strict=False), True
        except msgspec.ValidationError:
            return None, False

    return read


def _choice(kind: Any) -> Reading:
    """Return a reader of a word of *kind*, in capitals or not; an empty one has no effect."""
    reader = _value(kind)

    def read(values: Sequence[str], scope: _Scope) -> tuple[Any, bool]:
        word = values[0].strip().lower() if values else ""
        return reader([word], scope) if word else (None, True)

    return read


def _language(values: Sequence[str], scope: _Scope) -> tuple[Any, bool]:
    word = values[0].strip() if values else ""
    code = language_code(word)
    return code, code is not None or word == ""


def _rows(values: Sequence[str], scope: _Scope) -> tuple[Any, bool]:
    number, is_whole = _value(MaxCount)(values, scope)
    return number if number is None else min(number, MAX_ROWS), is_whole


def _sort(values: Sequence[str], scope: _Scope) -> tuple[Any, bool]:
    """Take the first of the given orders, and none when any of them is unknown."""
    clauses = values[0].split(",", MAX_VALUES) if values else []
    orders = [_order(clause) for clause in _few("sort", clauses)]
    if not orders or None in orders:
        return None, False
    first = orders[0]
    return (None if first == ("score", True) else first), len(orders) == 1


def _order(clause: str) -> tuple[str, bool] | None:
    field, _, direction = clause.strip().lower().partition(" ")
    if field not in SORTS or direction.strip() not in ("", "asc", "desc"):
        return None
    return field, direction.strip() == "desc" or (direction == "" and field == "score")


def _restrictions(values: Sequence[str], scope: _Scope) -> tuple[Any, bool]:
    texts = _few("fq", [text for text in values if text.strip()])
    misread = next((field for text in texts if (field := misread_field(text, scope.facets))), None)
    if misread is not None:
        # What it would narrow is not guessed: hits that it excludes would be shown as if it were not there.
        raise BadRequest(
            f"The filter on {misread} cannot be read. Write FIELD:VALUE, FIELD:[A TO B] or FIELD:(A OR B), "
            "with a minus in front to exclude; values with spaces or * stand between quotation marks.",
            field="fq",
        )
    restrictions = tuple(part for text in texts if (part := restriction_of(text, scope.facets)) is not None)
    return restrictions, len(restrictions) == len(texts)


def _documents(values: Sequence[str], scope: _Scope) -> tuple[Any, bool]:
    if not values:
        return None, True
    ids = _few("documents", values, MAX_DOCUMENTS)
    if any(len(document_id) > MAX_ID_CHARS for document_id in ids):
        raise BadRequest("Each of documents must be the id of a document.", field="documents")
    return tuple(dict.fromkeys(filter(None, ids))), True


def _facet_fields(values: Sequence[str], scope: _Scope) -> tuple[Any, bool]:
    # Datafari's pages leave the filters of a facet out of its own counts by their tag; here all filters count.
    names = [_EXCLUSION.sub("", text.strip()) for text in _few("facet.field", values)]
    facets = tuple(dict.fromkeys(name for name in names if name in scope.facets))
    return facets, all(name in scope.facets for name in names)


def _fields(values: Sequence[str], scope: _Scope) -> tuple[Any, bool]:
    """Take plain names: no alias, function, transformer or pattern, and no ACL field under any of its names."""
    # One piece more than may be stays whole, however long the list is; the ends of a text are empty pieces.
    pieces = [_SEPARATORS.split(text, MAX_VALUES + 1) for text in _few("fl", values)]
    names = _few("fl", [name for some in pieces for name in some if name])
    fields = dict.fromkeys(n for n in names if _FIELD_NAME.fullmatch(n) and n not in scope.acl_fields)
    is_whole = all(name == "*" or name in fields for name in names)
    return (None if "*" in names or not fields else tuple(fields)), is_whole


def _few(name: str, values: Sequence[str], most: int = MAX_VALUES) -> Sequence[str]:
    """Return *values*. Raises: TooManyValues: they are more than *most*."""
    if len(values) > most:
        raise TooManyValues.of(name, most)
    return values


_OF_MANY = f"More than {MAX_VALUES} values: 400. An invalid value is ignored."
_OF_FILTERS = f"One on such a field that cannot be read, or more than {MAX_VALUES}: 400. Any other is ignored."

READERS: Mapping[str, _Reader] = {
    "q": _Reader("text", _text, "The question or the words.", "Blank: 422. Over 4000 characters: 413."),
    "prompt": _Reader("text", _text, "Read as q when q is absent."),
    "action": _Reader(
        "action", _word, "rag for an answer; absent or search for a plain search.", "Any other value: 400."
    ),
    "format": _Reader("answer_format", _choice(AnswerFormat), "bulletpoint, text, stepbystep or default."),
    "linebreaks": _Reader(
        "linebreaks",
        _choice(LineBreaks),
        "escaped, newline or html: how line breaks are written in the message; absent: escaped.",
    ),
    "lang": _Reader("language", _language, "Language of the answer."),
    "stream": _Reader("is_streamed", _flag, "true: events, one per line."),
    "trace": _Reader("wants_trace", _flag, "true: the answer shows how it was made."),
    "effort": _Reader(
        "effort",
        _choice(WantedEffort),
        "none, minimal or low: in how many steps is searched; medium is as low; absent: rag.effort.",
    ),
    "max_searches": _Reader(
        "max_searches", _value(MaxSearches), "Most searches of these steps, from 1; the settings have their own limit."
    ),
    "max_model_calls": _Reader("max_model_calls", _value(MaxCount), "Most calls of the model before the answer."),
    "max_tokens": _Reader("max_tokens", _value(MaxCount), "Most tokens of the model before the answer."),
    "max_seconds": _Reader("max_seconds", _value(MaxSeconds), "How long after the question further steps may begin."),
    "id": _Reader(None, _word, "A search session; not a document."),
    "fq": _Reader(
        "restrictions", _restrictions, "field:value or field:[a TO b] on a field of solr.facets.", _OF_FILTERS
    ),
    "documents": _Reader(
        "documents",
        _documents,
        "The id of a document, repeated: only these are searched. Blank alone: nothing is found.",
        f"More than {MAX_DOCUMENTS}, or a longer id than {MAX_ID_CHARS} characters: 400.",
    ),
    "start": _Reader("start", _value(Annotated[int, Meta(ge=0, le=MAX_START)]), "First hit."),
    "rows": _Reader("rows", _rows, "Hits per page, at most 100."),
    "sort": _Reader("sort", _sort, "score, title or last_modified, asc or desc.", _OF_MANY),
    "facet": _Reader("is_counted", _flag, "true: count facet.field."),
    "facet.field": _Reader("facet_fields", _facet_fields, "A field of solr.facets.", _OF_MANY),
    "hl": _Reader("wants_highlighting", _flag, "true: snippets."),
    "fl": _Reader("fields", _fields, "Stored fields.", _OF_MANY),
    "relax": _Reader(
        "is_relaxed",
        _flag,
        "Relax the search as for an answer: require fewer words if no document contains all of them. `relaxation` in "
        "the reply shows it, with questions to ask instead.",
    ),
}
"""
The whitelist: each name, the field of `SelectParameters` it becomes, its reader, and what callers are told of it. `q`
comes before `prompt`.
"""

FOR_SEARCH = frozenset({"start", "rows", "sort", "facet", "facet.field", "hl", "fl", "relax"})
