# SPDX-License-Identifier: Apache-2.0
"""Priors counted from the Adult data, which is not in the repository."""

import csv
from collections import Counter
from functools import cache
from pathlib import Path

from frankly_server.design import Prior

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "adult.csv"


class DataMissingError(Exception):
    """The data file is missing."""


def prior(secret: str, answer: str) -> Prior:
    """Return joint counts, shape (secrets, answers), values sorted by name; `?` counts as a value.

    Raises DataMissingError.
    """
    records = _records()
    secrets, answers = (sorted({record[name] for record in records}) for name in (secret, answer))
    counts = Counter((record[secret], record[answer]) for record in records)
    return Prior.from_rows([[counts[s, x] for x in answers] for s in secrets])


@cache
def _records() -> list[dict[str, str]]:
    if not DATA.is_file():
        raise DataMissingError(
            f"put Adult's records (UCI, training part, with a header line) at {DATA}"
        )
    with DATA.open(newline="") as file:
        return list(csv.DictReader(file))
