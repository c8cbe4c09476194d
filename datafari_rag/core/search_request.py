"""A request to a search engine, as values; its adapter translates it for the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from datafari_rag.core.ask import NamedDocuments, Narrowing
from datafari_rag.core.documents import Document, Reranking, Retrieval

Operator = Literal["AND", "OR"]
Content = Literal["highlighting", "preview_content", "exactContent"]

CANDIDATES = 20
"""The best rag.maxFiles are chosen from these; each more is read by the engine for every question."""

STORED: Mapping[Content, str] = {
    "exactContent": "exactContent",
    "preview_content": "preview_content",
    "highlighting": "exactContent",
}
"""The field that a document's text is read from whole; snippets are of the same text as the exact content."""


ANY_WORD = 1
"""The share of the words, in percent, that one word always is: a question has at most 60."""

CATEGORY_FIELD = "source"
"""What include_category and exclude_category of chat clients narrow on: where a document is from."""

MAX_ROWS = 100
"""Most hits of a plain search in one page (contract §5)."""

FACET_LIMIT = 100
"""Most values that are counted of one facet."""

MARK_START, MARK_END = '<span class="em">', "</span>"
"""Tags around the words found in a plain search, as Datafari's handler has them."""

OTHER_LANGUAGE = 0.6
"""Weight of a stemmed body field of another language than the question's, against the question's own."""

PAIR_SLOP = 3
"""How many words may be between two neighbours of the question that count as a pair."""


@dataclass(frozen=True, slots=True)
class Step:
    """
    One try at finding documents: *words* (never query syntax), and how many of them must be there.

    *min_match* is the percentage of words that must match, None for "all" with AND and "one" with OR. *name* is for
    the trace: asked, a third of the words, any word.
    """

    name: str
    words: tuple[str, ...]
    operator: Operator = "AND"
    min_match: int | None = None

    @property
    def rule(self) -> str:
        """Return how many words must be there, as the trace names it: AND, OR, or a share of them."""
        if self.min_match is None:
            return self.operator
        return "OR" if self.min_match == ANY_WORD else f"{self.min_match}%"


@dataclass(frozen=True, slots=True)
class Search:
    """
    One round trip for the documents of an answer.

    *question* is the searcher's text for engines that analyse it themselves; *rows* the number of candidates;
    *fragment_chars* the snippet size when *content* is highlighting (0 = the whole field); *index* is an alias of
    `openai.indexes`, None for the only one.
    """

    question: str
    step: Step
    rows: int
    content: Content = "exactContent"
    fragment_chars: int = 200
    language: str = "en"
    restrictions: tuple[Narrowing, ...] = ()
    min_score: float = 0.0
    index: str | None = None
    is_bare: bool = False
    """The texts of the documents are read later; an engine may leave them out."""
    is_whole: bool = False
    """Parts of a text are not enough: its beginning is wanted."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """
    What came back: *documents* best first, *total* hits that this user may see.

    *is_partial* is True when a shard was missing and the settings tolerate that. *took_ms* is the engine's own time.
    *query* is what was really sent, without the filter, for the trace.
    """

    documents: tuple[Document, ...]
    total: int
    is_partial: bool = False
    took_ms: float | None = None
    query: str = ""
    by: Retrieval = "words"
    reranking: Reranking | None = None
    """What became of the passages that a reranker was sent; None where none was."""


@dataclass(frozen=True, slots=True)
class Browse:
    """
    A plain search as `/select` takes it, after the whitelist of contract §5.

    *text* None means everything the user may see. *sort* is (field, descending) or None for the score. *fields* None
    means all stored fields but the ACL's. *facet_fields* are counted over what the user may see, and nothing else.
    *is_relaxed* asks for the same steps as an answer takes; *step* is looked for in place of all words of *text*.
    *ids* are the only documents that may be found, None for any; those *without* are left out.
    """

    text: str | None
    start: int = 0
    rows: int = 10
    sort: tuple[str, bool] | None = None
    restrictions: tuple[Narrowing, ...] = ()
    facet_fields: tuple[str, ...] = ()
    wants_highlighting: bool = False
    fields: tuple[str, ...] | None = None
    operator: Operator = "AND"
    language: str = "en"
    is_relaxed: bool = False
    step: Step | None = None
    ids: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()

    @property
    def narrowings(self) -> tuple[Narrowing, ...]:
        """Everything that the hits are narrowed by."""
        only = () if self.ids is None else (NamedDocuments(self.ids),)
        others = (NamedDocuments(self.without, is_excluded=True),) if self.without else ()
        return (*self.restrictions, *only, *others)


@dataclass(frozen=True, slots=True)
class Fields:
    """Names of the schema's fields: Datafari's, unless `solr.fields` says otherwise."""

    id: str = "id"
    title: str = "title"
    url: str = "url"
    exact_content: str = "exactContent"
    preview_content: str = "preview_content"
    content_prefix: str = "content_"
    language: str = "language"
    last_modified: str = "last_modified"
    exact_title: str = "exactTitle"
    title_prefix: str = "title_"
    title_sort: str = "title_sort"
    url_search: str = "url_search"
    acl: Mapping[str, str] = field(default_factory=dict)
    """Names of ACL fields that differ: `allow_token_document` → the schema's own."""
