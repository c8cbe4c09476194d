"""Our tables of what a handler can set, against the lists in the classes of the Solr that the tests run."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from functools import cache

import pytest

from datafari_rag.core.solr import handler_parameters
from datafari_rag.core.solr.handler_parameters import reason_left
from datafari_rag_trials.solr.jars import jars
from tests.required import program

pytestmark = pytest.mark.solr

CLASSES = (
    *(f"org.apache.solr.common.params.{name}Params" for name in ("Common", "DisMax", "Highlight", "Group", "Facet")),
    *(f"org.apache.solr.common.params.{name}Params" for name in ("QueryElevation", "CursorMark", "Expand", "Stats")),
    *(f"org.apache.solr.common.params.{name}Params" for name in ("MoreLikeThis", "Spelling", "Terms", "TermVector")),
    "org.apache.solr.common.params.ShardParams",
    "org.apache.solr.search.ExtendedDismaxQParser$DMP",
)

NO_PARAMETERS = frozenset(
    {
        # CommonParams: keys of local parameters, where they are no parameters of requests.
        *("ex", "tag", "key", "f", "v", "type", "cache", "cost", "threads"),
        # Of other handlers: ping, core administration, updates, tasks.
        *("action", "disable", "enable", "ping", "qt", "status", "OK", "FAILURE", "name", "file", "files", "path"),
        *("taskUUID", "failOnVersionConflicts", "id", "_childDocuments_", "_version_", "val", "javabin"),
        # Between nodes alone, and headers.
        *("rid", "requestPurpose", "Solr-Request-Context", "Solr-Request-Type", "application/json"),
        *("application/javabin", "apispec/", "/_introspect", "shard.url", "shard.name", "shards.purpose", "queryID"),
        # Values, and beginnings of names.
        *("enum", "fc", "fcs", "uif", "count", "index", "true", "false", "score", "nextCursorMark", "*"),
        *("regex", "simple", "timing", "results", "track", "facet.overrequest"),
        *("replica.type", "replica.location", "replica.leader", "replica.base", "node.sysprop"),
        *("local", "host", "random", "stable", "dividend", "hash"),
    }
)
"""Constants of these classes that name no parameter of a search."""

INERT: Mapping[str, tuple[str, ...]] = {
    "is sent under another name": ("hl.simple.", "facet.zeros"),
    "speed": ("facet.threads", "facet.method", "facet.enum.cache.minDf", "hl.cacheFieldValCharsThreshold"),
    "speed, or who answers": ("multiThreaded", "canCancel", "queryUUID", "shards.preference"),
    "matches count in their own field": ("hl.queryFieldPattern",),
    "read by highlighters other than the unified one": (
        *("hl.alternateField", "hl.boundaryScanner", "hl.bs.chars", "hl.bs.maxScan", "hl.bs.separator", "hl.formatter"),
        *("hl.fragListBuilder", "hl.fragmenter", "hl.fragmentsBuilder", "hl.highlightAlternate", "hl.increment"),
        *("hl.maxAlternateFieldLength", "hl.maxMultiValuedToExamine", "hl.maxMultiValuedToMatch", "hl.phraseLimit"),
        *("hl.mergeContiguous", "hl.payloads", "hl.preserveMulti", "hl.regex."),
    ),
    "the component is off": ("group.", "expand.", "mlt.", "spellcheck.", "stats.", "terms.", "tv."),
    "the elevator is off": (
        *("exclusive", "forceElevation", "elevate.", "elevateIds", "excludeIds", "elevateOnlyDocsMatchingQuery"),
        *("excludeMarkerFieldName", "editorialMarkerFieldName", "markExcludes", "useConfiguredElevatedOrder"),
    ),
    "more counts, which are not handed on": (
        *("facet.query", "facet.pivot", "facet.pivot.", "facet.range", "facet.range.", "facet.date", "facet.date."),
        *("facet.interval", "facet.interval.", "facet.heatmap", "facet.heatmap."),
    ),
    "not handed on": ("debug.", "explainOther", "shards.info"),
    "the format of XML": ("version", "xsl"),
    "what Solr logs": ("logParamsList", "disableRequestId"),
    "no limit is set, and shards.tolerant is sent": ("partialResults",),
    "read by no parser, or by updates": ("gen", "stream."),
}
"""Why a parameter changes no result → names, or the beginnings of names."""

OWN = ("q", "fl", "rows", "sort", "qf", "pf2", "mm", "hl.fl", "hl.q", "hl.fragsize", "hl.tag.pre", "hl.tag.post")
"""Sent with values of their own, besides the tables."""


@cache
def solr_parameters() -> frozenset[str]:
    """Return every parameter of a search that these classes name."""
    folder = jars(lambda text: None)
    command = [program("javap", "install a JDK (Debian: openjdk-17-jdk-headless)"), "-constants", "-p"]
    classpath = os.pathsep.join(str(jar) for jar in folder.glob("solr-*.jar"))
    listed = subprocess.run([*command, "-cp", classpath, *CLASSES], capture_output=True, text=True, check=True).stdout
    names = set(re.findall(r'String \w+ = "([^"]+)";', listed)) - NO_PARAMETERS
    return frozenset(name for name in names if not name.startswith("/"))


def test_each_parameter_of_solr_is_sent_or_has_its_reason() -> None:
    sent = {*_tables(), *handler_parameters.BOOSTS, *OWN, "facet.field", "facet.limit", "shards.tolerant"}
    inert = tuple(name for names in INERT.values() for name in names)
    begun = tuple(name for name in inert if name.endswith("."))
    unknown = [
        name for name in solr_parameters() - sent - {*inert} if reason_left(name) is None and not name.startswith(begun)
    ]

    assert len(solr_parameters()) > 200, "the lists were read"
    assert sorted(unknown) == []


def test_no_parameter_is_in_two_tables() -> None:
    names = [*_tables(), *(name for names in INERT.values() for name in names)]

    assert sorted({name for name in names if names.count(name) > 1} - {"hl", *handler_parameters.VALUES}) == []


def _tables() -> list[str]:
    """Return the names in all tables of what is sent, and of what is left."""
    return [name for table in vars(handler_parameters).values() if isinstance(table, dict) for name in table]
