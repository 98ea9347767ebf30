# SPDX-License-Identifier: Apache-2.0
"""Counts that an admin uploads or types: one row a secret, one column an answer (BAD_INPUTS 53).

The first line names the answers, the first cell of every other line its secret. Without secrets (the answer itself is
the secret) there is one line of counts, whose first cell is ignored. Counts for each stratum have one more column in
front for each public question, and a line for every secret in every stratum.
"""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.surveys.fields import folded

Rows = tuple[tuple[str, ...], ...]
MAX_BYTES: Final = 256 * 1024
_MAX_ROWS, _MAX_COLUMNS, _SMALL = 64, 256, 5
_MAX_NAMES: Final = 9
"""First columns without numbers: up to eight public questions, then the secret."""
_NUMERAL: Final = re.compile(r"[0-9]{1,15}(\.[0-9]{1,30})?", re.ASCII)
_DECIMAL_COMMA: Final = re.compile(r"[0-9]+,[0-9]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class PublicQuestion:
    """A public question as a table may name it: by its id or text, and each of its choices by id or label.

    choices : the id of a choice by each of its folded names.
    """

    id: str
    names: frozenset[str]
    choices: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CountTable:
    """Counts as texts, joint[s][x], with secrets and answers as they are named in the file.

    joint : of everybody; empty where strata holds, for each stratum, its public answers by question id and its counts.
    """

    answers: tuple[str, ...]
    secrets: tuple[str, ...]
    joint: Rows = ()
    strata: tuple[tuple[Mapping[str, str], Rows], ...] = ()

    @property
    def small_cells(self) -> int:
        """How many counts lie between 1 and 4."""
        tables = [self.joint, *(rows for _, rows in self.strata)]
        cells = (cell for rows in tables for row in rows for cell in row)
        return sum(1 for cell in cells if cell.isdigit() and 0 < int(cell) < _SMALL)


def public_questions(strata: Any) -> tuple[PublicQuestion, ...]:
    """Return the public questions of a survey's plain values; what is no question is left to `parse_value`."""
    found = []
    for question in strata if isinstance(strata, list) else []:
        if isinstance(question, Mapping) and isinstance(question.get("id"), str):
            listed = question.get("choices")
            every = listed if isinstance(listed, list) else []
            choices = [choice for choice in every if isinstance(choice, Mapping) and isinstance(choice.get("id"), str)]
            named = {name: choice["id"] for choice in choices for name in _names(choice, "label")}
            found.append(PublicQuestion(question["id"], frozenset(_names(question, "text")), named))
    return tuple(found)


def _names(value: Mapping[str, Any], words: str) -> list[str]:
    texts = value.get(words)
    said = [text for text in texts.values() if isinstance(text, str)] if isinstance(texts, Mapping) else []
    return [folded(name) for name in (*said, value["id"])]


def read_counts(data: bytes, public: Sequence[PublicQuestion] = ()) -> CountTable:
    """Read a table of counts or shares as CSV; a byte order mark and any line ends are fine.

    public : the survey's public questions; with a first column for each of them, counts are for each stratum.
    Raises InvalidInput (prior_shape, prior_value) with the line at fault.
    """
    lines = _lines(data)
    header = _cells(lines[0], 1)
    leading = _leading(header, public)
    most = _MAX_ROWS * prod(len(set(question.choices.values())) for question in leading)
    if len(lines) > most + 1:
        raise InvalidInput(Problem.PRIOR_SHAPE, f"a table has at most {most} lines of counts", "counts")
    first = len(leading)
    found: dict[tuple[str, ...], dict[str, tuple[str, ...]]] = {}
    for number, line in enumerate(lines[1:], 2):
        row = _row(line, number, len(header), first)
        rows = found.setdefault(_stratum(row, leading, number), {})
        if row[first] in rows:
            raise _wrong(Problem.PRIOR_SHAPE, number, "two lines have the same name")
        rows[row[first]] = tuple(row[first + 1 :])
    return _table(tuple(header[first + 1 :]), [question.id for question in leading], found)


def _table(
    answers: tuple[str, ...], questions: Sequence[str], found: Mapping[tuple[str, ...], Mapping[str, tuple[str, ...]]]
) -> CountTable:
    """Return the lines by stratum as a table, every stratum with the secrets of the first in their order."""
    secrets = tuple(next(iter(found.values())))
    for key, rows in found.items():
        if set(rows) != set(secrets):
            where = ", ".join(key)
            words = f"every stratum has a line for each of {', '.join(secrets)}, zeros where nobody is: {where} has not"
            raise InvalidInput(Problem.PRIOR_SHAPE, words, "counts")
    joints = {key: tuple(rows[secret] for secret in secrets) for key, rows in found.items()}
    if not questions:
        return CountTable(answers, secrets, joints[()])
    strata = tuple((dict(zip(questions, key, strict=True)), rows) for key, rows in joints.items())
    return CountTable(answers, secrets, strata=strata)


def _leading(header: Sequence[str], public: Sequence[PublicQuestion]) -> list[PublicQuestion]:
    """Return the public questions that the first columns name: all of them in any order, or none."""
    found: list[PublicQuestion] = []
    for cell in header:
        named = [question for question in public if folded(cell) in question.names and question not in found]
        if not named:
            break
        found.append(named[0])
    if found and (len(found) < len(public) or len(header) < len(found) + 2):
        words = f"counts for each stratum begin with the columns {', '.join(q.id for q in public)}, then the secret's"
        raise _wrong(Problem.PRIOR_SHAPE, 1, words)
    return found


def _stratum(row: Sequence[str], leading: Sequence[PublicQuestion], number: int) -> tuple[str, ...]:
    found = []
    for cell, question in zip(row, leading, strict=False):
        choice = question.choices.get(folded(cell))
        if choice is None:
            words = f"{question.id} has the choices {', '.join(dict.fromkeys(question.choices.values()))}"
            raise _wrong(Problem.PRIOR_SHAPE, number, words)
        found.append(choice)
    return tuple(found)


def _lines(data: bytes) -> list[str]:
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
    return lines


def _row(line: str, number: int, columns: int, first: int) -> list[str]:
    cells = _cells(line, number)
    names = first + 1
    if len(cells) != columns:
        words = f"{len(cells) - names} numbers, the first line names {columns - names} answers"
        if len(cells) - names == 2 * (columns - names):
            words += "; write decimals with a point"
        raise _wrong(Problem.PRIOR_SHAPE, number, words)
    for cell in cells[names:]:
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
    if not 2 <= len(cells) <= _MAX_NAMES + _MAX_COLUMNS:
        raise _wrong(Problem.PRIOR_SHAPE, number, "separate the cells with commas: a name, then numbers")
    return cells


def _wrong(problem: Problem, line: int, words: str) -> InvalidInput:
    return InvalidInput(problem, f"line {line}: {words}", "counts")
