"""
`POST /grounding/check`: is a text proved by facts, or by documents that its sender may read (names of Google's check
grounding).

The request carries the text, and the facts or the ids of documents; the reply lists each sentence with what proves it.
Places in the text are counted in bytes of UTF-8 where Google counts them so, and also in code points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta, Struct

from datafari_rag.core.documents import Citation, Document
from datafari_rag.core.errors import BadRequest, RagError
from datafari_rag.core.proof.checking import CheckedSentence, TextCheck
from datafari_rag.core.proof.judging import NEAR, QUOTED, UNSUPPORTED, VERIFIED
from datafari_rag.core.proof.labels import title_of
from datafari_rag.core.proof.links import target_of
from datafari_rag.core.settings.table import RagSettings
from datafari_rag.protocols.chat_reply_parts import Json
from datafari_rag.protocols.records import NOT_BLANK, DocumentId, about, distinct, read
from datafari_rag.protocols.request import Incoming

MAX_CANDIDATE_CHARS = 20_000
MAX_FACTS = 200
MAX_FACTS_CHARS = 1_000_000
"""Characters of all facts together, their attributes included."""

MAX_ATTRIBUTES = 20
MAX_ATTRIBUTE_CHARS = 2_000
"""Characters of one fact's attributes, names and values: the reply repeats them at each place of the fact."""

MAX_DOCUMENTS = 20

STRENGTHS = {VERIFIED: 1.0, QUOTED: 0.8}
"""How strong a proof is: a whole statement, or a part of one."""

DEFAULT_THRESHOLD = 0.6
"""Proof that is weaker is not cited; this one lets both kinds through."""

_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    504: "DEADLINE_EXCEEDED",
}


class Fact(Struct, rename="camel", frozen=True):
    """A fact that the text is checked against."""

    fact_text: Annotated[str, about("What the fact says.", extra={"field": "factText"})] = ""
    attributes: (
        Annotated[
            dict[str, Any],
            Meta(
                max_length=MAX_ATTRIBUTES,
                description="title and uri name the fact; all come back as sourceMetadata: 2,000 characters together.",
                extra={"field": "attributes"},
                extra_json_schema={"additionalProperties": {"type": "string"}},
            ),
        ]
        | None
    ) = None


class GroundingSpec(Struct, rename="camel", frozen=True):
    """How strong a proof must be; Google's clients write the number as a number or as text."""

    citation_threshold: Annotated[
        Annotated[float, Meta(ge=0, le=1)]
        | Annotated[str, Meta(pattern=r"^\s*(0?\.[0-9]{1,18}|0|1|[01]\.0*|0\.[0-9]{1,18})\s*$")]
        | None,
        Meta(
            description="Weaker proof is not cited: 1 is verified, 0.8 quoted.",
            extra={"field": "citationThreshold", "must": "a number from 0 to 1"},
        ),
    ] = None


class GroundingRequest(Struct, rename="camel", frozen=True):
    """A text, and either facts or documents that it is checked against; other names are ignored."""

    answer_candidate: Annotated[
        str,
        Meta(
            pattern=NOT_BLANK,
            max_length=MAX_CANDIDATE_CHARS,
            description="The text whose sentences are checked. Blank: error 422.",
            extra={"absent": True},
        ),
    ]
    facts: Annotated[
        Annotated[list[Fact], Meta(min_length=1, max_length=MAX_FACTS, extra={"must": "a list of facts"})] | None,
        Meta(description="What the text is checked against, at most 1,000,000 characters together."),
    ] = None
    document_ids: Annotated[
        Annotated[
            list[DocumentId], Meta(min_length=1, max_length=MAX_DOCUMENTS, extra={"must": "a list of ids of documents"})
        ]
        | None,
        Meta(description="Documents instead of facts, read with the caller's rights."),
    ] = None
    grounding_spec: Annotated[GroundingSpec | None, about("What counts as proof.")] = None


@dataclass(frozen=True, slots=True)
class GroundingTask:
    """What is to be checked: *candidate* against *facts*, or against the documents with *ids*; one of them is empty."""

    candidate: str
    facts: tuple[Document, ...]
    ids: tuple[str, ...]
    threshold: float


@dataclass(frozen=True, slots=True)
class GroundingResult:
    """What was found of the candidate in *documents*; under the ids in *missing* its sender finds nothing."""

    check: TextCheck
    documents: Sequence[Document]
    missing: Sequence[str] = ()


def parse(incoming: Incoming) -> GroundingTask:
    """
    Read a request. A fact's attributes `title` and `uri` name it; `userLabels` and names unknown here are ignored.

    Raises:
        NoQuery: there is no candidate, or a blank one.
        TooManyValues: more facts, attributes or ids than are taken.
        BadRequest: a value that does not fit; the error names its field.
    """
    record = read(GroundingRequest, incoming.body)
    if (record.facts is None) == (record.document_ids is None):
        raise BadRequest("Send either facts or documentIds.", field="facts")
    spec = record.grounding_spec or GroundingSpec()
    threshold = DEFAULT_THRESHOLD if spec.citation_threshold is None else float(spec.citation_threshold)
    facts = tuple(_document_of(place, fact) for place, fact in enumerate(record.facts or ()))
    if sum(len(fact.text) + _chars_of(fact.meta) for fact in facts) > MAX_FACTS_CHARS:
        raise BadRequest(f"facts must have at most {MAX_FACTS_CHARS} characters together.", field="facts")
    return GroundingTask(record.answer_candidate, facts, distinct(record.document_ids or ()), threshold)


def reply(task: GroundingTask, result: GroundingResult, root: str = "") -> Json:
    """
    Return what is proved of the candidate.

    `supportScore` is the share of the sentences that are verified of those that need proof, null where none does. A
    proof that is weaker than the threshold is no proof here. Paths of our own pages are below *root*.
    """
    claims: list[Json] = []
    # Each place is cited once, in the order in which they are first named. The candidate's bytes are counted once.
    cited: list[Citation] = []
    known: dict[tuple[str | None, int | None, int | None], int] = {}
    at = reached = 0
    for sentence in result.check.sentences:
        claim = task.candidate[sentence.start : sentence.end]
        start = reached + len(task.candidate[at : sentence.start].encode())
        at, reached = sentence.end, start + len(claim.encode())
        status = status_of(sentence, task)
        shown = sentence.places if status != UNSUPPORTED else ()
        numbers = []
        for place in shown:
            numbers.append(known.setdefault((place.document_id, place.start, place.end), len(cited)))
            if numbers[-1] == len(cited):
                cited.append(place)
        claims.append(
            {
                "startPos": start,
                "endPos": reached,
                "start": sentence.start,
                "end": sentence.end,
                "claimText": claim,
                "groundingCheckRequired": sentence.status is not None,
                "status": status,
                "score": STRENGTHS.get(status or "", 0.0),
                "citationIndices": [] if status == NEAR else numbers,
                "nearIndices": numbers if status == NEAR else [],
                "missing": list(shown[0].missing) if shown else [],
                "added": list(shown[0].added) if shown else [],
            }
        )
    checked = [claim for claim in claims if claim["groundingCheckRequired"]]
    verified = sum(claim["status"] == VERIFIED for claim in checked)
    documents = {document.id: document for document in result.documents}
    return {
        "supportScore": round(verified / len(checked), 4) if checked else None,
        "citedChunks": [
            _chunk(place, documents[place.document_id or ""], root, is_fact=bool(task.facts)) for place in cited
        ],
        "claims": claims,
        "notFound": list(result.missing),
    }


def status_of(sentence: CheckedSentence, task: GroundingTask) -> str | None:
    """Return the result for a sentence when weaker proofs than required do not count."""
    strength = STRENGTHS.get(sentence.status or "")
    return UNSUPPORTED if strength is not None and strength < task.threshold else sentence.status


def failure(error: RagError, rag: RagSettings) -> tuple[int, Json]:
    """Return an error as Google's services have it, with our label; the code is the HTTP status."""
    status = _STATUSES.get(error.code, "INVALID_ARGUMENT" if error.code < 500 else "UNAVAILABLE")
    named = {} if error.field is None else {"field": error.field}
    about = {"code": error.code, "message": error.reason, "status": status, "label": error.label, **named}
    return error.code, {"error": about}


def _document_of(place: int, fact: Fact) -> Document:
    """Return *fact* as a document that can prove something. Raises: BadRequest."""
    meta = {name: text for name, text in (fact.attributes or {}).items() if isinstance(text, str)}
    other = next((name for name in fact.attributes or {} if name not in meta), None)
    if other is not None:
        raise BadRequest(f"{other} must be a string.", field=other)
    if _chars_of(meta) > MAX_ATTRIBUTE_CHARS:
        reason = f"attributes of a fact must have at most {MAX_ATTRIBUTE_CHARS} characters together."
        raise BadRequest(reason, field="attributes")
    title, url = meta.get("title") or f"§{place}", meta.get("uri") or None
    return Document(str(place), fact.fact_text, "factText", title=title, url=url, meta=meta)


def _chars_of(attributes: Mapping[str, object]) -> int:
    return sum(len(name) + len(str(value)) for name, value in attributes.items())


def _chunk(cited: Citation, document: Document, root: str, *, is_fact: bool) -> Json:
    """Return a place as Google has it: its source is the number of the fact, or the id of the document."""
    chunk: Json = {"chunkText": cited.quote, "source": document.id, "start": cited.start, "end": cited.end}
    chunk["context"] = cited.context
    if is_fact:
        return {**chunk, "sourceMetadata": dict(document.meta)}
    uri = target_of(document, root)
    where = {"title": title_of(document), "uri": uri, "documentId": document.id, "field": cited.field}
    return {**chunk, "sourceMetadata": {}, **where, "place": cited.place, "page": cited.page}
