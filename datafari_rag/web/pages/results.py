"""Solr's JSON of a plain search as values for a page: hits with their snippets, filters with counts, the next page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit

from markupsafe import Markup, escape

from datafari_rag.core.citations.labels import file_name
from datafari_rag.core.documents import first_value
from datafari_rag.core.text.folding import unescaped, without_directions, without_invisible

FIELDS = "id,title,url,last_modified,extension,preview_content"
ROWS = 10
PREVIEW_CHARS = 240

_TAG = re.compile(r"</?(?:span|em|b|strong|mark)\b[^<>]*>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Hit:
    """One result as it is shown; *snippet* is safe HTML with the words found in `<mark>`."""

    id: str
    title: str
    where: str
    date: str
    kind: str
    snippet: Markup

    @property
    def address(self) -> str:
        """Return our own page of the document."""
        return f"/documents?{urlencode({'id': self.id})}"


@dataclass(frozen=True, slots=True)
class Choice:
    """One value of a filter: how many documents have it, and the address with it switched on or off."""

    value: str
    count: int
    is_on: bool
    address: str


@dataclass(frozen=True, slots=True)
class Notes:
    """Why not all words were found, proposed searches, and documents to open: texts with addresses."""

    reason: str
    proposals: list[tuple[str, str]]
    latest: list[tuple[str, str]]


def parameters_for(arguments: Mapping[str, Sequence[str]], facets: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the parameters of a plain search for the words, filters and page in *arguments*."""
    counted = tuple(name for name in facets if name != "last_modified")
    kept = {name: tuple(arguments[name]) for name in ("q", "fq", "start", "sort", "lang") if arguments.get(name)}
    return {
        **kept,
        "rows": (str(ROWS),),
        "hl": ("true",),
        "relax": ("true",),
        "fl": (FIELDS,),
        "facet": ("true",),
        "facet.field": counted,
    }


def hits_of(found: Mapping[str, Any]) -> list[Hit]:
    """Return the hits in order; a field that is missing leaves its place empty."""
    marked = found.get("highlighting", {})
    return [_hit(row, marked.get(row.get("id"), {})) for row in found["response"]["docs"]]


def choices_of(found: Mapping[str, Any], arguments: Mapping[str, Sequence[str]]) -> dict[str, list[Choice]]:
    """Return the values of each filter by its field, the most frequent first; empty fields are left out."""
    fields: Mapping[str, Sequence[Any]] = found.get("facet_counts", {}).get("facet_fields", {})
    chosen = {name: list(_choices(name, flat, arguments)) for name, flat in fields.items()}
    return {name: choices for name, choices in chosen.items() if choices}


def notes_of(
    found: Mapping[str, Any], arguments: Mapping[str, Sequence[str]], words: Mapping[str, Any]
) -> Notes | None:
    """Return the sentence above the hits if no document has all the words, None if some document has them."""
    relaxation, total = found.get("relaxation"), int(found["response"]["numFound"])
    if relaxation is None or (total and not relaxation["isRelaxed"]):
        return None
    missing = [without_directions(word) for word in relaxation["missing"]]
    reason = words["missing"][len(missing) != 1].format(words=", ".join(missing)) if missing else words["not_all"]
    return Notes(
        f"{reason} {words['some_words']}" if total else reason,
        [(without_directions(text), address_with(arguments, q=[text], start=[])) for text in relaxation["proposals"]],
        [
            (without_directions(one["title"]), f"/documents?{urlencode({'id': one['id']})}")
            for one in relaxation["latest"]
        ],
    )


def address_with(arguments: Mapping[str, Sequence[str]], **changed: Sequence[str]) -> str:
    """Return the page's address with *changed* in place; an empty value takes a parameter out."""
    kept = {name: values for name, values in {**arguments, **changed}.items() if values}
    return "/?" + urlencode(kept, doseq=True)


def _hit(row: Mapping[str, Any], marked: Mapping[str, Sequence[str]]) -> Hit:
    # Where a link must not lead, the service gives the path of the document's own page.
    url = first_value(row, "url") or ""
    url = "" if url.startswith("/documents?") else url
    identity = str(row.get("id", ""))
    return Hit(
        id=identity,
        title=(first_value(row, "title") or "").strip() or file_name(url) or identity,
        where=_where(url or identity),
        date=(first_value(row, "last_modified") or "")[:10],
        kind=first_value(row, "extension") or "",
        snippet=_snippet(row, marked),
    )


def _snippet(row: Mapping[str, Any], marked: Mapping[str, Sequence[str]]) -> Markup:
    cuts = next((cuts for cuts in marked.values() if cuts), None)
    if cuts is not None:
        return marked_html(" … ".join(cuts))
    preview = without_directions(" ".join((first_value(row, "preview_content") or "").split()))
    return escape(preview[:PREVIEW_CHARS] + ("…" if len(preview) > PREVIEW_CHARS else ""))


def marked_html(text: str) -> Markup:
    """Return a highlighted stretch with `<mark>` in place of the engine's tags; whatever else it has is text."""
    parts, at, depth = [], 0, 0
    for tag in _TAG.finditer(text):
        parts.append(_unescaped(text[at : tag.start()]))
        is_end = tag[0].startswith("</")
        if is_end and depth:
            parts.append(Markup("</mark>"))
            depth -= 1
        elif not is_end and not depth:
            parts.append(Markup("<mark>"))
            depth += 1
        at = tag.end()
    parts.append(_unescaped(text[at:]))
    return Markup("").join([*parts, Markup("</mark>") * depth])


def _unescaped(text: str) -> Markup:
    return escape(without_directions(unescaped(text)))


def _choices(name: str, flat: Sequence[Any], arguments: Mapping[str, Sequence[str]]) -> Iterator[Choice]:
    active = list(arguments.get("fq", ()))
    for value, count in zip(flat[::2], flat[1::2], strict=False):
        spelled = f'{name}:"{_quoted(str(value))}"'
        is_on = spelled in active
        others = [one for one in active if one != spelled]
        wanted = others if is_on else [*active, spelled]
        if count or is_on:
            yield Choice(
                without_directions(str(value)), int(count), is_on, address_with(arguments, fq=wanted, start=())
            )


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


def _where(url: str) -> str:
    """Return the place of a document for people: host and folders, never credentials or parameters."""
    try:
        parts = urlsplit(url)
        return without_invisible(f"{parts.hostname or ''}{unquote(parts.path)}".strip("/").replace("/", " › "))
    except ValueError:
        return ""
