"""
What a Solr collection is made of, as far as its searches need to know: names, kinds, which fields are there.

An existing collection may lack a field of this program; a field known to be absent is not requested, because
Solr answers 400 to a search in a field it does not have. Nothing is ever left out of the rights filter for that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from datafari_rag.core.access import ACL_FIELDS
from datafari_rag.core.documents import STAMP_FIELD
from datafari_rag.core.search_request import Fields

Kind = Literal["text", "date", "number"]

FIELD_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
"""A name that a parameter can contain without being read as syntax."""

_DATES = ("last_modified", "creation_date", "crawl_date")
_KINDS: Mapping[str, Kind] = {"Date": "date", "Int": "number", "Long": "number", "Float": "number", "Double": "number"}
_CLASS = re.compile(r"(?:.*\.)?(?:Trie)?(Date|Int|Long|Float|Double)(?:Point|Range)?Field")
_DATAFARI = Fields()


@dataclass(frozen=True, slots=True)
class Schema:
    """
    Names and kinds of the fields of one collection.

    *kinds* is name → kind for each field that is there, a name with a star for a dynamic field; None when the
    collection did not say, and then every field is taken to be there. *languages* are those of `content_en` and the
    like.
    """

    fields: Fields = _DATAFARI
    languages: tuple[str, ...] = ("en", "fr", "de", "es")
    kinds: Mapping[str, Kind] | None = None
    copied: frozenset[str] = frozenset()
    """The fields that Solr fills itself from others (`copyField`)."""

    def has(self, name: str) -> bool:
        """Say whether documents can have a field *name*; an empty name is not a field."""
        if not FIELD_NAME.fullmatch(name):
            return False
        return self.kinds is None or self._declared(name) is not None

    def kind(self, name: str) -> Kind:
        """Return what values of *name* must look like, "text" where nothing is known of it."""
        if self.kinds is None:
            return "date" if name in (self.fields.last_modified, *_DATES) else "text"
        return self._declared(name) or "text"

    def acl(self, name: str) -> str:
        """Return the collection's own name of the ACL field *name*."""
        return self.fields.acl.get(name, name)

    def is_acl(self, name: str) -> bool:
        """Say whether *name* tells of rights: an ACL field, under Datafari's name or its own, or the stamp."""
        return name in (*ACL_FIELDS, STAMP_FIELD) or name in self.fields.acl.values()

    def contents(self, language: str) -> tuple[str, ...]:
        """Return the stemmed body fields, the one of *language* first."""
        return self._by_language(self.fields.content_prefix, language)

    def titles(self, language: str) -> tuple[str, ...]:
        """Return the title fields that can be searched: the copy of *language*, the others, the exact one."""
        if self.fields.title != _DATAFARI.title:
            # A custom schema has its own title field, not the copies of this project.
            return (self.fields.title,) if self.has(self.fields.title) else ()
        exact = (self.fields.exact_title,) if self.has(self.fields.exact_title) else ()
        return (*self._by_language(self.fields.title_prefix, language), *exact)

    def fillable(self, language: str) -> Mapping[str, str]:
        """
        Return the searched copies that a writer has to fill, for a document in *language*: name → title or url.

        Empty where the collection did not say which fields it has.
        """
        fields = self.fields
        own = (fields.title_prefix + language, fields.exact_title)
        copies = {name: fields.title for name in self.titles(language) if name in own}
        copies |= {fields.url_search: fields.url} if self.has(fields.url_search) else {}
        return {name: source for name, source in copies.items() if self.kinds is not None and name not in self.copied}

    def is_text(self, name: str) -> bool:
        """Say whether *name* is one of the fields whose stored text a reader may open."""
        return name in (self.fields.exact_content, self.fields.preview_content, *self.contents(""))

    def _by_language(self, prefix: str, language: str) -> tuple[str, ...]:
        ordered = sorted(self.languages, key=lambda code: code != language)
        return tuple(prefix + code for code in ordered if prefix and self.has(prefix + code))

    def _declared(self, name: str) -> Kind | None:
        kinds = self.kinds or {}
        if name in kinds:
            return kinds[name]
        # Solr allows one star, at either end.
        ends = [p for p in kinds if p.startswith("*") and name.endswith(p[1:])]
        begins = [p for p in kinds if p.endswith("*") and name.startswith(p[:-1])]
        return kinds[max(ends + begins, key=len)] if ends or begins else None


def kinds_of(schema: Mapping[str, object]) -> Mapping[str, Kind] | None:
    """Return name → kind from Solr's own description (`/schema`), None when that is not one."""
    classes = {row.get("name"): _CLASS.fullmatch(str(row.get("class", ""))) for row in _rows(schema, "fieldTypes")}
    declared = [row for key in ("fields", "dynamicFields") for row in _rows(schema, key) if "name" in row]
    matches = {str(row["name"]): classes.get(row.get("type")) for row in declared}
    return {name: _KINDS[match[1]] if match else "text" for name, match in matches.items()} or None


def copied_in(schema: Mapping[str, object]) -> frozenset[str]:
    """Return the fields that Solr's own description (`/schema`) says it fills itself."""
    return frozenset(str(row["dest"]) for row in _rows(schema, "copyFields") if "dest" in row)


def _rows(schema: Mapping[str, object], key: str) -> Iterable[Mapping[str, object]]:
    value = schema.get(key)
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []
