"""`datafari-rag doctor`: checks everything the service depends on, and suggests how to fix what fails."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from datafari_rag import bootstrap
from datafari_rag.adapters.machine import MACHINE, new_nonce
from datafari_rag.adapters.model.chain import ExtractiveModel, endpoints_for
from datafari_rag.adapters.model.endpoint import Endpoint, HttpModel, ModelServer
from datafari_rag.adapters.observability.audit_trail import AuditTrail
from datafari_rag.adapters.reranker import EndpointReranker
from datafari_rag.adapters.settings.file import SettingsSnapshot, snapshot_of
from datafari_rag.adapters.solr import collection_probe, factory
from datafari_rag.adapters.solr.client import Nodes
from datafari_rag.adapters.token_counters import EstimatedTokens
from datafari_rag.adapters.vectors.factory import embedder_for, meaning_for
from datafari_rag.commands.check import shared_with
from datafari_rag.commands.terminal import CONF, Command, sentence, typed
from datafari_rag.core.access import ANONYMOUS, User, usable_tokens
from datafari_rag.core.documents import Document, Extract
from datafari_rag.core.errors import (
    EmbeddingError,
    ModelError,
    ModelUnavailable,
    RagError,
    SearchError,
)
from datafari_rag.core.identity import mapped_name
from datafari_rag.core.meaning.reranker import RerankFailure
from datafari_rag.core.meaning.spread import PAIRS
from datafari_rag.core.model.prompt import Prompt, instructions_for, texts_of
from datafari_rag.core.model.servers import ServerNeeds, advice_for, words_of
from datafari_rag.core.query.dates import iso_at, moment_of
from datafari_rag.core.search_request import Browse
from datafari_rag.core.settings.addresses import BUILTIN_MODEL, EMBEDDED, Tls
from datafari_rag.core.settings.table import BY_KEY, RerankSettings, SecuritySettings, Settings, SolrLimits, secrets_of
from datafari_rag.core.solr.collection_report import Finding, Verdict, findings
from datafari_rag.core.text.language import detect
from datafari_rag.pipeline import browse, fetch
from datafari_rag.ports import Ending, TextChunk
from datafari_rag.retrieval import Dependencies
from datafari_rag.web.ops.probes import PROBES, Probe

MARKS = {"ok": "OK     ", "hint": "HINT   ", "problem": "PROBLEM"}
VERDICTS: dict[str, Verdict] = {"error": "problem", "warning": "hint", "note": "ok"}


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  datafari-rag doctor --conf conf/rag.properties
  datafari-rag doctor --conf rag.properties --no-model
  datafari-rag doctor --conf rag.properties --no-model --as alice --as bob
  datafari-rag doctor --conf rag.properties --no-model --as alice --document file://share/plan.pdf
  datafari-rag doctor --conf rag.properties --no-model --freshness
\b
Exit codes: 0 no problems (there may be hints), 1 problems, 2 wrong usage.
""",
)
@CONF
@click.option("--model/--no-model", "asks_model", default=True, help="Ask the model one short question. [default: yes]")
@click.option(
    "--as", "names", multiple=True, metavar="USER", help="Report how much this user sees, and why; repeatable."
)
@click.option("--document", help="With --as: whether the user sees this document, and because of which token.")
@click.option("--freshness", is_flag=True, help="Report how old rights and the index can be.")
def doctor(conf: Path, asks_model: bool, names: tuple[str, ...], document: str | None, freshness: bool) -> None:
    """Check what the service depends on: Solr, its fields and rights, the embedding model, the reranker, the source of
    rights, the language model.

    Each line names what was checked and the result, with advice if there is a problem.
    """
    # Not `SettingsFile`, which logs the lines that are printed here.
    snapshot = snapshot_of(conf, environ=os.environ)
    if document is not None and not names:
        raise click.UsageError("--document needs --as USER.")
    is_good = True
    parts = [
        examined(snapshot, asks_model=asks_model),
        *(_seen_by(name, document, snapshot.settings) for name in names),
        *([_freshness(names, snapshot.settings)] if freshness else []),
    ]
    for finding in itertools.chain.from_iterable(parts):
        is_good = is_good and finding.verdict != "problem"
        click.echo(typed(f"{MARKS[finding.verdict]} {finding.subject}: {finding.text}", conf))
        if finding.advice and finding.verdict != "ok":
            click.echo(typed(f"        -> {finding.advice}", conf))
    raise SystemExit(0 if is_good else 1)


def examined(snapshot: SettingsSnapshot, *, asks_model: bool) -> Iterator[Finding]:
    """Yield a finding for each thing looked at, as soon as it is known."""
    settings = snapshot.settings
    for problem, line in zip(snapshot.problems, snapshot.lines(), strict=True):
        verdict = "hint" if problem.key not in BY_KEY else VERDICTS[problem.severity]
        yield Finding("settings", verdict, line)
    if any(problem.stops and problem.key.startswith(("solr.", "security.")) for problem in snapshot.problems):
        # What would be tried now is not what was meant.
        return
    for row in PROBES:
        if row.what in PARTS:
            yield from _part(row, settings)
    yield from _reranker(settings.rerank, settings.tls.rerank)
    if asks_model:
        # Each once and alone: in a chain the next one would answer in the name of one that fails.
        for endpoint in endpoints_for(settings.rag, settings.llm, settings.tls.llm):
            yield from _endpoint(endpoint, settings, snapshot.instructions)


@dataclass(frozen=True, slots=True)
class _Part:
    """How a part is made of the settings, None where it is not configured, and what to do when it has a problem."""

    subject: str
    made: Callable[[Settings], Any]
    advice: str
    verdict: Verdict = "problem"
    more: Callable[[Settings, str | None], Iterable[Finding]] = lambda settings, problem: ()
    """What is found out of it besides, with the problem that it has."""


def _part(row: Probe, settings: Settings) -> Iterator[Finding]:
    """Yield what readiness would say of a part, and more of it."""
    own, problem = PARTS[row.what], None
    try:
        part = own.made(settings)
    except EmbeddingError as error:
        yield Finding("embedding model", "problem", sentence(error), own.advice)
        return
    if part is None:
        return
    if not getattr(part, "is_there", True):
        # None is made: it would be this account's, and the service kept out of it.
        yield Finding(own.subject, "ok", "none yet")
        return
    problem = row.problem(part)
    advice = own.advice
    if row.what == "search" and problem is not None:
        advice = _advice_for(problem) if _is_solr(settings) else "Create it: `datafari-rag index PATH`"
        advice += f"; {_collections(settings)}" if "answered 404" in problem else ""
    engine = f"Solr answers (handler {settings.solr.handler})" if _is_solr(settings) else "the embedded index answers"
    works = engine if row.what == "search" else "works"
    yield Finding(own.subject, "ok" if problem is None else own.verdict, problem or works, advice)
    yield from own.more(settings, problem)


def _is_solr(settings: Settings) -> bool:
    return not settings.solr.url.startswith(EMBEDDED)


def _about_search(settings: Settings, problem: str | None) -> Iterable[Finding]:
    if not _is_solr(settings):
        return [Finding("index", "hint", line, "Run chmod g-rwx on it") for line in shared_with(settings.solr)]
    if problem is None:
        return _collection(settings)
    # A Solr that answers may say more; of one that does not, the same was said.
    more = () if "answered 404" in problem else _collection(settings)
    return [finding for finding in more if finding.subject != "collection"]


def _collections(settings: Settings) -> str:
    """Say which names would not be answered by 404, twenty of them."""
    connection = factory.connection_of(settings)
    try:
        roots = [url.rpartition("/")[0] for url in factory.addresses_of(settings.solr.url, connection)(False)]
        names = collection_probe.names_at(Nodes(lambda is_fresh: roots, connection))[:20]
    except SearchError:
        names = ()
    return f"this Solr has: {', '.join(names)}" if names else "no collection is listed there: is the path /solr/NAME?"


def _collection(settings: Settings) -> Sequence[Finding]:
    connection, solr = factory.connection_of(settings), settings.solr
    nodes = factory.nodes_of(solr.url, connection)
    try:
        facts, schema = collection_probe.facts_of(nodes, factory.schema_of(solr), handler=solr.handler)
    except SearchError as error:
        return (Finding("collection", "problem", sentence(error), _advice_for(error.log)),)
    if schema.kinds is None:
        return (Finding("collection", "hint", "Solr does not return its schema", "Allow read access to /schema"),)
    return findings(facts, schema, mode=settings.security.mode, facets=settings.solr.facets)


def _meaning(settings: Settings) -> Any:
    """Return the search by meaning, whose model is tried. Raises: EmbeddingError."""
    if not settings.embeddings.endpoint:
        return None
    embedder = embedder_for(settings)
    if embedder is not None:
        embedder.embed(["Does this work?"], "query")
    return meaning_for(settings, bootstrap.retriever_for(settings))


def _about_rights(settings: Settings, problem: str | None) -> Iterable[Finding]:
    if settings.security.tokens == "file" and not settings.security.tokens_file:
        text = "no file is set, so no user has tokens"
        yield Finding("source of rights", "hint", text, "Set security.tokens.file=PATH")


def _rights(settings: Settings) -> Any:
    security = settings.security
    return bootstrap.rights_for(security, settings.solr.limits) if security.mode == "tokens" else None


_ON_DISK = "its owner and the disk"
PARTS = {
    "search": _Part("search engine", bootstrap.retriever_for, "", more=_about_search),
    "meaning": _Part(
        "vectors",
        _meaning,
        "Check embeddings.endpoint, embeddings.token and embeddings.options, or write the vectors: `datafari-rag index "
        "PATH`, for Solr `datafari-rag passages sync`; until then, documents are searched by words alone",
        "hint",
    ),
    "rights": _Part(
        "source of rights",
        _rights,
        "Check security.tokens.file or security.authority.url; until then no questions are answered",
        more=_about_rights,
    ),
    "audit": _Part(
        "audit",
        lambda settings: AuditTrail(Path(settings.audit.folder), MACHINE) if settings.audit.folder else None,
        f"Check audit.folder, {_ON_DISK}; run this as the service's own account",
    ),
    "conversations": _Part(
        "stored conversations",
        lambda settings: bootstrap.conversations_for(settings.chat),
        f"Check chat.store.folder, {_ON_DISK}; until then answers go on without conversations",
    ),
    "usage": _Part(
        "tokens of users",
        lambda settings: bootstrap.usage_for(settings.limits),
        f"Check limits.store, {_ON_DISK}",
    ),
}
"""What this command adds to the rows of `PROBES`; the model is tried by `_endpoint`, endpoint by endpoint."""


def _reranker(rerank: RerankSettings, tls: Tls) -> Sequence[Finding]:
    """Let the reranker tell a text that answers from one that does not."""
    if not rerank.endpoint:
        return ()
    subject = "reranker"
    (question, right), (_, wrong) = PAIRS[:2]
    scores = EndpointReranker(rerank, tls, time.monotonic).scores(question, [wrong, right])
    if isinstance(scores, RerankFailure):
        return (Finding(subject, "problem", f"{scores.label}: {scores.log}", RERANK_ADVICE),)
    if scores[1] <= scores[0]:
        advice = "Is this a reranker, and does its server put the question and the text into the model's own form?"
        return (Finding(subject, "hint", "it prefers a text that does not answer", advice),)
    return (Finding(subject, "ok", f"tells an answer from another text by {scores[1] - scores[0]:.1f} spreads"),)


def _seen_by(name: str, document: str | None, settings: Settings) -> Iterator[Finding]:
    """Yield how much the user *name* sees, and by which tokens: numbers and tokens, never a text."""
    subject = f"as {name}"
    try:
        user = _user(name, settings.security, settings.solr.limits)
        if document is None:
            for text in _visible(user, settings):
                yield Finding(subject, "ok", text)
        else:
            yield Finding(subject, "ok", _reason(document, user, settings))
            return
    except RagError as error:
        yield Finding(subject, "problem", sentence(error), "Until this works, this user gets no answers")
        return
    if settings.security.mode == "tokens" and settings.security.tokens == "claims":
        yield Finding(
            subject, "hint", "tokens are in each signed token, so that none are known here", "Ask as the user"
        )


MAX_TOKENS = 30
"""Most tokens that are tried one by one; each is two searches."""


def _visible(user: User, settings: Settings) -> Iterator[str]:
    """Yield how many documents *user* sees, and what each token does. Raises: SearchError, NotAuthenticated."""
    dependencies = _searching(settings)

    def count(tokens: frozenset[str]) -> int:
        page = browse(Browse(None, rows=0), replace(user, tokens=tokens), settings=settings, dependencies=dependencies)
        return int(_response(page)["numFound"])

    all_seen, public = count(user.tokens), count(frozenset())
    yield f"{all_seen} documents: {public} public, {all_seen - public} by {len(user.tokens)} tokens"
    for token in sorted(user.tokens)[:MAX_TOKENS]:
        opens, hides = count(frozenset({token})) - public, max(0, count(user.tokens - {token}) - all_seen)
        if opens or hides:
            yield f"token {token!r} alone opens {opens} documents{f', hides {hides}' if hides else ''}"


def _reason(document: str, user: User, settings: Settings) -> str:
    """
    Say whether *user* sees a document, and which tokens decide it: without one of them it would be the other way round.

    Raises: SearchError, NotAuthenticated.
    """
    dependencies = _searching(settings)

    def is_seen(tokens: frozenset[str]) -> bool:
        reader = replace(user, tokens=tokens)
        return any(
            fetch(document, field, reader, security=settings.security, dependencies=dependencies) is not None
            for field in ("exactContent", "preview_content")
        )

    is_visible = is_seen(user.tokens)
    tried = sorted(user.tokens)[:MAX_TOKENS]
    decisive = ", ".join(repr(token) for token in tried if is_seen(user.tokens - {token}) is not is_visible)
    if not is_visible:
        # A user cannot distinguish an unknown document from a document that none of their tokens allows.
        why = f"denied by {decisive}" if decisive else "it is not in the index, or no token of this user opens it"
        return f"does not see this document: {why}"
    if is_seen(frozenset()):
        return "sees this document: it is public"
    return f"sees this document: {f'not without {decisive}' if decisive else 'several tokens open it'}"


def _response(page: Mapping[str, object]) -> Mapping[str, Any]:
    part = page["response"]
    return part if isinstance(part, Mapping) else {}


def _user(name: str, security: SecuritySettings, patience: SolrLimits) -> User:
    """Return the user with their tokens. Raises: AuthorityError."""
    mapped = mapped_name(name, security.domain)
    if security.mode != "tokens":
        return User(mapped)
    return User(mapped, usable_tokens(bootstrap.rights_for(security, patience).tokens_of(mapped, ()))[0])


def _searching(settings: Settings) -> Dependencies:
    """Return what a search needs, and a model that is never called."""
    return Dependencies(
        retriever=bootstrap.retriever_for(settings),
        model=ExtractiveModel(),
        counter=EstimatedTokens(),
        instructions="",
        new_nonce=new_nonce,
        clock=time.monotonic,
    )


def _freshness(names: Sequence[str], settings: Settings) -> Iterator[Finding]:
    """Yield how old the rights of an answer can be, when the index changed, and the newest date that is seen."""
    kind = settings.security.tokens if settings.security.mode == "tokens" else settings.security.mode
    yield Finding("age of rights", "ok", RIGHTS_AGE[kind].format(cache_s=settings.security.cache_s))
    if kind == "claims" and not settings.security.revocations_file:
        text = "revocations are forgotten when the service stops, and the tokens from before count again"
        yield Finding("age of rights", "hint", text, "Set security.revocations.file")
    changed = _index_changed(settings)
    if changed is None:
        yield Finding("index", "hint", "does not report when it was changed", "Allow the reading of /admin/luke")
    else:
        yield Finding("index", "ok", f"last changed {_ago(changed)}")
    for name in names or (None,):
        subject = "newest document" if name is None else f"newest document, as {name}"
        try:
            user = ANONYMOUS if name is None else _user(name, settings.security, settings.solr.limits)
            newest = _newest(user, settings)
        except RagError as error:
            yield Finding(subject, "hint", sentence(error), "Name a user: --as USER")
            continue
        yield Finding(subject, "ok", "none has a date" if newest is None else f"changed {_ago(newest)}")


def _newest(user: User, settings: Settings) -> str | None:
    """Return the newest `last_modified` that *user* sees, None when there is none. Raises: SearchError."""
    search = Browse(None, rows=1, sort=("last_modified", True), fields=("id", "last_modified"))
    page = browse(search, user, settings=settings, dependencies=_searching(settings))
    rows = _response(page).get("docs") or ()
    value = rows[0].get("last_modified") if rows and isinstance(rows[0], Mapping) else None
    return str(value[0] if isinstance(value, list) and value else value) if value else None


def _index_changed(settings: Settings) -> str | None:
    if settings.solr.url.startswith(EMBEDDED):
        path = Path(settings.solr.url.removeprefix(EMBEDDED))
        times = [file.stat().st_mtime for file in path.glob("*") if file.is_file()]
        return iso_at(max(times)) if times else None
    connection = factory.connection_of(settings)
    return collection_probe.changed_at(factory.nodes_of(settings.solr.url, connection))


def _ago(text: str) -> str:
    moment = moment_of(text)
    if moment is None:
        return text
    minutes = int(time.time() - moment.timestamp()) // 60
    return f"{text} ({minutes // 1440} d {minutes // 60 % 24} h {minutes % 60} min ago)"


RIGHTS_AGE = {
    "file": "read from the file for each request: a change counts with the next one",
    "authority": "at most {cache_s:g} s (security.cache_s); after POST /admin/revoke the next request asks again",
    "claims": "as old as the signed token; POST /admin/revoke refuses those from before",
    "plugin": "Solr's own component remembers rights; its settings say how long",
    "none": "there are no rights: security.mode=none",
}
"""How old rights can be, by `security.tokens` or another `security.mode`."""


def _endpoint(endpoint: Endpoint, settings: Settings, instructions: str) -> Iterator[Finding]:
    """Ask a model once, streamed; yield how it answered, and what is right about the answer."""
    model = None
    if endpoint.url != BUILTIN_MODEL:
        model = HttpModel(endpoint, template=settings.rag.template, limits=settings.llm.limits)
    prompt = trial_prompt(settings, instructions, new_nonce())
    began, first_s = time.monotonic(), 0.0
    texts: list[str] = []
    ending = Ending(None)
    for piece in (model or ExtractiveModel()).generate(prompt, is_streamed=True):
        if isinstance(piece, TextChunk) and piece.wait_s is None:
            first_s = first_s or time.monotonic() - began
            texts.append(piece.text)
        elif isinstance(piece, Ending):
            ending = piece
    subject, failure = f"model ({bootstrap.host_of(endpoint.url)})", ending.failure
    if failure is not None:
        rejection = failure.rejection if isinstance(failure, ModelError) else None
        words = words_of(rejection, texts_of(prompt), secrets_of(settings))
        text = f"{failure.reason} It said: {words}" if words else failure.reason
        yield Finding(subject, "problem", f"{text} ({failure.log})", advice_for(failure))
    else:
        took_s = time.monotonic() - began
        yield Finding(subject, "ok", f"answers: first words after {first_s:.1f} s, all after {took_s:.1f} s")
    if model is None:
        return
    name = endpoint.model or settings.rag.model
    if (tries := ending.facts.tries) > 1:
        text = f"it refused the form of {tries - 1} of {tries} requests"
        yield Finding("form", "hint", text, FORM_ADVICE)
    if failure is None:
        yield from _judged(texts, ending, endpoint.needs(name))
    if not isinstance(failure, ModelUnavailable):
        yield from _window(endpoint, name, settings)


def _judged(texts: Sequence[str], ending: Ending, needs: ServerNeeds) -> Iterator[Finding]:
    """Yield what is right about an answer that came as *texts*, and what is not."""
    text, facts = "".join(texts), ending.facts
    waits = needs.thinking == "aloud" and not facts.has_thoughts
    is_cited = "[1]" in text or f"[{DOCUMENTS[0][0]}]" in text
    larger = "Try a larger model"
    rows = (
        ("answer", EXPECTED in text, "right", "not what the document says", larger),
        ("citations", is_cited, "cites [1]", "does not cite [1]", f"{larger}, or rag-instructions.txt"),
        ("language", detect(text) == LANGUAGE, "keeps to the question's", "not the question's", "Try another model"),
        (
            "streaming",
            len(texts) > 1,
            f"{len(texts)} pieces",
            "the answer came in one piece",
            WAIT_ADVICE if waits else STREAM_ADVICE,
        ),
    )
    if ending.finish_reason == "length":
        yield Finding("length", "hint", "the answer was cut at rag.maxTokens", "Raise rag.maxTokens")
    for subject, is_good, good, bad, advice in rows:
        yield Finding(subject, "ok" if is_good else "hint", good if is_good else bad, "" if is_good else advice)
    chars = f"{facts.thought_chars} characters in {facts.thought_ms / 1000:.1f} s"
    hidden = f"hidden, {facts.thought_tokens} tokens" if facts.has_thoughts else "none"
    yield Finding("thinking", "ok", chars if facts.thought_chars else hidden)


def _window(endpoint: Endpoint, model: str, settings: Settings) -> Iterator[Finding]:
    window = settings.llm.context_window
    size = ModelServer(endpoint).window(model) if settings.rag.template == "openai" else None
    if size is None:
        yield Finding("window", "ok", f"the server does not say; llm.context.window={window}")
    elif size < window:
        text = f"the server's is {size} tokens, llm.context.window={window}: longer prompts fail, or are cut silently"
        yield Finding("window", "problem", text, f"Set llm.context.window={size}, or start the server with more")
    else:
        yield Finding("window", "ok", f"the server's is {size} tokens, llm.context.window={window}")


WAIT_ADVICE = "By its name this model thinks before it answers, so that streams wait for the end of its thoughts"
FORM_ADVICE = "Set llm.server, and leave out of llm.body what it refuses (docs/models.md)"
STREAM_ADVICE = "A proxy before the model may be buffering; a short answer may also come at once"


RERANK_ADVICE = (
    "Check rerank.endpoint, .token and .options: with a model the request is in Cohere's form, without one in that of "
    "text-embeddings-inference; until then, the order is that of the search"
)


def _advice_for(problem: str) -> str:
    """Return what to do about a *problem* of Solr, by a word of it."""
    return next(advice for word, advice in ADVICE.items() if word in problem)


ADVICE = {
    "answered 401": "Set solr.user and solr.password",
    "answered 403": "This account may not search: ask Solr's administrator for read access",
    "answered 404": "Check the collection in solr.url and the name in solr.handler",
    "answered 400": "The handler does not accept these parameters: is solr.handler an edismax search handler?",
    "answered 3": "A server in front of Solr redirects requests: set solr.url to the address of Solr itself",
    "answered 5": "Solr failed: see its log",
    "in time": "Solr is slow or cannot be reached: check the address and the network, or raise solr.limits.wait_s",
    "certificate": "Solr's certificate is not trusted: set ca of solr in tls to its certificate authority",
    "ZooKeeper": "Check the ZooKeeper addresses, the chroot and the collection in solr.url",
    "JSON": "The server at this address is not Solr: check solr.url",
    "": "Is Solr running, and reachable at the address of solr.url?",
}
"""What to do, by a word of the problem; the last one fits all."""


LANGUAGE = "fr"
QUESTION = "Jusqu'à quelle heure la salle de lecture est-elle ouverte en semaine ?"
DOCUMENTS = (
    ("Opening hours", "On weekdays the reading room is open from nine o'clock in the morning until 18:45."),
    ("Lending", "Books can be borrowed for four weeks. A loan can be renewed twice."),
)
"""The question is not in the documents' language, so that an answer shows whether the model keeps to the question's."""

EXPECTED = "18"


def trial_prompt(settings: Settings, instructions: str, nonce: str) -> Prompt:
    """Return the prompt as an answer's is made, with two short documents."""
    extracts = tuple(
        Extract(number, label, Document(id=str(number), title=label, text=text), (), text)
        for number, (label, text) in enumerate(DOCUMENTS, 1)
    )
    return Prompt(
        QUESTION,
        extracts,
        instructions_for(instructions, language=LANGUAGE, answer_format=None),
        nonce,
        language=LANGUAGE,
        model=settings.rag.model,
        temperature=settings.rag.temperature,
        max_tokens=settings.rag.max_tokens,
        spare_tokens=settings.llm.context_window // 2,
    )
