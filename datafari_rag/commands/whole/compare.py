"""`datafari-rag compare`: what several documents say together, in the terminal, cited."""

from __future__ import annotations

from pathlib import Path

import click

from datafari_rag.commands.terminal.conf import CONF
from datafari_rag.commands.terminal.document_id import DocumentId
from datafari_rag.commands.whole.showing import show_work
from datafari_rag.core.ask import MAX_QUESTION_CHARS, Ask, DocumentWork


@click.command()
@click.argument("ids", type=DocumentId(), metavar="ID|PATH…", nargs=-1, required=True)
@click.option(
    "--question", default="", help="What is to be compared. [default: what they have in common, and what not]"
)
@CONF
@click.option("--user", help="Read as this user, with the tokens of the configured source. [default: anonymous]")
@click.option("--lang", help="Language of the answer, like en or fr. [default: the question's]")
@click.option("--json", "is_json", is_flag=True, help="Print the reply of POST /rest/v2.0/ai instead, whole.")
def compare(ids: tuple[str, ...], question: str, conf: Path, user: str | None, lang: str | None, is_json: bool) -> None:
    """
    Put together what several documents say, each named by its id or by the path of its file.

    \b
    Examples:
      datafari-rag compare offer-1 offer-2 offer-3 --question "What do they cost?" --user alice
      datafari-rag compare contract-2023 contract-2024 --conf conf/rag.properties
    \b
    Documents that are not there for the user are named on stderr and left out.
    Exit codes: 0 compared; 1 not, the reason is on stderr; 2 wrong usage.
    """  # noqa: D301 # click reads \b
    if len(question) > MAX_QUESTION_CHARS:
        raise click.BadParameter(f"at most {MAX_QUESTION_CHARS} characters", param_hint="--question")
    work = DocumentWork("synthesize")
    ask = Ask(question.strip(), language=lang, document_ids=tuple(dict.fromkeys(ids)), work=work)
    show_work(ask, work, conf=conf, user=user, is_json=is_json)
