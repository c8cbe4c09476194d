"""`datafari-rag serve` and `llm-service`: the production server, and the `/invoke` service of Datafari."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import click

from datafari_rag import server
from datafari_rag.commands.terminal import CONF, Command
from datafari_rag.core.settings.addresses import BUILTIN_MODEL


@click.command(cls=Command)
@CONF
@click.option("--host", help="Address to listen on instead of server.host.")
@click.option("--port", type=click.IntRange(0, 65_535), help="Port to listen on instead of server.port.")
@click.option("--workers", type=click.IntRange(1, 1024), help="Number of worker processes instead of server.workers.")
def serve(conf: Path, host: str | None, port: int | None, workers: int | None) -> None:
    """
    Serve the settings of a rag.properties until SIGTERM.

    \b
    Examples:
      datafari-rag serve --conf conf/rag.properties
      datafari-rag serve --conf conf/rag.properties --host 0.0.0.0 --port 8080 --workers 4
    """  # noqa: D301 # click reads \b
    server.prepare()
    start(conf, {"server.host": host, "server.port": port, "server.workers": workers})


def start(conf: Path, options: Mapping[str, str | int | None], on_ready: Callable[[], None] | None = None) -> None:
    """
    Check the settings and serve them; *options* (key → value) win over the file.

    *on_ready* is called when the port is open.

    Raises:
        StartRefused: the settings cannot be served; the lines say why.
        ClickException: the port cannot be opened.
    """
    from datafari_rag.adapters.observability.logs import configure
    from datafari_rag.adapters.settings.file import SettingsFile, snapshot_of
    from datafari_rag.web.ops.request_context import request_id

    overrides = {key: str(value) for key, value in options.items() if value is not None}
    # Without a word in the log: each worker says what it reads.
    snapshot = snapshot_of(conf, environ=os.environ, overrides=overrides)
    snapshot.require()
    settings = snapshot.settings
    # One secret for all workers, made before the fork: each worker accepts forms from the others.
    overrides.setdefault("server.secret", settings.server.secret or secrets.token_urlsafe(32))
    configure(settings.log, request_id)
    listening = server.ListenOptions(
        host=settings.server.host,
        port=settings.server.port,
        workers=settings.server.workers or os.cpu_count() or 1,
        grace_s=settings.server.limits.grace_s,
        header_timeout_s=settings.server.limits.header_s,
        max_connections=settings.server.limits.connections,
    )
    where = f"http://{listening.host}:{listening.port}"
    announce = on_ready or (lambda: click.echo(f"Serving on {where} with {listening.workers} workers.", err=True))
    with server.counting():
        # Imported before the fork, so that the workers share its memory, and after `counting`, which it needs.
        from datafari_rag.bootstrap import Application

        try:
            server.run(lambda: Application(SettingsFile(conf, overrides=overrides)), listening, announce)
        except server.CannotListen as refused:
            raise click.ClickException(str(refused)) from refused


@click.command("llm-service", cls=Command)
@click.option("--port", type=click.IntRange(0, 65535), default=8888, show_default=True, help="0: any free port.")
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--endpoint", default=BUILTIN_MODEL, show_default=True, help="Or the URL of an OpenAI-compatible server.")
@click.option("--model", default="", help="Model to use when a request names none.")
@click.option("--api-token", default="", envvar="LLM_API_TOKEN", help="Key for the endpoint; or LLM_API_TOKEN.")
@click.option("--token", default="", envvar="LLM_SERVICE_TOKEN", help="Answer 401 to requests without this token.")
def llm_service(port: int, host: str, **options: str) -> None:
    """
    Serve POST /invoke for rag.template=datafari, with sentences from the documents or with a model.

    \b
    Examples:
      datafari-rag llm-service
      datafari-rag llm-service --port 8888 --endpoint http://127.0.0.1:8000/v1/chat/completions --model echo
    """  # noqa: D301 # click reads \b
    server.prepare()
    from datafari_rag.adapters.model.chain import ExtractiveModel, chain_for
    from datafari_rag.adapters.settings.file import packaged_instructions
    from datafari_rag.core.settings.addresses import PLAIN_TLS
    from datafari_rag.core.settings.table import LlmSettings, RagSettings
    from datafari_rag.invoke_service import application, prompt_of, serve

    try:
        rag = RagSettings(api_endpoint=options["endpoint"], api_token=options["api_token"])
        model = chain_for(rag, LlmSettings(), PLAIN_TLS, ExtractiveModel())
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--endpoint") from error
    prompt_for = partial(prompt_of, packaged_instructions(), options["model"])
    service = application(model, prompt_for, token=options["token"])
    try:
        serve(service, port, host=host, on_ready=lambda bound: click.echo(f"http://{host}:{bound}/invoke"))
    except OSError as error:
        raise click.ClickException(f"Port {port} cannot be opened on {host}.") from error
