"""Our tables of what a handler can set, against the lists in the classes of the Solr that the tests run."""

from __future__ import annotations

import os
import re
import subprocess

import pytest

from datafari_rag.core.solr import handler_parameters
from datafari_rag.core.solr.handler_parameters import is_known
from datafari_rag_trials.solr.jars import jars
from tests.required import program

pytestmark = pytest.mark.solr

CLASSES = (
    *(f"org.apache.solr.common.params.{name}Params" for name in ("Common", "DisMax", "Highlight", "Group", "Facet")),
    *(f"org.apache.solr.common.params.{name}Params" for name in ("QueryElevation", "CursorMark", "Expand", "Stats")),
    *(f"org.apache.solr.common.params.{name}Params" for name in ("MoreLikeThis", "Spelling", "Terms", "TermVector")),
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
        *("application/javabin", "apispec/", "/_introspect"),
        # Values, and beginnings of names.
        *("enum", "fc", "fcs", "uif", "count", "index", "true", "false", "score", "nextCursorMark", "*"),
    }
)
"""Constants of these classes that name no parameter of a search."""


def test_each_parameter_of_solr_is_sent_or_has_its_reason() -> None:
    names = {name for name in _constants() - NO_PARAMETERS if not name.startswith("/")}

    assert len(names) > 150, "the lists were read"
    assert sorted(name for name in names if not is_known(name)) == []


def test_no_parameter_is_in_two_tables() -> None:
    tables = [
        table
        for table in vars(handler_parameters).values()
        if isinstance(table, dict) and all(isinstance(name, str) for name in table)
    ]
    whole = [name for table in tables for name in table if not name.endswith(".")]
    assert sorted({name for name in whole if whole.count(name) > 1} - {"hl", *handler_parameters.VALUES}) == []


def _constants() -> set[str]:
    folder = jars(lambda text: None)
    command = [program("javap", "install a JDK (Debian: openjdk-17-jdk-headless)"), "-constants", "-p"]
    classpath = os.pathsep.join(str(jar) for jar in folder.glob("solr-*.jar"))
    listed = subprocess.run([*command, "-cp", classpath, *CLASSES], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r'String \w+ = "([^"]+)";', listed))
