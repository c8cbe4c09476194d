"""
The answer's Markdown as safe HTML, for the page without script: `static/prose.js` builds the same in the browser.

Every character of the answer is escaped; only our own elements come out. A link leads to one of this answer's
documents on this server or is none; an image is never made.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

from markupsafe import Markup, escape

from datafari_rag.core.citations.markers import numbers_in
from datafari_rag.core.text.folding import folded

Json = Mapping[str, object]

SHAPES = {"verified": "✓", "supported": "≈", "unsupported": "✕", "unknown": "?"}
"""What stands beside a badge's number, so that colour is never alone in saying it."""

_BLOCK = re.compile(r"\s*(?:(#{1,6})\s+|([-*•–])\s+|(\d{1,3})[.)]\s+)(.*)")
_FENCE = re.compile(r"\s*```")
_INLINE = re.compile(
    r"`(?P<code>[^`\n]+)`"
    r"|\*\*(?=\S)(?P<bold>.+?)(?<=\S)\*\*"
    r"|(?<![\w*])\*(?=[^\s*])(?P<italic>[^*\n]+?)(?<=\S)\*(?![\w*])"
    r"|[\[【［](?P<mark>[^\[\]【】［］\n]{1,240})[\]】］](?:\((?P<target>[^()\s]{1,2000})\))?"
)
_LISTS = {"bullet": "ul", "number": "ol"}


@dataclass
class Marks:
    """The citations of an answer, handed out in the order of its marks; *documents* are those of the reply."""

    citations: Sequence[Json]
    documents: Sequence[Json]
    words: Mapping[str, str]
    taken: int = field(default=0, init=False)

    def badges(self, inside: str) -> Markup | None:
        """Return the badges of the mark with *inside* between its brackets, None when it is no mark but text."""
        count = self._count(inside)
        if not count:
            return None
        mine = self.citations[self.taken : self.taken + count]
        self.taken += count
        return Markup("").join(self._badge(citation) for citation in mine)

    def place(self, document_id: object) -> int | None:
        """Return the number of the document, counted from 1."""
        ids = [document["id"] for document in self.documents]
        return ids.index(document_id) + 1 if document_id in ids else None

    def _count(self, inside: str) -> int:
        if self.taken >= len(self.citations):
            return 0
        label, wanted = str(self.citations[self.taken]["label"]), folded(inside)
        if wanted == folded(label):
            return 1
        return sum(1 <= number <= len(self.documents) for number in numbers_in(wanted))

    def _badge(self, citation: Json) -> Markup:
        status = str(citation["status"])
        number = self.place(citation["document_id"])
        inner = Markup('{}<span aria-hidden="true" class="shape">{}</span><span class="unseen"> {}</span>').format(
            number or "", SHAPES[status], self.words[status]
        )
        if citation["document_id"] is None:
            return Markup('<span class="badge {}" title="{}">{}</span>').format(status, citation["label"], inner)
        return Markup('<a class="badge {}" href="{}" title="{}">{}</a>').format(
            status, address_of(citation), citation["label"], inner
        )


def address_of(citation: Json) -> str:
    """Return the address of our own page that shows the cited passage, or only its document when none is known."""
    place = {name: citation[name] for name in ("field", "start", "end") if citation.get(name) is not None}
    passage = "#passage" if "start" in place else ""
    return f"/documents?{urlencode({'id': str(citation['document_id']), **place})}{passage}"


def html_of(text: str, marks: Marks) -> Markup:
    """Return *text* as paragraphs, lists, headings and code, with badges for its marks."""
    return Markup("").join(_blocks(text, marks))


def _blocks(text: str, marks: Marks) -> Iterator[Markup]:
    for kind, lines in _grouped(text):
        if kind == "code":
            yield Markup('<pre dir="ltr"><code>{}</code></pre>').format("\n".join(lines))
        elif kind in _LISTS:
            items = Markup("").join(Markup("<li>{}</li>").format(_inline(line, marks)) for line in lines)
            yield Markup('<{0} dir="auto">{1}</{0}>').format(_LISTS[kind], items)
        else:
            tag = "h4" if kind == "heading" else "p"
            body = Markup("<br>").join(_inline(line, marks) for line in lines)
            yield Markup('<{0} dir="auto">{1}</{0}>').format(tag, body)


def _grouped(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield (kind, lines) for each block, lines without their signs."""
    kind = ""
    lines: list[str] = []
    is_code = False
    for line in text.splitlines():
        if _FENCE.match(line):
            if lines:
                yield kind, lines
            is_code, kind, lines = not is_code, "code", []
            continue
        this, rest = ("code", line) if is_code else _kind_of(line)
        if lines and (this != kind or this in ("", "heading")):
            yield kind, lines
            lines = []
        kind = this
        if this:
            lines.append(rest)
    if lines:
        yield kind, lines


def _kind_of(line: str) -> tuple[str, str]:
    found = _BLOCK.fullmatch(line)
    if found is None:
        return ("paragraph", line.strip()) if line.strip() else ("", "")
    kind = "heading" if found[1] else "bullet" if found[2] else "number"
    return kind, found[4]


def _inline(text: str, marks: Marks) -> Markup:
    shown, at = [], 0
    for found in _INLINE.finditer(text):
        shown += [escape(text[at : found.start()]), _piece(found, marks)]
        at = found.end()
    return Markup("").join([*shown, escape(text[at:])])


def _piece(found: re.Match[str], marks: Marks) -> Markup:
    if found["code"]:
        return Markup('<code dir="ltr">{}</code>').format(found["code"])
    for name, tag in (("bold", "strong"), ("italic", "em")):
        if found[name]:
            return Markup("<{0}>{1}</{0}>").format(tag, _inline(found[name], marks))
    if found["target"]:
        return _link(found["mark"], found["target"], marks)
    badges = marks.badges(found["mark"])
    return escape(found[0]) if badges is None else badges


def _link(words: str, target: str, marks: Marks) -> Markup:
    document = next((document for document in marks.documents if document["url"] == target), None)
    if document is None:
        return escape(words)
    address = f"/documents?{urlencode({'id': str(document['id'])})}"
    return Markup('<a href="{}">{}</a>').format(address, words)
