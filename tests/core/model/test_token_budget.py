"""The arithmetic of KAITO's RAG service, with its own numbers."""

from __future__ import annotations

import pytest

from datafari_rag.core.errors import ContextTooLong
from datafari_rag.core.model.prompt import Window, checked, clamped, for_documents


def test_the_seeds_example_leaves_600_tokens_for_documents() -> None:
    window = Window(8192, reserved=150)
    assert checked(500, window) == 7692
    assert clamped(1000, 500, window) == 1000
    assert for_documents(window, prompt_tokens=500, max_tokens=1000, ratio=0.6) == 600


def test_excessive_max_tokens_are_lowered_to_what_the_seed_says() -> None:
    assert clamped(8000, 500, Window(8192)) == 7692


@pytest.mark.parametrize(
    ("said", "max_tokens", "ratio", "expected"),
    [
        pytest.param(500, None, 0.5, 3771, id="without max_tokens the window decides"),
        pytest.param(500, 100, 0.5, 50, id="small max_tokens decide"),
        pytest.param(500, 7692, 0.8, 6033, id="the reserve counts where the window decides"),
        pytest.param(8100, None, 0.8, 0, id="no room left is no documents"),
        pytest.param(8192, None, 0.2, 0, id="a full window is no documents, never a negative number"),
        pytest.param(0, 1, 0.5, 0, id="a share below one token is none"),
        pytest.param(0, 1000, 0.29, 290, id="a share is not lost to binary fractions"),
    ],
)
def test_documents_get_their_share(said: int, max_tokens: int | None, ratio: float, expected: int) -> None:
    assert for_documents(Window(8192), prompt_tokens=said, max_tokens=max_tokens, ratio=ratio) == expected


def test_absent_max_tokens_stay_absent() -> None:
    assert clamped(None, 500, Window(8192)) is None


def test_an_estimate_refuses_only_what_is_sure_not_to_fit() -> None:
    assert checked(16_384, Window(8192)) == 0
    with pytest.raises(ContextTooLong, match=r"^Prompt length exceeds context window\.$"):
        checked(16_385, Window(8192))


def test_an_answer_has_one_token_at_least() -> None:
    assert clamped(100, 9000, Window(8192)) == 1
