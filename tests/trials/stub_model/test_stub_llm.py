"""The stub over the wire: whole, streamed, its faults, its memory, and a thousand simultaneous slow streams."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp

from datafari_rag_trials.stub_model.server import serve
from tests.support.waiting import HANGS_S, STEP_S

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
