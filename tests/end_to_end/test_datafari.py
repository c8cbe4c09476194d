"""A collection in Datafari's shape: what its schema and its handler do must change neither answers nor rights."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests
from click.testing import CliRunner

from datafari_rag.adapters.solr.client import Collection, Nodes, SolrConnection, TooManyClauses
from datafari_rag.adapters.solr.factory import retriever_for, writer_for
from datafari_rag.adapters.solr.retriever import SolrRetriever
from datafari_rag.commands.doctor import doctor
from datafari_rag.core.access import Filter, User, filter_for
from datafari_rag.core.errors import BadRequest
from datafari_rag.core.query.filter_queries import restriction_of
from datafari_rag.core.search_request import Browse, Search, Step
from datafari_rag.core.solr.handler_parameters import (
    SNIPPETS,
    reason_left,
)
from datafari_rag.core.solr.parameters import browse_params
from datafari_rag.core.solr.schema import Schema
from tests.datafari_solr import DATAFARI, ELEVATED
from tests.end_to_end.test_handler_parameters import solr_parameters
from tests.settings import settings_with

pytestmark = pytest.mark.solr

CASES = 40
"""Handlers of the property test: four searches each, a tenth of a second."""

POLICY = (
    "The bereavement leave policy of the agency, which has been in force for many years now, allows five days of paid "
    "absence, and the supervisor must be told. Leave is requested in the portal. Everything else is in the handbook."
)
DOCUMENTS: tuple[dict[str, object], ...] = (
    {"id": "elevated", "exactContent": "How engineers work.", "language": "en", "extension": "HTML"},
    {"id": "policy", "exactContent": POLICY, "language": "en", "extension": "pdf", "author": ["Jane Doe"]},
    {"id": "leave", "exactContent": "Leave of all kinds, in short: leave early.", "language": "en", "extension": "pdf"},
    {"id": "conges", "exactContent": "La politique de leave.", "language": "fr", "extension": "docx"},
    {"id": "hers", "exactContent": "The leave of Ann.", "language": "en", "allow_token_document": ["ann"]},
)
PUBLIC = filter_for(User(), mode="tokens", anonymous="public")
ANN = filter_for(User("ann", frozenset({"ann"})), mode="tokens", anonymous="public")


class Datafari:
    """The collection, its handler's `useParams` set, and a retriever over it."""

    def __init__(self, url: str, *, solr_url: str | None = None) -> None:
        self.url, self.solr_url = url, solr_url or url
        self.engine = retriever_for(settings_with(solr_url=self.solr_url))
        self._session = requests.Session()
        self._session.trust_env = False

    def load(self, *documents: Mapping[str, object]) -> None:
        """Replace all that is there, as Datafari's own update chain would: the text in its language's field, too."""
        filled = [
            {**one, f"content_{one['language']}": one["exactContent"]} if "exactContent" in one else one
            for one in documents
        ]
        self._post("update", {"delete": {"query": "*:*"}})
        self._post("update?commit=true", filled)

    def set(self, **params: object) -> None:
        """Make *params* the set that the handler uses."""
        self._post("config/params", {"set": {"mySearch": params}})

    def _post(self, path: str, body: object) -> None:
        self._session.post(f"{self.url}/{path}", json=body, timeout=60).raise_for_status()


@pytest.fixture(scope="module")
def collection(solr_url: str) -> Iterator[Datafari]:
    found = Datafari(solr_url.replace("FileShare", DATAFARI))
    found.load(*DOCUMENTS)
    yield found
    found.engine.close()


@pytest.fixture
def datafari(collection: Datafari) -> Datafari:
    collection.set()
    return collection


@pytest.fixture
def engine(datafari: Datafari) -> SolrRetriever:
    return datafari.engine


def asked(text: str, **more: Any) -> Search:
    words = tuple(text.split())
    return Search(text, Step("asked", words, more.pop("operator", "AND")), 10, language="en", **more)


def found_by(engine: SolrRetriever, search: Search, access: Filter = PUBLIC) -> list[str]:
    return [document.id for document in engine.search(search, access).documents]


def listed(engine: SolrRetriever, browse: Browse, access: Filter = PUBLIC) -> list[str]:
    page: Any = engine.browse(browse, access)
    return [row["id"] for row in page["response"]["docs"]]


# --- the handler ------------------------------------------------------------------------------------------------------


def test_a_snippet_goes_on_to_the_end_of_its_sentence_whatever_the_handler_says(engine: SolrRetriever) -> None:
    (found,) = engine.search(asked("bereavement", content="highlighting", fragment_chars=30), PUBLIC).documents

    assert found.text == POLICY.partition(" Leave")[0]


def test_an_elevated_document_is_no_source_of_an_answer_and_first_in_a_plain_search(engine: SolrRetriever) -> None:
    assert found_by(engine, asked(ELEVATED)) == ["policy"]
    assert engine.search(asked(f"{ELEVATED} nonesuch"), PUBLIC).total == 0, "nothing found is seen as such"
    assert listed(engine, Browse(ELEVATED)) == ["elevated", "policy"]


def test_a_boost_decides_nothing_of_an_answer_and_no_more_of_a_plain_search_than_in_datafari(
    datafari: Datafari,
) -> None:
    leave = asked("leave", operator="OR")
    first = found_by(datafari.engine, leave)
    datafari.set(bq="language:fr^100000", bf="ord(id)", boost="if(termfreq(language,fr),9999,1)")
    assert found_by(datafari.engine, leave) == first
    assert listed(datafari.engine, Browse("leave"))[0] == "conges"
    datafari.set(bq="language:fr^10")
    assert listed(datafari.engine, Browse("leave"))[0] != "conges"


LISTS = {
    "names": [f"leave-policy-{number}-for-staff" for number in range(50)],
    "paths": [f"/srv/partage/rh/{number}/conges_payes-2024.v7.pdf" for number in range(50)],
    "addresses": [f"https://intranet.example.org/rh/{number}/leave?version=2024&part={number}" for number in range(50)],
    "one word": ["aB1" * 80],
}


@pytest.mark.parametrize("pasted", LISTS.values(), ids=list(LISTS))
def test_a_pasted_list_leaves_room_for_the_question_beside_it(engine: SolrRetriever, pasted: list[str]) -> None:
    for words in (("bereavement", *pasted), (*pasted, "bereavement")):
        question = Search("", Step("any word", words, "OR"), 10)
        assert "policy" in found_by(engine, question)
        assert "policy" in listed(engine, Browse("", step=question.step))


def test_solr_says_itself_that_clauses_are_too_many(datafari: Datafari) -> None:
    plain = Browse("", step=Step("any word", tuple(LISTS["addresses"]), "OR"))
    collection = Collection(Nodes(lambda is_fresh: [datafari.url], SolrConnection()), Schema())
    with pytest.raises(TooManyClauses):
        collection.search(browse_params(plain, PUBLIC, Schema(), clauses=100_000))
    collection.close()


@pytest.mark.parametrize(
    "params",
    [
        {"sort": "id asc"},
        {"start": 2},
        {"rq": "{!rerank reRankQuery=$rqq reRankWeight=1000}", "rqq": "language:fr"},
        {"group": "true", "group.field": "language"},
        {"_invariants_": {"uf": "* _query_", "mm": "1", "bq": "language:fr^9999"}},
        {"_appends_": {"bq": "language:fr^9999", "fl": "allow_token_document"}},
        {"omitHeader": "true", "timeAllowed": "1", "minExactCount": "1", "TZ": "Asia/Tokyo"},
        {"elevateIds": "elevated", "excludeIds": "policy", "forceElevation": "true"},
    ],
    ids=str,
)
def test_a_default_of_the_handler_changes_no_answer(datafari: Datafari, params: dict[str, object]) -> None:
    leave = asked("leave", operator="OR")
    before = datafari.engine.search(leave, ANN)
    datafari.set(**params)
    after = datafari.engine.search(leave, ANN)

    assert (after.documents, after.total) == (before.documents, before.total)


def test_facets_are_counted_as_asked_whatever_the_handler_counts(datafari: Datafari) -> None:
    browse = Browse("leave", facet_fields=("extension", "creation_date"), wants_highlighting=True)
    before = _page(datafari.engine, browse)
    datafari.set(
        **{
            "facet.limit": 1,
            "f.extension.facet.prefix": "x",
            "facet.mincount": 2,
            "facet.sort": "index",
            "facet.pivot": "allow_token_document,extension",
            "facet.query": "allow_token_document:ann",
            "json.nl": "map",
            "f.exactContent.hl.tag.pre": "<b>",
            "hl.fragsize": "1",
            "_appends_": {"facet.field": "allow_token_document", "hl.fl": "preview_content"},
        }
    )

    assert _page(datafari.engine, browse) == before
    assert before["facet_counts"]["facet_fields"]["extension"] == ["pdf", 2, "docx", 1]


def _page(engine: SolrRetriever, browse: Browse) -> dict[str, Any]:
    page = dict(engine.browse(browse, PUBLIC))
    header: Any = page.pop("responseHeader")
    return page | {"status": header["status"]}


# --- texts and titles -------------------------------------------------------------------------------------------------

VALVE = "The quibblenaut valve closes at forty bar."


def test_a_text_is_read_where_it_is(datafari: Datafari) -> None:
    datafari.load(
        *DOCUMENTS,
        {"id": "valve", "language": "en", "content_en": VALVE},
        {"id": "hidden", "language": "en", "content_en": VALVE, "allow_token_document": ["ann"]},
        {"id": "empty", "language": "en", "title_en": "quibblenaut"},
    )
    try:
        found = datafari.engine.search(asked("quibblenaut", operator="OR"), PUBLIC).documents
        texts = {document.id: (document.text, document.field) for document in found}
        assert texts == {"valve": (VALVE, "content_en"), "empty": ("", "exactContent")}
        opened = datafari.engine.fetch("valve", "exactContent", PUBLIC)
        assert opened is not None and (opened.text, opened.field) == (VALVE, "content_en")
        assert datafari.engine.fetch("hidden", "exactContent", PUBLIC) is None
        assert datafari.engine.fetch("hidden", "exactContent", ANN) is not None
    finally:
        datafari.load(*DOCUMENTS)


def test_a_title_that_the_collection_does_not_copy_is_found(datafari: Datafari) -> None:
    writer = writer_for(settings_with(solr_url=datafari.solr_url))
    manual = {"title": "Frobnicatorium manual", "url": "https://h/twist", "exactContent": "Turn the knob twice."}
    writer.add([{"id": "en", "language": "en", **manual}, {"id": "it", "language": "it", **manual}])
    writer.commit()
    try:
        assert set(listed(datafari.engine, Browse("frobnicatorium"))) == {"en", "it"}
        assert listed(datafari.engine, Browse("twist")) == ["en", "it"], "Solr's own copy"
    finally:
        writer.delete(["en", "it"])
        writer.commit()
        writer.close()


# --- filters as the pages of Datafari send them -----------------------------------------------------------------------

FACETS = ("extension", "author", "creation_date", "language", "spell")
FILTERED = {
    "a value in other letters": ("extension:HTML", {"elevated"}),
    "a name in other letters": ('author:"JANE Doe"', {"policy"}),
    "a tag": ("{!tag=extension}(extension:pdf)", {"policy", "leave"}),
    "one of several": ('{!tag=extension}(extension:PDF OR extension:"docx")', {"policy", "leave", "conges"}),
    "a list": ('extension:("Docx" OR "html")', {"conges", "elevated"}),
    "an exclusion": ("-extension:(PDF OR docx)", {"elevated"}),
    "days before today": (
        "{!tag=date_0}creation_date:[NOW/DAY-30000DAYS TO NOW/DAY]",
        {"policy", "leave", "conges", "elevated"},
    ),
    "today": ("{!tag=date_0}creation_date:[NOW/DAY TO NOW]", set()),
    "since a year": ("creation_date:[1960-01-01T00:00:00Z TO NOW]", {"policy", "leave", "conges", "elevated"}),
    "what the type makes nothing of": ('spell:"***"', set()),
    "all but what the type makes nothing of": ('-spell:"***"', {"policy", "leave", "conges", "elevated"}),
    "syntax as a value": ('author:"{!lucene}*:*"', set()),
}


@pytest.mark.parametrize(("text", "wanted"), FILTERED.values(), ids=FILTERED.keys())
def test_a_filter_is_read_as_its_field_reads_it(engine: SolrRetriever, text: str, wanted: set[str]) -> None:
    restriction = restriction_of(text, FACETS)
    assert restriction is not None
    assert set(listed(engine, Browse(None, restrictions=(restriction,)))) == wanted
    leave = asked("leave engineers", operator="OR", restrictions=(restriction,))
    assert set(found_by(engine, leave)) == wanted


@pytest.mark.parametrize(
    "text",
    ["-creation_date:[NOW-1MONHT TO NOW]", "-creation_date:junk", "-original_file_size:x", "last_modified:[2024 TO *]"],
)
def test_a_filter_that_its_field_cannot_have_is_refused(engine: SolrRetriever, text: str) -> None:
    restriction = restriction_of(text, ("creation_date", "original_file_size", "last_modified"))
    assert restriction is not None
    for seek in (
        lambda: listed(engine, Browse(None, restrictions=(restriction,))),
        lambda: found_by(engine, asked("leave", restrictions=(restriction,))),
    ):
        with pytest.raises(BadRequest):
            seek()


# --- the doctor -------------------------------------------------------------------------------------------------------


def _diagnosis(datafari: Datafari, tmp_path: Path, *lines: str) -> tuple[int, str]:
    conf = tmp_path / "rag.properties"
    conf.write_text("\n".join([f"solr.url={datafari.url}", *lines]))
    said = CliRunner().invoke(doctor, ["--conf", str(conf), "--no-model"])
    return said.exit_code, said.output


def test_the_doctor_names_what_answers_are_made_without(datafari: Datafari, tmp_path: Path) -> None:
    datafari.set(bq="language:fr^10", _appends_={"boost": "2"})
    status, said = _diagnosis(datafari, tmp_path, "solr.facets=extension,title")

    assert status == 0, said
    assert "HINT    handler: answers are made without what it adds to the order of hits: boost, bq, elevator" in said
    assert "OK      handler: nothing that it sets changes an answer" in said
    assert "HINT    solr.facets: not indexed, so that nothing is counted and every filter finds nothing: title" in said


def test_the_doctor_names_what_a_handler_sets_all_the_same(datafari: Datafari, tmp_path: Path) -> None:
    datafari.load(*DOCUMENTS, {"id": "valve", "language": "en", "content_en": VALVE})
    datafari.set(**{"facet.matches": "x", "json.limit": 0, "_invariants_": {"sort": "id desc", "tie": "0.2"}})
    try:
        status, said = _diagnosis(datafari, tmp_path)
    finally:
        datafari.set()
        datafari.load(*DOCUMENTS)

    assert status == 1
    assert "PROBLEM handler: its invariants override what each search sends: sort" in said
    assert "HINT    handler: sets facet.matches: values that do not match are not counted" in said
    assert "HINT    handler: sets json.limit: a request in JSON replaces the words of a question" in said
    assert "OK      handler" not in said
    assert "HINT    texts: 1 documents have no exactContent" in said


def test_the_doctor_has_two_ways_out_of_a_handler_that_filters_by_itself(datafari: Datafari, tmp_path: Path) -> None:
    status, said = _diagnosis(datafari, tmp_path, "solr.handler=/secured")
    assert status == 1
    assert "PROBLEM rights component: the handler filters by itself, as Datafari's does" in said
    assert "-> Either let it filter, with this line alone: security.mode=plugin" in said
    assert "-> or add a handler without {!manifoldCFSecurity} to Solr, and name it: solr.handler=/rag" in said
    assert '<requestHandler name="/rag" class="solr.SearchHandler"/>' in said

    status, said = _diagnosis(datafari, tmp_path, "solr.handler=/secured", "security.mode=plugin")
    assert status == 0, said
    assert "OK      rights component" in said


def test_the_doctor_sees_what_is_in_effect_wherever_it_is_configured(datafari: Datafari, tmp_path: Path) -> None:
    status, said = _diagnosis(datafari, tmp_path, "solr.handler=/initial")

    assert status == 1
    assert "PROBLEM rights component: the handler filters by itself" in said
    assert "PROBLEM handler: its invariants override what each search sends: start" in said
    assert "HINT    handler: sets facet.matches: values that do not match are not counted" in said
    assert "HINT    handler: answers are made without what it adds to the order of hits: bq" in said


VALUES = (
    *("true", "false", "0", "1", "2", "-1", "1000000", "", "*", "*:*", "-*:*", "x", "id desc", "score asc,id desc"),
    *("language:fr^1000", "ord(id)", "WORD", "CHARACTER", "map", "xml", "python", "all", "edismax", "lucene", "50%"),
    *("{!func}ord(id)", "{!rerank reRankQuery=$rqq reRankWeight=1000}", "content_fr^900", "allow_token_document"),
)
"""Of every kind that a parameter takes, for each parameter: what is overridden is not even read."""

VALID = {
    "hl.cacheFieldValCharsThreshold": ("1", "100000"),
    "hl.queryFieldPattern": ("content_fr", "content_*"),
    "multiThreaded": ("true", "false"),
    "partialResults": ("true", "false"),
    "canCancel": ("false",),
    "version": ("2.2",),
    "disableRequestId": ("true",),
    "shards.info": ("true", "false"),
}
"""For what is not overridden, because it changes no result: values that Solr takes."""


def _handler(chance: random.Random) -> dict[str, object]:
    """Return a set of parameters of a handler: half of those of Solr's lists that must not change an answer."""
    searched = ("content_en", "content_fr", "exactContent")
    for_fields = [f"f.{field}.{name}" for field in searched for name in (*SNIPPETS, "hl.tag.pre", "hl.fragsize")]
    others = sorted(name for name in solr_parameters() if reason_left(name) is None)
    chosen = [name for name in (*others, *for_fields, "unranked", "rqq") if chance.random() < 0.5]
    return {name: chance.choice(VALID.get(name, VALUES)) for name in chosen}


def test_no_handler_changes_an_answer_or_its_rights(datafari: Datafari) -> None:
    exact = asked("leave policy", operator="OR")
    snippets = replace(exact, content="highlighting", fragment_chars=30)
    searches = [(search, access) for search in (exact, snippets) for access in (PUBLIC, ANN)]
    wanted = [_found(datafari.engine, *one) for one in searches]
    assert len({found[1] for found in wanted}) == 2, "Ann sees more"
    for seed in range(CASES):
        params = _handler(random.Random(seed))
        datafari.set(**params)
        assert [_found(datafari.engine, *one) for one in searches] == wanted, (seed, params)


def _found(engine: SolrRetriever, search: Search, access: Filter) -> tuple[object, int]:
    result = engine.search(search, access)
    return result.documents, result.total
