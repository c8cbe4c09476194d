"""
What a text states, piece by piece: sentences, items of lists, rows of tables and headings, as offsets.

One rule says where a sentence ends: at a mark before a new beginning, save behind abbreviations, initials and numbers.
Search and evidence also cut at lines that are not wrapped (`spans`); a proof does not (`statements`), and keeps what
introduces a statement. Nothing is normalised: the offsets are code points of the text as it is given.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from operator import itemgetter
from typing import Literal, NamedTuple

from datafari_rag.core.text.language import Remembered, detect, language_codes, listed
from datafari_rag.core.text.structure import Span, Table, cells_of, headings_in, tables_in, trimmed, uncovered

_INITIALS = re.compile(r"(?:-?[^\W\d_]{1,2}\.)+-?[^\W\d_]{1,3}")
"""J.-P, U.S, f.eks, but no name of a file."""

_AROUND_CHARS = 600
"""How much text on each side, at least, shows in which language an abbreviation would be one."""

_NUMBER = re.compile(r"\d|[IVXLC]+\b")
_DIGITS = re.compile(r"\.*\d[\d.]*")
_CAPTION = re.compile(r"(?:[A-Z]\w+|#+) [\dA-Z][\d.]*")
"""The number of a table or of a heading that has its mark: its words follow."""

_BEFORE_WORDS = re.compile(r"[\s'’\"«“”„‘(\[¿¡]")
_FOLLOWING = re.compile(r"(?!\w\.)\w+")
"""The next word, unless it is an initial."""

_WORD_CHARS = 30
_KINDS = ("abbreviations", "before_numbers", "titles", "closing")

Languages = dict[int, str]
"""The languages of the stretches of one text that were looked at: it may be full of abbreviations."""


def _is_abbreviated(text: str, begin: int, stop: int, after: int, languages: Languages) -> bool:
    """
    Say whether the point at *stop* belongs to the word before it and no sentence ends there.

    *begin* is where the sentence began, *after* where the next word would begin one.
    """
    near = text[max(begin, stop - _WORD_CHARS) : stop]
    word = near.rpartition(" ")[2]
    if not word.isalpha():
        word = _BEFORE_WORDS.split(word)[-1]
    small = word.lower()
    if len(word) > 1 and word.isalpha() and not any(small in _LANGUAGES_OF[kind] for kind in _KINDS):
        return False
    following = _FOLLOWING.match(text, after)
    if small in _LANGUAGES_OF["before_numbers"]:
        return _NUMBER.match(text, after) is not None
    is_begun = following is not None and text[after].isupper() and following[0].lower() in _LANGUAGES_OF["function"]
    if stop - begin < _WORD_CHARS and not is_begun and _CAPTION.fullmatch(near) is not None:
        return True
    if _DIGITS.fullmatch(word):
        # The number of a section begins its sentence or a quotation; German counts with a point: 3. Oktober.
        before = near[: -len(word)].rstrip()
        is_first = not before or before[-1] in "“„«"
        return is_first or (len(word) < 3 and not is_begun and _language_at(text, stop, languages) == "de")
    if small in _LANGUAGES_OF["titles"]:
        return True
    is_initial = (len(word) == 1 and word.isupper()) or _INITIALS.fullmatch(word) is not None
    is_closing = small in _LANGUAGES_OF["closing"]
    is_open = is_initial or is_closing
    if not is_closing and (listed_in := _LANGUAGES_OF["abbreviations"].get(small)):
        language = _language_at(text, stop, languages)
        if language in listed_in:
            return True
        is_open = is_open or not language
    return is_open and not is_begun


def _language_at(text: str, place: int, languages: Languages) -> str:
    """Return the language around *place*, which is kept in *languages*."""
    low = max(0, place // _AROUND_CHARS - 1) * _AROUND_CHARS
    if low not in languages:
        languages[low] = detect(text[low : low + 3 * _AROUND_CHARS])
    return languages[low]


def _languages_of(name: str) -> Mapping[str, frozenset[str]]:
    """Return the languages of each word of the lists *name*: in another one it may mean something, "à l'est"."""
    languages = defaultdict[str, set[str]](set)
    for code in language_codes():
        for word in listed(code, name):
            languages[word].add(code)
    return {word: frozenset(codes) for word, codes in languages.items()}


_LANGUAGES_OF: Remembered[str, Mapping[str, frozenset[str]]] = Remembered(_languages_of, 8)

MAX_TICKS = 30
"""A run of more backticks begins and ends no code within a line."""

_FENCE = re.compile(r"^[ \t]*+(`{3,}+|~{3,}+)[^\n]*+\n", re.MULTILINE)
_FENCE_END = re.compile(r"^[ \t]*+(?P<signs>[`~]{3,}+)[ \t]*+$", re.MULTILINE)
_TICKS = re.compile(r"`++|\n(?=[ \t]*+\n)")


def code_spans(text: str) -> list[Span]:
    """
    Return the code of *text* as (start, end) with its fences, in order; they never overlap.

    A fence that nothing closes reaches to the end. A span ends at the next run of exactly as many backticks, before an
    empty line; of a run that has no such the last backticks may open one.
    """
    found = [(fence.start(), fence.end(), fence[1]) for fence in _FENCE.finditer(text)]
    closings: dict[int, int] = {}
    for run in reversed(list(_TICKS.finditer(text))):
        size = run.end() - run.start()
        if run[0] == "\n":
            closings.clear()
        elif size <= MAX_TICKS:
            if own := max((other for other in closings if other <= size), default=0):
                found.append((run.end() - own, closings[own], ""))
            closings[size] = run.end()
    stretches: list[Span] = []
    at = 0
    for start, end, fence in sorted(found, key=itemgetter(0)):
        if start >= at:
            ends = (match.end() for match in _FENCE_END.finditer(text, end) if match["signs"].startswith(fence))
            at = next(ends, len(text)) if fence else end
            stretches.append((start, at))
    return stretches


STOPS = ".!?…؟۔।॥։።။។៕。！？｡᙮"
MAX_CHARS = 700
"""Longest span: text without any boundary is cut there, at a space where one is near."""

MAX_STATEMENT_CHARS = 4_000
"""A longer statement is cut into pieces, and none of them is whole."""

_REACH_CHARS = 2_000
"""How far around a place `bounds_around` looks for boundaries."""

_WIDE = "。！？｡។៕"
"""Marks that no blank follows."""

# The leading single character lets the engine skip ahead; a repeated one would not. What follows it leaves out half of
# all line ends together, which `_is_boundary` would: those of wrapped lines, where the next goes on in lower case.
# A run of signs with no end behind it is one match as a whole (`none`): each later sign of it would begin a search
# through all of the rest.
_MARK = re.compile(
    rf"[{STOPS}\n](?:(?:(?![a-z]{{4}})|(?<![^{STOPS}:;]\n))"
    rf"[{STOPS}\n]*(?:(?<!\n)[\"'»”“’)\]」』）】*_]+|[\xa0\u202f ]»)?(?:(?<!\n)\[\d+\])*"
    rf"(?:\s+|(?<=[{_WIDE}」』”’）】\n]))|(?P<none>[{STOPS}\n]++))"
)
_OPENERS = "\"'«“”„‘([¿¡*_ \u00a0\u202f"
_CONTINUING = ",;:.!?…)/&="
_ITEM = re.compile(
    r"[ \t]*+(?P<sign>[-*+•·▪●○◦■□►➢✓–—]+(?=[ \t])|\(?(?P<number>\d{1,3}|[a-zA-Z]|[ivxlcIVXLC]{2,6})[.)](?=[ \t]))"
    r"[ \t]++(?P<text>\S)"
)
_LAST_WORD = re.compile(r"(?<!\w)[^\W\d_]+$|[,،、，]$")
_TAIL_CHARS = 8
_WRAP_CHARS = 55
_LONG_LINE_CHARS = 110
_BLANK = re.compile(r"\s")


def spans(text: str, *, most: int | None = None) -> list[Span]:
    """
    Return the sentences of *text* as (start, end) in order, without white space around them; empty for blanks.

    One of more than `MAX_CHARS` is cut. With *most* the first so many, without looking for the others.
    """
    return list(islice(_spans_in(text, 0, len(text)), most))


def blocks(text: str, least_chars: int, tables: Sequence[Table] | None = None) -> list[Span]:
    """
    Return *text* in pieces of whole sentences as (start, end), each the shortest of at least *least_chars* characters.

    The last may be shorter. Sentences that stay together are not cut one by one: that costs five times as much. The
    header of a table stands alone. *tables* are those of *text*, where they are known.
    """
    found: list[Span] = []
    for begin, last, table in uncovered(tables_in(text) if tables is None else tables, 0, len(text)):
        if table is not None:
            found.append(table.rows[0])
            start = -1
            for row, end in table.rows[1:]:
                start = row if start < 0 else start
                if end - start >= least_chars or end == last:
                    found.append((start, end))
                    start = -1
            continue
        languages = Languages()
        while begin < last:
            limit = begin + MAX_CHARS + least_chars
            high = min(limit, last)
            _, end = next(_ends(text, begin, high, languages, at=min(begin + least_chars, high)), (0, 0))
            end = end or (high if limit >= last else _cut(text, begin + least_chars, limit))
            start, stop = trimmed(text, begin, end)
            if start < stop:
                found.append((start, stop))
            begin = end
    return found


def bounds_around(text: str, start: int, end: int, reach: int = _REACH_CHARS) -> list[Span]:
    """
    Return the sentences in the region *reach* around *start* to *end*, so that a long text is not cut as a whole.

    The first and the last may be cut at the edge of the region, between two words where there are any; a sentence that
    touches *start* to *end* is cut only when it is longer than the region.
    """
    low, high = max(0, start - reach), min(len(text), end + reach)
    if low and not text[low - 1].isspace():
        blank = _BLANK.search(text, low, start)
        low = low if blank is None else blank.end()
    if high < len(text) and not text[high].isspace():
        blank_at = max(text.rfind(" ", end, high), text.rfind("\n", end, high))
        high = high if blank_at < 0 else blank_at
    return list(_spans_in(text, low, high))


def _spans_in(text: str, low: int, high: int) -> Iterator[Span]:
    for begin, last, table in uncovered(tables_in(text, low, high), low, high):
        if table is not None:
            for row in table.rows:
                yield from _bounded(text, *row, MAX_CHARS)
            continue
        for end, after in _ends(text, begin, last, Languages()):
            yield from _bounded(text, begin, end, MAX_CHARS)
            begin = after
        yield from _bounded(text, begin, last, MAX_CHARS)


def _ends(
    text: str, begin: int, high: int, languages: Languages, *, at: int | None = None, is_wrapped: bool = False
) -> Iterator[Span]:
    """
    Yield where a sentence ends and the next begins, between *at* and *high*; the first begins at *begin*.

    *is_wrapped*: a line end by itself ends none.
    """
    for match in _MARK.finditer(text, begin if at is None else at, high):
        run, after = match.group(), match.end()
        if match["none"] is None and after < high:
            lines = run.count("\n")
            if (
                lines > 1
                or run[0] in _WIDE
                or (lines and not is_wrapped and _is_line_end(text, match.start(), begin, after))
                or (run[0] != "\n" and run[-1].isspace() and _is_sentence_end(text, run, begin, after, languages))
            ):
                yield match.start() + len(run.rstrip()), after
                begin = after


def _is_sentence_end(text: str, run: str, begin: int, after: int, languages: Languages) -> bool:
    while text[after] in _OPENERS and after + 1 < len(text):
        after += 1
    if _is_small(text[after]) or text[after] in _CONTINUING:
        return False
    is_point = run[0] == "." and not run.startswith("..")
    return not (is_point and _is_abbreviated(text, begin, text.rfind(".", begin, after), after, languages))


def _is_line_end(text: str, position: int, begin: int, after: int) -> bool:
    """Distinguish the end of a line from a wrap: the next line goes on in lower case, or this line is full."""
    if _ITEM.match(text, after):
        return True
    line = text[after]
    last = _LAST_WORD.search(text, max(begin, position - _TAIL_CHARS), position)
    if line in ",;:.)" or (last is not None and (last[0] in ",،、，" or last[0] in _LANGUAGES_OF["function"])):
        # A stop word or a comma does not end a line: the next one goes on.
        return False
    position = text.index("\n", position)
    before = text[max(begin, position - _END_CHARS) : position].rstrip(_CLOSERS)[-1:]
    line_chars = position - 1 - text.rfind("\n", max(0, position - _LONG_LINE_CHARS - 2), position)
    if _is_small(line):
        return line_chars < _WRAP_CHARS and before in _ENDS
    return line_chars < _WRAP_CHARS or before in _ENDS or line_chars > _LONG_LINE_CHARS


def _is_small(sign: str) -> bool:
    """Say whether a sentence would begin with another form of *sign*: Georgian letters are small in Unicode alone."""
    return sign.islower() and sign.title() != sign


def _bounded(text: str, start: int, end: int, longest: int) -> Iterator[Span]:
    """Yield *start* to *end* without white space around it, in pieces when it is too long."""
    begin, end = trimmed(text, start, end)
    while begin < end:
        cut = end if end - begin <= longest else _cut(text, begin + longest // 2, begin + longest)
        first, last = trimmed(text, begin, cut)
        if first < last:
            yield first, last
        begin = cut


def _cut(text: str, low: int, high: int) -> int:
    """Return where text without a boundary is cut: behind its last space between *low* and *high*, else at *high*."""
    cut = max(text.rfind(mark, low, high) for mark in (" ", "\n"))
    return cut + 1 if cut >= 0 else high


_CLOSERS = " \t\r\n\"'”’»)]」』）】*_"
_ENDS = frozenset(f"{STOPS}:：;；")
_REFERENCES = re.compile(r"(?:\[\d{1,3}\])++\Z")
_ASKING, _GREEK_ASKING = frozenset("?？؟⁇⁈⸮﹖፧꘏"), frozenset(";\u037e")
_FIRST = frozenset(("1", "a", "A", "i", None))
"""What numbers the first item of a list: another number does not begin one within a paragraph."""

_INK = re.compile(r"\w")
_END_CHARS = 40
"""Characters in which the end of a sentence is looked for."""

EMPTY_LINE = re.compile(r"\n\s*\n")
Kind = Literal["sentence", "item", "row", "heading"]


class Statement(NamedTuple):
    """
    A sentence, an item, a row or a heading from *start* to *end*.

    *above* is what introduces it, widest first: lines above a list, the header of a table. *is_part*: it introduces
    others, or some of it may be missing: alone it is no whole statement.
    """

    start: int
    end: int
    kind: Kind = "sentence"
    above: tuple[Statement, ...] = ()
    is_part: bool = False
    is_question: bool = False


class _Piece(NamedTuple):
    """A paragraph, item, row or heading; *is_apart*: an empty line or the end of the text follows."""

    start: int
    end: int
    kind: Kind
    indent: int = 0
    is_apart: bool = False


def statements(text: str, low: int = 0, high: int | None = None) -> list[Statement]:
    """
    Return the statements of *text* from *low*, the beginning of a line, to *high*, in order.

    A single line end ends none, except around an item, a heading or a row. What stands before or behind a semicolon or
    a colon is part of its statement: an exception often stands there.
    """
    high = len(text) if high is None else high
    found, opened, languages = list[Statement](), list[tuple[Statement, int]](), Languages()
    tables = tables_in(text, low, high)
    heads = {row: table.header for table in tables for row in table.rows}
    header: Statement | None = None
    pieces = list(_pieces(text, low, high, heads))
    for piece, after in zip_longest(pieces, pieces[1:]):
        start, end = piece.start, piece.end
        if piece.kind in ("row", "heading"):
            opened.clear()
            head = heads.get((start, end))
            is_header = head == (start, end)
            above = (header,) if header is not None and head == header[:2] and not is_header else ()
            is_question = piece.kind == "heading" and asks(text[start:end])
            found.append(Statement(start, end, piece.kind, above, is_header, is_question))
            header = found[-1] if is_header else header
            continue
        # What stands under a line that ends with a colon: items, and paragraphs that are indented as these are.
        is_item = piece.kind == "item" or bool(opened and piece.indent)
        opened = [(one, least) for one, least in opened if is_item and least <= piece.indent]
        is_begun_before = found and found[-1].kind != "row" and not _is_ended(text, *found[-1][:2])
        if is_begun_before and not is_item and _is_small(text[start]):
            # "… of leave", an empty line, "except for interns."
            found[-1] = found[-1]._replace(is_part=True)
        begin, last = trimmed(text, start, end)
        for stop, following in [*_ends(text, begin, last, languages, is_wrapped=True), (last, last)]:
            for span in _bounded(text, begin, stop, MAX_STATEMENT_CHARS):
                is_torn = span[1] - span[0] < stop - begin
                is_question = asks(text[max(span[0], span[1] - _END_CHARS) : span[1]])
                kind: Kind = "item" if is_item else "sentence"
                found.append(Statement(*span, kind, tuple(one for one, _ in opened), is_torn, is_question))
            begin = following
        is_nested = after is not None and after.kind == "item" and is_item and after.indent > piece.indent
        if text[start:end].rstrip(" \t\r\n*_").endswith((":", "：")):
            opened.append((found[-1], piece.indent + 1 if is_item else 0))
            found[-1] = found[-1]._replace(is_part=True)
        elif not piece.is_apart and (is_nested or not (is_item or _is_ended(text, start, end))):
            # What has no full stop may go on, in the items below too.
            found[-1] = found[-1]._replace(is_part=True)
    return found


def asks(text: str) -> bool:
    """Say whether *text* ends in a question mark of any script."""
    words = text.rstrip(_CLOSERS)
    is_greek = words[-1:] in _GREEK_ASKING and "\u0370" <= words[:-1].rstrip()[-1:] <= "\u03ff"
    return words[-1:] in _ASKING or is_greek or "՞" in text


def texts_of(text: str, one: Statement) -> list[str]:
    """Return what *one* says with what introduces it, in order: of a row each cell behind the name of its column."""
    if one.kind == "row" and one.above:
        header: Span = one.above[0][:2]
        names, cells = cells_of(text, header, header), cells_of(text, one[:2], header)
        pairs = zip(names, cells, strict=False) if len(names) == len(cells) else ()
        named = [text[slice(*span)] for pair in pairs if pair[1][0] < pair[1][1] for span in pair]
        return named or [text[one.start : one.end]]
    return [text[each.start : each.end] for each in (*one.above, one)]


def _pieces(text: str, low: int, high: int, rows: Mapping[Span, object]) -> Iterator[_Piece]:
    """Yield the paragraphs, items, *rows* and headings of *text* in order."""
    lines = {max(low, text.rfind("\n", low, row[0]) + 1): _Piece(*row, "row") for row in rows}
    for one in headings_in(text, low, high):
        lines.setdefault(max(low, text.rfind("\n", low, one.start) + 1), _Piece(one.start, one.end, "heading"))
    at, piece = low, None
    while at <= high:
        end = text.find("\n", at, high)
        end = high if end < 0 else end
        line, item = lines.get(at), _ITEM.match(text, at, end)
        is_new = item is not None and (piece is None or piece.kind == "item" or item["number"] in _FIRST)
        is_empty = line is None and _INK.search(text, at, end) is None
        if piece is not None and (line is not None or is_empty or is_new):
            yield piece._replace(end=at, is_apart=is_empty)
            piece = None
        if line is not None:
            yield line
        elif is_new and item is not None and not is_empty:
            piece = _Piece(item.start("text"), end, "item", item.start("sign") - at)
        elif piece is None and not is_empty:
            blanks = end - at - len(text[at:end].lstrip())
            piece = _Piece(at, end, "sentence", blanks)
        at = end + 1
    if piece is not None:
        yield piece._replace(end=high, is_apart=True)


def _is_ended(text: str, start: int, end: int) -> bool:
    """Say whether the text from *start* to *end* ends in a sign that ends a sentence, or introduces the next."""
    tail = text[max(start, end - _END_CHARS) : end].rstrip()
    return _REFERENCES.sub("", tail).rstrip(_CLOSERS)[-1:] in _ENDS
