"""The limit that Python sets: a relay in ten lines of aiohttp that neither searches, nor reads, nor checks anything."""

from __future__ import annotations

import os
import sys

from aiohttp import ClientSession, ClientTimeout, TCPConnector, web

PORT, MODEL = int(sys.argv[1]), sys.argv[2]


async def relay(request: web.Request) -> web.StreamResponse:
    """Hand the body on, and the model's bytes back as they come, parsed and written once as any service must."""
    async with request.app["session"].post(MODEL, data=await request.read()) as reply:
        if not reply.content_type.startswith("text/event-stream"):
            return web.Response(body=await reply.read(), content_type="application/json")
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        async for line in reply.content:
            if line.startswith(b"data: {"):
                await response.write(b"data: " + dumps(loads(line[6:])) + b"\n\n")
        await response.write(b"data: [DONE]\n\n")
        return response


async def opened(app: web.Application) -> None:
    """Open the pool, without a bound on its size."""
    app["session"] = ClientSession(connector=TCPConnector(limit=0), timeout=ClientTimeout(total=None))


if __name__ == "__main__":
    try:
        from orjson import dumps, loads
    except ImportError:
        import json

        loads = json.loads

        def dumps(value: object) -> bytes:
            """Return JSON as bytes."""
            return json.dumps(value).encode()

    try:
        import uvloop

        uvloop.install()
    except ImportError:
        print("relay: without uvloop", file=sys.stderr)
    os.fork()  # two workers, as the service has; both listen on the port
    app = web.Application()
    app.on_startup.append(opened)
    app.router.add_post("/v1/chat/completions", relay)
    web.run_app(app, host="127.0.0.1", port=PORT, reuse_port=True, backlog=4096, print=None, access_log=None)
