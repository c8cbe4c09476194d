"""
Light stemming by suffix tables: what is left is always the beginning of the word.

That the stem is a prefix lets a text be searched for it without being cut into words first. Not Snowball: it merges a
little less, and the same words in question and text meet anyway. Accents are kept.
"""

from __future__ import annotations

from functools import lru_cache

_SUFFIXES = {
    "en": """ational ations ation ators ator ating ative atives ated ates ate ments ment nesses ness ingly ings ing edly
        ies ied ious iously ions ion ers er or ors ely ly ed es ence ences ance ances ent ant ents ants able ible ably
        ity ities al ally ic ical ically ics ous ously ism ist ists ize izes ized izing ization s y e i""",
    "fr": """ations ation ateurs ateur atrice atrices ements ement ments ment ités ité iques ique istes iste ismes isme
        ences ence ances ance antes ante ants ant entes ente ents ent euses euse eurs eur ives ive ifs if ables able
        aient èrent erent erait erions ait ais era eront erai iez ions ons ées ée és é er ez ir it ie ies eaux eau aux
        al ale ales elle elles el els es e s x""",
    "de": """ungen ung heiten heit keiten keit lichen liche licher liches lich ischen ische ischer isches isch ern em
        en er es est et te ten ter tes e s n""",
    "es": """aciones ación acion adores adora ador amientos amiento imientos imiento mente idades idad ables able ibles
        ible istas ista ismos ismo ancias ancia encias encia antes ante ivas iva ivos ivo osas osa osos oso aron ieron
        aba aban ando iendo adas ada ados ado idas ida idos ido ar er ir ó é an en as os es a o e s""",
    "it": """azioni azione amenti amento imenti imento mente ità abili abile ibili ibile isti ista ismi ismo anza anze
        enza enze anti ante ivi ivo iva ive osi oso osa ose ando endo ati ato ata ate iti ito ita ite uti uto are ere
        ire a e i o""",
    "pt": """ações ação adores adora ador amentos amento imentos imento mente idades idade áveis ável íveis ível istas
        ista ismos ismo ância âncias ência ências antes ante ivas iva ivos ivo osas osa osos oso aram eram iram ando
        endo indo adas ada ados ado idas ida idos ido ar er ir ões ão as os es a o e s""",
    "nl": """heden heid ingen ing lijke lijk isch ische en er es e s""",
    "ru": """иями ями ами иях ях ах иям ям ам ией ей ой ий ый ые ие ое ее ая яя ого его ому ему ыми ими ых их ую юю ов
        ев ом ем ость ости ение ения ению ением ание ания анию анием ировать овать ать ять еть ить ут ют ат ят ет ит ла
        ло ли л ешь ишь ть ся сь а я о е ы и у ю ь й""",
}
_TABLES = {code: tuple(sorted(words.split(), key=len, reverse=True)) for code, words in _SUFFIXES.items()}
_MIN_STEM = {"de": 4}
_DEFAULT_MIN_STEM = 3
_LONG_SUFFIX = 3
_SHORT_WORDS_TOO = frozenset({"ing", "ings", "ies", "ied", "ers"})
_VOWELS = frozenset("aeiouyàâéèêëîïôöùûüáíóú")


LONGEST_ENDING_CHARS = max(len(suffix) for table in _TABLES.values() for suffix in table) + 2
"""No stem is shorter than its word by more: a suffix, the double of a letter, a vowel."""

LONG_UNITS = 60
"""No word of a language is so long; such ones are neither stemmed nor kept in memory."""


def stem(word: str, language: str) -> str:
    """
    Return the beginning of the lower-case *word* that its inflections share; never empty for a word that is not.

    A language without a table, a short word, a very long one and anything with a digit come back whole.
    """
    return word if len(word) > LONG_UNITS else _stem(word, language)


@lru_cache(maxsize=20_000)
def _stem(word: str, language: str) -> str:
    if len(word) <= _DEFAULT_MIN_STEM or language not in _TABLES or not word.isalpha():
        return word
    least = _MIN_STEM.get(language, _DEFAULT_MIN_STEM)
    for suffix in _TABLES[language]:
        if word.endswith(suffix):
            rest = _single(word[: -len(suffix)], least)
            # A long suffix off a short word leaves too little to distinguish words: current, cure.
            is_long = len(suffix) >= _LONG_SUFFIX and suffix not in _SHORT_WORDS_TOO
            if len(rest) >= least + is_long and (language == "ru" or not _VOWELS.isdisjoint(rest)):
                return _bare(rest, least)
    return _single(word, least)


def _single(rest: str, least: int) -> str:
    """Undo a doubled last consonant: running, run; planned, plan."""
    if len(rest) > least and rest[-1] == rest[-2] and rest[-1] not in "sz":
        return rest[:-1]
    return rest


def _bare(rest: str, least: int) -> str:
    """Drop the final vowel of the base word: studying, study."""
    return rest[:-1] if len(rest) > least and rest[-1] in "eyi" else rest
