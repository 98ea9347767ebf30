# SPDX-License-Identifier: Apache-2.0
"""Reader of a CSV table of answers; errors name the line and never repeat an answer."""

import csv
import io
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.questions import Question

from frankly_sdk._checks import SPELLING, key_fault
from frankly_sdk._sealing import source_of, token_to_send
from frankly_sdk.answer import Answer
from frankly_sdk.batch import Respondent
from frankly_sdk.errors import UnknownChoice
from frankly_sdk.store import normal_key

_NUMBER = re.compile(r"-?[0-9]{1,15}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of the columns without answers: the respondent's key and, if needed, the token."""

    key: str
    token: str


def read_rows(source: str, columns: Columns, document: SurveyDocument) -> list[Respondent]:
    """Return the checked rows of a CSV file, or of standard input for ``-``.

    The header names the key column, the token column if the survey has a token rule, and every
    question and public question, each once. The encoding is UTF-8, with or without a byte order
    mark. If the survey asks only what is drawn, or has arms, an empty cell is a question that was not
    asked. With arms the answers are checked when the arm is drawn.

    Raises InvalidInput, naming the file or the line.
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
        header = _header(next(lines, []), columns, document)
        return list(_rows(lines, header, columns, document))
    except csv.Error:
        raise _bad(lines.line_num, "this is not a line of a CSV table") from None


def _header(header: Sequence[str], columns: Columns, document: SurveyDocument) -> Sequence[str]:
    key_columns = [columns.key] if document.token is None else [columns.key, columns.token]
    asked = [*document.questions, *document.open_questions]
    # A question can be public in one arm and protected in another; it has one column.
    expected = sorted([*key_columns, *(asked if document.arms is None else dict.fromkeys(asked))])
    # A question may have the same name as the key column.
    if len(set(expected)) < len(expected):
        raise _bad(
            1,
            "the respondent and token columns must not have the name of a question: choose other "
            "names with --respondent and --token",
        )
    if sorted(header) != expected:
        raise _bad(1, f"expected the columns {', '.join(expected)}, each once")
    return header


def _rows(
    lines: Iterator[list[str]], header: Sequence[str], columns: Columns, document: SurveyDocument
) -> Iterator[Respondent]:
    strata = document.open_questions
    lines_by_key, spent = dict[str, tuple[int, str]](), set[str]()
    arms = document.arms is not None
    partial = arms or any(block.asks_drawn for block in document.blocks)
    last = 1
    for cells in lines:
        last += 1
        # One line per row, so that the line number in an error is the one in an editor.
        if lines.line_num != last:  # type: ignore[attr-defined]
            raise _bad(last, "a cell spans several lines")
        if len(cells) != len(header):
            raise _bad(last, f"expected {len(header)} cells, found {len(cells)}")
        row = dict(zip(header, cells, strict=True))
        respondent = row.pop(columns.key)
        _require_own_key(last, respondent, lines_by_key, columns)
        token = None if document.token is None else row.pop(columns.token)
        public = Answer({name: row[name] for name in strata if row[name] or not arms})
        truth = Answer(
            {
                name: _number(question, row[name])
                for name, question in document.questions.items()
                if row[name] or not partial
            }
        )
        # From here on, only `truth` and `public` may contain the answers, because a traceback shows
        # local variables. Of an instructed item the choice is not sent either.
        del cells, row
        asked = () if arms else ((truth, document.questions), (public, strata))
        for answers, questions in asked:
            settled = answers.settled(questions, partial=partial and questions is not strata)
            if isinstance(settled, UnknownChoice):
                raise _bad(last, settled.detail, settled.field)
        _require_new(last, token, source_of(document, public), spent, columns, document)
        yield respondent, truth, public.revealed(), token


def placed(fault: UnknownChoice) -> InvalidInput:
    """Return the error of a batch for its table: row i is line i + 2."""
    place, _, column = (fault.field or "").partition(".")
    return _bad(int(place.removeprefix("rows[").removesuffix("]")) + 2, fault.detail, column)


def _number(question: Question, cell: str) -> str | int:
    """Return the cell's number if the question asks for one, otherwise the cell's text."""
    is_number = question.asks_number and question.index(cell) is None
    return int(cell) if is_number and _NUMBER.fullmatch(cell) else cell


def _require_own_key(
    line: int, key: str, lines_by_key: dict[str, tuple[int, str]], columns: Columns
) -> None:
    """Refuse a key that is blank, or that occurs in an earlier line in any spelling."""
    if key_fault(key) is not None:
        raise _bad(line, "every respondent needs a unique key", columns.key)
    earlier, spelling = lines_by_key.setdefault(normal_key(key), (line, key))
    if earlier == line:
        return
    same = (
        f"line {earlier} has the same one"
        if spelling == key
        else f"the key of line {earlier} differs only in {SPELLING}"
    )
    raise _bad(line, f"every respondent needs a unique key: {same}", columns.key)


def _require_new(
    line: int,
    token: str | None,
    source: object,
    spent: set[str],
    columns: Columns,
    document: SurveyDocument,
) -> None:
    """Refuse a token that is not valid for the survey, or that occurs in an earlier line."""
    try:
        token = token_to_send(document, token, source)
    except InvalidInput as fault:
        column = (fault.field or "").partition("strata.")[2] or columns.token
        raise _bad(line, fault.detail, column) from None
    if token in spent:
        raise _bad(line, "every respondent needs a unique token", columns.token)
    spent.update([token] if token is not None else [])


def _bad(line: int, detail: str, column: str | None = None) -> InvalidInput:
    return InvalidInput(
        Problem.FIELD_TYPE, detail, f"line {line}" + (f", column {column}" if column else "")
    )
