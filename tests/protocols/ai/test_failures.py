"""Every failure, as Datafari 7 names it."""

from __future__ import annotations

import pytest

from datafari_rag.core.errors import (
    BadRequest,
    ModelBusy,
    NoAnswer,
    NoDocuments,
    NoQuery,
    NotAuthenticated,
    NotFound,
    RagError,
    RefusedByModel,
    SearchUnavailable,
)
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.whole import EmptyDocument
from datafari_rag.protocols.ai import ACTIONS

SETTINGS = Settings()


@pytest.mark.parametrize(
    ("action", "error", "status", "code", "label"),
    [
        ("rag", NoDocuments(), 200, "428", "ragNoFileFound"),
        ("rag", NotFound(), 200, "428", "ragFileNotFound"),
        ("rag", NoAnswer(), 200, "428", "ragNoValidAnswer"),
        ("rag", NoQuery(), 400, "400", "aiBadRequest"),
        ("rag", RefusedByModel(), 200, "400", "ragTechnicalError"),
        ("rag", NotAuthenticated(), 401, "401", "ragTechnicalError"),
        ("agentic", ModelBusy(), 200, "503", "agenticTechnicalError"),
        ("summarize", NotFound(), 200, "422", "summarizationNoFileFound"),
        ("summarize", EmptyDocument(), 200, "422", "summarizationEmptyFile"),
        ("synthesize", EmptyDocument(), 200, "422", "synthesisNoFileContent"),
        ("search", SearchUnavailable(), 200, "502", "aiTechnicalError"),
        ("search", BadRequest(), 400, "400", "aiBadRequest"),
    ],
    ids=str,
)
def test_a_failure_has_its_label_and_says_what_it_was(
    action: str, error: RagError, status: int, code: str, label: str
) -> None:
    got, body = ACTIONS[action].failure(error, SETTINGS.rag)
    content = body["content"]
    assert isinstance(content, dict)
    told = content["error"]
    assert (got, body["status"], told["code"], told["label"]) == (status, "ERROR", code, label)
    assert (told["cause"], told["reason"]) == (error.label, error.reason)
    assert content["message"] == told["message"]
