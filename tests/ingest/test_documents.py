"""From a JSONL line or a file to a document in Solr's shape, rights first."""

from __future__ import annotations

from pathlib import Path

import pytest

from datafari_rag.core.access import ACL_FIELDS, NO_SECURITY
from datafari_rag.ingest.documents import MAX_PREVIEW_CHARS, BadDocument, Rights, from_file, from_line
from datafari_rag.ingest.parsers.parsed import MAX_TITLE_CHARS, Parsed

NOBODY_SAID = {name: [NO_SECURITY] for name in ACL_FIELDS}
LINE = {"id": "a", "content": "Where is the pump? It is in the cellar."}


@pytest.mark.parametrize(
    ("fields", "rights", "wanted"),
    [
        pytest.param({}, Rights(), {}, id="nothing said is open"),
        pytest.param({"allow_token_document": None}, Rights(), {}, id="null is nothing said"),
        pytest.param({"deny_token_share": []}, Rights(), {}, id="an empty list is nothing said"),
        pytest.param({"allow_token_share": "s1"}, Rights(), {"allow_token_share": ["s1"]}, id="one text"),
        pytest.param({"deny_token_parent": ["a", "b"]}, Rights(), {"deny_token_parent": ["a", "b"]}, id="a list"),
        pytest.param(
            {}, Rights(("x",), ("y",)), {"allow_token_document": ["x"], "deny_token_document": ["y"]}, id="asked"
        ),
        pytest.param(
            {"allow_token_document": ["own"]}, Rights(("x",)), {"allow_token_document": ["own"]}, id="its own stay"
        ),
        pytest.param(
            {"deny_token_document": ["own"]},
            Rights(("x",)),
            {"deny_token_document": ["own"]},
            id="an own denial is not opened by the command line",
        ),
        pytest.param(
            {"allow_token_share": ["own"]},
            Rights(("x",)),
            {"allow_token_share": ["own"], "allow_token_document": ["x"]},
            id="rights of another level do not count as its own",
        ),
    ],
)
def test_rights(fields: dict[str, object], rights: Rights, wanted: dict[str, list[str]]) -> None:
    document = from_line({**LINE, **fields}, rights)
    assert {name: document[name] for name in ACL_FIELDS} == {**NOBODY_SAID, **wanted}


OPEN = {"allow_token_document": [NO_SECURITY], "deny_token_document": [NO_SECURITY]}
BOUND = Rights(("x",), ("y",), is_bound=True)


@pytest.mark.parametrize(
    ("fields", "rights", "wanted"),
    [
        pytest.param({}, BOUND, {"allow_token_document": ["x"], "deny_token_document": ["y"]}, id="none of its own"),
        pytest.param(
            {"allow_token_document": ["own"]},
            BOUND,
            {"allow_token_document": ["own"], "allow_token_share": ["x"], "deny_token_share": ["y"]},
            id="its own narrow those of the run",
        ),
        pytest.param(OPEN, BOUND, {"allow_token_share": ["x"], "deny_token_share": ["y"]}, id="open for everybody"),
        pytest.param(
            {**OPEN, "allow_token_share": ["s"]},
            BOUND,
            {"allow_token_share": ["s"], "allow_token_parent": ["x"], "deny_token_parent": ["y"]},
            id="the next level is taken when one has rights",
        ),
        pytest.param(
            {**OPEN, "allow_token_share": [NO_SECURITY]},
            BOUND,
            {"allow_token_share": ["x"], "deny_token_share": ["y"]},
            id="a level open for everybody is free",
        ),
        pytest.param(
            OPEN, Rights((), ("y",), is_bound=True), {"deny_token_share": ["y"]}, id="a denial alone hides it from all"
        ),
        pytest.param(
            {"allow_token_document": ["own"]},
            Rights(is_bound=True),
            {"allow_token_document": ["own"]},
            id="a run without rights is open for everybody",
        ),
    ],
)
def test_rights_bound_to_those_of_the_run(
    fields: dict[str, object], rights: Rights, wanted: dict[str, list[str]]
) -> None:
    document = from_line({**LINE, **fields}, rights)
    assert {name: document[name] for name in ACL_FIELDS} == {**NOBODY_SAID, **wanted}


def test_rights_on_all_levels_cannot_be_bound() -> None:
    fields = {**LINE, "allow_token_share": "s", "deny_token_parent": "p", "allow_token_document": "d"}
    assert from_line(fields, Rights(("x",)))["allow_token_document"] == ["d"]
    with pytest.raises(BadDocument, match="so --allow and --deny cannot be added"):
        from_line(fields, BOUND)


@pytest.mark.parametrize("value", [7, {"a": 1}, [1], [["a"]], ["x" * 5000], ["\ud800"], True], ids=repr)
@pytest.mark.parametrize("name", ACL_FIELDS)
def test_rights_that_cannot_be_read_refuse_the_document(name: str, value: object) -> None:
    with pytest.raises(BadDocument, match=name):
        from_line({**LINE, name: value}, Rights())


def test_a_line_fills_the_fields() -> None:
    content = "Où est la pompe ? " * 60
    document = from_line({"id": "x", "content": content, "title": "T", "url": "http://h/a/b.PDF?q#f"}, Rights())
    assert document["exactContent"] == document["content_fr"] == content
    assert document["preview_content"] == content[:500]
    assert (document["language"], document["title"], document["extension"]) == ("fr", "T", "pdf")
    assert not {"content", "content_en", "last_modified", "source"} & document.keys()


@pytest.mark.parametrize(
    ("fields", "name", "wanted"),
    [
        ({"preview_content": "P"}, "preview_content", "P"),
        ({"language": "xx"}, "language", "xx"),
        ({"source": "S"}, "source", "S"),
        ({"title": ["one"]}, "title", "one"),
        ({"last_modified": "2024-01-31"}, "last_modified", "2024-01-31T00:00:00Z"),
        ({"last_modified": "2024-01-31T02:00:00.5+02:00"}, "last_modified", "2024-01-31T00:00:00Z"),
        ({"title": "a\ud800"}, "title", "a\ufffd"),
        ({"extension": "odt", "url": "http://h/x.pdf"}, "extension", "odt"),
    ],
)
def test_what_a_line_says_is_taken(fields: dict[str, object], name: str, wanted: str) -> None:
    assert from_line({**LINE, **fields}, Rights())[name] == wanted


@pytest.mark.parametrize("url", ["http://h/", "http://[bad", "http://h/a.unusual-ending", "http://h/a.b_c", ""])
def test_an_address_without_a_plain_ending_gives_no_extension(url: str) -> None:
    assert "extension" not in from_line({**LINE, "url": url}, Rights())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"id": ""}, "id"),
        ({"id": None}, "id"),
        ({"id": 5}, "id"),
        ({"id": "x" * 5000}, "id"),
        ({"content": None}, "content"),
        ({"content": ["a", "b"]}, "content"),
        ({"title": {"a": 1}}, "title"),
        ({"url": "x" * 5000}, "url"),
        ({"source": "x" * 5000}, "source"),
        ({"title": ["a", "b"]}, "title"),
        ({"last_modified": "yesterday"}, "last_modified"),
        ({"last_modified": 17}, "last_modified"),
    ],
)
def test_a_bad_line_is_told_by_its_field(fields: dict[str, object], message: str) -> None:
    with pytest.raises(BadDocument, match=message):
        from_line({**LINE, **fields}, Rights())


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (
            "item | unit | price\nCheese | piece | 4.80 | Sennerei im Tal\nBread | loaf | 5.20 | Bäckerei am Platz\n",
            "",
        ),
        ("Woche | Frühdienst | Spätdienst\nKW 26 | Mario | the first\nKW 27 | Luigi | the second\n", ""),
        ("No | Remarque\n1 | The Inn of the Lake\n2 | Ce livre est dans la salle du haut\n", "fr"),
    ],
    ids=["names in cells say nothing", "nor do names in English", "a cell that is a text does"],
)
def test_the_language_of_a_table_is_not_guessed_by_the_names_in_it(text: str, language: str) -> None:
    assert from_line({"id": "x", "content": text}, Rights()).get("language", "") == language


def test_long_titles_and_previews_are_cut() -> None:
    document = from_line({**LINE, "title": "t" * 5000, "preview_content": "p" * 50_000}, Rights())
    assert (document["title"], document["preview_content"]) == ("t" * MAX_TITLE_CHARS, "p" * MAX_PREVIEW_CHARS)


def test_an_unknown_language_fills_the_unstemmed_field_alone() -> None:
    document = from_line({"id": "x", "content": "企业搜索引擎"}, Rights())
    assert document["language"] == "zh"
    assert not [name for name in document if name.startswith("content_")]


def test_a_name_with_line_ends_is_a_title_of_one_line() -> None:
    document = from_file(Path("/a\n b.txt"), Parsed("t"), modified_s=0, source="s", rights=Rights())
    assert (document["id"], document["title"]) == ("file:///a%0A%20b.txt", "a b.txt")


def test_a_file_is_known_by_its_address() -> None:
    path = Path("/srv/my files/R\u00e9sum\u00e9.TXT")
    document = from_file(path, Parsed("The text", None), modified_s=0.9, source="my files", rights=Rights(("x",)))
    assert document["id"] == document["url"] == "file:///srv/my%20files/R%C3%A9sum%C3%A9.TXT"
    assert (document["title"], document["extension"], document["source"]) == ("Résumé.TXT", "txt", "my files")
    assert document["last_modified"] == "1970-01-01T00:00:00Z"
    assert document["allow_token_document"] == ["x"]
