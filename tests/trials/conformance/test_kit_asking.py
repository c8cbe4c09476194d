"""The kit against services that lie: what cannot be tested fails, and what is empty passes no row."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from datafari_rag_trials.conformance.command import KitTarget, NothingAnswers, conformance, kit_of, outcomes
from tests.loopback import Asked, Reply, serving

KIT = kit_of(1)
JSON = (("Content-Type", "application/json"),)


def empty_model(asked: Asked) -> Reply:
    return Reply(b'{"requests": []}', headers=JSON)


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(Reply(b"{}", headers=JSON), id="an empty object"),
        pytest.param(Reply(b"{}", 500, headers=JSON), id="a failure"),
        pytest.param(Reply(b"<html></html>", headers=(("Content-Type", "text/html"),)), id="a page"),
        pytest.param(Reply(b"{}\n", headers=(("Content-Type", "application/x-ndjson"),)), id="an empty stream"),
    ],
)
def test_an_empty_reply_passes_no_row(reply: Reply) -> None:
    rows = KIT.rows[::3]
    with serving(lambda _: reply) as liar, serving(empty_model) as model:
        place = KitTarget(liar.url, model.url, liar.url)
        passed = [one.row.id for one in outcomes(KIT, rows, place, variables={}) if one.problem is None]
    assert passed == []


def test_what_cannot_be_tested_fails_and_says_what_is_missing() -> None:
    rows = [row for row in KIT.rows if {"model", "invoke"} & set(row.needs)]
    with serving(lambda _: Reply(b"{}", headers=JSON)) as liar:
        found = list(outcomes(KIT, rows, KitTarget(liar.url), variables={}))
    assert len(found) == len(rows) > 50
    assert all((one.problem or "").startswith("cannot be tested without --") for one in found)


def test_a_service_that_is_not_there_is_one_error_and_not_hundreds_of_rows() -> None:
    with pytest.raises(NothingAnswers):
        next(outcomes(KIT, KIT.rows, KitTarget("http://127.0.0.1:9"), variables={}))


def test_a_user_a_form_and_a_file_are_sent_as_such() -> None:
    rows = [row for row in KIT.rows if row.id in ("service-001", "ragapi-004", "api-004")]
    with serving(lambda _: Reply(b"{}", headers=JSON)) as liar:
        list(outcomes(KIT, rows, KitTarget(liar.url, user_header="X-Who"), variables={"question": "Where?"}))
    asked = {one.path: one for one in liar.asked if one.path != "/health/live"}
    assert asked["/api/chat"].headers["Content-Type"].startswith("multipart/form-data; boundary=")
    assert any(one.headers.get("X-Who") == "alice" for one in liar.asked)
    assert any(one.body == b"action=rag&q=Where%3F" for one in liar.asked)


def test_the_command_prints_each_failure_and_a_table_and_exits_with_1() -> None:
    with serving(lambda _: Reply(b"{}", headers=JSON)) as liar:
        run = CliRunner().invoke(conformance, [f"{liar.url}/", "--protocol", "ai chat"])
    assert run.exit_code == 1
    assert "POST /api/chat answers message, context and sessionState." in run.output
    assert "Rows by protocol" in run.output and "AI Chat Protocol" in run.output


def test_the_command_prints_json_for_programs() -> None:
    (row,) = (one.id for one in KIT.rows if one.says == "The service says that it lives.")
    with serving(lambda _: Reply(b'{"status":"ok"}', headers=JSON)) as liar:
        run = CliRunner().invoke(conformance, [liar.url, "--protocol", row, "--json", "--version", "1"])
    told = json.loads(run.output)
    assert (run.exit_code, told["version"], told["passed"], told["failed"]) == (0, 1, 1, 0)
    assert told["rows"][0]["id"] == row


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["http://127.0.0.1:9", "--protocol", "gopher"], "Unknown protocol. Known protocols: Datafari RagAPI"),
        (["http://127.0.0.1:9", "--version", "99"], "Known are 1."),
        (["http://127.0.0.1:9", "--set", "question"], "NAME=VALUE is expected."),
        (["http://127.0.0.1:9"], "Nothing answers at http://127.0.0.1:9."),
    ],
)
def test_wrong_usage_is_told_in_one_line(arguments: list[str], said: str) -> None:
    run = CliRunner().invoke(conformance, arguments)
    assert run.exit_code in (1, 2)
    assert said in run.output
