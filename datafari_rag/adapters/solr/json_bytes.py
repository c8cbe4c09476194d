"""Solr's answers and our documents as bytes of JSON: read without a detour over text, written whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import orjson

from datafari_rag.core.errors import SearchUnavailable
from datafari_rag.ports import Offload, inline


class Decoder:
    """Reads an answer's bytes for pysolr, which would make text of them first; long ones are read aside."""

    def __init__(self, offload: Offload = inline) -> None:
        """Remember where long answers are read."""
        self._aside = offload

    def decode(self, body: bytes) -> dict[str, Any]:
        """Return the JSON object. Raises: SearchUnavailable: it is not a reply of Solr."""
        try:
            found = self._aside(partial(orjson.loads, body), len(body))
        except orjson.JSONDecodeError:
            raise SearchUnavailable(log="Solr's answer is not JSON") from None
        # pysolr looks into `response` for its log.
        if not isinstance(found, dict) or not isinstance(found.get("response") or {}, dict):
            raise SearchUnavailable(log="Solr's answer is not of its form")
        return found


def encoded(value: Mapping[str, object] | Sequence[object]) -> bytes:
    """Return *value* as JSON; lone surrogates must be gone by now."""
    return orjson.dumps(value)
