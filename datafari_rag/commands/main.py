"""The command line: one group, each command in a file of its own that is only read when it is called."""

from __future__ import annotations

import importlib

import click

from datafari_rag import __version__

COMMANDS = {
    "serve": "serve:serve",
    "demo": "demo:demo",
    "index": "index:index",
    "ask": "ask:ask",
    "check": "check:check",
    "doctor": "doctor:doctor",
    "eval": "eval:evaluate",
    "solr": "solr:solr",
    "stub-llm": "stub_llm:stub_llm",
    "llm-service": "llm_service:llm_service",
    "audit": "audit:audit",
}


class Lazy(click.Group):
    """A group whose commands are imported when they are asked for: `--help` and a start stay fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order of a newcomer's day."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command *cmd_name*, None when there is none."""
        place = COMMANDS.get(cmd_name)
        if place is None:
            return None
        module, _, name = place.partition(":")
        command: click.Command = getattr(importlib.import_module(f"datafari_rag.commands.{module}"), name)
        return command


@click.command(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "--version", message="datafari_rag %(version)s")
def main() -> None:
    """
    Trustworthy answers for an enterprise search over Apache Solr.

    \b
    Examples:
      datafari-rag demo                          try it: demo documents, page on http://127.0.0.1:8080
      datafari-rag demo ~/Documents              the same over a folder of yours
      datafari-rag check conf/rag.properties     find every mistake in a settings file
      datafari-rag serve --conf conf/rag.properties
    """  # noqa: D301 # click reads \b
