"""Values of a JSON request or of a tool's call, read one by one; an error names what does not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from datafari_rag.core.ask import MAX_QUESTION_CHARS, Restriction
from datafari_rag.core.errors import BadRequest, NoQuery, QueryTooLong, TooManyValues
from datafari_rag.core.query.filter_queries import MAX_FILTER_CHARS, restriction_of
from datafari_rag.core.settings.checks import CONTROL
from datafari_rag.core.text.folding import is_unicode

MAX_FILTERS = 20
MAX_TURNS = 100
MAX_ID_CHARS = 2048
"""Longest id of a document that is looked up."""

ROLES = ("user", "assistant")


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a client sent, by name; every method raises `BadRequest` for a value that does not fit."""

    values: Mapping[str, object]

    @classmethod
    def of(cls, values: object, names: Sequence[str]) -> Arguments:
        """Return *values* when they are an object with none but *names* in it."""
        if not isinstance(values, Mapping):
            raise BadRequest("arguments must be an object.", field="arguments")
        if not set(values) <= set(names):
            raise BadRequest(f"Unknown argument. The arguments are: {', '.join(names)}.", field="arguments")
        return cls(values)

    def question(self, name: str) -> str:
        """Return the question or the words at *name*. Raises: NoQuery, QueryTooLong."""
        text = self.text(name, most_chars=None)
        if not text.strip():
            raise NoQuery(field=name)
        if len(text) > MAX_QUESTION_CHARS:
            raise QueryTooLong(field=name)
        return text

    def text(self, name: str, *, most_chars: int | None) -> str:
        """Return the text at *name*, the empty one where it is absent."""
        text = self.values.get(name, "")
        if not isinstance(text, str) or not is_unicode(text):
            raise BadRequest(f"{name} must be a string.", field=name)
        if most_chars is not None and len(text) > most_chars:
            raise BadRequest(f"{name} must have at most {most_chars} characters.", field=name)
        return text

    def document_id(self, name: str) -> str:
        """Return the id of a document at *name*."""
        text = self.text(name, most_chars=MAX_ID_CHARS)
        if not text:
            raise BadRequest(f"{name} must be the id of a document.", field=name)
        return text

    def document_ids(self, name: str, *, most: int) -> tuple[str, ...]:
        """Return one to *most* ids of documents at *name*, the same one once."""
        ids = self.values.get(name)
        if not isinstance(ids, list) or not ids:
            raise BadRequest(f"{name} must be a list of ids of documents.", field=name)
        if len(ids) > most:
            raise TooManyValues.of(name, most)
        return tuple(dict.fromkeys(Arguments({name: one}).document_id(name) for one in ids))

    def integer(self, name: str, default: int, *, low: int, high: int) -> int:
        """Return the whole number at *name*, *default* where it is absent."""
        number = self.values.get(name, default)
        if not isinstance(number, int) or isinstance(number, bool) or not low <= number <= high:
            raise BadRequest(f"{name} must be a whole number from {low} to {high}.", field=name)
        return number

    def choice(self, name: str, allowed: Sequence[str]) -> str:
        """Return the one of *allowed* at *name*, the first where it is absent."""
        value = self.values.get(name, allowed[0])
        if not isinstance(value, str) or value not in allowed:
            raise BadRequest(f"{name} must be one of: {', '.join(allowed)}.", field=name)
        return value

    def restrictions(self, name: str, facets: frozenset[str]) -> tuple[Restriction, ...]:
        """Return what narrows the search at *name*: a value or a range `[a TO b]` for some of *facets*."""
        filters = self.values.get(name, {})
        if not isinstance(filters, Mapping):
            raise BadRequest(f"{name} must be an object of fields and values.", field=name)
        if len(filters) > MAX_FILTERS:
            raise TooManyValues.of(name, MAX_FILTERS)
        return tuple(_restriction(name, field, value, facets) for field, value in filters.items())

    def turns(self, name: str) -> list[dict[str, object]]:
        """Return the conversation at *name* as messages, the oldest first."""
        turns = self.values.get(name, [])
        if not isinstance(turns, list):
            raise BadRequest(f"{name} must be a list of turns.", field=name)
        if len(turns) > MAX_TURNS:
            raise TooManyValues.of(name, MAX_TURNS)
        return [_turn(name, turn) for turn in turns]


def _restriction(name: str, field: str, value: object, facets: frozenset[str]) -> Restriction:
    if field not in facets:
        raise BadRequest(f"{name} takes these fields: {', '.join(sorted(facets)) or 'none'}.", field=name)
    if not isinstance(value, str) or not 0 < len(value) <= MAX_FILTER_CHARS or CONTROL.search(value):
        raise BadRequest(f"Each item of {name} must be a string.", field=name)
    is_range = value.startswith("[") and value.endswith("]")
    ranged = restriction_of(f"{field}:{value}", facets) if is_range else None
    return ranged or Restriction(field, value=value)


def _turn(name: str, turn: object) -> dict[str, object]:
    if not isinstance(turn, Mapping) or turn.get("role") not in ROLES or not isinstance(turn.get("content"), str):
        raise BadRequest(
            f"Each turn of {name} must have a role (user or assistant) and a content (a string).", field=name
        )
    return {"role": turn["role"], "content": turn["content"]}
