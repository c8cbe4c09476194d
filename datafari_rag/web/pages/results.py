"""Solr's JSON of a plain search as values for a page: hits with their snippets, filters with counts, the next page."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from datafari_rag.core.documents import first_value
from datafari_rag.core.proof.labels import file_name
from datafari_rag.core.text.cleaning import unescaped, without_directions, without_invisible

FIELDS = "id,title,url,last_modified,extension,preview_content"
ROWS = 10
PREVIEW_CHARS = 240
MAX_ACTIVE = 20
"""Filters that can be taken off one by one: each has an address with all the others, which may be long."""

_DAYS = re.compile(
    r"last_modified:\[(?:\*|(\d{4}-\d\d-\d\d)T00:00:00Z) TO (?:\*|(\d{4}-\d\d-\d\d)T23:59:59Z)\]", re.ASCII
)
"""The filter that the form of days makes; one that a caller wrote in another way is shown as it is."""

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
    """Why not all words were found, and documents to open: titles with addresses."""

    reason: str
    latest: list[tuple[str, str]]


def parameters_for(arguments: Mapping[str, Sequence[str]], facets: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the parameters of a plain search for the words, filters and page in *arguments*."""
    counted = tuple(name for name in facets if name != "last_modified")
    values = {name: tuple(arguments[name]) for name in ("q", "fq", "start", "sort", "lang") if arguments.get(name)}
    return {
        **values,
        "rows": (str(ROWS),),
        "hl": ("true",),
        "relax": ("true",),
        "fl": (FIELDS,),
        "facet": ("true",),
        "facet.field": counted,
    }


def hits_of(reply: Mapping[str, Any]) -> list[Hit]:
    """Return the hits in order; a field that is missing leaves its place empty."""
    marked = reply.get("highlighting", {})
    return [_hit(row, marked.get(row.get("id"), {})) for row in reply["response"]["docs"]]


def choices_of(reply: Mapping[str, Any], arguments: Mapping[str, Sequence[str]]) -> dict[str, list[Choice]]:
    """Return the values of each filter by its field, the most frequent first; empty fields are left out."""
    fields: Mapping[str, Sequence[Any]] = reply.get("facet_counts", {}).get("facet_fields", {})
    chosen = {name: list(_choices(name, flat, arguments)) for name, flat in fields.items()}
    return {name: choices for name, choices in chosen.items() if choices}


def notes_of(reply: Mapping[str, Any], words: Mapping[str, Any]) -> Notes | None:
    """Return the sentence above the hits if no document has all the words, None if some document has them."""
    relaxation, total = reply.get("relaxation"), int(reply["response"]["numFound"])
    if relaxation is None or (total and not relaxation["isRelaxed"]):
        return None
    missing = [without_directions(word) for word in relaxation["missing"]]
    reason = words["missing"][len(missing) != 1].format(words=", ".join(missing)) if missing else words["not_all"]
    return Notes(
        f"{reason} {words['some_words']}" if total else reason,
        [
            (without_directions(row["title"]), f"/documents?{urlencode({'id': row['id']})}")
            for row in relaxation["latest"]
        ],
    )


def address_with(arguments: Mapping[str, Sequence[str]], **changed: Sequence[str]) -> str:
    """Return the page's address with *changed* in place; an empty value takes a parameter out."""
    present = {name: values for name, values in {**arguments, **changed}.items() if values}
    return "/?" + urlencode(present, doseq=True)


def dated(arguments: Mapping[str, Sequence[str]]) -> str | None:
    """Return the page's address with the days of its form as a filter, None where the form was not sent."""
    if not {"since", "until"} & arguments.keys():
        return None
    since, until = (_day(arguments.get(name, ("",))[0]) for name in ("since", "until"))
    filters = [text for text in arguments.get("fq", ()) if not _DAYS.fullmatch(text)]
    if since or until:
        first, last = f"{since}T00:00:00Z" if since else "*", f"{until}T23:59:59Z" if until else "*"
        filters.append(f"last_modified:[{first} TO {last}]")
    return address_with(arguments, fq=filters, since=(), until=(), start=())


def days_of(arguments: Mapping[str, Sequence[str]]) -> tuple[str, str]:
    """Return the first and the last day that the results are narrowed to, "" for none."""
    found = (_DAYS.fullmatch(text) for text in arguments.get("fq", ()))
    return next(((match[1] or "", match[2] or "") for match in found if match), ("", ""))


def active_filters(arguments: Mapping[str, Sequence[str]], names: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the first filters in words, a field called as *names* say, each with the page's address without it."""
    filters = arguments.get("fq", ())
    return [
        (_in_words(text, names), address_with(arguments, fq=[other for other in filters if other != text], start=()))
        for text in tuple(dict.fromkeys(filters))[:MAX_ACTIVE]
    ]


def _in_words(text: str, names: Mapping[str, str]) -> str:
    field, _, value = text.partition(":")
    if days := _DAYS.fullmatch(text):
        value = f"{days[1] or '…'} – {days[2] or '…'}"
    elif value.startswith('"') and value.endswith('"'):
        value = re.sub(r"\\(.)", r"\1", value[1:-1])
    return without_directions(f"{names.get(field, field)}: {value}")


def _day(text: str) -> str:
    """Return *text* as a day, "" where it is none."""
    try:
        return datetime.date.fromisoformat(text).isoformat()
    except ValueError:
        return ""


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
        others = [other for other in active if other != spelled]
        filters = others if is_on else [*active, spelled]
        if count or is_on:
            yield Choice(
                without_directions(str(value)), int(count), is_on, address_with(arguments, fq=filters, start=())
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


Json = Mapping[str, Any]

SHAPES = {"verified": "✓", "quoted": "○", "near": "○", "unsupported": "–", "unknown": "?"}
"""The sign next to a badge's number, so that the status is never shown by colour alone."""


def states(citation: Json) -> bool:
    """Say whether the badge of *citation* has a status: what states nothing has a number alone."""
    return bool(citation["claim"]) or citation["document_id"] is None


_READER = (
    MarkdownIt("commonmark", {"breaks": True, "maxNesting": 20})
    .enable("table")
    .disable(["blockquote", "code", "hr", "html_block", "lheading", "reference"])
    .disable(["autolink", "entity", "escape", "html_inline", "image", "link"])
)
"""Reads what an answer is laid out by, as `static/prose.js` does: no link, image or tag, whose signs are text."""

_MASK = "\ufffc"
"""Around the number of a mark while Markdown is read: a mark is never part of code, of a link or of a list."""

_HIDDEN = re.compile(f"{_MASK}([0-9]*){_MASK}")
_BULLET = re.compile(r"^([ \t]*)[•–](?=[ \t])", re.MULTILINE)
_BEHIND_ROW = re.compile(rf"\|[ \t]*((?:{_MASK}[0-9]+{_MASK}[ \t]*)+)$", re.MULTILINE)
"""Marks behind the last bar of a row: a reader of tables drops what is no cell of a column."""

_TAGS = {
    "paragraph_open": '<p dir="auto">',
    "paragraph_close": "</p>",
    "heading_open": '<h4 dir="auto">',
    "heading_close": "</h4>",
    "bullet_list_open": '<ul dir="auto">',
    "bullet_list_close": "</ul>",
    "ordered_list_open": '<ol dir="auto">',
    "ordered_list_close": "</ol>",
    "list_item_open": "<li>",
    "list_item_close": "</li>",
    "table_open": '<div class="wide"><table dir="auto">',
    "table_close": "</table></div>",
    "softbreak": "<br>",
    "hardbreak": "<br>",
    **{f"{name}_open": f"<{name}>" for name in ("tr", "th", "td", "strong", "em")},
    **{f"{name}_close": f"</{name}>" for name in ("tr", "th", "td", "strong", "em")},
}


@dataclass
class PlacedCitations:
    """The citations of an answer by their marks; *documents* are those of the reply, our links begin with *root*."""

    citations: Sequence[Json]
    documents: Sequence[Json]
    words: Mapping[str, str]
    root: str = ""
    _marks: list[list[Json]] = field(default_factory=list, init=False)
    _numbers: dict[object, int] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Gather the citations of each mark, and number the documents."""
        by_start: dict[int, list[Json]] = {}
        for citation in self.citations:
            by_start.setdefault(citation["answer_start"], []).append(citation)
        self._marks = [by_start[start] for start in sorted(by_start)]
        for number, document in enumerate(self.documents, 1):
            self._numbers.setdefault(document["id"], number)

    def masked(self, text: str) -> str:
        """Return *text* with the number of each mark in its place, and the sign around them where it was twice."""
        pieces, at = [], 0
        for number, (first, *_) in enumerate(self._marks):
            pieces += [text[at : first["answer_start"]].replace(_MASK, _MASK * 2), f"{_MASK}{number}{_MASK}"]
            at = first["answer_end"]
        return "".join([*pieces, text[at:].replace(_MASK, _MASK * 2)])

    def shown(self, masked: str, text: str | None = None) -> Markup:
        """Return *masked* with the badges of its marks, or in code with their own characters of the whole *text*."""
        pieces, at = [], 0
        for found in _HIDDEN.finditer(masked):
            pieces.append(escape(without_directions(masked[at : found.start()])))
            at = found.end()
            mine = self._marks[int(found[1])] if found[1] else []
            if text is None and mine:
                pieces += [self._badge(citation) for citation in mine]
            else:
                own = text[mine[0]["answer_start"] : mine[0]["answer_end"]] if text is not None and mine else _MASK
                pieces.append(escape(without_directions(own)))
        return _joined([*pieces, escape(without_directions(masked[at:]))])

    def place(self, document_id: object) -> int | None:
        """Return the number of the document, counted from 1."""
        return self._numbers.get(document_id)

    def _badge(self, citation: Json) -> Markup:
        label, is_unknown = without_directions(str(citation["label"])), citation["document_id"] is None
        is_proved = states(citation)
        status = str(citation["status"]) if is_proved else "plain"
        shape = _element("span", escape(SHAPES[status]), ' aria-hidden="true" class="shape"') if is_proved else Markup()
        said = f" {label}: {self.said(citation)}" if is_proved else f" {label}"
        number = escape(self.place(citation["document_id"]) or "")
        inner = _joined((number, shape, _element("span", escape(said), ' class="said"')))
        if is_unknown:
            return _element("span", inner, f' class="badge {escape(status)}" tabindex="0"')
        return _element(
            "a", inner, f' class="badge {escape(status)}" href="{escape(self.root + address_of(citation))}"'
        )

    def said(self, citation: Json) -> str:
        """Return what a badge says: its status in words, and how a near place differs."""
        lists = [(self.words[name], ", ".join(citation[name])) for name in ("missing", "added") if citation[name]]
        differing = [told.format(words=without_invisible(words)) for told, words in lists]
        return ". ".join([self.words[str(citation["status"])], *differing])


def quote_of(citation: Json) -> Markup:
    """Return the whole statement of a citation, with the words of the answer marked where they are a part of it."""
    quote, match = str(citation["quote"] or ""), citation.get("match_start")
    if citation["status"] != "quoted" or match is None:
        return escape(without_invisible(quote))
    start, end = match - citation["start"], citation["match_end"] - citation["start"]
    parts = [escape(without_invisible(part)) for part in (quote[:start], quote[start:end], quote[end:])]
    return _joined((parts[0], _element("mark", parts[1]), parts[2]))


def address_of(citation: Json) -> str:
    """Return the address of the page that shows the cited passage, or only its document if the passage is unknown."""
    place = {name: citation[name] for name in ("field", "start", "end", "page") if citation.get(name) is not None}
    passage = "#passage" if "start" in place else ""
    return f"/documents?{urlencode({'id': str(citation['document_id']), **place})}{passage}"


def html_of(text: str, marks: PlacedCitations) -> Markup:
    """Return *text* as paragraphs, lists, tables, headings and code, with badges for its marks."""
    masked = _BEHIND_ROW.sub(r" \1|", _BULLET.sub(r"\1-", marks.masked(text)))
    return _joined(_shown(token, text, marks) for token in _READER.parse(masked))


def _shown(token: Token, text: str, marks: PlacedCitations) -> Markup:
    if token.type == "inline":
        return _joined(_shown(child, text, marks) for child in token.children or ())
    if token.type == "text":
        return marks.shown(token.content)
    if token.type in ("code_inline", "fence"):
        code, own = marks.shown(token.content.removesuffix("\n"), text), ' dir="ltr"'
        is_block = token.type == "fence"
        return _element("pre", _element("code", code), own) if is_block else _element("code", code, own)
    return Markup("" if token.hidden else _TAGS.get(token.type, ""))  # noqa: S704 # nosec B704 # a tag of our own


def _element(tag: str, inner: Markup, traits: str = "") -> Markup:
    """Return an element of our own, *traits* included, around what is escaped already."""
    return Markup(f"<{tag}{traits}>{inner}</{tag}>")  # noqa: S704 # nosec B704 # nothing here is not escaped


def _joined(pieces: Iterable[Markup]) -> Markup:
    """Join what is escaped already. `Markup.join` would look for what is not, which takes longer than all else here."""
    return Markup("".join(pieces))  # noqa: S704 # nosec B704 # each piece is `Markup`
