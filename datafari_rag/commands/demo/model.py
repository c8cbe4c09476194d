"""The model of `datafari-rag demo --model`: which one of those that a server lists."""

from __future__ import annotations

import click

from datafari_rag.adapters.model.connection import Endpoint, ServerListing
from datafari_rag.core.errors import ModelError
from datafari_rag.core.model.refusals import advice_for
from datafari_rag.core.model.servers import completed, named_in


def settings_of_model(address: str) -> dict[str, str | int | None]:
    """
    Return the settings for the model at *address*: URL, or URL#NAME for one of several; and print which it is.

    Raises:
        ClickException: no server is there, or it lists no model of this name.
    """
    url, _, wanted = address.partition("#")
    try:
        listing = ServerListing(Endpoint(completed(url)))
        names = listing.names()
    except ValueError as error:
        raise click.UsageError("--model: the http or https address of a server is expected.") from error
    except ModelError as error:
        raise click.ClickException(f"--model: {error.reason} {advice_for(error)}.") from error
    if not names:
        raise click.ClickException(f"--model: the server at {url} lists no models at /v1/models.")
    name = named_in(names, wanted) if wanted else names[0]
    if name is None:
        raise click.ClickException(f"--model: no {wanted} at {url}; it has {_several(names)}.")
    others = "" if wanted or len(names) == 1 else f", the first of {_several(names)}; {url}#NAME chooses another"
    click.echo(f"The model is {name}{others}. Passages of the documents are sent to {url}.", err=True)
    window = listing.window(name)
    return {
        "rag.api.endpoint": url,
        "rag.model": name,
        "rag.template": "openai",
        **({} if window is None else {"llm.context.window": window}),
    }


def _several(names: tuple[str, ...]) -> str:
    shown = ", ".join(name[:80] for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
