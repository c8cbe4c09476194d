"""
The citations of an answer as OpenAI's clients, Perplexity's and Open WebUI read them: one set, several spellings.

Places in the answer are code points. Nothing is decided here: what is cited, and whether it is proved, comes from
`core/citations`. The passages that the model saw are nodes as KAITO's clients know them (KAITO's RAG service).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from datafari_rag.core.documents import Citation, Extract, Passage, place_of, stored_span
from datafari_rag.core.errors import ContextTooLong, NoSuchModel, RagError, RefusedByModel
from datafari_rag.core.proof.labels import title_of
from datafari_rag.core.proof.links import document_link, passage_link, target_of
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from datafari_rag.core.settings.table import OpenaiSettings, RagSettings
from datafari_rag.core.text.cleaning import without_invisible
from datafari_rag.core.text.language import sentence_in
from datafari_rag.protocols.chat_reply_parts import Json, status_of

SNIPPET_CHARS = 300

OUR_MODEL = "datafari"
"""The model that answers from documents; clients are set up with this name, and OUR_MODEL/INDEX is another index."""


def url_citations(citations: Sequence[Citation], base: str) -> list[Json]:
    """Return one flat `url_citation` for each mark that names a document, in the order of the answer (responses)."""
    return [
        {
            "type": "url_citation",
            "start_index": citation.answer_start,
            "end_index": citation.answer_end,
            "title": without_invisible(citation.title or citation.label),
            "url": passage_link(citation, base),
            "x_status": citation.status,
            "x_quote": citation.quote,
            "x_document_id": citation.document_id,
            "x_field": citation.field,
            "x_start": citation.start,
            "x_end": citation.end,
        }
        for citation in citations
        if citation.document_id is not None
    ]


def source_events(citations: Sequence[Citation], extracts: Sequence[Extract], base: str) -> Iterator[Json]:
    """
    Yield Open WebUI's `source` event of each of *extracts* up to the last that is cited, in the order of their numbers.

    Open WebUI shows the n-th source behind `[n]`: so those before it are there too, cited or not.
    """
    by_document: dict[str, list[Citation]] = {}
    for citation in citations:
        if citation.document_id is not None:
            by_document.setdefault(citation.document_id, []).append(citation)
    last = max((e.number for e in extracts if e.document.id in by_document), default=0)
    for extract in extracts:
        if extract.number <= last:
            yield {"event": _source(extract, by_document.get(extract.document.id, []), base)}


def status_event(extracts: Sequence[Extract], language: str) -> Json:
    """Return Open WebUI's `status` event above an answer: how many documents it is made of."""
    sentence = sentence_in(language, "documents_read").format(count=len(extracts))
    return {"event": {"type": "status", "data": {"description": sentence, "done": True}}}


def _source(extract: Extract, citations: Sequence[Citation], base: str) -> Json:
    proved = [citation for citation in citations if citation.quote is not None]
    link = next((passage_link(citation, base) for citation in proved), None) or document_link(extract.document, base)
    # The page marks the words of a source itself, and takes its name from `metadata` where that is `external`.
    link = link.partition("#:~:text=")[0]
    name = title_of(extract.document)
    about: Json = {"source": link, "name": name, "external": True}
    places = {(citation.start, citation.end): citation for citation in proved}.values()
    whole: Json = {"field": extract.document.field, "start": None, "end": None}
    return {
        "type": "source",
        "data": {
            "source": {"name": name, "id": extract.document.id, "url": link},
            "document": [place.quote for place in places] or [extract.text[:SNIPPET_CHARS]],
            "metadata": [
                about | {"field": place.field, "start": place.start, "end": place.end, "status": place.status}
                for place in places
            ]
            or [about | whole | {"status": citations[0].status if citations else None}],
        },
    }


Node = dict[str, object]


def nodes_of(extracts: Sequence[Extract], root: str = "") -> list[Node]:
    """
    Return one node for each passage: documents best first, within one its best passage first.

    The protocol wants a number for a score: all passages of a document have that of the document, which is 1/rank for
    everybody but administrators. Paths of our own pages are below *root*.
    """
    nodes = []
    for extract in extracts:
        if extract.document.field == "highlighting" or not extract.passages:
            nodes.append(_node(extract, extract.text, (0, len(extract.text)), root))
            continue
        for passage in sorted(extract.passages, key=lambda passage: -passage.score):
            text = _text_of(extract, passage)
            if text.strip():
                span = stored_span(extract.document, passage.start, passage.end)
                nodes.append(_node(extract, text, span, root))
    return nodes


def _node(extract: Extract, text: str, span: tuple[int, int], root: str) -> Node:
    document, (start, end) = extract.document, span
    where = place_of(document, start)
    return {
        "doc_id": document.id,
        "node_id": f"{document.id}#{start}-{end}",
        "text": text,
        "score": document.score,
        "metadata": {
            "label": extract.label,
            "number": extract.number,
            "title": title_of(document),
            "url": target_of(document, root),
            "field": document.field,
            "start": start,
            "end": end,
            "place": None if where is None else where.label(),
        },
    }


def _text_of(extract: Extract, passage: Passage) -> str:
    """Return what the model saw of *passage*: the characters of the extract that stem from it."""
    pieces = []
    for run in extract.origins.runs:
        first, last = max(run.stored, passage.start), min(run.stored + run.length, passage.end)
        if first < last:
            pieces.append(extract.text[run.start + first - run.stored : run.start + last - run.stored])
    return "".join(pieces)


@dataclass(frozen=True, slots=True)
class OurModel:
    """A model that answers from documents: the *name* that the caller used, and the *index*, None for the main one."""

    name: str
    index: str | None = None


def our_model(name: object, openai: OpenaiSettings) -> OurModel | None:
    """
    Return this service's model with that *name*, None for another name.

    Raises:
        NoSuchModel: the name is ours and its index is not known.
    """
    if not isinstance(name, str):
        return None
    base, has_index, index = name.partition("/")
    if base != OUR_MODEL:
        return None
    if not has_index:
        return OurModel(name)
    if index not in openai.indexes:
        raise NoSuchModel.named(name)
    return OurModel(name, index)


def may_pass_through(rag: RagSettings, openai: OpenaiSettings) -> bool:
    """Say whether requests may go to the model as they came; some models cannot be called that way."""
    is_openai = rag.template == "openai" and rag.api_endpoint != BUILTIN_MODEL
    return openai.client_passthrough and is_openai


def listed(rag: RagSettings, openai: OpenaiSettings, *, created_s: int) -> Json:
    """Return the models that may be requested, and the names of the indexes."""
    data = [_described(name, created_s) for name in dict.fromkeys(_names(rag, openai))]
    return {"object": "list", "data": data, "indexes": list(openai.indexes)}


def model_row(name: str, rag: RagSettings, openai: OpenaiSettings, *, created_s: int) -> Json:
    """Return one model. Raises: NoSuchModel, where the list does not have it."""
    if our_model(name, openai) is None and name not in _names(rag, openai):
        raise NoSuchModel.named(name)
    return _described(name, created_s)


def _names(rag: RagSettings, openai: OpenaiSettings) -> Iterator[str]:
    yield OUR_MODEL
    main = next((name for name, address in openai.indexes.items() if not address), None)
    yield from (f"{OUR_MODEL}/{name}" for name in openai.indexes if name != main)
    if may_pass_through(rag, openai) and rag.model:
        yield rag.model


def _described(name: str, created_s: int) -> Json:
    return {"id": name, "object": "model", "created": created_s, "owned_by": "datafari_rag"}


def failure(error: RagError, rag: RagSettings) -> tuple[int, Json]:
    """Return the HTTP status and the error as OpenAI's clients read it; the model's own words where it refused."""
    if isinstance(error, RefusedByModel):
        refusal = error.refusal
        kind = refusal.kind or "invalid_request_error"
        return refusal.status, _body(error.reason, kind, refusal.param, refusal.code or error.label)
    status = status_of(error)
    kind = KINDS.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return status, _body(error.reason, kind, error.field, CODES.get(type(error), error.label))


def _body(message: str, kind: str, param: str | None, code: str) -> Json:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


KINDS = {
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
}
"""What OpenAI calls a failure of this status; all other 4xx are invalid_request_error."""

CODES: Mapping[type[RagError], str] = {
    ContextTooLong: "context_length_exceeded",
    NoSuchModel: "model_not_found",
}
"""Failures that clients know by OpenAI's code; all others have their label."""
