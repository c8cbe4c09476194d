"""What the embedded index finds, shows and counts; its rights are in `test_embedded_access`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from datafari_rag.adapters.embedded.retriever import EmbeddedRetriever, IndexView
from datafari_rag.adapters.embedded.writer import EmbeddedWriter
from datafari_rag.core.access import ANONYMOUS, filter_for
from datafari_rag.core.search_request import Browse, Operator, Search, Step

ANYBODY = filter_for(ANONYMOUS, mode="tokens", anonymous="public")

DOCUMENTS: list[dict[str, object]] = [
    {
        "id": "fr",
        "title": "Guide des pompes",
        "url": "https://host/guides/pompes.html",
        "exactContent": "L'entretien des pompes hélicoïdales <vite> & bien, à l'été.",
        "preview_content": "L'entretien",
        "language": "fr",
        "extension": "html",
        "source": "guides",
        "last_modified": "2023-05-01T10:00:00Z",
    },
    {
        "id": "en",
        "title": "Annual report",
        "exactContent": "The running pumps of 2024-report were quick. set max_connections to 100.",
        "language": "en",
        "extension": "pdf",
        "source": "reports",
        "last_modified": "2024-03-01T10:00:00.500Z",
    },
    {"id": "zh", "title": "搜索", "exactContent": "企业搜索引擎回答问题", "language": "zh", "extension": "pdf"},
    {"id": "de", "title": "Äpfel", "exactContent": "Die Straßen der Städte sind schön.", "language": "de"},
    {"id": "bare", "exactContent": "alone alone alone"},
]


@pytest.fixture(scope="module")
def retriever(tmp_path_factory: pytest.TempPathFactory) -> EmbeddedRetriever:
    directory = tmp_path_factory.mktemp("index")
    with closing(EmbeddedWriter(directory)) as writer:
        writer.add(DOCUMENTS)
        writer.commit()
    return EmbeddedRetriever(directory)


def ids(retriever: EmbeddedRetriever, *words: str, operator: Operator = "AND", least: int | None = None) -> list[str]:
    search = Search("", Step("asked", words, operator, least), 10, language="fr")
    return [document.id for document in retriever.search(search, ANYBODY).documents]


def page(retriever: EmbeddedRetriever, browse: Browse) -> dict[str, Any]:
    return dict(retriever.browse(browse, ANYBODY))


def rows(retriever: EmbeddedRetriever, browse: Browse) -> list[str]:
    return [row["id"] for row in page(retriever, browse)["response"]["docs"]]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        pytest.param(("pompe",), ["fr"], id="a stem finds its plural"),
        pytest.param(("helicoidale",), ["fr"], id="a word without accents finds the one with"),
        pytest.param(("hélicoïdales",), ["fr"], id="a word with accents"),
        pytest.param(("l'entretien",), ["fr"], id="an elided article"),
        pytest.param(("run",), ["en"], id="an English stem though the question is French"),
        pytest.param(("2024-report",), ["en"], id="what the analyser splits is a phrase"),
        pytest.param(("report-2024",), [], id="and not in another order"),
        pytest.param(("max_connections",), ["en"], id="an identifier"),
        pytest.param(("搜索",), ["zh"], id="Chinese words are found inside a sentence"),
        pytest.param(("索搜",), [], id="and their characters not in another order"),
        pytest.param(("strasse",), ["de"], id="sharp s"),
        pytest.param(("annual",), ["en"], id="a word of the title"),
        pytest.param(("guides",), ["fr"], id="a word of the address and the title"),
        pytest.param(("alone",), ["bare"], id="a document without language"),
        pytest.param(("pompe", "quick"), [], id="all words, when they are in two documents"),
        pytest.param(("***", "?", "pompe"), ["fr"], id="marks are no words"),
        pytest.param(("***",), [], id="nothing but marks"),
        pytest.param((), [], id="no words"),
        pytest.param(("content_en:quick",), [], id="a field name is text"),
        pytest.param(("qu*",), [], id="a star is no wildcard"),
        pytest.param(("\ud800", "pompe"), ["fr"], id="a lone surrogate is no word"),
    ],
)
def test_words_find(retriever: EmbeddedRetriever, words: tuple[str, ...], wanted: list[str]) -> None:
    assert ids(retriever, *words) == wanted


def test_search_gives_the_stored_text_untouched_and_the_fields(retriever: EmbeddedRetriever) -> None:
    found = retriever.search(Search("", Step("asked", ("hélicoïdales",)), 3, language="fr"), ANYBODY)
    (document,) = found.documents
    assert found.total == 1
    assert document.text == DOCUMENTS[0]["exactContent"]
    assert (document.field, document.title, document.url) == (
        "exactContent",
        "Guide des pompes",
        "https://host/guides/pompes.html",
    )
    assert (document.language, document.last_modified) == ("fr", "2023-05-01T10:00:00Z")
    assert document.meta == {"extension": "html", "source": "guides"}
    assert document.score > 0


@pytest.mark.parametrize(
    ("content", "chars", "wanted"),
    [
        pytest.param("preview_content", 200, "L'entretien", id="preview"),
        pytest.param(
            "highlighting",
            25,
            "L'entretien des pompes hélicoïdales <vite> & bien, à l'été.",
            id="snippet, no tags, no entities",
        ),
        pytest.param("highlighting", 0, DOCUMENTS[0]["exactContent"], id="0 is the whole field"),
    ],
)
def test_content_modes(retriever: EmbeddedRetriever, content: Any, chars: int, wanted: str) -> None:
    search = Search("", Step("asked", ("hélicoïdales",)), 3, content=content, fragment_chars=chars, language="fr")
    (document,) = retriever.search(search, ANYBODY).documents
    assert document.field == content
    assert document.text == wanted


def test_weak_hits_are_dropped_and_counted(retriever: EmbeddedRetriever) -> None:
    found = retriever.search(Search("", Step("asked", ("pompe",)), 3, min_score=1000.0), ANYBODY)
    assert (found.documents, found.total) == ((), 1)


def test_browse_answers_in_solrs_shape(retriever: EmbeddedRetriever) -> None:
    found = page(
        retriever, Browse("pompes", wants_highlighting=True, facet_fields=("source", "extension"), language="fr")
    )
    assert found["responseHeader"]["status"] == 0
    assert (found["response"]["numFound"], found["response"]["start"]) == (1, 0)
    (row,) = found["response"]["docs"]
    assert row == {
        "id": "fr",
        "title": ["Guide des pompes"],
        "url": "https://host/guides/pompes.html",
        "exactContent": [DOCUMENTS[0]["exactContent"]],
        "content_fr": [DOCUMENTS[0]["exactContent"]],
        "preview_content": ["L'entretien"],
        "last_modified": "2023-05-01T10:00:00Z",
        "extension": "html",
        "language": "fr",
        "source": ["guides"],
    }
    (snippet,) = found["highlighting"]["fr"]["content_fr"]
    assert '<span class="em">pompes</span> hélicoïdales &lt;vite&gt; &amp; bien' in snippet
    assert found["facet_counts"]["facet_fields"] == {"source": ["guides", 1], "extension": ["html", 1]}


@pytest.mark.parametrize(
    ("field", "wanted"),
    [
        ("exactContent", DOCUMENTS[0]["exactContent"]),
        ("content_fr", DOCUMENTS[0]["exactContent"]),
        ("content_en", ""),
        ("preview_content", "L'entretien"),
    ],
)
def test_fetch_gives_the_stored_text(retriever: EmbeddedRetriever, field: str, wanted: str) -> None:
    document = retriever.fetch("fr", field, ANYBODY)
    assert document is not None
    assert (document.text, document.field) == (wanted, field)


@pytest.mark.parametrize("field", ["id", "content_xx", "allow_token_document", "", "highlighting"])
def test_fetch_of_a_field_that_is_no_text_finds_nothing(retriever: EmbeddedRetriever, field: str) -> None:
    assert retriever.fetch("fr", field, ANYBODY) is None


@pytest.mark.parametrize("document_id", ["", "f", "fr*", "\ud800", "FR"])
def test_fetch_takes_an_id_as_it_is(retriever: EmbeddedRetriever, document_id: str) -> None:
    assert retriever.fetch(document_id, "exactContent", ANYBODY) is None


def test_stretches_are_found_however_deep_and_of_few_passages_of_each_hit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same work for one hit and for many, however long their texts are."""
    filler = "lorem ipsum " * 60_000
    with closing(EmbeddedWriter(tmp_path)) as writer:
        writer.add([{"id": f"{one} early", "exactContent": f"harbour {filler}", "language": "en"} for one in range(3)])
        writer.add([{"id": f"{one} late", "exactContent": f"{filler} harbour", "language": "en"} for one in range(3)])
        writer.commit()
    read: list[int] = []
    whole = IndexView.parts

    def counted(view: IndexView, keys: Any, access: Any) -> Any:
        for key, part in whole(view, keys, access):
            read.append(key)
            yield key, part

    monkeypatch.setattr(IndexView, "parts", counted)
    found = page(EmbeddedRetriever(tmp_path), Browse("harbour", rows=6, fields=("id",), wants_highlighting=True))
    assert all("harbour</span>" in marks["content_en"][0] for marks in found["highlighting"].values())
    assert len(found["highlighting"]) == 6 and len(read) <= 3 * 6
    assert [list(row) for row in found["response"]["docs"]] == [["id"]] * 6


def test_long_texts_beyond_the_room_of_a_reply_are_left_out_and_named(tmp_path: Path) -> None:
    with closing(EmbeddedWriter(tmp_path)) as writer:
        writer.add([{"id": f"{one}", "exactContent": "harbour " * 500_000, "language": "en"} for one in range(4)])
        writer.commit()
    found = page(EmbeddedRetriever(tmp_path), Browse("harbour", rows=4, fields=("id", "exactContent")))
    assert len(found["truncated"]) == 2
    assert sum("exactContent" in row for row in found["response"]["docs"]) == 2


@pytest.mark.parametrize("wants_highlighting", [False, True])
def test_others_go_on_between_two_hits_whose_texts_are_long(tmp_path: Path, wants_highlighting: bool) -> None:
    with closing(EmbeddedWriter(tmp_path)) as writer:
        writer.add([{"id": f"{one}", "exactContent": "harbour " * 20_000, "language": "en"} for one in range(4)])
        writer.add([{"id": f"{one} short", "exactContent": "harbour", "language": "en"} for one in range(4)])
        writer.commit()
    pauses: list[float] = []
    browse = Browse("harbour", rows=8, fields=("id",), wants_highlighting=wants_highlighting)
    page(EmbeddedRetriever(tmp_path, pauses.append), browse)
    assert pauses == [0] * 4
