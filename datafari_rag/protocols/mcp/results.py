"""
What the tools return: dicts that fit their schemas, and have a limited number of tokens.

A larger result loses its least important part first and has `truncated`. Text is cut at the end of a sentence
where that is possible.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast
from urllib.parse import quote, urlencode, urlsplit

from datafari_rag.core.answer.output_filter import target_of
from datafari_rag.core.citations.labels import title_of
from datafari_rag.core.citations.text_check import CheckedSentence
from datafari_rag.core.documents import Citation, Document, Extract
from datafari_rag.core.events import Finished, Sources
from datafari_rag.core.text.sizes import cut_at, longest_prefix
from datafari_rag.protocols.ai.replies import about
from datafari_rag.protocols.chat_reply_parts import activity, citation, partial, support
from datafari_rag.protocols.openai.source_nodes import nodes_of

Json = dict[str, object]

MOST_CHARS_PER_TOKEN = 16
"""No text has more characters to a token for long: more than this is not even counted."""

_ADDRESS = re.compile(
    r"(?:(?:https?|ftps?|sftp|davs?)://[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]{1,5})?|(?:file|smb|nfs|cifs)://[A-Za-z0-9.-]*)"
    r"(?:[/?#][^\x00-\x1f\x7f]*)?"
)
_KEPT = "%/:=&?~#+!$,;'@()*[]"


@dataclass(frozen=True, slots=True)
class Room:
    """How large a result may be: *tokens* as *count* counts them; *origin* begins the addresses of our own pages."""

    tokens: int
    count: Callable[[str], int]
    origin: str = ""

    def tokens_of(self, value: object) -> int:
        """Return the tokens of *value* as it is written."""
        return self.count(written(value))


def written(value: object) -> str:
    """Return *value* as the text block of a result has it: its JSON, and nothing else."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def search_result(sources: Sources, room: Room) -> Json:
    """
    Return the documents of *sources* with their passages.

    Where not all have room, the last documents go first, then passages: each document keeps one before any has two.
    """
    named = [_result(extract, room) for extract in sources.extracts]
    kept, left = _within(named, room.tokens - room.tokens_of({"results": [], "truncated": False}), room)
    passages = [_passages(extract) for extract in sources.extracts[: len(kept)]]
    chosen: list[list[Json]] = [[] for _ in kept]
    is_cut = len(kept) < len(named)
    for place in range(max(map(len, passages), default=0)):
        for mine, taken in zip(passages, chosen, strict=True):
            size = room.tokens_of([mine[place]]) if place < len(mine) else 0
            if size > left:
                is_cut = True
            elif size:
                taken.append(mine[place])
                left -= size
    results = [{**one, "passages": taken} for one, taken in zip(kept, chosen, strict=True)]
    return {"results": results, "truncated": is_cut, **partial(sources)}


def fetched(document: Document, span: tuple[int, int], room: Room, most_tokens: int | None = None) -> Json:
    """
    Return the stored text of *document* from the first place of *span* to the second, as far as there is room.

    *most_tokens* is how much text the caller wants at most.
    """
    length = len(document.text)
    start = min(span[0], length)
    wanted = max(start, min(span[1], length))
    place: Json = {"field": document.field, "start": start, "end": wanted, "length": length}
    known = {"last_modified": document.last_modified, "language": document.language}
    place |= {key: value for key, value in known.items() if value is not None}
    result: Json = {**_named(document, room), "text": "", "metadata": place, "truncated": True, "next_start": wanted}
    left = max(1, room.tokens - room.tokens_of(result))
    left = left if most_tokens is None else min(left, most_tokens)
    end = start + _length_within(document.text[start:wanted], left, room)
    is_cut = end < wanted
    ending: Json = {"truncated": is_cut, "next_start": end if is_cut else None}
    return {**result, "text": document.text[start:end], "metadata": {**place, "end": end}, **ending}


def answer_result(sources: Sources, finished: Finished, room: Room) -> Json:
    """Return the answer; where all of it is too large, the last citations and then the last documents go."""
    citations = [citation(one) for one in finished.citations]
    documents = [{**_named(extract.document, room), "label": extract.label} for extract in sources.extracts]
    result: Json = {"answer": finished.text, "finish_reason": finished.finish_reason, **partial(sources)}
    result |= support(finished) | activity(finished) | about(sources)
    whole = {**result, "citations": citations, "documents": documents, "truncated": False}
    if room.tokens_of(whole) <= room.tokens:
        return whole
    left = room.tokens - room.tokens_of({**result, "citations": [], "documents": [], "truncated": False})
    kept_documents, left = _within(documents, left, room)
    kept_citations, left = _within(citations, left, room)
    is_cut = len(kept_documents) < len(documents) or len(kept_citations) < len(citations)
    return {**result, "citations": kept_citations, "documents": kept_documents, "truncated": is_cut}


def check_result(
    text: str, checked: Sequence[CheckedSentence], documents: Sequence[Document], missing: Sequence[str], room: Room
) -> Json:
    """Return what is proved of *text*; *missing* are ids under which the user finds nothing, whatever the reason."""
    claims = [_claim(text, one) for one in checked]
    result: Json = {"documents": [_named(one, room) for one in documents], "not_found": list(missing)}
    kept, _ = _within(claims, room.tokens - room.tokens_of({**result, "claims": [], "truncated": False}), room)
    return {"claims": kept, **result, "truncated": len(kept) < len(claims)}


def links(documents: Iterable[Document], room: Room) -> list[Json]:
    """Return a link to each of *documents* as MCP has it, the first one with the highest priority."""
    found = []
    for place, document in enumerate(documents):
        annotations: Json = {"audience": ["user"], "priority": round(1 / (place + 1), 3)}
        named = _named(document, room)
        link = {"type": "resource_link", "uri": named["url"], "name": named["title"], "annotations": annotations}
        found.append(link)
    return found


def address_of(document: Document, origin: str) -> str:
    """Return where a person can open *document*: its own address where every client takes it for one, else our page."""
    own = target_of(document)
    if _ADDRESS.fullmatch(own) and _is_address(own):
        return quote(own, safe=_KEPT)
    return f"{origin}/documents?{urlencode({'id': document.id}, errors='replace')}"


def _is_address(text: str) -> bool:
    try:
        return urlsplit(text).port != 0 and text.count("#") < 2
    except ValueError:
        return False


def _named(document: Document, room: Room) -> Json:
    return {"id": document.id, "title": title_of(document), "url": address_of(document, room.origin)}


def _result(extract: Extract, room: Room) -> Json:
    modified = extract.document.last_modified
    dated = {} if modified is None else {"last_modified": modified}
    return {**_named(extract.document, room), **dated, "passages": []}


def _passages(extract: Extract) -> list[Json]:
    """Return the passages of *extract* as the model would see them, with their places in the stored text."""
    found: list[Json] = []
    for node in nodes_of([extract]):
        place = cast("Mapping[str, object]", node["metadata"])
        found.append({**{key: place[key] for key in ("field", "start", "end")}, "text": node["text"]})
    return found


def _within(items: Sequence[Json], left: int, room: Room) -> tuple[list[Json], int]:
    """Return the first of *items* that together have at most *left* tokens, commas included, and what is left then."""
    kept: list[Json] = []
    for item in items:
        size = room.tokens_of([item])
        if size > left:
            break
        kept.append(item)
        left -= size
    return kept, left


def _length_within(text: str, tokens: int, room: Room) -> int:
    """Return how many characters of the start of *text* have at most *tokens* tokens, cut where a sentence ends."""
    length = longest_prefix(text, tokens * MOST_CHARS_PER_TOKEN, lambda head: room.count(written(head)), tokens)
    return length if length == len(text) else max(1, cut_at(text, length))


def _claim(text: str, checked: CheckedSentence) -> Json:
    stated = text[checked.start : checked.end]
    return {
        "text": stated,
        "start": checked.start,
        "end": checked.end,
        "status": checked.status,
        "proofs": [_place_of(one) for one in checked.proofs],
        "against": [_place_of(one) for one in checked.against],
    }


def _place_of(one: Citation) -> Json:
    return {"document_id": one.document_id, "field": one.field, "start": one.start, "end": one.end, "quote": one.quote}
