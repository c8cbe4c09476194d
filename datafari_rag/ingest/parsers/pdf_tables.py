"""
The cells of tables that are ruled on a page of a PDF, whatever lines a cell has.

Which cells the rules make is pdfplumber's to say. It is given the rules alone, and each letter is put into its cell
here: reading a page of dense text once more with its own reader took 0.7 s.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pdfplumber.table import cells_to_tables, edges_to_intersections, intersections_to_cells, merge_edges

from datafari_rag.ingest.parsers.parsed import row_line

MIN_ROWS, MIN_COLUMNS = 2, 2
TOLERANCE = 3.0
"""Points by which two rules may miss each other, pdfplumber's own measure."""

MAX_POINTS = 4000
"""Crossings of the rules of one page: a drawing on squared paper has more."""

_SIZES = {"width": 0.0, "height": 0.0}
"""Keys that the library writes and does not read."""

Box = tuple[float, float, float, float]
"""Left, lower, right and upper edge, in points from the lower left corner of the page."""

Letter = tuple[str, float, float]
"""A character, and the middle of its box."""


@dataclass(frozen=True, slots=True)
class RuledTable:
    """The *cells* of one table, and the *box* around them."""

    box: Box
    cells: tuple[Box, ...]

    def holds(self, x: float, y: float) -> bool:
        """Return whether the point is in a cell of the table."""
        return _holds(self.box, x, y) and any(_holds(cell, x, y) for cell in self.cells)

    def rows(self, letters: Iterable[Letter]) -> tuple[str, ...]:
        """Return the rows as lines, *letters* being those in the table, in the order in which they are read."""
        words: dict[Box, list[str]] = {cell: [] for cell in self.cells}
        for sign, x, y in letters:
            cell = next((cell for cell in self.cells if _holds(cell, x, y)), None)
            if cell is not None:
                words[cell].append(sign)
        tops = sorted({cell[3] for cell in self.cells}, reverse=True)
        lefts = sorted({cell[0] for cell in self.cells})
        by_corner = {(cell[3], cell[0]): "".join(signs) for cell, signs in words.items()}
        lines = (row_line(by_corner.get((top, left), "") for left in lefts) for top in tops)
        return tuple(filter(None, lines))


def tables_of(rules: Sequence[Box]) -> tuple[RuledTable, ...]:
    """Return the tables that *rules* make, thin boxes each, from the top of the page down."""
    edges = merge_edges([_edge(rule) for rule in rules], TOLERANCE, TOLERANCE, TOLERANCE, TOLERANCE)
    points = edges_to_intersections(edges, TOLERANCE, TOLERANCE)
    if len(points) > MAX_POINTS:
        return ()
    found = [_table(cells) for cells in cells_to_tables(intersections_to_cells(points))]
    return tuple(sorted((table for table in found if _is_table(table)), key=lambda table: -table.box[3]))


def _edge(rule: Box) -> dict[str, object]:
    """Return *rule* as the library has it: counted from the top, so that signs turn."""
    left, lower, right, upper = rule
    if right - left > upper - lower:
        y = -(lower + upper) / 2
        return {"orientation": "h", "x0": left, "x1": right, "top": y, "bottom": y, **_SIZES}
    x = (left + right) / 2
    return {"orientation": "v", "x0": x, "x1": x, "top": -upper, "bottom": -lower, **_SIZES}


def _table(cells: Sequence[Box]) -> RuledTable:
    turned = tuple((left, -bottom, right, -top) for left, top, right, bottom in cells)
    box = (
        min(cell[0] for cell in turned), min(cell[1] for cell in turned),
        max(cell[2] for cell in turned), max(cell[3] for cell in turned),
    )  # fmt: skip
    return RuledTable(box, turned)


def _is_table(table: RuledTable) -> bool:
    rows, columns = {cell[3] for cell in table.cells}, {cell[0] for cell in table.cells}
    return len(rows) >= MIN_ROWS and len(columns) >= MIN_COLUMNS


def _holds(box: Box, x: float, y: float) -> bool:
    return box[0] <= x <= box[2] and box[1] <= y <= box[3]
