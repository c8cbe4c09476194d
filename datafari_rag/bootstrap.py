"""Builds the real things out of the settings, and all of them again when the settings change."""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from flask import Flask, request

from datafari_rag import resources
from datafari_rag.adapters.conversation_file import ConversationFile
from datafari_rag.adapters.embedded.retriever import EmbeddedRetriever
from datafari_rag.adapters.identity.factory import DemoIdentity, configured_identity, token_identity_for_agents
from datafari_rag.adapters.machine import MACHINE, Machine
from datafari_rag.adapters.model.chain import ExtractiveModel, ModelChain, chain_for
from datafari_rag.adapters.observability.audit_trail import AuditTrail
from datafari_rag.adapters.private_files import made_private
from datafari_rag.adapters.reranker import EndpointReranker
from datafari_rag.adapters.rights import UNWATCHED, RevocationFile, RightsWatch, rights_source
from datafari_rag.adapters.settings.file import SettingsFile, SettingsSnapshot
from datafari_rag.adapters.solr import factory
from datafari_rag.adapters.token_counters import EstimatedTokens
from datafari_rag.adapters.usage_file import UsageFile
from datafari_rag.adapters.vectors.factory import meaning_for
from datafari_rag.adapters.worker_thread import Indexes, offload_for_worker, side_by_side
from datafari_rag.core.answer.audit_record import AuditKey
from datafari_rag.core.answer.conversations import ConversationLimits
from datafari_rag.core.settings.addresses import EMBEDDED
from datafari_rag.core.settings.table import (
    ChatSettings,
    LimitsSettings,
    SecuritySettings,
    Settings,
    SolrLimits,
)
from datafari_rag.engine_writer import writer_for as writer_for
from datafari_rag.extras import command_for
from datafari_rag.ingest.page_pictures import PagePictures
from datafari_rag.ports import Identity, Offload, Retriever, RightsSource, in_turn, inline
from datafari_rag.retrieval import Dependencies
from datafari_rag.web.app import Probes, register
from datafari_rag.web.ops.probes import PROBES
from datafari_rag.web.ops.request_context import caller, carrying, outgoing, request_id
from datafari_rag.web.pages import demo
from datafari_rag.web.runtime import ServiceSnapshot
from datafari_rag.web.user import Signer

if TYPE_CHECKING:
    from datafari_rag.adapters.observability.tracing import Tracing

log = logging.getLogger(__name__)

TEMPLATES = Path(resources.__file__).parent / "templates"

SPAN_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


class Runtime:
    """
    The running service of one process (`web.runtime.Service`): snapshots of the settings and the parts built from them.

    A changed settings file builds everything anew. Requests that began before it keep what they have: its connections
    are closed when the last of them lets go of it, and a store opens its file once more for those that still write.
    """

    def __init__(
        self,
        file: SettingsFile,
        signer: Signer,
        *,
        tracing: Tracing | None = None,
        machine: Machine = MACHINE,
    ) -> None:
        """Build nothing yet; *tracing* makes spans of outgoing requests."""
        self._file = file
        self._signer = signer
        self._machine = machine
        self._tracing = tracing
        self.note_rights_age: Callable[[float], None] = lambda age_s: None
        """Receives the age of the rights of each request; the metrics set it."""
        self._aside = offload_for_worker(lambda: file.snapshot().settings.server.limits.work_s, caller)
        # Where no file is set, this server's workers share one until it stops.
        shared = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
        self._own_revocations = RevocationFile(Path(shared) / "revocations" if shared else None)
        self._draw_page = PagePictures()
        self._built: tuple[SettingsSnapshot, ServiceSnapshot] | None = None
        self._audit: AuditTrail | None = None
        self._stores: tuple[UsageFile | ConversationFile | None, ...] = ()
        self._probes = Probes(self._probed, machine.wall)

    @property
    def clock(self) -> Callable[[], float]:
        """Seconds since the epoch."""
        return self._machine.wall

    @property
    def signer(self) -> Signer:
        """What signs forms and cookies of this worker."""
        return self._signer

    def snapshot(self) -> ServiceSnapshot:
        """Return the present snapshot with all that was built from it."""
        snapshot, before = self._file.snapshot(), self._built
        if before is not None and before[0] is snapshot:
            return before[1]
        built, tracing = self._build(snapshot), self._tracing
        if tracing is not None:
            # Spans around what is asked of others.
            parts = built.dependencies
            model, retriever = tracing.model(parts.model), tracing.retriever(parts.retriever)
            parts = dataclasses.replace(parts, retriever=retriever, model=model)
            built = dataclasses.replace(built, dependencies=parts, rights=tracing.rights(built.rights), relay=model)
        self._built = (snapshot, built)
        return self._built[1]

    def problems(self) -> Sequence[Mapping[str, object]]:
        """Return what keeps questions from being answered as they should now: settings, search engine, rights."""
        return self._wrong(self._file.problem(), is_needed=True)

    def weaknesses(self) -> Sequence[Mapping[str, object]]:
        """Return what is wrong while answers go on: a rejected file, the search by meaning, stored conversations."""
        return self._wrong(self._file.rejected, is_needed=False)

    def _wrong(self, settings: str | None, *, is_needed: bool) -> Sequence[Mapping[str, object]]:
        """Return what is wrong with the *settings*, and with the parts that are needed, or are not."""
        sent, service = self._probes.problems(), self.snapshot()
        found = {"settings": settings}
        for row in PROBES:
            if row.is_needed is is_needed and (part := row.of(service)) is not None:
                found[row.what] = sent.get(row.what) if row.sends else row.problem(part)
        return [{"what": what, "problem": problem} for what, problem in found.items() if problem]

    def _probed(self) -> Mapping[str, str | None]:
        """Return what those say that have to be sent a request for it."""
        parts = ((row, row.of(self.snapshot())) for row in PROBES if row.sends)
        return {row.what: row.problem(part) for row, part in parts if part is not None}

    def rejected_settings(self) -> str | None:
        """Return why the settings file is not used as it is now, while the settings before it answer; else None."""
        return self._file.rejected

    def _build(self, snapshot: SettingsSnapshot) -> ServiceSnapshot:
        settings, machine = snapshot.settings, self._machine
        chat, security = settings.chat, settings.security
        model = model_for(settings, self._aside, machine)
        retriever = retriever_for(settings, self._aside, machine)
        dependencies = Dependencies(
            retriever=retriever,
            indexes=retriever.others if isinstance(retriever, Indexes) else {},
            apart=frozenset(name for name, url in settings.openai.indexes.items() if url),
            meaning=None if settings.retrieval.method == "bm25" else meaning_for(settings, retriever),
            both=in_turn if settings.solr.url.startswith(EMBEDDED) else side_by_side,
            model=model,
            counter=EstimatedTokens(),
            instructions=snapshot.instructions,
            new_nonce=machine.nonce,
            clock=machine.monotonic,
            endpoint=host_of(settings.rag.api_endpoint),
            offload=self._aside,
            reranker=EndpointReranker(settings.rerank, settings.tls.rerank, machine.monotonic)
            if settings.rerank.endpoint
            else None,
            draw_page=self._draw_page,
        )
        # What was revoked in this process stays so, whatever else the file says.
        file = security.revocations_file
        revocations = RevocationFile(Path(file)) if file else self._own_revocations
        watch = RightsWatch(lambda name: revocations.latest(name).serial, lambda age_s: self.note_rights_age(age_s))
        # What waits for a full disk must not be lost with the settings of yesterday: the trail of one folder goes on.
        goes_on = self._built is not None and self._built[0].settings.audit == settings.audit
        audit = self._audit
        if not goes_on:
            signing = AuditKey(settings.audit.key[0]) if settings.audit.key else None
            folder = settings.audit.folder
            audit = AuditTrail(Path(folder), machine, signing=signing) if folder else None
        for store in (*self._stores, None if goes_on else self._audit):
            if store is not None:
                store.close()
        usage, conversations = usage_for(settings.limits, machine), conversations_for(chat, machine)
        self._audit, self._stores = audit, (usage, conversations)
        identity = identity_for(settings, self._signer)
        return ServiceSnapshot(
            settings=settings,
            dependencies=dependencies,
            written=snapshot.written,
            identity=identity,
            rights=rights_for(security, settings.solr.limits, watch, machine),
            relay=model,
            bad_setting=snapshot.bad_setting,
            audit=audit,
            # At /mcp a token must be made for it; None if the required name is unknown.
            agent_identity=token_identity_for_agents(settings) if security.identity == "jwt" else identity,
            extractive=ExtractiveModel(self._aside),
            revocations=revocations,
            usage=usage,
            conversations=conversations,
        )


class Application(Flask):
    """The Flask application, with the calls that a server makes besides requests."""

    def __init__(self, file: SettingsFile, machine: Machine = MACHINE) -> None:
        """
        Build everything for the settings of *file*.

        Raises:
            StartRefused: a `server.*`, `solr.*` or `security.*` value cannot be used (contract §8).
        """
        super().__init__(__name__, static_folder=None, template_folder=str(TEMPLATES))
        file.snapshot().require()
        self._file = file
        settings = file.snapshot().settings
        signer, tracing = Signer(settings.server.secret), tracing_for()
        self.runtime = Runtime(file, signer, tracing=tracing, machine=machine)
        used = self.runtime.snapshot().settings
        if used.security.mode == "none":
            log.warning("SECURITY IS OFF: security.mode=none shows every document to everyone")
        for server in ("solr", "llm", "embeddings", "rerank"):
            if not getattr(used.tls, server).is_checked:
                log.warning("tls: verify is false for %s: the certificate of this server is NOT checked", server)
        self.worker = register(self, self.runtime, signer)
        self.runtime.note_rights_age = self.worker.metrics.freshness.note_rights_age
        if tracing is None:
            return
        # A span of each request, named by its route, with how its answer ended.
        from datafari_rag.adapters.observability.tracing import answered, named

        self.wsgi_app = tracing.wrapped(self.wsgi_app)  # type: ignore[method-assign, assignment] # Flask's own way to wrap
        self.worker.metrics.listen(answered)

        @self.before_request
        def name() -> None:
            named(request.url_rule.rule if request.url_rule is not None else "", request_id())

    def reload(self) -> None:
        """Read the settings now (SIGHUP)."""
        self._file.reload()

    def stop(self) -> None:
        """Refuse new streams and say so in readiness; open ones go on."""
        self.worker.streams.is_closing = True


def create_app(conf: str | Path | None = None, overrides: Mapping[str, str] | None = None) -> Application:
    """
    Return the application for the properties file *conf*; *overrides* (key → text) win over it.

    Raises:
        StartRefused: as `Application`.
    """
    return Application(SettingsFile(conf, overrides=overrides))


def retriever_for(settings: Settings, offload: Offload = inline, machine: Machine = MACHINE) -> Retriever:
    """Return the search engine of `solr.url`, and of every further index of `openai.indexes`."""

    def engine(url: str) -> Retriever:
        if url.startswith(EMBEDDED):
            folder = Path(url.removeprefix(EMBEDDED))
            if folder.is_dir():  # before the first search, which may be long after the start
                made_private(folder)
            return EmbeddedRetriever(folder)
        return factory.retriever_for(settings, url=url, headers=outgoing, offload=offload, machine=machine)

    main = engine(settings.solr.url)
    others = {name: engine(url) if url else main for name, url in settings.openai.indexes.items()}
    return Indexes(main, others) if any(settings.openai.indexes.values()) else main


def model_for(settings: Settings, offload: Offload = inline, machine: Machine = MACHINE) -> ModelChain:
    """Return what answers: `rag.api.endpoint`, then the fallbacks in order; long work is done *offload*."""
    extractive = ExtractiveModel(offload)
    return chain_for(settings.rag, settings.llm, settings.tls.llm, extractive, headers=outgoing, machine=machine)


def identity_for(settings: Settings, signer: Signer) -> Identity:
    """Return the identification of users; in the demo also by the cookie that *signer* signed for the menu."""
    proved = configured_identity(settings)
    if settings.security.identity != "demo":
        return proved
    return DemoIdentity(proved, demo.COOKIE, lambda text: signer.opened(demo.PURPOSE, text, max_age_s=demo.LIFE_S))


def rights_for(
    security: SecuritySettings, patience: SolrLimits, watch: RightsWatch = UNWATCHED, machine: Machine = MACHINE
) -> RightsSource:
    """Return where a user's tokens come from; *watch* says when remembered ones count no more."""
    return rights_source(security, patience, headers=outgoing, watch=watch, machine=machine)


def conversations_for(chat: ChatSettings, machine: Machine = MACHINE) -> ConversationFile | None:
    """Return what keeps conversations in `chat.store.folder`, None when none are kept."""
    return ConversationFile(Path(chat.store_folder), ConversationLimits(), machine) if chat.store_folder else None


def usage_for(limits: LimitsSettings, machine: Machine = MACHINE) -> UsageFile | None:
    """Return what counts tokens in `limits.store`, None when they are not counted."""
    return UsageFile(Path(limits.store), machine) if limits.store else None


def is_traced(environ: Mapping[str, str]) -> bool:
    """
    Say whether to make spans: where a variable says to which address, or `otlp` is named as exporter.

    `OTEL_SDK_DISABLED=true` turns them off in any case, and so does another exporter (`none`).
    Source: OpenTelemetry Environment Variable Specification.
    """
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporter = environ.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    is_addressed = exporter == "" and any(environ.get(name, "").strip() for name in SPAN_ENDPOINTS)
    return exporter == "otlp" or is_addressed


def tracing_for() -> Tracing | None:
    """Return what makes spans, None if they are not configured or the library is missing (which is logged)."""
    if not is_traced(os.environ):
        return None
    try:
        # Imported here: the extra `otel` is only needed by those who use it.
        from datafari_rag.adapters.observability.tracing import Tracing
    except ImportError:
        log.error("No spans are made: they need the extra `otel`: %s", command_for("otel"))
        return None
    return Tracing(carrying)


def host_of(url: str) -> str:
    """Return the host of *url*, for logs and administrators: never a path or credentials."""
    return urlsplit(url).hostname or url
