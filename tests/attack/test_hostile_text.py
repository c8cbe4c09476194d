"""Text made to be slow, through every function that it reaches: time grows with the text, and no faster."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module

import pytest

import datafari_rag.core
import datafari_rag.protocols
from datafari_rag.core.errors import RagError
from tests.attack.hostile import grown, text_of, units
from tests.attack.readers_of_text import READERS
from tests.attack.report import Record, judge
from tests.attack.worst_units import WORST
from tests.growth import cpu_s, too_fast

QUICK_CHARS, WORST_CHARS, CHARS = 2_000, 12_500, 50_000
"""What the attack found grew too fast at the first size already, with a few texts at the last one alone."""

PARTS = 80
"""One in so many short texts is tried on a function; `make attack` tries all of them."""

SLOWEST = 12
"""So many texts that take longest at the first size are tried at the second one, and at those around it."""

ELSEWHERE = {
    "core.access": "names and tokens, which are compared and no more",
    "core.accounts": "names, which are compared and no more",
    "core.answer.audit_record": "fields of records, which are hashed and no more",
    "core.messages": "our own words, and an administrator's settings",
    "core.passages.reranking": "ids and numbers",
    "core.meaning.result_list": "ids and numbers",
    "core.model.servers": "settings, and names and numbers of a reply that has a bound",
    "core.model.replies": "the fields of a reply, each of which has a bound",
    "core.answer.reasoning_steps": "numbers in place of numbers",
    "core.solr.passage_parameters": "ids and words, each in a parameter of its own; words through parameters.escaped",
    "core.settings.checks": "an administrator's settings",
    "core.settings.answers": "our own words",
    "core.settings.parsing": "an administrator's settings",
    "core.settings.other_keys": "our own words",
    "core.settings.row": "our own words",
    "core.settings.table": "an administrator's settings",
    "core.solr.collection_report": "Solr's answer to an administrator",
    "core.solr.schema": "Solr's answer to an administrator",
    "core.whole": "our own words, numbers, and a summary that the model wrote",
    "core.text.sentences": "the last 30 characters of a sentence, called by sentences",
    "protocols.ai.replies": "puts values into JSON",
    "protocols.chat_completion": "through reading.ask_of",
    "protocols.chat_reply_parts": "puts values into JSON",
    "protocols.mcp.replies": "puts values into JSON",
    "protocols.openai.renderings": "puts values into JSON",
    "protocols.records": "through the parsers of the protocols",
}
"""Modules whose functions take no caller's, document's or model's text, or hand it on to one that is tried."""


def hostile_text(label: str, chars: int) -> str:
    unit = units().get(label)
    return dict(grown(chars))[label] if unit is None else text_of(unit, chars)


def texts(chars: int) -> dict[str, str]:
    return {name: text_of(unit, chars) for name, unit in units().items()} | dict(grown(chars))


def reading(name: str) -> Callable[[str], None]:
    """Return a call of a function of the table; a refusal with an error of its own is as good as an answer."""

    def read(text: str) -> None:
        with suppress(RagError):
            READERS[name](text)

    return read


def holes_of(name: str, labels: Iterable[str], *, chars: int) -> list[str]:
    """Return the texts of about so many characters that take a function longer than they are longer."""
    return [
        f"{name}: {label}, {found}"
        for label in labels
        if (found := too_fast(reading(name), partial(hostile_text, label), chars))
    ]


def test_no_function_is_slow_on_a_short_hostile_text(record_property: Record) -> None:
    """A few units for each function; all of them, and long ones, in `make attack`."""
    every = list(texts(QUICK_CHARS))
    holes, number = [], 0
    for place, name in enumerate(READERS):
        # Each function gets another part, so that all units are tried, and those that were slow once always.
        some = dict.fromkeys([*every[place % PARTS :: PARTS], *KNOWN])
        holes += holes_of(name, some, chars=QUICK_CHARS)
        number += len(some)
    judge(record_property, "short hostile texts", against="pure functions", tried=number, holes=holes)


def test_the_time_of_no_function_grows_faster_than_its_worst_text(record_property: Record) -> None:
    holes = [hole for name, label in WORST.items() for hole in holes_of(name, [label], chars=WORST_CHARS)]
    judge(record_property, "worst texts", against="pure functions", tried=len(WORST), holes=holes)


def test_the_worst_text_of_every_function_is_known() -> None:
    assert set(WORST) == set(READERS)
    assert [label for label in WORST.values() if label not in texts(QUICK_CHARS)] == []


KNOWN = [
    *map(ascii, (".", "!?", "…", "_", "`", "**a ", "“", "[", "l'", "<http://a", ":", "\u0301", "(", "1", "中", "a")),
    "nested '\\u201c'",
    "words",
]
"""Units that some function was slow on once."""


@pytest.mark.trials
@pytest.mark.parametrize("name", READERS)
def test_no_function_is_slow_on_a_long_hostile_text(name: str, record_property: Record) -> None:
    first = texts(QUICK_CHARS)
    took = sorted(first, key=lambda label: -cpu_s(reading(name), first[label]))
    tried = dict.fromkeys([*took[:SLOWEST], *KNOWN])
    holes = holes_of(name, tried, chars=CHARS)
    judge(
        record_property, f"hostile texts: {name}", against="pure functions", tried=len(first) + len(tried), holes=holes
    )


def public_functions() -> Iterator[str]:
    """Yield each public function that takes text, by module and name, in `core` and `protocols`."""
    for package in (datafari_rag.core, datafari_rag.protocols):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            module = import_module(found.name)
            for name, member in vars(module).items():
                is_own = getattr(member, "__module__", None) == module.__name__ and not name.startswith("_")
                if is_own and inspect.isfunction(member) and _takes_text(member):
                    yield f"{found.name.removeprefix('datafari_rag.')}.{name}"


def _takes_text(function: object) -> bool:
    signature = inspect.signature(function)  # type: ignore[arg-type]  # it is a function
    taken = [str(one.annotation) for name, one in signature.parameters.items() if name not in ("language", "field")]
    return any("str" in one or "Document" in one or "Extract" in one or "Incoming" in one for one in taken)


THROUGH = {
    "core.documents.place_of": "core.citations.resolution.resolve, both",
    "core.answer.question_report.asked_under": "core.text.words.sought_in",
    "core.answer.question_report.report_of": "core.text.words.sought_in",
    "core.citations.labels.file_name": "core.citations.labels.title_of",
    "core.citations.quotations.is_quotation_in": "core.citations.quotations.quotations",
    "core.citations.claims.claims_of": "core.citations.claims.marks_in",
    "core.citations.claims.stated_in": "core.answer.text_check.checked_against",
    "core.citations.resolution.citation_at": "core.citations.resolution.resolve, both",
    "core.citations.resolution.citation_for": "core.citations.resolution.resolve, both",
    "core.citations.resolution.seen_of": "core.citations.resolution.resolve, both",
    "core.text.language.spoken": "core.text.language.detect",
    "core.text.language.spoken_in": "core.text.language.detect",
    "core.meaning.reranker.rerank_plan": "core.passages.selection.nodes",
    "core.answer.text_check.likely_places": "core.answer.text_check.doubtful_claims",
    "core.text.sentences.code_spans": "core.citations.claims.marks_in",
    "core.identity.normalized": "core.identity.is_known",
    "core.identity.is_trusted": "core.identity.client_address",
    "core.identity.mapped_name": "core.identity.believed_name",
    "core.identity.networks": "core.identity.client_address",
    "core.query.dates.iso_of": "core.query.dates.moment_of",
    "core.query.dates.date_math_at": "core.query.dates.moment_of",
    "core.query.dates.date_math_of": "core.query.dates.moment_of",
    "core.passages.budget_fitting.answering_for": "core.passages.budget_fitting.evidence_for, a document",
    "core.documents.stored_span": "core.passages.stored_parts.with_parts",
    "core.meaning.near_search.context_of": "core.meaning.near_search.pieces_of",
    "core.meaning.near_search.model_mark": "core.meaning.near_search.cuts_of",
    "core.meaning.near_search.stamp_of": "core.meaning.near_search.cuts_of",
    "core.solr.parameters.found_by_ids": "core.solr.parameters.escaped",
    "core.solr.parameters.one_of": "core.solr.parameters.escaped",
    "core.solr.parameters.texts_params": "core.solr.parameters.escaped",
    "core.solr.parameters.document_fields": "core.solr.parameters.escaped",
    "core.meaning.result_list.arranged": "core.query.proposals.near_word",
    "core.documents.first_value": "core.citations.labels.title_of",
    "core.meaning.result_list.widened": "core.query.proposals.near_word",
    "core.meaning.result_list.head_of": "core.query.proposals.near_word",
    "core.meaning.result_list.others_of": "core.query.proposals.near_word",
    "core.meaning.result_list.same_words": "core.query.proposals.near_word",
    "core.meaning.result_list.no_words": "core.query.proposals.near_word",
    "core.meaning.result_list.ids_with_words": "core.query.proposals.near_word",
    "core.meaning.result_list.pulled_of": "core.query.proposals.near_word",
    "core.meaning.result_list.far_of": "core.query.proposals.near_word",
    "core.meaning.result_list.behind": "core.query.proposals.near_word",
    "core.passages.stored_parts.favourites": "core.passages.stored_parts.with_parts",
    "core.passages.term_matching.letters_of": "core.passages.term_matching.heading_at",
    "core.meaning.near_search.units_of": "core.meaning.near_search.pieces_of",
    "core.passages.extracts.paths_of": "core.passages.extracts.extracts_for",
    "core.passages.reranking.best_row": "core.passages.reranking.ranked",
    "core.text.sentences.first_spans": "core.passages.extracts.bounds_in",
    "core.text.sentences.small_sentences": "core.citations.verification.CheckedExtract.finding",
    "core.text.sentences.spans_or_blocks": "core.whole.weigh",
    "core.text.structure.begins_with_row": "core.text.structure.tables_in",
    "core.text.structure.ends_with_row": "core.text.structure.tables_in",
    "core.text.structure.is_row": "core.text.structure.tables_in",
    "core.text.structure.names_columns": "core.text.structure.named_cells",
    "core.text.structure.without_names": "core.text.structure.tables_in",
    "core.passages.extractive_answer.best": "core.passages.extractive_answer.answer, the document",
    "core.passages.extractive_answer.pieces": "core.passages.extractive_answer.answer, the document",
    "core.passages.term_matching.said_in": "core.passages.reranking.ranked",
    "core.passages.selection.head": "core.passages.budget_fitting.evidence_for, its beginning",
    "core.passages.selection.choose": "core.passages.selection.select",
    "core.passages.selection.weigh": "core.passages.selection.select",
    "core.passages.term_matching.is_heading": "core.passages.term_matching.sentence_scores",
    "core.query.plan.prompt_for": "core.model.prompt.instructions_for",
    "core.query.plan.query_prompt_for": "core.query.plan.with_query",
    "core.ask.narrowings": "protocols.solr_select.parse",
    "protocols.retrieval.parse": "core.query.filter_queries.restriction_of",
    "protocols.overrides.read_steps": "protocols.overrides.applied",
    "core.steps.plan_prompt": "core.model.prompt.instructions_for",
    "core.steps.tools_prompt": "core.model.prompt.instructions_for",
    "core.query.filter_queries.misread_field": "core.query.filter_queries.restriction_of",
    "core.query.select_parameters.identity_attempts": "core.query.select_parameters.forged_names",
    "core.query.select_parameters.read": "protocols.solr_select.parse",
    "core.solr.parameters.words_within": "core.solr.parameters.usable_words",
    "core.solr.handler_parameters.local": "core.solr.parameters.escaped",
    "core.solr.handler_parameters.of_fields": "core.solr.parameters.escaped",
    "core.solr.handler_parameters.reason_left": "core.solr.parameters.escaped",
    "core.solr.parameters.fetch_params": "core.solr.parameters.escaped",
    "core.solr.parameters.restriction_params": "protocols.solr_select.parse",
    "core.solr.parameters.text_field": "core.solr.parameters.escaped",
    "core.text.folding.is_invisible": "core.text.folding.fold",
    "core.text.folding.spaced": "core.text.folding.clean",
    "core.text.folding.pieces": "core.text.folding.lowered",
    "core.text.folding.unusual": "core.text.folding.clean",
    "core.text.language.sentence_in": "core.text.language.language_code",
    "core.text.words.listed": "core.text.words.is_empty_word",
    "core.text.words.is_asking_word": "core.text.words.is_empty_word",
    "core.text.words.is_function_word": "core.text.words.is_empty_word",
    "core.text.words.is_unspaced": "core.text.words.words_of",
    "core.text.words.pieces_of": "core.text.words.sought_in",
    "protocols.ai.action.agentic_ask": "protocols.ai.action.question_ask",
    "protocols.chat.parse": "protocols.chat_request.ask_of",
    "protocols.chat_request.body_of": "protocols.chat_request.ask_of",
    "protocols.chat_request.state_key": "protocols.chat_request.ask_of",
    "protocols.chat_request.state_of": "protocols.chat_request.ask_of",
    "core.answer.conversations.recalled": "protocols.chat_request.ask_of",
    "core.query.plan.bare_prompt_for": "core.model.prompt.instructions_for",
    "core.query.proposals.near_search": "core.query.proposals.titles_search",
    "core.query.proposals.total_of": "core.query.proposals.near_word",
    "core.query.proposals.without_rarest": "core.query.plan.content_words",
    "core.query.proposals.documents_on": "core.query.proposals.near_word",
    "core.citations.links.document_link": "core.citations.links.passage_link",
    "core.citations.links.is_public": "core.citations.links.passage_link",
    "core.citations.links.scheme_of": "core.citations.links.is_target",
    "core.citations.links.marked": "core.citations.links.passage_link",
    "protocols.mcp.tools.restrictions_of": "core.query.filter_queries.restriction_of",
    "protocols.mcp.replies.links": "protocols.mcp.replies.address_of",
    "protocols.openai.renderings.model_row": "protocols.openai.renderings.our_model",
    "protocols.openai.chat_completions.fallback": "protocols.openai.chat_completions.parse",
    "protocols.openai.chat_completions.relayed": "protocols.openai.chat_completions.parse",
    "protocols.openai.chat_completions.relayed_chunk": "protocols.openai.chat_completions.parse",
    "protocols.ragapi.accepts": "protocols.ragapi.parse",
    "core.answer.conversations.readable_turns": "core.answer.conversations.is_conversation_id",
    "protocols.ai.conversations.id_in": "protocols.ai.conversations.renaming",
    "protocols.ai.conversations.wants_all": "protocols.ai.conversations.renaming",
    "protocols.ai.conversations.renamed": "protocols.ai.conversations.renaming",
    "protocols.ai.action.is_streamed": "protocols.ai.action.question_ask",
    "protocols.ai.action.action_of": "protocols.ai.action.question_ask",
    "protocols.openai.chat_completions.ask_from": "protocols.openai.chat_completions.parse",
}
"""Functions that are tried through another one: function → the row of the table that runs it."""


def test_every_function_that_takes_text_is_tried() -> None:
    """A new function needs a row in the table, or the reason why its text is tried elsewhere."""
    rows = {row.partition(",")[0] for row in READERS} | set(THROUGH)
    assert [one for one in public_functions() if one not in rows and one.rpartition(".")[0] not in ELSEWHERE] == []


def test_no_row_of_the_tables_is_without_effect() -> None:
    """A row whose function was moved or renamed tries nothing, and one that is listed twice hides a missing one."""
    rows, found = {row.partition(",")[0] for row in READERS}, set(public_functions())
    assert [row for row in rows if not _is_there(row)] == []
    assert [one for one in THROUGH if one not in found or one in rows] == []
    assert [row for row in THROUGH.values() if row not in READERS] == []
    assert [one for one in ELSEWHERE if not any(name.startswith(f"{one}.") for name in found)] == []


def _is_there(row: str) -> bool:
    """Tell whether the dotted name of *row* is a function, class, method or table of the package."""
    try:
        pkgutil.resolve_name(f"datafari_rag.{row}")
    except (ImportError, AttributeError):
        return False
    return True
