from __future__ import annotations

import pytest

from datafari_rag.core.text.structure import (
    MAX_ROW_CHARS,
    MAX_TABLE_CHARS,
    cells_of,
    is_row,
    table_at,
    tables_in,
)

PIPES = (
    "Limits by city:\n\n| City | Limit |\n|------|------:|\n| Berlin | 150 EUR |\n| Paris | 190 EUR |\n\nThat is all."
)
TABS = "Gateways\nRegion\tGateway\nAsia\tsg.example.org\nEurope\teu.example.org\nEnd."
ALIGNED = "Hours:\nArea       Open       Seats\nCanteen    11:30         60\nGym        6:00           8\n"
GRID = "+-----+-----+\n| a   | b   |\n+=====+=====+\n| 1   | 2   |\n+-----+-----+\n| 3   | 4   |\n+-----+-----+\n"


def said(text: str) -> list[list[list[str]]]:
    return [
        [[text[slice(*cell)] for cell in cells_of(text, row, table.rows[0])] for row in table.rows]
        for table in tables_in(text)
    ]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        pytest.param(PIPES, [["City", "Limit"], ["Berlin", "150 EUR"], ["Paris", "190 EUR"]], id="Markdown"),
        pytest.param(
            TABS, [["Region", "Gateway"], ["Asia", "sg.example.org"], ["Europe", "eu.example.org"]], id="tabs"
        ),
        pytest.param(
            ALIGNED,
            [["Area", "Open", "Seats"], ["Canteen", "11:30", "60"], ["Gym", "6:00", "8"]],
            id="columns of spaces",
        ),
        pytest.param(GRID, [["a", "b"], ["1", "2"], ["3", "4"]], id="a grid with rules"),
        pytest.param("x | y\n1 |  | 3\n", [["x", "y"], ["1", "", "3"]], id="an empty cell between pipes"),
        pytest.param(
            "Route | Vehicle | Fare\nSund | Car | 41\n | Truck | 96\n | Van | 60\nHolm | Car | ",
            [
                ["Route", "Vehicle", "Fare"],
                ["Sund", "Car", "41"],
                ["", "Truck", "96"],
                ["", "Van", "60"],
                ["Holm", "Car", ""],
            ],
            id="an empty cell at the edge",
        ),
        pytest.param(
            "x | y | z\n1 | 2 | 3\n | 5 | \n", [["x", "y", "z"], ["1", "2", "3"], ["", "5", ""]], id="at both edges"
        ),
        pytest.param(
            "Route\tVehicle\tFare\nSund\tCar\t41\n\tTruck\t96\n",
            [["Route", "Vehicle", "Fare"], ["Sund", "Car", "41"], ["", "Truck", "96"]],
            id="an empty cell before a tab",
        ),
        pytest.param("a\tb\r\nc\td\r\n", [["a", "b"], ["c", "d"]], id="line ends of Windows"),
    ],
)
def test_a_table_with_its_rows_and_cells(text: str, rows: list[list[str]]) -> None:
    assert said(text) == [rows]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("Prose.  Two spaces after a stop.\nMore of it.  And more.", id="two spaces after a full stop"),
        pytest.param("a | b\n\nc | d", id="an empty line between rows"),
        pytest.param("only | one", id="a row alone"),
        pytest.param("- one (a | b) thing\n- two (c | d) things", id="items with a pipe in them"),
        pytest.param("ORDER BY one [ASC | DESC]\n[, two [ASC | DESC]]", id="the syntax of a command"),
        pytest.param("a || b\nc || d", id="an operator of two pipes"),
        pytest.param("\tindented code\n\tmore of it", id="lines that begin with a tab"),
        pytest.param(f"{'x' * MAX_ROW_CHARS} | y\n{'x' * MAX_ROW_CHARS} | y", id="lines too long for rows"),
        pytest.param("one   two\n       three     four", id="columns that begin nowhere together"),
        pytest.param("a\tb\nc | d", id="rows of two forms"),
        pytest.param("a | b\n" + "-" * (MAX_ROW_CHARS + 9) + "\nc | d", id="a rule without end"),
        pytest.param("|---|---|\n|---|---|", id="nothing but rules"),
    ],
)
def test_no_table(text: str) -> None:
    assert tables_in(text) == ()


def test_a_first_row_with_a_number_of_its_own_heads_nothing() -> None:
    (table,) = tables_in("1 | 10\n2 | 20")
    assert table.header is None
    (table,) = tables_in(PIPES)
    assert PIPES[slice(*table.header or (0, 0))] == "| City | Limit |"


def test_two_tables_of_one_page() -> None:
    assert [len(rows) for rows in said(f"{PIPES}\n{TABS}")] == [3, 3]


def test_only_what_lies_in_the_region_is_read() -> None:
    start = PIPES.index("| Berlin")
    (table,) = tables_in(PIPES, start, len(PIPES))
    assert [PIPES[slice(*row)] for row in table.rows] == ["| Berlin | 150 EUR |", "| Paris | 190 EUR |"]


@pytest.mark.parametrize(
    ("text", "row", "header"),
    [
        pytest.param(PIPES, "| Paris", "| City | Limit |", id="above a rule and a row"),
        pytest.param(TABS, "Europe", "Region\tGateway", id="between tabs"),
        pytest.param("a | b\nc | d", "c | d", "a | b", id="at the beginning of the text"),
        pytest.param("-----+-----\na | b\nc | d", "c | d", "a | b", id="a rule above the header"),
        pytest.param(f"{'x' * MAX_ROW_CHARS} | y\na | b\nc | d", "c | d", "a | b", id="a long line above"),
    ],
)
def test_the_header_of_a_row(text: str, row: str, header: str | None) -> None:
    found = table_at(text, text.index(row))
    assert (None if found is None else text[slice(*found.rows[0])]) == header


def test_a_header_is_not_looked_for_without_end() -> None:
    text = "".join(f"{number} | x\n" for number in range(MAX_TABLE_CHARS))
    place = text.index("\n150000 |") + 1
    found = table_at(text, place)
    assert found is not None
    assert place - MAX_TABLE_CHARS <= found.start < place - MAX_TABLE_CHARS + 20


def test_whether_a_line_has_the_form_of_a_row() -> None:
    assert is_row("a | b")
    assert not is_row("a b")
    assert not is_row(" | " * MAX_ROW_CHARS)


@pytest.mark.parametrize(
    "piece",
    [
        "|",
        "| ",
        " | ",
        "\t",
        "\t\n",
        "   ",
        "a   b\n",
        "-",
        "|-",
        "|---|\n",
        "| a |\n",
        "\n",
        " \n",
        "a | b\n",
        "- a | b\n",
    ],
)
def test_hostile_texts_are_read_to_their_end(piece: str) -> None:
    """Each of them would take minutes if a line were looked at more than a few times."""
    text = piece * (300_000 // len(piece))
    assert all(table.end <= len(text) for table in tables_in(text))
