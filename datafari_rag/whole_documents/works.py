"""The works, one row each, and the one way in: an ask for whole documents into events."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from dataclasses import replace

from datafari_rag.core.access import User
from datafari_rag.core.answer.ranks import ranked
from datafari_rag.core.ask import Ask
from datafari_rag.core.errors import NoDocuments, RagError
from datafari_rag.core.events import Failed, Finished, Progress, Sources, WorkEvent
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.whole.work import DocumentWork, WorkKind
from datafari_rag.pipeline import Dependencies, sources_for
from datafari_rag.whole_documents.run import WorkRun
from datafari_rag.whole_documents.summary import summarised
from datafari_rag.whole_documents.synthesis import synthesised

MOST_FOUND = 10
"""Most documents of a search."""


def worked(
    ask: Ask, work: DocumentWork, user: User, *, settings: Settings, dependencies: Dependencies
) -> Generator[WorkEvent, None, None]:
    """
    Yield the events of *work*, as `pipeline.answer` yields those of a question, with `Progress` among them.

    Closing the generator ends the work: no further call of the model is begun. Nothing is raised but what is a defect.
    """
    run = WorkRun(ask, work, user, settings, dependencies)
    try:
        with closing(WORKS[work.kind](run)) as events:
            for event in events:
                yield event if user.is_admin or isinstance(event, Progress) else ranked(event)
    except RagError as error:
        yield Failed(error)


def _searched(run: WorkRun) -> Generator[WorkEvent, None, None]:
    """Yield the documents that an answer would be made from, and no answer."""
    wanted = replace(run.ask, max_documents=MOST_FOUND)
    try:
        found = sources_for(wanted, run.user, settings=run.settings, dependencies=run.dependencies)
    except NoDocuments:
        found = Sources(())
    yield found
    yield Finished("", extracts=found.extracts)


WORKS: Mapping[WorkKind, Callable[[WorkRun], Generator[WorkEvent, None, None]]] = {
    "search": _searched,
    "summarize": summarised,
    "synthesize": synthesised,
}
