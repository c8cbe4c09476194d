"""
Solr expands `${name}` in every parameter unless it is told not to: what that opened once, and that it is told always.

Once, a bound of a range could carry Lucene's syntax into a filter, and with it anybody could read hidden documents.
"""

from __future__ import annotations

import itertools
import string
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import orjson
import pytest

from datafari_rag.adapters.solr.client import Node, Nodes
from datafari_rag.adapters.solr.collection_probe import facts_of
from datafari_rag.adapters.solr.factory import addresses_of, connection_of, retriever_for, schema_of, writer_for
from datafari_rag.core.access import Mode, User, filter_for
from datafari_rag.core.ask import Restriction
from datafari_rag.core.search_request import Browse, Search, Step
from datafari_rag.core.settings.table import Settings
from tests.attack import engines
from tests.attack.engines import Engine, Service, quoted, said
from tests.attack.report import Record, judge
from tests.attack.syntaxes import ALL, MACROS
from tests.real_solr import OTHER, Collection
from tests.settings import settings_with
from tests.support.server import Asked, Loopback, Reply, serving

HIDDEN = "kumquatlaser"
STAFF = {"allow_token_document": ["g:bob"]}


@pytest.fixture(scope="module")
def solr(solr_collection: Collection) -> Engine:
    return engines.solr(solr_collection)


# --- what the macros opened -------------------------------------------------------------------------------------------

LOUD = ('"', 'TV 55"', '"Unknown"')
"""Values of a facet whose quotation marks closed the bound that they were expanded into."""


@pytest.fixture
def world(solr: Engine, tmp_path: Path) -> Service:
    """A hidden document, a public one, and some of anybody's whose facet values hold quotation marks."""
    probes = [
        {"id": f"probe-{n}", "exactContent": "quoteprobe", "language": "en", "source": v} for n, v in enumerate(LOUD)
    ]
    hidden = {"id": "hidden", "title": "hiddentitle", "exactContent": f"the {HIDDEN}", "language": "en", **STAFF}
    solr.load([*probes, hidden, {"id": "public", "exactContent": "a ferry", "language": "en", "source": "web"}])
    return Service(tmp_path, solr.url)


def injected(service: Service, query: str, value: str) -> tuple[int, tuple[str, ...]]:
    """Return what is found when *query*, in Lucene's syntax, stands behind a bound that *value* should close."""
    bound = f'"${{restriction_1}}] OR {{!join from=language to=language}}{query} OR source:[a TO a"'
    return service.found([("q", "quoteprobe"), ("fq", f"source:[a TO {bound}]"), ("fq", f"source:{quoted(value)}")])


@pytest.mark.solr
def test_no_word_of_a_hidden_document_is_read_letter_by_letter(world: Service, record_property: Record) -> None:
    tried, holes = 0, []
    for value in LOUD:
        nothing = injected(world, "exactContent:qqqqq*", value)
        queries = ["exactContent:ferry", "title:hiddentitle*", f"exactContent:{HIDDEN}", "exactContent:/kumquat.*/"]
        queries += [f"exactContent:kumquatlas{letter}*" for letter in string.ascii_lowercase]
        for query in queries:
            tried += 1
            if (found := injected(world, query, value)) != nothing or found[0] != 200:
                holes.append(f"{value!r}: {query} finds {found}, a word of nobody {nothing}")
    judge(record_property, "words by a macro in a range", against="Solr", tried=tried, holes=holes)


@pytest.mark.solr
def test_no_title_and_no_right_is_joined_to(solr: Engine, tmp_path: Path, record_property: Record) -> None:
    looked_for = [
        "exactContent:kumquatlaser", "title:hiddentitle*", r"allow_token_document:g\\:bob", "exactContent:/kumquat.*/",
        "*:*",
    ]  # fmt: skip
    mine = [f'z"] OR _query_:"{{!join from=language to=language}}{q}" OR source:["a" TO "a' for q in looked_for]
    docs = [{"id": f"mine-{n}", "exactContent": "joinprobe", "language": "en", "source": v} for n, v in enumerate(mine)]
    hidden = {"id": "hidden", "title": "hiddentitle", "exactContent": HIDDEN, "language": "en", **STAFF}
    solr.load([*docs, hidden])
    service = Service(tmp_path, solr.url)
    holes = []
    for number, value in enumerate(mine):
        for bound in ("${restriction_1}", "${q}", value):
            found = service.found(
                [("q", "joinprobe"), ("fq", f"source:[a TO {quoted(bound)}]"), ("fq", f"source:{quoted(value)}")]
            )
            # As texts: the value lies between the bounds when it is the bound itself, and nowhere else.
            if found != (200, (f"mine-{number}",) if bound == value else ()):
                holes.append(f"{looked_for[number]} by {bound!r}: {found}")
    judge(record_property, "joins by a macro in a range", against="Solr", tried=3 * len(mine), holes=holes)


@pytest.mark.solr
@pytest.mark.parametrize(("levels", "width"), [(3, 100), (5, 60)])
def test_a_short_request_does_not_grow_in_solr(
    world: Service, levels: int, width: int, record_property: Record
) -> None:
    bomb = [("fq", f'source:"{f"${{restriction_{level + 1}}}" * width}"') for level in range(levels)]
    found = world.found([("q", "*:*"), *bomb, ("fq", f'source:"{"A" * 100}"')])
    ranged = [("fq", f"source:[a TO {value.partition(':')[2]}]") for _, value in bomb]
    again = world.found([("q", "*:*"), *ranged, ("fq", f'source:"{"A" * 100}"')])
    alive = world.found([("q", "ferry")])
    holes = [] if (found, again, alive) == ((200, ()), (200, ()), (200, ("public",))) else [f"{found} {again} {alive}"]
    judge(record_property, f"a bomb of macros, {width} to the {levels}", against="Solr", tried=2, holes=holes)


@pytest.mark.solr
def test_solr_reads_each_name_of_a_user_as_it_was_sent(solr: Engine, record_property: Record) -> None:
    """In mode plugin the name is all that Solr's own component has to tell whose rights hold."""
    node = Node(solr.url, connection_of(Settings()))
    holes = []
    for text in [*ALL, *(f"alice{macro}" for macro in MACROS)]:
        reply = node.search("select", {"q": "*:*", "echoParams": "all", "AuthenticatedUserName": text, "x": "y"})
        if (read := reply["responseHeader"]["params"]["AuthenticatedUserName"]) != text:
            holes.append(f"{text!r} became {read!r}")
    judge(record_property, "user names", against="Solr", tried=len(ALL) + len(MACROS), holes=holes)


@pytest.mark.solr
@pytest.mark.parametrize(("handler", "expands"), [("/select", False), ("/find", False), ("/expanding", True)])
def test_the_doctor_finds_a_handler_that_expands_in_spite_of_all(solr_url: str, handler: str, expands: bool) -> None:
    settings = settings_with(solr_url=solr_url.replace("FileShare", OTHER))
    connection = connection_of(settings)
    nodes = Nodes(addresses_of(settings.solr.url, connection), connection)

    facts, _ = facts_of(nodes, schema_of(settings.solr), handler=handler)

    assert facts.handler is not None and facts.handler.expands is expands


# --- that Solr is told ------------------------------------------------------------------------------------------------


def reply_of_solr(asked: Asked) -> Reply:
    """Answer as a Solr with one document, to whatever it is asked."""
    row = {"id": "d", "title": ["Report"], "exactContent": ["A common report."], "language": "en", "score": 1.0}
    schema = {"fieldTypes": [], "fields": []}
    found = {"response": {"numFound": 1, "start": 0, "docs": [row]}, "schema": schema, "responseHeader": {"status": 0}}
    return Reply(orjson.dumps(found))


@pytest.fixture
def stub() -> Iterator[Loopback]:
    with serving(reply_of_solr) as running:
        yield running


def untold(stub: Loopback) -> list[str]:
    """Return the requests that let Solr expand parameters: only an address says so, and its first word must be no."""
    return [
        f"{one.method} {one.path} {one.query.get('expandMacros')}"
        for one in stub.asked
        if one.query.get("expandMacros") != ["false"] or "expandMacros" in parse_qs(one.body.decode())
    ]


FORGED = [
    ("expandMacros", "true"),
    ("${x}", "y"),
    ("json", '{"params":{"expandMacros":"true"}}'),
    ("echoParams", "all"),
]
OWN = {"expandMacros": "true", "context": {"overrides": {"expandMacros": True, "include_category": "${x}"}}}

KINDS: dict[str, Callable[[Service], Any]] = {
    "a plain search": lambda at: at.get("/search/select", [("q", "common"), *FORGED]),
    "a long plain search": lambda at: at.form("/search/select", [("q", "common " * 300), *FORGED]),
    "a plain search of everything": lambda at: at.get("/Datafari/rest/v2.0/search/select", FORGED),
    "a search with all there is": lambda at: at.get(
        "/search/select",
        [("q", "a"), ("fq", "source:a"), ("fq", "source:[a TO b]"), ("facet", "true"), ("facet.field", "source"),
         ("hl", "true"), ("sort", "title asc"), ("start", "3"), ("rows", "2"), *FORGED],
    ),
    "an answer": lambda at: at.get("/search/select", [("q", "common"), ("action", "rag"), *FORGED]),
    "a streamed answer": lambda at: at.get(
        "/search/select", [("q", "common"), ("action", "rag"), ("stream", "true"), *FORGED]
    ).data,
    "/chat": lambda at: at.post("/chat?expandMacros=true", said("common", **OWN)),
    "/ask": lambda at: at.post("/ask?expandMacros=true", said("common", stream=False, **OWN)),
    "/api/chat": lambda at: at.post("/api/chat?expandMacros=true", said("common", **OWN)),
    "/v1": lambda at: at.post("/v1/chat/completions?expandMacros=true", said("common", index_name="default", **OWN)),
    "a document": lambda at: at.get("/documents", [("id", "d"), *FORGED]),
    "the page": lambda at: at.get("/", [("q", "common"), *FORGED]),
    "readiness": lambda at: at.get("/health/ready", FORGED),
}  # fmt: skip


@pytest.mark.parametrize("mode", ["tokens", "plugin", "none"])
def test_every_request_of_the_service_says_that_nothing_is_expanded(
    tmp_path: Path, stub: Loopback, mode: str, record_property: Record
) -> None:
    holes, tried = [], 0
    users = {"ann": ["${x}", "g:a", "\x1f${y}"]}
    service = Service(tmp_path, f"{stub.url}/solr/Files", users=users, security__mode=mode)
    for name, ask in KINDS.items():
        stub.asked.clear()
        ask(service)
        tried += len(stub.asked)
        holes += [f"{name}: nothing was sent"] if not stub.asked else [f"{name}: {one}" for one in untold(stub)]
    judge(record_property, f"expansion switched off, mode {mode}", against="Solr (stub)", tried=tried, holes=holes)


def test_every_request_of_the_parts_says_that_nothing_is_expanded(stub: Loopback, record_property: Record) -> None:
    settings = settings_with(solr_url=f"{stub.url}/solr/Files")
    connection = connection_of(settings)
    nodes = Nodes(addresses_of(settings.solr.url, connection), connection)
    retriever, writer = retriever_for(settings), writer_for(settings)
    for mode, rows in itertools.product(("tokens", "plugin", "none"), (1, 50)):
        access = filter_for(User("ann", frozenset({"a" * rows * 100})), mode=_mode(mode), anonymous="public")
        narrowed = (Restriction("source", low="a"), Restriction("source", value="b", is_excluded=True))
        retriever.search(Search("a", Step("asked", ("a",)), rows, restrictions=narrowed), access)
        retriever.browse(Browse(None, restrictions=narrowed), access)
        retriever.fetch("d", "exactContent", access)
    retriever.probe()
    writer.add([{"id": "d", "exactContent": "a ${x}", "language": "en"}])
    writer.delete(["${x}"])
    writer.commit()
    facts_of(nodes, schema_of(settings.solr), handler="/select")
    paths = {one.path.removeprefix("/solr/").split("/")[1] for one in stub.asked}
    assert paths == {"select", "schema", "update", "config"}
    judge(
        record_property,
        "expansion switched off, each part",
        against="Solr (stub)",
        tried=len(stub.asked),
        holes=untold(stub),
    )


def _mode(name: str) -> Mode:
    modes: dict[str, Mode] = {"tokens": "tokens", "plugin": "plugin", "none": "none"}
    return modes[name]
