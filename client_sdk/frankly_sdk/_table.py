# SPDX-License-Identifier: Apache-2.0
"""Reading a table of answers: every fault names its line, none repeats an answer."""

import csv
import io
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_sdk.answer import Answer
from frankly_sdk.batch import Respondent


def read_rows(source: str, key: str, document: SurveyDocument) -> list[Respondent]:
    """Return the rows of a CSV file (``-``: standard input), each checked, before anything of them is randomised.

    The header names `key` and every question and public question once. UTF-8, with or without a byte order mark.
    Raises InvalidInput, naming the line.
    """
    try:
        data = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
        text = data.decode("utf-8-sig")
    except OSError:
        raise InvalidInput(Problem.BAD_REQUEST, "this file cannot be read", source) from None
    except UnicodeDecodeError:
        raise InvalidInput(Problem.TEXT_CHARACTERS, "expected UTF-8", source) from None
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = _header(next(lines, []), key, document)
        return list(_rows(lines, header, key, document))
    except csv.Error:
        raise _bad(lines.line_num, "this is not a line of a CSV table") from None


def _header(header: Sequence[str], key: str, document: SurveyDocument) -> Sequence[str]:
    wanted = sorted([key, *document.questions, *(question.id for question in document.strata)])
    if sorted(header) != wanted:
        raise _bad(1, f"expected the columns {', '.join(wanted)}, each once")
    return header


def _rows(
    lines: Iterator[list[str]], header: Sequence[str], key: str, document: SurveyDocument
) -> Iterator[Respondent]:
    strata = {question.id: question for question in document.strata}
    seen: set[str] = set()
    last = 1
    for cells in lines:
        last += 1
        if lines.line_num != last:  # type: ignore[attr-defined]
            raise _bad(last, "a cell goes on over several lines")
        if len(cells) != len(header):
            raise _bad(last, f"expected {len(header)} cells, found {len(cells)}")
        row = dict(zip(header, cells, strict=True))
        respondent = row.pop(key)
        if not respondent or respondent in seen:
            raise _bad(last, "every respondent needs a key of their own", key)
        seen.add(respondent)
        public = {name: row.pop(name) for name in strata}
        truth = Answer(row)
        del cells, row
        fault = truth.fault(document.questions) or Answer(public).fault(strata)
        if fault is not None:
            raise _bad(last, fault.detail, fault.field)
        yield respondent, truth, public


def _bad(line: int, detail: str, column: str | None = None) -> InvalidInput:
    return InvalidInput(Problem.FIELD_TYPE, detail, f"line {line}" + (f", column {column}" if column else ""))
