"""The table: complete, consistent, and silent about secrets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec import structs

import datafari_rag
from datafari_rag.core.settings.checks import Row
from datafari_rag.core.settings.reference import title_of
from datafari_rag.core.settings.table import (
    ANSWER_GROUPS,
    BY_KEY,
    ROWS,
    Settings,
    fields_of,
    secrets_of,
    without_password,
)
from tests.settings import settings_with

VALUES, LINES = 90, 1_619

one_by_one = pytest.mark.parametrize("row", ROWS, ids=[row.key for row in ROWS])


@one_by_one
def test_a_row_is_a_field_with_help(row: Row) -> None:
    assert row.group in {field.name for field in structs.fields(Settings)}
    assert row.help.endswith((".", "…")) and len(row.help) > 20
    assert title_of(row.group)


@one_by_one
def test_the_default_of_a_row_passes_its_own_check(row: Row) -> None:
    assert row.value_in(Settings()) == row.default
    assert row.read(row.default_text) == row.default


def test_a_value_is_put_into_its_group_and_no_other() -> None:
    row = BY_KEY.get("rag.maxFiles")
    assert row is not None
    settings = row.put_into(Settings(), 7)
    assert (settings.rag.max_files, row.value_in(settings)) == (7, 7)
    assert structs.replace(settings, rag=Settings().rag) == Settings()


def test_no_key_and_no_field_is_there_twice() -> None:
    assert len({row.key for row in ROWS}) == len({row.path for row in ROWS}) == len(ROWS)


def test_every_answer_group_is_in_use() -> None:
    assert {row.group for row in ROWS} >= ANSWER_GROUPS


def test_everything_that_looks_like_a_secret_is_one() -> None:
    suspects = {
        row.key
        for row in ROWS
        if re.search(
            r"(?:^|\.)(secret|password|audit\.key|(api|embeddings|rerank|judge)\.token|fallback\.tokens|proxy|api\.keys)$",
            row.key,
        )
    }
    assert suspects == {row.key for row in ROWS if row.check.is_secret}


def test_the_repr_of_settings_shows_no_value() -> None:
    settings = settings_with(rag_model="mine", rag_api_token="sk-1", solr_url="http://bob:pw@h/solr/c")
    assert (repr(settings), repr(settings.rag)) == ("Settings(…)", "RagSettings(…)")


def test_mapped_fields_reach_the_schema() -> None:
    fields = fields_of({"exactContent": "body", "allow_token_share": "acl", "content_prefix": "t_"})
    assert (fields.exact_content, fields.content_prefix, fields.title) == ("body", "t_", "title")
    assert fields.acl == {"allow_token_share": "acl"}


def test_a_password_in_an_address_is_hidden() -> None:
    assert without_password("http://a:b@h/x https://c@d/") == "http://***@h/x https://***@d/"


def test_the_values_of_all_secrets_are_found_one_by_one() -> None:
    settings = settings_with(rag_api_token="a", llm_fallback_tokens=("b", "", "c"))
    assert secrets_of(settings) == ("a", "b", "c")
    assert secrets_of(Settings()) == ()


def test_there_are_few_values_and_few_lines_for_them() -> None:
    root = Path(datafari_rag.__file__).parent
    rooms = [*(root / "core" / "settings").glob("*.py"), root / "adapters" / "settings" / "file.py"]
    assert len(ROWS) <= VALUES
    assert sum(path.read_text("utf-8").count("\n") for path in rooms) <= LINES
