"""`datafari-rag summarize`: the summary of one document in the terminal, every sentence with its proof."""

from __future__ import annotations

from pathlib import Path

import click

from datafari_rag.commands.terminal.conf import CONF
from datafari_rag.commands.terminal.document_id import DocumentId
from datafari_rag.commands.whole.showing import show_work
from datafari_rag.core.ask import Ask, DocumentWork
from datafari_rag.core.whole.work import SENTENCES


@click.command()
@click.argument("document_id", type=DocumentId(), metavar="ID|PATH")
@CONF
@click.option("--user", help="Read as this user, with the tokens of the configured source. [default: anonymous]")
@click.option("--length", type=click.Choice(tuple(SENTENCES)), default="medium", show_default=True)
@click.option("--lang", help="Language of the summary, like en or fr. [default: the document's]")
@click.option("--estimate", is_flag=True, help="Only say how many calls of the model it would take.")
@click.option("--json", "is_json", is_flag=True, help="Print the reply of POST /rest/v2.0/ai instead, whole.")
def summarize(
    document_id: str, conf: Path, user: str | None, length: str, lang: str | None, estimate: bool, is_json: bool
) -> None:
    """
    Summarise the document ID, or the one that was made of the file PATH.

    \b
    Examples:
      datafari-rag summarize doc-7 --conf conf/rag.properties --user alice
      datafari-rag summarize "notes/remote work.md" --length short --lang fr
      datafari-rag summarize doc-7 --estimate
    \b
    Exit codes: 0 summarised; 1 not, the reason is on stderr; 2 wrong usage.
    """  # noqa: D301 # click reads \b
    wanted = next(name for name in SENTENCES if name == length)
    work = DocumentWork("summarize", wanted, is_estimate=estimate)
    ask = Ask("", language=lang, document_ids=(document_id,), work=work)
    show_work(ask, work, conf=conf, user=user, is_json=is_json)
