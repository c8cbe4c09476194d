"""
Settings of the second judge: `answer.judge.*`.

Rows only. Without an endpoint there is none, and nothing is sent anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from datafari_rag.core.settings import addresses as addresses
from datafari_rag.core.settings import checks as checks
from datafari_rag.core.settings.answers import AnswerSettings
from datafari_rag.core.settings.row import secret, setting


@dataclass(frozen=True, slots=True, repr=False)
class JudgeSettings(AnswerSettings):
    """Rows of the second judge; a chain, because slotted classes have one base."""

    answer_judge_endpoint: str = setting(
        "answer.judge.endpoint",
        "",
        check=addresses.url(is_optional=True),
        help="URL of a second judge, which is sent the claims that comparing words neither proves nor contradicts, "
        "with the places of the documents that are most like them. Empty: none, and nothing is sent.",
    )
    answer_judge_format: Literal["nli", "lettucedetect"] = setting(
        "answer.judge.format",
        "nli",
        check=checks.choice("nli", "lettucedetect"),
        help="Request format of that endpoint: nli for /predict of Hugging Face text-embeddings-inference with a "
        "model that says entailment, neutral or contradiction; lettucedetect for /v1/lettucedetect/spans.",
    )
    answer_judge_token: str = secret(
        "answer.judge.token",
        "",
        check=checks.text(),
        help="Bearer token for the endpoint. Empty: no Authorization header.",
    )
    answer_judge_timeout_s: float = setting(
        "answer.judge.timeout_s",
        2.0,
        check=checks.number(0.05, 60),
        help="Maximum wait for the second judge in one check, in seconds; after that, the comparison of words counts.",
    )
    answer_judge_min_score: float = setting(
        "answer.judge.min_score",
        0.7,
        check=checks.number(0, 1),
        help="Least score, 0 to 1, at which its word counts; with lettucedetect, the least score of a span that "
        "speaks against a claim.",
    )
