"""What LangChain's agents get from /mcp; prints one JSON object. Runs in an environment of its own."""

import asyncio
import json
import sys

from langchain_mcp_adapters.client import MultiServerMCPClient

url, question = sys.argv[1:]


async def main() -> dict:
    connection = {"transport": "streamable_http", "url": url, "headers": {"X-Remote-User": "alice"}}
    tools = {tool.name: tool for tool in await MultiServerMCPClient({"documents": connection}).get_tools()}
    content, artifact = await tools["search"].coroutine(query=question, runtime=None)
    return {"tools": sorted(tools), "content": content, "structured": artifact["structured_content"]}


print(json.dumps(asyncio.run(main())))  # noqa: T201
