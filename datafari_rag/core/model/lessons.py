"""
What a refusal teaches about a server: a parameter that it does not take, or roles that it wants otherwise.

A refusal counts only where it names one of these, and only while the request has it. Its message may quote the prompt:
words that stand there as they stand in the prompt teach nothing, so that no document decides how requests are made.
Pure, and no text of a refusal is returned.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from datafari_rag.core.answer.prompt import Prompt, texts_of
from datafari_rag.core.model.refusal import Rejection
from datafari_rag.core.model.server_needs import Instructions, Length, ServerNeeds
from datafari_rag.core.model.thinking import END_MARKS, ThinkingFilter

MAX_LESSONS = 3
"""How often one question is sent again, each time for another difference."""

TEACHING = frozenset({200, 400, 422})
"""Statuses of a refusal of the request itself; 200 is an error object in place of an answer that names no status."""

_READ_CHARS = 2_000
_AROUND = 8
_ONLY = "only user and assistant roles"
_REFUSED = re.compile(
    r"unsupported|not support|n't support|not permitted|not allowed|unrecognized|unknown|unexpected|extra_forbidden"
    rf"|deprecated|{_ONLY}"
)
_ALTERNATE = re.compile(r"must alternate|roles? in a row|must be at the beginning|initial optional system message")
_ROLE = re.compile(r"\broles?\b")
_BACKSLASHES = re.compile(r"\\+")
_NOT_ASCII = re.compile(r"(?:\\u[\da-f]{4}|\\x[\da-f]{2}|[^\x00-\x7f]|\?)+")
_SPACE = re.compile(r"(?:\\[nrtbf]|\s)+")
_PARAMETERS = ("max_tokens", "max_completion_tokens", "temperature")


@dataclass(frozen=True, slots=True)
class Lesson:
    """What a server wants otherwise: *name* is what it refused, *text* says what is done, for the log."""

    name: str
    text: str
    needs: ServerNeeds


def lesson_in(rejection: Rejection, needs: ServerNeeds, sent: Sequence[str]) -> Lesson | None:
    """
    Return what *rejection* teaches of a request that was made as *needs* says, None where it teaches nothing.

    *sent* are the texts of the prompt.
    """
    if rejection.status not in TEACHING:
        return None
    said = _Said.of(rejection, sent)
    if not said.has(_REFUSED):
        return _of_turns(needs) if said.has(_ALTERNATE) else None
    name = next(said.named((*_PARAMETERS, *needs.body)), None)
    if name is not None:
        return _of_parameter(name, needs)
    if said.has(_ALTERNATE):
        return _of_turns(needs)
    is_of_role = needs.instructions in said.text or _ONLY in said.text
    return _of_instructions(needs) if said.has(_ROLE) and is_of_role else None


def thinking_lesson(
    needs: ServerNeeds, thinking: ThinkingFilter, prompt: Prompt, *, has_thoughts: bool
) -> Iterator[Lesson]:
    """
    Yield what the reply to *prompt* teaches that was read through *thinking*: whether its model thinks, and where.

    *has_thoughts*: it thought, shown or hidden. An end mark that stands in the prompt may be quoted from there.
    """
    if thinking.is_without_beginning and needs.thinking != "aloud":
        if any(mark in text for mark in END_MARKS for text in texts_of(prompt)):
            return
        text = "its answers begin with thoughts: streams wait for their end"
        yield Lesson("thinking", text, replace(needs, thinking="aloud"))
    elif has_thoughts and needs.thinking == "none":
        yield Lesson("thinking", "it thinks: its answers get more tokens", replace(needs, thinking="apart"))


@dataclass(frozen=True, slots=True)
class _Said:
    """The words of a refusal, unescaped and cut; *param* is the parameter that it names in a field of its own."""

    text: str
    param: str
    sent: tuple[str, ...]

    @classmethod
    def of(cls, rejection: Rejection, sent: Sequence[str]) -> _Said:
        words = (str(rejection.error.get(key) or "")[:_READ_CHARS] for key in ("code", "type", "message"))
        param = rejection.error.get("param")
        return cls(_unescaped(" ".join(words)), param if isinstance(param, str) else "", tuple(map(_unescaped, sent)))

    def has(self, pattern: re.Pattern[str]) -> bool:
        """Say whether the server itself says what *pattern* finds; what it only quotes of the prompt does not count."""
        return any(not self._is_quoted(*found.span()) for found in pattern.finditer(self.text))

    def named(self, names: Sequence[str]) -> Iterator[str]:
        """Yield those of *names* that are refused: the one of the field, else as they come in the message."""
        if self.param:
            yield from (name for name in names if name == self.param)
            return
        found = ((re.search(rf"(?<![\w.]){re.escape(name.lower())}(?!\w)", self.text), name) for name in names)
        places = sorted((match.start(), name) for match, name in found if match and not self._is_quoted(*match.span()))
        yield from (name for _, name in places)

    def _is_quoted(self, start: int, end: int) -> bool:
        around = self.text[max(0, start - _AROUND) : end + _AROUND]
        return any(around in text for text in self.sent)


def _unescaped(text: str) -> str:
    """Return *text* in lower case and so that a quotation of it, escaped or not and however often, reads the same."""
    text = _NOT_ASCII.sub("?", _BACKSLASHES.sub(r"\\", text.lower()))
    return _SPACE.sub(" ", text).replace("\\", "")


def _of_parameter(name: str, needs: ServerNeeds) -> Lesson | None:
    if name in needs.body:
        body = {key: value for key, value in needs.body.items() if key != name}
        return Lesson(name, f"{name} is not sent", replace(needs, body=body))
    if name == "temperature":
        bare = replace(needs, sends_temperature=False)
        return Lesson(name, "temperature is not sent", bare) if needs.sends_temperature else None
    if name != needs.length:
        return None
    other: Length = "max_completion_tokens" if name == "max_tokens" else "max_tokens"
    return Lesson("length", f"{other} is sent in place of {name}", replace(needs, length=other))


def _of_turns(needs: ServerNeeds) -> Lesson | None:
    if needs.is_merged:
        return None
    text = "documents and question are one message, so that user and assistant alternate"
    return Lesson("turns", text, replace(needs, is_merged=True))


def _of_instructions(needs: ServerNeeds) -> Lesson | None:
    if needs.instructions == "user":
        return None
    role: Instructions = "system" if needs.instructions == "developer" else "user"
    return Lesson(needs.instructions, f"instructions have the role {role}", replace(needs, instructions=role))
