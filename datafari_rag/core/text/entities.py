"""Character references of HTML, resolved in a text that anybody may have written."""

from __future__ import annotations

import html
import re

_ZEROS = re.compile(r"&#0+(?=[0-9])")
_TOO_LARGE = re.compile(r"&#[0-9]{8,};?")
"""The largest code point has seven digits."""


def unescaped(text: str) -> str:
    """
    Return *text* with its character references resolved, as `html.unescape` does it.

    That function raises a ValueError for a number of more than 4,300 digits, because Python reads no longer one. Here
    it becomes U+FFFD, as every number beyond the last code point does.
    """
    if "&#" in text:
        text = _TOO_LARGE.sub("\ufffd", _ZEROS.sub("&#", text))
    return html.unescape(text)
