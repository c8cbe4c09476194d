"""
No number that a caller is shown depends on documents that they may not see.

A score counts how many documents hold a word. From one visible document with a word, and its exact score, anybody could
tell how many hidden ones hold it; and from a least score that passes or does not, the score itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.attack import engines
from tests.attack.engines import Engine, Service, said
from tests.attack.report import Record, judge
from tests.real_solr import Collection

HIDDEN = (0, 1, 3, 7)
WORD = "kumquat"

# What differs from one reply to the next, whatever is in the index: ids and times of the request, and a form's token.
_VOLATILE = re.compile(
    r'"(?:ts|created|QTime)": ?[0-9]+|"id": ?"(?:chatcmpl|resp)[^"]*"|[0-9a-f]{32}|&#34;token&#34;:&#34;[^&]*&#34;'
)

ASKS: Mapping[str, Callable[[Service, str | None], Any]] = {
    "search, fl=score": lambda at, who: at.get("/search/select", [("q", WORD), ("fl", "id,score")], who),
    "search, score alone": lambda at, who: at.get("/search/select", [("q", WORD), ("fl", "score")], who),
    "search, worst first": lambda at, who: at.get(
        "/search/select", [("q", WORD), ("fl", "id,score"), ("sort", "score asc"), ("rows", "1"), ("start", "1")], who
    ),
    "search by title": lambda at, who: at.get(
        "/search/select", [("q", WORD), ("fl", "id,score"), ("sort", "title asc")], who
    ),
    "search, everything of it": lambda at, who: at.get(
        "/search/select",
        [("q", WORD), ("fl", "id,title,score"), ("facet", "true"), ("facet.field", "source"), ("hl", "true")],
        who,
    ),
    "answer with trace": lambda at, who: at.get(
        "/search/select", [("q", WORD), ("action", "rag"), ("trace", "true")], who
    ),
    "stream with trace": lambda at, who: at.get(
        "/search/select", [("q", WORD), ("action", "rag"), ("trace", "true"), ("stream", "true")], who
    ),
    "/chat": lambda at, who: at.post("/chat", said(WORD), who),
    "/chat/stream": lambda at, who: at.post("/chat/stream", said(WORD), who),
    "/ask": lambda at, who: at.post("/ask", said(WORD, stream=False), who),
    "/ask, streamed": lambda at, who: at.post("/ask", said(WORD, stream=True), who),
    "/api/chat": lambda at, who: at.post("/api/chat", said(WORD), who),
    "/api/chat/stream": lambda at, who: at.post("/api/chat/stream", said(WORD), who),
    "/v1": lambda at, who: at.post("/v1/chat/completions", said(WORD, index_name="default", model="m"), who),
    "/v1, streamed": lambda at, who: at.post(
        "/v1/chat/completions", said(WORD, index_name="default", model="m", stream=True), who
    ),
    "the page": lambda at, who: at.get("/", [("q", WORD), ("fl", "score")], who),
    **{
        f"/chat, at least {least}": lambda at, who, least=least: at.post(  # type: ignore[misc]
            "/chat", said(WORD, context={"overrides": {"minimum_search_score": least}}), who
        )
        for least in (0, 0.5, 1, 1.5, 2, 3, 4, 6, 8, 10)
    },
}


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with engines.embedded(tmp_path_factory.mktemp("embedded")) as engine:
        yield engine


@pytest.fixture(scope="module")
def solr(solr_collection: Collection) -> Engine:
    return engines.solr(solr_collection)


def documents(hidden: int) -> list[dict[str, object]]:
    """Return three documents with the word that everybody sees, others without it, and *hidden* ones with it."""
    visible = [
        {"id": f"open{n}", "title": f"Open {n}", "exactContent": f"A {WORD} is a fruit. " * n, "language": "en"}
        for n in (1, 2, 3)
    ]
    rest = [{"id": f"rest{n}", "exactContent": f"The rest, part {n}.", "language": "en"} for n in range(20)]
    secret = [
        {"id": f"secret{n}", "title": f"The {WORD}", "exactContent": f"{WORD} laser", "language": "en", "source": "a"}
        | {"allow_token_document": ["g:bob"]}
        for n in range(hidden)
    ]
    return [*visible, *rest, *secret]


def replies(engine: Engine, folder: Path, user: str | None) -> dict[str, list[tuple[int, str]]]:
    """Return what *user* is told by each way of asking, with so many hidden documents one after the other."""
    told: dict[str, list[tuple[int, str]]] = {name: [] for name in ASKS}
    for hidden in HIDDEN:
        engine.load(documents(hidden))
        place = folder / str(hidden)
        place.mkdir()
        service = Service(place, engine.url, users={"ann": ["g:ann"], "admin": []})
        for name, ask in ASKS.items():
            response = ask(service, user)
            told[name].append((response.status_code, _VOLATILE.sub("-", response.get_data(as_text=True))))
    return told


def holes_in(told: Mapping[str, list[tuple[int, str]]]) -> list[str]:
    """Return the ways of asking whose replies are not the same, byte for byte, or that failed."""
    holes = [f"{name}: {answers[0][0]}" for name, answers in told.items() if answers[0][0] != 200]
    for name, answers in told.items():
        others = [text for _, text in answers if text != answers[0][1]]
        holes += [f"{name}: {_difference(answers[0][1], others[0])}"] if others else []
    return holes


def _difference(text: str, other: str) -> str:
    at = next((n for n, (one, two) in enumerate(zip(text, other, strict=False)) if one != two), 0)
    return f"…{text[max(0, at - 60) : at + 60]!r} and {other[max(0, at - 60) : at + 60]!r}"


@pytest.mark.parametrize("user", [None, "ann"])
def test_hidden_documents_with_a_word_change_no_number_embedded(
    embedded: Engine, tmp_path: Path, user: str | None, record_property: Record
) -> None:
    told = replies(embedded, tmp_path, user)
    tried = len(HIDDEN) * len(told)
    judge(
        record_property,
        f"numbers by scores, {user or 'anonymous'}",
        against="embedded",
        tried=tried,
        holes=holes_in(told),
    )


@pytest.mark.solr
@pytest.mark.parametrize("user", [None, "ann"])
def test_hidden_documents_with_a_word_change_no_number_solr(
    solr: Engine, tmp_path: Path, user: str | None, record_property: Record
) -> None:
    told = replies(solr, tmp_path, user)
    tried = len(HIDDEN) * len(told)
    judge(
        record_property, f"numbers by scores, {user or 'anonymous'}", against="Solr", tried=tried, holes=holes_in(told)
    )


WITH_SCORES = (
    "search, fl=score",
    "answer with trace",
    "stream with trace",
    "/chat",
    "/chat/stream",
    "/v1",
    "/v1, streamed",
)


def test_an_administrator_sees_the_scores(embedded: Engine, tmp_path: Path) -> None:
    """And they tell what is said above: the tests beside this one would see it if anybody else had them."""
    told = replies(embedded, tmp_path, "admin")

    for name in WITH_SCORES:
        assert len({text for _, text in told[name]}) == len(HIDDEN), name
        assert re.search(r'"score": ?[0-9]+\.[0-9]{3}', told[name][0][1]), name


def test_the_others_see_ranks(embedded: Engine, tmp_path: Path) -> None:
    embedded.load(documents(3))
    service = Service(tmp_path, embedded.url)

    rows = service.get("/search/select", [("q", WORD), ("fl", "score"), ("start", "1")]).get_json()["response"]["docs"]
    nodes = service.post("/v1/chat/completions", said(WORD, index_name="default")).get_json()["source_nodes"]
    thoughts = service.post("/chat", said(WORD)).get_json()["context"]["thoughts"]

    assert rows == [{"rank": 2}, {"rank": 3}]
    assert [node["score"] for node in nodes] == [1.0, 1 / 2, 1 / 3]
    assert [one["rank"] for one in thoughts[2]["description"]] == [1, 2, 3]
    assert "score" not in str(thoughts)
