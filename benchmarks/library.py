"""
A large library that is made up: any number of documents, the same for the same number, and questions to ask of it.

Words are the demo pages' own and made-up rare ones, as often as Zipf's law has them; about 300 of them a document.
Rights: 3,000 groups, one to eight of them a document, one document in twenty denied to a group.
"""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping

from benchmarks.corpus import texts

GROUPS = 3_000
WORDS = 60_000
Document = Mapping[str, object]


class Library:
    """The vocabulary, made once."""

    def __init__(self) -> None:
        """Order the words of the demo pages by how often they are there, and add rare ones."""
        found = Counter(word for text in texts() for word in re.findall(r"[a-z]{2,}", text.lower()))
        known = [word for word, _ in found.most_common(WORDS)]
        self.words = known + [f"part{number:x}" for number in range(WORDS - len(known))]
        self._weights = list(itertools.accumulate(1 / (rank + 2) for rank in range(WORDS)))

    def documents(self, first: int, end: int) -> Iterator[Document]:
        """Yield the documents with these numbers, in Solr's shape."""
        for number in range(first, end):
            chosen = random.Random(number)
            words = chosen.choices(self.words, cum_weights=self._weights, k=chosen.randint(150, 450))
            text = " ".join(words)
            groups = [f"group-{chosen.randrange(GROUPS)}" for _ in range(chosen.randint(1, 8))]
            denied = [f"group-{chosen.randrange(GROUPS)}"] if number % 20 == 0 else []
            yield {
                "id": f"doc-{number}",
                "title": " ".join(words[:6]),
                "url": f"https://documents.example/{number}",
                "language": "en",
                "exactContent": text,
                "preview_content": text[:500],
                "allow_token_document": groups,
                "deny_token_document": denied or ["nobody"],
            }

    def questions(self, number: int, seed: int = 1) -> list[str]:
        """Return *number* different questions of ten words: four that only ask or join, six that mean something."""
        chosen = random.Random(seed)
        found = []
        for _ in range(number):
            one, two, three, four, five, six = (self.words[chosen.randrange(200, 4_000)] for _ in range(6))
            found.append(f"how is the {one} {two} {three} and {four} {five} {six}")
        return found


def rights(seed: int, number: int = 50) -> frozenset[str]:
    """Return the groups of a user: *number* of them."""
    return frozenset(f"group-{one}" for one in random.Random(seed).sample(range(GROUPS), number))
