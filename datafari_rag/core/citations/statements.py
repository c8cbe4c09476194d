"""
What some words state, as far as words can be compared: content words, numbers, and what is negated.

Two texts that share the facts need not mean the same; but a text that lacks one of them does not carry the claim.
Nothing here understands language: it is made so as to say "lacks" rather too often.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from datafari_rag.core.text.folding import folded
from datafari_rag.core.text.stemmer import LONG_UNITS
from datafari_rag.core.text.stopwords import ASKING_WORDS, FUNCTION_WORDS
from datafari_rag.core.text.tokenizer import is_unspaced, pieces_of

PAIR_SHARE = 0.75
"""Share of character pairs that must be there in scripts without spaces, where a word cannot be told."""

REACH = 5
"""How many words a negation reaches, up to a sign or a joining word."""

_TOKEN = re.compile(r"\d+(?:[.,' ]\d{3}(?!\d))*(?:[.,]\d+)*|[^\W\d_]+(?:\d\w*)?|[%€$£¥.,;:!?()]")
_GROUPED = re.compile(r"(?<=\d)[.,' ](?=\d{3}(?!\d))")
STOPS = frozenset(".,;:!?()")
_SIGNS = {
    **dict.fromkeys(("percent", "prozent", "pourcent"), "%"),
    **dict.fromkeys(("euro", "euros"), "€"),
    **dict.fromkeys(("dollar", "dollars"), "$"),
    **dict.fromkeys(("pound", "pounds"), "£"),
}
_NEGATION_LISTS = {
    "en": "not no never none neither nor without cannot nobody nothing hardly",
    "fr": "ne n pas jamais aucun aucune sans ni rien guère nul nulle non",
    "de": "nicht kein keine keinen keinem keiner keines nie niemals ohne weder nichts noch",
    "es": "no sin nunca ningún ninguna ninguno tampoco nada jamás ni",
    "it": "non senza mai nessun nessuna nessuno né niente nulla",
    "pt": "não sem nunca nenhum nenhuma nem nada jamais",
    "nl": "niet geen nooit zonder noch niets",
    "ru": "не нет ни без никогда нельзя",
    "ar": "لا لم لن ليس ليست غير بدون دون",
}
_NEGATIONS = {code: frozenset(words.split()) for code, words in _NEGATION_LISTS.items()}
DENYING_WORD = r"[^\W\d_]+(?:['’]t)?"
"""A word as `is_negation` is asked of it, folded: "don't" is one."""

NEGATING_CHARACTERS = frozenset("不没沒無无未非勿莫别別")
_CONTRACTED = re.compile(r"n't\b")
_BOUND = re.compile(r"\b(?:no|not|nicht|pas|non) (?=(?:more|less|later|fewer|earlier|only|just|nur|seulement)\b)")
_JOINING_WORDS = "and but or while whereas although et mais ou und aber oder sondern y pero sino o e ma però"
JOINING = frozenset(_JOINING_WORDS.split())
_REPORTING_LISTS = {
    "en": """according additionally also available based called describes described document documents explains
        following furthermore generally get gets however includes include including indicates known listed make makes
        mentioned mentions moreover namely note notes overall provided provides quote says said section see
        source sources specifically specifies specified stated states take takes text therefore thus typically
        used uses various way ways""",
    "fr": """ainsi après aussi contient décrit document documents donc extrait indique indiqué mentionne mentionné note
        précise précisé section selon source sources suivant suivante suivants texte voir d'après""",
    "de": """also angegeben auszug beschreibt besagt daher dokument dokumente dokuments erwähnt folgende folgenden gemäß
        heißt laut quelle quellen siehe steht text zufolge""",
    "es": """además así describe dice documento documentos fuente fuentes indica indicado menciona nota sección según
        siguiente siguientes texto también véase""",
}
_REPORTING = {code: frozenset(words.split()) for code, words in _REPORTING_LISTS.items()}
_SILENT = {
    code: frozenset().union(*(words.get(code, ()) for words in (_REPORTING, _NEGATIONS, FUNCTION_WORDS, ASKING_WORDS)))
    for code in {*_REPORTING, *_NEGATIONS, *FUNCTION_WORDS, *ASKING_WORDS}
}
"""Words that state nothing by themselves, by language: looked up for each word of each sentence that is compared."""

_NUMBER_LISTS = {
    "en": "zero one two three four five six seven eight nine ten eleven twelve",
    "fr": "zéro un deux trois quatre cinq six sept huit neuf dix onze douze",
    "de": "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    "es": "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce",
}
_NUMBERS = {
    # "one" is a pronoun and "un" an article more often than a number.
    code: {word: str(number) for number, word in enumerate(words.split()) if number != 1}
    for code, words in _NUMBER_LISTS.items()
}
_LARGEST_WORD = (2, "12")
"""The largest number that is written as a word: how many digits it has, and which."""

_SPELLED = {code: numbers | _SIGNS for code, numbers in _NUMBERS.items()}
_ENDING_LISTS = {
    "en": "s es ed d ing ings e y ies ied ly",
    "fr": "s x e es é ée és ées er ent ez ons ait aient ant ants a ont era eront aux al ale ales r t it is ir i ie nt",
    "de": "e en n s es er ern em t te ten tes et st ste sten",
    "es": "s es o a os as e en an ar er ir ado ada ados adas ó aron n r",
}
_ENDINGS = {code: frozenset(("", *words.split())) for code, words in _ENDING_LISTS.items()}
_LONGEST_ENDING = max(len(ending) for endings in _ENDINGS.values() for ending in endings)
_PLAIN_ENDINGS = frozenset(("", "s", "e", "es", "n", "en"))
_CONTRARY_LIST = """before/after above/below over/under more/less more/fewer up/down may/must all/some inside/outside
    avant/après plus/moins dessus/dessous sur/sous vor/nach über/unter mehr/weniger kann/muss
    antes/después más/menos sobre/bajo"""
_CONTRARY_PAIRS = [pair.split("/") for pair in _CONTRARY_LIST.split()]
CONTRARIES = {
    word: frozenset(other for pair in _CONTRARY_PAIRS if word in pair for other in pair if other != word)
    for word in {word for pair in _CONTRARY_PAIRS for word in pair}
}
_LEAST_COMMON = 3
_EMPTY: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SentenceFacts:
    """
    *words*: content words in order, folded. *pairs*: character pairs of scripts without spaces. *numbers*: in order.

    *denied* are the words in reach of a negation, *said* the others; a word may be both. *turns* are small words that
    have a contrary: before, more, may.
    """

    words: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    denied: frozenset[str] = _EMPTY
    said: frozenset[str] = _EMPTY
    turns: frozenset[str] = _EMPTY
    is_negated: bool = False

    def __bool__(self) -> bool:
        """Say whether anything is stated at all."""
        return bool(self.words or self.pairs or self.numbers)


def facts_of(text: str, language: str) -> SentenceFacts:
    """Return what *text* states; empty for words that only point at a source."""
    return facts_in(tokens_of(text, language), language)


def facts_in(tokens: Sequence[str], language: str) -> SentenceFacts:
    """Return what the words with these *tokens* state."""
    reached, silent = _reached(tokens, language), _SILENT.get(language, _EMPTY)
    words: list[str] = []
    pairs: list[str] = []
    numbers: list[str] = []
    said: set[str] = set()
    denied: set[str] = set()
    for token, is_denied in zip(tokens, reached, strict=True):
        if token in STOPS:
            continue
        if token[0].isdigit():
            numbers.append(token)
        elif not token.isascii() and is_unspaced(token):
            pairs.extend(pieces_of(token))
        elif token not in silent and (len(token) > 1 or not token.isalpha()):
            words.append(token)
            (denied if is_denied else said).add(token)
    return SentenceFacts(
        tuple(dict.fromkeys(words)),
        tuple(dict.fromkeys(pairs)),
        tuple(numbers),
        frozenset(denied),
        frozenset(said),
        frozenset(CONTRARIES.keys() & tokens),
        not _NEGATIONS.get(language, _EMPTY).isdisjoint(tokens),
    )


def tokens_of(text: str, language: str) -> list[str]:
    """Return the folded words, numbers and signs of *text* in order, numbers and units spelled one way."""
    return tokens_in(folded(text), language)


def tokens_in(text: str, language: str) -> list[str]:
    """Return the tokens of *text*, which is folded."""
    spelled = _BOUND.sub("", _CONTRACTED.sub(" not", text))
    one_way = _SPELLED.get(language, _SIGNS)
    tokens = _TOKEN.findall(spelled)
    return [_plain_number(token) if token[0].isdigit() else one_way.get(token, token) for token in tokens]


def is_content(word: str, language: str) -> bool:
    """Say whether the folded *word* states something by itself."""
    if word in STOPS or (len(word) == 1 and word.isalpha()):
        return False
    return word not in _SILENT.get(language, _EMPTY)


def is_negation(word: str, language: str) -> bool:
    """Say whether the folded *word* turns what follows into its contrary."""
    return word in _NEGATIONS.get(language, _EMPTY) or word.endswith("n't")


@dataclass(frozen=True, slots=True)
class Terms:
    """
    How a claim is compared with a place.

    *known* are words that need not be repeated there: the document's title. *is_pair*: the place is two sentences, so
    that a word said in the one and denied in the other counts as denied.
    """

    language: str
    known: frozenset[str] = _EMPTY
    is_pair: bool = False


def carries(claim: SentenceFacts, place: SentenceFacts, terms: Terms) -> bool:
    """Say whether all that *claim* states is in *place* too."""
    if not _is_within(claim.numbers, place.numbers) or (claim.is_negated and not place.is_negated):
        return False
    if any(word not in place.turns and CONTRARIES[word] & place.turns for word in claim.turns):
        return False
    if claim.pairs and not _shares_pairs(claim.pairs, place.pairs):
        return False
    return _has_all(claim, place, terms)


def beginnings(words: Iterable[str], language: str) -> tuple[str, ...]:
    """
    Return what a folded text must hold, at whatever place, to have *words*, which are folded, in whatever form.

    Too little to prove anything, but quick to look for: most places are left out by it.
    """
    # Signs may be spelled as words there, and "not" may stand in a contraction.
    return tuple({beginning_of(word, language) for word in words if word.isalpha() and word != "not"})


def beginning_of(word: str, language: str) -> str:
    """Return what *word* begins with in all its forms: `is_same_word` is true of no word that begins otherwise."""
    return word if len(word) > LONG_UNITS else _beginning(word, language)


def number_endings(numbers: Iterable[str]) -> tuple[str, ...]:
    """
    Return what a folded text must hold, at whatever place, to have *numbers*: the last three digits before any point.

    More of them may be grouped otherwise there. A number up to twelve may be a word there, and is left out.
    """
    whole = (number.partition(".")[0] for number in numbers)
    return tuple({digits[-3:] for digits in whole if (len(digits), digits) > _LARGEST_WORD})


def is_same_word(one: str, other: str, language: str) -> bool:
    """Say whether two folded words differ at most by an ending."""
    if one == other:
        return True
    if one[:_LEAST_COMMON] != other[:_LEAST_COMMON]:
        return False
    common = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return _is_ending(one, common, language) and _is_ending(other, common, language)


@lru_cache(maxsize=20_000)
def _beginning(word: str, language: str) -> str:
    # What is longer than any ending, with a doubled letter before it, need not be looked at.
    least = range(max(_LEAST_COMMON, len(word) - _LONGEST_ENDING - 1), len(word))
    return word[: next((common for common in least if _is_ending(word, common, language)), len(word))]


def _is_ending(word: str, common: int, language: str) -> bool:
    """Say whether what follows the first *common* letters of *word* is an ending, with a doubled letter before it."""
    endings = _ENDINGS.get(language, _PLAIN_ENDINGS)
    rest = word[common:]
    return rest in endings or (rest[:1] == word[common - 1] and rest[1:] in endings)


def _plain_number(token: str) -> str:
    if token.isdigit():
        return token.lstrip("0") or "0"
    plain = _GROUPED.sub("", token).replace(",", ".")
    return plain.rstrip("0").rstrip(".") if "." in plain else plain.lstrip("0") or "0"


def _reached(tokens: Sequence[str], language: str) -> list[bool]:
    """Say for each token whether a negation reaches it, from before or from behind."""
    negations = _NEGATIONS.get(language, _EMPTY)
    if negations.isdisjoint(tokens):
        return [False] * len(tokens)
    behind = reversed(_reach(tokens[::-1], negations))
    return [one or other for one, other in zip(_reach(tokens, negations), behind, strict=True)]


def _reach(tokens: Sequence[str], negations: frozenset[str]) -> list[bool]:
    """Say for each token whether a negation before it reaches it."""
    reached: list[bool] = []
    left = 0
    for token in tokens:
        left = 0 if token in STOPS or token in JOINING else left
        reached.append(left > 0)
        left = REACH if token in negations else left - 1
    return reached


def _has_all(claim: SentenceFacts, place: SentenceFacts, terms: Terms) -> bool:
    """Say whether no word is missing: which one is a synonym and which the contrary, words alone do not tell."""
    there = place.said | place.denied
    if not all(word in there or word in terms.known or _has(there, word, terms.language) for word in claim.words):
        return False
    is_denied = bool(claim.denied or place.denied)
    return not is_denied or all(_is_same_way(word, claim, place, terms) for word in claim.words)


def _has(words: Iterable[str], wanted: str, language: str) -> bool:
    return any(is_same_word(word, wanted, language) for word in words)


def _is_same_way(word: str, claim: SentenceFacts, place: SentenceFacts, terms: Terms) -> bool:
    """Say whether a word that only is denied is denied there too, and one that only is said is said there."""
    if not _has(place.words, word, terms.language):
        return True
    is_denied = _has(place.denied, word, terms.language)
    if word in claim.denied:
        return is_denied or word in claim.said
    return not is_denied or (_has(place.said, word, terms.language) and not terms.is_pair)


def _is_within(wanted: Sequence[str], there: Sequence[str]) -> bool:
    """Say whether the numbers *wanted* stand in *there* in the same order: exchanged ones state something else."""
    rest = iter(there)
    return all(number in rest for number in wanted)


def _shares_pairs(wanted: Sequence[str], there: Sequence[str]) -> bool:
    having, asked = set(there), set(wanted)
    first = {pair[0] for pair in wanted}
    negating = [pair for pair in (*wanted, *there) if NEGATING_CHARACTERS.intersection(pair)]
    # A negated pair speaks of something that is wanted when the character after the negation is.
    about = [pair for pair in negating if pair in asked or pair[-1] in first]
    if any((pair in having) != (pair in asked) for pair in about):
        return False
    return sum(pair in having for pair in wanted) >= PAIR_SHARE * len(wanted)
