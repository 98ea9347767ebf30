# SPDX-License-Identifier: Apache-2.0
"""People with known answers, from data sets that are shipped in the statsmodels wheel."""

import csv
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.resources import files
from itertools import product

Person = Mapping[str, str]
"""One person's answers: question id → choice id."""


def records(name: str, *, delimiter: str = ",", quotechar: str = '"') -> list[dict[str, str]]:
    """Return the rows of `statsmodels.datasets.NAME` as mappings from column to text."""
    source = files("statsmodels").joinpath("datasets", name, f"{name}.csv")
    with source.open(encoding="ascii") as file:
        return list(csv.DictReader(file, delimiter=delimiter, quotechar=quotechar))


def shuffled(everyone: Sequence[Person], seed: int) -> list[Person]:
    """Return people in a seeded random order, because the files are sorted by answers."""
    mixed = list(everyone)
    random.Random(seed).shuffle(mixed)
    return mixed


def counts(
    persons: Sequence[Person], question: str, choices: Sequence[str], **where: str
) -> list[int]:
    """Return the counts of a question's answers by choice, among people who match `where`."""
    tally = Counter(
        p[question] for p in persons if all(p[key] == value for key, value in where.items())
    )
    return [tally[choice] for choice in choices]


def joint_counts(
    persons: Sequence[Person],
    questions: Sequence[str],
    choices: Sequence[Sequence[str]],
    **where: str,
) -> list[int]:
    """Count joint answers to several questions in row-major order, the last question fastest."""
    chosen = [p for p in persons if all(p[key] == value for key, value in where.items())]
    tally = Counter(tuple(p[question] for question in questions) for p in chosen)
    return [tally[cell] for cell in product(*choices)]
