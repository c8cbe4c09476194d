"""Answers that show a reader other words than those that are compared: turned round, hidden, or struck out."""

from __future__ import annotations

import itertools
import random
import re
import unicodedata
from collections.abc import Iterator
from html import unescape
from pathlib import Path

from markdown_it import MarkdownIt

from datafari_rag.bootstrap import create_app, writer_for
from datafari_rag.core.answer.output_filter import OutputFilter
from datafari_rag.core.documents import Document, Passage
from datafari_rag.core.evidence.extracts import extracts_for
from datafari_rag.core.proof.checking import resolve
from tests.attack.report import Record, judge
from tests.security.asking import Case, request_for
from tests.settings import settings_with
from tests.support.server import model_server

TRUE = "All employees hired after 2011 cannot vote"
DOSE = "The dose is 20 mg of the drug each day"
RULES = Document("rules", f"{TRUE}. {DOSE}. The canteen is in the cellar.", title="Rules", url="https://docs.example/r")
EXTRACTS = extracts_for([(RULES, (Passage(0, len(RULES.text)),))], is_cleaned=True)

HIDDEN = """<q {}> <b x={}> </ {} > <? {} ?> <!-- {} --> <!{}> <![CDATA[{}]]> <b\n{}> <span hidden>{}</span> <s>{}</s>
    <del>{}</del> <strike>{}</strike> <s class=x>{} ~~{}~~ ~{}~ [](https://docs.example/r "{}")
    [](https://evil.example "{}") [x]: https://evil.example "{}" ![{}](https://evil.example) <style>{}</style>
    <template>{}</template> `<q {}>`"""
"""Each takes a word where some reader of Markdown or HTML does not show it, or shows it struck out."""

TURNED = "\u202e{}\u202c \u2067{}\u2069 \u202d\u202e{} \u200f{}\u200e \u061c{} \u202e\u2066{}\u2069\u202c"
UNSEEN = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u034f\u115f\u3164\U000e0041\U000e0020\u180e\x00\x1b\x08\u202a"


def test_no_answer_is_sent_with_what_turns_or_hides_it(record_property: Record) -> None:
    answers = [*turned(random.Random(3)), *hidden()]
    sent = [(answer, shown(pieces)) for answer in answers for pieces in ([answer], list(answer))]
    holes = [
        answer
        for answer, text in sent
        if any(map(is_control, text)) or re.search("<(?=[A-Za-z/!?])", outside_code(text))
    ]
    holes += [answer for (answer, whole), (_, streamed) in zip(sent[::2], sent[1::2], strict=True) if whole != streamed]
    judge(record_property, "controls and HTML in answers", against="answers", tried=len(sent), holes=holes)


def test_no_badge_stands_on_words_that_a_reader_does_not_see(record_property: Record) -> None:
    answers = [*turned(random.Random(4)), *hidden()]
    holes = []
    for answer in answers:
        text = shown([answer])
        seen = re.findall(r"\w+", read(text))
        for one in resolve(text, EXTRACTS):
            rest = iter(seen)
            is_seen = all(word in rest for word in re.findall(r"\w+", one.claim))
            if one.status in ("verified", "quoted") and not is_seen:
                holes.append(f"{answer!r} is seen as {seen} under {one.status}: {one.claim!r}")
    judge(record_property, "words that no reader sees", against="answers", tried=len(answers), holes=holes)


def turned(dice: random.Random) -> Iterator[str]:
    """Yield true sentences with controls around a word, or inside of any."""
    forms = TURNED.split()
    for number in range(600):
        words = (TRUE, DOSE)[number % 2].split()
        at = dice.randrange(len(words))
        cut = dice.randrange(len(words[at]) + 1)
        word = dice.choice((words[at][::-1], words[at]))
        words[at] = dice.choice(
            (dice.choice(forms).format(word), words[at][:cut] + dice.choice(UNSEEN) + words[at][cut:])
        )
        quoted = '"{}" [1].' if number % 3 else "{} [1]."
        yield quoted.format(" ".join(words))


def hidden() -> Iterator[str]:
    """Yield the sentences with the word that turns them, or its first ones, where not every reader sees it."""
    forms = re.split(r"\s(?=[<~!`\[])", re.sub(r"\n\s+", " ", HIDDEN))
    for form in forms:
        yield f"{TRUE.replace('cannot', form.format('cannot'))} [1]."
        yield f"{form.format(TRUE)} [1]."
        yield f"{form.format('All employees')}{TRUE.removeprefix('All employees')} [1]."
        yield f'"{TRUE.replace("cannot", form.format("cannot"))}" [1].'


def shown(pieces: list[str]) -> str:
    output = OutputFilter(wants_followups=False)
    return "".join(map(output.feed, pieces)) + output.end()


def read(text: str) -> str:
    """Return what a reader of Markdown with HTML sees of *text*, without what is struck out."""
    html = MarkdownIt("commonmark", {"html": True}).enable("strikethrough").render(text)
    html = re.sub(r"<(s|del|strike|style|template)\b.*?(?:</\1>|\Z)|<!.*?>|<\?.*?>", "", html, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", "", html).replace("&quot;", '"').split())


def outside_code(text: str) -> str:
    return re.sub(r"`[^`]*`|<https://docs\.example/r>", "", text)


def is_control(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf") and character != "\n"


SAID = (
    "The dose is \u202e",
    "20\u202c mg\u200b of the drug each day",
    " [1]. \U000e0041 \x1b[31m\x00 <",
    "s>It is</s> <b hidden>30 mg</b> <!-- [1].",
)
TAGS = re.compile(r"</?s>It|<b hidden>30|<!-- \[1")
ANSWERING = ("ragapi", "choices", "chat", "published", "openai", "page", "mcp", "ai")


def test_no_dialect_sends_a_control_or_a_tag_of_the_model(record_property: Record, tmp_path: Path) -> None:
    index = f"embedded:{tmp_path / 'index'}"
    writer = writer_for(settings_with(solr_url=index))
    writer.add([{"id": RULES.id, "title": RULES.title, "exactContent": RULES.text, "language": "en"}])
    writer.commit()
    writer.close()
    sent, asked_once = [], set()
    with model_server(texts=SAID) as model:
        conf = tmp_path / "rag.properties"
        conf.write_text(f"solr.url={index}\nrag.api.endpoint={model.url}\nserver.rate.work=0\n")
        client = create_app(conf).test_client()
        for dialect, target, is_streamed in itertools.product(ANSWERING, range(20), (False, True)):
            case = Case(dialect, "body", None, target, "key", is_streamed, (), {})
            asked = request_for(case, "What is the dose of the drug?", RULES.id)
            if (asked.path, asked.body) in asked_once:
                continue
            asked_once.add((asked.path, asked.body))
            reply = client.open(asked.path, method=asked.method, data=asked.body, headers=dict(asked.headers))
            sent.append((dialect, unescaped(reply.get_data(as_text=True))))
        for is_streamed in (False, True):
            body = {"model": "datafari", "input": "What is the dose of the drug?", "stream": is_streamed}
            sent.append(("responses", unescaped(client.post("/v1/responses", json=body).get_data(as_text=True))))
    assert {dialect for dialect, text in sent if "[31m" in text} == {*ANSWERING, "responses"}
    holes = [
        f"{dialect}: {text!r}"
        for dialect, text in sent
        if any(map(is_control, text.replace("\r", ""))) or TAGS.search(text)
    ]
    judge(record_property, "controls and tags of a model in replies", against="dialects", tried=len(sent), holes=holes)


def unescaped(text: str) -> str:
    """Return *text* with the characters that JSON and HTML escape, but for blanks and line ends."""
    spelled = re.sub(r"\\u(?!000[9ad])([0-9a-fA-F]{4})", lambda one: chr(int(one[1], 16)), unescape(text))
    return spelled.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
