"""The row of a table from the stored text to the citation: chosen, shown, quoted and cited as one."""

from __future__ import annotations

import pytest

from datafari_rag.core.documents import Document, Extract, Passage
from datafari_rag.core.model.prompt import document_message
from datafari_rag.core.passages.extractive_answer import answer
from datafari_rag.core.passages.extracts import ROW_JOINT, extracts_for
from datafari_rag.core.passages.reranking import best_row, ranked
from datafari_rag.core.passages.selection import Limit, select
from datafari_rag.core.passages.stored_parts import in_parts
from datafari_rag.core.passages.term_matching import terms_of, traces_of
from datafari_rag.core.proof.checking import resolve
from datafari_rag.core.text.structure import tables_in

CITIES = ("Amsterdam", "Berlin", "London", "Madrid", "Paris", "Rome", "Vienna", "Zurich")
ROWS = "".join(f"| {city} | {110 + 10 * number} EUR | zone {number} |\n" for number, city in enumerate(CITIES))
POLICY = (
    "# Travel policy\n\nKeep every receipt of a trip; nothing is paid back without one.\n\n## Hotels\n\n"
    "In Paris a hotel may cost more during a fair. Breakfast in a hotel is included.\n\n"
    f"| City | Limit per night | Area |\n|---|---|---|\n{ROWS}\n"
    "## Trains\n\nTrains are booked in the travel tool. " + "Ask your manager before you book anything. " * 30
)
TABS = "Guide\n\nEvery region has a gateway of its own.\n\nRegion\tGateway\n" + "".join(
    f"{name}\tport 7 {name[:2].lower()}.vpn.example.org\n"
    for name in ("Europe", "Asia", "Africa", "Oceania", "America")
)
HOTEL = "How much can I spend on a hotel in Berlin?"
GATEWAY = "What is the gateway for Asia?"


def extracts(question: str, *texts: str, max_chars: int = 300, is_cleaned: bool = True) -> tuple[Extract, ...]:
    documents = [Document(f"d{n}", text, title=f"T{n}", score=5.0 - n) for n, text in enumerate(texts)]
    chosen = select(question, documents, limit=Limit(max_chars, 3), language="en").chosen
    return extracts_for(chosen, is_cleaned=is_cleaned)


def whole(text: str) -> tuple[Extract, ...]:
    return extracts_for([(Document("d", text, title="The file"), (Passage(0, len(text)),))], is_cleaned=True)


@pytest.mark.parametrize(
    ("question", "text", "header", "row"),
    [
        pytest.param(HOTEL, POLICY, "| City | Limit per night | Area |", "| Berlin | 120 EUR | zone 1 |", id="pipes"),
        pytest.param(GATEWAY, TABS, "Region\tGateway", "Asia\tport 7 as.vpn.example.org", id="tabs"),
    ],
)
@pytest.mark.parametrize("is_cleaned", [True, False])
def test_a_row_is_shown_on_a_line_of_its_own_under_its_header(
    question: str, text: str, header: str, row: str, is_cleaned: bool
) -> None:
    (extract,) = extracts(question, text, max_chars=120, is_cleaned=is_cleaned)
    lines = extract.text.split("\n")
    assert lines.index(header) < lines.index(row)
    start = extract.text.index(row)
    stored = extract.origins.span(start, start + len(row))
    assert stored is not None
    assert text[slice(*stored)] == row


def test_a_row_costs_its_header_once() -> None:
    (extract,) = extracts("Berlin Madrid Vienna limit", POLICY, max_chars=200)
    assert extract.text.count("Limit per night") == 1
    assert len(extract.text) <= 200


def test_other_rows_do_not_speak_for_a_row() -> None:
    (extract,) = extracts("limit in Berlin", POLICY, max_chars=80)
    assert "Berlin" in extract.text
    assert "Amsterdam" not in extract.text


def test_rows_that_do_not_touch_are_joined_line_by_line() -> None:
    assert len(ROW_JOINT) == 3
    document = Document("d", TABS)
    (extract,) = extracts_for(
        [(document, tuple(passages_of(TABS, "Region\tGateway", "Asia\tport 7 as.vpn.example.org")))], is_cleaned=True
    )
    assert extract.text == "Region\tGateway\n…\nAsia\tport 7 as.vpn.example.org"


def passages_of(text: str, *parts: str) -> list[Passage]:
    return [Passage(text.index(part), text.index(part) + len(part)) for part in parts]


def test_a_row_in_the_middle_of_a_long_table_is_found_and_so_is_its_header() -> None:
    rows = "".join(f"Article {number}\t{number} EUR\tshelf {number % 7}\n" for number in range(4000))
    text = f"Prices\nName\tPrice\tPlace\n{rows}Bicycle\t333 EUR\tyard\n{rows}"
    question = "price of the bicycle"
    documents = in_parts([Document("d", text, score=1.0)], question, "en")
    assert len(documents[0].text) < len(text) / 2
    (extract,) = extracts_for(select(question, documents, limit=Limit(400, 3), language="en").chosen, is_cleaned=True)
    assert extract.text.index("Name\tPrice\tPlace") < extract.text.index("Bicycle\t333 EUR\tyard")


def test_a_large_budget_takes_the_header_with_the_rows() -> None:
    text = f"{'Nothing of interest is said here. ' * 700}\n\n{TABS}\n\n" + "More that nobody asked for. " * 700
    (extract,) = extracts(GATEWAY, text, max_chars=17_000)
    assert extract.text.index("Region\tGateway") < extract.text.index("Asia\tport 7 as.vpn.example.org")


@pytest.mark.parametrize(
    ("question", "text", "said", "quote"),
    [
        pytest.param(
            HOTEL,
            POLICY,
            "City: Berlin; Limit per night: 120 EUR; Area: zone 1 [1].",
            "| Berlin | 120 EUR | zone 1 |",
            id="pipes",
        ),
        pytest.param(
            GATEWAY,
            TABS,
            "Region: Asia; Gateway: port 7 as.vpn.example.org [1].",
            "Asia\tport 7 as.vpn.example.org",
            id="tabs",
        ),
    ],
)
def test_the_reply_says_the_cells_with_the_names_of_their_columns_and_the_citation_is_the_row(
    question: str, text: str, said: str, quote: str
) -> None:
    found = extracts(question, text, max_chars=10_000)
    reply = answer(question, found, language="en")
    assert reply.startswith(said)
    citation = resolve(reply, found)[0]
    assert (citation.status, citation.quote) == ("verified", quote)
    assert text[citation.start : citation.end] == quote


PRICES = """item | unit | price_eur | stock | supplier
Cheese dumplings | plate | 14.80 | 90 | Sennerei Unteralm
Hut liner | piece | 18.00 | 40 | Näherei im Tal
Rescue blanket | piece | 4.90 | | Alpinladen am Bahnhof
"""


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (
            "supplier of the hut liner",
            "item: Hut liner; unit: piece; price_eur: 18.00; stock: 40; supplier: Näherei im Tal [1].",
        ),
        (
            "price of a rescue blanket",
            "item: Rescue blanket; unit: piece; price_eur: 4.90; supplier: Alpinladen am Bahnhof [1].",
        ),
    ],
)
def test_a_row_of_a_table_that_names_its_columns_is_said_and_proved_as_a_sentence(question: str, said: str) -> None:
    reply = answer(question, whole(PRICES), language="en")
    assert reply.startswith(said)
    assert {citation.status for citation in resolve(reply, whole(PRICES))} == {"verified"}


def test_each_row_is_said_with_the_names_of_its_columns() -> None:
    text = "City | Colour\nBerlin | grey\nMadrid | red\n"
    reply = answer("colour of Berlin and Madrid", whole(text), language="en")
    assert reply == "City: Berlin; Colour: grey [1].\n\nCity: Madrid; Colour: red [1]."
    assert {citation.status for citation in resolve(reply, whole(text))} == {"verified"}


def test_a_row_without_header_is_said_by_itself() -> None:
    assert answer("Where is Berlin?", whole("Berlin | 10\nRome | 20\n"), language="en").startswith("“Berlin | 10” [1]")


def test_lines_of_keys_and_values_are_said() -> None:
    text = "Limits\n\nDevices per user: 3\nTransfer: 50 GB a month\n"
    assert "“Devices per user: 3" in answer("How many devices per user?", whole(text), language="en")


@pytest.mark.parametrize(
    ("claim", "status"),
    [
        pytest.param("Berlin, limit per night: 120 EUR [1].", "quoted", id="cell, row and column"),
        pytest.param("Berlin, limit per night: 140 EUR [1].", "near", id="the cell of another row"),
        pytest.param("Berlin, area: 120 EUR [1].", "near", id="the name of another column"),
        pytest.param("“Berlin | 120 EUR” [1].", "quoted", id="a quoted cell"),
    ],
)
def test_a_claim_about_a_cell(claim: str, status: str) -> None:
    (citation,) = resolve(claim, whole(POLICY))
    assert citation.status == status
    if status == "quoted":
        assert citation.quote == "| Berlin | 120 EUR | zone 1 |"


def test_two_rows_together_prove_nothing() -> None:
    (citation,) = resolve("In Berlin and London it costs 120 and 130 EUR [1].", whole(POLICY))
    assert citation.status == "near"


def test_the_cell_before_a_row_denies_nothing() -> None:
    text = "Case | Proof\nWedding | none\nExam | letter 7\n"
    (citation,) = resolve("“Exam | letter 7” [1]", whole(text))
    assert citation.status == "quoted"


def test_a_table_that_answers_comes_first() -> None:
    prose = "The limit is a matter of taste. A hotel is fine. Berlin is large. " * 3
    found = ranked(
        "limit hotel Berlin", [Document("a", prose, score=5.0), Document("b", POLICY, score=4.9)], language="en",
        terms=terms_of("limit hotel Berlin", "en"),
    )  # fmt: skip
    assert found[0].document.id == "b"


def test_the_best_row_counts_its_header_and_the_line_before() -> None:
    terms = terms_of("gateway asia region", "en")
    rarity = [1.0] * len(terms)
    assert best_row(TABS, tables_in(TABS), traces_of(terms, TABS, "en"), rarity) == 3.0
    two = "1 | asia\n2 | x\n"
    assert best_row(two, tables_in(two), traces_of(terms, two, "en"), rarity) == 1.0
    only_header = terms_of("region", "en")
    assert best_row(TABS, tables_in(TABS), traces_of(only_header, TABS, "en"), [1.0]) == 0.0
    assert best_row("No table.", (), traces_of(terms, "No table.", "en"), rarity) == 0.0


def test_the_prompt_names_the_headings_that_a_passage_stands_under() -> None:
    parts = passages_of(POLICY, "| City | Limit per night | Area |", "| Berlin | 120 EUR | zone 1 |")
    (extract,) = extracts_for([(Document("d", POLICY, title="T0"), tuple(parts))], is_cleaned=True)
    assert [path for _, path in extract.paths] == ["Travel policy > Hotels"]
    message = document_message(extract, "nonce")
    assert "[T0]\n# Travel policy > Hotels\n| City | Limit per night | Area |\n" in message
    assert message.replace("# Travel policy > Hotels\n", "").count("\n") == document_message(
        extracts_for([(extract.document, extract.passages)], is_cleaned=True, has_paths=False)[0], "nonce"
    ).count("\n")


def test_the_headings_change_with_the_section() -> None:
    text = f"# T0\n\n## One\n\n{'First of all. ' * 20}\n\n## Two\n\n{'Second of all. ' * 20}\n\n## Three\n\nEnd."
    parts = passages_of(text, "First of all.", "Second of all.", "End.")
    (extract,) = extracts_for([(Document("d", text, title="T0"), tuple(parts))], is_cleaned=True)
    assert [path for _, path in extract.paths] == ["One", "Two", "Three"]
    assert document_message(extract, "k3j9x2").split("\n")[2:-1] == [
        "# One", "First of all. … ", "# Two", "Second of all. … ", "# Three", "End.",
    ]  # fmt: skip


def test_headings_that_are_shown_anyway_are_not_repeated() -> None:
    (extract,) = whole(POLICY)
    assert extract.paths == ()


def test_snippets_have_no_headings() -> None:
    document = Document("d", "# A\n\n<em>Text</em> x", field="highlighting")
    (extract,) = extracts_for([(document, (Passage(5, 20),))], is_cleaned=True)
    assert extract.paths == ()


def test_headings_far_apart_in_a_long_text() -> None:
    gap = "No heading stands here, and nobody would say so. " * 1500
    text = f"# Alpha\n\n{gap}\n\n## Beta\n\nThe place.\n\n{gap}"
    (extract,) = extracts_for([(Document("d", text), tuple(passages_of(text, "The place.")))], is_cleaned=True)
    assert [path for _, path in extract.paths] == ["Beta"]
