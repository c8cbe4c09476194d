from __future__ import annotations

import re

import pytest

from datafari_rag.core.errors import Internal, ModelBusy, RagError, TooManyValues, leaves

TABLE = {
    "badRequest": {400},
    "contextTooLong": {400},
    "tooManyValues": {400},
    "contentFiltered": {400},
    "notAuthenticated": {401},
    "notAllowed": {403},
    "notFound": {404},
    "methodNotAllowed": {405},
    "unsupportedMediaType": {415},
    "unknownHost": {421},
    "queryTooLong": {413},
    "bodyTooLarge": {413},
    "noQuery": {422},
    "noDocuments": {428},
    "noAnswer": {428},
    "tooManyRequests": {429},
    "budgetSpent": {429},
    "badSetting": {500},
    "searchUnavailable": {502},
    "searchTimeout": {504},
    "authorityUnavailable": {502},
    "authorityTimeout": {504},
    "modelRefused": {502},
    "modelKeyRefused": {502},
    "modelNotFound": {502},
    "modelParameterRefused": {502},
    "modelInputTooLong": {502},
    "modelOutOfCredit": {502},
    "onlyThoughts": {502},
    "thoughtsPassedOn": {502},
    "modelUnavailable": {502},
    "modelGarbled": {502},
    "modelBusy": {503},
    "overloaded": {503},
    "tooMuchWork": {503},
    "conversationsUnavailable": {503},
    "accountsUnavailable": {503},
    "modelTimeout": {504},
    "embeddingsMismatch": {500},
    "embeddingsUnavailable": {502},
    "embeddingsGarbled": {502},
    "embeddingsTimeout": {504},
    "internal": {500},
}


def test_every_row_of_the_table_is_an_error_with_that_code() -> None:
    found: dict[str, set[int]] = {}
    for kind in leaves():
        found.setdefault(kind.label, set()).add(kind.code)

    assert found == TABLE


@pytest.mark.parametrize("kind", leaves(), ids=lambda kind: kind.__name__)
def test_every_failure_has_a_sentence_that_names_no_class(kind: type[RagError]) -> None:
    sentence = kind().reason

    assert sentence.endswith(".")
    assert not re.search(r"Error|Exception|Traceback", sentence)


def test_what_may_be_logged_is_not_what_is_shown() -> None:
    error = ModelBusy(retry_after_s=3, log="503 from model.example")

    assert "model.example" not in str(error)
    assert error.retry_after_s == 3


def test_an_internal_error_names_its_place_in_the_log() -> None:
    assert "abc" in Internal.with_id("abc").reason


def test_too_many_values_name_the_parameter_and_the_limit() -> None:
    error = TooManyValues.of("fl", 100)

    assert (error.reason, error.field) == ("Too many values of fl: at most 100.", "fl")
