"""Plain values that the tests of the chat dialects share: documents, answers, requests."""

from __future__ import annotations

from typing import Any

from datafari_rag.core.ask import Ask
from datafari_rag.core.documents import Citation, Document, Extract, OffsetMap, OffsetRun, Passage
from datafari_rag.core.events import Answer, Delta, Event, Finished, ModelFacts, Sources, Thought
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols.request import Incoming, ReplyContext

TEXT = "Paris the rabbit ate a carrot.\nIt slept."

EXTRACT = Extract(
    1,
    "Rabbits.txt",
    Document("doc-1", TEXT, title="Rabbits.txt", url="file:///rabbits.txt", score=2.5),
    (Passage(0, len(TEXT), 0.9),),
    TEXT,
    OffsetMap((OffsetRun(0, 0, len(TEXT)),)),
)
CITATION = Citation(
    "Rabbits.txt",
    "quoted",
    "doc-1",
    "file:///rabbits.txt",
    "Rabbits.txt",
    "exactContent",
    0,
    5,
    "Paris",
    answer_start=12,
    answer_end=15,
)
THOUGHTS = (Thought("Original user query", "q", {"language": "en"}), Thought("Prompt", ["a"], None))
FACTS = ModelFacts(
    name="gpt-x",
    id="chatcmpl-9",
    created=1_706_301_586,
    extras={
        "usage": {"completion_tokens": 3, "prompt_tokens": 5, "total_tokens": 8},
        "system_fingerprint": "fp",
        "content_filter_results": {"hate": {"filtered": False}},
        "prompt_filter_results": [{"prompt_index": 0}],
    },
)
SOURCES = Sources((EXTRACT,), THOUGHTS, "en")
FINISHED = Finished("Paris “ate” [1].\n", "stop", (CITATION,), ("Who else?",), FACTS, extracts=(EXTRACT,))
ANSWER = Answer(SOURCES, FINISHED)


def events(last: Event = FINISHED) -> list[Event]:
    """Return the events of the answer, streamed in two pieces."""
    return [SOURCES, Delta("Paris ", FACTS), Delta("“ate” [1].\n", FACTS), last]


def request(body: object, path: str = "/chat", **more: Any) -> Incoming:
    """Return a request with *body*."""
    return Incoming(path, body=body, now_s=1000.0, **more)


def asking(text: str = "Who ate?", **more: object) -> dict[str, object]:
    """Return the smallest body that asks *text*."""
    return {"messages": [{"role": "user", "content": text}], **more}


def context(settings: Settings | None = None, **ask: Any) -> ReplyContext:
    """Return what a reply needs besides the answer."""
    return ReplyContext(Ask(**{"question": "Who ate?", **ask}), settings or Settings(), "id-7", 1000.0, facts=FACTS)
