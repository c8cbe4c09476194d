"""The models that /v1 lists: ours by their indexes, then those of the model's server where they may be asked for."""

from __future__ import annotations

from typing import Any

import pytest

from datafari_rag.core.errors import NoSuchModel
from datafari_rag.core.settings.records import OpenaiClient
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols.openai.renderings import OurModel, listed, model_row, our_model
from tests.settings import settings_with

SETTINGS = settings_with(openai_indexes={"default": "", "hr": "embedded:/x", "it": ""}, rag_model="gpt-x")
OURS = ["datafari", "datafari/hr", "datafari/it"]


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        pytest.param(SETTINGS, [*OURS, "gpt-x"], id="the service's model behind ours"),
        pytest.param(
            settings_with(SETTINGS, openai_models=("a", "b")), [*OURS, "a", "b"], id="those that may be asked for"
        ),
        pytest.param(
            settings_with(SETTINGS, openai_client=OpenaiClient(passthrough=False)), OURS, id="nothing is passed through"
        ),
        pytest.param(settings_with(SETTINGS, rag_api_endpoint="builtin:extractive"), OURS, id="there is no model"),
        pytest.param(settings_with(SETTINGS, rag_model=""), OURS, id="a model without a name"),
        pytest.param(settings_with(SETTINGS, openai_models=("datafari",)), OURS, id="a name that is ours too"),
        pytest.param(settings_with(rag_model=""), ["datafari"], id="one index"),
        pytest.param(
            settings_with(rag_model="", openai_client=OpenaiClient(model="wiki"), openai_indexes={"hr": "embedded:/x"}),
            ["wiki", "wiki/hr"],
            id="another name",
        ),
    ],
)
def test_they_are_listed(settings: Settings, names: list[str]) -> None:
    told: Any = listed(settings, created_s=5)
    assert [model["id"] for model in told["data"]] == names
    assert told["data"][0] == {"id": names[0], "object": "model", "created": 5, "owned_by": "datafari_rag"}
    assert (told["object"], told["indexes"]) == ("list", list(settings.openai.indexes))
    assert [model_row(name, settings, created_s=5) for name in names] == told["data"]


@pytest.mark.parametrize("name", ["nope", "datafari/nope", "datafari/", "Datafari", ""])
def test_one_that_is_not_there_is_not_found(name: str) -> None:
    with pytest.raises(NoSuchModel) as refused:
        model_row(name, SETTINGS, created_s=5)
    assert refused.value.field == "model"


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("datafari", OurModel("datafari")),
        ("datafari/hr", OurModel("datafari/hr", "hr")),
        ("datafari/default", OurModel("datafari/default", "default")),
        ("gpt-x", None),
        ("datafari-2", None),
        (None, None),
        (5, None),
    ],
)
def test_ours_are_known_by_their_names(name: object, model: OurModel | None) -> None:
    assert our_model(name, SETTINGS.openai) == model


def test_a_long_name_is_cut_in_the_error() -> None:
    with pytest.raises(NoSuchModel) as refused:
        our_model("datafari/" + "x" * 5000, SETTINGS.openai)
    assert len(refused.value.reason) < 200
