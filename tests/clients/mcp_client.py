"""What the reference client, at two revisions of MCP, and FastMCP's see of /mcp, as JSON. Has its own environment."""

import asyncio
import json
import sys

import httpx2
from fastmcp import Client as FastClient
from fastmcp.client.transports import StreamableHttpTransport
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

url, question = sys.argv[1:]


async def told(client, *, name: str, arguments: dict) -> dict:
    result = await client.call_tool(name, arguments)
    return {
        "isError": result.is_error,
        "structured": result.structured_content,
        "text": result.content[0].text,
        "kinds": [block.type for block in result.content],
    }


async def seen_by(user: str, mode: str) -> dict:
    async with (
        httpx2.AsyncClient(headers={"X-Remote-User": user}) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        tools = await client.list_tools()
        found = await told(client, name="search", arguments={"query": question})
        progress: list[str] = []

        async def note(done: float, total: float | None, message: str | None) -> None:
            progress.append(message or "")

        answer = await client.call_tool("answer", {"question": question}, progress_callback=note)
        steps: list[str] = []

        async def step(done: float, total: float | None, message: str | None) -> None:
            steps.append(message or "")

        wanted = {"id": "py-howto-enum", "length": "short"}
        summary = await client.call_tool("summarize", wanted, progress_callback=step)
        ids = ["py-howto-enum", "nobody", "pg-acronyms"]
        compared = await client.call_tool("compare", {"ids": ids, "question": question})
        unknown = await told(client, name="fetch", arguments={"id": "py-howto-enum"})
        wrong = await told(client, name="search", arguments={"query": question, "rows": "many"})
        return {
            "version": client.protocol_version,
            "server": client.server_info.name,
            "instructions": client.instructions,
            "tools": [tool.name for tool in tools.tools],
            "prompts": len((await client.list_prompts()).prompts),
            "search": found,
            "answer": answer.structured_content,
            "links": [block.type for block in answer.content],
            "progress": progress,
            "summary": summary.structured_content,
            "steps": steps,
            "compared": compared.structured_content,
            "fetch": unknown,
            "wrong": wrong,
        }


async def seen_by_fastmcp(user: str) -> dict:
    async with FastClient(StreamableHttpTransport(url, headers={"X-Remote-User": user})) as client:
        tools = await client.list_tools()
        found = await client.call_tool("search", {"query": question})
        return {"tools": [tool.name for tool in tools], "structured": found.structured_content}


async def main() -> dict:
    asked = [(user, mode) for user in ("alice", "bob") for mode in ("auto", "legacy")]
    *both, fast = await asyncio.gather(*(seen_by(*one) for one in asked), seen_by_fastmcp("alice"))
    return {**{" ".join(one): told for one, told in zip(asked, both, strict=True)}, "fastmcp": fast}


print(json.dumps(asyncio.run(main())))  # noqa: T201
