"""The Solr adapter against a server with prepared answers: shapes, failures, limits, what is sent."""

from __future__ import annotations

import base64
import json
import logging
import socket
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from datafari_rag.adapters.solr.client import Collection, Node, Nodes, SolrConnection
from datafari_rag.adapters.solr.factory import addresses_of, connection_of
from datafari_rag.adapters.solr.retriever import SolrRetriever
from datafari_rag.adapters.solr.zookeeper import CloudAddresses
from datafari_rag.core.access import User, filter_for
from datafari_rag.core.ask import Restriction
from datafari_rag.core.errors import BadRequest, RagError, SearchTimeout, SearchUnavailable
from datafari_rag.core.search_request import Browse, Fields, Search, Step
from datafari_rag.core.settings.addresses import Tls, TlsByServer
from datafari_rag.core.settings.table import SolrLimits
from datafari_rag.core.solr.schema import Schema
from tests.settings import settings_with
from tests.support.server import Asked, Loopback, Reply, serving

SECRET = "S-1-5-21-secret-token"
ACCESS = filter_for(User("ann", frozenset({SECRET})), mode="tokens", anonymous="public")
PUMP = Search("pump", Step("asked", ("pump",)), 5)
PATIENT = SolrConnection()
QUICK = replace(PATIENT, connect_timeout_s=0.3, timeout_s=0.4)
"""The limit where it is what ends the request; everywhere else it would only measure how busy the machine is."""

EMPTY = {"responseHeader": {"status": 0, "QTime": 3}, "response": {"numFound": 0, "start": 0, "docs": []}}
SCHEMA = {"schema": {"fields": [{"name": name, "type": "s"} for name in ("id", "title", "exactContent")]}}


def answering(reply: object = EMPTY, *, status: int = 200, described: object = SCHEMA) -> Callable[[Asked], Reply]:
    def answer(asked: Asked) -> Reply:
        body = described if asked.path.endswith("/schema") else reply
        is_described = asked.path.endswith("/schema")
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return Reply(raw, 200 if is_described else status)

    return answer


def retriever(
    *urls: str,
    connection: SolrConnection = PATIENT,
    schema: Schema | None = None,
    handler: str = "select",
    is_tolerant: bool = False,
) -> SolrRetriever:
    nodes = Nodes(lambda is_fresh: [f"{url}/solr/docs" for url in urls], connection)
    return SolrRetriever(Collection(nodes, schema or Schema(), handler=handler, is_tolerant=is_tolerant))


def failure(engine: SolrRetriever, search: Search = PUMP) -> RagError:
    with pytest.raises(RagError) as caught:
        engine.search(search, ACCESS)
    return caught.value


def sent(loopback: Loopback) -> Mapping[str, list[str]]:
    """Return the parameters of the last request, whichever way they went."""
    last = loopback.asked[-1]
    return {**last.query, **parse_qs(last.body.decode(), keep_blank_values=True)}


def hits(*rows: Mapping[str, object], **more: object) -> dict[str, object]:
    response = {"numFound": len(rows), "start": 0, "docs": list(rows)}
    return {"responseHeader": {"status": 0, "QTime": 7}, "response": response, **more}


def dead_url() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


# --- failures, distinguished ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "error"),
    [
        *((status, SearchUnavailable) for status in (206, 302, 400, 401, 404, 500)),
    ],
)
def test_another_status_than_200_is_no_answer(status: int, error: type[RagError]) -> None:
    body = {"error": {"msg": f"cannot parse 'fq={SECRET}'", "code": status}}
    with serving(answering(body, status=status)) as loopback:
        found = failure(retriever(loopback.url))

    assert type(found).code == error.code
    assert f"answered {status}" in found.log


TOO_MANY = b'{"error":{"msg":"Query contains too many nested clauses; maxClauseCount is set to 1024"'
"""As Lucene says it; the trace that follows may be long, or never end."""

MANY = Search("", Step("any word", tuple(f"w{number}" for number in range(60)), "OR"), 10)


@pytest.mark.parametrize("status", [400, 500])
def test_too_many_clauses_are_sent_again_as_fewer_to_the_same_node(status: int) -> None:
    def answer(asked: Asked) -> Reply:
        words = {**asked.query, **parse_qs(asked.body.decode())}.get("words", [""])[0].split()
        return Reply(TOO_MANY, status, length=100_000) if len(words) > 10 else answering()(asked)

    with serving(answer) as first, serving(answering()) as second:
        engine = retriever(first.url, second.url)
        for _ in range(2):
            engine.search(MANY, ACCESS)
            engine.browse(Browse("", step=MANY.step), ACCESS)

    assert second.asked == []
    assert len(sent(first)["words"][0].split()) > 5


def test_a_solr_that_refuses_one_word_is_not_asked_for_ever() -> None:
    with serving(lambda asked: Reply(TOO_MANY, 500) if "/select" in asked.path else answering()(asked)) as loopback:
        found = failure(retriever(loopback.url), MANY)

    assert "too many clauses" in found.log
    assert SECRET not in found.log
    assert len(loopback.asked) < 12


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>login</html>", b"[]", b"null", b"{}", b'{"response": 1}', b'{"response": {"numFound": "x"}}',
     b'{"response": {"numFound": 1, "docs": [1]}}', b'{"response": {"numFound": 1}}', b"\xff\xfe", b'{"response":',
     b'{"response": {"numFound": 1, "docs": [{"title": "no id"}]}}', b"[" * 100_000],
    ids=lambda body: repr(body)[:40],
)  # fmt: skip
def test_garbage_is_no_answer_and_never_nothing_found(body: bytes) -> None:
    with serving(answering(body)) as loopback:
        assert isinstance(failure(retriever(loopback.url)), SearchUnavailable)


@pytest.mark.parametrize("body", [b"<html>", b"{}", b'{"error": {"msg": "x"}}'])
def test_no_failure_tells_what_was_asked_or_what_solr_said(body: bytes, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret = body + SECRET.encode()
    for status in (200, 400, 500):
        with serving(answering(secret, status=status)) as loopback:
            found = failure(retriever(loopback.url))
        assert SECRET not in f"{found.reason} {found.log} {found!r}"
    assert SECRET not in "".join(record.getMessage() + str(record.__dict__) for record in caplog.records)


def test_a_filter_value_that_does_not_fit_is_the_callers_fault() -> None:
    narrowed = replace(PUMP, restrictions=(Restriction("extension", value="x"),))
    with serving(answering({}, status=400)) as loopback:
        engine = retriever(loopback.url)
        assert isinstance(failure(engine, narrowed), BadRequest)
        assert isinstance(failure(engine), SearchUnavailable)


def test_partial_results_are_no_results() -> None:
    partial = {**hits({"id": "a"}), "responseHeader": {"status": 0, "QTime": 1, "partialResults": True}}
    with serving(answering(partial)) as loopback:
        assert isinstance(failure(retriever(loopback.url)), SearchUnavailable)
        assert sent(loopback)["shards.tolerant"] == ["false"]

        tolerant = retriever(loopback.url, is_tolerant=True)
        assert tolerant.search(PUMP, ACCESS).is_partial
        assert sent(loopback)["shards.tolerant"] == ["true"]
        page: Any = tolerant.browse(Browse("pump"), ACCESS)
        assert page["responseHeader"]["partialResults"] is True


def test_a_probe_says_what_is_wrong() -> None:
    with serving(answering({}, status=503)) as loopback:
        assert "answered 503" in (retriever(loopback.url).probe() or "")
    with serving(answering()) as loopback:
        assert retriever(loopback.url).probe() is None


@pytest.mark.parametrize(
    ("documents", "with_text", "said"),
    [(0, 0, None), (3, 0, "No document has a text in the field exactContent: set"), (3, 2, None)],
    ids=["an empty collection", "a wrong field", "texts"],
)
def test_a_probe_names_the_field_of_the_texts_where_no_document_has_it(
    documents: int, with_text: int, said: str | None
) -> None:
    def answer(asked: Asked) -> Reply:
        wanted = {**asked.query, **parse_qs(asked.body.decode())}.get("fq", [""])[0]
        number = with_text if wanted == "exactContent:[* TO *]" else documents
        return answering({**EMPTY, "response": {"numFound": number, "start": 0, "docs": []}})(asked)

    with serving(answer) as loopback:
        probed = retriever(loopback.url).probe()

    assert probed is None if said is None else probed is not None and probed.startswith(said)


def test_texts_are_looked_for_until_one_is_there() -> None:
    with serving(answering(hits({"id": "a"}))) as loopback:
        engine = retriever(loopback.url)
        assert (engine.probe(), engine.probe(), engine.probe()) == (None, None, None)
        searched = [one for one in loopback.asked if one.path.endswith("/select")]

    assert len(searched) == 4


def test_a_name_that_cannot_be_sent_is_no_search() -> None:
    odd = filter_for(User("\ud800"), mode="plugin", anonymous="public")
    with serving(answering()) as loopback, pytest.raises(SearchUnavailable):
        retriever(loopback.url).search(PUMP, odd)


# --- several nodes ----------------------------------------------------------------------------------------------------


def test_the_next_node_is_asked_when_one_is_gone_and_the_dead_one_is_left_alone_then() -> None:
    with serving(answering()) as loopback:
        engine = retriever(dead_url(), loopback.url)
        for _ in range(3):
            assert engine.search(PUMP, ACCESS).total == 0
        assert len([asked for asked in loopback.asked if "/select" in asked.path]) == 3


@pytest.mark.parametrize("status", [404, 500, 503])
def test_the_next_node_is_asked_when_one_has_trouble(status: int) -> None:
    with serving(answering({}, status=status)) as bad, serving(answering()) as good:
        assert retriever(bad.url, good.url).search(PUMP, ACCESS).total == 0
        assert len([asked for asked in bad.asked if "/select" in asked.path]) == 1


def test_the_next_node_is_not_asked_what_no_node_takes() -> None:
    with serving(answering({}, status=401)) as bad, serving(answering()) as good:
        failure(retriever(bad.url, good.url))
        assert good.asked == []


def test_one_node_is_asked_once_more_after_a_broken_connection() -> None:
    tries: list[str] = []

    def answer(asked: Asked) -> Reply:
        tries.append(asked.path)
        return Reply(b"x", length=100) if len(tries) == 2 else answering()(asked)

    with serving(answer) as loopback:
        assert retriever(loopback.url).search(PUMP, ACCESS).total == 0


def test_a_node_that_does_not_answer_in_time_is_asked_last_then() -> None:
    def silent(asked: Asked) -> Reply:
        return answering()(asked) if "/schema" in asked.path else Reply(write=lambda out: asked.over.wait())

    with serving(silent) as slow, serving(answering()) as good:
        engine = retriever(slow.url, good.url, connection=replace(QUICK, timeout_s=1.0))
        assert isinstance(failure(engine), SearchTimeout)
        assert engine.search(PUMP, ACCESS).total == 0


def test_no_node_at_all_is_unavailable() -> None:
    assert isinstance(failure(retriever()), SearchUnavailable)


# --- what is sent -----------------------------------------------------------------------------------------------------


def test_solr_is_asked_once_for_a_search_and_once_in_a_while_for_its_schema() -> None:
    with serving(answering()) as loopback:
        engine = retriever(loopback.url)
        for _ in range(4):
            engine.search(PUMP, ACCESS)

    assert [asked.path.rpartition("/")[2] for asked in loopback.asked] == ["schema", *["select"] * 4]


def test_a_short_search_is_a_get_and_a_long_one_a_post() -> None:
    with serving(answering()) as loopback:
        engine = retriever(loopback.url)
        engine.fetch("a", "exactContent", filter_for(User(), mode="none", anonymous="public"))
        assert loopback.asked[-1].method == "GET"
        engine.search(replace(PUMP, step=Step("asked", tuple(f"word{n}" for n in range(60)))), ACCESS)
        assert loopback.asked[-1].method == "POST"
        assert sent(loopback)["tokens"] == [SECRET]
        # The text is read with the filter, and not afterwards by its id: a newer version may be hidden.
        assert sent(loopback)["distrib.singlePass"] == ["true"]
        # Whatever the handler counts, marks and returns by default.
        names = ("defType", "facet", "hl", "spellcheck", "echoParams")
        assert [sent(loopback)[name] for name in names] == [["lucene"], ["false"], ["false"], ["false"], ["none"]]


@pytest.mark.parametrize("status", [401, 403])
def test_a_solr_that_does_not_describe_itself_is_searched_in_all_fields(status: int) -> None:
    def answer(asked: Asked) -> Reply:
        return Reply(b"", status) if "/schema" in asked.path else answering()(asked)

    with serving(answer) as loopback:
        retriever(loopback.url).search(PUMP, ACCESS)

    assert "content_en^1" in sent(loopback)["q"][0]


def test_the_handler_and_the_headers_of_the_request_are_sent() -> None:
    connection = replace(PATIENT, headers=lambda: {"X-Request-ID": "r1", "traceparent": "00-x"}, user="u", password="p")
    with serving(answering()) as loopback:
        retriever(loopback.url, connection=connection, handler="/ask").search(PUMP, ACCESS)

    last = loopback.asked[-1]
    assert last.path == "/solr/docs/ask"
    assert (last.headers["X-Request-ID"], last.headers["traceparent"]) == ("r1", "00-x")
    assert last.headers["Authorization"] == "Basic " + base64.b64encode(b"u:p").decode()


def test_a_collection_of_an_odd_name_is_asked_by_it() -> None:
    with serving(answering()) as loopback:
        nodes = Nodes(lambda is_fresh: (f"{loopback.url}/solr/a b\u00e9/",), PATIENT)
        engine = SolrRetriever(Collection(nodes, Schema()))
        engine.search(PUMP, ACCESS)

    assert loopback.asked[-1].path == "/solr/a%20b%C3%A9/select"


@pytest.mark.parametrize("size", [0, 2000], ids=["by GET", "by POST"])
def test_parameters_arrive_as_they_are_and_none_is_expanded(size: int) -> None:
    params = {
        "q": "a b&c=d+e%2" + "x" * size,
        "fq": ["one", "t\u00e9\U0001f600/*~._-"],
        "tokens": "a\x1fb\x00",
        "none": [],
    }
    with serving(answering()) as loopback:
        Node(f"{loopback.url}/solr/docs", PATIENT).search("select", params)
    wanted = {name: [value] if isinstance(value, str) else value for name, value in params.items() if value}
    assert sent(loopback) == {**wanted, "wt": ["json"], "expandMacros": ["false"]}
    assert loopback.asked[-1].method == ("POST" if size else "GET")
    assert next(iter(loopback.asked[-1].query)) == "expandMacros"


def test_a_password_in_the_address_is_used_before_that_of_the_settings_and_not_logged() -> None:
    connection = replace(PATIENT, user="other", password="other")
    with serving(answering({}, status=500)) as loopback:
        found = failure(retriever(loopback.url.replace("//", "//user:hidden@"), connection=connection))
        assert loopback.asked[-1].headers["Authorization"] == "Basic " + base64.b64encode(b"user:hidden").decode()

    assert "hidden" not in found.log


def test_a_connection_does_not_show_its_password() -> None:
    assert "hidden" not in repr(replace(PATIENT, user="u", password="hidden"))


def test_in_mode_plugin_solr_is_told_the_user() -> None:
    with serving(answering()) as loopback:
        engine = retriever(loopback.url)
        engine.search(PUMP, filter_for(User("ann"), mode="plugin", anonymous="public"))
        assert sent(loopback)["AuthenticatedUserName"] == ["ann"]
        assert "fq" not in sent(loopback)
        engine.search(PUMP, filter_for(User(), mode="plugin", anonymous="public"))
        assert not any(name.startswith("Authenticated") for name in sent(loopback))


# --- what comes back --------------------------------------------------------------------------------------------------


def test_documents_are_read_whatever_shape_their_fields_have() -> None:
    reply = hits(
        {"id": "b", "title": ["First", "Second"], "exactContent": ["one", "two"], "score": 1, "_version_": 17},
        {"id": "a", "title": [], "exactContent": None, "score": 1.0},
        {"id": 5, "title": "Single", "exactContent": "text", "score": 2.5, "source": ["s"], "url": [None, "u"]},
    )
    with serving(answering(reply)) as loopback:
        found = retriever(loopback.url).search(PUMP, ACCESS)

    assert [(d.id, d.title, d.text, d.score) for d in found.documents] == [
        ("5", "Single", "text", 2.5),
        ("a", None, "", 1.0),
        ("b", "First", "one", 1.0),
    ]
    assert found.documents[2].version == "17"
    assert (found.documents[0].url, found.documents[0].meta) == ("u", {"source": "s"})
    assert (found.total, found.took_ms, found.query) == (3, 7.0, "AND: pump")


@pytest.mark.parametrize(
    ("snippets", "wanted"),
    [
        (
            {"content_en": ["a \ue000pump\ue001 &amp; more"], "exactContent": ["a \ue000pump\ue001 &amp; more"]},
            "a pump & more",
        ),
        ({"content_en": ["a longer pump here"], "exactContent": ["pump here"]}, "a longer pump here"),
        ({"content_en": ["first"], "exactContent": ["second"]}, "first … second"),
        ({"content_en": ["first", "not this"]}, "first"),
        ({"content_en": "as a text"}, "as a text"),
        ({"content_en": [f"a &#{'9' * 5000}; b"]}, "a \ufffd b"),
        ({"content_en": [], "exactContent": [""]}, ""),
        ({"elsewhere": ["x"]}, ""),
        ({}, ""),
        (None, ""),
        ("garbage", ""),
    ],
    ids=range(11),
)
def test_snippets_are_joined_once_each_and_made_plain(snippets: object, wanted: str) -> None:
    reply = hits({"id": "a", "score": 1}, highlighting={"a": snippets})
    schema = {"schema": {"fields": [{"name": "content_en", "type": "s"}, {"name": "exactContent", "type": "s"}]}}
    with serving(answering(reply, described=schema)) as loopback:
        (found,) = retriever(loopback.url).search(replace(PUMP, content="highlighting"), ACCESS).documents

    assert (found.text, found.field) == (wanted, "highlighting")


def test_a_plain_search_hands_on_no_rights_and_no_parameters() -> None:
    row = {"id": "a", "readers": [SECRET], "deny_token_share": [SECRET], "title": ["T"]}
    reply = {
        **hits(row, highlighting={"a": {"readers": [SECRET]}}, debug={"x": SECRET}, spellcheck={"x": SECRET}),
        "facet_counts": {
            "facet_fields": {"extension": ["pdf", 1], "readers": [SECRET, 1], "source": [SECRET, 1]},
            "facet_pivot": {"readers": [SECRET]},
        },
        "responseHeader": {"status": 0, "QTime": 4, "params": {"fq": SECRET}},
    }
    schema = Schema(Fields(acl={"allow_token_document": "readers"}))
    with serving(answering(reply)) as loopback:
        engine = retriever(loopback.url, schema=schema)
        counted = Browse("pump", wants_highlighting=True, facet_fields=("extension", "readers"))
        pages = [engine.browse(counted, ACCESS), engine.browse(Browse("pump"), ACCESS)]

    plain = {
        "responseHeader": {"status": 0, "QTime": 4},
        "response": {"numFound": 1, "start": 0, "docs": [{"id": "a", "title": ["T"]}]},
    }
    kinds = ("queries", "fields", "ranges", "intervals", "heatmaps")
    facets = {f"facet_{kind}": {"extension": ["pdf", 1]} if kind == "fields" else {} for kind in kinds}
    assert pages == [{**plain, "highlighting": {"a": {}}, "facet_counts": facets}, plain]


# --- from the settings ------------------------------------------------------------------------------------------------


def test_the_settings_say_how_solr_is_reached() -> None:
    settings = settings_with(
        solr_url="http://a:1/solr/x/, http://b:2/solr/x",
        solr_user="u",
        solr_password="p",
        tls=TlsByServer(solr=Tls("ca.pem", "c.pem", "k.pem")),
        solr_limits=SolrLimits(wait_s=4.0),
    )
    connection = connection_of(settings)

    assert addresses_of(settings.solr.url, connection)(False) == ("http://a:1/solr/x", "http://b:2/solr/x")
    assert (connection.user, connection.password, connection.tls) == ("u", "p", settings.tls.solr)
    assert (connection.retries, connection.timeout_s) == (1, 4.0)


@pytest.mark.parametrize("key", ["ca_file", "cert_file"])
def test_a_certificate_that_is_not_there_fails_the_search_and_not_the_start(key: str, tmp_path: Path) -> None:
    connection = replace(PATIENT, tls=Tls(**{key: str(tmp_path / "absent.pem")}))
    found = failure(retriever(dead_url().replace("http:", "https:"), connection=connection))

    assert isinstance(found, SearchUnavailable)
    assert "PEM files" in found.log


@pytest.mark.parametrize("url", ["ftp://a:1", "http://[::1", "a:1"])
def test_an_address_that_is_none_fails_the_search_and_the_next_node_is_asked(url: str) -> None:
    assert isinstance(failure(retriever(url)), SearchUnavailable)
    with serving(answering()) as loopback:
        assert retriever(url, loopback.url).search(PUMP, ACCESS).total == 0


def test_a_solrcloud_is_asked_of_its_zookeeper() -> None:
    assert isinstance(addresses_of("zookeeper://127.0.0.1:1#docs", PATIENT), CloudAddresses)
