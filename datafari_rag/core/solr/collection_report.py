"""
What an existing Solr collection has and lacks for this service, as findings with advice.

Judges facts; asks nothing itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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


def findings(facts: CollectionFacts, schema: Schema, *, mode: str, facets: Iterable[str]) -> tuple[Finding, ...]:
    """Return the findings about a collection, in the order in which an administrator corrects them."""
    return (
        *_of_documents(facts),
        *_of_texts(facts, schema),
        *_of_extras(schema, facets, facts),
        *_of_rights(facts, schema, mode),
        *_of_handler(facts.handler),
    )


def _of_documents(facts: CollectionFacts) -> Iterator[Finding]:
    if facts.documents:
        yield Finding("documents", "ok", f"{facts.documents} in the collection")
    else:
        yield Finding(
            "documents", "hint", "the collection is empty", "Index documents: datafari-rag index PATH --conf FILE"
        )


def _of_texts(facts: CollectionFacts, schema: Schema) -> Iterator[Finding]:
    fields = schema.fields
    needed = {
        "id": (fields.id, {"stored"}),
        "exactContent": (fields.exact_content, {"indexed", "stored"}),
        "title": (fields.title, {"stored"}),
        "url": (fields.url, {"stored"}),
    }
    for name, (own, flags) in needed.items():
        yield _needed(name, own, flags, facts, schema)
    if not schema.has(fields.preview_content):
        yield Finding(
            f"field {fields.preview_content}",
            "hint",
            "is missing",
            'Do not use rag.solrField=preview_content, or set the field: solr.fields={"preview_content": "NAME"}',
        )
    if facts.textless:
        text = f"{facts.textless} documents have no {fields.exact_content}"
        advice = (
            f"Nothing where they have a {fields.content_prefix}LANGUAGE, which is read in its place: else index again"
        )
        yield Finding("texts", "hint", text, advice)
    contents, titles = schema.contents(""), schema.titles("")
    if contents:
        yield Finding("stemmed text", "ok", ", ".join(contents))
    else:
        yield Finding(
            "stemmed text",
            "hint",
            f"there is no field {fields.content_prefix}LANGUAGE: only exact word forms are found",
            "Fill content_en and the like (conf/solr), or set content_prefix in solr.fields",
        )
    if titles:
        yield Finding("searched titles", "ok", ", ".join(titles))
    else:
        yield Finding(
            "searched titles",
            "hint",
            "titles cannot be searched",
            "Copy the title to title_en and exactTitle (conf/solr)",
        )


def _of_handler(handler: HandlerFacts | None) -> Iterator[Finding]:
    if handler is None:
        text = "does not say which parameters are in effect"
        yield Finding(
            "handler", "hint", text, "Remove echoParams from its invariants, or compare it with docs/attach.md"
        )
        return
    if handler.expands:
        yield Finding(
            "macros",
            "problem",
            "the handler expands ${name} in ids, rights and user names: callers can inject other values",
            "Remove expandMacros from the invariants of the handler",
        )
    fixed = sorted(handler.fixed)
    if fixed:
        yield Finding(
            "handler",
            "problem",
            f"its invariants override what each search sends: {', '.join(fixed)}",
            "Move them to the defaults of the handler, or use another one: solr.handler=/NAME",
        )
    reasons = {name: reason_left(name) for name in sorted(handler.added)}
    for name, reason in reasons.items():
        if reason is not None:
            yield Finding("handler", "hint", f"sets {name}: {reason}", "Remove it from the defaults of the handler")
    added = sorted({*BOOSTS, "rq"} & handler.added - handler.fixed)
    added += [name for name in handler.components if ELEVATOR in name.lower()]
    if added:
        text = f"answers are made without what it adds to the order of hits: {', '.join(added)}"
        yield Finding("handler", "hint", text, "Nothing: a plain search has it")
    if not fixed and not any(reasons.values()):
        yield Finding("handler", "ok", "nothing that it sets changes an answer")


def _needed(name: str, own: str, flags: set[str], facts: CollectionFacts, schema: Schema) -> Finding:
    if not schema.has(own):
        return Finding(f"field {own}", "problem", "is missing", f"Set the collection's field: {_mapped(name)}")
    lacking = sorted(flags - facts.flags[own]) if own in facts.flags else []
    if lacking:
        return Finding(
            f"field {own}",
            "problem",
            f"is not {' and not '.join(lacking)}",
            f"Change it in the schema and index again, or set another field: {_mapped(name)}",
        )
    return Finding(f"field {own}", "ok", "exists")


def _of_extras(schema: Schema, facets: Iterable[str], facts: CollectionFacts) -> Iterator[Finding]:
    extras = {
        schema.fields.language: "a document's language is not shown",
        schema.fields.last_modified: "hits cannot be sorted by date",
        schema.fields.title_sort: "hits cannot be sorted by title; the sort is left out",
    }
    for name, consequence in extras.items():
        if not schema.has(name):
            yield Finding(f"field {name}", "hint", f"is missing: {consequence}", "Nothing, unless you need it")
    if STORED_SUMMARY in (schema.kinds or {}):
        text = "is not used: nothing is stored with it that says which text of the document it was made from"
        yield Finding(f"field {STORED_SUMMARY}", "hint", text, "Nothing: summaries are made when they are wanted")
    blind = [name for name in facets if name in facts.flags and not facts.flags[name] & {"indexed", "docValues"}]
    if blind:
        text = f"not indexed, so that nothing is counted and every filter finds nothing: {', '.join(blind)}"
        yield Finding("solr.facets", "hint", text, "Remove these names from solr.facets")
    missing = [name for name in facets if not schema.has(name)]
    if missing:
        yield Finding(
            "solr.facets",
            "hint",
            f"missing from the schema: {', '.join(missing)}",
            "Remove these names from solr.facets",
        )


def _of_rights(facts: CollectionFacts, schema: Schema, mode: str) -> Iterator[Finding]:
    if mode == "none":
        yield Finding("rights", "hint", "security.mode=none: everyone sees every document", "Set security.mode=tokens")
        return
    yield from _of_component(facts, mode)
    if mode == "plugin":
        return
    for name in ACL_FIELDS:
        yield _of_acl_field(name, facts, schema)
    if facts.public is not None and facts.documents:
        yield Finding("rights", "ok", f"{facts.public} of {facts.documents} documents are public")


def _of_component(facts: CollectionFacts, mode: str) -> Iterator[Finding]:
    if facts.has_component is None:
        yield Finding(
            "rights component",
            "hint",
            "Solr's configuration cannot be read",
            "Check manually which component filters by rights",
        )
    elif mode == "plugin" and not facts.has_component:
        yield Finding(
            "rights component",
            "problem",
            "security.mode=plugin, but the handler has no ManifoldCF component: documents are not filtered",
            "Set security.mode=tokens, or install the component in Solr",
        )
    elif mode == "tokens" and facts.has_component:
        yield Finding(
            "rights component",
            "problem",
            "the handler filters by itself, as Datafari's does, without a user: only public documents are found",
            "Either let it filter, with this line alone: security.mode=plugin\n"
            "        -> or add a handler without {!manifoldCFSecurity} to Solr, and name it: solr.handler=/rag\n"
            '           <requestHandler name="/rag" class="solr.SearchHandler"/>',
        )
    elif mode == "plugin":
        yield Finding("rights component", "ok", "the handler has the ManifoldCF component")


def _of_acl_field(name: str, facts: CollectionFacts, schema: Schema) -> Finding:
    own = schema.acl(name)
    if not schema.has(own):
        advice = f"Add it with the default __nosecurity__ (conf/solr/schema.xml), or set your field: {_mapped(name)}"
        return Finding(f"field {own}", "problem", "is missing: every search fails", advice)
    if "indexed" not in facts.flags.get(own, frozenset({"indexed"})):
        return Finding(
            f"field {own}", "problem", "is not indexed: nothing is found", "Set indexed=true and index again"
        )
    if hidden := facts.without.get(name, 0):
        return Finding(
            f"field {own}",
            "problem",
            f"{hidden} documents lack it: no one can see them",
            "Give the field the default __nosecurity__ in the schema and index these documents again",
        )
    return Finding(f"field {own}", "ok", "exists in every document")


def _mapped(name: str) -> str:
    return f'solr.fields={{"{name}": "NAME"}}'
