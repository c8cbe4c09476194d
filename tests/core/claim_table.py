"""
Changes sentences of real texts so that they say something else, by rules that know nothing of the package.

A changed sentence should not be proved by the text that it was taken from, quoted or not; the sentence itself should.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

NEGATED = {
    "en": "is/is not are/are not was/was not were/were not can/cannot may/may not shall/shall not has/has not",
    "fr": "est/n'est pas sont/ne sont pas peut/ne peut pas doit/ne doit pas",
    "de": "ist/ist nicht wird/wird nicht war/war nicht hat/hat nicht ein/kein eine/keine",
    "es": "es/no es fue/no fue puede/no puede tiene/no tiene son/no son",
}
NEGATIONS = re.compile(r"\b(?:not?|never|nor|without|sans|pas|jamais|ni|ohne|nicht|keine?|nunca|sin)\b|n't|\bn['’]")
UNITS = """days/weeks years/months hours/minutes euros/dollars million/billion miles/kilometers mg/kg jours/mois
    ans/mois heures/minutes millions/milliards
    Jahre/Monate Tage/Wochen Millionen/Milliarden años/meses días/meses %/€ $/€"""
CONTRARY = """before/after more/less above/below increase/decrease increased/decreased higher/lower first/last all/no
    with/without avant/après plus/moins avec/sans vor/nach mehr/weniger mit/ohne antes/después más/menos con/sin"""
TURNS = """for/against from/to to/from and/or on/off until/from any/all few/many can/must should/must may/must some/all
    most/all only/also always/sometimes pour/contre et/ou à/de jusqu'à/dès peut/doit quelques/tous für/gegen von/nach
    und/oder bis/ab kann/muss einige/alle y/o para/contra desde/hasta puede/debe"""
MIN_CHARS = 20
NAME = re.compile(r"(?<=[a-zà-ü,] )[A-Z][a-zà-ü]{3,}")
Rule = Callable[[str, list[str], str, random.Random], str | None]


def _pairs(table: str) -> list[tuple[str, str]]:
    pairs = [(one, other) for one, _, other in (pair.partition("/") for pair in table.split())]
    return pairs + [(other, one) for one, other in pairs]


def _replaced(sentence: str, table: list[tuple[str, str]]) -> str | None:
    for one, other in table:
        pattern = rf"(?<!\w){re.escape(one)}(?!\w)"
        if re.search(pattern, sentence):
            return re.sub(pattern, other, sentence, count=1)
    return None


def negated(sentence: str, others: list[str], language: str, dice: random.Random) -> str | None:
    words = re.findall(r"(\S+)/(\S+(?: (?!\S+/)\S+)*)", NEGATED.get(language, ""))
    return None if NEGATIONS.search(sentence.lower()) else _replaced(sentence, words)


def number_changed(sentence: str, others: list[str], language: str, dice: random.Random) -> str | None:
    places = [i for i, c in enumerate(sentence) if c.isascii() and c.isdigit()]
    if not places:
        return None
    place = dice.choice(places)
    return sentence[:place] + dice.choice("0123456789".replace(sentence[place], "")) + sentence[place + 1 :]


def numbers_exchanged(sentence: str, others: list[str], language: str, dice: random.Random) -> str | None:
    return _exchanged(sentence, list(re.finditer(r"\d+", sentence))[:2])


def unit_changed(sentence: str, others: list[str], language: str, dice: random.Random) -> str | None:
    return _replaced(sentence, _pairs(UNITS)) if re.search(r"\d", sentence) else None


def names_exchanged(sentence: str, others: list[str], language: str, dice: random.Random) -> str | None:
    found = list(NAME.finditer(sentence))
    return None if language == "de" else _exchanged(sentence, [found[0], found[-1]] if len(found) > 1 else [])


def name_changed(sentence: str, others: list[str], language: str, dice: random.Random) -> str | None:
    found = list(NAME.finditer(sentence))
    foreign = [name for one in others for name in NAME.findall(one) if name not in sentence]
    if language == "de" or not found or not foreign:
        return None
    name = dice.choice(found)
    return sentence[: name.start()] + dice.choice(foreign) + sentence[name.end() :]


def contrary(sentence: str, others: list[str], language: str, dice: random.Random) -> str | None:
    return _replaced(sentence, _pairs(CONTRARY))


def word_changed(sentence: str, others: list[str], language: str, dice: random.Random) -> str | None:
    words = sentence.split(" ")
    places = [i for i, word in enumerate(words) if len(word) > 5 and word.isalpha()]
    foreign = [w for one in others for w in one.split() if len(w) > 7 and w.isalpha() and w not in sentence]
    if not places or not foreign:
        return None
    words[dice.choice(places)] = dice.choice(foreign)
    return " ".join(words)


def stitched(sentence: str, others: list[str], language: str, dice: random.Random) -> str | None:
    words, rest = sentence.split(" "), dice.choice(others).split(" ")
    return " ".join(words[: len(words) // 2] + rest[len(rest) // 2 :])


def _exchanged(sentence: str, found: list[re.Match[str]]) -> str | None:
    if len(found) < 2 or found[0].group() == found[1].group():
        return None
    one, other = sorted(found, key=re.Match.start)
    middle = sentence[one.end() : other.start()]
    return sentence[: one.start()] + other.group() + middle + one.group() + sentence[other.end() :]


def undenied(sentence: str, others: list[str], language: str, dice: random.Random) -> str | None:
    words = re.findall(r"(\S+)/(\S+(?: (?!\S+/)\S+)*)", NEGATED.get(language, ""))
    return _replaced(sentence, [(denied, plain) for plain, denied in words])


def turned(sentence: str, others: list[str], language: str, dice: random.Random) -> str | None:
    return _replaced(sentence, _pairs(TURNS))


def compared(sentence: str, others: list[str], language: str, dice: random.Random) -> str | None:
    found = re.search(r"(?<= )[1-9]", sentence)
    return found and f"{sentence[: found.start()]}{dice.choice('<>≥≤~±-−')}{sentence[found.start() :]}"


def number_cut(sentence: str, others: list[str], language: str, dice: random.Random) -> str | None:
    found = re.search(r"\b\d+[.,:/ \u00a0\u202f-](?=\d)", sentence)
    return found and sentence[: found.start()] + sentence[found.end() :]


def compound_cut(sentence: str, others: list[str], language: str, dice: random.Random) -> str | None:
    found = re.search(r"\b[^\W\d]{3,}-(?=[^\W\d]{3})", sentence)
    return found and sentence[: found.start()] + sentence[found.end() :]


def option_changed(sentence: str, others: list[str], language: str, dice: random.Random) -> str | None:
    found = re.search(r"(?<=[a-zß-ÿ] )[B-HJ-Z](?!\w)(?!\.)", sentence)
    return found and f"{sentence[: found.start()]}{chr(ord(found[0]) ^ 3)}{sentence[found.end() :]}"


def condition_dropped(sentence: str, others: list[str], language: str, dice: random.Random) -> str | None:
    found = re.search(r",? (?:if|unless|only if|provided that|si|sauf|wenn|außer|falls|se|salvo|als|tenzij) ", sentence)
    return f"{sentence[: found.start()]}." if found and found.start() > MIN_CHARS else None


def word_dropped(sentence: str, others: list[str], language: str, dice: random.Random) -> str | None:
    words = sentence.split(" ")
    places = [at for at, word in enumerate(words[1:-1], 1) if len(word) > 4 and word.isalpha()]
    return " ".join(_without(words, dice.choice(places), 1)) if places else None


def gap_closed(sentence: str, others: list[str], language: str, dice: random.Random) -> str | None:
    words = sentence.split(" ")
    size = dice.randint(2, 4)
    places = [at for at in range(2, len(words) - size - 2) if all(word.isalpha() for word in words[at - 1 : at + size])]
    return " ".join(_without(words, dice.choice(places), size)) if places else None


def word_added(sentence: str, others: list[str], language: str, dice: random.Random) -> str | None:
    words = sentence.split(" ")
    foreign = [w for one in others for w in one.split() if len(w) > 7 and w.isalpha() and w not in sentence]
    place = dice.randint(1, len(words))
    return " ".join([*words[:place], dice.choice(foreign), *words[place:]]) if foreign else None


def words_exchanged(sentence: str, others: list[str], language: str, dice: random.Random) -> str | None:
    found = list(re.finditer(r"(?<= )[a-zß-ÿ]{6,}(?= )", sentence))
    return _exchanged(sentence, dice.sample(found, 2)) if len(found) > 1 else None


def quoted_in_part(sentence: str, others: list[str], language: str, dice: random.Random) -> str | None:
    words, rest = sentence.split(" "), dice.choice(others).split(" ")
    half = len(words) // 2
    return f"“{' '.join(words[:half])}” {' '.join(rest[len(rest) // 2 :])}" if half > 2 else None


def _without(words: list[str], at: int, size: int) -> list[str]:
    return words[:at] + words[at + size :]


def as_it_is(sentence: str, others: list[str], language: str, dice: random.Random) -> str | None:
    return sentence


def unstopped(sentence: str, others: list[str], language: str, dice: random.Random) -> str | None:
    return sentence.rstrip(".。؟!")


TRUE: tuple[Rule, ...] = (as_it_is, unstopped)
FALSE: tuple[Rule, ...] = (
    negated, undenied, number_changed, numbers_exchanged, number_cut, unit_changed, compared, option_changed,
    names_exchanged, name_changed, contrary, turned, word_changed, word_dropped, word_added, words_exchanged,
    compound_cut, condition_dropped, gap_closed, stitched, quoted_in_part,
)  # fmt: skip
