"""`demo --model`: the model that a server lists, by name or the first."""

from __future__ import annotations

from collections.abc import Mapping

import click
import pytest

from datafari_rag.commands.demo.index import settings_of_model
from tests.settings import parsed
from tests.support.server import model_server
from tests.support.stub import raw_server

TWO: Mapping[str, object] = {"/v1/models": {"data": [{"id": "a", "max_model_len": 4096}, {"id": "b"}]}}
ONE: Mapping[str, object] = {"/v1/models": {"data": [{"id": "only"}]}}


def base(url: str) -> str:
    return url.removesuffix("/chat/completions")


def test_the_only_model_is_taken_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    with model_server(gets=ONE) as server:
        found = settings_of_model(base(server.url))
    assert found == {"rag.api.endpoint": base(server.url), "rag.model": "only", "rag.template": "openai"}
    assert f"The model is only. Passages of the documents are sent to {base(server.url)}." in capsys.readouterr().err


def test_of_several_it_is_the_first_with_its_window(capsys: pytest.CaptureFixture[str]) -> None:
    with model_server(gets=TWO) as server:
        found = settings_of_model(base(server.url))
    assert (found["rag.model"], found["llm.context.window"]) == ("a", 4096)
    assert "the first of a, b; " in capsys.readouterr().err
    settings, problems = parsed({key: str(value) for key, value in found.items()})
    assert (settings.rag.model_url, problems) == (server.url, ())


def test_one_of_several_is_chosen_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    with model_server(gets=TWO) as server:
        found = settings_of_model(f"{base(server.url)}#b")
    assert (found["rag.model"], "llm.context.window" in found) == ("b", False)
    assert "The model is b." in capsys.readouterr().err


def test_a_name_of_ollama_needs_no_tag(capsys: pytest.CaptureFixture[str]) -> None:
    listed: Mapping[str, object] = {"/v1/models": {"data": [{"id": "llama3.2:latest"}]}}
    with model_server(gets=listed) as server:
        assert settings_of_model(f"{base(server.url)}#llama3.2")["rag.model"] == "llama3.2:latest"


def test_a_server_without_a_path_is_asked_at_v1() -> None:
    with model_server(gets=ONE) as server:
        assert settings_of_model(server.url.removesuffix("/v1/chat/completions"))["rag.model"] == "only"


def test_what_is_not_there_is_said() -> None:
    with model_server(gets=TWO) as server, pytest.raises(click.ClickException, match=r"no c at .*; it has a, b"):
        settings_of_model(f"{base(server.url)}#c")
    with (
        model_server(gets={"/v1/models": {"data": []}}) as server,
        pytest.raises(click.ClickException, match="no models"),
    ):
        settings_of_model(base(server.url))
    with model_server() as server, pytest.raises(click.ClickException, match=r"Check rag\.api\.endpoint"):
        settings_of_model(base(server.url))
    with raw_server(lambda connection: None) as url, pytest.raises(click.ClickException, match="not available"):
        settings_of_model(url)


@pytest.mark.parametrize("address", ["", "127.0.0.1:11434", "ftp://a/v1", "#name"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(click.UsageError, match="http or https"):
        settings_of_model(address)
