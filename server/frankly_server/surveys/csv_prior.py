# SPDX-License-Identifier: Apache-2.0
"""Counts that an admin uploads or types: one row a secret, one column an answer (BAD_INPUTS 53).

The first line names the answers, the first cell of every other line its secret. Without secrets (the answer itself is
the secret) there is one line of counts, whose first cell is ignored.
"""

import csv
import io
import re
from dataclasses import dataclass
from typing import Final

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

MAX_BYTES: Final = 256 * 1024
_MAX_ROWS, _MAX_COLUMNS, _SMALL = 64, 256, 5
_NUMERAL: Final = re.compile(r"[0-9]{1,15}(\.[0-9]{1,30})?", re.ASCII)
_DECIMAL_COMMA: Final = re.compile(r"[0-9]+,[0-9]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class CountTable:
    """What the text says: joint[s][x] as texts; secrets and answers as they are named there."""

    answers: tuple[str, ...]
    secrets: tuple[str, ...]
    joint: tuple[tuple[str, ...], ...]

    @property
    def small_cells(self) -> int:
        """How many counts lie between 1 and 4."""
        return sum(1 for row in self.joint for cell in row if cell.isdigit() and 0 < int(cell) < _SMALL)


def read_counts(data: bytes) -> CountTable:
    """Read a table of counts or shares as CSV; a byte order mark and any line ends are fine.

    Raises InvalidInput (prior_shape, prior_value) with the line at fault.
    """
    if len(data) > MAX_BYTES:
        raise InvalidInput(Problem.PRIOR_SHAPE, f"a table has at most {MAX_BYTES} bytes", "counts")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _wrong(Problem.PRIOR_VALUE, data.count(b"\n", 0, error.start) + 1, "save the file as UTF-8") from None
    if "\x00" in text:
        raise _wrong(Problem.PRIOR_VALUE, text.count("\n", 0, text.index("\x00")) + 1, "a character that is no text")
    lines = text.rstrip().splitlines()
    if len(lines) < 2:
        raise InvalidInput(
            Problem.PRIOR_SHAPE, "give a line with the answers, then a line of counts a secret", "counts"
        )
    if len(lines) > _MAX_ROWS + 1:
        raise InvalidInput(Problem.PRIOR_SHAPE, f"a table has at most {_MAX_ROWS} lines of counts", "counts")
    header = _cells(lines[0], 1)
    rows = [_row(line, number, len(header)) for number, line in enumerate(lines[1:], 2)]
    secrets = tuple(row[0] for row in rows)
    if len(set(secrets)) < len(secrets):
        raise InvalidInput(Problem.PRIOR_SHAPE, "two lines have the same name", "counts")
    return CountTable(tuple(header[1:]), secrets, tuple(tuple(row[1:]) for row in rows))


def _row(line: str, number: int, columns: int) -> list[str]:
    cells = _cells(line, number)
    if len(cells) != columns:
        words = f"{len(cells) - 1} numbers, the first line names {columns - 1} answers"
        if len(cells) == 2 * columns - 1:
            words += "; write decimals with a point"
        raise _wrong(Problem.PRIOR_SHAPE, number, words)
    for cell in cells[1:]:
        if not _NUMERAL.fullmatch(cell):
            hint = "write decimals with a point" if _DECIMAL_COMMA.fullmatch(cell) else "a cell is a count or a share"
            raise _wrong(Problem.PRIOR_VALUE, number, hint)
    return cells


def _cells(line: str, number: int) -> list[str]:
    if not line.strip():
        raise _wrong(Problem.PRIOR_SHAPE, number, "the line is empty")
    if line.count('"') % 2:
        raise _wrong(Problem.PRIOR_VALUE, number, "a quoted text runs over several lines")
    try:
        cells = [cell.strip() for cell in next(csv.reader(io.StringIO(line), strict=True))]
    except (csv.Error, StopIteration):
        raise _wrong(Problem.PRIOR_VALUE, number, "the quotes do not match") from None
    if not 2 <= len(cells) <= _MAX_COLUMNS + 1:
        raise _wrong(Problem.PRIOR_SHAPE, number, "separate the cells with commas: a name, then numbers")
    return cells


def _wrong(problem: Problem, line: int, words: str) -> InvalidInput:
    return InvalidInput(problem, f"line {line}: {words}", "counts")
