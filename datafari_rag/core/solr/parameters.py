"""
Searches as parameters for Solr, and the one place that encodes a user's filter for it.

Nothing of a caller is handed on as it came. Words are escaped character by character, so that no parser sees syntax
in them; bounds of ranges are spelled by the numbers of their characters; values and tokens are raw terms in
parameters of their own, never inside a query text; field names come from the settings. Solr is configured to expand no
parameter (`adapters.solr.client`). Every function that makes a search takes the filter, so there is none without.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from datafari_rag.core.access import LEVELS, NO_SECURITY, Filter
from datafari_rag.core.ask import NamedDocuments, Narrowing, Restriction
from datafari_rag.core.documents import FILE_FIELD, PLACES_FIELD
from datafari_rag.core.errors import UnfitValue
from datafari_rag.core.query.dates import date_math_of
from datafari_rag.core.query.plan import plain_step
from datafari_rag.core.search_request import (
    FACET_LIMIT,
    MARK_END,
    MARK_START,
    OTHER_LANGUAGE,
    PAIR_SLOP,
    Browse,
    Search,
    Step,
)
from datafari_rag.core.solr.handler_parameters import (
    BOOSTS,
    COUNTS,
    HIGHLIGHTER,
    PARSER,
    SNIPPETS,
    UNPROMOTED,
    VALUES,
    local,
    of_fields,
)
from datafari_rag.core.solr.schema import FIELD_NAME, Kind, Schema
from datafari_rag.core.text.cleaning import is_unicode
from datafari_rag.core.text.language import FUNCTION_WORDS, is_in_capitals
from datafari_rag.core.text.tokens import is_sign

Params = Mapping[str, str | Sequence[str]]

SEPARATOR = "\x1f"
"""Separates tokens in one parameter. `{!terms}` with an empty one would match single characters (a leak)."""

CUT_START, CUT_END = "\ue000", "\ue001"
"""Marks around the words found in snippets for the model; private-use characters, removed again by the reader."""

WEIGHTS = {"content": 1.0, "title": 0.1, "exact_content": 0.4, "exact_title": 0.05, "url_search": 0.02}
"""
Weights of the fields, or of the families of fields with one for each language.

Measured over 500 questions of nine sets, right document first / among 3 / among 10: 79.6 / 90.0 / 93.2; with titles
three times as heavy and searched in all languages 73.6 / 87.4 / 92.0; with the body alone 78.6 / 88.8 / 93.2.
"""

PAIR = 0.5
"""The weight of two neighbours of the question that are also neighbours in the text."""

SCALE = 500.0
"""
What the weights of a plain search are multiplied with: Datafari's own weights are in the hundreds, and the boosts of
its relevancy page are chosen beside them.
"""

MAX_WORDS = 60
"""Words of one query."""

MAX_CLAUSES = 1000
"""
Clauses of one query, as far as they can be known: Lucene's default of 1,024 counts each piece that a field type cuts a
word into, in each field. Where the types of a collection make more, Solr refuses, and half as many are sent.
"""

MAX_WORD_CHARS = 255
"""Longest word worth looking for; Solr's tokenizer cuts longer ones to pieces."""

NOTHING = "-*:*"
"""A query that finds nothing."""

_VALUE = "_value"
"""How the name of a parameter ends that is the value of a query."""

_NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?")
_SYNTAX = re.compile(r"([!-/:-@\[-^`{-~])")
_ESCAPE = r"\\\1"
_UNSENDABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


def filter_params(access: Filter, schema: Schema) -> dict[str, str | list[str]]:
    """
    Return the parameters that narrow a search to what *access* lets through; `fq` has one query for each level.

    A document that lacks an ACL field altogether is not open: only the schema's default says `__nosecurity__`. In
    mode plugin Solr's own component filters and receives the user's name, or nothing for the anonymous.
    """
    if access.mode == "plugin":
        return {} if access.user_name is None else {"AuthenticatedUserName": access.user_name}
    if access.mode == "none":
        return {}
    plain, odd = _sendable(access.tokens)
    params: dict[str, str | list[str]] = {}
    queries: list[str] = []
    for level in LEVELS:
        # ((NS in allow and NS in deny) or allow & T) and not deny & T (contract §5)
        sent = [*([level] if plain else []), *(f"{level}_{number}" for number in range(len(odd)))]
        allowed = "".join(f" should=$allow_{name}" for name in sent)
        denied = "".join(f" must_not=$deny_{name}" for name in sent)
        queries.append(f"{{!bool should=$open_{level}{allowed}{denied}}}")
        allow, deny = schema.acl(f"allow_token_{level}"), schema.acl(f"deny_token_{level}")
        params[f"open_{level}"] = f"+{allow}:{NO_SECURITY} +{deny}:{NO_SECURITY}"
        for verb, field in (("allow", allow), ("deny", deny)) if access.tokens else ():
            params[f"{verb}_{level}"] = f'{{!terms f={field} separator="{SEPARATOR}" v=$tokens}}'
            for number in range(len(odd)):
                params[f"{verb}_{level}_{number}"] = f"{{!term f={field} v=$token_{number}}}"
    if access.tokens:
        params["tokens"] = SEPARATOR.join(plain)
        params.update({f"token_{number}": token for number, token in enumerate(odd)})
    return {"fq": queries, **params}


def restriction_params(
    restrictions: Sequence[Narrowing], schema: Schema, *, id_field: str | None = None
) -> dict[str, str | list[str]]:
    """
    Return each restriction as a separate filter.

    *id_field* has the ids of documents, None for the schema's own.

    Raises:
        UnfitValue: a value is none that its field can have.
    """
    params: dict[str, str | list[str]] = {}
    queries: list[str] = []
    for number, restriction in enumerate(restrictions):
        begin = f"restriction_{number}"
        if isinstance(restriction, NamedDocuments):
            either = _named(restriction.ids, begin, id_field or schema.fields.id)
        else:
            either = {}
            for place, alternative in enumerate((restriction, *restriction.alternatives)):
                either |= _restricted(alternative, f"{begin}_{place}", schema)
        params |= either
        if restriction.is_excluded:
            queries.append(f"{{!bool filter=$everything{_clauses('must_not', either)}}}")
        else:
            queries.append(f"{{!bool{_clauses('should', either)}}}")
    return params | ({"fq": queries, "everything": "*:*"} if queries else {})


def _clauses(clause: str, queries: Iterable[str]) -> str:
    return "".join(f" {clause}=${name}" for name in queries if not name.endswith(_VALUE))


def _named(ids: Sequence[str], begin: str, field: str) -> dict[str, str]:
    """Return the queries that find the documents *ids* by the *field* that has them, and their values."""
    plain, odd = _sendable(ids)
    terms = f'{{!terms f={field} separator="{SEPARATOR}" v=${begin}_ids{_VALUE}}}'
    params = {f"{begin}_ids": terms, f"{begin}_ids{_VALUE}": SEPARATOR.join(plain)} if plain else {}
    for number, document_id in enumerate(odd):
        params |= {f"{begin}_{number}": f"{{!term f={field} v=${begin}_{number}{_VALUE}}}"}
        params |= {f"{begin}_{number}{_VALUE}": document_id}
    return params or {f"{begin}_none": NOTHING}


def one_of(ids: Sequence[str], begin: str, field: str) -> tuple[str, dict[str, str]]:
    """Return the query that finds what has one of *ids* in *field*, and its values; their names begin with *begin*."""
    named = _named(ids, begin, field)
    return f"{{!bool{_clauses('should', named)}}}", named


def found_by_ids(ids: Sequence[str], schema: Schema) -> dict[str, str]:
    """Return the query that finds the documents *ids*, nothing where there are none."""
    query, named = one_of(ids, "documents", schema.fields.id)
    return {**named, "q": query, "rows": str(len(ids))}


def ids_params(
    ids: Sequence[str], access: Filter, schema: Schema, fields: Iterable[str], restrictions: Sequence[Narrowing] = ()
) -> Params:
    """Return the parameters that read *fields* of the documents *ids*, rights checked as in any search."""
    narrowed = merged(filter_params(access, schema), restriction_params(restrictions, schema))
    return {**UNPROMOTED, **narrowed, **found_by_ids(ids, schema), "fl": ",".join(fields)}


def _restricted(restriction: Restriction, name: str, schema: Schema) -> dict[str, str]:
    r"""
    Return the query *name* for one value or range, and its value.

    No parser takes the bounds of a range from separate parameters for a field with several values (`{!frange}` wants
    one). So each character is written as its number, and the parser sees only quotation marks added here, `\u` and
    digits.
    """
    field, kind = restriction.field, schema.kind(restriction.field)
    value = {} if restriction.value is None else {f"{name}{_VALUE}": _fitted(restriction.value, kind)}
    if not schema.has(field) or schema.is_acl(field):
        return {name: NOTHING, **value}
    if value:
        # The field's type reads the value: of a text that it makes nothing of, a bool of one filter finds nothing.
        return {name: f"{{!bool filter='{{!field f={field} v=${name}{_VALUE}}}'}}", **value}
    low, high = (
        "*" if bound is None else f'"{numbered(_fitted(bound, kind))}"' for bound in (restriction.low, restriction.high)
    )
    return {name: f"{field}:[{low} TO {high}]"}


def numbered(text: str) -> str:
    r"""Return *text* with each character spelled by its number, for use between quotation marks."""
    units = text.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _fitted(value: str, kind: Kind) -> str:
    """Return *value* as a field of *kind* takes it. Raises: UnfitValue: it takes no such value."""
    is_fit = _NUMBER.fullmatch(value) is not None if kind == "number" else is_unicode(value)
    text = date_math_of(value) if kind == "date" else value
    if text is None or not is_fit:
        raise UnfitValue
    return text


def search_params(
    search: Search, access: Filter, schema: Schema, *, clauses: int = MAX_CLAUSES
) -> dict[str, str | list[str]]:
    """Return the parameters of the one round trip for the documents of an answer."""
    words = words_params(search.step, search.language, schema, clauses=clauses)
    narrowed = merged(filter_params(access, schema), restriction_params(search.restrictions, schema))
    params: dict[str, str | list[str]] = {**UNPROMOTED, **narrowed, **words}
    text = "" if search.is_bare else text_field(search.content, schema)
    params |= {"rows": str(search.rows), "fl": ",".join(document_fields(schema, text))}
    if search.content == "highlighting":
        marks = {"hl.fragsize": str(search.fragment_chars), "hl.tag.pre": CUT_START, "hl.tag.post": CUT_END}
        params |= _snippet_params(schema, search.language, str(params["q"]), marks)
    return params


def browse_params(
    browse: Browse, access: Filter, schema: Schema, *, clauses: int = MAX_CLAUSES
) -> dict[str, str | list[str]]:
    """Return the parameters of a plain search."""
    step = browse.step or plain_step(browse.text or "", language=browse.language, operator=browse.operator)
    words = words_params(step, browse.language, schema, boosted=True, clauses=clauses)
    if browse.text is None:
        words = {"sort": _order("score", True, schema), "q": "*:*"}
    params = merged(filter_params(access, schema), restriction_params(browse.narrowings, schema)) | words
    fields = [name for name in browse.fields or () if FIELD_NAME.fullmatch(name) and not schema.is_acl(name)]
    params |= {"start": str(browse.start), "rows": str(browse.rows), "fl": ",".join(fields) or "*"}
    if browse.sort is not None and (order := _order(*browse.sort, schema)):
        params["sort"] = order
    if browse.wants_highlighting:
        marks = {"hl.fragsize": "200", "hl.tag.pre": MARK_START, "hl.tag.post": MARK_END}
        params |= _snippet_params(schema, browse.language, str(params["q"]), marks)
    counted = [name for name in browse.facet_fields if schema.has(name) and not schema.is_acl(name)]
    if counted:
        values = of_fields([name for name in counted if schema.kind(name) == "text"], VALUES)
        own = of_fields(counted, {**COUNTS, "facet.limit": str(FACET_LIMIT)})
        params |= {"facet": "true", "facet.field": counted, **own, **values}
    return params


def words_params(
    step: Step, language: str, schema: Schema, *, boosted: bool = False, clauses: int = MAX_CLAUSES
) -> dict[str, str | list[str]]:
    """
    Return the parameters that look for the words of *step*; without any word they find nothing.

    Words without content in *language* are left out when others remain. Each word may be in any field, and all the
    fields of a word count once. With *boosted* the handler's own boosts are added, in their proportion. Words that are
    cut into many pieces are left out when there would be more than *clauses*.
    """
    searched, order = searched_fields(language, schema), {"sort": _order("score", True, schema)}
    # Each piece may be a clause in each field, and in the one of pairs.
    words = words_within(usable_words(step.words, language), clauses // (len(searched) + 1))
    # Without a field to look in, the parser would take the handler's own.
    if not words or not searched:
        return {**order, "q": NOTHING}
    scale, own = SCALE if boosted else 1.0, schema.fields.content_prefix + language
    paired = own if own in schema.contents(language) else schema.fields.exact_content
    # How many words must be there; as a percentage, since the analysis may drop a word altogether.
    least = ("100%" if step.operator == "AND" else "1") if step.min_match is None else f"{step.min_match}%"
    parser = {
        **PARSER,
        "qf": " ".join(f"{name}^{scale * weight:g}" for name, weight in searched),
        "pf2": f"{paired}~{PAIR_SLOP}^{scale * PAIR:g}",
        "mm": least,
        **({} if boosted else dict.fromkeys(BOOSTS, "")),
    }
    return {**order, "q": f"{{!edismax {local(parser)} v=$words}}", "words": " ".join(map(escaped, words))}


def searched_fields(language: str, schema: Schema) -> tuple[tuple[str, float], ...]:
    """Return the fields a word is looked for in, with their weights; those that the collection lacks are left out."""
    fields = schema.fields
    own = fields.content_prefix + language
    rows = [(name, WEIGHTS["content"] * (1 if name == own else OTHER_LANGUAGE)) for name in schema.contents(language)]
    titles = schema.titles(language)
    # Every language's copy of a title has the same words: a second copy would count them twice.
    copies = [name for name in titles if name == fields.title_prefix + language]
    exact = [name for name in titles if name in (fields.title, fields.exact_title)]
    rows += [(name, WEIGHTS["title"]) for name in copies] + [(name, WEIGHTS["exact_title"]) for name in exact]
    rest = ((fields.exact_content, WEIGHTS["exact_content"]), (fields.url_search, WEIGHTS["url_search"]))
    return (*rows, *((name, weight) for name, weight in rest if schema.has(name)))


def usable_words(words: Iterable[str], language: str) -> tuple[str, ...]:
    """Return the words that can be looked for, each once, shortened to `MAX_WORD_CHARS`, at most `MAX_WORDS`."""
    pieces = [piece for word in words for piece in _UNSENDABLE.sub(" ", word).split()]
    by_fold = {piece.casefold(): piece[:MAX_WORD_CHARS] for piece in reversed(pieces) if any(map(str.isalnum, piece))}
    usable = tuple(reversed(by_fold.values()))
    own = [word for word in usable if is_in_capitals(word, usable) or word.lower() not in FUNCTION_WORDS[language]]
    return (tuple(own) or usable)[:MAX_WORDS]


def words_within(words: Sequence[str], pieces: int) -> tuple[str, ...]:
    """
    Return those of *words* that have together at most *pieces*, at least one piece, in their order.

    A field type may cut a word wherever letters, digits, marks and small letters end. Those of the fewest pieces are
    taken first: a pasted list of paths leaves room for the words of the question, wherever they are.
    """
    room, shortened = max(1, pieces), dict[int, str]()
    starts = [_starts(word) for word in words]
    for place in sorted(range(len(words)), key=lambda place: len(starts[place])):
        cuts = [*starts[place], len(words[place])]
        shortened |= {place: words[place][: cuts[min(room, len(cuts) - 1)]]} if room else {}
        room = max(0, room - len(starts[place]))
    return tuple(shortened[place] for place in sorted(shortened))


def _starts(word: str) -> list[int]:
    """Return where pieces of *word* begin, the first at 0."""
    return [
        0,
        *(
            at
            for at, (sign, other) in enumerate(pairwise(word), start=1)
            if other.isalnum()
            and (not sign.isalnum() or sign.isdigit() != other.isdigit() or (sign.islower() and other.isupper()))
        ),
    ]


def escaped(word: str) -> str:
    r"""
    Return *word* so that Solr's parsers see letters only: every ASCII punctuation mark has a backslash.

    A bare `\u` in a question would be a 400 ("truncated unicode escape"); AND, OR and NOT are lowered instead, since
    they have nothing that could be escaped. A piece of an unspaced script is a phrase in quotation marks: the usual
    tokenizer makes single characters of it, which side by side mean something.
    """
    if len(word) > 1 and is_sign(word):
        return f'"{_SYNTAX.sub(_ESCAPE, word)}"'
    return word.lower() if word in ("AND", "OR", "NOT", "TO") else _SYNTAX.sub(_ESCAPE, word)


def text_field(content: str, schema: Schema) -> str:
    """Return the collection's name of the field that *content* reads, "" for highlighting, which reads none."""
    names = {"exactContent": schema.fields.exact_content, "preview_content": schema.fields.preview_content}
    return names.get(content, "")


def _sendable(tokens: Iterable[str]) -> tuple[list[str], list[str]]:
    """
    Return the tokens that can be joined, and those that need a parameter each because they hold the separator.

    A lone surrogate cannot be written in UTF-8, so no document of Solr's can have it: such a token is dropped.
    """
    whole = [token for token in tokens if is_unicode(token)]
    return [t for t in whole if SEPARATOR not in t], [t for t in whole if SEPARATOR in t]


def document_fields(schema: Schema, text: str) -> list[str]:
    """Return what is read of each document, *text* being the field of its text, "" for none."""
    fields = schema.fields
    always = (fields.id, fields.title, fields.url, fields.language, fields.last_modified, "extension", "source", text)
    names = (*always, *filter(schema.has, (PLACES_FIELD, FILE_FIELD)))
    return [*dict.fromkeys(name for name in names if name and not schema.is_acl(name)), "_version_", "score"]


def _snippet_params(schema: Schema, language: str, query: str, marks: Mapping[str, str]) -> dict[str, str]:
    fields = (*schema.contents(language), schema.fields.exact_content)
    own = of_fields(fields, {**SNIPPETS, **marks})
    return {**HIGHLIGHTER, "hl.fl": ",".join(fields), "hl.q": query, **own}


def _order(name: str, is_descending: bool, schema: Schema) -> str:
    """Return the order as Solr spells it, "" when the collection cannot be sorted so."""
    fields = {"score": "score", "title": schema.fields.title_sort, "last_modified": schema.fields.last_modified}
    field = fields.get(name, "")
    is_there = field == "score" or schema.has(field)
    # Hits that are equal come in the same order from every replica.
    return f"{field} {'desc' if is_descending else 'asc'},{schema.fields.id} asc" if is_there else ""


def merged(first: Params, second: Params) -> dict[str, str | list[str]]:
    """Return both as one, their filters added up."""
    filters = [*first.get("fq", ()), *second.get("fq", ())]
    both = {name: value if isinstance(value, str) else [*value] for name, value in {**first, **second}.items()}
    return both | ({"fq": filters} if filters else {})
