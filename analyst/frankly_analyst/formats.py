# SPDX-License-Identifier: Apache-2.0
"""CSV, spreadsheet and Arrow tables of estimates: one line per estimate, with its uncertainty and n.

A question with too few reports also has a line, with n and needed as its only numbers, so that
readers notice the missing estimate.
"""

import csv
import io
import json
import math
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final

from frankly_analyst.declared import kinds
from frankly_analyst.errors import InvalidRequest
from frankly_analyst.rows import Estimate, localised

_OF_QUESTION: Final[Mapping[str, Mapping[str, Any]]] = {"by": {"status": str}, "n": {"needed": int}}
"""Columns of a question that rows lack, by the column of a row after which they are inserted."""
_ROUNDED: Final = 10**6
_KINDS: Final = {
    column: kind
    for name, row_kind in kinds(Estimate).items()
    for column, kind in {name: row_kind, **_OF_QUESTION.get(name, {})}.items()
}
COLUMNS: Final = tuple(_KINDS)
SPREADSHEET: Final = {
    "Question": "question",
    "Answer": "label",
    "Group": "by",
    "Estimate": "estimate",
    "From": "low",
    "To": "high",
    "Unit": "unit",
    "Confidence": "level",
    "Reports": "n",
    "Remarks": "remarks",
}
"""Headings of the table for people, and the columns behind them."""
# Some spreadsheets read the full-width forms as the characters themselves. A cell can also begin after
# a line end or, where decimals have commas, after a semicolon.
_FORMULA: Final = re.compile("(^|[;\t\r\n])(?=\\s*[=+@\uff1d\uff0b\uff0d\uff20-])|^(?=[\t\r\n])")
"""Places before which a spreadsheet would begin to evaluate [OWASP, CSV injection]."""
_MONTH: Final = "jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec"
_LIKE_A_NUMBER: Final = re.compile(
    rf"(?=.*[0-9])(?:[^a-z]|e|am|pm|(?:{_MONTH})[a-z]*)+|true|false", re.IGNORECASE
)
"""Texts that a spreadsheet would turn into numbers, days, times or truth values."""


def encode(answer: Mapping[str, Any]) -> bytes:
    """Serialise an answer. Responses consist of these bytes, and a replay must reproduce them."""
    return json.dumps(answer, sort_keys=True, allow_nan=False, ensure_ascii=False).encode() + b"\n"


def lines(answer: Mapping[str, Any], language: str | None = None) -> list[dict[str, Any]]:
    """Return one dict with all COLUMNS per row, and one per insufficient question.

    language : language of the labels.

    Raises KeyError, TypeError, AttributeError or StopIteration if `answer` has another shape.
    """
    table = []
    for question in answer["questions"]:
        shared = {"status": question["status"], "needed": question["needed"]}
        for row in question["rows"]:
            texts = {
                "label": localised(row["label"], language, answer["languages"]),
                "documents": " ".join(row["documents"]),
                "flags": " ".join(row["flags"]),
            }
            table.append({name: (row | shared | texts).get(name) for name in COLUMNS})
        # A question without rows has too few reports.
        if not question["rows"]:
            by = question["by"] or {}
            insufficient = {
                "question": question["id"],
                "n": question["n"],
                "documents": " ".join(question["documents"]),
            }
            insufficient["by"] = " ".join(f"{name}={value}" for name, value in by.items())
            table.append({name: (insufficient | shared).get(name) for name in COLUMNS})
    return table


def to_csv(answer: Mapping[str, Any], language: str | None = None) -> bytes:
    """Return the lines under a header, in UTF-8; missing values are empty cells.

    Text that a spreadsheet would evaluate gets an apostrophe in front.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {name: cell(value) for name, value in row.items()} for row in lines(answer, language)
    )
    return out.getvalue().encode()


def to_spreadsheet(
    answer: Mapping[str, Any], language: str | None = None, group: Callable[[str], str] = str
) -> bytes:
    """Return the lines for people: a CSV file that spreadsheets open with a double click.

    It begins with a byte order mark, by which they recognise UTF-8, and has the texts of questions
    and choices instead of ids. Numbers have six decimals; ends of intervals are rounded outwards. A
    text such as ``1-2`` is in quotation marks, because it would become a day. group : function from a
    group's label, such as ``region=north``, to its name.
    """
    texts = {
        question["id"]: localised(question["text"], language, answer["languages"])
        for question in answer["questions"]
    }
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(SPREADSHEET)
    for line in lines(answer, language):
        told = line | {
            "question": texts[line["question"]],
            "label": line["label"] or line["choice"],
            "by": group(line["by"]) if line["by"] else "",
            "remarks": _remarks(line),
        }
        writer.writerow([_shown(name, told[name]) for name in SPREADSHEET.values()])
    return out.getvalue().encode("utf-8-sig")


def _remarks(line: Mapping[str, Any]) -> str:
    if line["status"] == "insufficient":
        return f"no result yet: at least {line['needed']} reports are needed"
    if line["status"] != "ok":
        return str(line["status"]).replace("_", " ")
    return ", ".join(str(line["flags"]).split()).replace("_", " ")


def _shown(name: str, value: Any) -> Any:
    """Return a value for people: no end is rounded inwards, and no text becomes a number or a day."""
    if isinstance(value, float):
        rounded = {"low": math.floor, "high": math.ceil}.get(name, round)(
            value * _ROUNDED
        ) / _ROUNDED
        return rounded + 0.0  # no minus sign at zero
    is_text = isinstance(value, str) and _LIKE_A_NUMBER.fullmatch(value)
    return f"“{value}”" if is_text else cell(value)


def cell(value: Any) -> Any:
    """Return a value, with apostrophes where a spreadsheet would read a formula.

    Admins write the labels; as formulas, they would run on the analyst's machine.
    """
    return _FORMULA.sub(r"\1'", value) if isinstance(value, str) else value


def to_arrow(arrow: Any, answer: Mapping[str, Any], language: str | None = None) -> Any:
    """Return the lines as a pyarrow table; `arrow` is the module pyarrow."""
    types = {str: arrow.string(), int: arrow.int64(), float: arrow.float64()}
    # Types are declared: inferred ones would be null for a column with only missing values.
    schema = arrow.schema([(name, types[kind]) for name, kind in _KINDS.items()])
    return arrow.Table.from_pylist(lines(answer, language), schema=schema)


def needed(module: str) -> Any:
    """Import an optional module. Raises InvalidRequest(unsupported) if it is not installed."""
    try:
        return import_module(module)
    except ImportError:
        raise InvalidRequest(
            f"this needs {module}: pip install {module}, or use to_csv()", code="unsupported"
        ) from None
