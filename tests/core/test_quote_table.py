"""
The table of good and bad quotations: none of the bad ones is ever "verified", most good ones of whole sentences are.

On texts of the project's own, and on pages of the demo's manuals.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from datafari_rag.core.documents import Citation, Document, Passage
from datafari_rag.core.evidence.extracts import extracts_for
from datafari_rag.core.proof.checking import resolve
from tests.core.quote_table import Case, Text, cases
from tests.hostile_texts import pages

MARKS = [("“", "”"), ('"', '"'), ("« ", " »"), ("„", "“"), ("«", "»")]
FORMS = ["The document says {q} {m}.", "{q} {m}", "- {q}{m}\n- more [99]", "According to {m}, {q}."]

OWN = [
    Text(
        "travel",
        "Travel policy",
        "Employees may book flights up to 30 days before the trip. The company doesn't pay for upgrades. "
        "A hotel room must not cost more than 120 euros a night, except in Paris and Zurich.\n"
        "Receipts are sent to the office within 14 days – later ones aren't refunded. "
        "The official “green” rate of 0.35 euros per kilometre holds for cars; bicycles get 0.05 euros.",
        "en",
    ),
    Text(
        "leave",
        "Leave",
        "Every employee has 25 days of leave in a year. Unused days do not expire before the 31st of March. "
        "Whoever is ill for more than three days needs a doctor's certificate.\n"
        "Office staff may work from home on 2 days of the week. "
        "The efficient handling of requests is the duty of the staff office, not of the manager.",
        "en",
    ),
    Text(
        "tools",
        "Tools",
        "The build server deletes files that are older than 90 days. Backups are kept for 7 years in Geneva. "
        "A user who forgets the password five times is not able to sign in for 15 minutes.\n"
        "The first official release was version 1.5, and the flag --offline is not supported before 2.0. "
        "Naïve configurations often fail without a warning at the first start.",
        "en",
    ),
    Text(
        "conges",
        "Congés payés",
        "Chaque salarié a droit à 25 jours de congé par an. L’employeur ne peut pas refuser un congé sans motif écrit. "
        "Le cœur de l’été, du 15 juillet au 15 août, n'est pas ouvert aux stagiaires.\n"
        "Les demandes sont déposées au moins 30 jours avant le départ, « sauf accord écrit » du responsable. "
        "Les jours non pris ne sont jamais payés après le 31 mars de l'année suivante.",
        "fr",
    ),
    Text(
        "reise",
        "Reisen",
        "Eine Fahrt über 100 Kilometer wird mit der Bahn gemacht. Die Straße zum Büro ist ab 20 Uhr gesperrt. "
        "Wer kein Hotel unter 90 Euro findet, fragt vorher das Reisebüro um Rat.\n"
        "Die Kosten für ein Taxi werden nicht erstattet, wenn nach 6 Uhr ein Bus fährt. "
        "Belege müssen innerhalb von 21 Tagen im Original eingereicht werden, sonst verfallen sie.",
        "de",
    ),
    Text(
        "gastos",
        "Gastos",
        "Los gastos de más de 50 euros necesitan la firma del jefe. Ningún empleado puede viajar en primera clase. "
        "El año fiscal empieza el 1 de abril y no coincide con el año natural.\n"
        "La oficina de Málaga abre a las 8 de la mañana y cierra a las 3 de la tarde en verano. "
        "Las facturas sin fecha no se pagan nunca, ni siquiera con la firma del director.",
        "es",
    ),
]


def pages_of_the_demo(number: int) -> list[Text]:
    chosen = random.Random(5).sample(list(pages().values()), number)
    return [Text(page["id"], page["title"], page["content"], "en") for page in chosen]


def tried(texts: list[Text], *, each: int) -> Iterator[tuple[Case, Citation]]:
    dice = random.Random(3)
    for case in cases(texts, seed=11, each=each):
        group = [case.text, *case.others]
        dice.shuffle(group)
        documents = [Document(text.id, text.content, title=text.title) for text in group]
        whole = [(document, (Passage(0, len(document.text)),)) for document in documents]
        extracts = extracts_for(whole, is_cleaned=True)
        place = group.index(case.text)
        opening, closing = dice.choice(MARKS)
        mark = dice.choice([f"[{place + 1}]", f"[{extracts[place].label}]", f"【{place + 1}】"])
        answer = dice.choice(FORMS).format(q=opening + case.quote + closing, m=mark)
        citations = resolve(answer, extracts, language=case.text.language)
        for citation in citations:
            if citation.quote is not None:
                stored = next(document.text for document in documents if document.id == citation.document_id)
                assert stored[citation.start : citation.end] == citation.quote
        yield case, next(citation for citation in citations if citation.label != "99")


HARMLESS = ("dropped", "swapped")
"""A word dropped may be an article, and signs exchanged may be quotation marks."""

CUT = ("window", "upper", "spaced")
"""Words cut out of a sentence, in capital letters, or on lines of their own are another text."""


def judged(texts: list[Text], *, each: int) -> Counter[tuple[bool, bool]]:
    """Count (the judge finds it, we say verified; quoted counts for what is there, with other words around it)."""
    return Counter(
        (case.is_there, citation.status in (("verified", "quoted") if case.is_there else ("verified",)))
        for case, citation in tried(texts, each=each)
        if case.kind not in (CUT if case.is_there else HARMLESS)
    )


def test_own_texts_give_no_false_proof_and_most_true_ones() -> None:
    found = judged(OWN, each=8)
    assert found.total() > 250
    assert found[False, True] == 0
    assert found[True, True] >= 0.9 * (found[True, True] + found[True, False])


@pytest.mark.parametrize("number", [40, pytest.param(120, marks=pytest.mark.slow)])
def test_pages_of_manuals_give_no_false_proof(number: int) -> None:
    total = judged(pages_of_the_demo(number), each=1)
    assert total[False, True] == 0 < total[True, True]
