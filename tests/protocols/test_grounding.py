"""The words of POST /grounding/check: what is taken, what is refused and named, what comes back."""

from __future__ import annotations

import json
from itertools import islice, product
from typing import Any

import pytest

from datafari_rag.core.documents import Document
from datafari_rag.core.errors import BadRequest, RagError, SearchUnavailable
from datafari_rag.core.proof.checking import checked_against
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols.grounding import (
    MAX_ATTRIBUTE_CHARS,
    MAX_FACTS_CHARS,
    GroundingResult,
    failure,
    parse,
    reply,
)
from datafari_rag.protocols.request import Incoming

FERRY = "The ferry leaves at nine. A ticket costs 12 euros. It is sold on deck."


def asked(body: object) -> Any:
    task = parse(Incoming("/grounding/check", body=body))
    return reply(task, GroundingResult(checked_against(task.candidate, task.facts), task.facts))


def with_facts(candidate: str, *texts: str, **more: object) -> Any:
    return asked({"answerCandidate": candidate, "facts": [{"factText": text} for text in texts], **more})


def test_each_sentence_has_its_place_and_its_proof() -> None:
    text = "« The ferry leaves at nine ». A ticket costs 12 euros. The moon is cheese. Here:"
    found = with_facts(text, "Nothing of that.", FERRY)
    assert [one["status"] for one in found["claims"]] == ["verified", "verified", "unsupported", None]
    assert found["supportScore"] == 0.6667
    assert [one["citationIndices"] for one in found["claims"]] == [[0], [1], [], []]
    for one in found["claims"]:
        assert text[one["start"] : one["end"]] == one["claimText"]
        assert text.encode()[one["startPos"] : one["endPos"]].decode() == one["claimText"]
    for chunk in found["citedChunks"]:
        assert chunk["source"] == "1"
        assert FERRY[chunk["start"] : chunk["end"]] == chunk["chunkText"]


def test_a_sentence_that_states_nothing_needs_no_proof() -> None:
    found = with_facts("The document: … [1]", FERRY)
    assert {one["groundingCheckRequired"] for one in found["claims"]} == {False}
    assert {one["status"] for one in found["claims"]} == {None}
    assert (found["supportScore"], found["citedChunks"]) == (None, [])


@pytest.mark.parametrize(
    ("threshold", "scores"),
    [
        pytest.param(None, [1.0, 0.8], id="all proof"),
        pytest.param("0.6", [1.0, 0.8], id="as text"),
        pytest.param(1, [1.0, 0.0], id="whole statements"),
    ],
)
def test_proof_weaker_than_wanted_is_not_cited(threshold: object, scores: list[float]) -> None:
    """A part of a statement is weaker than a whole one."""
    text, fact = "The ferry leaves at nine. The deck is new.", f"{FERRY} The deck is new, and so is the bridge."
    body = {"answerCandidate": text, "facts": [{"factText": fact}], "groundingSpec": {"citationThreshold": threshold}}
    task = parse(Incoming("/grounding/check", body=body))
    check = checked_against(text, task.facts)
    found: Any = reply(task, GroundingResult(check, task.facts))
    assert [one["score"] for one in found["claims"]] == scores
    assert [one["status"] == "unsupported" for one in found["claims"]] == [score == 0 for score in scores]
    assert found["supportScore"] == 0.5


def test_a_place_that_proves_two_sentences_is_one_chunk() -> None:
    found = with_facts("A ticket costs 12 euros. “A ticket costs 12 euros.”", FERRY)
    assert ([one["citationIndices"] for one in found["claims"]], len(found["citedChunks"])) == ([[0], [0]], 1)


def test_what_is_near_has_its_place_and_says_what_differs_and_proves_nothing() -> None:
    found = with_facts(
        "At nine leaves the old ferry for Brest harbour. A ticket costs 12 euros.",
        "The old ferry leaves at nine for Le Conquet, in the harbour of Brest. A ticket costs 12 euros.",
    )
    near, proved = found["claims"]
    assert (near["status"], near["score"], near["citationIndices"], near["nearIndices"]) == ("near", 0.0, [], [0])
    assert (near["missing"], near["added"]) == ([], ["Le", "Conquet"])
    assert "ferry leaves at nine" in found["citedChunks"][0]["chunkText"]
    assert (proved["missing"], proved["nearIndices"], found["supportScore"]) == ([], [], 0.5)


def test_a_reply_stays_in_proportion_to_its_request() -> None:
    """A reply repeats the attributes of a fact at each of its places: it was 318 MB for a request of 0.9 MB."""
    names = ["".join(letters) for letters in islice(product("bdfgklmn", repeat=4), 380)]
    text = " ".join(f"Gate {name} opens beside harbour lamps." for name in names)
    facts = [{"factText": text, "attributes": {"a": "x" * (MAX_ATTRIBUTE_CHARS - 1)}}] * 20
    body = {"answerCandidate": text, "facts": facts}
    found = asked(body)
    assert {len(one["citationIndices"]) for one in found["claims"]} == {3}
    assert len(json.dumps(found)) < 3 * 380 * (MAX_ATTRIBUTE_CHARS + 1000)


def test_documents_are_named_by_their_ids() -> None:
    task = parse(Incoming("", body={"answerCandidate": "A ticket costs 12 euros.", "documentIds": ["gone", "d"]}))
    assert (task.ids, task.facts) == (("gone", "d"), ())
    documents = [Document("d", FERRY, title="Ferry", url="javascript:alert(1)")]
    found: Any = reply(task, GroundingResult(checked_against(task.candidate, documents), documents, ["gone"]))
    assert found["notFound"] == ["gone"]
    (chunk,) = found["citedChunks"]
    assert (chunk["source"], chunk["documentId"], chunk["title"], chunk["uri"]) == ("d", "d", "Ferry", "d")


def test_facts_that_are_too_long_together_are_refused() -> None:
    facts = [{"factText": "x" * (MAX_FACTS_CHARS // 2)}] * 2 + [{"factText": FERRY}]
    with pytest.raises(BadRequest) as raised:
        asked({"answerCandidate": "x", "facts": facts})
    assert raised.value.field == "facts"


@pytest.mark.parametrize(
    ("error", "status"), [(BadRequest(field="facts"), "INVALID_ARGUMENT"), (SearchUnavailable(), "UNAVAILABLE")]
)
def test_an_error_has_googles_shape(error: RagError, status: str) -> None:
    code, body = failure(error, Settings().rag)
    told: Any = json.loads(json.dumps(body))["error"]
    assert (code, told["code"], told["status"], told["label"]) == (error.code, error.code, status, error.label)
    assert told.get("field") == error.field
