# SPDX-License-Identifier: Apache-2.0
"""The formulas of `estimate.validity` for many surveys at once, and the comparison with it."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from frankly_design.estimate.estimator import checked_evidence
from frankly_design.estimate.margins import normal_quantile
from frankly_design.estimate.validity import Corrected, Item, corrected
from frankly_design.numeric.arrays import FloatArray
from frankly_server.analysis.random_answers import Scored

from _validity.cells import Cell, Counts, Drawn, Table

Z = normal_quantile(0.95)
TOLERANCE = 1e-9


class Figure(Protocol):
    """What is estimated: `Cell`, or a survey with an anchor."""

    @property
    def table(self) -> Table:
        """The question's mechanism."""

    @property
    def weights(self) -> FloatArray:
        """Weights of numerator and denominator, shape (2, answers)."""

    @property
    def below(self) -> tuple[float, ...] | None:
        """Weights of a ratio's denominator, None for a share."""

    @property
    def name(self) -> str:
        """What the survey is called."""


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
    means, covariance = means_of(cell, drawn.passed + drawn.failed)
    n = (drawn.passed + drawn.failed).sum(axis=1)
    sides = sides_of(cell, means, covariance, n)
    return _corrected(cell, means, covariance, drawn.failures, sides)


def uncorrected(cell: Cell, drawn: Drawn) -> Many:
    """Return the usual estimates from all reports."""
    means, covariance = means_of(cell, drawn.passed + drawn.failed)
    return _ratio(means, covariance)


def of_passers(cell: Cell, drawn: Drawn) -> Many:
    """Return the corrected estimates if it is known of every report whether it failed."""
    guess, known = cell.weights @ cell.assumed, drawn.failed.sum(axis=1)
    means, covariance = means_of(cell, drawn.passed)
    others = drawn.passed.sum(axis=1)
    n = others + known
    values = (others[:, None] * means + known[:, None] * guess) / n[:, None]
    off, random = means - values, guess - values
    spread = covariance * (others - 1)[:, None, None] + off[:, :, None] * off[:, None, :]
    total = others[:, None, None] * spread
    total += known[:, None, None] * random[:, :, None] * random[:, None, :]
    total /= (n * (n - 1))[:, None, None]
    within = covariance[:, 0, 0] * others * (others - 1) / (n * (n - 1))
    sides = sides_of(cell, means, covariance, others)
    if sides is not None:
        sides = (others / n) ** 2 * sides + total[:, 0, 0] - within
    return _corrected(cell, values, total, drawn.failures, sides)


def sides_of(
    cell: Figure, means: FloatArray, covariance: FloatArray, n: Counts
) -> FloatArray | None:
    """Return the variances of the score interval below and above the estimate, shape (2, surveys).

    None for a ratio. Of a share the variance at θ is least + (most − least)θ − θ², as a report's
    score has one second moment for the first answer and another one for all others.
    """
    if cell.below is not None:
        return None
    moments = cell.table.law @ (cell.weights[0] @ cell.table.decoder) ** 2
    if not np.allclose(moments[1:], moments[1]):
        raise ValueError(f"{cell.name}: the second moments of other answers differ")
    a, k, slope = means[:, 0], Z**2 / n, moments[0] - moments[1]
    lean = k * (slope - 2 * a)
    at_estimate = np.maximum(0, moments[1] + slope * a - a**2)
    root = np.sqrt(lean**2 + 4 * (1 + k) * k * at_estimate)
    normal = Z * np.sqrt(np.maximum(0, covariance[:, 0, 0]))  # rounding
    below = np.maximum(normal, (root - lean) / (2 * (1 + k)))
    above = np.maximum(normal, (root + lean) / (2 * (1 + k)))
    return np.array([below, above]) ** 2 / Z**2


def differences(cell: Cell, drawn: Drawn, surveys: int) -> Iterator[float]:
    """Yield the largest difference from the server's own estimates, relative, for some surveys."""
    many, known = of_all(cell, drawn), of_passers(cell, drawn)
    targets = [[Fraction(float(w)) for w in row] for row in cell.weights]
    for i in range(surveys):
        passed, all_of_them = drawn.passed[i], drawn.passed[i] + drawn.failed[i]
        failures = Item(cell.n, int(drawn.failures[i]), cell.choices)
        yield difference_of(many, i, _of_server(cell, targets, all_of_them, 0, failures))
        known_failures = int(drawn.failed[i].sum())
        yield difference_of(known, i, _of_server(cell, targets, passed, known_failures, failures))


def _of_server(
    cell: Cell, targets: list[list[Fraction]], others: Counts, known: int, item: Item
) -> Corrected | None:
    """Return the server's figure from the counts of the reports that are not known to have failed."""
    spans = [0] if cell.below is None else [0, 1]
    of_figure = tuple(tuple(targets[t]) for t in spans)
    counts = [int(n) for n in others]
    evidence = checked_evidence(cell.table.mechanism, counts, of_figure, None)
    scored = Scored.of(evidence, len(spans), known, cell.assumed, item, 0.95)
    observed = scored.observed(spans, 1.0)
    return None if observed is None else corrected([observed], Z)


def difference_of(many: Many, i: int, server: Corrected | None) -> float:
    """Return the largest difference of a survey's figures from those of the server, relative."""
    if server is None:
        return 0.0
    low, high = server.ends or (-np.inf, np.inf)
    ours = np.array([many.values[i], many.se[i], many.low[i], many.high[i]])
    theirs = np.array([server.value, server.se, low, high])
    same = (ours == theirs) | (np.abs(ours - theirs) <= TOLERANCE * np.maximum(1, np.abs(ours)))
    return 0.0 if same.all() else float(np.nanmax(np.abs(ours - theirs)))


def means_of(cell: Figure, counts: Counts) -> tuple[FloatArray, FloatArray]:
    """Return the estimates (a, b), shape (surveys, 2), and their estimated covariances."""
    scores = cell.weights @ cell.table.decoder
    n = counts.sum(axis=1)
    means = counts @ scores.T / n[:, None]
    squares = np.einsum("sy,iy,jy->sij", counts, scores, scores, optimize=True) / n[:, None, None]
    spread = squares - means[:, :, None] * means[:, None, :]
    return means, spread / (n - 1)[:, None, None]


def _corrected(
    cell: Cell,
    means: FloatArray,
    covariance: FloatArray,
    failures: Counts,
    sides: FloatArray | None,
) -> Many:
    factor = cell.choices / (cell.choices - 1)
    share = failures / cell.n
    random, guess = factor * share, cell.weights @ cell.assumed
    variance = factor**2 * share * (1 - share) / cell.n
    beside = -random[:, None] * (means - guess) / cell.n
    return adjusted(guess, means, covariance, sides, (random, variance, beside))


def adjusted(
    guess: FloatArray,
    means: FloatArray,
    covariance: FloatArray,
    sides: FloatArray | None,
    share: tuple[FloatArray, FloatArray, FloatArray],
) -> Many:
    """Return figures corrected for random answers, whose values are `guess`.

    share : λ̂, its variance, and its covariance with the means.
    """
    random, variance, beside = share
    cross = beside[:, :, None] * guess
    square = variance[:, None, None] * np.outer(guess, guess)
    total = covariance + square - cross - cross.transpose(0, 2, 1)
    excess = np.zeros((2, len(random))) if sides is None else sides - covariance[:, 0, 0]
    return _ratio(means - random[:, None] * guess, total, excess)


def _ratio(means: FloatArray, covariance: FloatArray, excess: FloatArray | None = None) -> Many:
    """Return the ratios with Fieller's intervals; excess : of the variance below and above."""
    a, b = means.T
    aa, ab, bb = covariance[:, 0, 0], covariance[:, 0, 1], covariance[:, 1, 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        value = a / b
        se = np.sqrt(np.maximum(0, aa - 2 * value * ab + value**2 * bb)) / np.abs(b)
        square, half = b**2 - Z**2 * bb, a * b - Z**2 * ab
        wide = np.maximum(aa + (0 if excess is None else excess), 2 * value * ab - value**2 * bb)
        reach = np.sqrt(np.maximum(0, half**2 - square * (a**2 - Z**2 * wide)))
        reach, bounded = np.broadcast_to(reach, (2, len(a))), square > 0
        low, high = ((half + sign * r) / square for sign, r in zip((-1, 1), reach, strict=True))
    low = np.where(bounded, np.minimum(low, value), -np.inf)
    high = np.where(bounded, np.maximum(high, value), np.inf)
    return Many(value, se, low, high)
