"""
Makes good and bad quotations of real texts by rule, and judges them by plain string search.

Shares no code with the package: the folding here is written from the sentence in the contract (case, white space,
typographic quotes and dashes, NFKC, soft hyphen, ligatures), the search is Python's `in`.
"""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

FOLDS = str.maketrans(
    {
        **dict.fromkeys("“”„‟«»″＂", '"'),
        **dict.fromkeys("‘’‚‛‹›′ʼ", "'"),
        **dict.fromkeys("‐‑‒–—―−", "-"),
        **dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff\u200e\u200f"),
        "œ": "oe",
        "Œ": "oe",
        "æ": "ae",
        "Æ": "ae",
        "\\": "/",
    }
)


def plain(text: str) -> str:
    text = unicodedata.normalize("NFKC", text.translate(FOLDS)).translate(FOLDS)
    return " ".join(unicodedata.normalize("NFKC", text.casefold()).split())


def stands_in(quote: str, text: str) -> bool:
    return plain(quote) in plain(text)


@dataclass(frozen=True)
class Text:
    id: str
    title: str
    content: str
    language: str


@dataclass(frozen=True)
class Case:
    kind: str
    quote: str
    text: Text
    others: tuple[Text, ...]
    is_there: bool


def _same(quote: str, dice: random.Random) -> str:
    return quote


def _upper(quote: str, dice: random.Random) -> str:
    return quote.upper() if plain(quote.upper()) == plain(quote) else quote.swapcase()


def _spaced(quote: str, dice: random.Random) -> str:
    return re.sub(" ", lambda _: dice.choice([" ", "  ", "\u00a0", "\n"]), quote)


def _typographic(quote: str, dice: random.Random) -> str:
    return quote.replace("'", "’").replace("-", dice.choice("‐‑–—"))


def _straight(quote: str, dice: random.Random) -> str:
    return re.sub("[‐‑–—]", "-", quote.replace("’", "'"))


def _ligated(quote: str, dice: random.Random) -> str:
    return quote.replace("ffi", "ﬃ").replace("fi", "ﬁ").replace("fl", "ﬂ").replace("oe", "œ")


def _decomposed(quote: str, dice: random.Random) -> str:
    return unicodedata.normalize("NFD", quote)


def _soft(quote: str, dice: random.Random) -> str:
    return re.sub(r"(?<=\w\w\w)(?=\w\w\w)", lambda _: dice.choice(["", "", "\u00ad"]), quote)


def _window(quote: str, dice: random.Random) -> str:
    words = quote.split(" ")
    size = dice.randint(min(4, len(words)), len(words))
    start = dice.randint(0, len(words) - size)
    return " ".join(words[start : start + size])


def _altered(quote: str, dice: random.Random) -> str:
    words = quote.split(" ")
    places = [i for i, word in enumerate(words) if len(word) > 4 and word.isalpha()] or [0]
    place = dice.choice(places)
    words[place] = dice.choice([w for w in words if w != words[place]] or ["zebra"]) + dice.choice(["s", "ing", "e"])
    return " ".join(words)


def _dropped(quote: str, dice: random.Random) -> str:
    words = quote.split(" ")
    del words[dice.randint(1, max(1, len(words) - 2))]
    return " ".join(words)


def _swapped(quote: str, dice: random.Random) -> str:
    words = quote.split(" ")
    place = dice.randint(0, len(words) - 2)
    words[place], words[place + 1] = words[place + 1], words[place]
    return " ".join(words)


NEGATIONS = {"en": "not", "fr": "pas", "de": "nicht", "es": "no", "ru": "не", "ar": "لا", "zh": "不"}


def _negated(quote: str, dice: random.Random) -> str:
    words = [word for word in quote.split(" ") if word.lower() not in NEGATIONS.values()]
    if len(words) == len(quote.split(" ")):
        words.insert(dice.randint(1, max(1, len(words) - 1)), dice.choice(list(NEGATIONS.values())))
    return " ".join(words)


def _numbered(quote: str, dice: random.Random) -> str:
    digits = [i for i, c in enumerate(quote) if c.isascii() and c.isdigit()]
    if not digits:
        return quote + f" {dice.randint(2, 99)}"
    place = dice.choice(digits)
    other = dice.choice([d for d in "0123456789" if d != quote[place]] + ["", quote[place] + "0"])
    return quote[:place] + other + quote[place + 1 :]


def _accentless(quote: str, dice: random.Random) -> str:
    return "".join(c for c in unicodedata.normalize("NFD", quote) if not unicodedata.combining(c))


Rule = Callable[[str, random.Random], str]
GOOD: tuple[Rule, ...] = (_same, _same, _upper, _spaced, _typographic, _straight, _ligated, _decomposed, _soft, _window)
BAD: tuple[Rule, ...] = (_altered, _dropped, _swapped, _negated, _negated, _numbered, _numbered, _accentless)


def sentences_of(text: str) -> list[str]:
    found = re.split(r"(?<=[.!?。])\s+|\n+", text)
    return [one.strip() for one in found if 25 <= len(one.strip()) <= 300 and len(one.split(" ")) > 3]


def cases(texts: list[Text], *, seed: int, each: int) -> Iterator[Case]:
    """Yield *each* cases of every kind for each group of three texts; the verdict is the judge's, not the rule's."""
    dice = random.Random(seed)
    for group in zip(texts[::3], texts[1::3], texts[2::3], strict=False):
        own = [sentences_of(text.content) for text in group]
        if not all(len(found) > 3 for found in own):
            continue
        for _ in range(each):
            for rule in (*GOOD, *BAD):
                place = dice.randrange(3)
                quote = rule(dice.choice(own[place]), dice)
                yield _case(rule.__name__.strip("_"), quote, group, place)
            yield from _moved(group, own, dice)


def _moved(group: tuple[Text, ...], own: list[list[str]], dice: random.Random) -> Iterator[Case]:
    place = dice.randrange(3)
    one, other = dice.sample(own[place], 2)
    middle = len(one.split(" ")) // 2
    halves = " ".join(one.split(" ")[:middle]), " ".join(other.split(" ")[len(other.split(" ")) // 2 :])
    yield _case("stitched", " ".join(halves), group, place)
    yield _case("stitched with dots", " … ".join(halves), group, place)
    yield _case("stitched sentences", f"{one} {other}", group, place)
    yield _case("misattributed", dice.choice(own[place]), group, (place + 1) % 3)
    yield _case("misattributed", dice.choice(own[place]), group, (place + 2) % 3)


def _case(kind: str, quote: str, group: tuple[Text, ...], place: int) -> Case:
    text = group[place]
    others = tuple(other for other in group if other is not text)
    return Case(kind, quote, text, others, stands_in(quote, text.content))
