"""
What kind of answer a question wants, and whether a sentence holds something of that kind.

Dates, numbers, names and causes, as tables of words for a few languages; a question or a language that is not in them
wants nothing in particular, which costs nothing.
"""

from __future__ import annotations

import re

_MONTHS = (
    "January|February|March|April|May|June|July|August|September|October|November|December|"
    "janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre|"
    "Januar|Februar|März|Mai|Juni|Juli|Oktober|Dezember|"
    "enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre"
)
_DATE = rf"\b(?:1\d{{3}}|20\d\d)\b|\b(?:{_MONTHS})\b|\b(?:century|siècle|Jahrhundert|siglo)\b"
_NUMBER = (
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|hundred|thousand|million|dozen|percent|half|third|quarter|"
    r"deux|trois|quatre|cinq|sept|huit|neuf|dix|cent|mille|millions?|moitié|zwei|drei|vier|fünf|zehn|hundert|dos|tres|"
    r"cuatro|cinco|diez|cien|mil)\b"
)
_NAME = r"(?<=[^.!?\s] )[A-ZÀ-Ý][\w’'-]+"
_CAUSE = (
    r"\b(?:because|due to|since|therefore|thus|reason|caus\w+|result\w*|in order to|car|parce|afin|grâce|raison|"
    r"puisque|ainsi|weil|denn|damit|deshalb|aufgrund|porque|debido|gracias)\b"
)

_ASKS_WHEN = (
    r"\b(?:when|what (?:year|date|day|month|century|decade)|which (?:year|month)|quand|quelle (?:année|date)|"
    r"quel (?:jour|mois|siècle)|how old|wann|cuándo|qué año)\b"
)
_ASKS_NUMBER = (
    r"\b(?:how (?:many|much|long|far|often|large|big|tall|high|deep|fast|wide)|combien|"
    r"quel (?:âge|pourcentage|nombre|taux|montant)|quelle (?:taille|distance|durée|proportion|somme|superficie)"
    r"|quelle population|percentage|what (?:number|percent|amount|rate|proportion|size|population|price)"
    r"|wie ?viele?|cuánt\w+)\b"
)
_ASKS_WHO = (
    r"\b(?:who|whom|whose|where|which (?:city|country|person|state|company)|qui|où|"
    r"what (?:city|country|state|name|company)|quel(?:le)? (?:ville|pays|personne|roi|auteur)|wer|wo|quién|dónde)\b"
)
_ASKS_WHY = r"\b(?:why|pourquoi|reason|cause|raison|warum|weshalb|por qué)\b"

Cue = re.Pattern[str]


def cue_of(question: str) -> Cue | None:
    """Return what a sentence that answers *question* should match, None when any may answer it."""
    return next((cue for asks, cue in CUES if asks.search(question)), None)


CUES = tuple(
    (re.compile(asks, re.IGNORECASE), re.compile(cue))
    for asks, cue in (
        (_ASKS_WHEN, _DATE),
        (_ASKS_NUMBER, _NUMBER),
        (_ASKS_WHO, _NAME),
        (_ASKS_WHY, _CAUSE),
    )
)
