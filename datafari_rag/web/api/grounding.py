"""`POST /grounding/check`: a text against facts, or against documents as its sender may read them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from flask import Response, request

from datafari_rag.core.access import ANONYMOUS, User
from datafari_rag.core.citations.text_check import checked_against
from datafari_rag.core.documents import Document
from datafari_rag.core.errors import NotAuthenticated, RagError
from datafari_rag.core.identity import VerifiedIdentity
from datafari_rag.core.judging.doubtful_claims import doubtful_claims, judged_again
from datafari_rag.core.query.search_request import STORED
from datafari_rag.core.query.select_parameters import forged_names
from datafari_rag.core.text.language import detect
from datafari_rag.pipeline import fetch
from datafari_rag.protocols import grounding
from datafari_rag.protocols.grounding import Found, Wanted
from datafari_rag.protocols.questionless import Questionless
from datafari_rag.protocols.request import Incoming
from datafari_rag.web.api.answers import DialectRoute, WorkerContext, failed, identified_by, note_ignored
from datafari_rag.web.json_bytes import NDJSON, plain
from datafari_rag.web.ops.audit import Audited, audit
from datafari_rag.web.request_values import incoming_from, watch_client
from datafari_rag.web.responses import json_response
from datafari_rag.web.runtime import ServiceSnapshot
from datafari_rag.web.user import user_for

log = logging.getLogger(__name__)

PATH = "/grounding/check"


GROUNDING = DialectRoute("grounding", Questionless(grounding.failure), NDJSON)


def check_view(worker: WorkerContext) -> Response:
    """Return what is proved of the text that was sent; counted, limited and audited as an answer is."""
    snapshot = worker.snapshot()
    audited = Audited(worker.now(), worker.new_id(), GROUNDING.name, None)
    try:
        incoming = incoming_from(request, takes=frozenset({"json"}), now_s=worker.now())
        watch_client(request)
        identified = identified_by(worker, snapshot, incoming, request.remote_addr or "")
        audited = Audited(incoming.now_s, worker.new_id(), GROUNDING.name, identified.name)
        note_ignored(worker, forged_names(incoming.query, incoming.body))
        worker.limits.check_user(snapshot.settings, identified.name)
        found, wanted = _found(snapshot, incoming, identified)
    except RagError as error:
        audit(snapshot, audited, error.label)
        return failed(worker, GROUNDING, error, snapshot.settings)
    worker.metrics.count_answer(GROUNDING.name, "ok")
    audit(snapshot, audited, "ok", extracts=found.check.extracts if wanted.ids else ())
    log.info(
        "grounding id=%s claims=%d documents=%d", audited.request_id, len(found.check.stated), len(found.documents)
    )
    return json_response(plain(grounding.reply(wanted, found)))


def found_for(
    text: str, ids: Sequence[str], user: User, snapshot: ServiceSnapshot, facts: Sequence[Document] = ()
) -> Found:
    """
    Return what is proved of *text*; the documents with *ids* are read as *user*, *facts* are the sender's own.

    Raises:
        SearchError: the documents cannot be read.
        NotAuthenticated: no user is signed in and that is required.
    """
    settings, dependencies = snapshot.settings, snapshot.dependencies
    documents, missing = list(facts), list[str]()
    field = STORED[settings.rag_solr_field]
    for one in ids:
        document = fetch(one, field, user, settings=settings, dependencies=dependencies)
        if document is None:
            missing.append(one)
        else:
            documents.append(document)
    prove = partial(checked_against, text, documents, is_cleaned=settings.rag_clean)
    # Each sentence is looked for in each document, however short those are.
    chars = sum(len(one.text) for one in documents) + len(text) * len(documents)
    check = dependencies.offload(prove, chars)
    if dependencies.judge is None:
        return Found(check, documents, missing)
    language = detect(text)
    doubtful = partial(doubtful_claims, check, language, settings.answer_judge_max_claims)
    check, report = judged_again(check, dependencies.offload(doubtful, chars), dependencies.judge, language)
    return Found(check, documents, missing, report)


def _found(snapshot: ServiceSnapshot, incoming: Incoming, identified: VerifiedIdentity) -> tuple[Found, Wanted]:
    if identified.name is None and snapshot.settings.security_anonymous == "refuse":
        raise NotAuthenticated
    wanted = grounding.parse(incoming)
    if snapshot.bad_setting is not None:
        raise snapshot.bad_setting
    # Facts are the sender's own: his rights are looked up only where documents are read.
    user = user_for(identified, snapshot) if wanted.ids else ANONYMOUS
    return found_for(wanted.candidate, wanted.ids, user, snapshot, wanted.facts), wanted
