"""
The chat protocols: that of RAG chats, with or without choices (`/chat`, `/ask`), and the AI Chat Protocol of the
published client (`@microsoft/ai-chat-protocol`: `/api/chat`).

They read one request and say one context; a row for each says what is around it. Null is the same as absent, unknown
keys never fail, and what does not fit is named in the error. Nothing that is sent can widen rights.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta, Struct, inspect

from datafari_rag.core.answer import conversations
from datafari_rag.core.ask import (
    MAX_QUESTION_CHARS,
    MAX_WHOLE,
    Ask,
    ChatMessage,
    MaxCount,
    MaxSearches,
    MaxSeconds,
    Restriction,
    StepLimits,
    WantedEffort,
    effort_of,
)
from datafari_rag.core.errors import BadRequest, NoAnswer, NoDocuments, NoQuery, QueryTooLong, RagError
from datafari_rag.core.events import Answer, Delta, Event, Finished, ModelFacts, Sources
from datafari_rag.core.model.prompt import Window, checked
from datafari_rag.core.query.plan import within
from datafari_rag.core.search_request import CATEGORY_FIELD
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from datafari_rag.core.settings.table import ChatSettings, LlmSettings, OpenaiSettings, RagSettings, Settings
from datafari_rag.core.text.language import language_code
from datafari_rag.protocols.chat_reply_parts import (
    Json,
    closing_context,
    completion_head,
    fitted_context,
    is_state_issued,
    memory_limits,
    opening_context,
    session_state,
    status_of,
)
from datafari_rag.protocols.records import DocumentIds, about, distinct, read, text_at, unknown_names
from datafari_rag.protocols.request import Incoming, ReplyContext

MAX_MESSAGES = 1000
"""Most messages of one conversation; what goes to the model is bounded in tokens besides."""

STATE_KEYS = ("session_state", "sessionState")
"""Both spellings are read on every path (the protocol's own pages disagree)."""

MAX_STATE_BYTES = 65_536
"""Largest session state of a client: it is in the first line of a stream, together with the context."""

_STATE_FRAME_BYTES = 100

HISTORY_SHARE = 4
"""History gets at most this part of the model's window, so that documents always have room."""

COPIED = ("system_fingerprint", "usage", "prompt_filter_results")
"""Keys of the model's reply that a reply with choices copies at the top."""

_PATH = "context.overrides"
_LANGUAGE = r"^(\s*[A-Za-z]{2,3}([-_][A-Za-z0-9]{1,8}){0,3}\s*)?$"
_PLANS = "In use where effort is more than none: a limit of the steps before the answer; the settings have theirs."

Category = Annotated[str, Meta(max_length=200)]


class SearchSteps(Struct, frozen=True, kw_only=True):
    """What is searched, and in how many steps, for every dialect with a JSON body of its own; null is absent."""

    documents: Annotated[
        DocumentIds | None,
        about("In use: only these documents are searched; none where the list is empty.", extra={"field": "documents"}),
    ] = None
    effort: Annotated[
        WantedEffort | Literal[""] | None,
        about("In use: in how many steps is searched, and who plans them; medium is as low."),
    ] = None
    max_searches: Annotated[MaxSearches | None, about(_PLANS)] = None
    max_model_calls: Annotated[MaxCount | None, about(_PLANS)] = None
    max_seconds: Annotated[MaxSeconds | None, about(_PLANS)] = None

    @property
    def basket(self) -> tuple[str, ...] | None:
        """The ids of the only documents that may be found; None for any."""
        return None if self.documents is None else distinct(self.documents)

    def limits(self, tokens: int | None = None) -> StepLimits:
        """Return what the caller allows for the steps; *tokens* where the dialect reads them too."""
        return StepLimits(self.max_searches, self.max_model_calls, tokens, self.max_seconds)


class Overrides(SearchSteps, frozen=True, kw_only=True):
    """What a request may decide of its answer."""

    max_tokens: Annotated[MaxCount | None, about(_PLANS)] = None
    top: Annotated[
        Annotated[int, Meta(ge=1)] | None, about("In use: the maximum number of documents for this answer.")
    ] = None
    temperature: Annotated[Annotated[float, Meta(ge=0, le=2)] | None, about("In use: the model's temperature.")] = None
    semantic_captions: Annotated[bool | None, about("In use: the model sees highlighted snippets.")] = None
    suggest_followup_questions: Annotated[bool | None, about("In use: follow-up questions.")] = None
    minimum_search_score: Annotated[
        Annotated[float, Meta(ge=0)] | None, about("In use for administrators: weaker hits are dropped (BM25).")
    ] = None
    include_category: Annotated[Category | None, about("In use: only this category.")] = None
    exclude_category: Annotated[Category | None, about("In use: not this category.")] = None
    language: Annotated[
        Annotated[str, Meta(pattern=_LANGUAGE, extra={"must": "a language code such as en or fr"})] | None,
        about("In use: the language of the answer."),
    ] = None
    seed: Annotated[Annotated[int, Meta(ge=-MAX_WHOLE, le=MAX_WHOLE)] | None, about("In use: sent to the model.")] = (
        None
    )


_RIGHTS = "The user's rights always apply, whatever is sent; this cannot widen them."
_VECTORS = "Not in use here: the settings decide which vectors are compared."
_IMAGES = "Not in use here: only the text of documents is used."
_AGENTS = "Not in use here: only this service's own index is searched; effort says in how many steps."
_PROMPT = "Not in use here: the instructions are the service's own."

IGNORED: Mapping[str, str] = {
    "retrieval_mode": "Not in use here: the settings decide how documents are found; X-RAG-Retrieval says it.",
    "semantic_ranker": "Not in use here: documents are ranked by BM25.",
    "minimum_reranker_score": "Not in use here: results are not reranked.",
    "query_rewriting": "Decided by chat.query.rewriting.enabled, not by the request.",
    "reasoning_effort": "Not in use here: the model's own default is used.",
    "send_text_sources": "Not in use here: the text of the documents is always sent.",
    **dict.fromkeys(("use_oid_security_filter", "use_groups_security_filter"), _RIGHTS),
    **dict.fromkeys(("vector_fields", "search_text_embeddings"), _VECTORS),
    **dict.fromkeys(("prompt_template", "prompt_template_prefix", "prompt_template_suffix"), _PROMPT),
    **dict.fromkeys(("use_gpt4v", "gpt4v_input", "send_image_sources", "search_image_embeddings"), _IMAGES),
    **dict.fromkeys(("use_agentic_retrieval", "use_agentic_knowledgebase", "retrieval_reasoning_effort"), _AGENTS),
    **dict.fromkeys(("results_merge_strategy", "use_web_source", "use_sharepoint_source"), _AGENTS),
}
"""Overrides of other services of these protocols, which change nothing here whatever they say, and why."""

SENTENCES: Mapping[str, str] = {
    **{
        field.encode_name: field.type.extra_json_schema["description"]
        for field in inspect.type_info(Overrides).fields  # type: ignore[attr-defined]  # a record's are there
    },
    **IGNORED,
}
"""What the thoughts say of each override that was sent."""

_OF_MODEL = ("temperature", "suggest_followup_questions", "language", "seed")
_WHOLE = ("max_searches", "max_model_calls", "max_tokens", "top", "seed")
"""Whole numbers of the overrides; of a body with steps alone the first two."""

Steps = TypeVar("Steps", bound=SearchSteps)


class SentMessage(Struct, frozen=True):
    """One message of a conversation."""

    role: Annotated[Literal["user", "assistant", "system"], about("Who wrote it; what the system wrote is left out.")]
    content: Annotated[str, about("What was written, as plain text.")]


class ChatContext(Struct, frozen=True):
    """What a request changes for its answer."""

    overrides: Annotated[
        Annotated[dict[str, Any], Meta(extra_json_schema={"$ref": "#/components/schemas/Overrides"})] | None,
        about("What a request may decide of its answer; what is not in use here is named in the first thought."),
    ] = None


class ChatRequest(Struct, frozen=True, rename={"later_state": "sessionState"}):
    """A request of the chat protocols; null is absent, and other names are ignored."""

    messages: Annotated[
        list[SentMessage],
        about(
            f"The last message is the user's question: not blank, at most {MAX_QUESTION_CHARS} characters.",
            min_length=1,
            max_length=MAX_MESSAGES,
            extra={"must": "a list with at least one message"},
        ),
    ]
    context: Annotated[ChatContext | None, about("What this request changes for its answer.")] = None
    session_state: Annotated[Any, about("Echoed, or the signed memory that an earlier answer issued.")] = None
    later_state: Annotated[Any, about("The newer spelling of session_state; both are accepted everywhere.")] = None


class ChoicesRequest(ChatRequest, frozen=True):
    """The same with choices in the reply."""

    stream: Annotated[
        bool | None, about("Whether the answer is streamed; where the key is present, the reply has choices.")
    ] = None


def body_of(incoming: Incoming) -> Mapping[str, object]:
    """Return the JSON object that was sent. Raises: BadRequest."""
    if not isinstance(incoming.body, Mapping):
        raise BadRequest("The body must be a JSON object.")
    return incoming.body


def ask_of(
    incoming: Incoming,
    settings: Settings,
    kind: type[ChatRequest] = ChatRequest,
    *,
    is_streamed: bool | None = None,
) -> Ask:
    """
    Return the ask of a chat request of this *kind*.

    Where *is_streamed* is None, `stream` says it in a request that has it, else the path.

    Raises:
        BadRequest: a value is of the wrong type or out of range; the reason names the field.
        NoQuery, QueryTooLong: the last message is blank, or over the limit.
        ContextTooLong: the last message alone is larger than the model's window.
    """
    body = body_of(incoming)
    record = read(kind, body, is_deep=True)
    if isinstance(record, ChoicesRequest):
        is_streamed = bool(record.stream)
    elif is_streamed is None:
        is_streamed = incoming.path.rstrip("/").endswith("/stream")
    messages = [
        ChatMessage(m.role, text_at(f"messages[{n}].content", m.content)) for n, m in enumerate(record.messages)
    ]
    *turns, question = messages
    path = f"messages[{len(turns)}]"
    if question.role != "user":
        raise BadRequest(f"{path}.role must be user: the last message is the question.", field="messages")
    if not question.text.strip():
        raise NoQuery(field=f"{path}.content")
    if len(question.text) > MAX_QUESTION_CHARS:
        raise QueryTooLong(field=f"{path}.content")
    state, key = _state_in(body, settings.chat)
    history = history_for(turns, question.text, incoming, llm=settings.llm, chat=settings.chat, state=state, key=key)
    sent = (record.context or ChatContext()).overrides or {}
    wanted, most = read_steps(Overrides, sent, path=f"{_PATH}."), settings.chat.limits.top
    if wanted.top is not None and wanted.top > most:
        raise BadRequest(f"{_PATH}.top must be a whole number from 1 to {most}.", field=f"{_PATH}.top")
    sentences = {name: _sentence(name, sent[name], settings.rag) for name in SENTENCES if sent.get(name) is not None}
    if any(turn.role == "system" for turn in turns):
        sentences = {"system message": "Left out: the instructions are the service's own.", **sentences}
    effort, unread = effort_of(wanted.effort)
    unknown = [f"{_PATH}.{name}"[:60] for name in unknown_names(Overrides, sent, known=IGNORED)][:20]
    categories = tuple(
        Restriction(CATEGORY_FIELD, value=text_at(f"{_PATH}.{name}", value), is_excluded=name == "exclude_category")
        for name in ("include_category", "exclude_category")
        if (value := getattr(wanted, name))
    )
    return Ask(
        question=question.text,
        accept_language=incoming.headers.get("accept-language"),
        is_streamed=is_streamed,
        history=history,
        attachments=incoming.files,
        session_state=state,
        overrides=sentences,
        ignored=(*unread, *unknown),
        language=language_code(wanted.language or ""),
        max_documents=wanted.top,
        temperature=wanted.temperature,
        min_score=wanted.minimum_search_score,
        wants_captions=bool(wanted.semantic_captions),
        wants_followups=bool(wanted.suggest_followup_questions),
        restrictions=categories,
        documents=wanted.basket,
        sampling={} if wanted.seed is None else {"seed": wanted.seed},
        effort=effort,
        limits=wanted.limits(wanted.max_tokens),
    )


def _state_in(body: Mapping[str, object], chat: ChatSettings) -> tuple[object, str]:
    """
    Return the client's session state, None without one, and the key that it has.

    Raises:
        BadRequest: it is too large to go back in the first line of a stream.
    """
    key = next((key for key in STATE_KEYS if body.get(key) is not None), STATE_KEYS[0])
    state = body.get(key)
    is_ours = chat.memory_enabled and conversations.is_ours(state)
    # One that was issued here is as large as the setting lets it be, in braces and with its key.
    most = max(MAX_STATE_BYTES, chat.limits.memory_bytes + _STATE_FRAME_BYTES) if is_ours else MAX_STATE_BYTES
    if state is not None and len(json.dumps(state)) > most:
        raise BadRequest(f"{key} must have at most {most} bytes.", field=key)
    return state, key


def history_for(
    turns: Sequence[ChatMessage],
    question: str,
    incoming: Incoming,
    *,
    llm: LlmSettings,
    chat: ChatSettings,
    state: object = None,
    key: str = STATE_KEYS[0],
) -> tuple[ChatMessage, ...]:
    """
    Return what goes to the model of the *turns* before *question*; without any, those of a memory issued here.

    *state* was sent under *key*. The oldest turns are left out where there is no room for all.

    Raises:
        BadRequest: *state* was issued here and is not valid any more.
        ContextTooLong: the question alone is larger than the model's window.
    """
    said: Sequence[ChatMessage] = [turn for turn in turns if turn.role != "system"]
    if chat.memory_enabled and conversations.is_ours(state):
        limits = memory_limits(chat)
        remembered = conversations.recalled(state, incoming.signing, now_s=incoming.now_s, limits=limits, key=key)
        said = said or remembered
    left = checked(incoming.count_tokens(question), Window(llm.context_window))
    budget = min(chat.limits.history_tokens, left // HISTORY_SHARE)
    return within(said, budget_tokens=budget, count=incoming.count_tokens)


def read_steps(record: type[Steps], values: Mapping[str, object], *, path: str = "", is_deep: bool = False) -> Steps:
    """Return *values* as *record*; a limit of the steps may be written 3.0, as JSON has it. Raises: as `read`."""
    names = _WHOLE if record is Overrides else _WHOLE[:2]
    whole = {name: int(v) for name in names if isinstance(v := values.get(name), float) and v.is_integer()}
    return read(record, {**values, **whole}, path=path, is_deep=is_deep)


def _sentence(name: str, value: object, rag: RagSettings) -> str:
    """Return what is said of an override: "In use" only of what reaches the search or the model."""
    if name not in IGNORED and (value is False or value == ""):
        return "Not requested."
    is_openai = rag.template == "openai"
    if name in _OF_MODEL and rag.api_endpoint == BUILTIN_MODEL:
        return "Not in use here: the built-in model quotes sentences from the documents."
    if name in ("suggest_followup_questions", "language") and not (is_openai or rag.add_instructions):
        return "Not in use here: rag.addInstructions is off, so the model gets no instructions."
    if name == "seed" and not is_openai:
        return "Not in use here: a Datafari External LLM service has no such parameter."
    return SENTENCES[name]


@dataclass(frozen=True, slots=True)
class ChatProtocol:
    """
    One of the chat protocols: whether its reply has choices, a message, or both; a stream has chunks without a message.

    *is_published*: what the published client reads, one key for the session state and errors that are objects.
    """

    has_choices: bool
    has_message: bool
    is_published: bool = False

    def parse(self, incoming: Incoming, settings: Settings) -> Ask:
        """Read the ask. Raises: as `ask_of`."""
        return ask_of(incoming, settings, ChatRequest if self.has_message else ChoicesRequest)

    def reply(self, answer: Answer, context: ReplyContext) -> Json:
        """Return the whole answer."""
        finished, facts = answer.finished, answer.finished.facts
        message = {"content": finished.text, "role": "assistant", "function_call": None, "tool_calls": None}
        about: Json = opening_context(answer.sources) | closing_context(finished)
        state = self._state(session_state(context, finished.text))
        bare: Json = {"message": message, "context": about, **state} if self.has_message else {}
        if not self.has_choices:
            return bare
        choice = {"index": 0, "message": message, "finish_reason": finished.finish_reason, "context": about, **state}
        head = completion_head(context, "chat.completion") | {"choices": [choice | _filtered(facts)]}
        return {**head, "usage": None, "system_fingerprint": None, **_copied(facts), **bare}

    def stream(self, events: Iterator[Event], context: ReplyContext) -> Iterator[Json]:
        """Yield one object for each line: role and context first, then words, then what is known only at the end."""
        for event in events:
            match event:
                case Delta():
                    words: Json = {"content": event.text, "role": "assistant"}
                    if not self.has_message:
                        words |= {"function_call": None, "tool_calls": None}
                    yield self._line(words, context)
                case Sources():
                    # No name for it: the texts of the documents would be kept as long as the stream.
                    yield self._line(
                        {"role": "assistant"},
                        context,
                        context=fitted_context(event),
                        **self._state(session_state(context, None)),
                    )
                case Finished():
                    state = self._state(session_state(context, event.text)) if is_state_issued(context) else {}
                    ended = {"context": closing_context(event), **state}
                    if self.has_message:
                        yield self._line({}, context, **ended)
                    else:
                        ended = {"finish_reason": event.finish_reason, **ended, **_filtered(event.facts)}
                        yield self._line({}, context, **ended) | _copied(event.facts)
                case _:  # Failed
                    yield self.failure(event.error, context.settings.rag)[1]

    def _line(self, delta: Json, reply_context: ReplyContext, /, **beside: object) -> Json:
        """Return a line with *delta* and what is *beside* it: bare, or as the one choice of a chunk."""
        if self.has_message:
            return {"delta": delta, **beside}
        return {
            **completion_head(reply_context, "chat.completion.chunk"),
            "choices": [{"index": 0, "delta": delta, "finish_reason": None, **beside}],
            "system_fingerprint": reply_context.facts.extras.get("system_fingerprint"),
        }

    def failure(self, error: RagError, rag: RagSettings) -> tuple[int, Json]:
        """Return the HTTP status, and the error as text or as an object with code and message."""
        about = {"code": error.label, "message": error.reason} if self.is_published else error.reason
        return status_of(error), {"error": about}

    def _state(self, state: object) -> Json:
        """Return the keys of a session state: the later name is there too when there is a state."""
        if self.is_published:
            return {"sessionState": state}
        return {"session_state": state} if state is None else {"session_state": state, "sessionState": state}


def _copied(facts: ModelFacts) -> Json:
    return {key: facts.extras[key] for key in COPIED if key in facts.extras}


def _filtered(facts: ModelFacts) -> Json:
    """Return the choice's filter results where the model gave some; Azure alone does."""
    key = "content_filter_results"
    return {key: facts.extras[key]} if key in facts.extras else {}


def softened(ask: Ask, rag: RagSettings, openai: OpenaiSettings) -> tuple[type[RagError], ...]:
    """Return the failures that are answers on the chat paths, and for the models of this service (contract §4)."""
    return NoDocuments, NoAnswer


def has_stream_key(incoming: Incoming) -> bool:
    """Say whether the body has a `stream` key: then the reply has choices alone. Null is absent."""
    return isinstance(incoming.body, Mapping) and incoming.body.get("stream") is not None


CHOICES = ChatProtocol(has_choices=True, has_message=False)
CHAT = ChatProtocol(has_choices=True, has_message=True)
"""The whole reply has both forms together: a client reads the one that it knows."""
PUBLISHED = ChatProtocol(has_choices=False, has_message=True, is_published=True)
