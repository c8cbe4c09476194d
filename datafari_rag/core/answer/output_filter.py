"""
What the reader gets of the model's words: nothing that is not seen, links made safe, follow-up marks taken out.

All of it as the answer streams, and before it is compared with the documents: what is compared is what is shown. Line
breaks are line feeds: whatever a dialect drops or rewrites later could make a link of what was none, and would move the
marks of citations.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import dataclass

from datafari_rag.core.citations.labels import DocumentLabels
from datafari_rag.core.citations.links import SCHEMES, scheme_of
from datafari_rag.core.documents import Extract
from datafari_rag.core.text.folding import VisibleText, unescaped
from datafari_rag.core.text.sentences import MAX_TICKS

MAX_QUESTION_CHARS = 300
"""A mark longer than this is text: nothing is held back for ever."""

MAX_BLANK_CHARS = 200
"""How much white space before a mark goes with it, and is held back while a mark may follow."""

_MARK = re.compile(rf"<<([^\s<>][^<>\n]{{0,{MAX_QUESTION_CHARS}}})>>")
_BULLET = re.compile(r"(?:^|\n)[ \t]*+(?:(?:[-*•–]|\(?\d{1,2}[.)]?)[ \t]*+)?$")
_OPEN = re.compile(rf"<(?:<(?:[^\s<>][^<>\n]{{0,{MAX_QUESTION_CHARS}}}>?)?)?$")
_LINE_CHARS = 40
"""How far back a bullet before a mark is looked for."""


class Followups:
    """
    A filter that text runs through in pieces of any size; use it only when follow-up questions were asked for.

    The output does not depend on how the text was cut. *questions* grows as marks are found.
    """

    def __init__(self) -> None:
        """Begin with nothing held and no question."""
        self._questions: dict[str, None] = {}
        self._tail = ""
        self._is_line_start = True

    def feed(self, text: str) -> str:
        """Return what of the text so far is certainly not the beginning of a mark, without the marks."""
        # Words in the middle of a line, as most pieces are: nothing to take out or hold back.
        is_held = self._tail or self._is_line_start
        if not is_held and "<" not in text and "\n" not in text and not text[-1:].isspace():
            return text
        self._tail += text
        output, at = "", 0
        for match in _MARK.finditer(self._tail):
            self._questions[match.group(1).strip()] = None
            output += self._output(at, self._before_mark(match.start(), at))
            at = match.end()
        opened = _OPEN.search(self._tail, at)
        cut = self._before_mark(len(self._tail) if opened is None else opened.start(), at)
        output += self._output(at, cut)
        self._tail = self._tail[cut:]
        return output

    def end(self) -> str:
        """Return what was held back; half a mark is dropped, and white space after the last mark too."""
        half = _OPEN.search(self._tail)
        if half is not None and len(half.group()) > 2:
            self._tail = self._tail[: self._before_mark(half.start(), 0)]
        rest, self._tail = self._tail, ""
        return rest.rstrip() if self._questions else rest

    @property
    def questions(self) -> list[str]:
        """Return the questions so far, each once."""
        return list(self._questions)

    def _before_mark(self, at: int, begin: int) -> int:
        """Return where the white space and the bullet before a mark at *at* begin; *begin* and a limit bound it."""
        low = max(begin, at - MAX_BLANK_CHARS)
        text = self._tail[low:at]
        bullet = _BULLET.search(text, len(text) - _LINE_CHARS)
        if bullet is not None and (self._is_line_start or bullet.group().startswith("\n")):
            text = text[: bullet.start()]
        return low + len(text.rstrip())

    def _output(self, start: int, end: int) -> str:
        if end > start:
            self._is_line_start = False
        return self._tail[start:end]


MAX_TEXT_CHARS = 300
MAX_TARGET_CHARS = 2000
"""How far the end of a bracket or tag, and of a target, is waited for; longer ones are broken up and pass as text."""

MAX_MARGIN = 8
MIN_FENCE = 3
"""A block of code ends with so many backticks or more behind fewer than four blanks (CommonMark, 4.5)."""

MAX_DEPTH = 8
MAX_OPEN = 32
"""Deeper nested brackets are text; so are brackets while more than this number are open."""

MAX_BRACKETS = 2000
"""So many brackets and tags of an answer are looked at; behind these there are no square brackets and no tags."""

# A "!" is text unless a bracket follows, or may follow. The class comes first, so that the engine can skip ahead.
_SPECIAL = re.compile(r"[!\[\]<`~【［](?:(?<!!)|(?=\[)|\Z)")
_HARMLESS = str.maketrans("[]<【】［］", "()‹()()")
# What begins a line in any reader: JavaScript's patterns (snarkdown) know two ends of lines more than Markdown.
_LINE_ENDS = "\n\r\u2028\u2029"
_LINE_END = re.compile(f"[{_LINE_ENDS}]")
_PLAIN = re.compile(rf"[^!\[\]<`~【［{_LINE_ENDS}]+")
_CLASHING = frozenset("]<!")
_CLOSERS = {"[": "]", "【": "】", "［": "］"}
_BLANK_LINE = r"(?:\n|\r)[ \t]*(?:\n|\r)"
_BRACKETS = {opener: re.compile(rf"{_BLANK_LINE}|[\{opener}\{closer}]") for opener, closer in _CLOSERS.items()}
_PARENTHESES = re.compile(rf"{_BLANK_LINE}|[()]")
_OPENERS = "([【［"
_TAG_END = re.compile(rf"{_BLANK_LINE}|>")
# What a piece must hold, for `_close` to find more than it found without that piece.
_AWAITED = {_BRACKETS[opener]: re.compile(rf"[\{opener}\{closer}\n\r]") for opener, closer in _CLOSERS.items()} | {
    _PARENTHESES: re.compile(r"[()\n\r]"),
    _TAG_END: re.compile(r"[>\n\r]"),
}
_TICKS_AWAITED = re.compile(r"[`\[\]【】［］|\n\r]")
_DOUBTED, _LOST = 1, 2
"""Which backticks belong together is not sure for the rest of the paragraph, and of the answer."""
_SPACES = re.compile(r"\s*")
_WORDS = re.compile(r"[^\s()]+\s+[^\s\"'()]")
_WORDS_BEGUN = re.compile(r"[^\s()]*\s*")
_BEGINS_TAG = re.compile(r"[A-Za-z/!?]")
_TAG_NAME = re.compile(r"/?\s*([A-Za-z][A-Za-z0-9]*)")
_TICKS = re.compile(r"`++|[\[\]【】［］|\n\r]")
_MARGIN = re.compile(r"\n {0,3}")
_TILDES = re.compile(r"\n {0,3}~~")
_EMPTY_LINE = re.compile(r"\n[ \t]*\n")
_LINE_BEGUN = re.compile(r"[^`\n]*+\Z")
_FENCE_LINE = re.compile(r"[^`\n]*+\n")
_PROSE = re.compile(r"[^\s:/<>\\#?=&@%]+\s+[^\s:/<>\\#?=&@%\"'(][^:/<>\\#?=&@%]*")
_TITLED = re.compile(r"(\S+)\s+(?:\"[^\"]*\"|'[^']*'|\([^)]*\))")
_UNFIT = re.compile(r"[<>\[\]\\`]|[^\S ]|[\x00-\x1f\x7f]")
# The mark of the byte order is white space to JavaScript, and nothing at all to readers that drop it at the beginning.
# What a heading holds is read as a separate text (snarkdown).
_LEADS = re.compile(r"[\s\ufeff>#*+\-\d.)•]*")
_LOADING_TAGS = """a applet area audio base body button embed form frame frameset iframe image img input link map math
    meta object picture script source style svg track video"""
_LOADING = frozenset(_LOADING_TAGS.split())


@dataclass(frozen=True, slots=True)
class _Step:
    """What the text at one place becomes: *output*, in place of *size* characters; *is_label* ends in a safe "]"."""

    output: str
    size: int
    is_label: bool = False


class SafeLinks:
    """
    A filter that an answer runs through in pieces of any size; the output does not depend on how it was cut.

    `[a](u)` and `![a](u)` become `a`, or `[a]` where *a* is a label or place number; `[a](u)` stays when *u* is one
    of the documents' URLs. It holds back the beginning of a mark, link or tag, and never more than a few thousand
    characters.
    """

    def __init__(self, urls: Collection[str], labels: Collection[str]) -> None:
        """Let through links to *urls*, the documents' (none: an empty collection), and marks that name *labels*."""
        self._urls = {url: spelled for url in urls if (spelled := _spelled(url)) is not None}
        self._marks = DocumentLabels(labels)
        self._budget = MAX_BRACKETS
        self._doubt = 0
        self._fence = 0
        """How many backticks at least close the block of code that is open; 0: none is."""
        self._begin(0)

    def _begin(self, depth: int) -> None:
        """Begin a text inside so many brackets; documents and labels are the same there."""
        self._depth = depth
        self._tail = ""
        self._last = ""
        self._is_lead = True
        self._is_label = False
        self._is_bracket_line = False
        self._is_behind_bracket = False
        self._margin = "\n"
        self._code_end = 0
        self._scanned: dict[int, tuple[int, int]] = {}
        # What a piece must hold to end the waiting, and how much may be held until then.
        self._awaited: tuple[re.Pattern[str], int] | None = None

    def feed(self, text: str) -> str:
        """Return what of the text so far may be shown; maybe nothing."""
        # Nothing that is held, or was shown last, can become something with what follows.
        is_free = not (self._tail or self._is_behind_bracket or self._last in _CLASHING)
        if not self._budget:
            text = text.translate(_HARMLESS)
            if is_free:
                return text  # none of the characters that make something is left, so that nothing has to be known
        # Most tokens, in the middle of a line and with nothing in them: what `_run` makes of such a token.
        if is_free and not self._is_lead and _PLAIN.fullmatch(text):
            self._last = text[-1]
            return text
        if not self._tail and not self._is_behind_bracket and _SPECIAL.search(text) is None:
            return self._put(text)
        self._tail += text
        if self._awaited is not None and len(self._tail) < self._awaited[1] and not self._awaited[0].search(text):
            return ""
        self._awaited = None
        return self._run(is_end=False)

    def end(self) -> str:
        """Return the rest: half a mark is dropped, half a link is text."""
        if self._tail[:1] in _CLOSERS and self._marks.is_beginning(self._tail[1:]):
            self._tail = ""
        return self._run(is_end=True)

    def _run(self, *, is_end: bool) -> str:
        text, at, pieces = self._tail, 0, []
        while True:
            if self._is_behind_bracket:
                blanks = _SPACES.match(text, at)
                inside = at if blanks is None else blanks.end()
                pieces.append(self._put(text[at:inside]))
                at = inside
                if text[at : at + 1] == "(":
                    step = self._parenthesis(text, at, is_end=is_end)
                    if step is None:
                        break
                    pieces.append(self._put(step.output, is_label=step.is_label))
                    at += step.size
                    continue
            match = _SPECIAL.search(text, at)
            stop = len(text) if match is None else match.start()
            pieces.append(self._put(text[at:stop]))
            at = stop
            if match is None:
                break
            step = self._step(text, at, is_end=is_end)
            if step is None:
                break
            self._doubt_ticks(text[at : at + step.size])
            pieces.append(self._put(step.output, is_label=step.is_label))
            at += step.size
            self._scanned.clear()
            if self._budget:
                self._budget -= 1
                # Once for all that is here: what comes later is translated as it comes.
                text = text if self._budget else text[:at] + text[at:].translate(_HARMLESS)
        self._tail = text[at:]
        if self._awaited is not None:
            self._awaited = self._awaited[0], self._awaited[1] - at
        self._code_end -= at
        if at:
            self._scanned = {start - at: (place - at, depth) for start, (place, depth) in self._scanned.items()}
        return "".join(pieces)

    def _put(self, text: str, *, is_label: bool = False) -> str:
        """
        Note what is shown, with a space where two harmless neighbours would make something else together.

        *is_label*: it ends in a "]" that is safe.
        """
        if not text:
            return ""
        if self._last in _CLASHING and self._is_clash(text):
            text = " " + text
        self._is_label = is_label and not self._is_lead
        begins = max(map(text.rfind, _LINE_ENDS)) + 1 if _LINE_END.search(text) else 0
        if begins == len(text):
            self._is_lead, self._is_bracket_line = True, False
        elif begins or self._is_lead:
            leads = _LEADS.match(text, begins)
            first = begins if leads is None else leads.end()
            self._is_lead = first == len(text)
            self._is_bracket_line = text[first : first + 1] == "["
        margin = self._margin + text
        if self._doubt == _DOUBTED and _EMPTY_LINE.search(margin):
            self._doubt = 0
        self._margin = margin[margin.rfind("\n") :][:MAX_MARGIN]
        self._last = text[-1]
        if ink := text.rstrip():
            self._is_behind_bracket = ink[-1] == "]"
        return text

    def _is_clash(self, text: str) -> bool:
        match self._last:
            case "]":
                return text[0] == "(" or (text[0] == ":" and (not self._is_label or self._is_bracket_line))
            case "<":
                return _BEGINS_TAG.match(text) is not None
        return text[0] == "["

    def _step(self, text: str, at: int, *, is_end: bool) -> _Step | None:
        """Return what to do at the special character at *at*, None when more text is needed first."""
        following = text[at + 1 : at + 2]
        if not following and not is_end and text[at] not in "【［":
            return None
        match text[at]:
            case "<" if _BEGINS_TAG.match(following):
                return (self._code_tag if self._is_code(at) else self._autolink)(text, at, is_end=is_end)
            case "<":
                return _Step("<", 1)
            case "~":
                return self._tilde()
            case "`":
                return self._ticks(text, at, is_end=is_end)
            case "]":
                return self._stray(text, at, is_end=is_end) if following == "(" else _Step("]", 1)
            case "!":
                return self._group(text, at, is_end=is_end) if following == "[" else _Step("!", 1)
            case _:
                return self._group(text, at, is_end=is_end)

    def _group(self, text: str, at: int, *, is_end: bool) -> _Step | None:
        """Decide about a bracket, and the target behind it when it has one."""
        opened = at + 1 if text[at] == "!" else at
        close = self._close(_BRACKETS[text[opened]], text, opened + 1, MAX_TEXT_CHARS)
        if (close is None and is_end) or close == -1 or self._depth >= MAX_DEPTH:
            return _Step(_apart(text[at : opened + 1]), opened + 1 - at)
        if close is None or (close + 1 == len(text) and not is_end and text[opened] == "["):
            return None
        has_target = text[close : close + 2] == "]("
        target = self._target(text, close + 2, is_end=is_end) if has_target else None
        if has_target and target is None:
            return None
        inner = self._inner(text[opened + 1 : close])
        whole = _Step(_apart(text[at : opened + 1]) + inner + text[close], close + 1 - at, text[close] == "]")
        return whole if target is None else self._linked(whole, inner, target, is_image=opened > at)

    def _parenthesis(self, text: str, at: int, *, is_end: bool) -> _Step | None:
        """Take the opening parenthesis behind a bracket and blanks; what may be a target gets two blanks in front."""
        if _WORDS.match(text, at + 1, at + 1 + MAX_TEXT_CHARS):
            return _Step("(", 1)
        if not is_end and len(text) < at + 1 + MAX_TEXT_CHARS and _WORDS_BEGUN.fullmatch(text, at + 1):
            return None
        return _Step("(  ", 1)

    def _linked(self, whole: _Step, inner: str, target: _Target, *, is_image: bool) -> _Step:
        if target.is_broken or (not is_image and _PROSE.fullmatch(target.inside.strip())):
            return whole  # the parenthesis follows after a space, so that it is none of a link
        size = whole.size + target.size
        url = None if is_image or not target.is_closed else self._allowed(target.inside)
        if url is not None:
            return _Step(f"[{inner}]({url})", size)
        return _Step(f"[{inner}]", size, True) if self._marks.is_mark(inner) else _Step(inner, size)

    def _stray(self, text: str, at: int, *, is_end: bool) -> _Step | None:
        """Take the target from behind a closing bracket whose opening one was not seen as such."""
        target = self._target(text, at + 2, is_end=is_end)
        if target is None:
            return None
        return _Step("]", 1 if target.is_broken or _PROSE.fullmatch(target.inside.strip()) else 1 + target.size)

    def _autolink(self, text: str, at: int, *, is_end: bool) -> _Step | None:
        """Take a document's URL in angle brackets; any other "<" before what may be a tag or a comment is none."""
        for url in self._urls:
            link = f"<{url}>"
            prefix = text[at : at + len(link)]
            if " " in url or not link.startswith(prefix):
                continue
            if prefix == link:
                return _Step(link, len(link))
            if not is_end:
                return None
        return _Step("‹", 1)

    def _code_tag(self, text: str, at: int, *, is_end: bool) -> _Step | None:
        """Take "<" in code: with a blank behind it where a reader who sees no code there might load or run a tag."""
        close = self._close(_TAG_END, text, at + 1, MAX_TEXT_CHARS)
        if close is None and not is_end:
            return None
        inside = text[at + 1 : close]
        is_open = close == -1 or (close is None and self._depth > 0)
        # Without the link that it holds, a tag could be something else.
        return _Step("< ", 1) if is_open or "](" in inside or _is_loading(inside) else _Step(text[at : at + 2], 2)

    def _tilde(self) -> _Step:
        """Take a tilde; behind three that begin a line code may hold backticks, so that none is sure."""
        if _TILDES.fullmatch(self._margin):
            self._doubt = _LOST
        return _Step("~", 1)

    def _doubt_ticks(self, text: str) -> None:
        """Note that pairs of backticks are not sure where some are in a bracket or a link whose text is *text*."""
        if text[0] != "`" and "`" in text:
            self._doubt = max(self._doubt, _LOST if self._fence else _DOUBTED)

    def _ticks(self, text: str, at: int, *, is_end: bool) -> _Step | None:
        """Take a run of backticks, and note the code that it begins or ends: none that a reader may see otherwise."""
        run = text[at : at + MAX_TICKS + 1]
        run = run[: len(run) - len(run.lstrip("`"))]
        step, end = _Step(run, len(run)), at + len(run)
        if at < self._code_end or self._depth:
            return step
        if len(run) > MAX_TICKS or self._last == "`":
            self._doubt = _LOST
            return step
        if end == len(text) and not is_end:
            return None
        if len(run) >= max(MIN_FENCE, self._fence) and _MARGIN.fullmatch(self._margin):
            if not is_end and len(text) < end + MAX_TEXT_CHARS and _LINE_BEGUN.match(text, end):
                return None
            self._fence_line(text, end, len(run))
        elif not self._fence:
            return self._span(text, step, end, is_end=is_end)
        return step

    def _fence_line(self, text: str, end: int, ticks: int) -> None:
        """Note whether so many *ticks* before *end*, the first of a line, begin a block of code or end the open one."""
        line = _FENCE_LINE.match(text, end, end + MAX_TEXT_CHARS)
        if self._fence:
            self._fence = self._fence if line is None or line.group().strip() else 0
        elif line is not None and self._margin == "\n":
            self._fence = ticks
        else:
            self._doubt = _LOST

    def _span(self, text: str, run: _Step, end: int, *, is_end: bool) -> _Step | None:
        """Take the backticks before *end*: they begin code where as many close it on the line, no bracket between."""
        limit = end + MAX_TEXT_CHARS
        for match in _TICKS.finditer(text, end, limit):
            if match.end() == len(text) < limit and not is_end:
                return None
            sign = match.group()
            if sign.startswith("`") and sign != run.output:
                continue
            if sign == run.output and self._last != "\\" and not self._doubt:
                self._code_end = match.end()
            else:
                self._doubt = max(self._doubt, _DOUBTED)
            return run
        if len(text) < limit and not is_end:
            self._awaited = _TICKS_AWAITED, limit
            return None
        self._doubt = max(self._doubt, _DOUBTED)
        return run

    def _is_code(self, at: int) -> bool:
        return self._doubt < _LOST and (bool(self._fence) or at < self._code_end)

    def _target(self, text: str, start: int, *, is_end: bool) -> _Target | None:
        close = self._close(_PARENTHESES, text, start, MAX_TARGET_CHARS)
        if close == -1:
            return _Target("", 0, is_broken=True)
        if close is not None:
            return _Target(text[start:close], close - start + 2)
        return _Target(text[start:], len(text), is_closed=False) if is_end else None

    def _close(self, pattern: re.Pattern[str], text: str, start: int, limit: int) -> int | None:
        """
        Return where what was opened before *start* is closed, -1 when an empty line or too much comes first.

        None when the text ends before that is known. A text in small pieces is not read from *start* for each of them.
        """
        place, depth = self._scanned.get(start, (start, 1))
        for match in pattern.finditer(text, place, start + limit):
            sign = match.group()
            if len(sign) > 1:
                return -1
            self._scanned[start] = match.start(), depth
            depth += 1 if sign in _OPENERS else -1
            if depth == 0:
                return match.start()
            if depth > MAX_OPEN:
                return -1
        if len(text) >= start + limit:
            return -1
        self._awaited = _AWAITED[pattern], start + limit
        return None

    def _inner(self, text: str) -> str:
        """Return the text between two brackets without the links in it."""
        if _SPECIAL.search(text) is None and ":" not in text:
            return text
        filter_ = copy(self)
        filter_._begin(self._depth + 1)
        inner = filter_.feed(text) + filter_._run(is_end=True)
        self._budget = filter_._budget
        return inner

    def _allowed(self, target: str) -> str | None:
        """Return the document's URL that *target* is, None when it is not one."""
        stripped = target.strip()
        titled = _TITLED.fullmatch(stripped)
        for url in (stripped, titled.group(1) if titled else stripped):
            bare = url[1:-1] if url.startswith("<") and url.endswith(">") else url
            for spelling in (bare, unescaped(bare)):
                if spelling in self._urls:
                    return self._urls[spelling]
        return None


@dataclass(frozen=True, slots=True)
class _Target:
    """
    The parenthesis behind a bracket: what is *inside*, and how many characters it takes with both its marks.

    *is_broken*: it has no end where a link must have one. *is_closed* is False when the text ended first.
    """

    inside: str
    size: int
    is_closed: bool = True
    is_broken: bool = False


def _apart(opening: str) -> str:
    """Return "[", or "! [" for the beginning of an image."""
    return "! [" if opening == "![" else opening


def _is_loading(inside: str) -> bool:
    """Say whether the tag *inside* may load, open or run something, or has attributes at all."""
    if "=" in inside:
        return True
    name = _TAG_NAME.match(inside)
    return name is not None and name.group(1).lower() in _LOADING


def _spelled(url: str) -> str | None:
    """Return *url* in the form that a Markdown link allows; None for a scheme that runs and characters that end it."""
    if not url.strip() or _UNFIT.search(url) or scheme_of(url) not in SCHEMES | {""}:
        return None
    return f"<{url}>" if " " in url else url


class OutputFilter:
    """
    One answer on its way to the reader: `feed` and `end` return what may be shown now, maybe nothing.

    *text* is all that was shown. *followups* are the questions after the end, None when none were asked for.
    """

    def __init__(self, extracts: Sequence[Extract], *, wants_followups: bool, links: str) -> None:
        """
        Know the labels of *extracts*, and allow their URLs as targets of links.

        With *links* "none" (`security.answer.links`) no target is allowed.
        """
        urls = {extract.document.url for extract in extracts if extract.document.url} if links == "documents" else set()
        self._links = SafeLinks(urls, {extract.label for extract in extracts})
        self._visible = VisibleText()
        self._marks = Followups() if wants_followups else None
        self._pieces: list[str] = []
        self._blank = ""

    def feed(self, text: str) -> str:
        """Take a piece of the model's and return what may be shown."""
        text = self._visible.feed(text.replace("\r", ""))
        return self._show(self._links.feed(self._marks.feed(text) if self._marks else text))

    def end(self) -> str:
        """Return what was held back."""
        rest = self._links.feed(self._marks.end()) if self._marks else ""
        return self._show(rest + self._links.end())

    @property
    def text(self) -> str:
        """Return all that was shown so far."""
        return "".join(self._pieces)

    @property
    def followups(self) -> tuple[str, ...] | None:
        """Return the questions that the model proposed, None when it was not asked to."""
        return tuple(self._marks.questions) if self._marks else None

    def _show(self, text: str) -> str:
        """Note what is shown; white space before the first word waits for it, so that a blank answer shows nothing."""
        if not self._pieces:
            self._blank += text
            text = self._blank if self._blank.strip() else ""
        if text:
            self._pieces.append(text)
        return text
