"""`POST /grounding/check`: a text against facts, or against documents as its sender may read them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from flask import Response

from datafari_rag.core.access import ANONYMOUS, User
from datafari_rag.core.citations.text_check import checked_against
from datafari_rag.core.documents import Document
from datafari_rag.core.errors import NotAuthenticated
from datafari_rag.core.judging.doubtful_claims import doubtful_claims, judged_again
from datafari_rag.core.query.search_request import STORED
from datafari_rag.core.text.language import detect
from datafari_rag.pipeline import fetch
from datafari_rag.protocols import grounding
from datafari_rag.protocols.grounding import Found
from datafari_rag.protocols.questionless import Questionless
from datafari_rag.web.api.exchange import DialectRoute, Exchange, WorkerContext, exchanged
from datafari_rag.web.json_bytes import NDJSON, plain
from datafari_rag.web.request_values import whole_request
from datafari_rag.web.responses import json_response
from datafari_rag.web.runtime import ServiceSnapshot

PATH = "/grounding/check"
TAKES = frozenset({"json"})

GROUNDING = DialectRoute("grounding", Questionless(grounding.failure), NDJSON)


def check_view(worker: WorkerContext) -> Response:
    """Return what is proved of the text that was sent."""
    return exchanged(Exchange(worker, GROUNDING), lambda: whole_request(TAKES, worker.now()), _checked)


def _checked(exchange: Exchange) -> Response:
    snapshot = exchange.snapshot
    if exchange.user_name is None and snapshot.settings.security_anonymous == "refuse":
        raise NotAuthenticated
    wanted = grounding.parse(exchange.incoming)
    exchange.require_settings()
    # Facts are the sender's own: the sender's rights are looked up only where documents are read.
    user = exchange.user() if wanted.ids else ANONYMOUS
    found = found_for(wanted.candidate, wanted.ids, user, snapshot, wanted.facts)
    if wanted.ids:
        exchange.extracts = found.check.extracts
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
