"""Text that means something to a parser, on a SolrCloud: two shards, asked by a node that passes requests on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from datafari_rag.adapters.solr.factory import retriever_for, writer_for
from datafari_rag.adapters.solr.retriever import SolrRetriever
from datafari_rag.core.access import Filter, User, filter_for
from datafari_rag.core.ask import Restriction
from datafari_rag.core.search_request import Browse
from datafari_rag.core.settings.table import SolrLimits
from tests.attack.report import Record, judge
from tests.attack.syntaxes import ALL, LOUD_MACROS, ROUTES
from tests.real_solr import running
from tests.security.corpora import word
from tests.settings import settings_with

pytestmark = [pytest.mark.solr, pytest.mark.cloud, pytest.mark.slow]

TEXTS = (*ALL, *ROUTES)
PUBLIC = filter_for(User(), mode="tokens", anonymous="public")


def who(*tokens: str) -> Filter:
    return filter_for(User("ann", frozenset(tokens)), mode="tokens", anonymous="public")


@pytest.fixture(scope="module")
def retriever(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SolrRetriever]:
    with running(tmp_path_factory.mktemp("cloud"), nodes=2) as started:
        writer = writer_for(settings_with(solr_url=started.url))
        for number, text in enumerate(TEXTS):
            key = word("zk", number)
            writer.add(
                [
                    {"id": text, "exactContent": f"pump {key}", "language": "en", "source": text},
                    {"id": f"in {number}", "exactContent": f"valve {key}", "language": "en"}
                    | {"allow_token_document": [f"gate {text}"]},
                    {"id": f"out {number}", "exactContent": f"bolt {key}", "allow_token_share": ["gate of all"]}
                    | {"deny_token_share": [f"gate {text}"]},
                ]
            )
        writer.add([{"id": "loud", "exactContent": "quoteprobe", "source": '"', "language": "en"}])
        writer.commit()
        writer.close()
        found = retriever_for(settings_with(solr_url=started.url, solr_limits=SolrLimits(wait_s=30.0)))
        yield found
        found.close()


def found(retriever: SolrRetriever, words: str | None, access: Filter, *narrowed: Restriction) -> list[str]:
    page: Any = retriever.browse(Browse(words, rows=100, restrictions=narrowed, fields=("id",)), access)
    return sorted(row["id"] for row in page["response"]["docs"])


def test_values_bounds_and_ids_are_texts_on_each_shard(retriever: SolrRetriever, record_property: Record) -> None:
    holes = []
    for number, text in enumerate(TEXTS):
        values = found(retriever, "pump", PUBLIC, Restriction("source", value=text))
        ranges = found(retriever, "pump", PUBLIC, Restriction("source", low=text, high=text))
        document = retriever.fetch(text, "exactContent", PUBLIC)
        body = None if document is None else document.text
        if (values, ranges, body) != ([text], [text], f"pump {word('zk', number)}"):
            holes.append(f"{text!r}: {values} {ranges} {body}")
        if retriever.fetch(f"{text}${{x}}", "exactContent", PUBLIC) is not None:
            holes.append(f"{text!r} with a macro is taken for it")
    judge(record_property, "values, bounds, ids", against="SolrCloud", tried=4 * len(TEXTS), holes=holes)


def test_tokens_are_texts_on_each_shard(retriever: SolrRetriever, record_property: Record) -> None:
    holes = []
    for number, text in enumerate(TEXTS):
        access = who(f"gate {text}", "gate of all")
        seen = found(retriever, "valve", access), found(retriever, f"bolt {word('zk', number)}", access)
        if seen != ([f"in {number}"], []):
            holes.append(f"{text!r}: {seen}")
        if (others := found(retriever, "valve", who(f"gate {text}${{x}}", f"gate {text}\u200b"))) != []:
            holes.append(f"{text!r} with more: {others}")
    judge(record_property, "tokens, allowed and denied", against="SolrCloud", tried=3 * len(TEXTS), holes=holes)


def test_no_word_is_read_by_a_macro_in_a_range(retriever: SolrRetriever, record_property: Record) -> None:
    holes = []
    for bound in LOUD_MACROS:
        narrowed = (Restriction("source", low="a", high=bound), Restriction("source", value='"'))
        if seen := found(retriever, "quoteprobe", PUBLIC, *narrowed):
            holes.append(f"{bound!r}: {seen}")
    judge(record_property, "words by a macro in a range", against="SolrCloud", tried=len(LOUD_MACROS), holes=holes)
