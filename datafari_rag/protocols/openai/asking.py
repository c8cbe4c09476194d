"""A conversation of /v1 into an ask with its token budget, or into the task of a chat program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from datafari_rag.core.answer import prompt as token_budget
from datafari_rag.core.ask import MAX_QUESTION_CHARS, Ask, ChatMessage, TokenBudget
from datafari_rag.core.errors import QueryTooLong
from datafari_rag.core.query import conversation
from datafari_rag.core.query.chat_overrides import OF_SEARCH as OVERRIDDEN
from datafari_rag.core.query.chat_overrides import searching
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols.openai.completion_request import OwnParameters, Parameters
from datafari_rag.protocols.openai.task_prompts import task_of
from datafari_rag.protocols.request import Incoming, Task

Said = tuple[str, tuple[ChatMessage, ...]]
"""The question, and the turns before it."""


def ask_from(
    said: Said, parameters: Parameters, own: OwnParameters, *, incoming: Incoming, settings: Settings
) -> Ask | Task:
    """
    Return the ask, or the task where a program wrote the question.

    Raises:
        ContextTooLong, QueryTooLong: the conversation does not fit the window; the question is over the limit.
    """
    question, history = said
    row = task_of(question, history)
    if row is None:
        return _ask(said, parameters, own, incoming=incoming, settings=settings)
    ask = Ask(
        question=question,
        history=history,
        model=parameters.model,
        is_streamed=own.is_streamed,
        temperature=own.temperature,
        max_tokens=own.max_tokens,
        sampling=own.sampling,
        ignored=own.ignored,
    )
    return Task(ask, row.answer)


STEPS = tuple(name for name in OVERRIDDEN if name != "max_tokens")
"""What a body may say of search in steps; `max_tokens` bounds the answer here, as everywhere on /v1."""


def stepping(read: Ask | Task, body: Mapping[str, object], settings: Settings) -> Ask | Task:
    """Return *read* with the effort and the limits that *body* names. Raises: BadRequest."""
    return read if isinstance(read, Task) else searching(read, body, settings, names=STEPS)


def styled(read: Ask | Task, style: object) -> Ask | Task:
    """Return *read* with what its dialect reads again when it spells the answer."""
    if isinstance(read, Task):
        return replace(read, ask=replace(read.ask, reply_as=style))
    return replace(read, reply_as=style)


def _ask(
    said: Said,
    parameters: Parameters,
    own: OwnParameters,
    *,
    incoming: Incoming,
    settings: Settings,
) -> Ask:
    """Return the ask with its token budget, after the window was checked."""
    question, history = said
    tokens = incoming.count_tokens("\n\n".join([*(turn.text for turn in history), question]))
    is_estimated = settings.token_counter == token_budget.ESTIMATE
    window = token_budget.Window(settings.llm_context_window, settings.openai_limits.reserve_tokens, is_estimated)
    token_budget.checked(tokens, window)
    if len(question) > MAX_QUESTION_CHARS:
        raise QueryTooLong(field="messages")
    max_tokens = token_budget.clamped(own.max_tokens, tokens, window)
    ask = Ask(
        question=question,
        history=history,
        earlier_text=conversation.earlier_text(history),
        accept_language=incoming.headers.get("accept-language"),
        index=parameters.index,
        model=parameters.model,
        is_streamed=own.is_streamed,
        temperature=own.temperature,
        max_tokens=max_tokens,
        # A model of this service reads the same fields as in every other dialect, so that it gives the same answers.
        token_budget=None if parameters.is_plain else _budget(parameters, settings, window, (tokens, max_tokens)),
        max_documents=settings.openai_limits.files or None if parameters.is_plain else None,
        has_whole_history=True,
        sampling=own.sampling,
        ignored=own.ignored,
    )
    return ask if max_tokens == own.max_tokens else _warned(ask, own.max_tokens)


def _budget(
    parameters: Parameters, settings: Settings, window: token_budget.Window, taken: tuple[int, int | None]
) -> TokenBudget:
    """Return KAITO's budget; *taken* are the tokens of the conversation and `max_tokens`."""
    said, max_tokens = taken
    return TokenBudget(
        token_budget.for_documents(window, said=said, max_tokens=max_tokens, ratio=parameters.ratio),
        settings.openai_limits.node_tokens,
        settings.rag_max_files if settings.openai_limits.files is None else settings.openai_limits.files,
    )


def _warned(ask: Ask, wanted: int | None) -> Ask:
    lowered = f"max_tokens ({wanted}) is greater than what the window has left. Setting to {ask.max_tokens}."
    return replace(ask, warnings=(lowered,))
