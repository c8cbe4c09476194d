# ruff: noqa: E501  (the rows of the tables stay rows)
"""Hostile units of text: what is repeated to make a pattern or a loop go back over what it has read already."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import product

SINGLE = [
    "a", "A", "z", "0", "1", "_", "-", ".", ",", ";", ":", "!", "?", "…", "'", '"', "`", "´", "(", ")", "[", "]", "{",
    "}", "<", ">", "/", "\\", "|", "@", "#", "$", "%", "^", "&", "*", "+", "=", "~", "·", "•", "–", "—", "“", "”",
    "„", "«", "»", "‹", "›", "‘", "’", "ʼ", "¿", "¡", "²", "½", "€", "é", "ß", "ﬁ", "İ", "ΐ", "中", "の", "カ", "。", "！",
    "？", "」", "』", "「", "【", "】", "［", "］", "（", "）", "ไ", "ก็", "한", "א", "ا", "۔", "؟", "।", "क", "à",
]  # fmt: skip
BLANKS = (" ", "\t", "\n", "\r", "\r\n", "\v", "\f", "\x85", "\xa0", "\u2028", "\u3000", "\u202f")
HIDDEN = ("\x00", "\x1f", "\u00ad", "\u200b", "\u200d", "\u202e", "\u2066", "\ufeff", "\ue000", "\U000e0041", "\ufffe")
COMBINING = ("e\u0301", "\u0301", "\u0e31", "\u0591", "\u093c", "a\u0301\u0302\u0303", "\ufe0f", "\u20e3")
EMOJI = ("\U0001f600", "\U0001f1eb", "\U0001f1eb\U0001f1f7", "\U0001f468\u200d\U0001f469\u200d", "\U0001f3fb")

MARKDOWN = (
    "**a ", "**a", "*a ", "*a", "***", "* a *", "_a", "__a ", "`a", "`a\n", "``a`", "``` a", "```\n", "````\n", "~~~\n",
    "~~~x\n", "`a` ", "`` ` ", "# a\n", "- a\n", "+ a\n ", "> ", ">> a\n", "1) a\n", "1. a\n", "|a|b", "|-|-\n", "![", "![a",
    "![a](", "![a](b)", "![a] (", "![\\[", "[a](", "[a](b", "[a](b)", "[a] (b)", "[a]\t(b)", "](", "] (", "]: ", "[a]: b ",
    "[a][b]", "[a][", "[[", "[]", "[](", "[[]]", "[(])", "<a ", "<a href=", "<a>", "</a", "<!--", "<![CDATA[", "<http://a",
    "<http://a>", "<a@b", "<a@b>", "<<", "<<a", "<<a>>", "<<a>", "<\n", "(<", "(a(", "((a)", "(a) ", "&lt;", "&#91;", "&amp",
    "\\[", "\\`", "\\*", "***a** ", "**a*", "*a**", "`**a", "[**a", "**[", "<span>", "</span>", "<em>", "<mark ", "---\n", "===\n",
)  # fmt: skip
CITING = (
    "[1]", "[1] ", "[1][", "[1", "[1,", "[1, 2]", "[^1]", "[doc 1]", "[document #1]", "[Public handbook]", "[Public handbook",
    "[Public ", "【1†a】", "【1", "［1］", ".[1]", ". [1] ", "a [1]. ", "a [1] b. ", "\"a\" [1] ", "“a b” [1] ", "“a [1] ", "“[1]” ",
    "« a » [1]", "\"[1] ", "[x] ", "[sic] ", "[ii] ", "[a b] ", "and [1] ", "[1] and ", "nine [1] 9 ", "The ferry leaves at nine [1]. ",
)  # fmt: skip
QUOTING = (
    "“a ", "“”", "”“", "„a“ ", "«a» ", "»«", "« ", " »", "‹a", "「a", "「」", "『「", "\"a ", "\"\" ", "'a ", "'a b' ", "a'", "a’b ", "‘a b’ ",
    "“‘", "\"'", "“a\n\n", ".\" ", ".”", ".) ", ".\")", ".’ ", "!” ", "。」", "。\"", "a”", "(“",
)  # fmt: skip
SENTENCES = (
    "..", "...", "!?", "?!", ". ", ".a", ". a ", ". A ", "a. ", "A. ", "a.b", "A.B.", "e.g. ", "Dr. ", "z.B. ", "M. ", "No. 1 ", "Nr. ", "5. ",
    "5. Mai ", "a.\n", "a\n", "A\n", "a\n\n", "\n\n", "\n \n", "\na", "\n- ", "\n1. ", " \n", "a ", " a", "a  ", "\t\n", "a:\n", "a, ", "a; ", "the\n",
    "and\n", "• a\n", "•• ", "(1) a\n", "(a", "。", "。a", "。」a", "؟ ", "।", "۔ ", "…", "… a", "x.)", "x). ", "[1]\n", ".[1].", ".[1] a", ".] ", ".\xa0",
)  # fmt: skip
NUMBERS = (
    "1.", "1,", "1,000", "1,000,", "1 000 ", "1'000", "1.5 ", "1.5.", "1.5,", "1/2", "1-2", "1:", "12:30 ", "1a", "1a1", "a1", "a1b", "1%", "$1", "€ 1 ", "1e5",
    "-1 ", "−1", "+1", "1²", "x²", "½1", "1. a ", "2024 ", "2024-01-01 ", "1999", "01/02/2024 ", "5 percent ", "no 5 ", "one two ", "1.0.0.", "v1.2.3-",
)  # fmt: skip
WORDS = (
    "ab ", "a_", "_a", "__", "_-", "a-", "-a", "a--", "a/", "a//", "a@", "a@b.", "a:", "a::", "::", "a+", "a++", "a#", "C++ ", "a&b", "a'b", "l'a ", "l'", "l'l'",
    "qu'a ", "d'l'", "dell'a ", "aujourd'hui ", "a's ", "s's", "aB", "aBc", "AB", "Ab ", "AbC1", "A1b2", "a.b.c/", "http://", "http://a.b/c ", "a@b.c ",
    "not ", "not a ", "no more ", "n't ", "don't ", "n’t", "un", "unun", "non-", "without ", "less ", "nicht a ", "ne a pas ", "no ", "不", "不中", "中文 ", "中a",
    "カタカナ", "カ中", "ไทย", "ก", "한국 ", "कर ", "क्", "עִב", "اَل", "ää", "ñ ", "œ", "ŒU", "ǅ", "ſ", "ﬃ", "Å", "①", "㎏", "…a", "the ", "of the ", "is it ",
    "common ", "Common ", "common\n", "common. ", "commoncommon", "xcommon ", "report ", "common report ", "report common ", "Is it so? ",
    "The common report says nine. ", "the common report says nine ", "It says nine. ", "nine. ", "says nine says ", "What does the common report say? ",
    "abc abd abe ", "because ", "in order to ", "how many ", "what year ", "pourquoi ", "cause cause", "caused", "May ", "before after ", "more less ",
    "Ab Cd ", "A b ", "A ", " Ab", ", Ab", "data: a\n\n", "data: a\n", "data:", ":\n", "data\n", "\n{", "{language}", "{format}", "{", "{{a}}", "search query: ",
)  # fmt: skip

GROUPS: dict[str, tuple[str, ...]] = {
    "single": tuple(SINGLE),
    "blanks": BLANKS,
    "hidden": HIDDEN,
    "combining": COMBINING,
    "emoji": EMOJI,
    "markdown": MARKDOWN,
    "citing": CITING,
    "quoting": QUOTING,
    "sentences": SENTENCES,
    "numbers": NUMBERS,
    "words": WORDS,
}
PAIRED = [
    "a", "A", "1", "_", ".", "!", "-", "'", '"', "`", "*", "[", "]", "(", ")", "<", ">", ":", "/", "|", "“", "”", "。",
    "中", " ", "\n", "\t",
]  # fmt: skip
"""Every pair of these is a unit as well: what two classes that touch each other overlap in."""


@cache
def units() -> dict[str, str]:
    """Return every unit once, by a name that shows it."""
    listed = [one for group in GROUPS.values() for one in group]
    pairs = [one + other for one, other in product(PAIRED, repeat=2)]
    return {ascii(one): one for one in (*listed, *pairs)}


def text_of(unit: str, chars: int) -> str:
    """Return *unit* again and again, *chars* characters of it."""
    return (unit * (chars // len(unit) + 1))[:chars]


@cache
def _compatible() -> str:
    """Return every character that Unicode spells otherwise in its plain form: thousands of different ones to fold."""
    return "".join(one for one in map(chr, range(0xA0, 0x30000)) if not unicodedata.is_normalized("NFKC", one))


def grown(chars: int) -> Iterator[tuple[str, str]]:
    """
    Yield texts that are no repetition, with their names: the same word with more and more letters, brackets that nest.

    What is kept for each different word, or for each bracket that is open, grows with these and with no repetition.
    """
    numbers = " ".join(map(str, range(chars)))[:chars]
    words = " ".join(f"word{number:x}" for number in range(chars // 5))[:chars]
    letters = " ".join("a" * size for size in range(1, int((2 * chars) ** 0.5) + 1))[:chars]
    sentences = " ".join(f"The common report {number} says nine. " for number in range(chars // 20))[:chars]
    marks = "".join(f"Word{number} says nine [{number}]. " for number in range(chars // 15))[:chars]
    fences = "a".join("`" * size for size in range(1, 101))
    plain = {"numbers": numbers, "words": words, "letters": letters, "sentences": sentences, "marks": marks}
    yield from (plain | {"fences": text_of(fences, chars), "compatible": text_of(_compatible(), chars)}).items()
    for opener, closer in ("[]", "()", "“”", "«»", "<>", "【】", "「」"):
        half = chars // 2
        yield f"nested {opener!a}", opener * half + closer * half
        yield f"spaced {opener!a}", f"{opener}a " * (chars // 6) + f"{closer} " * (chars // 6)
    for end in ("x", " x", "]", "\n", ")", "”", "**", "`"):
        for unit in ("a", " ", ".", "_", "*", "`", "[", "(", "\n", "\t", "!", "1", "-"):
            yield f"{unit!a} up to {end!a}", text_of(unit, chars - len(end)) + end
