"""`datafari-rag doctor`: checks everything the service depends on, and suggests how to fix what fails."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from datafari_rag import bootstrap
from datafari_rag.adapters.machine import new_nonce
from datafari_rag.adapters.model.chain import ExtractiveModel, endpoints_for
from datafari_rag.adapters.model.endpoint import Endpoint, HttpModel, ModelServer
from datafari_rag.adapters.reranker import EndpointReranker
from datafari_rag.adapters.settings.file import SettingsSnapshot, snapshot_of
from datafari_rag.adapters.solr import collection_probe, factory
from datafari_rag.adapters.solr.client import Nodes
from datafari_rag.adapters.token_counters import EstimatedTokens
from datafari_rag.adapters.vectors.factory import NEEDS_EXTRA, embedder_for, meaning_for
from datafari_rag.commands.check import shared_with
from datafari_rag.commands.terminal import CONF, Command, sentence, typed
from datafari_rag.core.access import ANONYMOUS, User, usable_tokens
from datafari_rag.core.documents import Document, Extract
from datafari_rag.core.errors import (
    AuthorityError,
    ConversationsUnavailable,
    EmbeddingError,
    ModelError,
    ModelUnavailable,
    RagError,
    SearchError,
)
from datafari_rag.core.events import UNKNOWN_MODEL, ModelFacts
from datafari_rag.core.identity import mapped_name
from datafari_rag.core.meaning.reranker import RerankFailure
from datafari_rag.core.meaning.spread import PAIRS
from datafari_rag.core.model.prompt import Prompt, instructions_for, texts_of
from datafari_rag.core.model.servers import ServerNeeds, advice_for, words_of
from datafari_rag.core.query.dates import iso_at, moment_of
from datafari_rag.core.search_request import Browse
from datafari_rag.core.settings.addresses import BUILTIN_MODEL, EMBEDDED, Tls
from datafari_rag.core.settings.table import (
    BY_KEY,
    ChatSettings,
    LlmSettings,
    RagSettings,
    RerankSettings,
    SecuritySettings,
    Settings,
    SolrLimits,
    secrets_of,
)
from datafari_rag.core.solr.collection_report import Finding, Verdict, findings
from datafari_rag.core.text.language import detect
from datafari_rag.pipeline import browse, fetch
from datafari_rag.ports import Ending, Model, TextChunk
from datafari_rag.retrieval import Dependencies

MARKS = {"ok": "OK     ", "hint": "HINT   ", "problem": "PROBLEM"}
VERDICTS: dict[str, Verdict] = {"error": "problem", "warning": "hint", "note": "ok"}
PROBE_USER = "datafari-rag-probe"


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
    for problem, line in zip(snapshot.problems, snapshot.lines(), strict=True):
        verdict = "hint" if problem.key not in BY_KEY else VERDICTS[problem.severity]
        yield Finding("settings", verdict, line)
    if any(problem.stops and problem.key.startswith(("solr.", "security.")) for problem in snapshot.problems):
        # What would be tried now is not what was meant.
        return
    settings = snapshot.settings
    yield from _search(settings)
    yield from _vector_search(settings)
    yield from _reranker(settings.rerank, settings.tls.rerank)
    yield from _rights(settings.security, settings.solr.limits)
    yield from _conversations(settings.chat)
    if asks_model:
        # Each once and alone: in a chain the next one would answer in the name of one that fails.
        for endpoint in endpoints_for(settings.rag, settings.llm, settings.tls.llm):
            yield from _endpoint(endpoint, settings, snapshot.instructions)


def _search(settings: Settings) -> Sequence[Finding]:
    problem = bootstrap.retriever_for(settings).probe()
    where = "the embedded index" if settings.solr.url.startswith(EMBEDDED) else "Solr"
    if problem is not None:
        has = f"; {_collections(settings)}" if "answered 404" in problem else ""
        first = Finding("search engine", "problem", problem, _advice(problem, where) + has)
        # A Solr that answers may say more; of one that does not, the same was said.
        more = _collection(settings) if where == "Solr" and not has else ()
        return first, *(finding for finding in more if finding.subject != "collection")
    first = Finding("search engine", "ok", f"{where} answers (handler {settings.solr.handler})")
    if where == "Solr":
        return first, *_collection(settings)
    return first, *(Finding("index", "hint", line, "Run chmod g-rwx on it") for line in shared_with(settings.solr))


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
        return (Finding("collection", "problem", sentence(error), _advice(error.log, "Solr")),)
    if schema.kinds is None:
        return (Finding("collection", "hint", "Solr does not return its schema", "Allow read access to /schema"),)
    return findings(facts, schema, mode=settings.security.mode, facets=settings.solr.facets)


def _vector_search(settings: Settings) -> Sequence[Finding]:
    """Try the embedding model, and whether the index has vectors of it."""
    if not settings.embeddings.endpoint:
        return ()
    try:
        embedder = embedder_for(settings)
        vector = embedder.embed(["Does this work?"], "query")[0] if embedder is not None else ()
    except EmbeddingError as error:
        advice = (
            "Check embeddings.endpoint, embeddings.token and embeddings.options; "
            "until then, documents are searched by words alone"
        )
        return (Finding("embedding model", "problem", sentence(error), advice),)
    results = [Finding("embedding model", "ok", f"returns vectors with {len(vector)} dimensions")]
    meaning = meaning_for(settings, bootstrap.retriever_for(settings))
    problem = meaning.passages.probe(meaning.embedder.model) if meaning is not None else None
    if meaning is None:
        results.append(Finding("vectors", "problem", "they cannot be searched", NEEDS_EXTRA))
    elif problem is not None:
        command = "index PATH" if settings.solr.url.startswith(EMBEDDED) else "passages sync"
        results.append(Finding("vectors", "hint", problem, f"Run: `datafari-rag {command}`"))
    else:
        results.append(Finding("vectors", "ok", "the index has vectors of this model"))
    return results


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


def _rights(security: SecuritySettings, patience: SolrLimits) -> Sequence[Finding]:
    if security.mode != "tokens":
        return ()
    subject = f"source of rights ({security.tokens})"
    try:
        tokens = tuple(bootstrap.rights_for(security, patience).tokens_of(PROBE_USER, ()))
    except AuthorityError as error:
        key = "security.tokens.file" if security.tokens == "file" else "security.authority.url"
        return (Finding(subject, "problem", sentence(error), f"Check {key}; until then no questions are answered"),)
    if security.tokens == "file" and not security.tokens_file:
        return (Finding(subject, "hint", "no file is set, so no user has tokens", "Set security.tokens.file=PATH"),)
    return (Finding(subject, "ok", f"answers; an unknown user has {len(tokens)} tokens"),)


def _conversations(chat: ChatSettings) -> Sequence[Finding]:
    """Try the file of stored conversations; where there is none yet, none is made: it would be this account's."""
    store = bootstrap.conversations_for(chat)
    if store is None:
        return ()
    subject = "stored conversations"
    try:
        if not store.is_there:
            return (Finding(subject, "ok", "none yet"),)
        return (Finding(subject, "ok", f"{store.count()} conversations"),)
    except ConversationsUnavailable as error:
        advice = "Check chat.store.folder, its owner and the disk; until then answers go on without conversations"
        return (Finding(subject, "problem", sentence(error), advice),)
    finally:
        store.close()


def _seen_by(name: str, document: str | None, settings: Settings) -> Iterator[Finding]:
    """Yield how much the user *name* sees, and by which tokens: numbers and tokens, never a text."""
    subject = f"as {name}"
    try:
        user = _user(name, settings.security, settings.solr.limits)
        dependencies = _searching(settings)
        if document is not None:
            yield Finding(subject, "ok", _access_sentence(reason_for(document, user, settings.security, dependencies)))
            return
        view = visibility_of(user, settings, dependencies)
    except RagError as error:
        yield Finding(subject, "problem", sentence(error), "Until this works, this user gets no answers")
        return
    text = f"{view.documents} documents: {view.public} public, {view.documents - view.public} by {view.tokens} tokens"
    yield Finding(subject, "ok", text)
    for effect in view.effects:
        hides = f", hides {effect.hides}" if effect.hides else ""
        yield Finding(subject, "ok", f"token {effect.token!r} alone opens {effect.opens} documents{hides}")
    if settings.security.mode == "tokens" and settings.security.tokens == "claims":
        yield Finding(
            subject, "hint", "tokens are in each signed token, so that none are known here", "Ask as the user"
        )


def _access_sentence(reason: Reason) -> str:
    """Say whether the user sees the document, and which tokens alone decide it."""
    tokens = ", ".join(map(repr, reason.decisive))
    if reason.is_seen:
        by = "it is public" if reason.is_public else f"not without {tokens}" if tokens else "several tokens open it"
        return f"sees this document: {by}"
    # A user cannot distinguish an unknown document from a document that none of their tokens allows.
    why = f"denied by {tokens}" if tokens else "it is not in the index, or no token of this user opens it"
    return f"does not see this document: {why}"


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
            newest = newest_date(user, settings, _searching(settings))
        except RagError as error:
            yield Finding(subject, "hint", sentence(error), "Name a user: --as USER")
            continue
        yield Finding(subject, "ok", "none has a date" if newest is None else f"changed {_ago(newest)}")


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
    is_built_in = endpoint.url == BUILTIN_MODEL
    limits = settings.llm.limits
    model = None if is_built_in else HttpModel(endpoint, template=settings.rag.template, limits=limits)
    trial = tried(
        model or ExtractiveModel(), trial_prompt(settings.rag, settings.llm, instructions, new_nonce()), time.monotonic
    )
    subject = f"model ({bootstrap.host_of(endpoint.url)})"
    if trial.failure is not None:
        rejection = trial.failure.rejection if isinstance(trial.failure, ModelError) else None
        words = words_of(rejection, texts_of(trial.prompt), secrets_of(settings))
        text = f"{trial.failure.reason} It said: {words}" if words else trial.failure.reason
        yield Finding(subject, "problem", f"{text} ({trial.failure.log})", advice_for(trial.failure))
    else:
        yield Finding(
            subject, "ok", f"answers: first words after {trial.first_s:.1f} s, all after {trial.total_s:.1f} s"
        )
    if model is not None:
        name = endpoint.model or settings.rag.model
        if (tries := trial.facts.tries) > 1:
            text = f"it refused the form of {tries - 1} of {tries} requests"
            yield Finding(
                "form", "hint", text, "Set llm.server, and leave out of llm.body what it refuses (docs/models.md)"
            )
        yield from _judged(trial, endpoint.needs(name))
        if not isinstance(trial.failure, ModelUnavailable):
            yield from _window(endpoint, name, settings.rag, settings.llm)


def _judged(trial: ModelTrial, needs: ServerNeeds) -> Iterator[Finding]:
    if trial.failure is not None:
        return
    if trial.is_cut:
        yield Finding("length", "hint", "the answer was cut at rag.maxTokens", "Raise rag.maxTokens")
    may_wait = needs.thinking == "aloud" and not trial.facts.has_thoughts
    for subject, is_good, good, bad, advice in (
        ("answer", trial.is_right, "right", "not what the document says", "Try a larger model"),
        (
            "citations",
            trial.is_cited,
            "cites [1]",
            "does not cite [1]",
            "Try a larger model, or rag-instructions.txt",
        ),
        ("language", trial.is_in_language, "keeps to the question's", "not the question's", "Try another model"),
        (
            "streaming",
            trial.pieces > 1,
            f"{trial.pieces} pieces",
            "the answer came in one piece",
            WAIT_ADVICE if may_wait else STREAM_ADVICE,
        ),
    ):
        yield Finding(subject, "ok" if is_good else "hint", good if is_good else bad, "" if is_good else advice)
    facts = trial.facts
    chars = f"{facts.thought_chars} characters in {facts.thought_ms / 1000:.1f} s"
    hidden = f"hidden, {facts.thought_tokens} tokens" if facts.has_thoughts else "none"
    yield Finding("thinking", "ok", chars if facts.thought_chars else hidden)


def _window(endpoint: Endpoint, model: str, rag: RagSettings, llm: LlmSettings) -> Iterator[Finding]:
    window = llm.context_window
    size = ModelServer(endpoint).window(model) if rag.template == "openai" else None
    if size is None:
        yield Finding("window", "ok", f"the server does not say; llm.context.window={window}")
    elif size < window:
        text = f"the server's is {size} tokens, llm.context.window={window}: longer prompts fail, or are cut silently"
        yield Finding("window", "problem", text, f"Set llm.context.window={size}, or start the server with more")
    else:
        yield Finding("window", "ok", f"the server's is {size} tokens, llm.context.window={window}")


WAIT_ADVICE = "By its name this model thinks before it answers, so that streams wait for the end of its thoughts"
STREAM_ADVICE = "A proxy before the model may be buffering; a short answer may also come at once"


RERANK_ADVICE = (
    "Check rerank.endpoint, .token and .options: with a model the request is in Cohere's form, without one in that of "
    "text-embeddings-inference; until then, the order is that of the search"
)


def _advice(problem: str, where: str) -> str:
    if where != "Solr":
        return "Create it: `datafari-rag index PATH`"
    return next((advice for word, advice in ADVICE.items() if word in problem), ADVICE[""])


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


@dataclass(frozen=True, slots=True)
class ModelTrial:
    """
    How the model answered: seconds to the first words and in all, in how many pieces, and what is right about it.

    *failure* is None for an answer; the rest then says nothing where it is not.
    """

    prompt: Prompt
    failure: RagError | None
    first_s: float = 0.0
    total_s: float = 0.0
    pieces: int = 0
    is_right: bool = False
    is_cited: bool = False
    is_in_language: bool = False
    is_cut: bool = False
    facts: ModelFacts = UNKNOWN_MODEL


def trial_prompt(rag: RagSettings, llm: LlmSettings, instructions: str, nonce: str) -> Prompt:
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
        model=rag.model,
        temperature=rag.temperature,
        max_tokens=rag.max_tokens,
        spare_tokens=llm.context_window // 2,
    )


def tried(model: Model, prompt: Prompt, clock: Callable[[], float]) -> ModelTrial:
    """Ask *model* once, streamed; *clock* gives seconds that never go back."""
    began = clock()
    texts: list[str] = []
    first_s = 0.0
    ending = Ending(None)
    for piece in model.generate(prompt, is_streamed=True):
        if isinstance(piece, TextChunk) and piece.wait_s is None:
            first_s = first_s or clock() - began
            texts.append(piece.text)
        elif isinstance(piece, Ending):
            ending = piece
    text = "".join(texts)
    return ModelTrial(
        prompt,
        ending.failure,
        first_s,
        clock() - began,
        len(texts),
        is_right=EXPECTED in text,
        is_cited="[1]" in text or f"[{DOCUMENTS[0][0]}]" in text,
        is_in_language=detect(text) == LANGUAGE,
        is_cut=ending.finish_reason == "length",
        facts=ending.facts,
    )


MAX_TOKENS = 30
"""Most tokens that are tried one by one; each is two searches."""


@dataclass(frozen=True, slots=True)
class TokenEffect:
    """What one of a user's tokens does: how many documents they see by it alone, and how many it hides from them."""

    token: str
    opens: int
    hides: int


@dataclass(frozen=True, slots=True)
class Visibility:
    """
    How many documents a user sees: *public* of them without a token.

    *tokens* is how many they have; *effects* are those of the first `MAX_TOKENS` that do anything.
    """

    documents: int
    public: int
    tokens: int
    effects: tuple[TokenEffect, ...]


@dataclass(frozen=True, slots=True)
class Reason:
    """
    Whether a user sees one document, and why.

    *decisive* are the tokens without which it would be the other way round: without one of them they would not see it,
    or would, because the document denies it. *is_public*: anybody sees it.
    """

    is_seen: bool
    is_public: bool
    decisive: tuple[str, ...]


def visibility_of(user: User, settings: Settings, dependencies: Dependencies) -> Visibility:
    """Return what *user* sees. Raises: SearchError, NotAuthenticated."""

    def count(tokens: frozenset[str]) -> int:
        return int(
            _part(
                browse(Browse(None, rows=0), _with(user, tokens), settings=settings, dependencies=dependencies),
                "response",
            )["numFound"]
        )

    all_seen, public = count(user.tokens), count(frozenset())
    tried = sorted(user.tokens)[:MAX_TOKENS]
    effects = (
        TokenEffect(token, count(frozenset({token})) - public, max(0, count(user.tokens - {token}) - all_seen))
        for token in tried
    )
    return Visibility(all_seen, public, len(user.tokens), tuple(row for row in effects if row.opens or row.hides))


def reason_for(document_id: str, user: User, security: SecuritySettings, dependencies: Dependencies) -> Reason:
    """Return whether *user* sees a document, and by which tokens. Raises: SearchError, NotAuthenticated."""

    def is_seen(tokens: frozenset[str]) -> bool:
        reader = _with(user, tokens)
        return any(
            fetch(document_id, field, reader, security=security, dependencies=dependencies) is not None
            for field in ("exactContent", "preview_content")
        )

    is_visible = is_seen(user.tokens)
    tried = sorted(user.tokens)[:MAX_TOKENS]
    decisive = tuple(token for token in tried if is_seen(user.tokens - {token}) is not is_visible)
    return Reason(is_visible, is_public=is_seen(frozenset()), decisive=decisive)


def newest_date(user: User, settings: Settings, dependencies: Dependencies) -> str | None:
    """Return the newest `last_modified` that *user* sees, None when there is none. Raises: SearchError."""
    search = Browse(None, rows=1, sort=("last_modified", True), fields=("id", "last_modified"))
    page = browse(search, user, settings=settings, dependencies=dependencies)
    rows = _part(page, "response").get("docs") or ()
    value = rows[0].get("last_modified") if rows and isinstance(rows[0], Mapping) else None
    return str(value[0] if isinstance(value, list) and value else value) if value else None


def _with(user: User, tokens: frozenset[str]) -> User:
    return replace(user, tokens=tokens)


def _part(page: Mapping[str, object], name: str) -> Mapping[str, Any]:
    part = page[name]
    return part if isinstance(part, Mapping) else {}
