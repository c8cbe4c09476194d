"""
What becomes of the sentences of an answer that no document proves (`answer.unsupported`, `min` of `answer.support`).

A sentence is proved by any of the documents that the model saw, whether it cites that one or not, as citations are
proved. What is not to be read is kept back until it is checked: it cannot be taken back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from datafari_rag.core.answer.output_filter import OutputFilter
from datafari_rag.core.answer.text_check import SentenceProof
from datafari_rag.core.citations.labels import MAX_MARK_CHARS
from datafari_rag.core.citations.resolution import resolve
from datafari_rag.core.citations.verification import NEAR, PROVED
from datafari_rag.core.documents import Citation
from datafari_rag.core.events import Replacement, Support, UnsupportedPolicy
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.passages.extractive_answer import nothing_found, pieces
from datafari_rag.core.settings.answers import AnswerSettings
from datafari_rag.core.text.language import sentence_in
from datafari_rag.core.text.sentences import spans

STEP_CHARS = 64
"""So many characters apart, at the least, an answer is looked at; half of what waits where that is more."""

AHEAD_CHARS = 24
"""So much of the next sentence must be known: what follows a point decides whether it ends a sentence."""

MAX_WAITING_CHARS = 1_200
"""A quotation longer than this does not keep its sentences together."""

_MARKS = re.compile(rf"(?:[ \t]*+[\[【［][^\[\]【】［］\n]{{1,{MAX_MARK_CHARS}}}+[\]】］](?!\())++[ \t]*+")
_OPENER = re.compile(r"[\[【［][^\[\]【】［］\n]*\Z")
_SIGN = re.compile('["«„“]')


class AnswerSentences:
    """
    Takes an answer in pieces, and gives it back in sentences with the white space behind each; nothing is lost.

    *waiting* is what has not been given back yet.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self.waiting = ""
        self._wait_chars = STEP_CHARS

    def feed(self, text: str) -> list[str]:
        """Return the sentences that are now known to have ended."""
        sentences: list[str] = []
        at = 0
        while len(text) - at >= self._wait_chars:
            self.waiting += text[at : at + self._wait_chars]
            at += self._wait_chars
            sentences.extend(self._ended(is_last=False))
            self._wait_chars = max(STEP_CHARS, len(self.waiting) // 2)
        self.waiting += text[at:]
        self._wait_chars -= len(text) - at
        return sentences

    def end(self) -> list[str]:
        """Return the last sentences."""
        sentences = self._ended(is_last=True)
        rest, self.waiting = self.waiting, ""
        return [*sentences, rest] if rest else sentences

    def _ended(self, *, is_last: bool) -> list[str]:
        cuts = _cuts(self.waiting, is_last=is_last)
        sentences = [self.waiting[start:end] for start, end in pairwise([0, *cuts])]
        self.waiting = self.waiting[cuts[-1] :] if cuts else self.waiting
        return sentences


def _cuts(text: str, *, is_last: bool) -> list[int]:
    """Return where sentences of *text* end that are known to have ended, their marks and white space included."""
    quotes = _quotations(text) if len(text) < MAX_WAITING_CHARS else []
    cuts: list[int] = []
    for (_, end), (start, _) in pairwise(spans(text)):
        cut = start if "\n" in text[end:start] else _behind_marks(text, start)
        if not is_last and (len(text) - cut < AHEAD_CHARS or _is_in_mark(text, cut)):
            break
        if cut < len(text) and not any(opened < cut <= closed for opened, closed in quotes):
            cuts.append(cut)
    # No sentence is so long: what waits is white space.
    return cuts or ([len(text)] if len(text) > 2 * MAX_WAITING_CHARS and not is_last else [])


def _behind_marks(text: str, start: int) -> int:
    """Return the end of the marks at *start* that belong to the sentence before; *start* where there are none."""
    marks = _MARKS.match(text, start)
    return start if marks is None or text[marks.end() : marks.end() + 1].islower() else marks.end()


def _is_in_mark(text: str, cut: int) -> bool:
    """Say whether *text* ends in a bracket that may be a mark and began at *cut*."""
    return len(text) - cut <= MAX_MARK_CHARS and _OPENER.match(text, cut) is not None


def _quotations(text: str) -> list[tuple[int, int]]:
    """Return where quotations begin and end in *text*; one that does not end there continues after it."""
    # What opens a quotation in English closes one in German.
    closings = {'"': '"', "«": "»", "„": "“"} if "„" in text else {'"': '"', "«": "»", "“": "”"}
    stretches: list[tuple[int, int]] = []
    for sign in _SIGN.finditer(text):
        at = sign.start()
        if sign.group() in closings and not (stretches and at <= stretches[-1][1]):
            end = text.find(closings[sign.group()], at + 1)
            stretches.append((at, end if end >= 0 else len(text)))
    return stretches


_ENDING = " \t\r\n.!?…。！？؟|*_`"
"""Punctuation after the words of a sentence, next to its marks."""

_MARK_END = re.compile(r"[\[【［][^\[\]【】［］\n]+[\]】］]\Z")


@dataclass(frozen=True, slots=True)
class SupportPolicy:
    """
    What is done with what no document proves: *unsupported* with each sentence, *below* with the whole answer.

    *below* takes the place of an answer of whose sentences a smaller share than *least* is proved; 0: of none.
    """

    unsupported: UnsupportedPolicy = "mark"
    least: float = 0.0
    below: Replacement = "extractive"

    @classmethod
    def of(cls, answer: AnswerSettings) -> SupportPolicy:
        """Return the policy that *settings* choose."""
        return cls(answer.unsupported, answer.support.min, answer.support.below)

    @property
    def is_late(self) -> bool:
        """Say whether nothing is shown before all of an answer is checked."""
        return self.least > 0

    @property
    def is_live(self) -> bool:
        """Say whether each sentence is shown when it is checked."""
        return self.unsupported != "mark" and not self.is_late

    def replacement(self, checked: int, proved: int, dropped: int) -> Replacement | None:
        """Return what takes the place of a text too little of which is proved; None where it stays."""
        if self.is_late and checked and proved / checked < self.least:
            return self.below
        return "nothing" if dropped and dropped == checked else None

    def wording(self, sentence: str, status: str, language: str) -> str | None:
        """Return *sentence*, which is not proved but has *status*, as it is shown; None where it is left out."""
        is_near = status == NEAR
        if self.unsupported == "strict" or (self.unsupported == "drop" and not is_near):
            return None
        return (
            sentence
            if self.unsupported == "mark"
            else _remarked(sentence, language, "near" if is_near else "not_proved")
        )


def _remarked(sentence: str, language: str, remark: str) -> str:
    """Return *sentence* with the *remark* that it is not proved, before its final punctuation."""
    # Text after a mark belongs to the next sentence.
    end = len(sentence.rstrip(_ENDING))
    while mark := _MARK_END.search(sentence, max(0, end - MAX_MARK_CHARS), end):
        end = len(sentence[: mark.start()].rstrip(_ENDING))
    return f"{sentence[:end]} {sentence_in(language, remark)}{sentence[end:]}"


class SupportedOutput:
    """
    One answer on its way to the reader, as `OutputFilter` gives it, less what its policy keeps back.

    *text* is all that was shown. *support* is what was found of it: None before the end, and where there are no
    documents.
    """

    def __init__(self, prompt: Prompt, output: OutputFilter, policy: SupportPolicy) -> None:
        """Take from *output* the answer to *prompt*, and check it against the documents there."""
        self._prompt, self._output, self._policy = prompt, output, policy
        self._is_plain = not prompt.extracts
        # All of it is shown as it comes: nothing but the filter is worth a call for each of the model's tokens.
        self._is_passed = self._is_plain or not (policy.is_live or policy.is_late)
        self.is_live = policy.is_live and not self._is_plain
        """Whether sentences are compared with the documents before the end."""
        self._sentences = AnswerSentences()
        self._proof = SentenceProof(prompt.extracts, prompt.language)
        self._pieces: list[str] = []
        self._at = self._checked = self._proved = self._near = self._dropped = 0
        self._last = ""
        self._places: list[tuple[int, int]] = []
        self.support: Support | None = None

    @property
    def is_blank(self) -> bool:
        """Say whether the model wrote nothing."""
        return not self._output.text.strip()

    @property
    def waiting_chars(self) -> int:
        """Return how much of the answer has come and was not compared yet."""
        return len(self._sentences.waiting)

    @property
    def text(self) -> str:
        """Return all that was shown so far."""
        return self._output.text if self._is_passed else "".join(self._pieces)

    @property
    def followups(self) -> tuple[str, ...] | None:
        """Return the questions that the model proposed, None when it was not asked to."""
        return self._output.followups

    def feed(self, text: str) -> str:
        """Take a piece of the model's and return what may be shown."""
        if self._is_passed or not self._policy.is_live:
            output = self._output.feed(text)
            return output if self._is_passed else ""
        return self._show(self._checked_text(self._sentences.feed(self._output.feed(text))))

    def end(self) -> str:
        """Return what was held back, or what takes its place; *support* is known then."""
        tail = self._output.end()
        if self._is_plain or self.is_blank:
            return self._show(tail)
        unread = tail if self._policy.is_live else self._output.text
        whole = self._checked_text([*self._sentences.feed(unread), *self._sentences.end()])
        rest = whole if self._policy.is_live or self._policy.is_late else tail
        replaced = self._policy.replacement(self._checked, self._proved, self._dropped)
        if replaced is not None:
            self._places = [] if self._policy.is_late else self._places
            rest = self._instead(replaced, rest)
        self.support = Support(
            self._checked,
            self._proved,
            self._policy.unsupported,
            unsupported=tuple(self._places),
            dropped=self._dropped,
            replaced=replaced,
            near=self._near,
        )
        return self._show(rest)

    def citations(self) -> tuple[Citation, ...]:
        """Return the marks of what was shown, each with its proof."""
        return resolve(self.text, self._prompt.extracts, language=self._prompt.language, sources=self._proof.sources)

    def _checked_text(self, sentences: Iterable[str]) -> str:
        """Return what is shown of *sentences*; what the documents prove of them is noted."""
        return "".join([self._placed(sentence, self._proof.of(sentence)) for sentence in sentences])

    def _placed(self, sentence: str, status: str | None) -> str:
        """Return what is shown of *sentence*, and note its place there; *status* None: it states nothing."""
        self._checked += status is not None
        self._proved += status in PROVED
        self._near += status == NEAR
        if status is not None and status not in PROVED:
            wording = self._policy.wording(sentence, status, self._prompt.language)
            if wording is None:
                self._dropped += 1
                # A paragraph still ends where its last sentence is left out.
                sentence = "\n" * sentence[len(sentence.rstrip()) :].count("\n") if self._last not in ("", "\n") else ""
            else:
                sentence = wording
                start = self._at + len(sentence) - len(sentence.lstrip())
                self._places.append((start, self._at + len(sentence.rstrip())))
        self._at += len(sentence)
        self._last = sentence[-1:] or self._last
        return sentence

    def _instead(self, replaced: Replacement, rest: str) -> str:
        """Return what is shown in place of the answer, behind what was shown of it and *rest* of what stays."""
        prompt = self._prompt
        if replaced == "extractive":
            asked = prompt.sought or prompt.question
            return "".join(pieces(asked, prompt.extracts, language=prompt.language, answer_format=prompt.answer_format))
        nothing = nothing_found(prompt.language)
        if self._policy.is_late:
            return nothing
        # What states nothing was shown all the same: an introduction, say.
        before = self.text + rest
        gap = "\n\n" if before.strip() and not before.endswith("\n\n") else ""
        return f"{rest}{gap}{nothing}"

    def _show(self, text: str) -> str:
        self._pieces.append(text)
        return text
