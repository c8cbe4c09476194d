"""The command line: one group, each command in a file of its own that is only read when it is called."""

from __future__ import annotations

import importlib

import click

from datafari_rag import __version__

COMMANDS = {
    "demo": ("demo.command:demo", "Try it: serve shipped documents, or a folder of yours."),
    "serve": ("serve:serve", "Serve a rag.properties: the production server."),
    "index": ("index:index", "Put files or JSONL documents into the search engine."),
    "ask": ("ask:ask", "Answer one question in the terminal."),
    "summarize": ("whole.summarize:summarize", "Summarise one document in the terminal."),
    "compare": ("whole.compare:compare", "Put what several documents say together."),
    "check-answer": ("check_answer:check_answer", "Check a text against facts or documents, sentence by sentence."),
    "check": ("check:check", "Find every mistake in a rag.properties."),
    "doctor": ("doctor:doctor", "Probe search engine, rights and model; say what to do."),
    "mcp-probe": ("mcp.probe:mcp_probe", "Say what an agent sees at /mcp, and as whom."),
    "eval": ("eval.command:evaluate", "Measure answers on questions of yours."),
    "conformance": ("conformance:conformance", "Ask a running service what its contract says."),
    "model": ("model:model", "Fetch local embedding models, for search by meaning."),
    "passages": ("passages:passages", "Keep passages with vectors beside the documents of a Solr."),
    "solr": ("solr:solr", "Start and stop a real Solr for trials."),
    "stub-llm": ("stub_llm:stub_llm", "A model server that behaves as its model's name says."),
    "llm-service": ("llm_service:llm_service", "The /invoke service of Datafari."),
    "demo-watch": ("demo.watch:demo_watch", "Part of demo FOLDER."),
    "audit": ("audit:audit", "Check the audit's chains."),
}
"""Name → where the command is, and its line in the list."""

HIDDEN = frozenset({"demo-watch"})
"""Commands that others start, and nobody types."""

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
            told = f"`{cmd_name}` needs the extra `{cmd_name}`: pip install 'datafari-rag[{cmd_name}]'"
            raise click.ClickException(told) from error
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
      datafari-rag demo ~/Documents              the same over a folder of yours
      datafari-rag check conf/rag.properties     find every mistake in a settings file
      datafari-rag serve --conf conf/rag.properties
    """  # noqa: D301 # click reads \b
