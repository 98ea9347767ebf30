# SPDX-License-Identifier: Apache-2.0
"""Reader of XLSForm workbooks, which are untrusted: the sheets survey, choices and settings as rows.

pyxform reads the cells and knows the names of the columns; its checks of whole forms are not used,
because they refuse forms for parts of which nothing is taken over.
"""

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from io import BytesIO, StringIO
from typing import TYPE_CHECKING, Any, Final
from zipfile import BadZipFile, ZipFile

from frankly_design.numeric.lazy import LazyModule
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

if TYPE_CHECKING:
    import xlrd
    from openpyxl.reader import excel
    from pyxform import aliases
    from pyxform import xls2json_backends as backends
else:
    # Lazy, because only an import of a form needs these libraries, and they take a second to load.
    aliases = LazyModule("pyxform.aliases")
    backends = LazyModule("pyxform.xls2json_backends")
    excel = LazyModule("openpyxl.reader.excel")
    xlrd = LazyModule("xlrd")

MAX_BYTES: Final = 2 * 2**20
MAX_UNPACKED: Final = 20 * 2**20
"""Largest sum of the unpacked parts of a workbook, in bytes: four times the largest known form."""
MAX_TAGS: Final = 1_000_000
"""Largest number of XML tags in a workbook: a parsed one takes up to 400 bytes and 6 µs."""
MAX_PARTS: Final = 1000
MAX_ROWS: Final = 5000
MAX_CHOICES: Final = 20_000
"""Largest number of rows of the sheet choices, where forms list villages and wards."""
MAX_COLUMNS: Final = 300
_ZIP: Final = b"PK\x03\x04"
_OLE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_SPACES: Final = re.compile(r"[\s_]+")

_COUNTED: Final = ("hint", "image", "media")
"""Columns of which only it matters whether a cell is empty, in any language."""

Cells = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a sheet.

    line : its number in the sheet; the header is line 1. cells : by the name of the column, as in
    pyxform (relevance is relevant, caption is label). labels : the label by the language of its
    column, "" for the column without a language; empty ones are left out.
    """

    line: int
    cells: Cells
    labels: Mapping[str, str]

    def __getitem__(self, name: str) -> str:
        """Return a cell, "" if it is empty."""
        return self.cells.get(name, "")


@dataclass(frozen=True, slots=True)
class Sheets:
    """The sheets of a form. languages : of its label columns, in order; "" for no language."""

    survey: tuple[Row, ...]
    choices: tuple[Row, ...]
    settings: Cells
    languages: tuple[str, ...]


def selects() -> Mapping[str, str]:
    """Return the meaning of each word for a question with choices, such as select one or rank."""
    return {**aliases.select, **dict.fromkeys(aliases.select_from_file, "from file")}


def refused(detail: str) -> InvalidInput:
    """Return the error for a workbook that cannot be taken over."""
    return InvalidInput(Problem.DEFINITION_INVALID, detail, "xlsform")


def is_workbook(data: bytes) -> bool:
    """Return True for the content of an Excel workbook, as opposed to a text."""
    return data.startswith((_ZIP, _OLE))


def read_sheets(data: bytes) -> Sheets:
    """Read an XLSForm, .xlsx or .xls by its content, of at most 2 MB.

    Raises InvalidInput(definition_invalid), field xlsform, for anything else, and for a workbook
    that unpacks to more than 20 MB, has more than 5,000 rows (20,000 choices) or 300 columns.
    """
    if len(data) > MAX_BYTES:
        raise refused(f"the file is larger than {MAX_BYTES // 2**20} MB: remove pictures and data")
    try:
        if data.startswith(_ZIP):
            sheets = _xlsx(data)
        elif data.startswith(_OLE):
            sheets = _xls(data)
        else:
            raise refused("this is no Excel workbook: save the form as .xlsx or .xls")
    except InvalidInput:
        raise
    except Exception:  # noqa: BLE001 - the libraries raise errors of any class for broken files
        raise refused(
            "the workbook cannot be read: open it in a spreadsheet, and save it as .xlsx"
        ) from None
    if not sheets.get("survey"):
        raise refused("there is no sheet called survey with questions, as an XLSForm has")
    survey, choices = (_rows(sheets.get(name, []), name) for name in ("survey", "choices"))
    settings = next(iter(_rows(sheets.get("settings", []), "settings")), Row(0, {}, {}))
    columns = [key for row in (*survey, *choices) for key in row.labels]
    return Sheets(survey, choices, settings.cells, tuple(dict.fromkeys(columns)))


def _xlsx(data: bytes) -> dict[str, list[dict[str, str]]]:
    _require_small(data)
    # openpyxl refuses XML entities, because defusedxml is a dependency. Read-only, it reads rows
    # when they are asked for, and no pictures.
    # What it warns about, such as an unknown extension of a sheet, matters only for saving.
    warnings.filterwarnings("ignore", category=UserWarning, module=r"openpyxl\.")
    reader = excel.ExcelReader(BytesIO(data), read_only=True, data_only=True)
    reader.read()
    with closing(reader.archive), closing(reader.wb) as workbook:
        found = {name: _name(name, len(workbook.sheetnames)) for name in workbook.sheetnames}
        return {
            name: _table(
                (
                    [cell.value for cell in row]
                    for row in workbook[title].iter_rows(max_col=MAX_COLUMNS + 1)
                ),
                name,
                backends.xlsx_value_to_str,
            )
            for title, name in found.items()
            if name
        }


def _require_small(data: bytes) -> None:
    """Raise InvalidInput for an archive that unpacks to much more than any form."""
    try:
        with ZipFile(BytesIO(data)) as archive:
            parts = archive.infolist()
            # zipfile unpacks no more of a part than its stated size.
            if len(parts) > MAX_PARTS or sum(part.file_size for part in parts) > MAX_UNPACKED:
                raise refused(f"the workbook unpacks to more than {MAX_UNPACKED // 2**20} MB")
            if sum(archive.read(part).count(b"<") for part in parts) > MAX_TAGS:
                raise refused("the workbook has far more cells than a form")
    except BadZipFile:
        raise refused("the workbook is incomplete or damaged: save it again as .xlsx") from None


def _xls(data: bytes) -> dict[str, list[dict[str, str]]]:
    # Ragged rows: a single cell in the last corner would otherwise fill a sheet with empty cells.
    with xlrd.open_workbook(
        file_contents=data, logfile=StringIO(), on_demand=True, ragged_rows=True
    ) as book:
        found = {name: _name(name, len(book.sheet_names())) for name in book.sheet_names()}
        result = {}
        for title, name in found.items():
            if not name:
                continue
            sheet = book.sheet_by_name(title)
            rows = ([(c.value, c.ctype) for c in row] for row in sheet.get_rows())
            result[name] = _table(
                ([None if not kind else (value, kind) for value, kind in row] for row in rows),
                name,
                lambda cell: backends.xls_value_to_unicode(*cell, book.datemode),
            )
        return result


def _name(title: str, sheets: int) -> str:
    """Return survey, choices or settings, or "" for a sheet that does not belong to the form."""
    name = title.strip().lower()
    # As in pyxform, the only sheet of a workbook is the survey.
    return name if name in ("survey", "choices", "settings") else "survey" if sheets == 1 else ""


def _table(
    rows: Iterable[list[Any]], sheet: str, text: Callable[[Any], str]
) -> list[dict[str, str]]:
    """Return the rows below the header as texts by column; an empty row is an empty map."""
    most = MAX_CHOICES if sheet == "choices" else MAX_ROWS
    header: list[str] | None = None
    table: list[dict[str, str]] = []
    filled = 0
    for i, row in enumerate(rows):
        cells = ["" if _is_empty(cell) else text(cell).strip() for cell in row]
        if any(cells[MAX_COLUMNS:]):
            raise refused(f"the sheet {sheet} has more than {MAX_COLUMNS} columns")
        if any(cells):
            filled = i
        # Formatted but empty rows after the form are common; whatever follows so many is no form.
        if i - filled > 1000:
            break
        if i > most and filled > most:
            raise refused(f"the sheet {sheet} has more than {most:,} rows")
        if header is None:
            header = cells
            continue
        table.append(
            {name: cell for name, cell in zip(header, cells, strict=False) if name and cell}
        )
    return table[:filled]


def _is_empty(cell: Any) -> bool:
    value = cell[0] if isinstance(cell, tuple) else cell
    return bool(backends.is_empty(value))


def _rows(table: Iterable[Mapping[str, str]], sheet: str) -> tuple[Row, ...]:
    known = {
        "survey": aliases.survey_header,
        "choices": aliases.list_header,
        "settings": aliases.settings_header,
    }[sheet]
    return tuple(_read(table, known))


def _read(table: Iterable[Mapping[str, str]], known: Mapping[str, Any]) -> Iterator[Row]:
    names: dict[str, tuple[str, str | None]] = {}
    for line, entries in enumerate(table, start=2):
        cells: dict[str, str] = {}
        labels: dict[str, str] = {}
        for header, text in entries.items():
            if header not in names:
                names[header] = _column(header, known)
            name, language = names[header]
            if name == "label":
                labels.setdefault(language or "", text)
            elif language is None or name in _COUNTED:
                cells.setdefault(name, text)
        if cells or labels:
            yield Row(line, cells, labels)


def _column(header: str, known: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return the name and the language of a column: label::English (en), bind::relevant."""
    parts = [part.strip() for part in header.split("::" if "::" in header else ":")]
    if parts[0].lower() in ("bind", "control", "body", "instance") and len(parts) > 1:
        parts = parts[1:]
    words = _SPACES.sub("_", parts[0].lower())
    alias = known.get(words, known.get(parts[0].lower(), words))
    name = alias if isinstance(alias, str) else alias[-1]
    language = "::".join(parts[1:]) if len(parts) > 1 else None
    return _SPACES.sub("_", name), language
