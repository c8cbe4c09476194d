"""`datafari-rag doctor`: asks everything the service stands on, and says what to do about what does not answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import click

from datafari_rag import bootstrap
from datafari_rag.adapters.machine import new_nonce
from datafari_rag.adapters.settings.file import SettingsFile, StartRefused
from datafari_rag.adapters.settings.snapshot import SettingsSnapshot
from datafari_rag.adapters.solr import collection_probe, factory
from datafari_rag.adapters.solr.nodes import Nodes
from datafari_rag.adapters.vectors.factory import embedder_for, meaning_for
from datafari_rag.core.answer.prompt import Prompt
from datafari_rag.core.errors import AuthorityError, EmbeddingError, RagError, SearchError
from datafari_rag.core.settings.addresses import EMBEDDED
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.solr.collection_report import Finding, findings
from datafari_rag.ports import Ending

MARKS = {"ok": "OK     ", "hint": "HINT   ", "problem": "PROBLEM"}
PROBE_USER = "datafari-rag-probe"


@click.command(
    epilog="""\b
Examples:
  datafari-rag doctor --conf conf/rag.properties
  datafari-rag doctor --conf rag.properties --no-model
\b
Exit codes: 0 everything answers as it should (there may be hints), 1 something does not, 2 wrong usage.
"""
)
@click.option(
    "--conf", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=True, help="The settings."
)
@click.option("--model/--no-model", "asks_model", default=True, help="Ask the model one short question. [default: yes]")
def doctor(conf: Path, asks_model: bool) -> None:
    """Try what the service needs: Solr, its fields and rights, the embedding model, the source of rights,
    the model.

    Each line says what was looked at and what is so, with what to do where that is needed.
    """
    try:
        snapshot = SettingsFile(conf).snapshot()
    except StartRefused as refused:
        raise click.ClickException("\n".join(refused.lines)) from None
    is_good = True
    for finding in examined(snapshot, asks_model=asks_model):
        is_good = is_good and finding.verdict != "problem"
        click.echo(f"{MARKS[finding.verdict]} {finding.subject}: {finding.text}")
        if finding.advice and finding.verdict != "ok":
            click.echo(f"        -> {finding.advice}")
    raise SystemExit(0 if is_good else 1)


def examined(snapshot: SettingsSnapshot, *, asks_model: bool) -> Iterator[Finding]:
    """Yield a finding for each thing looked at, as soon as it is known."""
    for problem, line in zip(snapshot.problems, snapshot.lines(), strict=True):
        yield Finding("settings", "problem" if problem.stops else "hint", line)
    if any(problem.stops and problem.key.startswith(("solr.", "security.")) for problem in snapshot.problems):
        # What would be tried now is not what was meant.
        return
    parts: list[Callable[[Settings], Sequence[Finding]]] = [_search, _meaning, _rights]
    for part in (*parts, _model) if asks_model else parts:
        yield from part(snapshot.settings)


def _search(settings: Settings) -> Sequence[Finding]:
    retriever = bootstrap.retriever_for(settings)
    problem = retriever.probe()
    where = "the embedded index" if settings.solr_url.startswith(EMBEDDED) else "Solr"
    if problem is not None:
        return (Finding("search engine", "problem", problem, _advice(problem, where)),)
    first = Finding("search engine", "ok", f"{where} answers (handler {settings.solr_handler})")
    return (first,) if where != "Solr" else (first, *_collection(settings))


def _collection(settings: Settings) -> Sequence[Finding]:
    connection = factory.connection_of(settings)
    nodes = Nodes(factory.addresses_of(settings.solr_url, connection), connection)
    try:
        facts, schema = collection_probe.facts_of(nodes, factory.schema_of(settings), handler=settings.solr_handler)
    except SearchError as error:
        return (Finding("collection", "problem", _said(error), _advice(error.log, "Solr")),)
    if schema.kinds is None:
        return (Finding("collection", "hint", "Solr does not describe its schema", "Allow the reading of /schema"),)
    return findings(facts, schema, mode=settings.security_mode, facets=settings.solr_facets)


def _meaning(settings: Settings) -> Sequence[Finding]:
    """Try the embedding model, and whether the index has vectors of it."""
    if not settings.embeddings_endpoint:
        return ()
    try:
        embedder = embedder_for(settings)
        vector = embedder.embed(["Does this work?"], "query")[0] if embedder is not None else ()
    except EmbeddingError as error:
        advice = "Check embeddings.endpoint, .model, .token and .dimensions; until then words alone are searched"
        return (Finding("embedding model", "problem", _said(error), advice),)
    found = [Finding("embedding model", "ok", f"answers with vectors of {len(vector)} numbers")]
    meaning = meaning_for(settings, bootstrap.retriever_for(settings))
    problem = meaning.passages.probe(meaning.embedder.model) if meaning is not None else None
    if meaning is None:
        found.append(Finding("vectors", "hint", "they cannot be searched", "See the log"))
    elif problem is not None:
        command = "index PATH" if settings.solr_url.startswith(EMBEDDED) else "passages sync"
        found.append(Finding("vectors", "hint", problem, f"Run: datafari-rag {command} --conf FILE"))
    else:
        found.append(Finding("vectors", "ok", "the index has vectors of this model"))
    return found


def _rights(settings: Settings) -> Sequence[Finding]:
    if settings.security_mode != "tokens":
        return ()
    subject = f"source of rights ({settings.security_tokens})"
    try:
        tokens = tuple(bootstrap.rights_for(settings).tokens_of(PROBE_USER, ()))
    except AuthorityError as error:
        key = "security.tokens.file" if settings.security_tokens == "file" else "security.authority.url"
        return (Finding(subject, "problem", _said(error), f"Check {key}; until then no questions are answered"),)
    if settings.security_tokens == "file" and not settings.security_tokens_file:
        return (
            Finding(subject, "hint", "no file is named, so no user has tokens", "Name one: security.tokens.file=PATH"),
        )
    return (Finding(subject, "ok", f"answers; an unknown user has {len(tokens)} tokens"),)


def _model(settings: Settings) -> Sequence[Finding]:
    prompt = Prompt("Say OK.", (), None, new_nonce(), model=settings.rag_model, max_tokens=5)
    ending: Ending | None = None
    for said in bootstrap.model_for(settings).generate(prompt, is_streamed=False):
        ending = said if isinstance(said, Ending) else ending
    failure = ending.failure if ending is not None else None
    name = bootstrap.host_of(settings.rag_api_endpoint)
    if failure is not None and failure.label != "noAnswer":
        advice = "Check rag.api.endpoint, rag.api.token and rag.model"
        return (Finding(f"model ({name})", "problem", _said(failure), advice),)
    return (Finding(f"model ({name})", "ok", "answers"),)


def _said(error: RagError) -> str:
    return f"{error.reason} ({error.log})" if error.log else error.reason


def _advice(problem: str, where: str) -> str:
    if where != "Solr":
        return "Make it: datafari-rag index PATH --conf FILE"
    return next((advice for word, advice in ADVICE.items() if word in problem), ADVICE[""])


ADVICE = {
    "answered 401": "Set solr.user and solr.password",
    "answered 403": "This account may not search: ask Solr's administrator for the right to read",
    "answered 404": "Check the collection in solr.url and the name in solr.handler",
    "answered 400": "The handler does not take our parameters: is solr.handler an edismax search handler?",
    "answered 3": "Something in front of Solr redirects: name Solr itself in solr.url",
    "answered 5": "Solr has trouble of its own: see its log",
    "in time": "Solr is slow or out of reach: check the address and the network, or raise solr.timeout_s",
    "SSL": "Solr's certificate is not trusted: name its authority in solr.tls.ca",
    "ZooKeeper": "Check the ZooKeeper addresses, the chroot and the collection in solr.url",
    "JSON": "What answers is not Solr: check solr.url",
    "": "Is Solr running, and reachable at the address of solr.url?",
}
"""What to do, by a word of the problem; the last one fits all."""
