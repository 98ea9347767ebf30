# SPDX-License-Identifier: Apache-2.0
"""The formulas of `estimate.validity` for many surveys at once, and the comparison with it."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from frankly_server.arrays import FloatArray
from frankly_server.estimate import estimate
from frankly_server.estimate.margins import normal_quantile
from frankly_server.estimate.validity import Item, Observed, corrected

from _validity.cells import Cell, Counts, Drawn

Z = normal_quantile(0.95)
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Many:
    """Estimates of many surveys. low, high : infinite if the interval is unbounded."""

    values: FloatArray
    se: FloatArray
    low: FloatArray
    high: FloatArray

    def coverage(self, truth: float) -> float:
        """Return the share of surveys whose interval contains the truth."""
        return float(np.mean((self.low <= truth) & (truth <= self.high)))


def of_all(cell: Cell, drawn: Drawn) -> Many:
    """Return the corrected estimates from all reports."""
    means, covariance = _means(cell, drawn.passed + drawn.failed)
    return _corrected(cell, means, covariance, drawn.failures)


def uncorrected(cell: Cell, drawn: Drawn) -> Many:
    """Return the usual estimates from all reports."""
    means, covariance = _means(cell, drawn.passed + drawn.failed)
    return _ratio(means, covariance)


def of_passers(cell: Cell, drawn: Drawn) -> FloatArray:
    """Return the corrected estimates from the reports that passed, ρ + (t − ρ)·f/κ̂."""
    means, _ = _means(cell, drawn.passed)
    passed = 1 - drawn.failures / cell.n
    kept = (passed - 1 / cell.choices) / (1 - 1 / cell.choices)
    guess = cell.weights @ cell.assumed
    parts = guess * kept[:, None] + (means - guess) * passed[:, None]
    return np.asarray(parts[:, 0] / parts[:, 1])


def differences(cell: Cell, drawn: Drawn, surveys: int) -> Iterator[float]:
    """Yield the largest difference from the server's own estimates, relative, for some surveys."""
    many = of_all(cell, drawn)
    targets = [[Fraction(float(w)) for w in row] for row in cell.weights]
    for i in range(surveys):
        counts = [int(c) for c in drawn.passed[i] + drawn.failed[i]]
        result = estimate(cell.table.mechanism, counts, targets=targets)
        item = Item(cell.n, int(drawn.failures[i]), cell.choices)
        covariance = np.array(result.covariance, dtype=float)
        values = np.array(result.unbiased, dtype=float)
        server = corrected([Observed(values, covariance, cell.weights @ cell.assumed, item)], Z)
        if server is None:
            continue
        low, high = server.ends or (-np.inf, np.inf)
        ours = np.array([many.values[i], many.se[i], many.low[i], many.high[i]])
        theirs = np.array([server.value, server.se, low, high])
        same = (ours == theirs) | (np.abs(ours - theirs) <= TOLERANCE * np.maximum(1, np.abs(ours)))
        yield 0.0 if same.all() else float(np.nanmax(np.abs(ours - theirs)))


def _means(cell: Cell, counts: Counts) -> tuple[FloatArray, FloatArray]:
    """Return the estimates (a, b), shape (surveys, 2), and their estimated covariances."""
    scores = cell.weights @ cell.table.decoder
    n = counts.sum(axis=1)
    means = counts @ scores.T / n[:, None]
    squares = np.einsum("sy,iy,jy->sij", counts, scores, scores, optimize=True) / n[:, None, None]
    spread = squares - means[:, :, None] * means[:, None, :]
    return means, spread / (n - 1)[:, None, None]


def _corrected(cell: Cell, means: FloatArray, covariance: FloatArray, failures: Counts) -> Many:
    factor = cell.choices / (cell.choices - 1)
    share = failures / cell.n
    random, guess = factor * share, cell.weights @ cell.assumed
    variance = factor**2 * share * (1 - share) / cell.n
    beside = random[:, None] * (means - guess) / cell.n
    cross = beside[:, :, None] * guess
    square = variance[:, None, None] * np.outer(guess, guess)
    total = covariance + square + cross + cross.transpose(0, 2, 1)
    return _ratio(means - random[:, None] * guess, total)


def _ratio(means: FloatArray, covariance: FloatArray) -> Many:
    """Return the ratios with Fieller's intervals."""
    a, b = means.T
    aa, ab, bb = covariance[:, 0, 0], covariance[:, 0, 1], covariance[:, 1, 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        value = a / b
        se = np.sqrt(np.maximum(0, aa - 2 * value * ab + value**2 * bb)) / np.abs(b)
        square, half, rest = b**2 - Z**2 * bb, a * b - Z**2 * ab, a**2 - Z**2 * aa
        reach = np.sqrt(np.maximum(0, half**2 - square * rest)) / square
        middle, bounded = half / square, square > 0
    low, high = (
        np.where(bounded, middle - reach, -np.inf),
        np.where(bounded, middle + reach, np.inf),
    )
    return Many(value, se, low, high)
