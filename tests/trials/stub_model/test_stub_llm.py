"""The stub over the wire: whole, streamed, its faults, its memory, and a thousand simultaneous slow streams."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest

from datafari_rag_trials.stub_model.behaviour import EXAMPLES
from datafari_rag_trials.stub_model.server import MOST_KEPT, serve
from tests.waiting import HANGS_S, STEP_S

Talk = Callable[[aiohttp.ClientSession, str], Awaitable[None]]


def talking(talk: Talk, token: str = "") -> None:
    """Run *talk* against a stub in the same loop."""

    async def run() -> None:
        runner, port = await serve(0, token=token)
        connector = aiohttp.TCPConnector(limit=0)
        try:
            async with aiohttp.ClientSession(connector=connector) as session:
                await talk(session, f"http://127.0.0.1:{port}")
        finally:
            await runner.cleanup()

    asyncio.run(run())


def body(model: str, *, stream: bool = False, **more: object) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": "a b c"}], "stream": stream, **more}


def test_a_whole_answer_has_openais_shape() -> None:
    async def talk(session: aiohttp.ClientSession, base: str) -> None:
        async with session.post(f"{base}/v1/chat/completions", json=body("echo")) as reply:
            assert await reply.json() == {
                "id": "chatcmpl-stub",
                "object": "chat.completion",
                "created": 1_700_000_000,
                "model": "echo",
                "system_fingerprint": "fp_stub",
                "choices": [
                    {
                        "index": 0,
                        "message": {"role": "assistant", "content": "a b c", "refusal": None},
                        "logprobs": None,
                        "finish_reason": "stop",
                    }
                ],
                "usage": {"prompt_tokens": 3, "completion_tokens": 3, "total_tokens": 6},
            }

    talking(talk)


def test_a_stream_has_role_pieces_finish_usage_and_done() -> None:
    async def talk(session: aiohttp.ClientSession, base: str) -> None:
        asked = body("echo", stream=True, stream_options={"include_usage": True})
        async with session.post(f"{base}/v1/chat/completions", json=asked) as reply:
            assert reply.content_type == "text/event-stream"
            events = (await reply.text()).split("\n\n")
        assert events[-2:] == ["data: [DONE]", ""]
        chunks = [json.loads(event.removeprefix("data: ")) for event in events[:-2]]
        assert [chunk["choices"][0]["delta"] for chunk in chunks[:-1]] == [
            {"role": "assistant", "content": ""},
            {"content": "a "},
            {"content": "b "},
            {"content": "c"},
            {},
        ]
        assert chunks[-2]["choices"][0]["finish_reason"] == "stop"
        assert (chunks[-1]["choices"], chunks[-1]["usage"]["total_tokens"]) == ([], 6)

    talking(talk)


def test_a_status_may_last_for_its_first_times_only() -> None:
    async def talk(session: aiohttp.ClientSession, base: str) -> None:
        seen = []
        for _ in range(4):
            async with session.post(f"{base}/v1/chat/completions", json=body("status-503-times-2-retry-7")) as reply:
                seen.append((reply.status, reply.headers.get("Retry-After")))
        assert seen == [(503, "7"), (503, "7"), (200, None), (200, None)]

    talking(talk)


@pytest.mark.parametrize("sent", [b"no json", b"[]", b"{}", b'{"messages": 1}'])
def test_a_body_it_cannot_read_is_a_400(sent: bytes) -> None:
    async def talk(session: aiohttp.ClientSession, base: str) -> None:
        for path in ("/v1/chat/completions", "/invoke"):
            async with session.post(f"{base}{path}", data=sent) as reply:
                assert reply.status == 400
                assert "error" in await reply.json()

    talking(talk)


def test_a_token_is_asked_for_when_it_is_set() -> None:
    async def talk(session: aiohttp.ClientSession, base: str) -> None:
        for headers, status in (({}, 401), ({"Authorization": "Bearer x"}, 401), ({"Authorization": "Bearer t"}, 200)):
            async with session.post(f"{base}/v1/chat/completions", json=body("echo"), headers=headers) as reply:
                assert reply.status == status

    talking(talk, token="t")


def test_invoke_answers_from_its_context() -> None:
    async def talk(session: aiohttp.ClientSession, base: str) -> None:
        given = {"context": "Be brief.\nDocument 1. Paris is nice. Yes.", "question": "Which?", "temperature": "0.4"}
        for model, output in (("cite", "Paris is nice. [1]"), ("echo", "Which?"), ("null", "")):
            async with session.post(f"{base}/invoke?model={model}", json={"input": given}) as reply:
                assert (await reply.json())["output"] == output
        async with session.post(f"{base}/invoke", json={"input": {**given, "model": "error-after-0"}}) as reply:
            assert (await reply.json())["error"]
        async with session.post(f"{base}/invoke?model=status-500", json={"input": given}) as reply:
            assert reply.status == 500

    talking(talk)


def test_it_lists_names_that_show_what_it_can_do() -> None:
    async def talk(session: aiohttp.ClientSession, base: str) -> None:
        async with session.get(f"{base}/v1/models") as reply:
            listed = await reply.json()
        assert listed["object"] == "list"
        assert [model["id"] for model in listed["data"]] == list(EXAMPLES)
        async with session.get(f"{base}/health") as reply:
            assert reply.status == 200

    talking(talk)


async def states_become(session: aiohttp.ClientSession, base: str, wanted: list[str]) -> None:
    """Return when the requests that the stub remembers are in the states *wanted*."""
    async with asyncio.timeout(HANGS_S):
        while True:
            async with session.get(f"{base}/requests") as reply:
                if [kept["state"] for kept in (await reply.json())["requests"]] == wanted:
                    return
            await asyncio.sleep(STEP_S)


def test_it_remembers_requests_and_who_left_and_forgets_on_request() -> None:
    async def talk(session: aiohttp.ClientSession, base: str) -> None:
        async with session.post(f"{base}/v1/chat/completions", json=body("echo"), headers={"X-A": "1"}) as reply:
            await reply.read()
        async with session.post(f"{base}/v1/chat/completions", json=body("words-99-gap-50ms", stream=True)) as reply:
            await reply.content.readany()
            reply.close()
        await states_become(session, base, ["done", "left"])
        async with session.get(f"{base}/requests") as reply:
            kept = await reply.json()
        first, second = kept["requests"]
        assert (kept["count"], first["state"], second["state"]) == (2, "done", "left")
        assert (first["path"], first["headers"]["x-a"], first["body"]) == ("/v1/chat/completions", "1", body("echo"))
        async with session.delete(f"{base}/requests") as reply:
            assert (await reply.json()) == {"count": 2, "requests": []}

    talking(talk)


def test_its_memory_is_bounded() -> None:
    async def talk(session: aiohttp.ClientSession, base: str) -> None:
        for _ in range(MOST_KEPT + 5):
            async with session.post(f"{base}/invoke", json={"input": {}}) as reply:
                await reply.read()
        async with session.get(f"{base}/requests") as reply:
            kept = await reply.json()
        assert (kept["count"], len(kept["requests"])) == (MOST_KEPT + 5, MOST_KEPT)

    talking(talk)


def test_it_keeps_a_thousand_streams_open_at_once_and_learns_at_once_that_they_left() -> None:
    many = 1000

    async def talk(session: aiohttp.ClientSession, base: str) -> None:
        async def begin() -> aiohttp.ClientResponse:
            asked = body("stall-after-1-words-5", stream=True)
            reply = await session.post(f"{base}/v1/chat/completions", json=asked)
            while b"word1" not in await reply.content.readany():
                pass
            return reply

        replies = await asyncio.wait_for(asyncio.gather(*(begin() for _ in range(many))), HANGS_S)
        await states_become(session, base, ["open"] * many)
        for reply in replies:
            reply.close()
        await states_become(session, base, ["left"] * many)

    talking(talk)


def test_slow_streams_run_side_by_side() -> None:
    """One after the other these would take more than a minute and a half."""

    async def talk(session: aiohttp.ClientSession, base: str) -> None:
        async def one() -> str:
            asked = body("words-5-gap-100ms", stream=True)
            async with session.post(f"{base}/v1/chat/completions", json=asked) as reply:
                return await reply.text()

        answers = await asyncio.wait_for(asyncio.gather(*(one() for _ in range(200))), 60)
        assert {answer.count('"content": "word') for answer in answers} == {5}

    talking(talk)
