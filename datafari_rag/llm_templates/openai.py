"""
OpenAI chat completions, as Datafari RagAPI sends them too: the body sent, a whole reply read, a chunk of a stream read.

Reads tolerantly: unknown keys, null content, lists of parts, several choices and chunks without choices are no
surprise. Takes and gives plain JSON values; it sends nothing and knows no HTTP.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from datafari_rag.core.errors import ModelGarbled
from datafari_rag.core.events import ModelFacts
from datafari_rag.core.model.prompt import Prompt, document_message
from datafari_rag.core.model.replies import NOTHING_SAID, ReplyChunk, error_object, failure_in
from datafari_rag.core.model.servers import PAPERS_FORM, THINKING_TOKENS, ServerNeeds

_EXTRAS = ("system_fingerprint", "usage", "prompt_filter_results")
_THOUGHTS = frozenset(("reasoning_content", "reasoning"))
"""Of DeepSeek, vLLM, llama.cpp and LiteLLM; of OpenRouter, Ollama and newer vLLM, which sent both for a while."""


def body(prompt: Prompt, is_streamed: bool, needs: ServerNeeds = PAPERS_FORM) -> dict[str, object]:
    """
    Return `{model, messages, temperature, max_tokens[, stream]}`, then keys of `llm.body` and the prompt's sampling.

    Messages: the instructions, the history in order, one message for each document, the question last, word for
    word; *needs* says which of them are one. *model*, *temperature* and *max_tokens* are left out where the prompt has
    none, or the server wants none.
    """
    length = prompt.max_tokens
    if length is not None and needs.thinking != "none" and "max_tokens" not in prompt.chosen:
        # More where the model thinks, the window has room, and no caller chose.
        length += min(prompt.spare_tokens, THINKING_TOKENS)
    fields: dict[str, object] = {
        "model": prompt.model or None,
        "messages": _plain(_messages(prompt)) if needs.is_plain else list(_messages(prompt)),
        "temperature": prompt.temperature if needs.sends_temperature else None,
        needs.length: length,
        "stream": True if is_streamed else None,
    }
    fields = {key: value for key, value in fields.items() if value is not None}
    further = {key: value for key, value in prompt.sampling.items() if key not in _OURS}
    if not is_streamed:
        further.pop("stream_options", None)
    return {**fields, **needs.body, **further}


def answer(reply: Mapping[str, object]) -> ReplyChunk:
    """Return what a whole reply says; of several choices the first."""
    if reply.get("error"):
        return ReplyChunk(failure=failure_in(error_object(reply)))
    choices = reply.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, Mapping) else None
    if not isinstance(first, Mapping) or not isinstance(message, Mapping):
        return ReplyChunk(failure=ModelGarbled(log="a reply without choices"))
    return _chunk_of(reply, first, message)


def delta(chunk: Mapping[str, object]) -> ReplyChunk:
    """Return what one chunk of a stream says; one without choices says nothing but, perhaps, its usage."""
    if chunk.get("error"):
        return ReplyChunk(failure=failure_in(error_object(chunk)))
    choices = chunk.get("choices")
    if not choices:
        return ReplyChunk(facts=_facts(chunk, {})) if "usage" in chunk or choices is not None else NOTHING_SAID
    first = choices[0] if isinstance(choices, list) else None
    if not isinstance(first, Mapping):
        return ReplyChunk(failure=ModelGarbled(log="a chunk whose choices cannot be read"))
    if first.get("index"):
        return NOTHING_SAID  # a choice other than the first was not requested
    piece = first.get("delta")
    piece = piece if isinstance(piece, Mapping) else {}
    content, is_last = piece.get("content"), first.get("finish_reason") or first.get("content_filter_results")
    if isinstance(content, str) and content and not is_last and _THOUGHTS.isdisjoint(piece):
        return ReplyChunk(content)  # most are text and nothing else
    return _chunk_of(chunk, first, piece)


def _chunk_of(reply: Mapping[str, object], choice: Mapping[str, object], message: Mapping[str, object]) -> ReplyChunk:
    finish, content = choice.get("finish_reason"), message.get("content")
    parts = content if isinstance(content, list) else ()
    # Thoughts stand beside the text: in a field of their own, or as parts of the content.
    thoughts = max((len(_text(message[name])) for name in _THOUGHTS & message.keys()), default=0)
    thoughts += sum(len(_text(part.get("thinking"))) for part in parts if isinstance(part, Mapping))
    return ReplyChunk(
        text=_text(content),
        finish_reason=FINISHES.get(finish, finish) if isinstance(finish, str) and finish else None,
        is_declined=bool(message.get("refusal")),
        facts=_facts(reply, choice),
        thought_chars=thoughts,
    )


def _messages(prompt: Prompt) -> Iterator[dict[str, str]]:
    if prompt.instructions is not None:
        yield {"role": "system", "content": prompt.instructions}
    for turn in prompt.history:
        yield {"role": turn.role, "content": turn.text}
    for extract in prompt.extracts:
        yield {"role": "user", "content": document_message(extract, prompt.nonce)}
    yield {"role": "user", "content": prompt.question}


def _plain(messages: Iterator[dict[str, str]]) -> list[dict[str, str]]:
    """
    Return *messages* with user and assistant in turn, the user first; neighbours of one role are one message.

    Instructions are the user's, and so is what the assistant said before any user did: the conversation before that was
    left out.
    """
    joined: list[dict[str, str]] = []
    for message in messages:
        role, text = message["role"], message["content"]
        if role == "assistant" and not joined:
            text = f"assistant: {text}"
        role = role if role == "assistant" and joined else "user"
        if joined and joined[-1]["role"] == role:
            joined[-1]["content"] += f"\n\n{text}"
        else:
            joined.append({"role": role, "content": text})
    return joined


def _text(content: object) -> str:
    """Return the text of a content: itself, the texts of its parts, or nothing."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = (part if isinstance(part, str) else part.get("text") for part in content if isinstance(part, str | Mapping))
    return "".join(part for part in parts if isinstance(part, str))


def _facts(reply: Mapping[str, object], choice: Mapping[str, object]) -> ModelFacts:
    extras = {key: reply[key] for key in _EXTRAS if reply.get(key) is not None}
    if choice.get("content_filter_results") is not None:
        extras["content_filter_results"] = choice["content_filter_results"]
    name, reply_id, created = reply.get("model"), reply.get("id"), reply.get("created")
    return ModelFacts(
        name=name if isinstance(name, str) and name else None,
        id=reply_id if isinstance(reply_id, str) and reply_id else None,
        created=created if isinstance(created, int) else None,
        extras=extras,
    )


_OURS = frozenset({"model", "messages", "temperature", "max_tokens", "max_completion_tokens", "stream"})

FINISHES: Mapping[str, str] = {"max_tokens": "length", "model_length": "length"}
"""Other servers' words for an answer that was cut, next to OpenAI's own."""
