"""What holds for every template of the table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datafari_rag.core.documents import Document, Extract
from datafari_rag.core.errors import ModelUnavailable
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.model.replies import ReplyChunk, ReplyTotals
from datafari_rag.core.model.streams import ServerSentEvents
from datafari_rag.llm_templates import TEMPLATES, Template, openai
from tests.hostile_texts import ATTACKS

STREAMS = Path(__file__).parent.parent / "data" / "model_streams"
NONCE = "k3j9x2m5q8w1z7"

keys = st.sampled_from(
    [
        "choices",
        "message",
        "delta",
        "content",
        "error",
        "code",
        "type",
        "output",
        "metadata",
        "usage",
        "finish_reason",
        "index",
        "text",
        "refusal",
        "tool_calls",
        "innererror",
        "model",
        "id",
    ]
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


# Another thread of the suite may draw from `random` meanwhile; these strategies do not.
@pytest.mark.filterwarnings("ignore:Do not use the .random. module")
@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES.keys())
@given(reply=st.dictionaries(keys, json_values, max_size=5))
def test_no_reply_is_an_exception(template: Template, reply: dict[str, object]) -> None:
    for read in (template.answer, template.delta):
        assert isinstance(read(reply), ReplyChunk)


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES.keys())
def test_attacks_in_titles_and_texts_change_nothing_of_the_bodys_form(template: Template) -> None:
    plain = _shape(template.body(_prompt("plain", "plain"), False))
    for attack in ATTACKS:
        text = attack["text"]
        body = template.body(_prompt(text, text[:60]), False)
        assert _shape(body) == plain
        assert json.dumps(body).count(NONCE) == 2


@pytest.mark.parametrize(
    ("name", "text", "model"),
    [
        ("seed-001", "Answerhere", "gpt-4"),
        ("azure-filters-and-usage", "Le déjeuner 🥐", "gpt-4o-2024-08-06"),
        ("crlf-comments-utf8", "Le déjeuner 🥐", "gpt-4o-2024-08-06"),
        ("litellm-mock", "The plane to Nice takes off at 15:50 – déjà vu 🙂.", "good"),
    ],
)
def test_recorded_streams_are_told_to_their_end(name: str, text: str, model: str) -> None:
    decoder, tally, told = ServerSentEvents(), ReplyTotals(""), ""
    data = (STREAMS / f"{name}.sse").read_bytes()
    for event in (event for at in range(len(data)) for event in decoder.feed(data[at : at + 1])):
        if event != "[DONE]":
            said = openai.delta(json.loads(event))
            tally.add(said)
            told += said.text
    assert (told, tally.finish_reason, tally.failure(), tally.facts.name) == (text, "stop", None, model)


def test_a_cut_that_litellm_recorded_is_a_failure_after_its_words() -> None:
    events = ServerSentEvents().feed((STREAMS / "litellm-cut-behind-it.sse").read_bytes())
    said = [openai.delta(json.loads(event)) for event in events]
    assert "".join(one.text for one in said) == "word1 word2 word3 word4 "
    assert isinstance(said[-1].failure, ModelUnavailable)
    assert "litellm" not in said[-1].failure.log + said[-1].failure.reason


def test_azures_filters_and_usage_are_kept_word_for_word() -> None:
    decoder, tally = ServerSentEvents(), ReplyTotals("")
    for event in decoder.feed((STREAMS / "azure-filters-and-usage.sse").read_bytes())[:-1]:
        tally.add(openai.delta(json.loads(event)))
    assert tally.facts.extras["usage"] == {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}
    assert tally.facts.extras["system_fingerprint"] == "fp_1"
    assert tally.facts.extras["prompt_filter_results"]
    assert "content_filter_results" in tally.facts.extras


def _prompt(text: str, label: str) -> Prompt:
    extract = Extract(1, label, Document(id="d", text=text), (), text)
    return Prompt(question="q", extracts=(extract,), instructions="i", nonce=NONCE, model="m")


def _shape(value: object) -> object:
    if isinstance(value, dict):
        return {key: _shape(inner) for key, inner in value.items()}
    return [_shape(inner) for inner in value] if isinstance(value, list) else type(value)
