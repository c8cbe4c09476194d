"""
Workbooks (XLSX, XLSM, XLS, XLSB): each sheet under its name, its cells as a person sees them. Macros are not looked at.

openpyxl knows formats of numbers, merged cells and what is hidden; xlrd does so of XLS. calamine, many times as fast,
reads XLSB and what is too large for the other: of these the numbers are as they are stored, and what is hidden is read
from the sheets' own parts, since no library tells.
"""

from __future__ import annotations

import datetime
import itertools
import posixpath
import re
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import python_calamine

from datafari_rag.core.documents import Place
from datafari_rag.ingest.parsers.blocks import EMBEDDED, HIDDEN, Blocks, Cell, Paragraph, Row, taken
from datafari_rag.ingest.parsers.html import xml_of
from datafari_rag.ingest.parsers.packed import BROKEN, CFB_MARK, read_entry, refuse_bombs
from datafari_rag.ingest.parsers.parsed import MAX_CHARS, Parsed, Unreadable

MAX_CELLS = 5_000_000
"""Most cells between the first and the last one that is used; calamine keeps room for each, empty or not."""

MAX_SHEET_COLUMNS = 16_384
MAX_XML_BYTES = 20_000_000
"""Sheets that unpack to more are read by calamine: openpyxl would take more than a minute."""

ROUGH = "number formats of a workbook"

_BROKEN_CELLS = (ValueError, OverflowError, LookupError, SyntaxError, AttributeError, TypeError, AssertionError)
"""What the libraries raise of parts that they do not expect, and of numbers that no date and no float can be."""


@dataclass(slots=True)
class Sheet:
    """One sheet: the texts of its *rows* by number from 1, *merged* ranges (first and last row and column, from 1)."""

    name: str
    rows: Iterable[tuple[int, Sequence[str]]]
    merged: Sequence[tuple[int, int, int, int]] = ()
    hidden_rows: frozenset[int] = frozenset()
    hidden_columns: frozenset[int] = frozenset()
    notes: Sequence[str] = ()
    is_hidden: bool = False
    left_out: Mapping[str, int] = field(default_factory=dict)


def parse(file: BinaryIO) -> Parsed:
    """Return the rows of all sheets of *file*. Raises: OSError; Unreadable: broken, locked or too large."""
    beginning = file.read(len(CFB_MARK))
    file.seek(0)
    try:
        if beginning == CFB_MARK:
            # Which also says whether it is whole: xlrd goes round in some that are not.
            _opened(file)
            file.seek(0)
            return _parsed(_old_sheets(file.read()))
        refuse_bombs(file, "workbook")
        with zipfile.ZipFile(file) as packed:
            sizes = {entry.filename: entry.file_size for entry in packed.infolist()}
            drawn, left_out = _drawn(packed, sizes)
        is_large = sum(size for name, size in sizes.items() if name.startswith("xl/worksheets/")) > MAX_XML_BYTES
        book = None if is_large or "xl/workbook.bin" in sizes else _book(file)
        if book is None:
            return _parsed(_rough_sheets(file), drawn, {**left_out, ROUGH: 1})
        return _parsed(_sheets(book), drawn, left_out)
    except (*BROKEN, *_BROKEN_CELLS) as error:
        raise Unreadable("This workbook is broken.") from error


def _parsed(sheets: Iterator[Sheet], drawn: Sequence[str] = (), left_out: Mapping[str, int] | None = None) -> Parsed:
    def read(blocks: Blocks) -> None:
        blocks.left_out.update(left_out or {})
        for number, sheet in enumerate(sheets, 1):
            put(number, sheet, blocks)
        for words in drawn:
            blocks.line(words)

    return taken(read).parsed(takes_heading=False)


def put(number: int, sheet: Sheet, blocks: Blocks) -> None:
    """Put the sheet, of *number* in its file, into *blocks*; an empty row ends a table."""
    if sheet.is_hidden:
        blocks.left_out["hidden sheet"] += 1
        return
    blocks.place(Place("sheet", number, sheet.name))
    blocks.line(sheet.name, level=2)
    above: dict[tuple[int, int], tuple[int, int]] = {}
    starts = {}
    for first, left, last, right in sheet.merged:
        starts[first, left] = (last, right)
        above |= {(row, column): (first, left) for row in range(first, last + 1) for column in range(left, right + 1)}
        if len(above) > MAX_CELLS:
            raise _too_many(sheet.name)
    rows: list[tuple[int, Sequence[str]]] = []
    hidden = {column for column in sheet.hidden_columns if column > 0}
    seen_hidden: set[int] = set()
    merged_rows = {covered for covered, _ in above}
    chars = 0
    for row, texts in sheet.rows:
        chars += sum(map(len, texts))
        if chars > MAX_CHARS:
            break
        if row in sheet.hidden_rows:
            if any(texts):
                blocks.left_out["hidden row"] += 1
            continue
        seen_hidden |= {column for column in hidden if column <= len(texts) and texts[column - 1]}
        if any(texts) or row in merged_rows:
            rows.append((row, texts))
        elif rows:
            _put_table(rows, sheet, above, starts, blocks)
            rows = []
    _put_table(rows, sheet, above, starts, blocks)
    if seen_hidden:
        blocks.left_out["hidden column"] += len(seen_hidden)
    blocks.left_out.update(sheet.left_out)
    for note in sheet.notes:
        blocks.line(note)


def _put_table(
    rows: Sequence[tuple[int, Sequence[str]]],
    sheet: Sheet,
    above: Mapping[tuple[int, int], tuple[int, int]],
    starts: Mapping[tuple[int, int], tuple[int, int]],
    blocks: Blocks,
) -> None:
    shown = {number for number, _ in rows}
    if not any(row in shown for row, _ in above):
        blocks.grid(
            (
                Row(tuple(t for c, t in enumerate(texts, 1) if c not in sheet.hidden_columns), number)
                for number, texts in rows
            ),
            sheet=sheet.name,
        )
        return
    width = max(len(texts) for _, texts in rows)
    lines = []
    for number, texts in rows:
        line = []
        for column in range(1, width + 1):
            place = (number, column)
            if column in sheet.hidden_columns or above.get(place, place) != place:
                continue
            last, right = starts.get(place, place)
            text = texts[column - 1] if column <= len(texts) else ""
            height = sum(1 for row in shown if number <= row <= last)
            across = sum(1 for c in range(column, min(right, width) + 1) if c not in sheet.hidden_columns)
            line.append(Cell(height, across, blocks=[Paragraph(text)] if text else []))
        lines.append(line)
    blocks.rows(lines, numbers=[number for number, _ in rows], sheet=sheet.name)


def _book(file: BinaryIO) -> Any:
    """Return the workbook as openpyxl has it, None where it takes offence at something beside the cells."""
    import openpyxl

    file.seek(0)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return openpyxl.load_workbook(file, data_only=True)
        except (OSError, ValueError, LookupError, AttributeError, TypeError, AssertionError):
            return None


def _sheets(book: Any) -> Iterator[Sheet]:
    for sheet in book.worksheets:
        columns = [d for d in sheet.column_dimensions.values() if d.hidden or d.width == 0]
        cells = [cell for _, cell in sorted(sheet._cells.items()) if cell.comment is not None]
        left_out = Counter[str]()
        yield Sheet(
            sheet.title,
            _shown_rows(sheet, left_out),
            [(r.min_row, r.min_col, r.max_row, r.max_col) for r in sheet.merged_cells.ranges],
            frozenset(number for number, row in sheet.row_dimensions.items() if row.hidden or row.height == 0),
            frozenset(n for d in columns for n in range(d.min or 0, min(d.max or 0, MAX_SHEET_COLUMNS) + 1)),
            [f"{cell.coordinate}: {cell.comment.text}" for cell in cells],
            sheet.sheet_state != "visible",
            left_out,
        )


def _shown_rows(sheet: Any, left_out: Counter[str]) -> Iterator[tuple[int, Sequence[str]]]:
    """Yield the rows up to their last cells. Raises: Unreadable: they are too many."""
    # The public ways to the cells make one for each place up to the last one, 17 billion in a sheet of two.
    before, cells = 0, 0
    styles: dict[int, bool] = {}
    for number, row in itertools.groupby(sorted(sheet._cells.items()), key=lambda item: item[0][0]):
        texts: list[str] = []
        for (_, column), cell in row:
            texts += [""] * (column - 1 - len(texts))
            text = "" if cell.value is None else shown(cell.value, cell.number_format)
            if text and styles.setdefault(cell.style_id, cell.style_id > 0 and _is_white(cell)):
                left_out[HIDDEN] += 1
                text = ""
            texts.append(text)
        cells += len(texts)
        if cells > MAX_CELLS:
            raise _too_many(sheet.title)
        if number > before + 1:
            yield number - 1, ()
        yield number, texts
        before = number


def _is_white(cell: Any) -> bool:
    """Say whether the words of *cell* are white and nothing is filled in behind them."""
    color, fill = cell.font.color, cell.fill.fill_type
    return fill is None and color is not None and color.rgb in ("FFFFFFFF", "00FFFFFF")


def _old_sheets(raw: bytes) -> Iterator[Sheet]:
    import xlrd

    try:
        book = xlrd.open_workbook(file_contents=raw, formatting_info=True, logfile=_Nowhere())
    except xlrd.XLRDError as error:
        locked = "ncrypt" in str(error) or "EncryptedPackage" in str(error)
        raise Unreadable(f"This workbook is {'locked by a password' if locked else 'broken'}.") from error
    for sheet in book.sheets():
        yield Sheet(
            sheet.name,
            ((n + 1, [_old_cell(cell, book) for cell in sheet.row(n)]) for n in range(sheet.nrows)),
            [(top + 1, left + 1, bottom, right) for top, bottom, left, right in sheet.merged_cells],
            frozenset(number + 1 for number, row in sheet.rowinfo_map.items() if row.hidden),
            frozenset(number + 1 for number, column in sheet.colinfo_map.items() if column.hidden),
            [f"{sheet.name}: {note.text}" for note in sheet.cell_note_map.values()],
            sheet.visibility != 0,
        )


class _Nowhere:
    """What the library prints is for nobody."""

    def write(self, text: str) -> None:
        """Take nothing."""


def _old_cell(cell: Any, book: Any) -> str:
    import xlrd

    form = book.format_map[book.xf_list[cell.xf_index].format_key].format_str
    if cell.ctype == xlrd.XL_CELL_DATE and _ELAPSED.search(form):
        return shown(datetime.timedelta(days=cell.value), form)
    if cell.ctype == xlrd.XL_CELL_DATE:
        return shown(xlrd.xldate.xldate_as_datetime(cell.value, book.datemode), form)
    if cell.ctype == xlrd.XL_CELL_BOOLEAN:
        return shown(bool(cell.value), form)
    return shown(
        xlrd.error_text_from_code.get(cell.value, "") if cell.ctype == xlrd.XL_CELL_ERROR else cell.value, form
    )


def _opened(file: BinaryIO) -> python_calamine.CalamineWorkbook:
    """Return the workbook as calamine has it. Raises: Unreadable: broken or locked."""
    try:
        return python_calamine.load_workbook(file)
    except python_calamine.PasswordError as error:
        raise Unreadable("This workbook is locked by a password.") from error
    except python_calamine.CalamineError as error:
        raise Unreadable("This workbook is broken.") from error


def _rough_sheets(file: BinaryIO) -> Iterator[Sheet]:
    with zipfile.ZipFile(file) as packed:
        hidden = _hidden_in(packed)
    file.seek(0)
    book = _opened(file)
    try:
        for meta in book.sheets_metadata:
            sheet = book.get_sheet_by_name(meta.name)
            if sheet.total_height * sheet.total_width > MAX_CELLS:
                raise _too_many(meta.name)
            rows = (
                (number, [shown(cell, "General") for cell in row]) for number, row in enumerate(sheet.iter_rows(), 1)
            )
            merged = [(a[0] + 1, a[1] + 1, b[0] + 1, b[1] + 1) for a, b in sheet.merged_cell_ranges or ()]
            is_hidden = meta.visible != python_calamine.SheetVisibleEnum.Visible
            hidden_rows, hidden_columns = hidden.get(meta.name, (frozenset(), frozenset()))
            yield Sheet(meta.name, rows, merged, hidden_rows, hidden_columns, is_hidden=is_hidden)
    except python_calamine.CalamineError as error:
        raise Unreadable("This workbook is broken.") from error


_Hidden = tuple[frozenset[int], frozenset[int]]
"""Numbers of rows and of columns, from 1."""


def _hidden_in(packed: zipfile.ZipFile) -> dict[str, _Hidden]:
    """Return which rows and columns of each sheet are hidden, by its name."""
    kind = "bin" if "xl/workbook.bin" in packed.namelist() else "xml"
    relations = {one.get("Id"): one.get("Target") for one in xml_of(packed, f"xl/_rels/workbook.{kind}.rels")}
    found = {}
    for relation, name in _bound(packed) if kind == "bin" else _listed(packed):
        part = posixpath.join("/xl", relations.get(relation) or "").removeprefix("/")
        if part in packed.namelist():
            found[name] = (_hidden_records if kind == "bin" else _hidden_tags)(read_entry(packed, part))
    return found


def _listed(packed: zipfile.ZipFile) -> Iterator[tuple[str | None, str]]:
    for sheet in xml_of(packed, "xl/workbook.xml").iterfind("{*}sheets/{*}sheet"):
        yield next((value for key, value in sheet.items() if key.endswith("}id")), None), sheet.get("name") or ""


_TAG = re.compile(rb"<(?:\w+:)?(row|col)\s([^<>]*)>")
_ATTRIBUTE = re.compile(rb"""\b(\w+)\s*=\s*["']([^"'<>]*)["']""")
_YES = (b"1", b"true")


def _hidden_tags(raw: bytes) -> _Hidden:
    rows, columns = set[int](), set[int]()
    for tag in _TAG.finditer(raw):
        fields = {match[1]: match[2] for match in _ATTRIBUTE.finditer(tag[2])}
        if fields.get(b"hidden") not in _YES:
            continue
        if tag[1] == b"row":
            rows.add(int(fields.get(b"r", b"0")))
        else:
            columns |= {*range(int(fields[b"min"]), min(int(fields[b"max"]), MAX_SHEET_COLUMNS) + 1)}
    return frozenset(rows), frozenset(columns)


_ROW, _COLUMNS, _SHEET = 0, 60, 156
"""Kinds of records in the parts of an XLSB file ([MS-XLSB] 2.3.2): BrtRowHdr, BrtColInfo, BrtBundleSh."""


def _hidden_records(raw: bytes) -> _Hidden:
    rows, columns = set[int](), set[int]()
    for kind, record in _records(raw):
        if kind == _ROW and record[11:12] and record[11] & 0x10:
            rows.add(_whole(record, 0) + 1)
        elif kind == _COLUMNS and record[16:17] and record[16] & 1:
            columns |= {*range(_whole(record, 0) + 1, min(_whole(record, 4) + 1, MAX_SHEET_COLUMNS) + 1)}
    return frozenset(rows), frozenset(columns)


def _bound(packed: zipfile.ZipFile) -> Iterator[tuple[str | None, str]]:
    for kind, record in _records(read_entry(packed, "xl/workbook.bin")):
        if kind == _SHEET:
            middle = 12 + 2 * _whole(record, 8)
            last = middle + 4 + 2 * _whole(record, middle)
            yield record[12:middle].decode("utf-16-le"), record[middle + 4 : last].decode("utf-16-le")


def _records(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield kind and content of each record of an XLSB part; both kind and size are numbers of seven bits a byte."""
    at = 0
    while at < len(raw):
        numbers = []
        for most in (2, 4):
            number = 0
            for place in range(most):
                byte = raw[at]
                at += 1
                number |= (byte & 0x7F) << 7 * place
                if byte < 0x80:
                    break
            numbers.append(number)
        kind, size = numbers
        yield kind, raw[at : at + size] if kind in (_ROW, _COLUMNS, _SHEET) else b""
        at += size


def _whole(record: bytes, at: int) -> int:
    return int.from_bytes(record[at : at + 4], "little")


def _too_many(name: str) -> Unreadable:
    return Unreadable(f"The sheet {name!r} has more than {MAX_CELLS:,} cells.")


def _drawn(packed: zipfile.ZipFile, sizes: Mapping[str, int]) -> tuple[list[str], dict[str, int]]:
    """Return the texts of text boxes, and what else beside the cells is left out."""
    texts = []
    for name in sizes:
        if re.fullmatch(r"xl/drawings/drawing\d+\.xml", name):
            for shape in xml_of(packed, name).iterfind(".//{*}sp"):
                lines = ("".join(t.text or "" for t in line.iterfind(".//{*}t")) for line in shape.iterfind(".//{*}p"))
                texts.append("\n".join(filter(None, lines)))
    charts = sum(bool(re.fullmatch(r"xl/charts/chart\d+\.xml", name)) for name in sizes)
    embedded = sum(name.startswith("xl/embeddings/") for name in sizes)
    empty = sum(
        len(_UNCOUNTED.findall(read_entry(packed, name)))
        for name, size in sizes.items()
        if name.startswith("xl/worksheets/sheet") and size <= MAX_XML_BYTES
    )
    kinds = (("chart", charts), (EMBEDDED, embedded), ("formula without a stored value", empty))
    return texts, {kind: count for kind, count in kinds if count}


_UNCOUNTED = re.compile(rb"</f>(?:<v></v>|<v ?/>)?</c>")
"""A formula that no program has calculated, as libraries write them."""


_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|\[\$(?P<currency>[^\]-]*)[^\]]*\]'
    r"|(?P<moment>\[(?:h+|m+)\]|\[s+\](?:\.0+)?|y+|m+|d+|h+|s+(?:\.0+)?|am/pm|a/p)|(?P<padding>_.|\*.|\[[^\]]*\])"
    r"|(?P<digits>[0#?][0#?,.]*)|(?P<sign>.)",
    re.IGNORECASE | re.DOTALL,
)
"""The parts of a format; padding is what makes room, a colour or a condition."""

_ELAPSED = re.compile(r"\[(?:h+|m+|s+)\]", re.IGNORECASE)
_CONDITION = re.compile(r"\[[<>=]")

_OF_PLACE = frozenset({"mm-dd-yy", "m/d/yy", "m/d/yy h:mm", "[$-f800]dddd, mmmm dd, yyyy"})
"""Formats of dates that every machine shows in its own way."""

MAX_DIGITS = 30
"""Longest run of digits in a format that is followed."""

MAX_FORM_CHARS = 255
"""Excel takes no longer format; one that was made to be long costs its time again in each cell."""


def shown(value: object, form: str) -> str:
    """Return *value* as a workbook shows it in the format *form*; what is not known of a format changes nothing."""
    form = form if len(form) <= MAX_FORM_CHARS else ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return _moment(value, form)
    if isinstance(value, datetime.timedelta):
        return _duration(value, form)
    if isinstance(value, int | float):
        return _number(value, form)
    return "" if form == ";;;" else str(value)


def _number(value: float, form: str) -> str:
    plain = f"{value:.15g}"
    sections = _sections(form)
    place = 1 if value < 0 and len(sections) > 1 else 2 if value == 0 and len(sections) > 2 else 0
    tokens = list(_TOKEN.finditer(sections[place]))
    digits = [token[0] for token in tokens if token.lastgroup == "digits"]
    signs = "".join(token[0] for token in tokens if token.lastgroup == "sign").lower()
    is_other = "/" in signs or "general" in signs or "e+" in signs or any(len(run) > MAX_DIGITS for run in digits)
    # Which section of a format with conditions holds is not looked at.
    is_other = is_other or _CONDITION.search(form) is not None
    if form in ("@", "") or is_other or value != value or abs(value) > 1e15:
        return plain
    scale = len(digits[0]) - len(digits[0].rstrip(",")) if digits else 0
    filled = iter(_filled(abs(value) * 100 ** signs.count("%") / 1000**scale, digits))
    text = "".join(next(filled) if token.lastgroup == "digits" else _literal(token) for token in tokens)
    return ("-" if value < 0 and not place and digits else "") + " ".join(text.split())


def _filled(value: float, runs: Sequence[str]) -> list[str]:
    """Return what stands for each run of digits of a format: "000-00-0000" has three."""
    if len(runs) == 1:
        whole, _, fraction = runs[0].rstrip(",").partition(".")
        head, _, tail = f"{value:{',' if ',' in whole else ''}.{len(fraction)}f}".partition(".")
        kept = len(fraction.rstrip("#?"))
        tail = tail[:kept] + tail[kept:].rstrip("0")
        head = head if "," in head else head.zfill(whole.count("0"))
        return [f"{head}.{tail}" if tail else head]
    rest, filled = f"{value:.0f}", list[str]()
    for run in reversed(runs):
        filled.append(rest[-len(run) :].zfill(run.count("0")))
        rest = rest[: -len(run)]
    return [rest + piece if place == 0 else piece for place, piece in enumerate(reversed(filled))]


def _literal(token: re.Match[str]) -> str:
    """Return what a part of a format shows of itself."""
    return "" if token.lastgroup == "padding" else str(token[token.lastgroup or 0])


def _duration(value: datetime.timedelta, form: str) -> str:
    """Return *value* in a format of elapsed time, whose first part is in brackets, or as hours, minutes, seconds."""
    first = _sections(form)[0]
    tokens = list(_TOKEN.finditer(first if _ELAPSED.search(first) else "[h]:mm:ss"))
    places = max(len(token[0].partition(".")[2]) if token.lastgroup == "moment" else 0 for token in tokens)
    step = 10 ** max(0, 6 - places)
    ticks = (abs(value) // datetime.timedelta(microseconds=1) + step // 2) // step * step
    seconds, rest = divmod(ticks, 1_000_000)
    text = ""
    for token in tokens:
        unit, point, fraction = token[0].lower().partition(".")
        size = {"h": 3600, "m": 60, "s": 1}.get(unit.strip("[]")[0]) if token.lastgroup == "moment" else None
        number = seconds // (size or 1) if unit.startswith("[") else seconds // (size or 1) % 60
        text += _literal(token) if size is None else f"{number:0{len(unit.strip('[]'))}}"
        text += f".{rest:06}"[: len(fraction) + 1] if size is not None and point else ""
    return ("-" if value.total_seconds() < 0 else "") + text.strip()


def _sections(form: str) -> list[str]:
    """Return the sections of a format; a semicolon in quotation marks is none of theirs."""
    return re.findall(r'(?:^|;)((?:"[^"]*"|\\.|[^;"\\])*)', form) or [form]


def _moment(value: datetime.datetime | datetime.date | datetime.time, form: str) -> str:
    tokens = list(_TOKEN.finditer(_sections(form)[0]))
    codes = ["", *(token[0].lower().strip("[]") for token in tokens if token.lastgroup == "moment"), ""]
    if form.lower() in _OF_PLACE or len(codes) == 2:
        if isinstance(value, datetime.datetime):
            return value.isoformat(" ", timespec="minutes") if value.time() != datetime.time() else str(value.date())
        return str(value)
    has_half = any(code.startswith("a") for code in codes)
    minutes = [
        code in ("m", "mm") and (codes[place - 1][:1] == "h" or codes[place + 1][:1] == "s")
        for place, code in enumerate(codes[:-1])
    ]
    shown_codes = (
        _of_moment(value, code, is_minute=is_minute, has_half=has_half)
        for code, is_minute in zip(codes[1:-1], minutes[1:], strict=True)
    )
    return "".join(next(shown_codes) if token.lastgroup == "moment" else _literal(token) for token in tokens).strip()


def _of_moment(value: Any, code: str, *, is_minute: bool, has_half: bool) -> str:
    hour, letter = getattr(value, "hour", 0), code[0]
    if letter == "a":
        return "PM" if hour >= 12 else "AM"
    if letter in "ymd" and not is_minute and not hasattr(value, "year"):
        return ""
    if letter == "y":
        return f"{value.year:04}" if len(code) > 2 else f"{value.year % 100:02}"
    if letter in "md" and len(code) > 2:
        name = str(value.strftime("%B" if letter == "m" else "%A"))
        return name[: {3: 3, 5: 1}.get(len(code), len(name))]
    part = {"h": "hour", "s": "second", "d": "day", "m": "minute" if is_minute else "month"}[letter]
    number = (hour % 12 or 12) if has_half and letter == "h" else getattr(value, part, 0)
    return f"{number:0{min(len(code), 2)}}"
