"""
The "Datafari External LLM" dialect (Datafari RagAPI): one context, one question; one output. It does not stream.

The conversation, which this API has no place for, is between the instructions and the documents. Takes and gives
plain JSON values; it sends nothing and knows no HTTP.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from datafari_rag.core.errors import ModelGarbled, ModelUnavailable
from datafari_rag.core.events import ModelFacts
from datafari_rag.core.model.prompt import Prompt, document_message
from datafari_rag.core.model.replies import ReplyChunk
from datafari_rag.core.model.servers import PAPERS_FORM, ServerNeeds


def body(prompt: Prompt, is_streamed: bool, needs: ServerNeeds = PAPERS_FORM) -> dict[str, object]:
    """
    Return `{"input": {context, max_tokens, question, temperature[, format]}}`; the answer comes whole in any case.

    The instructions, when the prompt has some, head the context. *max_tokens* and *temperature* are left out where
    the prompt has none; keys of `llm.body` come after them.
    """
    fields: dict[str, object] = {
        "context": "\n".join(_context(prompt)),
        "max_tokens": prompt.max_tokens,
        "question": prompt.question,
        "temperature": prompt.temperature,
        "format": prompt.answer_format,
    }
    return {"input": {**{key: value for key, value in fields.items() if value is not None}, **needs.body}}


def answer(reply: Mapping[str, object]) -> ReplyChunk:
    """Return what a reply says; an empty output with an error's text is a failure of the service."""
    output = reply.get("output")
    if not output and reply.get("error"):
        return ReplyChunk(failure=ModelUnavailable(log="an error in place of an output", status=200))
    if output is not None and not isinstance(output, str):
        return ReplyChunk(failure=ModelGarbled(log="an output that is no text"))
    if output is None and "output" not in reply:
        return ReplyChunk(failure=ModelGarbled(log="a reply without output"))
    metadata = reply.get("metadata")
    run_id = metadata.get("run_id") if isinstance(metadata, Mapping) else None
    model = reply.get("model")
    return ReplyChunk(
        output or "",
        finish_reason="stop",
        facts=ModelFacts(
            name=model if isinstance(model, str) and model else None,
            id=run_id if isinstance(run_id, str) and run_id else None,
        ),
    )


def delta(chunk: Mapping[str, object]) -> ReplyChunk:
    """Return what a chunk says: the API has one for the whole answer, so it is read as one."""
    return answer(chunk)


def _context(prompt: Prompt) -> Iterator[str]:
    if prompt.instructions is not None:
        yield prompt.instructions
    for turn in prompt.history:
        yield f"{turn.role}: {turn.text}"
    for extract in prompt.extracts:
        yield document_message(extract, prompt.nonce)
