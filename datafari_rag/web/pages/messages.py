"""
What the page says of each outcome: a title and what to do about it, for every label of `core/errors.py`.

No sentence distinguishes "there is nothing" from "there is something that you may not read".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

Translate = Callable[[str], str]


def title_and_hint(label: str, _: Translate) -> tuple[str, str]:
    """Return how the page names the failure *label*, and what its reader can do; the words of `internal` for others."""
    words = failures(_)
    return words.get(label, words["internal"])


def failures(_: Translate) -> Mapping[str, tuple[str, str]]:
    """Return title and hint of every failure a reader can meet, by label."""
    return {**_of_questions(_), **_of_models(_), **_of_services(_)}


def _of_questions(_: Translate) -> Mapping[str, tuple[str, str]]:
    return {
        "noDocuments": (
            _("No document answers this question"),
            _("Try other words, or fewer of them, or the language of the documents, or remove a filter."),
        ),
        "noQuery": (_("Write a question first"), _("A few words are enough.")),
        "queryTooLong": (_("This question is too long"), _("A question can have at most 4000 characters.")),
        "contextTooLong": (
            _("This conversation has become too long"),
            _("Start a new one and ask your question again."),
        ),
        "tooManyValues": (_("Too many values"), _("Remove some of the filters, then ask again.")),
        "badRequest": (_("The question could not be read"), _("Please write it again.")),
        "unsupportedMediaType": (_("The question could not be read"), _("Please write it again.")),
        "notFound": (_("Not found"), _("This document does not exist, or you do not have access to it.")),
        "notAuthenticated": (_("Please sign in"), _("This service only answers users who are signed in.")),
        "notAllowed": (_("You do not have access to this page"), _("Only administrators may open this page.")),
        "unknownHost": (
            _("This address is not recognised"),
            _("Open this service under the name that your administrator gave you."),
        ),
        "tooManyRequests": (_("Too many questions"), _("You have reached the limit. Wait a minute, then try again.")),
        "budgetSpent": (
            _("Your tokens of this day are spent"),
            _("The language model answers you again when this day is over (UTC). The search still works."),
        ),
        "accountsUnavailable": (
            _("Answers cannot be counted"),
            _("Tokens have a limit, and cannot be counted right now. Try again in a moment."),
        ),
    }


def _of_models(_: Translate) -> Mapping[str, tuple[str, str]]:
    later = _("Your question has been kept: try again in a moment.")
    settings = _("An administrator must check its address, name and token.")
    return {
        "noAnswer": (
            _("The model gave no answer"),
            _("The documents below were found. Rephrase your question, or open one of them."),
        ),
        "contentFiltered": (
            _("The model's provider refused this question"),
            _("Its content filter blocked it. Rephrase your question."),
        ),
        "modelBusy": (_("The language model is busy"), later),
        "modelTimeout": (_("The language model is too slow"), later),
        "modelUnavailable": (
            _("The language model cannot be reached"),
            _("The search still works: its results are below. Try again in a moment."),
        ),
        "modelGarbled": (_("The language model's answer could not be read"), later),
        "modelRefused": (_("The language model refused the request"), settings),
        "modelKeyRefused": (_("The language model's server refused this service's key"), settings),
        "modelNotFound": (_("The language model's server does not have this model"), settings),
        "modelParameterRefused": (_("The language model's server does not accept the request's form"), settings),
        "modelOutOfCredit": (_("The account at the language model's provider has no credit left"), settings),
        "modelInputTooLong": (
            _("The documents are too long for the language model"),
            _("An administrator must check the size of its window."),
        ),
        "onlyThoughts": (
            _("The language model thought, and gave no answer"),
            _("Ask a shorter question. An administrator can allow longer answers."),
        ),
        "thoughtsPassedOn": (_("The answer began with the language model's thoughts"), _("Please ask again.")),
    }


def _of_services(_: Translate) -> Mapping[str, tuple[str, str]]:
    later = _("Your question has been kept: try again in a moment.")
    return {
        "searchUnavailable": (
            _("The search is not available"),
            _("The search is not available now. Your question has been kept: try again later."),
        ),
        "searchTimeout": (_("The search took too long"), later),
        "authorityUnavailable": (
            _("Your access rights cannot be checked"),
            _("Nothing can be shown without them. Your question has been kept: try again later."),
        ),
        "authorityTimeout": (_("Your access rights could not be checked in time"), later),
        "badSetting": (
            _("This service is not configured correctly"),
            _("An administrator can fix it in the settings file."),
        ),
        "bodyTooLarge": (
            _("There is no room for this"),
            _("It is larger than this service accepts. Ask a shorter question, or send fewer or smaller files."),
        ),
        "overloaded": (_("Too many people are asking questions right now"), later),
        "tooMuchWork": (
            _("Working through the documents took too long"),
            _("Ask a shorter question, or attach shorter files."),
        ),
        "conversationsUnavailable": (_("Stored conversations are not available"), later),
        "network": (_("The connection was lost"), later),
        "internal": (
            _("Something went wrong"),
            _("Try again. If the problem persists, give an administrator the number below."),
        ),
    }


def statuses(_: Translate) -> Mapping[str, str]:
    """Return what is said of each status of a citation, and of what differs where one is near."""
    return {
        "verified": _("word for word in the document"),
        "quoted": _("compare: in these words, as part of this statement"),
        "near": _("compare: says much the same"),
        "unsupported": _("could not be checked: read the source"),
        "unknown": _("unknown source"),
        "missing": _("Not in the document: {words}"),
        "added": _("Only in the document: {words}"),
    }


def legend(_: Translate) -> Mapping[str, str]:
    """Return what each of the three colours of badges means, by a status that has it."""
    return {
        "verified": _("word for word in the document"),
        "near": _("compare: part of a statement, or much the same"),
        "unsupported": _("could not be checked: read the source"),
    }


def badge_counts(_: Translate) -> Mapping[str, str]:
    """Return how many badges of each shape there are, in words."""
    return {
        "✓": _("{number} word for word"),
        "○": _("{number} to compare"),
        "–": _("{number} could not be checked"),
        "?": _("{number} of unknown source"),
    }


def replaced(_: Translate) -> str:
    """Return the sentence about an answer of which nothing was left."""
    return _("The documents support nothing of what the model wrote: it is not shown.")


def other_language(_: Translate) -> str:
    """Return the sentence about an answer whose documents are all in another language."""
    return _("The documents are in another language than your question. Try it in theirs too.")


def script_words(_: Translate) -> Mapping[str, object]:
    """Return the words of the page's scripts, by the name they have there."""
    return {name: words for part in script_parts(_) for name, words in part.items()}


def script_parts(_: Translate) -> Sequence[Mapping[str, object]]:
    """Return the parts of `script_words`, no two of which have the same name."""
    outcomes = {"failures": failures(_), "statuses": statuses(_), "reasons": reasons(_)}
    return outcomes, _card_words(_), _made_words(_), _page_words(_), _basket_words(_)


def summary_words(_: Translate) -> Mapping[str, object]:
    """Return the words of the script that summarises a document."""
    outcomes = {"statuses": statuses(_), "failures": failures(_), "open_passage": _("Open the passage")}
    return {
        **outcomes,
        "summarising": _("Summarising the document…"),
        "failed": _("The summary could not be made: {reason}"),
    }


def _card_words(_: Translate) -> Mapping[str, object]:
    return {
        "searching": _("Searching the documents…"),
        "waiting": _("Documents found. Waiting for the language model…"),
        "next_try": _("Documents found. Waiting for the language model, next try in {seconds} s…"),
        "writing": _("Writing the answer…"),
        "done": _("Answer complete"),
        "stopped": _("Stopped. The text received so far is kept."),
        "cut": _("The answer reached its maximum length and ends here."),
        "broken": _("The answer was interrupted here."),
        "answer": _("Answer"),
        "stop": _("Stop"),
        "retry": _("Ask again"),
        "copy": _("Copy with sources"),
        "copied": _("Copied"),
        "sources": _("Sources"),
        "used": [_("1 document used, {cited} cited"), _("{used} documents used, {cited} cited")],
        "badges": badge_counts(_),
        "dropped": [
            _("1 sentence that the documents do not support was left out."),
            _("{dropped} sentences that the documents do not support were left out."),
        ],
        "replaced": {"nothing": replaced(_)},
        "not_cited": _("used, not cited"),
        "open_passage": _("Open the passage"),
        "open_document": _("Open the document"),
        "close": _("Close"),
        "extractive": _("No language model was used: these are the documents' own words."),
        "few_words": _("The documents contain few of the words in your question."),
        "other_language": other_language(_),
        "partial": _("A part of the collection did not answer: documents may be missing here."),
        "fallback": _("The usual language model did not answer; a fallback model did."),
        "model": _("Model: {said}"),
        "calls": [_("1 request"), _("{tries} requests")],
        "substitute": _("a fallback, because the usual model did not answer"),
        "followups": _("You could ask next"),
        "you_asked": _("You asked"),
        "helpful": _("Was this helpful?"),
        "yes": _("Yes"),
        "no": _("No"),
        "thanks": _("Thank you for your feedback."),
        "reason": _("What was wrong?"),
        "send": _("Send"),
    }


def _stages(_: Translate) -> Mapping[str, str]:
    return {
        "search": _("search"),
        "passages": _("choosing passages"),
        "prompt": _("writing the prompt"),
        "model": _("model"),
    }


def _made_words(_: Translate) -> Mapping[str, object]:
    return {
        "stages": _stages(_),
        "how_made": _("How this answer was made"),
        "steps": {
            "asked": _("as asked"),
            "a third of the words": _("a third of the words"),
            "any word": _("any word"),
            "further": _("searched further"),
        },
        "spent": _("Searches: {searches}; calls of the model: {calls}; tokens: {tokens}"),
        "verdicts": {
            "chosen": _("in: chosen"),
            "budget": _("out: no room left"),
            "duplicate": _("out: duplicate"),
            "rank": _("out: beyond the number of documents"),
            "no evidence": _("out: the passages give no evidence"),
        },
        "columns": [_("Document"), _("Score"), _("Place"), _("In or out")],
        "query_sent": _("What was searched for"),
        "step": _("Step"),
        "found": _("found"),
        "characters": _("characters"),
        "chosen": _("Passages chosen in each document"),
        "budget": _("{chars} characters of documents were sent to the model"),
        "prompt_size": _(
            "The whole prompt: {chars} characters in {messages} messages, with room for {tokens} tokens of answer"
        ),
        "candidates": _("Candidates, and why they are in or out"),
        "prompt": _("What was sent to the model"),
        "times": _("Where the time went"),
        "first_words": _("first words"),
        "whole": _("complete answer"),
    }


def _page_words(_: Translate) -> Mapping[str, object]:
    return {
        "cleared": _("New conversation started"),
        "forgotten": _("Question history deleted"),
        "without_filters": _("Ask all documents"),
        "ask": _("Ask"),
        "ask_next": _("Ask a follow-up question"),
    }


def _basket_words(_: Translate) -> Mapping[str, object]:
    return {
        "basket": _("Basket"),
        "choose": _("Put “{title}” into the basket"),
        "basket_count": [_("1 document in the basket"), _("{count} documents in the basket")],
        "basket_over": [
            _("{count} documents in the basket; only 1 at a time can be summarised."),
            _("{count} documents in the basket; at most {most} at a time can be summarised or compared."),
        ],
        "basket_full": _("{count} documents in the basket: there is no room for more."),
        "basket_alone": [
            _("Only the document in the basket was searched."),
            _("Only the {count} documents in the basket were searched."),
        ],
        "ask_these": _("Ask these"),
        "summarise": _("Summarise"),
        "compare": _("Compare"),
        "empty": _("Empty the basket"),
        "emptied": _("The basket is empty"),
        "summarising": _("Summarising…"),
        "comparing": _("Comparing the documents…"),
        "reading": _("Reading: {done} of {total}…"),
        "summary": _("Summary"),
        "comparison": _("Comparison"),
        "left_out": {
            "notFound": _("Left out: {title}. It does not exist, or you do not have access to it."),
            "empty": _("Left out: {title}. It has no text."),
            "overLimit": _("Left out: {title}. There are too many documents."),
        },
        "basket_failures": {
            "noDocuments": (_("There is nothing to summarise"), _("These documents have no text that could be read.")),
            "notFound": (_("Not found"), _("These documents do not exist, or you do not have access to them.")),
            "notAllowed": (_("This is switched off"), _("Only an administrator can switch it on.")),
        },
    }


def relaxed_words(_: Translate) -> Mapping[str, object]:
    """Return what the list of results says where no document has all the words."""
    return {
        "missing": [_("No document contains the word {words}."), _("No document contains the words {words}.")],
        "not_all": _("No document contains all of these words."),
        "some_words": _("These documents contain the other words, or some of them."),
        "latest": _("The latest documents"),
    }


def field_names(_: Translate) -> Mapping[str, str]:
    """Return what the usual fields of a filter are called; others keep the name of the schema."""
    return {
        "extension": _("File type"),
        "language": _("Language"),
        "source": _("Source"),
        "author": _("Author"),
        "last_modified": _("Date"),
    }


def reasons(_: Translate) -> Mapping[str, str]:
    """Return why an answer was not helpful, by the word that is kept."""
    return {
        "wrong": _("It is wrong"),
        "incomplete": _("Something is missing"),
        "sources": _("The sources are not relevant"),
        "unclear": _("It is hard to understand"),
        "other": _("Something else"),
    }


def part_names(_: Translate) -> Mapping[str, str]:
    """Return the name of each part of readiness."""
    return {
        "settings": _("settings file"),
        "search": _("search engine"),
        "rights": _("access rights"),
        "model": _("language model"),
        "audit": _("audit trail"),
        "conversations": _("stored conversations"),
        "usage": _("count of tokens"),
    }
