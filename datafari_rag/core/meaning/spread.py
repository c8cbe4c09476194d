"""How far apart the vectors of a model are: its spread, in units of which nearness is compared and added up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import pstdev

from datafari_rag.core.documents import Nearness
from datafari_rag.core.vectors import Purpose, Vector

PAIRS = (
    ("How many days of holiday do I have?", "Employees are entitled to 25 days of paid annual leave in a year."),
    ("Who repairs the pump in hall 3?", "The maintenance team services all pumps in the production halls each month."),
    ("What is the notice period of the lease?", "Either party may end the tenancy with three months' written notice."),
    ("How do I reset my password?", "Open the account page, choose Security, and follow the link to set a new one."),
    ("Which vaccine protects against measles?", "The MMR vaccine is given in two doses, the first at twelve months."),
    ("When was the cathedral built?", "Construction of the church began in 1163 and took nearly two centuries."),
    ("How long is a byte?", "Eight bits form the smallest unit of memory that a processor can address."),
    ("What does the supplier owe for late delivery?", "Liquidated damages are 0.5 percent of the price for each week."),
    ("Why is the sky blue?", "Air molecules scatter light of short wavelengths more strongly than long ones."),
    ("Where can I park my bicycle?", "There are covered racks behind the canteen, open from six in the morning."),
    ("How is bread baked?", "Knead flour, water, salt and yeast, let the dough rise, and bake it for forty minutes."),
    ("Who won the final of 1998?", "France beat Brazil by three goals to none in the stadium of Saint-Denis."),
    ("What must be declared at customs?", "Travellers have to report cash above ten thousand euros at the border."),
    ("How do whales breathe?", "These mammals come to the surface and take in air through a hole on their heads."),
    (
        "What does the warranty cover?",
        "Defects of material and workmanship are put right free of charge for two years.",
    ),
    ("Which river flows through Vienna?", "The Danube crosses the Austrian capital on its way to the Black Sea."),
)
"""Questions, each with a text that answers it; every other text does not."""

Embed = Callable[[Sequence[str], Purpose], Sequence[Vector]]


def spread_of(embed: Embed) -> float:
    """Return the standard deviation of the cosines of each question with the texts that do not answer it."""
    questions = embed([question for question, _ in PAIRS], "query")
    texts = embed([text for _, text in PAIRS], "passage")
    cosines = [
        sum(a * b for a, b in zip(question, text, strict=True))
        for place, question in enumerate(questions)
        for answered, text in enumerate(texts)
        if place != answered
    ]
    return pstdev(cosines)


def scaled(near: Sequence[Nearness], spread: float | None) -> tuple[Nearness, ...]:
    """Return *near* with the cosines in units of *spread*, as documents carry them; empty where it is not known."""
    return tuple(Nearness(part.start, part.end, part.cosine / spread) for part in near) if spread else ()
