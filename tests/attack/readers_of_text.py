"""Every function that a caller's, a document's or a model's text reaches, as one that takes the text alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from datafari_rag.core import access, documents, identity, steps, whole
from datafari_rag.core.answer import (
    audit_record,
    conversations,
    output_filter,
    proved_output,
)
from datafari_rag.core.ask import MAX_QUESTION_CHARS, Ask, Attachment, ChatMessage, TokenBudget
from datafari_rag.core.documents import HIGHLIGHTING, Citation, Document, Extract, Passage
from datafari_rag.core.errors import Rejection
from datafari_rag.core.events import UnsupportedPolicy
from datafari_rag.core.evidence import answer, budget, choice, extracts, gate, matching, parts, passages, scoring
from datafari_rag.core.evidence.extracts import extracts_for
from datafari_rag.core.meaning import near_search
from datafari_rag.core.model import prompt, replies, servers, streams
from datafari_rag.core.model.servers import ServerNeeds
from datafari_rag.core.proof import checking, labels, links, marks
from datafari_rag.core.proof import words as proof_words
from datafari_rag.core.query import dates, filter_queries, plan, proposals, select_parameters
from datafari_rag.core.search_request import Browse
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.solr import parameters
from datafari_rag.core.text import cleaning, language, sentences, sizes, structure, tokens
from datafari_rag.protocols import ai, chat, grounding, ragapi, solr_select
from datafari_rag.protocols import ai_conversations as stored_wire
from datafari_rag.protocols.mcp import messages
from datafari_rag.protocols.mcp import replies as results_of_tools
from datafari_rag.protocols.mcp.tools import MAX_CHECKED_CHARS
from datafari_rag.protocols.openai import chat_completions, renderings, responses
from datafari_rag.protocols.request import Incoming
from datafari_rag.web.pages import results
from tests.settings import settings_with

Reader = Callable[[str], object]

QUESTION = "What does the common report say about nine?"
PLAIN = "The common report says that the ferry leaves at nine. It is blue. “Quoted words here” he said. "
CLAIM = "The common report says that the ferry leaves at nine [1]. “Quoted words here” [1]. "
TERMS = matching.terms_of(QUESTION, "en")
SETTINGS = settings_with(rag_max_json_length=6000)
LARGE = settings_with(rag_max_json_length=40_000)


def document(text: str, *, title: str = "Public handbook", field: str = "exactContent") -> Document:
    return Document(id="d", text=text, field=field, title=title, url="http://x/y", score=1.0, language="en")


def hits_with(text: str) -> dict[str, Any]:
    """Return a page of hits as Solr has it, with *text* in a title and in a highlight."""
    docs = [{"id": "d", "title": [text]}]
    marked = {"d": {"exactContent": [f'<span class="em">{text[:20_000]}</span>']}}
    return {"response": {"numFound": 1, "start": 0, "docs": docs}, "highlighting": marked}


def weighed(text: str) -> whole.WeighedText:
    return whole.weigh(text, title=text, language="en")


def ai_request(body: object) -> Incoming:
    return Incoming("/rest/v2.0/ai", body=body)


def seen(text: str) -> tuple[Extract, ...]:
    return extracts_for([(document(text), (Passage(0, len(text)),))], is_cleaned=True)


SMALL = seen(PLAIN)
PIECES = whole.PieceLimit(10, 4000, 1000, sizes.estimate)
ROOM = results_of_tools.Room(2000, sizes.estimate)


def fed(
    filter_: output_filter.Followups | output_filter.OutputFilter | proved_output.ProvedOutput,
    text: str,
    size: int,
) -> str:
    return "".join([*(filter_.feed(text[at : at + size]) for at in range(0, len(text), size)), filter_.end()])


def checked_output(unsupported: UnsupportedPolicy) -> proved_output.ProvedOutput:
    asked = prompt.Prompt(QUESTION, SMALL, None, "n")
    return proved_output.ProvedOutput(asked, new_voice(), unsupported)


def new_voice() -> output_filter.OutputFilter:
    return output_filter.OutputFilter(wants_followups=True)


def signals_in(question: str, text: str) -> object:
    weighed = scoring.weigh(question, [document(text)], language="en")
    return gate.signals_in(weighed, language="en", most=0)


def evidence_for(text: str, *, ask: Ask | None = None, settings: Settings = SETTINGS) -> object:
    found = [document(text + PLAIN), document(PLAIN)]
    return budget.evidence_for(
        ask or Ask(question=QUESTION),
        found,
        language="en",
        rag=settings.rag,
        window=settings.window,
        count=sizes.estimate,
    )


def sent(text: str) -> Incoming:
    body = {"messages": [{"role": "user", "content": text}, {"role": "user", "content": QUESTION}]}
    return Incoming(path="/chat", body=body)


def searched(text: str) -> object:
    ask = Ask(question=text, earlier_text=text)
    return list(plan.searches_for(ask, language="en", rag=SETTINGS.rag))


def badges(text: str) -> object:
    about = {
        "label": "Public handbook",
        "document_id": "d",
        "status": "verified",
        "claim": "a",
        "missing": [],
        "added": [],
    }
    cited = [
        {**about, "missing": [], "added": [], "answer_start": at, "answer_end": at + 3}
        for at in range(0, len(text) - 3, 8)
    ]
    cited = cited[: marks.MAX_MARKS]
    return results.html_of(text, results.PlacedCitations(cited, [{"id": "d", "url": "u"}], {"verified": "verified"}))


def events_of(text: str) -> object:
    data, stream = text.encode("utf-8", "surrogatepass"), streams.ServerSentEvents()
    return [stream.feed(data[at : at + 1000]) for at in range(0, len(data), 1000)], stream.end()


def scored(text: str) -> object:
    pieces = passages.pieces_of(text, 20)
    return scoring.piece_scores(pieces, matching.hits_in(text, TERMS, "en"), TERMS)


def refusal_of(text: str) -> Rejection:
    return Rejection(400, error={"message": text})


def claimed(text: str) -> object:
    found = marks.marks_in(text, labels.DocumentLabels(["Public handbook"]))
    return marks.claims_in(text, found)


def merged_turns(text: str) -> Iterator[object]:
    turns = tuple(ChatMessage("user", part) for part in text.split(" ")[:2000])
    yield plan.within(turns, budget_tokens=4000, count=sizes.estimate)
    yield plan.search_text_for("Why?", turns, language="en")
    yield plan.earlier_text(turns)


def asked_by(parse: Callable[[Incoming, Settings], object], text: str) -> object:
    fields = {
        "q": (text[:4000],),
        "fq": (f'source:"{text}"', f"source:[{text} TO b]", text),
        "fl": (text,),
        "sort": (text,),
    }
    return parse(Incoming(path="/search/select", query=fields, headers={"accept-language": text}), Settings())


READERS: dict[str, Reader] = {
    "core.model.servers.without_refused": lambda text: servers.without_refused(ServerNeeds(), refusal_of(text)),
    "core.model.servers.words_of": lambda text: servers.words_of(refusal_of(text), [text], ["secret"]),
    "core.text.cleaning.visible": cleaning.visible,
    "core.answer.output_filter.Followups": lambda text: fed(output_filter.Followups(), text, len(text)),
    "core.answer.output_filter.Followups, by characters": lambda text: fed(output_filter.Followups(), text, 1),
    "core.answer.output_filter.OutputFilter": lambda text: fed(new_voice(), text, len(text)),
    "core.answer.output_filter.OutputFilter, by fives": lambda text: fed(new_voice(), text, 5),
    "core.model.prompt.document_message": lambda text: prompt.document_message(seen(text + "x")[0], "nonce"),
    "core.model.prompt.instructions_for": lambda text: prompt.instructions_for(text, language="en", answer_format=None),
    "core.answer.proved_output.ProvedOutput, mark": lambda text: fed(checked_output("mark"), text, len(text)),
    "core.answer.proved_output.ProvedOutput, drop": lambda text: fed(checked_output("drop"), text, len(text)),
    "core.answer.proved_output.ProvedOutput, drop, by hundreds": lambda text: fed(checked_output("drop"), text, 100),
    "core.answer.conversations.is_ours": conversations.is_ours,
    "core.answer.conversations.issued": lambda text: conversations.issued(
        [ChatMessage("user", text)] * 50, conversations.NoSigning(), now_s=0.0, limits=conversations.StateLimits()
    ),
    "core.answer.conversations.is_conversation_id": conversations.is_conversation_id,
    "core.answer.conversations.title_from": conversations.title_from,
    "core.proof.marks.marks_in": claimed,
    "core.proof.labels.DocumentLabels": lambda text: labels.DocumentLabels([text, "b"]).places(text),
    "core.proof.labels.numbers_in": lambda text: labels.numbers_in(text[: labels.MAX_MARK_CHARS]),
    "core.text.sentences.statements": sentences.statements,
    "core.proof.words.rough_roots": proof_words.rough_roots,
    "core.proof.checking.resolve, a part as quotation": lambda text: checking.resolve(
        f"“{text[:600]}x” [1]", seen(PLAIN + text), language="en"
    ),
    "core.proof.checking.resolve, a quotation": lambda text: checking.resolve(
        f"“{text}” [1]", seen(PLAIN + text + PLAIN), language="en"
    ),
    "core.proof.checking.resolve, both": lambda text: checking.resolve(
        text[:2000] + " [1]", seen(text + PLAIN), language="en"
    ),
    "core.proof.checking.resolve, the answer": lambda text: checking.resolve(text, SMALL, language="en"),
    "core.proof.checking.resolve, the document": lambda text: checking.resolve(
        CLAIM, seen(text + PLAIN), language="en"
    ),
    "core.proof.checking.resolve, the end of a claim": lambda text: checking.resolve(
        text + " [1]. " + CLAIM, SMALL, language="en"
    ),
    "core.proof.checking.checked_against": lambda text: checking.checked_against(text[:2000], [Document("d", PLAIN)]),
    "core.proof.checking.checked": lambda text: checking.checked(text[:MAX_CHECKED_CHARS], SMALL),
    "core.proof.checking.checked, the document": lambda text: checking.checked(CLAIM, seen(text + PLAIN)),
    "core.proof.checking.checked, its own words": lambda text: checking.checked(text[:2000], seen(text + PLAIN)),
    "core.identity.authority_of": lambda text: (identity.authority_of(text), identity.authority_of(f"http://{text}")),
    "core.identity.bracketed": identity.bracketed,
    "core.identity.is_known": lambda text: identity.is_known([text, "a"], ["a", text]),
    "core.identity.is_same": lambda text: identity.is_same(text, text),
    "core.identity.believed_name": lambda text: identity.believed_name(text, "corp"),
    "core.identity.client_address": lambda text: identity.client_address(
        "127.0.0.1", text, identity.networks(["127.0.0.0/8"])
    ),
    "core.identity.counted_address": identity.counted_address,
    "core.identity.qualified_name": lambda text: identity.qualified_name(text, "corp"),
    "core.proof.labels.labels_for": lambda text: labels.labels_for([document("x", title=text)] * 20),
    "core.proof.labels.plain_label": labels.plain_label,
    "core.proof.labels.title_of": lambda text: labels.title_of(Document(id="d", text="", url=f"http://x/{text}")),
    "core.model.streams.ServerSentEvents": events_of,
    "core.documents.place_at": lambda text: [
        documents.place_at(stored, text, len(text))
        for stored in (text, f"0 {text}", f"0 row 1 {text}", "\n".join(f"{at} row 1" for at in range(len(text) // 8)))
    ],
    "core.documents.with_rows_at": lambda text: [
        documents.with_rows_at(stored, text, range(0, len(text), 50)) for stored in (text, f"0 {text}", "0 row 1 Q3")
    ],
    "core.query.dates.moment_of": lambda text: (dates.moment_of(text), dates.date_math_of(f"NOW{text}")),
    "core.query.proposals.topics_of": lambda text: proposals.topics_of([(text, text), (text, f"## {text}")]),
    "core.query.proposals.documents_on": lambda text: proposals.documents_on(hits_with(text)),
    "core.query.plan.content_words": lambda text: plan.content_words(text, "en"),
    "core.evidence.budget.evidence_for, a document": evidence_for,
    "core.evidence.budget.evidence_for, a token budget": lambda text: evidence_for(
        text, ask=Ask(question=QUESTION, token_budget=TokenBudget(4000, 500, 3))
    ),
    "core.evidence.budget.evidence_for, an attachment": lambda text: evidence_for(
        PLAIN, ask=Ask(question=QUESTION, attachments=(Attachment("a", text),))
    ),
    "core.evidence.budget.evidence_for, room for most": lambda text: evidence_for(text, settings=LARGE),
    "core.evidence.budget.evidence_for, the question": lambda text: evidence_for(PLAIN, ask=Ask(question=text)),
    "core.evidence.gate.signals_in": lambda text: signals_in(QUESTION, text + PLAIN),
    "core.evidence.gate.signals_in, the question": lambda text: signals_in(text, PLAIN),
    "core.evidence.answer.answer, both": lambda text: answer.answer(text[:4000], seen(text), language="en"),
    "core.evidence.answer.answer, the document": lambda text: answer.answer(
        QUESTION, seen(text + PLAIN), language="en"
    ),
    "core.evidence.answer.answer, the question": lambda text: answer.answer(text, SMALL, language="en"),
    "core.evidence.extracts.extracts_for": seen,
    "core.evidence.extracts.extracts_for, snippets": lambda text: extracts_for(
        [(document(text, field=HIGHLIGHTING), (Passage(0, len(text)),))], is_cleaned=True
    ),
    "core.evidence.matching.hits_in": lambda text: [matching.hits_in(text, TERMS, code) for code in ("en", "ar")],
    "core.evidence.matching.hits_in, its own words": lambda text: matching.hits_in(
        text, matching.terms_of(text[:300], "en"), "en"
    ),
    "core.evidence.passages.pieces_of": lambda text: [passages.pieces_of(text, size) for size in (1, 300)],
    "core.evidence.scoring.weigh": lambda text: scoring.weigh(QUESTION, [document(text)] * 3, language="en"),
    "core.evidence.scoring.weigh, by title": lambda text: scoring.weigh(
        QUESTION, [document(PLAIN + text), document(PLAIN, title=text)], language="en"
    ),
    "core.evidence.extracts.resolved": extracts.resolved,
    "core.evidence.choice.nodes": lambda text: choice.nodes(
        QUESTION, [document(text)], language="en", node_size=300, size_of=sizes.estimate
    ),
    "core.evidence.choice.select": lambda text: choice.select(
        QUESTION, [document(text), document(text + "x")], limit=choice.Limit(3000, 2), language="en"
    ),
    "core.evidence.scoring.piece_scores": scored,
    "core.evidence.matching.terms_of": lambda text: [matching.terms_of(text, code) for code in ("en", "fr")],
    "core.query.plan.search_text_for": lambda text: plan.search_text_for(
        text, (ChatMessage("user", text),), language="en"
    ),
    "core.query.plan.within": lambda text: list(merged_turns(text)),
    "core.query.plan.language_for": lambda text: plan.language_for(Ask("?", accept_language=text)),
    "core.query.plan.searches_for": searched,
    "core.query.plan.with_query": lambda text: plan.with_query(Ask(question=QUESTION), text, "en"),
    "core.steps.lead_from": lambda text: steps.lead_from(QUESTION, Document("d", text), language="en"),
    "core.steps.queries_in": lambda text: steps.queries_in(text, (QUESTION,)),
    "core.steps.pooled": lambda text: steps.pooled(
        QUESTION,
        ((Document("a", text, title="A", score=2.0),), (Document("b", "b", title=text, score=1.0),)),
        leads=(steps.Lead(Document("a", ""), ("Paris",), ("noon",)),),
        language="en",
    ),
    "core.query.select_parameters.forged_names": lambda text: select_parameters.forged_names([text], {text: 1}),
    "core.query.filter_queries.restriction_of": lambda text: [
        (filter_queries.restriction_of(one, ("source",)), filter_queries.misread_field(one, ("source",)))
        for value in (text, f'"{text}"', f"[{text} TO b]", f"[a {text}", f"[a TO {text}", f'["{text}', f"(a OR {text}")
        for one in (f"source:{value}", f"{{!tag={value}", f"-({value})")
    ],
    "core.query.plan.own_words": lambda text: plan.own_words(text, "fr"),
    "core.query.plan.plain_step": lambda text: plan.plain_step(
        text[:MAX_QUESTION_CHARS], language="en", operator="AND"
    ),
    "core.query.plan.steps_for": lambda text: plan.steps_for(text, language="en", operator="AND"),
    "core.solr.parameters.escaped": parameters.escaped,
    "core.solr.parameters.usable_words": lambda text: parameters.words_within(
        parameters.usable_words(text.split(), "en"), 100
    ),
    "core.proof.links.is_target": lambda text: (links.is_target(text), links.is_target(f"{text}:")),
    "core.proof.links.target_of": lambda text: links.target_of(Document(id=text, text="", url=f"{text}:x")),
    "core.meaning.near_search.pieces_of": near_search.pieces_of,
    "core.meaning.near_search.plain_cuts_of": near_search.plain_cuts_of,
    "core.meaning.near_search.cuts_of": lambda text: near_search.cuts_of(text, text, "model"),
    "core.evidence.parts.with_parts": lambda text: parts.with_parts(
        Document(id="a", text=""),
        [parts.StoredPart(3 * at, one) for at, one in enumerate(text.split())],
    ),
    "core.evidence.parts.passages_in": parts.passages_in,
    "core.evidence.parts.in_parts": lambda text: parts.in_parts(
        [Document("a", text), Document("b", text)], text[:400], "en"
    ),
    "core.solr.parameters.numbered": parameters.numbered,
    "core.text.cleaning.unescaped": cleaning.unescaped,
    "core.text.structure.headings_in": structure.headings_in,
    "core.text.structure.cells_of": lambda text: structure.cells_of(text, (0, len(text)), (0, len(text))),
    "core.text.structure.table_at": lambda text: structure.table_at(text, len(text)),
    "core.text.structure.tables_in": structure.tables_in,
    "core.text.cleaning.clean": lambda text: cleaning.clean(text, is_full=True),
    "core.text.cleaning.clean, controls alone": lambda text: cleaning.clean(text, is_full=False),
    "core.text.cleaning.without_directions": cleaning.without_directions,
    "core.text.cleaning.is_unicode": cleaning.is_unicode,
    "core.text.cleaning.encodable": cleaning.encodable,
    "core.text.cleaning.without_invisible": cleaning.without_invisible,
    "core.text.language.detect": language.detect,
    "core.text.language.language_code": language.language_code,
    "core.text.cleaning.lowered": cleaning.lowered,
    "core.text.sentences.blocks": lambda text: sentences.blocks(text, 350),
    "core.text.sentences.bounds_around": lambda text: [
        sentences.bounds_around(text, at, at + 1) for at in range(0, len(text), 5000)
    ],
    "core.text.sentences.spans": sentences.spans,
    "core.text.language.is_empty_word": lambda text: language.is_empty_word(text, "en"),
    "core.text.sizes.estimate": sizes.estimate,
    "core.text.tokens.with_forms": lambda text: tokens.with_forms(cleaning.lowered(text)),
    "core.text.tokens.tokens": lambda text: tokens.tokens(text, "en"),
    "core.text.tokens.sought_in": lambda text: tokens.sought_in(text[:MAX_QUESTION_CHARS], "en"),
    "core.text.sizes.cut_at": lambda text: sizes.cut_at(text, len(text) // 2),
    "core.text.sizes.word_end": lambda text: sizes.word_end(text, 0, len(text) // 2),
    "core.text.sizes.longest_prefix": lambda text: sizes.longest_prefix(text, len(text), sizes.estimate, 100),
    "core.whole.weigh": lambda text: weighed(text),
    "core.whole.chosen": lambda text: whole.chosen(weighed(text), 12),
    "core.whole.condensed": lambda text: whole.condensed(weighed(text), (0, len(text)), 4000),
    "core.whole.words_at": lambda text: whole.words_at(text, Passage(0, len(text))),
    "core.whole.piece_spans": lambda text: whole.piece_spans(weighed(text), PIECES),
    "core.whole.piece_extract": lambda text: whole.piece_extract(
        document(text), weighed(text), (0, len(text)), limit=PIECES, is_cleaned=True
    ),
    "core.whole.proved": lambda text: whole.proved(text[:MAX_CHECKED_CHARS], SMALL, language="en"),
    "core.whole.provable": lambda text: whole.provable([text[:MAX_CHECKED_CHARS]], SMALL, language="en"),
    "core.whole.proved, the document": lambda text: whole.proved(CLAIM, seen(text + PLAIN), language="en"),
    "protocols.ai.AiAction.parse": lambda text: ai.ACTIONS["rag"].parse(
        ai_request({"query": text[:4000], "history": [{"role": "user", "message": text}], "lang": text, text: text}),
        Settings(),
    ),
    "protocols.ai.AiAction.parse, a work": lambda text: [
        ai.ACTIONS["synthesize"].parse(ai_request({"filters": {"id": [text], "fq": [text]}}), Settings()),
        ai.ACTIONS["search"].parse(ai_request({"filters": {"fq": [f"source:{text}"]}, "query": "x"}), Settings()),
    ],
    "protocols.ai_conversations.renaming": lambda text: stored_wire.renaming(
        ai_request({"conversationId": text, "title": text})
    ),
    "protocols.chat.ask_of": lambda text: chat.CHAT.parse(sent(text), Settings()),
    "protocols.grounding.parse": lambda text: grounding.parse(
        Incoming("", body={"answerCandidate": text[:20_000], "facts": [{"factText": text, "attributes": {"a": text}}]})
    ),
    "protocols.mcp.messages.decoded": lambda text: (messages.decoded(text), messages.decoded(f"=?base64?{text}?=")),
    "protocols.mcp.messages.message_of": lambda text: messages.message_of(
        {"jsonrpc": "2.0", "id": text, "method": text, "params": {"_meta": {messages.VERSION_KEY: text}}},
        {messages.VERSION_HEADER: text},
    ),
    "protocols.mcp.messages.short_name": messages.short_name,
    "protocols.mcp.replies.address_of": lambda text: results_of_tools.address_of(
        Document(id=text, text="", url=f"https://x.example/{text}"), ""
    ),
    "protocols.mcp.replies.check_result": lambda text: results_of_tools.check_result(
        text, [checking.CheckedSentence(0, len(text), "unsupported")], [document("x", title=text)], [text], ROOM
    ),
    "protocols.mcp.replies.fetched": lambda text: results_of_tools.fetched(document(text), (0, len(text)), ROOM),
    "protocols.openai.chat_completions.parse": lambda text: chat_completions.parse(
        Incoming(path="/v1/chat/completions", body={"messages": [{"role": "user", "content": text[:20_000]}]}),
        Settings(),
    ),
    "protocols.openai.chat_completions.parse, a model of ours": lambda text: chat_completions.parse(
        Incoming(
            path="/v1/chat/completions",
            body={"model": "datafari", "messages": [{"role": "user", "content": text[:4_000]}], text: text},
        ),
        Settings(),
    ),
    "core.proof.links.passage_link": lambda text: [
        links.passage_link(
            Citation("L", "verified", text, answer_start=0, answer_end=3, url=url, quote=text), "http://a"
        )
        for url in (f"https://a.org/{text}", f"http://{text}", None)
    ],
    "core.answer.audit_record.keys_by_id": lambda text: audit_record.keys_by_id([text, "k" * 32]),
    "core.access.line_of": lambda text: access.line_of(text, at_s=0.0, by=text),
    "core.access.same_user": access.same_user,
    "core.identity.naming_headers": lambda text: identity.naming_headers([text] * 100, text),
    "core.model.servers.callers_error": lambda text: servers.callers_error(
        replies.failure_for(refusal_of(text), now_s=0),
        chosen=("model", "messages"),
        model=text,
    ),
    "protocols.openai.renderings.our_model": lambda text: renderings.our_model(f"{text}/{text}", Settings().openai),
    "protocols.openai.responses.parse": lambda text: responses.parse(
        Incoming(path="/v1/responses", body={"input": text[:4_000], "instructions": text[:20_000]}), Settings()
    ),
    "protocols.openai.chat_completions.task_reply": lambda text: [
        chat_completions.task_reply(text, (ChatMessage("system", text),)),
        chat_completions.task_reply("### Task:" + text, ()),
    ],
    "protocols.ragapi.parse": lambda text: asked_by(ragapi.parse, text),
    "protocols.solr_select.parse": lambda text: asked_by(solr_select.parse, text),
    "protocols.solr_select.reply": lambda text: solr_select.reply(
        {"response": {"docs": [{"id": text, "title": [text], "url": text}]}},
        Browse(text),
        Settings().solr,
        lambda value: len(str(value)),
    ),
    "web.pages.results.html_of": badges,
    "web.pages.results.html_of, no citations": lambda text: results.html_of(text, results.PlacedCitations([], [], {})),
    "web.pages.results.hits_of": lambda text: results.hits_of(
        {"response": {"docs": [{"id": text, "url": text, "preview_content": text}]}}
    ),
    "web.pages.results.marked_html": results.marked_html,
}
