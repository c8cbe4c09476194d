"""
Sentences for people that can be translated: the text in English, with its template.

The core knows no catalogue: `translated` is given a function that translates, at the edge. A value that is a plain
text stays as it is; a `Message` is translated as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping


class Message(str):
    """A text made of *template* and *values*; where no translation is used, it is the English text."""

    template: str
    values: Mapping[str, str]


def message(template: str, **values: str) -> Message:
    """Return *template* with *values* in its places; without values it is the unchanged text."""
    sentence = Message(template.format_map(values) if values else template)
    sentence.template, sentence.values = template, values
    return sentence


def translated(text: str, translate: Callable[[str], str]) -> str:
    """Return *text* as *translate* has it; what has no translation stays as it is."""
    if not isinstance(text, Message):
        return text
    if not text.values:
        return translate(text.template)
    values = {name: translated(value, translate) for name, value in text.values.items()}
    return translate(text.template).format_map(values)
