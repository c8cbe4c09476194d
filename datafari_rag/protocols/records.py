"""
What callers send, as declared records: one declaration says what is read, what is refused, and how it is described.

A record is a `msgspec.Struct`. A value that does not fit is an error that names its field; what the field must be is
said from the declaration, never in the words of the library. What a declaration cannot say is the protocol's to check.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import cache
from typing import Annotated, Any, TypeVar, cast

import msgspec
from msgspec import UNSET, Meta, inspect

from datafari_rag.core.ask import MAX_DOCUMENTS, MAX_ID_CHARS, MAX_QUESTION_CHARS
from datafari_rag.core.errors import BadRequest, NoQuery, QueryTooLong, RagError, TooManyValues
from datafari_rag.core.text.cleaning import is_unicode

Json = dict[str, Any]
Record = TypeVar("Record")

NOT_BLANK = r"\S"

Question = Annotated[
    str, Meta(pattern=NOT_BLANK, max_length=MAX_QUESTION_CHARS, extra={"absent": True, "too long": True})
]
"""Words to be searched. Its notes say that there are errors of their own for none and for too many."""

DocumentId = Annotated[str, Meta(min_length=1, max_length=MAX_ID_CHARS, extra={"must": "the id of a document"})]

DocumentIds = Annotated[list[DocumentId], Meta(max_length=MAX_DOCUMENTS, extra={"must": "a list of ids of documents"})]
"""The only documents that may be found; none are found where it is empty."""


def about(text: str, **bounds: Any) -> Meta:
    """Return the note of a field in words, with its bounds."""
    return Meta(description=text, **bounds)


# Reading a declaration takes a hundred times as long as refusing a value by it.
_declared = cache(inspect.type_info)

_MISSING = re.compile(r"\AObject missing required field `([^`]+)`")
_UNKNOWN = "Object contains unknown field"
_PLACE = re.compile(r"`\$([^`]*)`\Z")
_STEP = re.compile(r"\.([^.\[]+)|\[([0-9]+|\.\.\.)\]")


def read(
    record: type[Record], values: object, *, whole: str | None = None, is_deep: bool = False, path: str = ""
) -> Record:
    """
    Return *values* as *record*; names that it does not have are ignored unless it forbids them.

    An error names the field of the record that does not fit, with *is_deep* also the place in it. *whole* is what the
    values are together, where they are a part of the request, and *path* what their names begin with there.

    Raises:
        NoQuery, QueryTooLong: a question is absent or too long.
        TooManyValues: a list or an object is longer than it may be.
        BadRequest: any other value that does not fit.
    """
    try:
        return msgspec.convert(values, record)
    except msgspec.ValidationError as error:
        message = str(error)
    # The path that the message ends with; all else that it says is not shown. After an unknown name follow a caller's
    # words, which may look like a path; only whole bodies forbid names.
    found, missing = _PLACE.search(message), _MISSING.match(message)
    place = "" if message.startswith(_UNKNOWN) else (found[1] if found else "") + (f".{missing[1]}" if missing else "")
    kind, misfit = _declared(cast("Any", record)), cast("Any", values)
    named, steps = None, list(_STEP.finditer(place))
    for step in steps:
        holder = next(bare for bare in _bare(kind) if isinstance(bare, _HOLDERS))
        if isinstance(holder, inspect.StructType):
            kind = next(field.type for field in holder.fields if field.encode_name == step[1])
            misfit = misfit.get(step[1], UNSET)
        elif isinstance(holder, inspect.ListType):
            kind, misfit = holder.item_type, misfit[int(step[2])]
        else:
            kind, misfit = holder.value_type, None
        named = _metadata_extra(kind, "field") or named
    full_path = f"{path}{place.lstrip('.')}" if steps else ""
    named = named and path + named
    field = named or (full_path if is_deep or not steps else path + steps[0][0].lstrip(".")) or whole
    subject = f"Each value of {full_path[:-5]}" if full_path.endswith("[...]") else full_path or whole or "The body"
    raise _error(kind, misfit, field, subject=named or subject)


def distinct(texts: Iterable[str]) -> tuple[str, ...]:
    """Return *texts* in their order, the same one once."""
    return tuple(dict.fromkeys(texts))


def text_at(path: str, text: str) -> str:
    """Return *text*, which was sent as *path*. Raises: BadRequest: it has what no text has, lone surrogates."""
    if not is_unicode(text):
        raise BadRequest(f"{path} is not valid Unicode text.", field=path)
    return text


MAX_NOTED = 40
MAX_NOTED_CHARS = 60


def unknown_names(record: type[msgspec.Struct], values: object, *, known: Container[str] = ()) -> list[str]:
    """Return the names of what was sent and is not in *record*, each cut, and the first of many; null is absent."""
    sent = [name for name, value in values.items() if value is not None] if isinstance(values, Mapping) else []
    unread = [name for name in sent if name not in record.__struct_encode_fields__ and name not in known]
    return [name[:MAX_NOTED_CHARS] for name in unread[:MAX_NOTED]]


def schema_of(record: type) -> Json:
    """Return the JSON Schema of *record* in one piece, for readers that follow no references."""
    (whole,), parts = msgspec.json.schema_components([record], ref_template="{name}")
    return {key: value for key, value in _plain(whole, parts).items() if key != "description"}


def schemas_of(*records: type[msgspec.Struct], ref_template: str) -> dict[str, Json]:
    """Return the JSON Schemas of *records* and of what they hold, by name; they refer to each other by the template."""
    _, parts = msgspec.json.schema_components(records, ref_template=ref_template)
    return {name: _plain(schema) for name, schema in parts.items()}


def _plain(schema: Any, parts: Mapping[str, Json] | None = None) -> Any:
    """
    Return *schema* without what says nothing: the names of classes, and that what is absent is null.

    With *parts*, each reference is replaced by what it names there.
    """
    if isinstance(schema, list):
        return [_plain(inner, parts) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    if parts is not None and "$ref" in schema:
        return _plain(parts[schema["$ref"]], parts)
    is_silent = {"title": isinstance(schema.get("title"), str), "default": schema.get("default", 0) is None}
    return {key: _plain(inner, parts) for key, inner in schema.items() if not is_silent.get(key, False)}


def _error(kind: inspect.Type, value: Any, field: str | None, *, subject: str) -> RagError:
    is_text = isinstance(value, str)
    bounds: list[Any] = [bare for bare in _bare(kind) if isinstance(value, _SIZED.get(type(bare), ()))]
    most = next((bare.max_length for bare in bounds if bare.max_length is not None), None)
    if most is not None and len(value) > most:
        if not is_text:
            return TooManyValues.of(field or subject, most)
        if _metadata_extra(kind, "too long"):
            return QueryTooLong(field=field)
    if _metadata_extra(kind, "absent") and (value is UNSET or (is_text and not value.strip())):
        return NoQuery(f"{subject} is missing or blank.", field=field)
    return BadRequest(f"{subject} must be {expectation(kind)}.", field=field)


def expectation(kind: inspect.Type) -> str:
    """Return what "must be …" is completed by for a value of *kind*, null left out."""
    return _metadata_extra(kind, "must") or " or ".join(dict.fromkeys(map(_expectation, _bare(kind))))


def _expectation(kind: inspect.Type) -> str:
    match kind:
        case inspect.BoolType():
            return "true or false"
        case inspect.LiteralType():
            return f"one of: {', '.join(filter(None, map(str, kind.values)))}"
        case inspect.IntType():
            return "a whole number" + _range(kind.ge, kind.le)
        case inspect.FloatType():
            return "a number" + _range(kind.ge, kind.le)
        case inspect.StrType():
            return "a string" if kind.max_length is None else f"a string of at most {kind.max_length} characters"
        case inspect.ListType():
            return "a list"
        case inspect.StructType(forbid_unknown_fields=True):
            return f"an object with no other names than {', '.join(field.encode_name for field in kind.fields)}"
    return "an object"


def _range(low: float | None, high: float | None) -> str:
    if low is None:
        return ""
    return f" of at least {low:.16g}" if high is None else f" from {low:.16g} to {high:.16g}"


def _bare(kind: inspect.Type) -> Iterator[inspect.Type]:
    """Yield what a value of *kind* may be, without notes and null."""
    if isinstance(kind, inspect.Metadata):
        yield from _bare(kind.type)
    elif isinstance(kind, inspect.UnionType):
        for member in kind.types:
            yield from _bare(member)
    elif not isinstance(kind, inspect.NoneType):
        yield kind


def _metadata_extra(kind: inspect.Type, name: str) -> Any:
    """Return the entry *name* of `msgspec.Meta(extra=…)`, looked for through unions and nested metadata; else None."""
    if isinstance(kind, inspect.UnionType):
        return next(filter(None, (_metadata_extra(member, name) for member in kind.types)), None)
    if not isinstance(kind, inspect.Metadata):
        return None
    return (kind.extra or {}).get(name) or _metadata_extra(kind.type, name)


_HOLDERS = (inspect.StructType, inspect.ListType, inspect.DictType)
_SIZED: Mapping[type, Any] = {inspect.StrType: str, inspect.ListType: list, inspect.DictType: dict}
