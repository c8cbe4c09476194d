"""`datafari-rag mcp-probe`: what an agent sees at /mcp, and as which user; for setting up a client."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

import click
import requests

from datafari_rag.adapters.http.exchange import failure_of
from datafari_rag.core.text.folding import clean
from datafari_rag.protocols.mcp.messages import (
    CAPABILITIES_KEY,
    METHOD_HEADER,
    MODERN,
    NAME_HEADER,
    SERVER_KEY,
    VERSION_HEADER,
    VERSION_KEY,
)
from datafari_rag.protocols.mcp.replies import USER_KEY

TIMEOUT_S = 60.0
MAX_SHOWN = 5


class Refused(Exception):
    """The service did not answer as a client needs it; the text says how."""


@click.command(name="mcp-probe")
@click.argument("url")
@click.option("--header", "headers", multiple=True, metavar="NAME: VALUE", help="Send this header; repeatable.")
@click.option("--token", help="Send this token: Authorization: Bearer TOKEN.")
@click.option("--query", help="Also search for this, and show which documents this user finds.")
def mcp_probe(url: str, headers: tuple[str, ...], token: str | None, query: str | None) -> None:
    """
    Show what an agent sees at URL (…/mcp), and as which user.

    \b
    Examples:
      datafari-rag mcp-probe http://127.0.0.1:8080/mcp
      datafari-rag mcp-probe http://127.0.0.1:8080/mcp --header "X-Remote-User: alice" --query "enum"
      datafari-rag mcp-probe https://search.example.org/mcp --token "$TOKEN"
    \b
    Exit codes: 0 a client can use it; 1 it cannot, the reason is on stderr; 2 wrong usage.
    """  # noqa: D301 # click reads \b
    own_headers = {}
    for header in headers:
        name, colon, value = header.partition(":")
        if not colon or not name.strip():
            raise click.BadParameter(f"{header!r} is not NAME: VALUE.", param_hint="--header")
        own_headers[name.strip()] = value.strip()
    if token:
        own_headers["Authorization"] = f"Bearer {token}"
    try:
        with requests.Session() as session:
            reply = _result(session, url, own_headers, method="server/discover")
            about = reply.get("_meta", {})
            server = about.get(SERVER_KEY, {})
            name, version = _printable(server.get("name", "?")), _printable(server.get("version", ""))
            click.echo(f"server     {name} {version}".rstrip())
            click.echo(f"revisions  {', '.join(map(_printable, reply.get('supportedVersions', ())))}")
            user = about.get(USER_KEY)
            click.echo(f"as         {_printable(user) if user else 'anonymous: public documents only'}")
            for tool in _result(session, url, own_headers, method="tools/list").get("tools", ()):
                schema = tool.get("inputSchema", {})
                names = [
                    name if name in schema.get("required", ()) else f"[{name}]" for name in schema.get("properties", {})
                ]
                click.echo(f"tool       {_printable(tool.get('name', '?'))}({_printable(', '.join(names))})")
            if query:
                arguments = {"name": "search", "arguments": {"query": query}}
                _show_found(query, _result(session, url, own_headers, method="tools/call", params=arguments))
    except Refused as refused:
        click.echo(str(refused), err=True)
        sys.exit(1)


def _result(
    session: requests.Session,
    url: str,
    headers: Mapping[str, str],
    *,
    method: str,
    params: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the result of one request. Raises: Refused."""
    fields: dict[str, Any] = dict(params or {})
    standard = {"Accept": "application/json, text/event-stream", VERSION_HEADER: MODERN, METHOD_HEADER: method}
    if "name" in fields:
        standard[NAME_HEADER] = fields["name"]
    fields["_meta"] = {VERSION_KEY: MODERN, CAPABILITIES_KEY: {}}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": fields}
    try:
        response = session.post(url, json=body, headers={**standard, **headers}, timeout=TIMEOUT_S)
        reply = response.json()
    except requests.JSONDecodeError as error:
        raise Refused(f"{url} is not MCP: it answered {response.status_code} without JSON.") from error
    except requests.RequestException as error:
        raise Refused(f"{url} cannot be reached ({failure_of(error).log}).") from error
    if response.status_code == requests.codes.unauthorized:
        challenge = _printable(response.headers.get("WWW-Authenticate", ""))
        hint = f"WWW-Authenticate: {challenge}" if challenge else "The service does not say where to get a token."
        raise Refused(f"Not signed in, or the token is not valid (401). {hint}")
    if not isinstance(reply, dict) or not isinstance(reply.get("result"), dict):
        raise Refused(f"{method} was refused with {response.status_code}: {_printable(json.dumps(reply))}")
    result: dict[str, Any] = reply["result"]
    return result


def _show_found(query: str, reply: Mapping[str, Any]) -> None:
    if reply.get("isError"):
        raise Refused(f"search failed: {_printable(reply['content'][0]['text'])}")
    results = reply.get("structuredContent", {}).get("results", [])
    click.echo(f"search     {len(results)} documents for {_printable(query)!r}")
    for result in results[:MAX_SHOWN]:
        click.echo(f"           {_printable(result['title'])}  {_printable(result['url'])}")


def _printable(text: object) -> str:
    """Return *text* without what a terminal would obey in place of showing it."""
    return clean(" ".join(str(text).split()), is_full=False)[0]
