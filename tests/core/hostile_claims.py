"""
Claims that a document does not make, by kind, and the sentences that must stay proved beside each.

`python -m tests.core.hostile_claims` prints how many of each kind are proved, quoted and near; `-v` prints also
which are so falsely, and words behind it choose the kinds that have them. The written ones are in
`tests/data/hostile_claims`; the generated ones alter sentences of real texts (`claim_table`).
"""

from __future__ import annotations

import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import click

from datafari_rag.core.documents import Document
from datafari_rag.core.proof.checking import checked_against
from datafari_rag.core.text.sentences import STOPS
from tests.core.claim_table import FALSE, TRUE
from tests.core.quote_table import Text, sentences_of
from tests.core.test_quote_table import OWN

FILES = Path(__file__).parents[1] / "data" / "hostile_claims"
WEAKEST = ("unsupported", "near", "quoted", "verified")
PROVED = ("verified",)
QUOTES = re.compile('["“”«»„]')
BRACKETS = re.compile(r"[\[\]【】［］]")


@dataclass(frozen=True)
class Case:
    """A *claim* about *document*; *is_said*: the document says it, in these words or with a harmless difference."""

    kind: str
    document: Document
    claim: str
    is_said: bool
    form: str = "verbatim"

    @property
    def status(self) -> str:
        """Return the weakest status of a sentence of the claim, "unsupported" where a part of it states nothing."""
        found = {one.status or "unsupported" for one in checked_against(self.claim, [self.document]).sentences}
        return next((status for status in WEAKEST if status in found), "unsupported")


@cache
def written() -> tuple[Case, ...]:
    """Return the claims of the files, each in its forms, with those that must stay proved."""
    return (*_of_claims(), *_of_negations())


def _of_claims() -> Iterator[Case]:
    kind, document = "", Document("d", "", title="Note")
    title = "Note"
    for line in (FILES / "claims.txt").read_text(encoding="utf-8").splitlines():
        mark, rest = line[:2], _unescaped(line[2:])
        if line.startswith("["):
            kind = line[1:-1]
        elif mark == "@ ":
            title = rest
        elif mark == ": ":
            document, title = Document("d", rest, title=title), "Note"
            if "\n" not in rest and not rest.endswith("?"):
                yield from _said(kind, document, rest)
        elif mark == "- ":
            yield from _unsaid(kind, document, rest)
        elif mark == "+ " and _plain(rest) in _plain(document.text):
            yield from _said(kind, document, rest)


def _of_negations() -> Iterator[Case]:
    for line in (FILES / "negations.txt").read_text(encoding="utf-8").splitlines()[1:]:
        language, *pair = line.split(" | ")
        for said, other in (pair, pair[::-1]):
            document = Document("d", said, title="Note")
            yield from _said(f"negation: {language}", document, said)
            yield from _unsaid(f"negation: {language}", document, other)


def _unescaped(text: str) -> str:
    text = text.replace("\\n", "\n").replace("\\t", "\t").replace("\\\\", "\\")
    return re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), text)


def _unsaid(kind: str, document: Document, claim: str) -> Iterator[Case]:
    """Yield *claim* as it is and in quotation marks; of the document, and of one in which others stand around it."""
    forms = [claim] if QUOTES.search(claim) else [claim, f"“{claim}”"]
    documents = [document] if "\n" in document.text else [document, _among_others(document)]
    yield from (Case(kind, one, form, is_said=False) for one in documents for form in forms)


def _said(kind: str, document: Document, claim: str) -> Iterator[Case]:
    documents = [document] if "\n" in document.text else [document, _among_others(document)]
    plain = claim.rstrip(".。।")
    forms = {
        "verbatim": claim,
        "no stop": plain,
        "wide blanks": re.sub(r"(?<!\d) (?!\d)", "  ", claim),
        "as an item": f"- {claim}",
        "other apostrophes": claim.replace("'", "’") if "'" in claim else claim.replace("’", "'"),
    }
    # What ends in no full stop is a heading there.
    if claim.endswith(tuple(STOPS)):
        forms["in bold"] = f"**{claim}**"
    if not QUOTES.search(claim):
        forms["quoted"] = f"“{claim}”"
    for one in documents:
        yield from (Case(kind, one, form, is_said=True, form=name) for name, form in forms.items())


def _among_others(document: Document) -> Document:
    # A script without full stops parts its sentences by lines.
    end = " " if document.text[-1] in ".!?।。…»”" or document.text[-1] < "\u0e00" else "\n\n"
    text = f"Breakfast is served at seven. {document.text}{end}Lunch follows in the garden."
    return Document("d", text, title=document.title)


def altered(texts: Iterable[Text]) -> Iterator[Case]:
    """Yield a sentence of each text altered by each rule, and left as it is; quoted and not."""
    dice = random.Random(17)
    for text in texts:
        own = [one for one in sentences_of(text.content) if one[0].isalpha() and not one[0].islower()]
        own = [one for one in own if not (QUOTES.search(one) or BRACKETS.search(one) or "。" in one)]
        document = Document(text.id, text.content, title=text.title)
        if len(own) < 3:
            continue
        for rule in (*TRUE, *FALSE):
            sentence = dice.choice(own)
            changed = rule(sentence, [one for one in own if one != sentence], text.language, dice)
            if changed is None or (rule in FALSE and _plain(changed) in _plain(text.content)):
                continue
            name = rule.__name__.replace("_", " ")
            for form in (changed, f"“{changed}”"):
                yield Case(f"generated: {name}", document, form, is_said=rule in TRUE, form=name)


def _plain(text: str) -> str:
    return " ".join(text.casefold().strip(" .").split())


@cache
def generated() -> tuple[Case, ...]:
    """Return altered sentences of the texts of the tests."""
    return tuple(altered(OWN * 8))


def table(cases: Iterable[Case]) -> tuple[dict[str, Counter[str]], list[tuple[str, Case]]]:
    """Return the counts of each kind, and the cases that are judged otherwise than they should be."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    wrong = []
    for case in cases:
        status = case.status
        is_proved = status in PROVED
        part = "said" if case.is_said else "unsaid"
        for kind in (case.kind, f"ALL said: {case.form}" if case.is_said else "ALL unsaid"):
            counts[kind].update({part: 1, f"{part} proved": is_proved, f"{part} {status}": 1})
        if case.is_said is not is_proved:
            wrong.append((status, case))
    return counts, wrong


def main(arguments: list[str]) -> None:
    words = " ".join(one for one in arguments if one != "-v")
    counts, wrong = table(case for case in (*written(), *generated()) if words in case.kind)
    click.echo(f"{'kind':<50}{'unsaid':>8}{'proved':>8}{'quoted':>8}{'near':>8}{'said':>8}{'proved':>8}")
    for kind, one in sorted(counts.items()):
        shown = ("unsaid", "unsaid proved", "unsaid quoted", "unsaid near", "said", "said proved")
        click.echo(f"{kind:<50}{''.join(f'{one[name]:>8}' for name in shown)}")
    for status, case in wrong if "-v" in arguments else ():
        part = "said" if case.is_said else "not said"
        click.echo(f"{status}\t{case.kind}\t{part}\t{case.document.text[:300]!r}\t{case.claim!r}")


if __name__ == "__main__":
    main(sys.argv[1:])
