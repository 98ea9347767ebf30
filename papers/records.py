# SPDX-License-Identifier: Apache-2.0
"""The Adult data: counts of pairs of columns of a CSV file."""

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from frankly_design.notions.prior import Prior
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

COLUMNS = (
    "education",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "native-country",
)
"""Columns that the figures use; the file may contain other columns."""
_MOST_BYTES = 64 * 2**20
_FIELD = "--adult"


@dataclass(frozen=True, slots=True)
class Records:
    """Rows of the file, by column name. `?` is an ordinary value, as in both papers' alphabets."""

    rows: tuple[dict[str, str], ...]

    def __len__(self) -> int:
        return len(self.rows)

    def joint(
        self, secret: str, answer: str, without: tuple[str, str] | None = None
    ) -> list[list[int]]:
        """Return the counts N[s][x] of two columns, with values sorted by name.

        without : (column, value) to omit.
        """
        rows = [row for row in self.rows if without is None or row[without[0]] != without[1]]
        secrets, answers = (sorted({row[name] for row in rows}) for name in (secret, answer))
        counts = Counter((row[secret], row[answer]) for row in rows)
        return [[counts[s, x] for x in answers] for s in secrets]

    def prior(self, secret: str, answer: str, without: tuple[str, str] | None = None) -> Prior:
        """Return `joint` as a prior. Raises InvalidInput(prior_shape) if a column has only one value."""
        return Prior.from_rows(self.joint(secret, answer, without), _FIELD)


def read_records(file: Path) -> Records:
    """Read the columns that the figures use.

    Raises InvalidInput: field_missing if the file or one of the columns is missing; field_type if the file is not CSV
    text, is larger than 64 MiB, has no rows, or has a row with an empty value.
    """
    if not file.is_file():
        message = (
            f"there is no file {file}: give the Adult data (UCI, training part, with a header "
            "line) with --adult FILE"
        )
        raise InvalidInput(Problem.FIELD_MISSING, message, _FIELD)
    if file.stat().st_size > _MOST_BYTES:
        raise InvalidInput(
            Problem.FIELD_TYPE, "the file is larger than 64 MiB: give the Adult data", _FIELD
        )
    try:
        with file.open(newline="", encoding="utf-8") as opened:
            return _read(csv.DictReader(opened, strict=True, skipinitialspace=True))
    except (UnicodeDecodeError, csv.Error):
        message = "the file is not CSV text: give the Adult data with a header line"
        raise InvalidInput(Problem.FIELD_TYPE, message, _FIELD) from None


def _read(reader: "csv.DictReader[str]") -> Records:
    names: Sequence[str] = reader.fieldnames or ()
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        message = f"the header line lacks {', '.join(missing)}"
        raise InvalidInput(Problem.FIELD_MISSING, message, _FIELD)
    rows: list[dict[str, str]] = []
    for row in reader:
        if any(not row[name] for name in COLUMNS):
            message = f"line {reader.line_num} lacks a value: every row needs {', '.join(COLUMNS)}"
            raise InvalidInput(Problem.FIELD_TYPE, message, _FIELD)
        rows.append({name: row[name].strip() for name in COLUMNS})
    if not rows:
        raise InvalidInput(
            Problem.FIELD_TYPE, "the file has a header line and nothing else", _FIELD
        )
    return Records(tuple(rows))
