"""The command line: one group, each command in a separate file that is only imported when it is called."""

from __future__ import annotations

import importlib

import click

from datafari_rag import __version__
from datafari_rag.adapters.private_files import write_for_this_account_alone

COMMANDS = {
    "demo": ("demo.command:demo", "Try it: serve the demo documents, or a folder of your own."),
    "serve": ("serve:serve", "Run the production server with a rag.properties."),
    "index": ("index:index", "Index files or JSONL documents."),
    "ask": ("ask:ask", "Answer one question in the terminal."),
    "summarize": ("whole.summarize:summarize", "Summarise one document in the terminal."),
    "compare": ("whole.compare:compare", "Put what several documents say together."),
    "check-answer": ("check_answer:check_answer", "Check a text against facts or documents, sentence by sentence."),
    "check": ("check:check", "Check a rag.properties for errors."),
    "doctor": ("doctor:doctor", "Check search engine, rights and model; suggest fixes."),
    "mcp-probe": ("mcp.probe:mcp_probe", "Show what an agent sees at /mcp, and as which user."),
    "eval": ("eval.command:evaluate", "Measure answers to your own questions."),
    "conformance": ("conformance:conformance", "Check a running service against its contract."),
    "model": ("model:model", "Download local embedding models for search by meaning."),
    "passages": ("passages:passages", "Synchronise passages with vectors in Solr with its documents."),
    "solr": ("solr:solr", "Start and stop a real Solr for testing."),
    "stub-llm": ("stub_llm:stub_llm", "A test model server that behaves as the model name says."),
    "llm-service": ("llm_service:llm_service", "The /invoke service of Datafari."),
    "demo-watch": ("demo.watch:demo_watch", "Part of demo FOLDER."),
    "audit": ("audit:audit", "Verify the audit files."),
    "conversations": ("conversations.command:conversations", "Delete a user's stored conversations."),
}
"""Name → where the command is, and its line in the list."""

HIDDEN = frozenset({"demo-watch"})
"""Commands that only other commands start."""

EXTRAS = frozenset({"matplotlib", "rich"})
"""Libraries without which a command cannot even be read; the extra that brings them has the command's name."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called: `--help` and a start stay fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order of a newcomer's day."""
        return [name for name in COMMANDS if name not in HIDDEN]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command *cmd_name*, None when there is none."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        try:
            command: click.Command = getattr(importlib.import_module(f"datafari_rag.commands.{module}"), name)
        except ModuleNotFoundError as error:
            if str(error.name).partition(".")[0] not in EXTRAS:
                raise
            hint = f"`{cmd_name}` needs the extra `{cmd_name}`: pip install 'datafari-rag[{cmd_name}]'"
            raise click.ClickException(hint) from error
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list from the table, without reading the commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items() if name not in HIDDEN])


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
