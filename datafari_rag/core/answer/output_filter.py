"""
What the reader gets of the model's words: nothing that is not seen, links made safe, follow-up marks taken out.

All of it as the answer streams, and before it is compared with the documents: what is compared is what is shown. Line
breaks are line feeds: whatever a dialect drops or rewrites later could make a link of what was none, and would move the
marks of citations.
"""

from __future__ import annotations

from collections.abc import Sequence

from datafari_rag.core.answer.followup_questions import Followups
from datafari_rag.core.answer.safe_links import SafeLinks
from datafari_rag.core.documents import Extract
from datafari_rag.core.text.cleaning import VisibleText


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
        self._shown: list[str] = []
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
        return "".join(self._shown)

    @property
    def followups(self) -> tuple[str, ...] | None:
        """Return the questions that the model proposed, None when it was not asked to."""
        return tuple(self._marks.questions) if self._marks else None

    def _show(self, text: str) -> str:
        """Note what is shown; white space before the first word waits for it, so that a blank answer shows nothing."""
        if not self._shown:
            self._blank += text
            text = self._blank if self._blank.strip() else ""
        if text:
            self._shown.append(text)
        return text
