# SPDX-License-Identifier: Apache-2.0
"""Size and power of the test that people who failed the item answered by the assumed law."""

from collections.abc import Iterator
from itertools import product

import numpy as np
from frankly_design.estimate.validity import law_test
from frankly_design.kinds.decoder import shares
from frankly_design.kinds.dense import DenseKind
from frankly_design.numeric.arrays import FloatArray
from frankly_design.numeric.lazy import special
from frankly_server.analysis.versions import covariance_at

from _validity.cells import Counts, Table, randomised_response
from _validity.surveys import forms

NUMBERS = (10, 20, 30, 50, 100, 200)
"""Reports that failed."""
CHOICES = (2, 3, 6)
LEVEL = 0.05
RARELY_YES = (0.2, 0.8)


def sizes(surveys: int, rng: np.random.Generator) -> Iterator[tuple[str, int, float, float]]:
    """Yield (case, reports that failed, share rejected, largest difference from the server's p).

    The number varies by up to a tenth between surveys, because it is random in reality too. The size
    at one fixed number depends on how the few possible counts fall beside the limit.
    """
    for choices, epsilon, about in product(CHOICES, (1.0, 4.0), NUMBERS):
        table = randomised_response(choices, epsilon)
        law = np.full(choices, 1 / choices)
        yield (table.name, about, *_rejected(table, law, law, about, surveys, rng))
    for table, about in product(forms(), NUMBERS):
        law = np.full(table.mechanism.answers, 1 / table.mechanism.answers)
        yield (table.name, about, *_rejected(table, law, law, about, surveys, rng))
    for epsilon, about in product((1.0, 4.0), NUMBERS):
        table, law = randomised_response(2, epsilon), np.array(RARELY_YES)
        name = f"{table.name}, the law has 20 % first answers"
        yield (name, about, *_rejected(table, law, law, about, surveys, rng))


def powers(surveys: int, rng: np.random.Generator) -> Iterator[tuple[str, int, float, float]]:
    """Yield the same if people choose the first of two answers in 20 % of cases instead of 50 %."""
    for epsilon, about in product((0.5, 1.0, 2.0, 4.0), NUMBERS):
        table, law = randomised_response(2, epsilon), np.full(2, 0.5)
        actual = np.array(RARELY_YES)
        yield (table.name, about, *_rejected(table, law, actual, about, surveys, rng))


def _rejected(
    table: Table,
    law: FloatArray,
    actual: FloatArray,
    about: int,
    surveys: int,
    rng: np.random.Generator,
) -> tuple[float, float]:
    numbers = rng.integers(about - about // 10, about + about // 10 + 1, surveys)
    counts = rng.multinomial(numbers, actual @ table.law)
    off = counts @ table.decoder.T / numbers[:, None] - law
    moments = (table.decoder * (law @ table.law)) @ table.decoder.T
    inverse = np.linalg.pinv(moments - np.outer(law, law), rcond=1e-11, hermitian=True)
    statistic = numbers * np.einsum("si,ij,sj->s", off, inverse, off)
    p = special.chdtrc(len(law) - 1, statistic)
    checked = range(min(20, surveys))
    return float(np.mean(p < LEVEL)), max(abs(p[i] - _p(table, law, counts[i])) for i in checked)


def _p(table: Table, law: FloatArray, counts: Counts) -> float:
    """Return the p-value of the server's test."""
    evidence = DenseKind(table.mechanism).evidence([int(c) for c in counts], shares(len(law)), None)
    values = np.array([float(v or 0) for v in evidence.exact]) - law
    tested = law_test(values, covariance_at(evidence, law))
    return 1.0 if tested is None else tested[2]
