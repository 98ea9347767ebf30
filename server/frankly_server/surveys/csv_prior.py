# SPDX-License-Identifier: Apache-2.0
"""CSV tables of counts for a prior: one row per secret, one column per answer (bad input 53).

The first line contains the answers; the first cell of every other line is the secret. If the answer
itself is the secret, there is one line of counts, and its first cell is ignored. For counts by
stratum, each public question adds a column in front, and there is a line for every secret in every
stratum.
"""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

from frankly_design.requests.fields import NUMERAL
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.surveys.fields import folded

Rows = tuple[tuple[str, ...], ...]
MAX_BYTES: Final = 256 * 1024
_MAX_ROWS, _MAX_COLUMNS, _SMALL_COUNT = 64, 256, 5
_MAX_NAMES: Final = 9
"""Leading columns with names: up to eight public questions, then the secret."""
_DECIMAL_COMMA: Final = re.compile(r"[0-9]+,[0-9]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class PublicQuestion:
    """A public question, with the names that a table may use for the question and its choices.

    names : folded id and texts of the question. choices : folded id or label of a choice → id.
    """

    id: str
    names: frozenset[str]
    choices: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CountTable:
    """Counts as texts, joint[s][x]; secrets and answers have the names of the file.

    joint : counts of all people; empty if there are strata. strata : for each stratum its public
    answers by question id, and its counts.
    """

    answers: tuple[str, ...]
    secrets: tuple[str, ...]
    joint: Rows = ()
    strata: tuple[tuple[Mapping[str, str], Rows], ...] = ()

    @property
    def small_cells(self) -> int:
        """The number of cells with a count from 1 to 4, which could reveal individual people."""
        tables = [self.joint, *(rows for _, rows in self.strata)]
        cells = (cell for rows in tables for row in rows for cell in row)
        return sum(1 for cell in cells if cell.isdigit() and 0 < int(cell) < _SMALL_COUNT)


def public_questions(strata: Any) -> tuple[PublicQuestion, ...]:
    """Return the well-formed public questions of a draft; `parse_value` refuses other values."""
    questions = []
    for question in strata if isinstance(strata, list) else []:
        if isinstance(question, Mapping) and isinstance(question.get("id"), str):
            listed = question.get("choices")
            choice_list = listed if isinstance(listed, list) else []
            choices = [
                choice
                for choice in choice_list
                if isinstance(choice, Mapping) and isinstance(choice.get("id"), str)
            ]
            choice_ids = {
                name: choice["id"] for choice in choices for name in _names(choice, "label")
            }
            questions.append(
                PublicQuestion(question["id"], frozenset(_names(question, "text")), choice_ids)
            )
    return tuple(questions)


def _names(value: Mapping[str, Any], text_field: str) -> list[str]:
    texts = value.get(text_field)
    translations = (
        [text for text in texts.values() if isinstance(text, str)]
        if isinstance(texts, Mapping)
        else []
    )
    return [folded(name) for name in (*translations, value["id"])]


def read_counts(data: bytes, public: Sequence[PublicQuestion] = ()) -> CountTable:
    """Parse a CSV table of counts or shares, with any line endings, with or without a BOM.

    public : the survey's public questions. A table with a leading column for each of these contains
    counts by stratum. Raises InvalidInput (prior_shape, prior_value); the message contains the line
    number if only one line is wrong.
    """
    lines = _lines(data)
    header = _cells(lines[0], 1)
    leading = _leading(header, public)
    # Checked before the lines are parsed, to limit the work.
    max_lines = _MAX_ROWS * prod(len(set(question.choices.values())) for question in leading)
    if len(lines) > max_lines + 1:
        raise InvalidInput(
            Problem.PRIOR_SHAPE, f"a table has at most {max_lines} lines of counts", "counts"
        )
    # The columns of the public questions come first.
    secret_column = len(leading)
    strata: dict[tuple[str, ...], dict[str, tuple[str, ...]]] = {}
    for number, line in enumerate(lines[1:], 2):
        row = _row(line, number, len(header), secret_column)
        rows = strata.setdefault(_stratum(row, leading, number), {})
        if row[secret_column] in rows:
            raise _line_error(Problem.PRIOR_SHAPE, number, "two lines have the same name")
        rows[row[secret_column]] = tuple(row[secret_column + 1 :])
    return _table(tuple(header[secret_column + 1 :]), [question.id for question in leading], strata)


def _table(
    answers: tuple[str, ...],
    questions: Sequence[str],
    strata_rows: Mapping[tuple[str, ...], Mapping[str, tuple[str, ...]]],
) -> CountTable:
    """Return the table of these lines; secrets are in the order of the first stratum."""
    secrets = tuple(next(iter(strata_rows.values())))
    for key, rows in strata_rows.items():
        # A missing line is refused, because zero and unknown are different statements.
        if set(rows) != set(secrets):
            raise InvalidInput(
                Problem.PRIOR_SHAPE,
                f"every stratum needs a line for each of {', '.join(secrets)}, with zeros if it "
                f"has no such people: {', '.join(key)} does not match",
                "counts",
            )
    joints = {key: tuple(rows[secret] for secret in secrets) for key, rows in strata_rows.items()}
    if not questions:
        return CountTable(answers, secrets, joints[()])
    strata = tuple((dict(zip(questions, key, strict=True)), rows) for key, rows in joints.items())
    return CountTable(answers, secrets, strata=strata)


def _leading(header: Sequence[str], public: Sequence[PublicQuestion]) -> list[PublicQuestion]:
    """Return the public questions in the leading columns: all, in any order, or none."""
    leading: list[PublicQuestion] = []
    for cell in header:
        matching = [
            question
            for question in public
            if folded(cell) in question.names and question not in leading
        ]
        if not matching:
            break
        leading.append(matching[0])
    # If a column is missing, the counts cannot be assigned to strata.
    if leading and (len(leading) < len(public) or len(header) < len(leading) + 2):
        columns = ", ".join(question.id for question in public)
        raise _line_error(
            Problem.PRIOR_SHAPE,
            1,
            f"counts for each stratum begin with the columns {columns}, then the secret's",
        )
    return leading


def _stratum(row: Sequence[str], leading: Sequence[PublicQuestion], number: int) -> tuple[str, ...]:
    choice_ids = []
    # strict=False: in the row, the secret and the counts follow these cells.
    for cell, question in zip(row, leading, strict=False):
        choice = question.choices.get(folded(cell))
        if choice is None:
            choices = ", ".join(dict.fromkeys(question.choices.values()))
            raise _line_error(
                Problem.PRIOR_SHAPE, number, f"{question.id} has the choices {choices}"
            )
        choice_ids.append(choice)
    return tuple(choice_ids)


def _lines(data: bytes) -> list[str]:
    if len(data) > MAX_BYTES:
        raise InvalidInput(Problem.PRIOR_SHAPE, f"a table has at most {MAX_BYTES} bytes", "counts")
    try:
        # utf-8-sig, because spreadsheets write a byte order mark.
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _line_error(
            Problem.PRIOR_VALUE, data.count(b"\n", 0, error.start) + 1, "save the file as UTF-8"
        ) from None
    # NUL characters indicate UTF-16 or a binary file.
    if "\x00" in text:
        raise _line_error(
            Problem.PRIOR_VALUE,
            text.count("\n", 0, text.index("\x00")) + 1,
            "this character is not text; remove it",
        )
    # Empty lines at the end are common; within the table they are errors.
    lines = text.rstrip().splitlines()
    if len(lines) < 2:
        raise InvalidInput(
            Problem.PRIOR_SHAPE,
            "give a line with the answers, then a line of counts for each secret",
            "counts",
        )
    return lines


def _row(line: str, number: int, columns: int, secret_column: int) -> list[str]:
    cells = _cells(line, number)
    name_columns = secret_column + 1
    if len(cells) != columns:
        answers = columns - name_columns
        message = f"{len(cells) - name_columns} numbers, but the first line names {answers} answers"
        # A decimal comma splits each number in two, which gives exactly twice as many cells.
        if len(cells) - name_columns == 2 * (columns - name_columns):
            message += "; write decimals with a point"
        raise _line_error(Problem.PRIOR_SHAPE, number, message)
    for cell in cells[name_columns:]:
        if not NUMERAL.fullmatch(cell):
            raise _line_error(
                Problem.PRIOR_VALUE,
                number,
                "write decimals with a point"
                if _DECIMAL_COMMA.fullmatch(cell)
                else "a cell is a count or a share",
            )
    return cells


def _cells(line: str, number: int) -> list[str]:
    if not line.strip():
        raise _line_error(Problem.PRIOR_SHAPE, number, "the line is empty")
    # Lines are parsed one by one, so that errors have line numbers. Quoted line breaks are refused.
    if line.count('"') % 2:
        raise _line_error(Problem.PRIOR_VALUE, number, "a quoted text runs over several lines")
    try:
        cells = [cell.strip() for cell in next(csv.reader(io.StringIO(line), strict=True))]
    except (csv.Error, StopIteration):
        raise _line_error(Problem.PRIOR_VALUE, number, "the quotes do not match") from None
    if not 2 <= len(cells) <= _MAX_NAMES + _MAX_COLUMNS:
        raise _line_error(
            Problem.PRIOR_SHAPE, number, "separate the cells with commas: a name, then numbers"
        )
    return cells


def _line_error(problem: Problem, line: int, message: str) -> InvalidInput:
    return InvalidInput(problem, f"line {line}: {message}", "counts")
