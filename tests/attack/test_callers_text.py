"""
Text of callers and of documents is text: whatever it means to one of Solr's parsers, on every path, in every parameter.

The oracle is the literal meaning of each text, found by looking through plain values: embedded = Solr = that.
"""

from __future__ import annotations

import json
import random
import re
import unicodedata
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from datafari_rag.core.access import NO_SECURITY, is_visible
from datafari_rag.core.identity import mapped_name
from datafari_rag.core.settings.table import ROWS
from tests.attack import engines
from tests.attack.engines import Engine, Service, quoted, said
from tests.attack.report import Record, judge
from tests.attack.syntaxes import ALL, woven
from tests.real_solr import Collection
from tests.security.corpora import word
from tests.settings import parsed

FOLDED: tuple[Callable[[str], str], ...] = (
    str.lower,
    str.upper,
    str.casefold,
    str.strip,
    lambda text: unicodedata.normalize("NFC", text),
    lambda text: unicodedata.normalize("NFD", text),
    lambda text: unicodedata.normalize("NFKC", text),
    lambda text: re.sub(r"\$\{[^}]*\}", "", text),
    lambda text: text.replace("\\", ""),
    lambda text: text.replace('"', ""),
    lambda text: text + " ",
    lambda text: text + "\u200b",
    lambda text: text + "${x}",
    lambda text: "${x:" + text + "}",
)
"""What somebody might take for the same text."""

GATES = tuple(f"gate {text}" for text in ALL)
"""Tokens of rights; never one that a source of rights drops."""


@pytest.fixture(scope="module", params=["embedded", pytest.param("Solr", marks=pytest.mark.solr)])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Each engine, with a document for every text: its id, its facet values; and two whose rights are the text."""
    if request.param == "Solr":
        collection: Collection = request.getfixturevalue("solr_collection")
        found = engines.solr(collection)
        found.load(documents())
        yield found
        return
    with engines.embedded(tmp_path_factory.mktemp("embedded")) as found:
        found.load(documents())
        yield found


@pytest.fixture(scope="module")
def service(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Service:
    users = {f"user{n}": [gate, "gate of all"] for n, gate in enumerate(GATES)}
    users |= {f"folded{n}": list(others(GATES, gate)) for n, gate in enumerate(GATES)}
    named = {f"alice{text}": [f"named {n}"] for n, text in enumerate(ALL)}
    return Service(tmp_path_factory.mktemp("service"), engine.url, users={**users, **named, "alice": ["named alice"]})


@pytest.fixture(params=[pytest.param(3, id="a third"), pytest.param(1, id="all", marks=pytest.mark.slow)])
def numbers(request: pytest.FixtureRequest, engine: Engine) -> Sequence[int]:
    """
    The texts to try, by their numbers: all of them in the slow tests, else every third.

    Each test takes another third, on each engine and in each dialect, so that every text is tried in many places.
    """
    every: int = request.param
    return range(zlib.crc32(request.node.name.encode()) % every, len(ALL), every)


def documents() -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for number, text in enumerate(ALL):
        body = {"language": "en", "title": title(number)}
        found += [
            {"id": text, "exactContent": f"pump {key(number)}", "source": text, "extension": text, **body},
            {"id": f"in {number}", "exactContent": f"valve {key(number)}", **body, **allowed(number)},
            {"id": f"out {number}", "exactContent": f"bolt {key(number)}", **body, **denied(number)},
            {"id": f"for {number}", "exactContent": "spring", **body, "allow_token_document": [f"named {number}"]},
        ]
    return [*found, {"id": "for alice", "exactContent": "spring", "allow_token_document": ["named alice"]}]


def allowed(number: int) -> dict[str, list[str]]:
    return {"allow_token_document": [GATES[number]]}


def denied(number: int) -> dict[str, list[str]]:
    return {"allow_token_share": ["gate of all"], "deny_token_share": [GATES[number]]}


def key(number: int) -> str:
    return word("zk", number)


def title(number: int) -> str:
    return f"Title {key(number)}"


def others(texts: tuple[str, ...], text: str) -> set[str]:
    """Return what somebody might take for *text* and is none of *texts*."""
    return {fold(text) for fold in FOLDED} - {*texts, "", NO_SECURITY}


# --- values and bounds ------------------------------------------------------------------------------------------------


def spelled(text: str) -> list[str]:
    """Return each way to write the value *text* in an fq."""
    return [quoted(text), "".join(f"\\{char}" for char in text)]


def test_an_fq_of_a_search_means_its_text(
    engine: Engine, service: Service, numbers: Sequence[int], record_property: Record
) -> None:
    tried, holes = 0, []
    for text in (ALL[number] for number in numbers):
        for field, value in ((field, value) for field in ("source", "extension") for value in spelled(text)):
            for fq in (f"{field}:{value}", f"{field}:[{value} TO {value}]"):
                tried += 1
                if (found := service.found([("q", "pump"), ("fq", fq)])) != (200, (text,)):
                    holes.append(f"{fq!r}: {found}")
    judge(record_property, "fq of a plain search", against=engine.name, tried=tried, holes=holes)


def test_an_fq_of_an_answer_means_its_text(
    engine: Engine, service: Service, numbers: Sequence[int], record_property: Record
) -> None:
    tried, holes = 0, []
    for text in (ALL[number] for number in numbers):
        for fq in (f"source:{quoted(text)}", f"source:[{quoted(text)} TO {quoted(text)}]"):
            for streamed in ("false", "true"):
                tried += 1
                pairs = [("q", "pump"), ("action", "rag"), ("fq", fq), ("stream", streamed)]
                if (found := sources_of(service.get("/search/select", pairs))) != [text]:
                    holes.append(f"{fq!r}: {found}")
    judge(record_property, "fq of an answer", against=engine.name, tried=tried, holes=holes)


def sources_of(response: Any) -> list[str] | str:
    """Return the ids of the documents of an answer, whole or streamed; the body when there are none."""
    text = response.get_data(as_text=True)
    try:
        events = [json.loads(line) for line in text.split("\n") if line]
        items = [one["data"]["items"] for one in events if one.get("type") == "sources.final"]
        found = items[0] if items else events[0]["content"]["documents"]
    except (ValueError, LookupError):
        return str(text)[:300]
    return [document["id"] for document in found]


def test_an_fq_of_the_page_means_its_text(
    engine: Engine, service: Service, numbers: Sequence[int], record_property: Record
) -> None:
    holes = []
    for number in numbers:
        text = ALL[number]
        response = service.get("/", [("q", "pump"), ("fq", f"source:{quoted(text)}")])
        shown = set(re.findall(r"Title (zk\w+)", response.get_data(as_text=True)))
        if (response.status_code, shown) != (200, {key(number)}):
            holes.append(f"{text!r}: {response.status_code} {shown}")
    judge(record_property, "fq of the page", against=engine.name, tried=len(numbers), holes=holes)


@pytest.mark.parametrize(
    "path",
    [
        "/chat",
        *(
            pytest.param(path, marks=pytest.mark.slow)
            for path in ("/ask", "/api/chat", "/chat/stream", "/api/chat/stream")
        ),
    ],
)
def test_a_category_means_its_text(
    engine: Engine, service: Service, numbers: Sequence[int], path: str, record_property: Record
) -> None:
    holes = []
    for number in numbers:
        text = ALL[number]
        for name, wanted in (("include_category", {key(number)}), ("exclude_category", set())):
            question = f"pump {key(number)}"
            body = said(question, context={"overrides": {name: text, "top": 5}})
            response = service.post(path, body)
            points = response.get_data(as_text=True).partition("data_points")[2].partition("}")[0]
            shown = set(re.findall(r"Title (zk\w+)", points)) & {key(number)}
            if (response.status_code, shown) != (200, wanted):
                holes.append(f"{name} {text!r}: {response.status_code} {shown}")
    judge(record_property, f"categories at {path}", against=engine.name, tried=2 * len(numbers), holes=holes)


def test_an_index_is_named_by_its_whole_name(engine: Engine, service: Service, record_property: Record) -> None:
    names = [*ALL, *(f"default{text}" for text in ALL), *others(("default",), "default")]
    holes = []
    for name in names:
        response = service.post("/v1/chat/completions", said("pump", index_name=name))
        if response.status_code not in (400, 404):
            holes.append(f"{name!r}: {response.status_code}")
    judge(record_property, "index_name of /v1", against=engine.name, tried=len(names), holes=holes)


@pytest.mark.solr
@pytest.mark.slow
def test_woven_syntax_means_its_text(tmp_path: Path, record_property: Record, solr_collection: Collection) -> None:
    """Both engines, side by side, over texts that nobody thought of; the seed is fixed."""
    rng = random.Random(15)
    texts = sorted({woven(rng) for _ in range(400)})
    docs = [{"id": text, "exactContent": "pump", "source": text, "extension": text, "language": "en"} for text in texts]
    tried, holes = 0, []
    with engines.embedded(tmp_path) as embedded:
        for place, engine in enumerate((embedded, engines.solr(solr_collection))):
            engine.load(docs)
            folder = tmp_path / str(place)
            folder.mkdir()
            service = Service(folder, engine.url)
            for text in texts:
                low, high = sorted((text, rng.choice(texts)))
                between = [one for one in texts if low <= one <= high]
                tried += 3
                if (found := service.found([("fq", f"source:{quoted(text)}")])) != (200, (text,)):
                    holes.append(f"{engine.name}: {text!r}: {found}")
                narrowed = [("rows", "0"), ("fl", "id"), ("fq", f"extension:[{quoted(low)} TO {quoted(high)}]")]
                response = service.form("/search/select", narrowed).get_json()
                if response.get("response", {}).get("numFound") != len(between):
                    holes.append(f"{engine.name}: {low!r} to {high!r}: {response}")
                if opened(service, text).get_json().get("id") != text:
                    holes.append(f"{engine.name}: id {text!r}")
    judge(record_property, "woven syntax", against="embedded and Solr", tried=tried, holes=holes)


# --- ids --------------------------------------------------------------------------------------------------------------


def test_a_document_is_opened_by_its_whole_id(
    engine: Engine, service: Service, numbers: Sequence[int], record_property: Record
) -> None:
    tried, holes = 0, []
    for number in numbers:
        text = ALL[number]
        tried += 1
        response = opened(service, text)
        if response.status_code != 200 or response.get_json()["text"] != f"pump {key(number)}":
            holes.append(f"{text!r}: {response.status_code}")
        for other in sorted(others(ALL, text)):
            tried += 1
            if (status := opened(service, other).status_code) != 404:
                holes.append(f"{other!r} in place of {text!r}: {status}")
    judge(record_property, "ids of documents", against=engine.name, tried=tried, holes=holes)


def test_a_hidden_document_is_opened_by_no_detour(engine: Engine, service: Service, record_property: Record) -> None:
    ids = [
        "in 0",
        "in ${x}0",
        "${x:in 0}",
        "in 0 OR *:*",
        '{!term f=id v="in 0"}',
        "in\\ 0",
        '"in 0"',
        "in 0\u200b",
        "in*",
    ]
    absent = opened(service, "never there").get_data()
    holes = [
        f"{one!r}: {response.status_code}"
        for one in ids
        if (response := opened(service, one)).status_code != 404 or response.get_data() != absent
    ]
    judge(record_property, "ids of hidden documents", against=engine.name, tried=len(ids), holes=holes)


def opened(service: Service, identifier: str) -> Any:
    headers = {"Accept": "application/json", "X-Request-ID": "one"}
    return service.get("/documents", [("id", identifier)], None, **headers)


# --- rights and names -------------------------------------------------------------------------------------------------


def test_a_token_is_no_other_token(
    engine: Engine, service: Service, numbers: Sequence[int], record_property: Record
) -> None:
    holes = []
    for number in numbers:
        user, tokens = f"user{number}", frozenset({GATES[number], "gate of all"})
        wanted = {
            "valve": tuple(sorted(f"in {n}" for n in range(len(ALL)) if is_visible(allowed(n), tokens))),
            f"bolt {key(number)}": (),
            f"bolt {key(number - 1 if number else 1)}": (f"out {number - 1 if number else 1}",),
        }
        found = {words: service.found([("q", words)], user)[1] for words in wanted}
        holes += [f"{GATES[number]!r}: {found}"] if found != wanted else []
    judge(record_property, "tokens, allowed and denied", against=engine.name, tried=3 * len(numbers), holes=holes)


def test_what_is_taken_for_the_same_token_opens_nothing(
    engine: Engine, service: Service, numbers: Sequence[int], record_property: Record
) -> None:
    tried, holes = 0, []
    for number in numbers:
        gate = GATES[number]
        tried += len(others(GATES, gate))
        if (found := service.found([("q", "valve")], f"folded{number}")) != (200, ()):
            holes.append(f"{gate!r}: {found}")
    judge(record_property, "tokens after folding", against=engine.name, tried=tried, holes=holes)


def test_a_user_is_no_other_user(
    engine: Engine, service: Service, numbers: Sequence[int], record_property: Record
) -> None:
    holes = []
    for number in numbers:
        text = ALL[number]
        name = f"alice{text}"
        status, found = service.found([("q", "spring")], name)
        if mapped_name(name) != name:
            # Backslashes end a domain and outer white space is none of a name: another name, which nobody here has.
            known = [n for n, other in enumerate(ALL) if f"alice{other}" == mapped_name(name)]
            wanted: tuple[str, ...] = (
                ("for alice",) if mapped_name(name) == "alice" else tuple(f"for {n}" for n in known)
            )
        else:
            wanted = (f"for {number}",)
        if (status, found) not in ((200, wanted), (401, ())):
            holes.append(f"{name!r}: {status} {found}, not {wanted}")
    judge(record_property, "names of users, rights from a file", against=engine.name, tried=len(numbers), holes=holes)


# --- every other parameter --------------------------------------------------------------------------------------------

USUAL: Mapping[str, str] = {"q": "pump", "fl": "id", "rows": "7", "sort": "title asc"}
TAKEN = ("sort", "start", "rows", "hl", "facet", "lang", "format", "stream", "trace", "id", "fq", "facet.field")
FOREIGN = (
    "defType", "qf", "bq", "json.query", "json.facet", "shards", "qt", "q.op", "uf", "wt", "${x}", "tokens", "document",
    "restriction_0", "open_share", "allow_document", "expandMacros", "AuthenticatedUserName", "echoParams", "terms.fl",
    "stats.field", "hl.q", "hl.fl", "group.field", "collapse", "rq", "cursorMark", "debug",
)  # fmt: skip
"""Names of Solr's, and of our own parameters to it."""


@pytest.mark.slow
@pytest.mark.parametrize("action", ["search", "rag"])
def test_a_parameter_that_holds_syntax_changes_nothing(
    engine: Engine, service: Service, action: str, record_property: Record
) -> None:
    tried, holes = 0, []
    for name in (*TAKEN, *FOREIGN):
        usual = [(known, value) for known, value in USUAL.items() if known != name] + [("action", action)]
        wanted = told(service, usual)
        # An answer takes its time, and reads its parameters as a search does.
        for text in ALL[:: (1 if name in TAKEN else 3) * (1 if action == "search" else 8)]:
            tried += 1
            found = told(service, [*usual, (name, text)])
            # A filter on a field that we know and whose value cannot be read is refused, with our own sentence.
            if found != wanted and not (name == "fq" and found[0] == 400 and "cannot be read. Write" in str(found[1])):
                holes.append(f"{name}={text!r}: {found} and not {wanted}")
    judge(record_property, f"all other parameters, action={action}", against=engine.name, tried=tried, holes=holes)


def told(service: Service, pairs: list[tuple[str, str]]) -> tuple[int, object]:
    """Return what a search found or of which documents an answer is made."""
    response = service.form("/search/select", pairs)
    body = response.get_json()
    if response.status_code != 200:
        return response.status_code, body
    if "response" not in body:
        return 200, [document["id"] for document in body["content"]["documents"]]
    return 200, (
        body["response"]["numFound"],
        [row["id"] for row in body["response"]["docs"]],
        body.get("facet_counts"),
    )


def test_a_field_that_is_syntax_is_no_field(
    engine: Engine, service: Service, numbers: Sequence[int], record_property: Record
) -> None:
    holes = []
    for text in (ALL[number] for number in numbers):
        response = service.form("/search/select", [("q", "pump"), ("rows", "3"), ("fl", f"id,{text}")])
        rows = (
            response.get_json()["response"]["docs"]
            if response.status_code == 200
            else [{"status": response.status_code}]
        )
        if any(set(row) != {"id"} for row in rows if "*" not in text.split()) or "token" in str(rows):
            holes.append(f"{text!r}: {rows}")
    judge(record_property, "fields asked for", against=engine.name, tried=len(numbers), holes=holes)


def test_words_are_no_syntax(engine: Engine, service: Service, numbers: Sequence[int], record_property: Record) -> None:
    """A question with syntax in it finds documents of its own words, and never more than these words find."""
    holes = []
    for number in numbers:
        text = ALL[number]
        for question in (f"{key(number)} {text}", f"{text} {key(number)}"):
            status, found = service.found([("q", question)])
            if status != 200 or not set(found) <= {text}:
                holes.append(f"{question!r}: {status} {found[:5]}")
    judge(record_property, "words of a plain search", against=engine.name, tried=2 * len(numbers), holes=holes)


DIALECTS: Mapping[str, Callable[[Service, str], Any]] = {
    "ragapi": lambda at, text: at.get("/search/select", [("q", text), ("action", "rag")]),
    "chat": lambda at, text: at.post("/chat", said(text)),
    "ask": lambda at, text: at.post("/ask", said(text, stream=False)),
    "api/chat": lambda at, text: at.post("/api/chat", said(text)),
    "v1": lambda at, text: at.post("/v1/chat/completions", said(text, index_name="default", model="m")),
    "page": lambda at, text: at.get("/", [("q", text)]),
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_question_of_syntax_shows_nothing_that_is_hidden(
    engine: Engine, service: Service, numbers: Sequence[int], dialect: str, record_property: Record
) -> None:
    holes = []
    for number in numbers:
        text = ALL[number]
        response = DIALECTS[dialect](service, f"valve {key(number)} {text}")
        body = response.get_data(as_text=True)
        # The question itself stands in the reply; the hidden text has both words side by side, and so has its title.
        if response.status_code >= 500 or (
            f"Title {key(number)}" in body.replace(f"valve {key(number)}", "") and (f'"in {number}"' in body)
        ):
            holes.append(f"{text!r}: {response.status_code}")
    judge(record_property, f"questions at {dialect}", against=engine.name, tried=len(numbers), holes=holes)


# --- names from the settings ------------------------------------------------------------------------------------------

NAMES = ("solr.facets", "solr.fields", "solr.handler")


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_the_settings_is_no_syntax(name: str, record_property: Record) -> None:
    row = next(row for row in ROWS if row.key == name)
    holes = []
    for text in [
        *ALL,
        *(f"title{text}" for text in ALL),
        "/../../admin/info/system",
        "/select/..",
        "/a/../b",
        "/./select",
    ]:
        settings, problems = parsed({name: json.dumps({"title": text}) if name == "solr.fields" else text}, "/")
        if problems:
            continue
        taken = row.value_in(settings)
        if name == "solr.fields":
            taken = tuple(cast("Mapping[str, str]", taken).values())
        named = (taken,) if isinstance(taken, str) else cast("tuple[str, ...]", taken)
        if not all(re.fullmatch(r"/?[A-Za-z_][A-Za-z0-9_.-]*", one) for one in named):
            holes.append(f"{text!r} as {taken!r}")
    judge(record_property, f"names in {name}", against="settings", tried=2 * len(ALL) + 4, holes=holes)
