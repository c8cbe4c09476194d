"""`datafari-rag stub-llm`: the stub model in the foreground."""

from __future__ import annotations

import asyncio
import signal

import click

from datafari_rag.commands.terminal import Command


@click.command("stub-llm", cls=Command)
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0: any free port.")
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--token", default="", help="Answer 401 to requests without this bearer token.")
def stub_llm(port: int, host: str, token: str) -> None:
    """
    Serve an OpenAI-compatible stub: the model's name sets its behaviour, as in words-40-gap-20ms.

    \b
    Answer            echo, cite, quote, miscite, links, followups, gullible, words-40, refusal, null, empty, tools
    Timing            first-500ms, gap-20ms, slow-headers, slow-headers-200ms, chars-3 (pieces of 3 characters)
    Failure           status-429, retry-2, times-1 (only the first), policy, window, nosuchmodel, hangup, cut-after-3,
                      stall-after-3, garbage, garbage-after-3, error-500-after-3
    Ending            length, filter, nofinish, nodone
    Format            crlf, cr, comments, norole, unchunked
    \b
    Words are joined by "-" or "+": first-500ms-words-40-gap-20ms, status-503-times-2+echo. GET /requests shows the
    requests so far, DELETE /requests deletes them. /invoke takes the name as ?model=NAME.
    \b
    Examples:
      datafari-rag stub-llm --port 8000
    """  # noqa: D301 # click reads \b
    # Imported here, as aiohttp takes a fifth of a second.
    from datafari_rag_trials.stub_model.server import serve

    async def run() -> None:
        stopped = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        runner, bound = await serve(port, host=host, token=token)
        click.echo(f"http://{host}:{bound}/v1/chat/completions")
        await stopped.wait()
        await runner.cleanup()

    try:
        asyncio.run(run())
    except OSError as error:
        raise click.ClickException(f"Port {port} cannot be opened on {host}.") from error
