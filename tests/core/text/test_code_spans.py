"""Code in Markdown: fences, spans between backticks, and what wins where both begin."""

from __future__ import annotations

import pytest

from datafari_rag.core.text.sentences import code_spans


def code_in(text: str) -> list[str]:
    return [text[start:end] for start, end in code_spans(text)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("plain", []),
        ("a `b` c `d`", ["`b`", "`d`"]),
        ("a `b", []),
        ("``a ` b``", ["``a ` b``"]),
        ("a ```b` c", ["`b`"]),
        ("a `b\n\nc` d", []),
        ("a\n```python\nb\n```\nc", ["```python\nb\n```"]),
        ("~~~\na\n~~~~\nb", ["~~~\na\n~~~~"]),
        ("```\na", ["```\na"]),
        ("~~~~x\na\n~~~\nb\n~~~~\nc", ["~~~~x\na\n~~~\nb\n~~~~"]),
        ("`a`\n~~~\n`b`\n~~~\n`c`", ["`a`", "~~~\n`b`\n~~~", "`c`"]),
    ],
)
def test_code(text: str, code: list[str]) -> None:
    assert code_in(text) == code


def test_a_fence_inside_a_span_opens_nothing() -> None:
    assert code_in("`a\n~~~\nb` c\n\nd `e`") == ["`a\n~~~\nb`", "`e`"]


def test_a_fence_inside_a_span_leaves_the_next_one_alone() -> None:
    assert code_in("`a\n~~~x\nb`\n~~~y\nc\n~~~\nd") == ["`a\n~~~x\nb`", "~~~y\nc\n~~~"]
