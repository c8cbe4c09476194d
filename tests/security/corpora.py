"""Random corpora with random rights, the users who ask, and the oracle of ten lines that says who may see what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

NS = "__nosecurity__"
LEVELS = ("share", "parent", "document")

TOKENS = (
    "s1", "s2", "s3", "S1", "a b", "x,y", "x", 'q"t', "{!terms f=id}s1", "*", "s*", "\\u0041", "é", "e\u0301", "a\x1fb",
    "g:DEAD_AUTHORITY", " s1", "🔑",
)  # fmt: skip
"""Tokens that look alike, that a query parser would read, and that a separator would split."""


@dataclass(frozen=True)
class Doc:
    """One document: *key* is a word that users ask for, *canary* one that is in no question and only for readers."""

    id: str
    key: str
    canary: str
    acl: Mapping[str, Sequence[str]]

    def fields(self) -> dict[str, object]:
        """Return it as a writer takes it; the canary is in text, title, address and facet value."""
        text = f"Common {self.key} {self.canary} report. The pump of {self.key} was mended; see {self.canary}."
        return {
            "id": self.id,
            "title": f"Report {self.canary}",
            "url": f"http://docs.example.org/{self.canary}.txt",
            "exactContent": text,
            "preview_content": text,
            "content_en": text,
            "language": "en",
            "extension": "txt",
            "source": f"src-{self.canary}",
            "last_modified": "2024-05-01T00:00:00Z",
            **{name: list(values) for name, values in self.acl.items()},
        }


@dataclass(frozen=True)
class Corpus:
    """Some documents, and the users with their tokens as the source of rights has them."""

    docs: tuple[Doc, ...]
    users: Mapping[str, tuple[str, ...]]

    def visible(self, user: str | None) -> tuple[Doc, ...]:
        """Return what *user* (None: the anonymous) may see, by the oracle."""
        tokens = frozenset(self.users.get(user, ()) if user else ()) - {"", NS}
        return tuple(doc for doc in self.docs if may_see(doc.acl, tokens))


def may_see(acl: Mapping[str, Sequence[str]], tokens: frozenset[str]) -> bool:
    """Say who may see what: the oracle, written from contract §5 and from nothing else."""
    for level in LEVELS:
        allow, deny = set(acl[f"allow_token_{level}"]), set(acl[f"deny_token_{level}"])
        is_open = NS in allow and NS in deny
        if not tokens and not is_open:
            return False
        if tokens and (deny & tokens or not (is_open or allow & tokens)):
            return False
    return True


_LETTERS = "bcdfghjk"


def word(prefix: str, number: int) -> str:
    """Return a word that no analysis changes and no other number has."""
    letters = ""
    for _ in range(6):
        number, rest = divmod(number, len(_LETTERS))
        letters = _LETTERS[rest] + letters
    return prefix + letters


_some = st.lists(st.sampled_from(TOKENS), min_size=1, max_size=3, unique=True)
# Most fields of most documents carry no rights, as in life; else hardly a document would be seen by anybody.
_allow = st.one_of(st.just([NS]), st.just([NS]), _some, _some.map(lambda tokens: [NS, *tokens]))
_deny = st.one_of(st.just([NS]), st.just([NS]), st.just([NS]), _some, _some.map(lambda tokens: [NS, *tokens]))
_level = st.one_of(st.just(([NS], [NS])), st.tuples(_allow, _deny))
acls = st.tuples(_level, _level, _level).map(
    lambda levels: {
        f"{verb}_token_{name}": tuple(values)
        for name, level in zip(LEVELS, levels, strict=True)
        for verb, values in zip(("allow", "deny"), level, strict=True)
    }
)
_users = st.fixed_dictionaries(
    {name: st.lists(st.sampled_from([*TOKENS, NS, ""]), max_size=5).map(tuple) for name in ("ann", "bob", "zoé")}
).map(lambda users: {**users, "eve": ()})


@st.composite
def _contested(draw: st.DrawFn, users: Mapping[str, Sequence[str]]) -> list[dict[str, tuple[str, ...]]]:
    """
    Draw rights that hang on one level: of one that is allowed and denied to the same user, and of one half open.

    Purely random rights are the first for six documents in 180: a filter that ignores what is denied could pass.
    """
    own = draw(st.sampled_from([tokens for name in users if (tokens := sorted({*users[name]} - {"", NS}))] or [["s1"]]))
    token = st.sampled_from(own)
    return [_at(draw(st.sampled_from(LEVELS)), allow, draw(token)) for allow in (draw(token), NS)]


def _at(level: str, allow: str, deny: str) -> dict[str, tuple[str, ...]]:
    """Return the rights of a document that only *level* restricts."""
    open_ = {f"{verb}_token_{name}": (NS,) for verb in ("allow", "deny") for name in LEVELS}
    return {**open_, f"allow_token_{level}": (allow,), f"deny_token_{level}": (deny,)}


@st.composite
def corpora(draw: st.DrawFn, *, max_docs: int = 20) -> Corpus:
    """Draw up to *max_docs* documents with words that no other corpus of this run has, and four users."""
    users = draw(_users)
    rights = draw(st.lists(acls, min_size=1, max_size=max_docs - 2))
    rights += draw(_contested(users))
    first = draw(st.integers(0, len(_LETTERS) ** 6 - max_docs - 1))
    docs = tuple(
        Doc(f"doc {number}", word("zk", number), word("zx", number), acl)
        for number, acl in enumerate(rights, start=first)
    )
    return Corpus(docs, users)
