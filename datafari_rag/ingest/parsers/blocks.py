"""
The few blocks that every format becomes, and the one writer that makes text of them.

A reader of a format says what it meets, in its order: `begin`, `add`, `end` for headings, paragraphs and items;
`table`, `row`, `cell` for tables, whose spans are filled here and nowhere else; `place` for pages, slides, sheets and
rows. What it does not take, it counts in `left_out`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

from datafari_rag.core.documents import Place, PlaceMark, mark_text
from datafari_rag.ingest.parsers.parsed import MAX_CHARS, Parsed, Unreadable, cleaned, parsed

MAX_ROW_CHARS = 2000
"""A table with a longer row lays out a page: its cells are blocks. `core.text.structure` takes it for no row either."""

MAX_CELLS = 1_000_000
"""Most cells of one table, spans counted as the cells that they cover."""

MAX_PADDED = 10_000_000
"""Rows of a table with more cells than this, empty ones counted, are not brought to one width."""

MAX_COLUMNS = 1000
"""Most columns that one cell may span, as in HTML. Word itself stops at 63."""

MAX_HEADING_CHARS = 200
"""A longer heading is a paragraph."""

HIDDEN = "hidden text"
EMBEDDED = "embedded object"

_NO_TITLES = frozenset({
    "untitled", "untitled document", "untitled page", "unnamed", "no title", "ohne titel", "unbenannt",
    "sans titre", "sin título",
    "", "anonymous", "unknown", "noname", "stdin", "new microsoft word document", "neues microsoft word dokument",
    "title", "titel", "document", "dokument", "documento", "new document", "neues dokument", "presentation",
    "présentation", "präsentation", "new presentation", "neue präsentation", "powerpoint presentation",
    "powerpoint präsentation", "présentation powerpoint", "presentación de powerpoint", "slide", "folie", "book",
    "mappe", "classeur", "libro",
})  # fmt: skip
"""What programs write where nobody gave a title, with any number behind it."""

_PROGRAMS = ("microsoft word -", "microsoft excel -", "microsoft powerpoint -")
_SUFFIXES = (
    ".doc", ".docx", ".dot", ".odt", ".rtf", ".pdf", ".tex", ".dvi", ".indd", ".qxd", ".ppt", ".pptx", ".xls", ".xlsx",
    ".htm", ".html",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph; a heading where it has a *level*, 1 to 6; an item of a list where it has a *mark*, as "- "."""

    text: str
    mark: str = ""
    level: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """The texts of a row, empty cells included, and its number in its sheet, 0 where it has none."""

    cells: tuple[str, ...]
    number: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of one width; with *has_header* the first one is known to name the columns. *sheet* is that of its rows."""

    rows: tuple[Row, ...]
    has_header: bool = False
    sheet: str | None = None


Block = Paragraph | Table | Place


@dataclass(slots=True)
class Cell:
    """A cell as a format has it: what it spans, and whether it *continues* the one above."""

    rows: int = 1
    columns: int = 1
    is_header: bool = False
    continues: bool = False
    blocks: list[Block] = field(default_factory=list)


class _Full(Exception):
    """As much text as may be taken from one file."""


class Blocks:
    """Takes what a reader of a format meets; `parsed` is what has become of it."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.left_out: Counter[str] = Counter()
        self._lists: list[list[Block]] = [[]]
        self._tables: list[list[list[Cell]]] = []
        self._pieces: list[str] = []
        self._kind = Paragraph("")
        self._chars = 0

    @property
    def is_in_table(self) -> bool:
        """Say whether a table is open."""
        return bool(self._tables)

    @property
    def last(self) -> str:
        """The last character of the open paragraph, "" where nothing is in it."""
        return self._pieces[-1][-1] if self._pieces else ""

    def add(self, words: str) -> None:
        """Add *words* to the open paragraph; a line end in them stays."""
        if words:
            self._chars += len(words)
            if self._chars > MAX_CHARS:
                raise _Full
            self._pieces.append(words)

    def begin(self, mark: str = "", level: int = 0) -> None:
        """End the open paragraph. The next one is an item with *mark* or a heading of *level* where these are given."""
        self._flush()
        if mark or level:
            self._kind = Paragraph("", mark, min(level, 6))

    def end(self) -> None:
        """End the open paragraph; the next one is a plain one."""
        self._flush()
        self._kind = Paragraph("")

    def line(self, words: str, mark: str = "", level: int = 0) -> None:
        """Add a whole paragraph."""
        self.begin(mark, level)
        self.add(words)
        self.end()

    def place(self, place: Place) -> None:
        """Say where what follows stands in its file."""
        self.end()
        self._lists[-1].append(place)

    def table(self) -> None:
        """Begin a table, which may be in a cell of another."""
        self.end()
        self._tables.append([])

    def row(self) -> None:
        """Begin a row."""
        self.end()
        self._tables[-1].append([])

    def cell(self, cell: Cell) -> None:
        """End the open paragraph and begin *cell*: what follows is in it, until `end_cell`."""
        self.end()
        if not self._tables[-1]:
            self._tables[-1].append([])
        self._tables[-1][-1].append(cell)
        self._lists.append(cell.blocks)

    def end_cell(self) -> None:
        """End the cell that was begun last."""
        self.end()
        self._lists.pop()

    def end_table(self) -> None:
        """End the table that was begun last."""
        self.end()
        self.rows([[*row] for row in self._tables.pop()])

    def rows(self, rows: Sequence[Sequence[Cell]], *, numbers: Sequence[int] = (), sheet: str | None = None) -> None:
        """
        Add a table of *rows*; where it only lays out a page, what is in its cells.

        With *numbers*, those of the rows in their *sheet*, it is a table whatever is in it.
        """
        self.end()
        self._lists[-1] += _table_of(rows, numbers, sheet)

    def grid(self, rows: Iterable[Row], *, header_rows: int = 0, sheet: str | None = None) -> None:
        """Add a table whose cells are texts, with spans filled; the first *header_rows* name its columns."""
        self.end()
        self._lists[-1] += _tables_of([*rows], header_rows, sheet)

    def parsed(self, title: str | None = None, *, takes_heading: bool = True) -> Parsed:
        """
        Return the text of all blocks, and *title*.

        Where that says nothing, as "Microsoft Word - Document3.docx", the first of the largest headings is the title,
        if *takes_heading*.
        """
        self.end()
        blocks = self._lists[0]
        name = parsed("", title).title
        if name is None or _says_nothing(name):
            headings = (
                [block for block in blocks if isinstance(block, Paragraph) and block.level] if takes_heading else []
            )
            name = min(headings, key=lambda heading: heading.level).text if headings else None
        found = _written(blocks)
        return replace(parsed("", name), text=found.text, places=found.places, left_out=dict(self.left_out))

    def close(self) -> None:
        """End all tables that are open, as they are."""
        while self._tables:
            self.end()
            self._lists = self._lists[:1]
            self.end_table()

    def _flush(self) -> None:
        text = "".join(self._pieces)
        self._pieces = []
        if text.strip():
            lines = [line.rstrip() for line in text.split("\n")]
            text = "\n".join(lines).strip("\n") if len(lines) > 1 else text.strip()
            is_long = self._kind.level and len(text) > MAX_HEADING_CHARS
            kind = Paragraph("") if is_long else self._kind
            words = " ".join(text.split()) if kind.level else text
            self._lists[-1].append(replace(kind, text=words))
            self._kind = Paragraph("")


def _says_nothing(title: str) -> bool:
    """Say whether *title* is what a program writes where nobody gave one, or the name of a file."""
    lower = title.strip().casefold()
    words = "".join(character if character.isalnum() else " " for character in lower)
    is_file = " " not in lower and lower.endswith(_SUFFIXES)
    return is_file or lower.startswith(_PROGRAMS) or " ".join(words.split()).rstrip(" 0123456789") in _NO_TITLES


def taken(read: Callable[[Blocks], object]) -> Blocks:
    """Return what *read* has put into new blocks; it is ended where there is as much text as may be."""
    blocks = Blocks()
    try:
        read(blocks)
    except _Full:
        blocks.close()
    return blocks


def walk(root: Any, enter: Callable[[Any], Callable[[], None] | None], words: Callable[[str], None]) -> None:
    """
    Go through the tree of *root*, elements as lxml has them, in reading order and without recursion.

    *enter* returns what is called behind the element, None to pass over what is in it. *words* gets the texts.
    """
    waiting: list[Any] = [root]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            words(item)
        elif callable(item):
            item()
        else:
            if item is not root and item.tail:
                waiting.append(item.tail)
            # Comments and the like have functions for tags.
            end = enter(item) if isinstance(item.tag, str) else None
            if end is not None:
                waiting.append(end)
                waiting += reversed(item)
                if item.text:
                    waiting.append(item.text)


def nothing() -> None:
    """Do nothing behind an element."""


def row_line(cells: Iterable[str], *, is_edged: bool) -> str:
    """
    Return a row as one line, which `core.text.structure` reads back; "" where no cell has words.

    A line end in a cell is a blank. Where it *is_edged*, bars are around the line: with them an empty first or last
    cell keeps the others in their columns, if the header of its table has them too.
    """
    texts = [" ".join(cell.split()).replace("|", "¦") for cell in cells]
    if not any(texts):
        return ""
    line = " | ".join(texts)
    return f"| {line} |" if is_edged else line


def _table_of(rows: Sequence[Sequence[Cell]], numbers: Sequence[int], sheet: str | None) -> list[Block]:
    """Return the blocks of a table: it and its captions, or what is in its cells where it lays out a page."""
    grid = _filled(rows)
    width = max(map(len, grid), default=0)
    texts = {id(cell): _flat(cell.blocks) for row in rows for cell in row}
    lengths = [sum(len(texts.get(id(cell), "")) for cell in row) for row in grid]
    nested = [number for number, row in enumerate(rows) if any(isinstance(b, Table) for c in row for b in c.blocks)]
    has_headings = any(isinstance(b, Paragraph) and b.level for row in rows for cell in row for b in cell.blocks)
    is_layout = width < 2 or max(lengths) > MAX_ROW_CHARS or 0 in nested or has_headings
    if is_layout and not numbers:
        return [block for row in rows for cell in row for block in cell.blocks]
    lines = []
    for number, row in enumerate(grid):
        # What spans a whole row says something of the rows below it, and nothing of each column.
        is_wide = len(row) == width and all(cell is row[0] for cell in row)
        own = [texts.get(id(cell), "") for cell in row[: 1 if is_wide else width]]
        lines.append(Row((*own, *[""] * (width - len(own))), numbers[number] if numbers else 0))
    named = sum(1 for _ in takewhile(lambda row: row and all(cell.is_header for cell in row), rows))
    grouped = sum(1 for _ in takewhile(lambda row: any(1 < cell.columns < width for cell in row), rows[:-1]))
    return _tables_of(lines, max(named, grouped + 1 if grouped else 0), sheet)


def _filled(rows: Sequence[Sequence[Cell]]) -> list[list[Cell]]:
    """Return the cell of each place. Raises: Unreadable: they are too many."""
    if any(cell.columns > MAX_COLUMNS for row in rows for cell in row):
        raise Unreadable(f"A table of this file has a row of more than {MAX_COLUMNS:,} cells.")
    grid: list[dict[int, Cell]] = [{} for _ in rows]
    count = 0
    for number, row in enumerate(rows):
        at = 0
        for cell in row:
            while at in grid[number]:
                at += 1
            above = grid[number - 1].get(at) if cell.continues and number else None
            height = min(max(cell.rows, 1), len(rows) - number)
            count += height * max(cell.columns, 1)
            if count > MAX_CELLS:
                raise Unreadable(f"A table of this file has more than {MAX_CELLS:,} cells.")
            for below in range(number, number + height):
                for column in range(at, at + max(cell.columns, 1)):
                    grid[below].setdefault(column, above or cell)
            at += max(cell.columns, 1)
    blank = Cell()
    columns = list(range(max((max(places, default=-1) for places in grid), default=-1) + 1))
    # Columns that only spans have say nothing: a cell may span a thousand where the table has three.
    kept = [n for n in columns if not n or any(row.get(n, blank) is not row.get(n - 1, blank) for row in grid)]
    return [[places.get(column, blank) for column in kept] for places in grid]


def _flat(blocks: Sequence[Block]) -> str:
    """Return what is in a cell as one line; of a table in it each row behind a semicolon."""
    pieces = []
    for block in blocks:
        if isinstance(block, Paragraph):
            pieces.append(block.mark + block.text)
        elif isinstance(block, Table):
            joint = ": " if len(block.rows[0].cells) == 2 and not block.has_header else ", "
            pieces.append("; ".join(joint.join(filter(None, row.cells)) for row in block.rows))
    return " ".join(pieces)


def _tables_of(rows: list[Row], header_rows: int = 0, sheet: str | None = None) -> list[Block]:
    """Return rows as a table behind its captions: lines above its header in which one cell has words."""
    rows = [row for row in rows if any(map(str.strip, row.cells))]
    if not rows:
        return []
    used = sorted({n for row in rows for n, cell in enumerate(row.cells) if cell.strip()})
    # A few rows that are far wider than all others are not worth as many empty cells in these.
    if len(used) * len(rows) <= MAX_PADDED:
        rows = [replace(row, cells=tuple(row.cells[n] if n < len(row.cells) else "" for n in used)) for row in rows]
    captions = sum(1 for _ in takewhile(lambda row: sum(map(bool, row.cells)) == 1, rows[:-2])) if len(used) > 1 else 0
    blocks: list[Block] = []
    for row in rows[:captions]:
        blocks += [Place("row", row.number, sheet)] if row.number else []
        blocks.append(Paragraph("".join(row.cells)))
    rows, header_rows = rows[captions:], max(header_rows - captions, 0)
    if header_rows > 1:
        columns = zip(*(row.cells for row in rows[:header_rows]), strict=True)
        rows = [
            Row(tuple(" ".join(dict.fromkeys(filter(None, c))) for c in columns), rows[0].number),
            *rows[header_rows:],
        ]
    return [*blocks, Table(tuple(rows), has_header=0 < header_rows < len(rows), sheet=sheet)]


def _written(blocks: Iterable[Block]) -> Parsed:
    """Return the text of *blocks* with the places in it."""
    pieces: list[str] = []
    marks: list[PlaceMark] = []
    size = 0
    before: Block | None = None
    for block in blocks:
        if isinstance(block, Place):
            # Two characters for the blank line before the block; what follows is no next item of a list.
            marks.append(PlaceMark(size + 2 if size else 0, block))
            before = None if before is None else block
            continue
        are_items = isinstance(before, Paragraph) and isinstance(block, Paragraph) and before.mark and block.mark
        gap = "" if before is None else "\n" if are_items else "\n\n"
        lines = [gap, *_lines(block, size + len(gap), marks)]
        pieces += map(cleaned, lines)
        size += sum(map(len, pieces[len(pieces) - len(lines) :]))
        before = block
        if size > MAX_CHARS:
            break
    return Parsed("".join(pieces)[:MAX_CHARS].rstrip(), None, mark_text(mark for mark in marks if mark.offset < size))


def _lines(block: Paragraph | Table, at: int, marks: list[PlaceMark]) -> Iterator[str]:
    """Yield the text of *block*, which begins at *at*; a row whose number is not the next one gets a mark."""
    if isinstance(block, Paragraph):
        yield f"{'#' * block.level} {block.text}" if block.level else block.mark + block.text
        return
    next_number = 0
    is_edged = any(not row.cells[0].strip() or not row.cells[-1].strip() for row in block.rows if any(row.cells))
    for number, row in enumerate(block.rows):
        line = cleaned(row_line(row.cells, is_edged=is_edged))
        if number:
            yield "\n"
            at += 1
        if row.number and row.number != next_number:
            marks.append(PlaceMark(at, Place("row", row.number, block.sheet)))
        next_number = row.number + 1
        yield line
        at += len(line)
        if not number and block.has_header:
            rule = "\n" + row_line(["---"] * len(row.cells), is_edged=is_edged)
            yield rule
            at += len(rule)
            # Each line end is a row of the sheet, but for that of the rule.
            next_number = 0
