"""From the settings to the second judge they name, if any."""

from __future__ import annotations

from datafari_rag.adapters.machine import MACHINE, Machine
from datafari_rag.core.judging.second_judge import SecondJudge
from datafari_rag.core.settings.table import Settings


def judge_for(settings: Settings, machine: Machine = MACHINE) -> SecondJudge | None:
    """Return the second judge, None where `answer.judge.endpoint` is empty."""
    if not settings.answer_judge_endpoint:
        return None
    # Imported here: requests takes 4 MB of each worker that needs it for nothing else.
    from datafari_rag.adapters.judge.endpoint import EndpointJudge, JudgeOptions

    options = JudgeOptions(
        format=settings.answer_judge_format,
        token=settings.answer_judge_token,
        timeout_s=settings.answer_judge_timeout_s,
        least_score=settings.answer_judge_min_score,
        tls=settings.tls.judge,
    )
    return EndpointJudge(settings.answer_judge_endpoint, options, clock=machine.monotonic)
