"""`datafari-rag llm-service`: the "Datafari External LLM" service in the foreground."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from datafari_rag import server
from datafari_rag.core.settings.addresses import BUILTIN_MODEL

if TYPE_CHECKING:
    from datafari_rag.invoke_service import Application


@click.command("llm-service")
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
    from datafari_rag.invoke_service import serve

    try:
        serve(
            _application(options), port, host=host, on_ready=lambda bound: click.echo(f"http://{host}:{bound}/invoke")
        )
    except OSError as error:
        raise click.ClickException(f"Port {port} cannot be opened on {host}.") from error


def _application(options: Mapping[str, str]) -> Application:
    from datafari_rag.adapters.model.factory import ExtractiveModel, chain_for
    from datafari_rag.adapters.settings.snapshot import packaged_instructions
    from datafari_rag.core.settings.table import Settings
    from datafari_rag.invoke_service import ServiceDefaults, application

    settings = Settings(rag_api_endpoint=options["endpoint"], rag_api_token=options["api_token"])
    try:
        model = chain_for(settings, ExtractiveModel())
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--endpoint") from error
    return application(model, ServiceDefaults(packaged_instructions(), options["model"]), token=options["token"])
