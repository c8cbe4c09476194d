"""The command line: one group, each command in a separate file that is only imported when it is called."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from importlib.metadata import entry_points

import click

from datafari_rag import __version__
from datafari_rag.adapters.private_files import write_for_this_account_alone
from datafari_rag.commands.terminal import pasteable

COMMANDS = {
    "demo": ("datafari_rag.commands.demo.command:demo", "Try it: serve the demo documents, or a folder of your own."),
    "serve": ("datafari_rag.commands.serve:serve", "Run the production server with a rag.properties."),
    "index": ("datafari_rag.commands.index:index", "Index files or JSONL documents."),
    "forget": ("datafari_rag.commands.index:forget", "Take documents out of the index again."),
    "ask": ("datafari_rag.commands.ask:ask", "Answer one question in the terminal."),
    "summarize": ("datafari_rag.commands.ask:summarize", "Summarise one document in the terminal."),
    "compare": ("datafari_rag.commands.ask:compare", "Put what several documents say together."),
    "check-answer": (
        "datafari_rag.commands.check:check_answer",
        "Check a text against facts or documents, sentence by sentence.",
    ),
    "check": ("datafari_rag.commands.check:check", "Check a rag.properties for errors."),
    "doctor": ("datafari_rag.commands.doctor:doctor", "Check search engine, rights and model; suggest fixes."),
    "passages": (
        "datafari_rag.commands.passages:passages",
        "Synchronise passages in Solr with its documents.",
    ),
    "llm-service": ("datafari_rag.commands.serve:llm_service", "The /invoke service of Datafari."),
    "demo-watch": ("datafari_rag.commands.demo.watch:demo_watch", "Part of demo FOLDER."),
    "audit": ("datafari_rag.commands.records:audit", "Verify the audit files."),
    "usage": ("datafari_rag.commands.records:usage", "Show how many tokens each user took on each day."),
    "conversations": (
        "datafari_rag.commands.records:conversations",
        "Delete a user's stored conversations.",
    ),
}
"""Name → where the command is, and its line in the list."""

PLUGINS = "datafari_rag.commands"
"""The entry points whose values are further tables like `COMMANDS`: what measures and tries the service has one."""

HIDDEN = frozenset({"demo-watch"})
"""Commands that only other commands start."""


def commands() -> Mapping[str, tuple[str, str]]:
    """Return the commands of the service and those that installed packages add to them."""
    added = [plugin.load() for plugin in entry_points(group=PLUGINS)]
    return {name: row for table in (COMMANDS, *added) for name, row in table.items()}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called: `--help` and a start stay fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order of a newcomer's day."""
        return [name for name in commands() if name not in HIDDEN]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command *cmd_name*, None when there is none."""
        row = COMMANDS.get(cmd_name) or commands().get(cmd_name)
        if row is None:
            return None
        module, _, name = row[0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def get_help(self, ctx: click.Context) -> str:
        """Return the help, the examples with this program's own path."""
        return pasteable(super().get_help(ctx))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list from the table, without reading the commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in commands().items() if name not in HIDDEN])


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "--version", message="datafari_rag %(version)s")
def main() -> None:
    """
    Trustworthy answers for an enterprise search over Apache Solr.

    \b
    Examples:
      datafari-rag demo                          try it: demo documents, page on http://127.0.0.1:8080
      datafari-rag demo ~/Documents              the same over a folder of your own
      datafari-rag check conf/rag.properties     check a settings file for errors
      datafari-rag serve --conf conf/rag.properties
    """  # noqa: D301 # click reads \b
    write_for_this_account_alone()
