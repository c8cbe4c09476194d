"""The `openai` package and langchain-openai against `/v1`, with and without documents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from openai import APIStatusError, BadRequestError, NotFoundError, OpenAI

from tests.clients.conftest import Saw, Script
from tests.end_to_end.processes import Running

pytestmark = pytest.mark.clients

QUESTION = "How do I copy a file in Python?"
INDEX = {"index_name": "default"}
ASKED: Any = [{"role": "user", "content": QUESTION}]


@pytest.fixture(scope="module")
def client(good: Running) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{good.url}/v1", api_key="unused", max_retries=0, timeout=60) as made:
        yield made


def test_models_and_indexes_are_listed(client: OpenAI) -> None:
    listed = client.models.list()
    assert [model.id for model in listed.data] == ["datafari", "cite"]
    assert client.models.retrieve("datafari").owned_by == "datafari_rag"
    assert listed.model_extra == {"indexes": ["default"]}


def test_an_answer_with_documents(client: OpenAI, saw: Saw) -> None:
    told = client.chat.completions.create(model="cite", messages=ASKED, extra_body=INDEX, temperature=0)
    extra: Any = told.model_extra
    saw(told.choices[0].message.content, [node["node_id"] for node in extra["source_nodes"]])
    assert told.choices[0].finish_reason == "stop"
    assert told.choices[0].message.content
    assert set(extra["source_nodes"][0]) == {"doc_id", "node_id", "text", "score", "metadata"}
    assert extra["citations"][0]["label"]
    assert told.usage is not None and told.usage.total_tokens > 0


def test_the_stream_is_the_same_answer_in_pieces(client: OpenAI, saw: Saw) -> None:
    whole: Any = client.chat.completions.create(model="cite", messages=ASKED, extra_body=INDEX)
    chunks: list[Any] = list(
        client.chat.completions.create(
            model="cite", messages=ASKED, extra_body=INDEX, stream=True, stream_options={"include_usage": True}
        )
    )
    *spoken, usage = chunks
    assert [chunk.choices[0].delta.model_extra for chunk in spoken[-2:]] == [
        {"annotations": whole.choices[0].message.model_dump(exclude_unset=True)["annotations"]},
        {},
    ]
    text = "".join(chunk.choices[0].delta.content or "" for chunk in spoken)
    saw(len(chunks), "chunks:", text)
    assert text == whole.choices[0].message.content
    assert spoken[-1].choices[0].finish_reason == "stop"
    assert spoken[-1].model_extra["source_nodes"] == whole.model_extra["source_nodes"]
    assert spoken[-1].model_extra["citations"] == whole.model_extra["citations"]
    assert usage.choices == [] and usage.usage.total_tokens > 0


def test_without_an_index_the_model_answers_itself(client: OpenAI) -> None:
    told = client.chat.completions.create(model="echo", messages=[{"role": "user", "content": "only this"}])
    extra: Any = told.model_extra
    assert "only this" in (told.choices[0].message.content or "")
    assert extra["source_nodes"] is None


def test_a_passed_stream_ends_as_openais(client: OpenAI) -> None:
    chunks = list(client.chat.completions.create(model="echo", messages=ASKED, stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert [c.model_extra for c in chunks if c.choices and c.choices[0].finish_reason] == [{"source_nodes": None}]


def test_an_unknown_index_is_its_not_found_error(client: OpenAI) -> None:
    with pytest.raises(NotFoundError, match=r"No such index: 'X' exists.") as refused:
        client.chat.completions.create(model="cite", messages=ASKED, extra_body={"index_name": "X"})
    assert (refused.value.param, refused.value.code) == ("index_name", "notFound")


def test_a_missing_prompt_is_its_bad_request_error(client: OpenAI) -> None:
    asked: Any = [*ASKED, {"role": "assistant", "content": "So."}]
    with pytest.raises(BadRequestError, match=r"There must be a user prompt since the latest assistant message."):
        client.chat.completions.create(model="cite", messages=asked, extra_body=INDEX)


@pytest.mark.parametrize("more", [{}, INDEX], ids=["passed through", "with documents"])
@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize(
    ("model", "kind", "code"),
    [
        ("nosuchmodel", NotFoundError, "model_not_found"),
        ("window", BadRequestError, "context_length_exceeded"),
    ],
)
def test_what_the_model_refuses_is_the_callers_error_with_its_code(
    client: OpenAI, model: str, kind: type[APIStatusError], code: str, is_streamed: bool, more: Any
) -> None:
    with pytest.raises(kind) as refused:
        client.chat.completions.create(model=model, messages=ASKED, stream=is_streamed, extra_body=more)
    assert refused.value.code == code


# A model of this service: only the name is needed.


def test_our_model_answers_from_documents_whole_and_streamed(client: OpenAI, saw: Saw) -> None:
    whole: Any = client.chat.completions.create(model="datafari", messages=ASKED)
    with client.chat.completions.stream(model="datafari", messages=ASKED) as stream:
        last: Any = stream.until_done().get_final_completion()
    message = whole.choices[0].message
    assert message.annotations == last.choices[0].message.annotations
    assert message.content == last.choices[0].message.content
    (cited,) = message.annotations
    saw(cited.url_citation.url)
    assert message.content[cited.url_citation.start_index : cited.url_citation.end_index] == "[1]"
    assert whole.model == last.model == "datafari"
    assert whole.model_extra["citations"][0]["label"] == cited.url_citation.title


def test_responses_are_the_same_answer(client: OpenAI) -> None:
    whole: Any = client.chat.completions.create(model="datafari", messages=ASKED)
    response: Any = client.responses.create(model="datafari", input=QUESTION, include=["file_search_call.results"])
    with client.responses.stream(model="datafari", input=QUESTION) as stream:
        kinds = {event.type for event in stream}
        last: Any = stream.get_final_response()
    search, message = response.output
    assert len(kinds) == 10
    assert response.output_text == last.output_text == whole.choices[0].message.content
    assert message.content[0].annotations == last.output[0].content[0].annotations
    documents = dict.fromkeys(node["doc_id"] for node in whole.model_extra["source_nodes"])
    assert [result.file_id for result in search.results] == list(documents)
    assert {cited["label"] for cited in whole.model_extra["citations"]} <= {one.filename for one in search.results}
    assert response.usage.total_tokens == whole.usage.total_tokens


def test_a_stored_response_is_followed_up(client: OpenAI) -> None:
    first = client.responses.create(model="datafari", input=QUESTION, store=True)
    second = client.responses.create(model="datafari", input="And how on Windows?", previous_response_id=first.id)
    assert second.previous_response_id == first.id and second.status == "completed"
    with pytest.raises(BadRequestError) as refused:
        client.responses.create(model="datafari", input="x", previous_response_id=first.id[:-1])
    assert refused.value.param == "previous_response_id"


@pytest.mark.slow
def test_clients_from_npm_see_the_same(good: Running, node: Script, saw: Saw) -> None:
    told = node("v1_client.mjs", good.url, QUESTION)
    saw(told["models"], told["errors"], told["compatible"]["finish"])
    text, (cited,) = told["chat"]["content"], told["chat"]["annotations"]
    assert told["chatStreamed"]["content"] == text and told["chatStreamed"]["annotations"] == [cited]
    assert told["response"] == told["responseStreamed"]
    assert told["response"]["text"] == text and len(told["events"]) == 10
    for name in ("compatible", "open"):
        assert (told[name]["text"], told[name]["streamed"], told[name]["errors"]) == (text, text, 0)
        assert told[name]["finish"] == ["stop", "stop"]
    wanted = {key: value for key, value in cited["url_citation"].items() if not key.startswith("x_")}
    assert [one["datafari"]["annotations"] for one in told["open"]["metadata"]] == [
        [{"type": "url_citation", **wanted}]
    ] * 2
    assert [(one["name"], one["code"]) for one in told["errors"]] == [
        ("NotFoundError", "model_not_found"),
        ("BadRequestError", "badRequest"),
    ]


def test_a_busy_model_is_a_status_of_its_own(client: OpenAI) -> None:
    with pytest.raises(APIStatusError) as refused:
        client.chat.completions.create(model="status-429-retry-7", messages=ASKED, extra_body=INDEX)
    assert refused.value.status_code == 503
    assert refused.value.response.headers["retry-after"] == "7"


def test_a_stream_that_breaks_is_its_api_error(client: OpenAI) -> None:
    from openai import APIError

    text = ""
    with pytest.raises(APIError, match="not available"):
        for chunk in client.chat.completions.create(
            model="cite-cut-after-5", messages=ASKED, extra_body=INDEX, stream=True
        ):
            text += chunk.choices[0].delta.content or ""
    assert text


@pytest.mark.slow
def test_langchain_reads_whole_and_stream(good: Running, langchain: Script, saw: Saw) -> None:
    told = langchain(good.url, QUESTION)
    saw(told)
    assert told["whole"] == told["streamed"]
    assert told["pieces"] > 3
