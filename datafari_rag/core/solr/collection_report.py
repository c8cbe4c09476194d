"""
What an existing Solr collection has and lacks for this service, as findings with advice.

Judges facts; asks nothing itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from datafari_rag.core.access import ACL_FIELDS
from datafari_rag.core.solr.handler_parameters import BOOSTS, reason_left
from datafari_rag.core.solr.schema import Schema

STORED_SUMMARY = "llm_summary"
"""The field of Datafari's summaries."""

Verdict = Literal["ok", "hint", "problem"]

ELEVATOR = "elevat"
"""Part of the name of Solr's component for elevated documents."""


@dataclass(frozen=True, slots=True)
class HandlerFacts:
    """
    What a handler makes of the parameters of a search, wherever that is configured.

    *added* are the names of parameters that were not sent, *fixed* of those that count otherwise than they were sent.
    *filters* are its own. *expands* says that it expands `${name}` although the request forbids it. *components* are
    those that it names itself.
    """

    added: frozenset[str] = frozenset()
    fixed: frozenset[str] = frozenset()
    filters: tuple[str, ...] = ()
    expands: bool = False
    components: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: *text* says what is so, *advice* what to do about it ("" when nothing is to be done)."""

    subject: str
    verdict: Verdict
    text: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class CollectionFacts:
    """
    What a collection said of itself.

    *flags* is field name → its properties ("indexed", "stored"), for declared fields. *documents* are all, *public*
    those that no rights hide, *without* ACL field → documents that lack it altogether. *has_component* says
    whether the handler has Solr's own rights component, None when the configuration cannot be read. *textless* counts
    documents without an exact text. *handler* is None when it does not say what is in effect.
    """

    flags: Mapping[str, frozenset[str]]
    documents: int
    public: int | None
    without: Mapping[str, int]
    has_component: bool | None
    textless: int = 0
    handler: HandlerFacts | None = None


Problem = tuple[object, Verdict, str, str]
"""Whether it is there, and the verdict, text and advice of its finding."""

_NEEDED: Mapping[str, tuple[str, frozenset[str]]] = {
    "id": ("id", frozenset({"stored"})),
    "exactContent": ("exact_content", frozenset({"indexed", "stored"})),
    "title": ("title", frozenset({"stored"})),
    "url": ("url", frozenset({"stored"})),
}
"""The name in `solr.fields` of each field that answers need: its own name here, and the properties it must have."""

_USED = (
    ("preview_content", "rag.solrField=preview_content finds no text"),
    ("language", "a document's language is not shown"),
    ("last_modified", "hits cannot be sorted by date"),
    ("title_sort", "hits cannot be sorted by title; the sort is left out"),
)
"""Fields that answers do without, and what follows where they are missing."""


def findings(facts: CollectionFacts, schema: Schema, *, mode: str, facets: Iterable[str]) -> tuple[Finding, ...]:
    """Return the findings about a collection, in the order in which an administrator corrects them."""
    rows: list[Finding] = []
    # Of each subject the first problem that is there, else that all is well, where that says something.
    for subject, well, problems in (*_of_fields(facts, schema, facets), *_of_rights(facts, schema, mode)):
        found = next((Finding(subject, *finding[1:]) for finding in problems if finding[0]), None)
        if found is not None or well:
            rows.append(found or Finding(subject, "ok", well))
    return (*rows, *_of_handler(facts.handler))


def _of_fields(
    facts: CollectionFacts, schema: Schema, facets: Iterable[str]
) -> Iterator[tuple[str, str, Sequence[Problem]]]:
    """Yield each subject, what is said where all is well, and its problems."""
    fields, prefix = schema.fields, f"{schema.fields.content_prefix}LANGUAGE"
    index = "Index documents: `datafari-rag index PATH`"
    yield (
        "documents",
        f"{facts.documents} in the collection",
        [(not facts.documents, "hint", "the collection is empty", index)],
    )
    for name, (own_name, flags) in _NEEDED.items():
        own: str = getattr(fields, own_name)
        lacking = sorted(flags - facts.flags.get(own, flags))
        change = f"Change it in the schema and index again, or set another field: {_mapped(name)}"
        yield (
            f"field {own}",
            "exists",
            [
                (not schema.has(own), "problem", "is missing", f"Set the collection's field: {_mapped(name)}"),
                (lacking, "problem", f"is not {' and not '.join(lacking)}", change),
            ],
        )
    for name, consequence in _USED:
        own, advice = getattr(fields, name), f"Nothing, unless you need it; then {_mapped(name)}"
        yield f"field {own}", "", [(not schema.has(own), "hint", f"is missing: {consequence}", advice)]
    text = f"{facts.textless} documents have no {fields.exact_content}"
    advice = f"Nothing where they have a {prefix}, which is read instead: else index again"
    yield "texts", "", [(facts.textless, "hint", text, advice)]
    text = f"there is no field {prefix}: only exact word forms are found"
    advice = "Fill content_en and the like (conf/solr), or set content_prefix in solr.fields"
    contents, titles = schema.contents(""), schema.titles("")
    yield "stemmed text", ", ".join(contents), [(not contents, "hint", text, advice)]
    advice = "Copy the title to title_en and exactTitle (conf/solr)"
    yield "searched titles", ", ".join(titles), [(not titles, "hint", "titles cannot be searched", advice)]
    text = "is not used: nothing is stored with it that says which text of the document it was made from"
    advice = "Nothing: summaries are made when they are wanted"
    yield f"field {STORED_SUMMARY}", "", [(STORED_SUMMARY in (schema.kinds or {}), "hint", text, advice)]
    names = list(facets)
    blind = [name for name in names if name in facts.flags and not facts.flags[name] & {"indexed", "docValues"}]
    missing = [name for name in names if not schema.has(name)]
    advice = "Remove these names from solr.facets"
    text = f"not indexed, so that nothing is counted and every filter finds nothing: {', '.join(blind)}"
    yield "solr.facets", "", [(blind, "hint", text, advice)]
    yield "solr.facets", "", [(missing, "hint", f"missing from the schema: {', '.join(missing)}", advice)]


def _of_rights(facts: CollectionFacts, schema: Schema, mode: str) -> Iterator[tuple[str, str, Sequence[Problem]]]:
    if mode == "none":
        text = "security.mode=none: everyone sees every document"
        yield "rights", "", [(True, "hint", text, "Set security.mode=tokens")]
        return
    well = "the handler has the ManifoldCF component" if mode == "plugin" else ""
    is_plugin, has = mode == "plugin", facts.has_component
    unread = "Solr's configuration cannot be read", "Check manually which component filters by rights"
    problems: list[Problem] = [
        (has is None, "hint", *unread),
        (is_plugin and not has, "problem", *_UNFILTERED),
        (not is_plugin and has, "problem", *_FILTERED_TWICE),
    ]
    yield "rights component", well, problems
    if is_plugin:
        return
    for name in ACL_FIELDS:
        own = schema.acl(name)
        is_indexed, hidden = "indexed" in facts.flags.get(own, frozenset({"indexed"})), facts.without.get(own, 0)
        add = f"Add it with the default __nosecurity__ (conf/solr/schema.xml), or set your field: {_mapped(name)}"
        default = "Give the field the default __nosecurity__ in the schema and index these documents again"
        problems = [
            (not schema.has(own), "problem", "is missing: every search fails", add),
            (not is_indexed, "problem", "is not indexed: nothing is found", "Set indexed=true and index again"),
            (hidden, "problem", f"{hidden} documents lack it: no one can see them", default),
        ]
        yield f"field {own}", "exists in every document", problems
    is_known = facts.public is not None and facts.documents
    yield "rights", f"{facts.public} of {facts.documents} documents are public" if is_known else "", []


_UNFILTERED = (
    "security.mode=plugin, but the handler has no ManifoldCF component: documents are not filtered",
    "Set security.mode=tokens, or install the component in Solr",
)
_FILTERED_TWICE = (
    "the handler filters by itself, as Datafari's does, without a user: only public documents are found",
    "Either let it filter, with this line alone: security.mode=plugin\n"
    "        -> or add a handler without {!manifoldCFSecurity} to Solr, and name it: solr.handler=/rag\n"
    '           <requestHandler name="/rag" class="solr.SearchHandler"/>',
)


def _of_handler(handler: HandlerFacts | None) -> Iterator[Finding]:
    if handler is None:
        text = "does not say which parameters are in effect"
        advice = "Remove echoParams from its invariants, or compare it with docs/attach.md"
        yield Finding("handler", "hint", text, advice)
        return
    reasons = {name: reason for name in sorted(handler.added) if (reason := reason_left(name)) is not None}
    added = sorted({*BOOSTS, "rq"} & handler.added - handler.fixed)
    added += [name for name in handler.components if ELEVATOR in name.lower()]
    macros = "the handler expands ${name} in ids, rights and user names: callers can inject other values"
    fixed = f"its invariants override what each search sends: {', '.join(sorted(handler.fixed))}"
    move = "Move them to the defaults of the handler, or use another one: solr.handler=/NAME"
    order = f"answers are made without what it adds to the order of hits: {', '.join(added)}"
    if handler.expands:
        yield Finding("macros", "problem", macros, "Remove expandMacros from the invariants of the handler")
    if handler.fixed:
        yield Finding("handler", "problem", fixed, move)
    for name, reason in reasons.items():
        yield Finding("handler", "hint", f"sets {name}: {reason}", "Remove it from the defaults of the handler")
    if added:
        yield Finding("handler", "hint", order, "Nothing: a plain search has it")
    if not handler.fixed and not reasons:
        yield Finding("handler", "ok", "nothing that it sets changes an answer")


def _mapped(name: str) -> str:
    return f'solr.fields={{"{name}": "NAME"}}'
