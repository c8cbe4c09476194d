"""
One answer on its way to the reader: what becomes of the sentences that no document proves (`answer.unsupported`).

*mark* shows all of them, and counts. *drop* leaves the unsupported ones out, paragraph by paragraph.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from datafari_rag.core.answer.output_filter import OutputFilter
from datafari_rag.core.documents import Citation
from datafari_rag.core.events import Support, UnsupportedPolicy
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.proof.checking import CheckedSentence, Proof, TextCheck
from datafari_rag.core.proof.judging import NEAR, QUOTED, UNSUPPORTED, VERIFIED
from datafari_rag.core.text.language import sentence_in

MAX_WAITING_CHARS = 8_000
"""A longer paragraph, or block of code, is checked in pieces."""

_PARAGRAPH_END = re.compile(r"\n[^\S\n]*\n")
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)
_NUMBER = re.compile(r"\W*+(?:\d{1,3}[.)]\W*+)?")


class ProvedOutput:
    """
    An answer as `OutputFilter` gives it, less what its policy leaves out.

    *text* is all that was shown. *citations* and *support* are known after `end`; *support* is None where there are no
    documents, and for a blank answer.
    """

    def __init__(self, prompt: Prompt, output: OutputFilter, policy: UnsupportedPolicy) -> None:
        """Take from *output* the answer to *prompt*, and check it against the documents there."""
        self._output, self._policy, self._language = output, policy, prompt.language
        self._proof = Proof(prompt.extracts, prompt.language)
        self._has_documents = bool(prompt.extracts)
        self.is_live = policy == "drop" and self._has_documents
        """Whether sentences are compared with the documents before the end."""
        self._waiting = ""
        self._pieces: list[str] = []
        self._dropped = self._kept = 0
        self.citations: tuple[Citation, ...] = ()
        self.support: Support | None = None

    @property
    def waiting_chars(self) -> int:
        """Return how much of the answer has come and was not compared yet."""
        return len(self._waiting)

    @property
    def is_blank(self) -> bool:
        """Say whether the model wrote nothing."""
        return not self._output.text.strip()

    @property
    def text(self) -> str:
        """Return all that was shown so far."""
        return "".join(self._pieces)

    @property
    def followups(self) -> tuple[str, ...] | None:
        """Return the questions that the model proposed, None when it was not asked to."""
        return self._output.followups

    def feed(self, text: str) -> str:
        """Take a piece of the model's and return what may be shown."""
        text = self._output.feed(text)
        if self.is_live:
            text = self._let_through(text)
        self._pieces.append(text)
        return text

    def end(self) -> str:
        """Return what was held back; *citations* and *support* are known then."""
        rest = self._output.end()
        if self.is_live:
            rest = self._let_through(rest) + self._proved(self._waiting)
            self._waiting = ""
        replaced = self._dropped > 0 and self._kept == 0
        if replaced:
            gap = "\n\n" if (self.text + rest).strip() else ""
            rest = f"{rest.rstrip()}{gap}{sentence_in(self._language, 'nothing_found')}"
        self._pieces.append(rest)
        if self._has_documents and not self.is_blank:
            check = self._proof.check(self.text)
            self.citations = check.citations
            self.support = support_of(check, self._policy, self._dropped, is_replaced=replaced)
        return rest

    def _let_through(self, text: str) -> str:
        """Return what need not wait: the paragraphs that have ended, checked."""
        self._waiting += text
        ends = [match.end() for match in _PARAGRAPH_END.finditer(self._waiting)]
        cut = next((end for end in reversed(ends) if len(_FENCE.findall(self._waiting[:end])) % 2 == 0), 0)
        if not cut and len(self._waiting) > MAX_WAITING_CHARS:
            cut = len(self._waiting)
        done, self._waiting = self._waiting[:cut], self._waiting[cut:]
        return self._proved(done)

    def _proved(self, text: str) -> str:
        """Return *text* without the sentences that no document proves."""
        if not text.strip():
            return text
        check = self._proof.check(text)
        lost = sum(sentence.status == UNSUPPORTED for sentence in check.sentences)
        self._dropped += lost
        self._kept += len(check.stated) - lost
        return "".join(_without_unsupported(text, check.sentences)) if lost else text


def _without_unsupported(text: str, sentences: tuple[CheckedSentence, ...]) -> Iterator[str]:
    """Yield the lines of *text* that keep a word, without the unsupported sentences and their marks."""
    ends = [*(sentence.start for sentence in sentences[1:]), len(text)]
    kept = list(text)
    for sentence, end in zip(sentences, ends, strict=True):
        if sentence.status == UNSUPPORTED:
            stretch = text[sentence.start : end]
            # Marks behind a sentence belong to it; line ends, and what begins the next line, do not.
            last = sentence.end + len(text[sentence.end : end].partition("\n")[0])
            kept[sentence.start : last] = ["\n" if sign == "\n" else "" for sign in stretch[: last - sentence.start]]
    at = 0
    for line in text.splitlines(keepends=True):
        left = "".join(kept[at : at + len(line)])
        at += len(line)
        is_emptied = len(left) < len(line) and _NUMBER.fullmatch(left) is not None
        yield "" if is_emptied else left


def support_of(check: TextCheck, policy: UnsupportedPolicy, dropped: int = 0, *, is_replaced: bool = False) -> Support:
    """Return how much of a text is proved: *check* is of what was shown, *dropped* how many sentences were left out."""
    statuses = [sentence.status for sentence in check.stated]
    places = [(sentence.start, sentence.end) for sentence in check.stated if sentence.status == UNSUPPORTED]
    return Support(
        checked=len(statuses) + dropped,
        verified=statuses.count(VERIFIED),
        quoted=statuses.count(QUOTED),
        near=statuses.count(NEAR),
        policy=policy,
        unsupported=tuple(places),
        dropped=dropped,
        is_replaced=is_replaced,
    )
