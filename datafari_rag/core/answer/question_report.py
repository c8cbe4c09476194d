"""
The report of questions as values: what is kept of a question, and which of them found no good answer.

Whatever a report says is worked out of the documents that its reader may see now: the others are taken out of each
question before anything is counted, and a question for which only such documents were found is left out. Pure: the
file, the searches under the reader's rights and the vectors are handed in.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from math import inf
from operator import mul
from typing import Literal

from datafari_rag.core.errors import ModelError, NoAnswer, NoDocuments, leaves
from datafari_rag.core.query.dates import iso_at
from datafari_rag.core.query.plan import MAX_WORDS, content_words
from datafari_rag.core.text.words import STEMS, sought_in
from datafari_rag.core.vectors import Vector

Problem = Literal["nothingFound", "notProved", "nearOnly", "modelFailed", "thumbsDown", "askedAgain"]
PROBLEMS: tuple[Problem, ...] = ("nothingFound", "notProved", "nearOnly", "modelFailed", "thumbsDown", "askedAgain")

MASK = "…"
MAX_CHARS, MAX_IDS, MAX_ID_CHARS = 1_000, 50, 1_000
"""What is kept of one question at most: of its text, of the documents shown for it, and of the id of one."""

LEAST_PEOPLE, LONG_WORDS = 3, 8
"""So many people ask with the same words before a text is shown; so many words may be a passage: fewer are shown."""

AGAIN_S = 120.0
MOST_GROUPS, MOST_JOINED, MOST_DOCUMENTS, MOST_WORDS, MOST_CITED = 100, 200, 50, 100, 3
"""Most groups of a report, groups that are compared by meaning, documents of a list, words that are looked up, and
documents named for a group."""

SAME_SPREADS = 2.0
"""
Two questions are near in meaning when their vectors are no farther apart, in spreads of the model. Of 42 such pairs
among 552 questions all but one were on one subject, and half were one question; farther apart, one in three was.
"""

MODEL_FAILURES = frozenset({NoAnswer.label, *(kind.label for kind in leaves(ModelError))})

# Digits with at most two signs between two of them: nothing repeats inside of what it repeats.
_NUMBER = re.compile(r"\d(?:[\s.,/()-]{0,2}\d){5}[\d\s.,/()-]*")
_WORD = re.compile(r"\w+")
_DIGITS, _RUN_CHARS = 6, 16


@dataclass(frozen=True, slots=True)
class KeptQuestion:
    """
    One question: *at_s* in seconds since 1970, *text* masked, *sources* and *cited* the ids of its documents.

    *person* is "" for those who are not signed in; in what a store returns it is KEY:HASH, and two hashes under
    different keys may be those of one person. *outcome* is ok or the label of an error.
    """

    id: str
    at_s: float
    person: str
    text: str
    language: str
    outcome: str
    sources: tuple[str, ...] = ()
    cited: tuple[str, ...] = ()
    checked: int = 0
    proved: int = 0
    is_near: bool = False
    is_disliked: bool = False


@dataclass(frozen=True, slots=True)
class ReadableDocument:
    """A document that the reader of the report may see; *modified_s* is None where that is not known."""

    id: str
    title: str = ""
    modified_s: float | None = None


@dataclass(frozen=True, slots=True)
class SeenQuestion:
    """A question as the reader of the report may know of it, with the *words* it shares with its group."""

    question: KeptQuestion
    words: tuple[str, ...]
    problems: tuple[Problem, ...]


SameWords = Sequence[SeenQuestion]
"""Questions with the same content words, in the order they were asked; never empty."""

CountedDocuments = tuple[tuple[ReadableDocument, int], ...]
"""Documents with how often each was cited, or shown."""


@dataclass(frozen=True, slots=True)
class ShownText:
    """A text that a report shows, with its content *words*; answers without any problem cited the *right* documents."""

    text: str
    language: str
    words: tuple[str, ...]
    right: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QuestionGroup:
    """What was asked, *count* times by *people* people; *texts* are those that enough people asked."""

    key: str
    count: int
    people: int
    problems: Mapping[Problem, int]
    texts: tuple[ShownText, ...]
    cited: CountedDocuments


@dataclass(frozen=True, slots=True)
class QuestionReport:
    """
    The groups with problems, the most first, and lists of documents: citedOften, neverCited and citedOld.

    *questions* are all since *since_s*; *missing* are words of the texts that no document has.
    """

    questions: int
    since_s: float
    old_days: int
    groups: tuple[QuestionGroup, ...]
    documents: Mapping[str, CountedDocuments]
    missing: Collection[str] = ()

    @property
    def words(self) -> dict[str, str]:
        """The first content words of the texts, each with its language, for looking them up."""
        every = ((word, text.language) for group in self.groups for text in group.texts for word in text.words)
        return dict(islice(dict(every).items(), MOST_WORDS))

    def as_json(self) -> dict[str, object]:
        """Return the report as programs read it, and as the page and the command show it."""
        return {
            "since": iso_at(self.since_s),
            "oldDays": self.old_days,
            "questions": self.questions,
            "groups": [self._group(group) for group in self.groups],
            "documents": {name: _counted(counts) for name, counts in self.documents.items()},
        }

    def _group(self, group: QuestionGroup) -> dict[str, object]:
        counts = {"key": group.key, "asked": group.count, "people": group.people, "problems": dict(group.problems)}
        words = dict.fromkeys(word for text in group.texts for word in text.words if word in self.missing)
        texts = [text.text for text in group.texts]
        return {**counts, "texts": texts, "cited": _counted(group.cited), "missingWords": list(words)}


def _counted(counts: CountedDocuments) -> list[dict[str, object]]:
    return [{"id": document.id, "title": document.title, "count": count} for document, count in counts]


def masked(text: str) -> str:
    """Return *text* with … for what may be a secret or a person's number, on one line and cut to what is kept."""
    words = _NUMBER.sub(f" {MASK} ", unicodedata.normalize("NFKC", text)).split()
    return " ".join(MASK if _may_be_secret(word) else word for word in words)[:MAX_CHARS]


def _may_be_secret(word: str) -> bool:
    digits = sum(map(str.isdigit, word))
    return "@" in word or digits >= _DIGITS or (digits > 0 and len(word) >= _RUN_CHARS and any(map(str.isalpha, word)))


def documents_in(questions: Sequence[KeptQuestion]) -> tuple[str, ...]:
    """Return the ids of all documents of *questions*, which are in the order they came, each once, the latest first."""
    every = (document for question in reversed(questions) for document in (*question.sources, *question.cited))
    return tuple(dict.fromkeys(every))


def asked_under(questions: Sequence[KeptQuestion], readable: Set[str]) -> list[SeenQuestion]:
    """Return what a reader of the documents *readable* may know of *questions*, which are in the order they came."""
    of_texts = {key: _words_of(*key) for key in {(question.text, question.language) for question in questions}}
    pairs = [(question, of_texts[question.text, question.language]) for question in questions]
    # The groups that are left out have a long question, and a document that is not readable.
    hidden = {own for question, own in pairs if not {*question.sources, *question.cited} <= readable}
    closed = {own for question, own in pairs if own in hidden and _is_long(question.text, question.language)}
    readable_pairs = [(mine, own) for row, own in pairs if own not in closed and (mine := _under(row, readable))]
    again = _asked_again([question for question, _ in readable_pairs])
    return [SeenQuestion(question, own, _problems(question, question.id in again)) for question, own in readable_pairs]


def _under(question: KeptQuestion, readable: Set[str]) -> KeptQuestion | None:
    results, cited = (
        tuple(document for document in ids if document in readable) for ids in (question.sources, question.cited)
    )
    return replace(question, sources=results, cited=cited) if results or not question.sources else None


def _words_of(text: str, language: str) -> tuple[str, ...]:
    if len(text) > MAX_WORDS and len({*sought_in(text, language)}) >= MAX_WORDS:
        # What comes after the words that are looked for may be one person's alone.
        return (text,)
    words = {STEMS[word.casefold(), language] for word in content_words(text, language)}
    return tuple(sorted(words)) or (text,)


def _is_long(text: str, language: str) -> bool:
    return max(len(_WORD.findall(text)), len(sought_in(text, language))) >= LONG_WORDS


def _asked_again(questions: Iterable[KeptQuestion]) -> set[str]:
    """Return the ids of those whose next question, of the same person and soon after, had a document of theirs."""
    ids: set[str] = set()
    latest: dict[str, KeptQuestion] = {}
    for question in questions:
        before = latest.get(question.person) if question.person else None
        if (
            before is not None
            and 0 <= question.at_s - before.at_s <= AGAIN_S
            and set(before.sources) & {*question.sources}
        ):
            ids.add(before.id)
        latest[question.person] = question
    return ids


def _problems(question: KeptQuestion, is_asked_again: bool) -> tuple[Problem, ...]:
    is_answered = question.outcome == "ok"
    holds: dict[Problem, bool] = {
        "nothingFound": question.outcome == NoDocuments.label or (is_answered and not question.sources),
        "notProved": is_answered and question.checked > 0 and question.proved == 0,
        "nearOnly": is_answered and bool(question.sources) and question.is_near,
        "modelFailed": question.outcome in MODEL_FAILURES,
        "thumbsDown": question.is_disliked,
        "askedAgain": is_asked_again,
    }
    return tuple(problem for problem in PROBLEMS if holds[problem])


def groups_of(rows: Iterable[SeenQuestion]) -> list[SameWords]:
    """Return *rows* by words, the groups with the most problems first, none without."""
    by_words: defaultdict[tuple[str, ...], list[SeenQuestion]] = defaultdict(list)
    for row in rows:
        by_words[row.words].append(row)
    wrong = [group for group in by_words.values() if any(row.problems for row in group)]
    return sorted(wrong, key=lambda group: (-_wrong_in(group), -len(group), group[0].words))


def _wrong_in(group: Iterable[SeenQuestion]) -> int:
    return sum(bool(question.problems) for question in group)


def joined(groups: Sequence[SameWords], vectors: Sequence[Vector], spread: float | None) -> list[list[SameWords]]:
    """
    Return *groups* with those together that ask the same in other words; without a *spread* each stays alone.

    *vectors* are those of the texts of the first groups. A group joins the first one before it that is near enough.
    """
    least = 1 - SAME_SPREADS * spread if spread else inf
    clusters: list[tuple[Sequence[float], list[SameWords]]] = []
    for group, own in zip_longest(groups, vectors, fillvalue=()):
        near = next(
            (members for first, members in clusters if own and first and sum(map(mul, own, first)) >= least), None
        )
        if near is None:
            near = []
            clusters.append((own, near))
        near.append(group)
    return [members for _, members in clusters]


def report_of(
    rows: Sequence[SeenQuestion],
    groups: Iterable[Sequence[SameWords]],
    readable: Mapping[str, ReadableDocument],
    *,
    since_s: float,
    old_days: int,
) -> QuestionReport:
    """Return the report of *rows*, which fall into *groups*; a document is old *old_days* after it was changed."""
    cited = Counter(document_id for each in rows for document_id in each.question.cited)
    shown_counts = Counter(document_id for each in rows for document_id in each.question.sources)
    uncited = Counter({document_id: count for document_id, count in shown_counts.items() if document_id not in cited})
    old = Counter(
        document_id
        for each in rows
        for document_id in each.question.cited
        if (modified_s := readable[document_id].modified_s) is not None
        and each.question.at_s - modified_s > old_days * 86_400
    )
    first = sorted(groups, key=lambda parts: -sum(map(_wrong_in, parts)))[:MOST_GROUPS]
    lists = {"citedOften": cited, "neverCited": uncited, "citedOld": old}
    documents = {name: _most(counts, readable, MOST_DOCUMENTS) for name, counts in lists.items()}
    return QuestionReport(len(rows), since_s, old_days, tuple(_group(parts, readable) for parts in first), documents)


def _group(parts: Sequence[SameWords], readable: Mapping[str, ReadableDocument]) -> QuestionGroup:
    every = [row for part in parts for row in part]
    cited = Counter(document for row in every for document in row.question.cited)
    problems = Counter(problem for row in every for problem in row.problems)
    return QuestionGroup(
        key=every[0].question.id,
        count=len(every),
        people=_people(every),
        problems={problem: problems[problem] for problem in PROBLEMS if problem in problems},
        texts=tuple(_shown_text(part) for part in parts if _people(part) >= LEAST_PEOPLE),
        cited=_most(cited, readable, MOST_CITED),
    )


def _shown_text(group: SameWords) -> ShownText:
    """
    Return the text of *group* as a report shows it: a long one as its first content words, too few for a passage.

    Of which document a long text may be a passage is not known: what the reader may not read is not searched.
    """
    text, language = text_of(group)
    words = content_words(text, language)[: LONG_WORDS - 1]
    while _is_long(text, language):
        text, words = " ".join(words), words[:-1]
    right = dict.fromkeys(document for row in group if not row.problems for document in row.question.cited)
    shown_words = dict.fromkeys(word.casefold() for word in content_words(text, language))
    return ShownText(text, language, tuple(shown_words), tuple(right))


def _people(rows: Iterable[SeenQuestion]) -> int:
    """
    Return how many people asked, at least: those of one key, since a person has another hash under the next.

    Those who are not signed in may be one person, and one of the others.
    """
    by_key: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        key, _, person = row.question.person.partition(":")
        by_key[key].add(person)
    return max(map(len, by_key.values()), default=0)


def text_of(group: SameWords) -> tuple[str, str]:
    """Return the most frequent text of *group* with its language."""
    texts = Counter((row.question.text, row.question.language) for row in group)
    return min(texts, key=lambda text: (-texts[text], text))


def _most(counts: Counter[str], readable: Mapping[str, ReadableDocument], most: int) -> CountedDocuments:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:most]
    return tuple((readable[document], count) for document, count in ordered)


def evaluation_rows(group: QuestionGroup) -> list[dict[str, object]]:
    """Return *group* as rows of an evaluation file: its texts that are shown, and the documents that are right."""
    rows = [{"question": text.text, "language": text.language, "doc_ids": list(text.right)} for text in group.texts]
    return [{"id": f"{group.key}-{number}", "set": "report", **row} for number, row in enumerate(rows, 1)]
