"""Every function that a caller's, a document's or a model's text reaches, as one that takes the text alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from datafari_rag.core import identity, labels
from datafari_rag.core.answer import followup_questions, output_filter, prompt, session_state
from datafari_rag.core.answer import safe_links as links
from datafari_rag.core.ask import Ask, Attachment, TokenBudget, Turn
from datafari_rag.core.citations import (
    claims,
    markers,
    quotations,
    resolution,
    statements,
    term_relations,
    verification,
)
from datafari_rag.core.documents import Document, Extract, Passage
from datafari_rag.core.model import sse
from datafari_rag.core.passages import (
    answer_types,
    budget_fitting,
    candidate_regions,
    evidence_threshold,
    extractive_answer,
    extracts,
    phrase_matching,
    reranking,
    selection,
    snippet,
    stream_retention,
    term_matching,
)
from datafari_rag.core.passages.extracts import HIGHLIGHTING, extracts_for
from datafari_rag.core.query import chat_overrides, conversation, plan, rewriting, select_parameters, steps
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.solr import parameters
from datafari_rag.core.text import (
    cleaning,
    folding,
    language,
    lowering,
    sentences,
    stemmer,
    stopwords,
    token_estimate,
    tokenizer,
    truncation,
)
from datafari_rag.protocols import chat, chat_request, openai, ragapi, solr_select
from datafari_rag.protocols.request import Incoming
from datafari_rag.web.pages import markdown, results

Reader = Callable[[str], object]

QUESTION = "What does the common report say about nine?"
PLAIN = "The common report says that the ferry leaves at nine. It is blue. “Quoted words here” he said. "
CLAIM = "The common report says that the ferry leaves at nine [1]. “Quoted words here” [1]. "
TERMS = term_matching.terms_of(QUESTION, "en")
SETTINGS = Settings(rag_max_json_length=6000)
LARGE = Settings(rag_max_json_length=40_000)


def document(text: str, *, title: str = "Public handbook", field: str = "exactContent") -> Document:
    return Document(id="d", text=text, field=field, title=title, url="http://x/y", score=1.0, language="en")


def seen(text: str) -> tuple[Extract, ...]:
    return extracts_for([(document(text), (Passage(0, len(text)),))], is_cleaned=True)


SMALL = seen(PLAIN)


def fed(filter_: links.SafeLinks | followup_questions.Followups | output_filter.Voice, text: str, size: int) -> str:
    return "".join([*(filter_.feed(text[at : at + size]) for at in range(0, len(text), size)), filter_.end()])


def safe_links() -> links.SafeLinks:
    return links.SafeLinks(["http://x/y"], ["Public handbook"])


def new_voice() -> output_filter.Voice:
    return output_filter.Voice(SMALL, wants_followups=True, links="documents")


def evidence_for(text: str, *, ask: Ask | None = None, settings: Settings = SETTINGS) -> object:
    found = [document(text + PLAIN), document(PLAIN)]
    return budget_fitting.evidence_for(
        ask or Ask(question=QUESTION), found, language="en", settings=settings, count=token_estimate.estimate
    )


def sent(text: str) -> Incoming:
    body = {"messages": [{"role": "user", "content": text}, {"role": "user", "content": QUESTION}]}
    return Incoming(path="/chat", body=body)


def searched(text: str) -> object:
    ask = Ask(question=text, earlier_text=text)
    return list(plan.searches_for(ask, language="en", settings=Settings(rag_query_relax=True)))


def badges(text: str) -> object:
    cited = [{"label": "Public handbook", "document_id": "d", "status": "verified"}] * 2000
    return markdown.html_of(text, markdown.Marks(cited, [{"id": "d", "url": "u"}], {"verified": "verified"}))


def clipped_from(text: str) -> object:
    return snippet.clipped(text, 300, terms=TERMS, cue=answer_types.cue_of("when is it?"), language="en")


def events_of(text: str) -> object:
    data, stream = text.encode("utf-8", "surrogatepass"), sse.ServerSentEvents()
    return [stream.feed(data[at : at + 1000]) for at in range(0, len(data), 1000)], stream.end()


def in_regions(text: str) -> object:
    traces = term_matching.traces_of(TERMS, text, "en")
    return candidate_regions.bounds_in(text, traces, term_matching.weights_in(TERMS, traces), 3000)


def scored(text: str) -> object:
    bounds, traces = sentences.spans(text), term_matching.traces_of(TERMS, text, "en")
    return term_matching.sentence_scores(bounds, traces, term_matching.weights_in(TERMS, traces), text=text)


def claimed(text: str) -> object:
    found = claims.marks_in(text, markers.Marks(["Public handbook"]), lambda words_: False)
    return claims.claims_of(text, found, lambda words_: bool(words_.strip()))


def merged_turns(text: str) -> Iterator[object]:
    turns = tuple(Turn("user", part) for part in text.split(" ")[:2000])
    yield conversation.within(turns, budget_tokens=4000, count=token_estimate.estimate)
    yield conversation.search_text_for("Why?", turns, language="en")
    yield conversation.earlier_text(turns)


def asked_by(parse: Callable[[Incoming, Settings], object], text: str) -> object:
    fields = {
        "q": (text[:4000],),
        "fq": (f'source:"{text}"', f"source:[{text} TO b]", text),
        "fl": (text,),
        "sort": (text,),
    }
    return parse(Incoming(path="/search/select", query=fields, headers={"accept-language": text}), Settings())


READERS: dict[str, Reader] = {
    "citations.resolve, the answer": lambda text: resolution.resolve(text, SMALL, language="en"),
    "citations.resolve, the end of a claim": lambda text: resolution.resolve(
        text + " [1]. " + CLAIM, SMALL, language="en"
    ),
    "citations.resolve, the document": lambda text: resolution.resolve(CLAIM, seen(text + PLAIN), language="en"),
    "citations.resolve, both": lambda text: resolution.resolve(text[:2000] + " [1]", seen(text + PLAIN), language="en"),
    "citations.resolve, a quotation": lambda text: resolution.resolve(
        f"“{text}” [1]", seen(PLAIN + text + PLAIN), language="en"
    ),
    "citations.resolve, a part as quotation": lambda text: resolution.resolve(
        f"“{text[:600]}x” [1]", seen(PLAIN + text), language="en"
    ),
    "claims.marks_in": claimed,
    "cleaning.clean": lambda text: cleaning.clean(text, is_full=True),
    "cleaning.clean, controls alone": lambda text: cleaning.clean(text, is_full=False),
    "clipping.clipped": clipped_from,
    "conversation.search_text_for": lambda text: conversation.search_text_for(
        text, (Turn("user", text),), language="en"
    ),
    "conversation.within": lambda text: list(merged_turns(text)),
    "conversation.is_follow_up": lambda text: [
        conversation.is_follow_up(text, language=code) for code in ("en", "fr", "de", "es")
    ],
    "cues.cue_of": answer_types.cue_of,
    "cues.CUES": lambda text: [sum(1 for _ in cue.finditer(text)) for _, cue in answer_types.CUES],
    "cutting.cut_at": lambda text: truncation.cut_at(text, len(text) // 2),
    "cutting.between_characters": lambda text: truncation.between_characters(text, len(text) - 1),
    "cutting.longest_prefix": lambda text: truncation.longest_prefix(text, len(text), token_estimate.estimate, 100),
    "evidence.sentence_scores": scored,
    "evidence.terms_of": lambda text: [term_matching.terms_of(text, code) for code in ("en", "fr")],
    "evidence.traces_of": lambda text: [term_matching.traces_of(TERMS, text, code) for code in ("en", "ar")],
    "evidence.traces_of, its own words": lambda text: term_matching.traces_of(
        term_matching.terms_of(text[:300], "en"), text, "en"
    ),
    "extractive.answer, the document": lambda text: extractive_answer.answer(
        QUESTION, seen(text + PLAIN), language="en"
    ),
    "extractive.answer, the question": lambda text: extractive_answer.answer(text, SMALL, language="en"),
    "extractive.answer, both": lambda text: extractive_answer.answer(text[:4000], seen(text), language="en"),
    "extracts.extracts_for": seen,
    "extracts.resolved": extracts.resolved,
    "extracts.extracts_for, snippets": lambda text: extracts_for(
        [(document(text, field=HIGHLIGHTING), (Passage(0, len(text)),))], is_cleaned=True
    ),
    "facts.facts_of": lambda text: [statements.facts_of(text, code) for code in ("en", "fr")],
    "facts.tokens_of": lambda text: statements.tokens_of(text, "de"),
    "facts.carries": lambda text: statements.carries(
        statements.facts_of(text[:700], "en"), statements.facts_of(text[:1400], "en"), statements.Terms("en")
    ),
    "facts.beginnings": lambda text: statements.beginnings(statements.facts_of(text, "en"), frozenset(), "en"),
    "fit.evidence_for, a document": evidence_for,
    "fit.evidence_for, room for most": lambda text: evidence_for(text, settings=LARGE),
    "fit.evidence_for, its beginning": lambda text: evidence_for(text, settings=Settings(rag_extract="head")),
    "fit.evidence_for, the question": lambda text: evidence_for(PLAIN, ask=Ask(question=text)),
    "fit.evidence_for, an attachment": lambda text: evidence_for(
        PLAIN, ask=Ask(question=QUESTION, attachments=(Attachment("a", text),))
    ),
    "fit.evidence_for, a token budget": lambda text: evidence_for(
        text, ask=Ask(question=QUESTION, token_budget=TokenBudget(4000, 500, 3))
    ),
    "folding.fold": folding.fold,
    "folding.folded": folding.folded,
    "folding.aligned": folding.aligned,
    "followups.Followups": lambda text: fed(followup_questions.Followups(), text, len(text)),
    "followups.Followups, by characters": lambda text: fed(followup_questions.Followups(), text, 1),
    "gate.evidence_in": lambda text: evidence_threshold.evidence_in(QUESTION, seen(text + PLAIN), language="en"),
    "gate.evidence_in, the question": lambda text: evidence_threshold.evidence_in(text, SMALL, language="en"),
    "identity.believed_name": lambda text: identity.believed_name(text, "corp"),
    "identity.client_address": lambda text: identity.client_address(
        "127.0.0.1", text, identity.networks(["127.0.0.0/8"])
    ),
    "kept.kept_of": lambda text: stream_retention.given_back(stream_retention.kept_of(seen(text)), is_cleaned=True),
    "labels.plain_label": labels.plain_label,
    "labels.labels_for": lambda text: labels.labels_for([document("x", title=text)] * 20),
    "labels.title_of": lambda text: labels.title_of(Document(id="d", text="", url=f"http://x/{text}")),
    "language.detect": language.detect,
    "links.SafeLinks": lambda text: fed(safe_links(), text, len(text)),
    "links.SafeLinks, by characters": lambda text: fed(safe_links(), text, 1),
    "links.SafeLinks, by sevens": lambda text: fed(safe_links(), text, 7),
    "lowering.lowered": lowering.lowered,
    "marks.Marks": lambda text: (markers.Marks([text, "b"]).places(text), markers.Marks(["a"]).is_beginning(text)),
    "marks.numbers_in": lambda text: markers.numbers_in(text[: markers.MAX_MARK_CHARS]),
    "memory.issued": lambda text: session_state.issued(
        [Turn("user", text)] * 50, session_state.Seal("s", "u", 0.0), session_state.Limits()
    ),
    "memory.is_ours": session_state.is_ours,
    "openai.parse": lambda text: openai.parse(
        Incoming(path="/v1/chat/completions", body={"messages": [{"role": "user", "content": text[:20_000]}]}),
        Settings(),
    ),
    "overrides.applied": lambda text: chat_overrides.applied(
        Ask(question=QUESTION), {"prompt_template": text[:5000]}, Settings()
    ),
    "overrides.instructed": lambda text: chat_overrides.instructed(text, text),
    "parameters.restriction_of": lambda text: [
        select_parameters.restriction_of(f"source:{one}", ("source",))
        for one in (text, f'"{text}"', f"[{text} TO b]", f"[a {text}", f"[a TO {text}", f'["{text}')
    ],
    "parameters.forged_names": lambda text: select_parameters.forged_names([text], {text: 1}),
    "passages.nodes": lambda text: selection.nodes(
        QUESTION, [document(text)], node_size=300, size_of=token_estimate.estimate
    ),
    "passages.select": lambda text: selection.select(
        QUESTION, [document(text), document(text + "x")], limit=selection.Limit(3000, 2), language="en"
    ),
    "phrases.phrases_of": lambda text: phrase_matching.phrases_of(text, term_matching.terms_of(text, "en"), "en"),
    "planning.searches_for": searched,
    "planning.language_for": lambda text: plan.language_for(Ask("?", accept_language=text), language.detect),
    "prompt.document_message": lambda text: prompt.document_message(seen(text + "x")[0], "nonce"),
    "prompt.instructions_for": lambda text: prompt.instructions_for(text, language="en", answer_format=None),
    "prose.html_of": badges,
    "prose.html_of, no citations": lambda text: markdown.html_of(text, markdown.Marks([], [], {})),
    "query.steps_for": lambda text: steps.steps_for(text, language="en", operator="AND", is_relaxed=True),
    "query.has_own_words": lambda text: steps.has_own_words(text, "fr"),
    "quotations.quotations": quotations.quotations,
    "ragapi.parse": lambda text: asked_by(ragapi.parse, text),
    "ranking.ranked": lambda text: reranking.ranked(QUESTION, [document(text)] * 3, language="en", terms=TERMS),
    "ranking.ranked, by title": lambda text: reranking.ranked(
        QUESTION, [document(PLAIN + text), document(PLAIN, title=text)], language="en", terms=TERMS
    ),
    "reading.ask_of": lambda text: chat.parse(sent(text), Settings()),
    "reading.is_unicode": chat_request.is_unicode,
    "regions.bounds_in": in_regions,
    "relations.agrees": lambda text: term_relations.agrees(text[:700], [text[:700], text[700:1400]], "en"),
    "results.marked_html": results.marked_html,
    "results.hits_of": lambda text: results.hits_of(
        {"response": {"docs": [{"id": text, "url": text, "preview_content": text}]}}
    ),
    "rewriting.with_query": lambda text: rewriting.with_query(Ask(question=QUESTION), text),
    "select.parse": lambda text: asked_by(solr_select.parse, text),
    "sentences.spans": sentences.spans,
    "sentences.blocks": lambda text: sentences.blocks(text, 350),
    "sentences.bounds_around": lambda text: [
        sentences.bounds_around(text, at, at + 1) for at in range(0, len(text), 5000)
    ],
    "solr_params.escaped": parameters.escaped,
    "solr_params.usable_words": lambda text: parameters.usable_words(text.split(), "en"),
    "stems.stem": lambda text: stemmer.stem(text.lower(), "en"),
    "stopwords.is_empty_word": lambda text: stopwords.is_empty_word(text, "en"),
    "streams.ServerSentEvents": events_of,
    "support.Seen.carrying": lambda text: verification.Seen(seen(text + PLAIN)[0], "en").carrying(
        "The ferry leaves at nine"
    ),
    "support.Seen.carrying, its own words": lambda text: verification.Seen(seen(text + PLAIN)[0], "en").carrying(
        text[:700]
    ),
    "support.Seen.spelled": lambda text: verification.Seen(seen(text + PLAIN)[0], "en").spelled(text[:2000]),
    "support.Seen.quoted": lambda text: verification.Seen(seen(text + PLAIN)[0], "en").quoted(text[:600]),
    "tokens.estimate": token_estimate.estimate,
    "voice.Voice": lambda text: fed(new_voice(), text, len(text)),
    "voice.Voice, by fives": lambda text: fed(new_voice(), text, 5),
    "words.words_of": lambda text: [tokenizer.words_of(text, code) for code in ("en", "fr", "it")],
    "words.sought_in": lambda text: tokenizer.sought_in(text, "en"),
}
