"""
From the ask and the settings to the searches, strict first and relaxed after it, and to the prompt.

The model words the search query of a conversation (`chat.query.rewriting.enabled`): it only names words to search
for, in the language of the question; anything else it says is not used, and then the search runs as without it: a
question of few words is searched with those of the one before. Of a conversation the last messages come along as far
as they fit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from datafari_rag.core.ask import MAX_QUESTION_CHARS, Ask, ChatMessage, narrowings
from datafari_rag.core.documents import Extract
from datafari_rag.core.model.prompt import Prompt, instructions_for
from datafari_rag.core.model.servers import CONVERSATION
from datafari_rag.core.search_request import ANY_WORD, CANDIDATES, Operator, Search, Step
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from datafari_rag.core.settings.table import ChatSettings, RagSettings
from datafari_rag.core.text.cleaning import visible
from datafari_rag.core.text.language import detect, is_empty_word, is_in_capitals, language_code
from datafari_rag.core.text.tokens import is_sign, sought_in

TURN_TOKENS = 8
"""What role and frame of one message cost, at most."""

_MOST_EARLIER = 3
_MOST_OWN_WORDS = 2
"""A question with no more content words is searched with those of the question before it."""


def within(
    history: Sequence[ChatMessage], *, budget_tokens: int, count: Callable[[str], int]
) -> tuple[ChatMessage, ...]:
    """Return the newest turns that together have at most *budget_tokens*, in order; the oldest are left out."""
    turns: list[ChatMessage] = []
    room = budget_tokens
    for turn in reversed(history):
        room -= count(turn.text) + TURN_TOKENS
        if room < 0:
            break
        turns.append(turn)
    return tuple(reversed(turns))


def search_text_for(question: str, history: Sequence[ChatMessage], *, language: str) -> str | None:
    """
    Return what to search for in place of *question* where no model words it, None when it is searched as it is.

    A question of at most two content words is searched with the content words of the newest question before it that
    has any.
    """
    if not history or len(own_words(question, language)) > _MOST_OWN_WORDS:
        return None
    earlier = (own_words(turn.text, language) for turn in reversed(history) if turn.role == "user")
    words = " ".join(next(filter(None, earlier), ()))
    return f"{words}\n{question}"[:MAX_QUESTION_CHARS] if words else None


def earlier_text(history: Sequence[ChatMessage]) -> str | None:
    """Return the newest user messages before the question, oldest first, None when there is none."""
    questions = [turn.text for turn in history if turn.role == "user" and turn.text.strip()][-_MOST_EARLIER:]
    return "\n".join(questions)[-MAX_QUESTION_CHARS:] or None


MAX_WORDS = 60
"""Words of a question that are searched for; a pasted page is not searched word by word."""

FEW_KEY_WORDS, FEW_WORDS = 3, 9
"""Up to this many words one is enough: a third of key words, or a fifth of a sentence's words, is less than two."""

MANY_PIECES = 5
"""More pieces of an unspaced script than this are a sentence, whether or not one of them only asks."""

_THIRD, _FIFTH, _ANY = 34, 20, ANY_WORD


def steps_for(question: str, *, language: str, operator: Operator) -> tuple[Step, ...]:
    """
    Return the searches to try for *question* in order, each looser than the one before; empty when it has no word.

    The first is the original question under *operator*; with AND there follow a third of the words, and any of them. A
    full sentence under AND requires a fifth of its words from the start: its
    words occur together in some long document about something else often enough, and the
    texts of the candidates sort out who has but few of them. Steps that would repeat one are left out.
    """
    words, own = _words_of(question, language)
    if not words:
        return ()
    content = own or words
    if operator == "OR":
        # Any word is enough already, and words that only ask would find every document that asks something.
        return (Step("asked", content, "OR"),)
    any_word = Step("any word", content, "OR")
    if len(content) < len(words) or sum(map(is_sign, words)) > MANY_PIECES:
        least = _FIFTH if len(content) > FEW_WORDS else _ANY
        return _without_repeats((Step("asked", content, "AND", least), any_word))
    least = _THIRD if len(content) > FEW_KEY_WORDS else _ANY
    third = Step("a third of the words", content, "AND", least)
    return _without_repeats((Step("asked", words, "AND"), third, any_word))


def content_words(question: str, language: str) -> tuple[str, ...]:
    """Return the distinct words of *question* that say what is looked for; all of them when none does."""
    words, own = _words_of(question, language)
    return own or words


def own_words(question: str, language: str) -> tuple[str, ...]:
    """Return the distinct words of *question* that say what is looked for; "Why?" has none."""
    return _words_of(question, language)[1]


def _words_of(question: str, language: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the distinct words of *question*, and those of them that say what is looked for."""
    words = _distinct(sought_in(question[:MAX_QUESTION_CHARS], language))
    own = [word for word in words if is_in_capitals(word, words) or not is_empty_word(word.lower(), language)]
    return words, tuple(own)


def plain_step(text: str, *, language: str, operator: Operator) -> Step:
    """Return the one step of a plain search for *text*; words that only ask need not be in a document."""
    words = sought_in(text, language)
    own = [word for word in words if is_in_capitals(word, words) or not is_empty_word(word.lower(), language)]
    return Step("asked", tuple(own) or words, operator)


def _distinct(words: Iterable[str]) -> tuple[str, ...]:
    by_fold: dict[str, str] = {}
    for word in words:
        by_fold.setdefault(word.casefold(), word)
    return tuple(by_fold.values())[:MAX_WORDS]


def _without_repeats(steps: Iterable[Step]) -> tuple[Step, ...]:
    distinct: list[Step] = []
    for step in steps:
        if _required(step) not in map(_required, distinct):
            distinct.append(step)
    return tuple(distinct)


def _required(step: Step) -> tuple[tuple[str, ...], Operator | int]:
    """Return what *step* asks an engine for: all of one word, and one of any, is what any word is."""
    if step.min_match not in (None, _ANY):
        return step.words, step.min_match
    is_any = step.operator == "OR" or step.min_match == _ANY or len(step.words) == 1
    return step.words, "OR" if is_any else "AND"


MOST_BYTES = 10_000_000
"""Most bytes of long fields in one reply: each reader who does not read keeps as many in a worker's memory."""

LONG_CHARS = 1_000
"""A field of fewer characters is short, and never left out."""


class ReplyRoom:
    """What is left of `MOST_BYTES`, and what did not fit; *size_of* measures the value of a long field."""

    def __init__(self, size_of: Callable[[object], int]) -> None:
        """Begin with all of it."""
        self._size_of, self._rest = size_of, MOST_BYTES
        self.truncated: dict[str, list[str]] = {}
        """The names of the fields that were left out, by the id of their document."""

    def fitted(self, document_id: str, row: Mapping[str, object]) -> dict[str, object]:
        """Return *row* without the long fields for which there is no room."""
        return {name: value for name, value in row.items() if self._take_room(document_id, name, value)}

    def _take_room(self, document_id: str, name: str, value: object) -> bool:
        chars = _chars(value)
        if chars < LONG_CHARS:
            return True
        # What has more characters than there are bytes need not be measured.
        size = chars if chars > self._rest else self._size_of(value)
        if size > self._rest:
            self.truncated.setdefault(document_id, []).append(name)
            return False
        self._rest -= size
        return True


def _chars(value: object) -> int:
    if isinstance(value, str):
        return len(value)
    return sum(len(text) for text in value if isinstance(text, str)) if isinstance(value, list) else 0


MAX_QUERY_CHARS = 300
MAX_TOKENS = 60
WITHIN_S = 10.0
"""How long the model's words for a search are waited for: no answer is worth more."""

_INSTRUCTIONS = (
    "You write search queries. Read the conversation and the last question, and answer with one line: the words to "
    "search for so that documents which answer the last question are found, in the language of that question. No "
    "translation, no quotation marks, no explanation, no answer."
)
_DRESS = re.compile(r"^(?:search query|query|requête|recherche)\s*:\s*", re.IGNORECASE)


def is_rewritten(ask: Ask, rag: RagSettings, chat: ChatSettings) -> bool:
    """
    Say whether a model is to word the search: for a conversation, where one answers and no steps are planned.

    Never for a request with an index name on /v1: its search is its user's own words.
    """
    is_on = chat.query_rewriting_enabled and rag.api_endpoint != BUILTIN_MODEL
    effort = ask.effort or rag.effort
    return is_on and effort == "none" and bool(ask.history) and ask.token_budget is None and not ask.document_ids


def query_prompt_for(ask: Ask, *, model: str, nonce: str, language: str) -> Prompt:
    """Return the messages for the model."""
    return Prompt(
        question=ask.question,
        extracts=(),
        instructions=_INSTRUCTIONS,
        nonce=nonce,
        history=ask.history,
        language=language,
        model=model,
        temperature=0.0,
        max_tokens=MAX_TOKENS,
        within_s=WITHIN_S,
    )


def with_query(ask: Ask, reply: str, language: str) -> Ask:
    """
    Return *ask* with the model's words to search for.

    It is unchanged when *reply* is not one line of a query's length, or has stop words alone, as "Why" has.
    """
    lines = [line.strip() for line in visible(reply).splitlines() if line.strip()]
    query = _DRESS.sub("", lines[0]).strip(" \"'«»“”") if len(lines) == 1 else ""
    if not 0 < len(query) <= MAX_QUERY_CHARS or not own_words(query, language):
        return ask
    return replace(ask, search_text=query, overrides={**ask.overrides, "query rewriting": "The model wrote the query."})


LEAST_NODE_HITS = 100
"""Hits ranked where a token budget alone decides how many documents there are (KAITO's RAG service)."""

FOLLOWUP_INSTRUCTIONS = (
    "\nAfter the answer, propose three very short questions that the reader may want to ask next, each between double "
    "angle brackets, like <<What does it cost?>>. Write nothing after them."
)


def language_for(ask: Ask) -> str:
    """Return the answer's language: the one the caller chose, else the question's (contract §8)."""
    return ask.language or question_language_for(ask)


def question_language_for(ask: Ask) -> str:
    """
    Return the language that the question is written in: its own, else the browser's first, "" where neither is known.

    The language that the caller chose for the answer has no say here: a page sends its own, and the search would use
    the stop words of another language than the question's.
    """
    if ask.question_language is not None:
        return ask.question_language
    first = (ask.accept_language or "").split(",")[0].split(";")[0]
    return detect(ask.question) or language_code(first) or ""


def planned(ask: Ask) -> Ask:
    """
    Return *ask* with the language of its question, and with what is searched for in a conversation; once for each.

    A request with an index name on /v1 is searched in its user's own words.
    """
    if ask.question_language is not None:
        return ask
    language, text = question_language_for(ask), ask.search_text
    if ask.token_budget is None:
        text = text or search_text_for(ask.question, ask.history, language=language)
    earlier = ask.earlier_text or earlier_text(ask.history)
    return replace(ask, question_language=language, search_text=text, earlier_text=earlier)


def searches_for(ask: Ask, *, language: str, rag: RagSettings) -> Iterator[Search]:
    """Yield the searches to try in turn, at least one, each weaker than the one before."""
    yield from _searches(ask, ask.search_text or ask.question, language=language, rag=rag)
    if ask.earlier_text is not None:
        yield from _searches(ask, ask.earlier_text, language=language, rag=rag)


def _searches(ask: Ask, text: str, *, language: str, rag: RagSettings) -> Iterator[Search]:
    steps = steps_for(text, language=language, operator=rag.operator)
    most = ask.max_documents if ask.token_budget is None else ask.token_budget.max_documents
    rows = max(most or rag.max_files, CANDIDATES)
    if ask.token_budget is not None and not most:
        rows = LEAST_NODE_HITS
    for step in steps:
        yield Search(
            question=text,
            step=step,
            rows=rows,
            content="highlighting" if ask.wants_captions else rag.solr_field,
            fragment_chars=rag.hl_fragsize,
            language=language,
            restrictions=narrowings(ask.restrictions, ask.documents),
            # A score means something in one collection and for one question alone: no installation sets one.
            min_score=ask.min_score or 0.0,
            index=ask.index,
        )


def prompt_for(
    ask: Ask, extracts: tuple[Extract, ...], *, language: str, rag: RagSettings, framing: tuple[str, str]
) -> Prompt:
    """
    Return the prompt.

    *framing* holds the text of the instructions file and the nonce of this request's fences.
    """
    instructions, nonce = framing
    followups = FOLLOWUP_INSTRUCTIONS if ask.wants_followups else ""
    text = instructions_for(instructions, language=ask.language, answer_format=ask.answer_format) + followups
    is_told = rag.template == "openai" or rag.add_instructions
    # On /v1 an absent max_tokens is not sent (contract §3); elsewhere the setting is.
    is_asked = ask.max_tokens is not None or ask.token_budget is not None
    return Prompt(
        question=ask.question,
        extracts=extracts,
        sought=ask.search_text,
        instructions=text if is_told else None,
        nonce=nonce,
        history=ask.history,
        answer_format=ask.answer_format,
        language=language,
        model=rag.model if ask.model is None else ask.model,
        temperature=rag.temperature if ask.temperature is None else ask.temperature,
        max_tokens=ask.max_tokens if is_asked else rag.max_tokens,
        sampling=ask.sampling,
        chosen=chosen_in(ask),
    )


def bare_prompt_for(ask: Ask, *, model: str, nonce: str) -> Prompt:
    """Return *ask* unchanged for the model, without documents and instructions; *model* is the default."""
    return Prompt(
        question=ask.question,
        extracts=(),
        instructions=None,
        nonce=nonce,
        history=ask.history,
        model=model if ask.model is None else ask.model,
        temperature=ask.temperature,
        max_tokens=ask.max_tokens,
        sampling=ask.sampling,
        chosen=chosen_in(ask),
    )


def chosen_in(ask: Ask) -> frozenset[str]:
    """Return the names of the parameters that the caller set himself, as they are sent to the model."""
    named = {
        "model": ask.model,
        "temperature": ask.temperature,
        "max_tokens": ask.max_tokens,
        CONVERSATION: ask.has_whole_history or None,
    }
    return frozenset([*(name for name, value in named.items() if value is not None), *ask.sampling])
