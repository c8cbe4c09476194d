"""What an administrator sees of a server's message: none of the prompt, no key, and never much."""

from __future__ import annotations

import json

import pytest

from datafari_rag.core.errors import ModelError, ModelUnavailable, RagError, Rejection, leaves
from datafari_rag.core.model.servers import ADVICE, MAX_SHOWN_CHARS, advice_for, words_of

PROMPT = "The opening hours of the town hall are from 8 to 12.\nOn Mondays it is closed."


FRENCH = "La mairie\nest fermée le dimanche après-midi."


def said(message: object) -> Rejection:
    return Rejection(400, error={"message": message})


SHOWN = {
    "a message": ("The model `x` does not exist.", "The model `x` does not exist."),
    "line breaks and controls": ("One\r\ntwo\x00three", "One two three"),
    "the whole prompt": (PROMPT, "…"),
    "the prompt in a message": (f"Bad request: {PROMPT} Try again.", "Bad request: … Try again."),
    "a part of the prompt": ("Near 'hours of the town hall are' it failed.", "Near '…' it failed."),
    "the prompt as JSON": (f"Bad: {json.dumps(PROMPT)}", 'Bad: "…"'),
    "the prompt as JSON of ASCII": (f"Bad: {json.dumps(FRENCH)}", 'Bad: "…"'),
    "a short part of the prompt": ("Near 'the town hall' it failed.", "Near 'the town hall' it failed."),
    "a key": ("Incorrect API key provided: sk-1234.", "Incorrect API key provided: …."),
    "a long key, cut": ("Key abcdefghijklmnopqrst is wrong", "Key … is wrong"),
    "no text": (None, ""),
    "a list": (["a"], ""),
}


@pytest.mark.parametrize(("message", "shown"), SHOWN.values(), ids=SHOWN.keys())
def test_what_is_shown_quotes_nothing_that_was_sent(message: object, shown: str) -> None:
    secrets = ("sk-1234", "abcdefghijklmnopqrstuvwxyz")
    assert words_of(said(message), (PROMPT, FRENCH), secrets) == shown


def test_it_is_never_long() -> None:
    shown = words_of(said("x y " * 100_000), (PROMPT,), ())
    assert (len(shown), shown[-1]) == (MAX_SHOWN_CHARS, "…")
    assert words_of(None, (PROMPT,), ()) == ""


def test_a_failure_that_its_log_tells_apart_has_advice_of_its_own() -> None:
    failures = [ModelUnavailable(log=log) for log in ("its certificate is not trusted", "ConnectionRefusedError")]
    assert ["certificate" in advice_for(one) for one in failures] == [True, False]
    assert advice_for(RagError()) == ""


def test_every_failure_of_a_model_has_its_advice() -> None:
    labels = {kind.label for kind in leaves(ModelError)} | {"noAnswer"}
    assert labels == set(ADVICE)
