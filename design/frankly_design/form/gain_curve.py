# SPDX-License-Identifier: Apache-2.0
"""Gain of one question by the entropy of a column: concave curves above ψ (docs/maths/forms.md).

ψ(d) is the largest ‖P g‖² of a posterior whose KL divergence from the prior is d. The curves bound
ψ from above; `bounds` combines the curves of all questions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from frankly_design.form.request import FormQuestion, shares_of
from frankly_design.numeric.arrays import FloatArray

_POINTS: Final = 4000
"""Number of points of a curve of ψ, or of all curves whose maximum bounds ψ."""


@dataclass(frozen=True, slots=True, eq=False)
class GainCurve:
    """Bounds for one question: ν, points (KL, ‖P g‖²) above ψ, and the largest ‖P g‖² if alone."""

    nuclear: float
    entropies: FloatArray
    squares: FloatArray
    alone: float

    @classmethod
    def of(cls, question: FormQuestion, ratio: float) -> "GainCurve":
        """Return the curve of a question at agree/disagree `ratio`."""
        p = shares_of(question.prior)
        targets = question.target_matrix
        values = np.linalg.svd((targets - (targets @ p)[:, None]) * np.sqrt(p), compute_uv=False)
        # With two choices, the only contrast spans all contrasts.
        if len(p) == 2 or np.count_nonzero(values > 1e-9 * values[0]) > 1:
            return cls.of_all_contrasts(p, float(values.sum()), ratio)
        scores = targets[0] - float(targets[0] @ p)
        return cls._of_one(p, scores / np.sqrt(float(p @ scores**2)), float(values[0]), ratio)

    @classmethod
    def of_all_contrasts(cls, p: FloatArray, nuclear: float, ratio: float) -> "GainCurve":
        """Return the curve over all contrasts.

        ψ is attained by densities that are r on a set of measure s and q elsewhere. Both axes
        increase with s.
        """
        least = float(p.min())
        if np.ptp(p) < 1e-12:
            low = high = np.arange(1, len(p)) / len(p)
            steps = _POINTS
        else:
            steps = _POINTS // 10
            # With uneven shares, every measure from the smallest share s to 1 − s may occur.
            odds = np.geomspace(least / (1 - least), (1 - least) / least, 200)
            low, high = odds[:-1] / (1 + odds[:-1]), odds[1:] / (1 + odds[1:])
        entropies, squares = [], []
        for s, upper in zip(low, high, strict=True):
            r = 1 + (1 / s - 1) * np.linspace(0, 1, steps) ** 2
            # Each entropy is paired with the square of the next point: the steps lie above ψ.
            entropies.append(_entropy(s, r)[:-1])
            squares.append(np.minimum((r - 1) ** 2 * upper / (1 - upper), 1 / least - 1)[1:])
        # The best measure of the agreeing answers for a single question.
        best = min(max(1 / (1 + ratio), least), 1 - least)
        alone = (ratio - 1) ** 2 * best * (1 - best) / (1 + (ratio - 1) * best) ** 2
        return cls(
            nuclear, *concave_hull(np.concatenate(entropies), np.concatenate(squares)), alone
        )

    @classmethod
    def _of_one(
        cls, p: FloatArray, scores: FloatArray, nuclear: float, ratio: float
    ) -> "GainCurve":
        """Return the curve for one contrast; ψ is attained by exponential tilting of the prior."""
        entropies, squares, alone = [], [], 0.0
        for direction in (scores, -scores):
            tilts = np.concatenate([[0.0], np.geomspace(1e-3, 1e3, 2 * _POINTS)])
            weights = p * np.exp(tilts[:, None] * (direction - direction.max()))
            total = weights.sum(axis=1)
            means = weights @ direction / total
            # KL = tilt · mean − ln E exp(tilt · score).
            entropy = tilts * (means - direction.max()) - np.log(total)
            entropies.append(np.maximum(entropy, 0))
            # As above, the square of the next tilt, so that the steps lie above ψ.
            squares.append(np.append(means[1:], direction.max()) ** 2)
            # The best column for one contrast cuts the answers at a score.
            order = np.argsort(-direction)
            share, gain = np.cumsum(p[order])[:-1], np.cumsum((p * direction)[order])[:-1]
            alone = max(alone, float(((ratio - 1) * gain / (1 + (ratio - 1) * share)).max() ** 2))
        return cls(
            nuclear, *concave_hull(np.concatenate(entropies), np.concatenate(squares)), alone
        )


def combined(classes: Sequence[tuple[GainCurve, float, int]]) -> tuple[FloatArray, FloatArray]:
    """Return the corners of the largest Σ c²ψ(d) over Σ d ≤ D, as a function of D.

    Each curve is concave, so the steepest pieces of all curves come first.
    """
    steps = [
        (number * np.diff(curve.entropies), number * square * np.diff(curve.squares))
        for curve, square, number in classes
    ]
    widths, heights = (np.concatenate(pieces) for pieces in zip(*steps, strict=True))
    with np.errstate(divide="ignore"):
        order = np.argsort(-heights / widths)
    # Pieces of width 0 come first; their heights add up to the value at D = 0.
    jump = float(heights[widths == 0].sum())
    order = order[widths[order] > 0]
    return (
        np.concatenate([[0.0], np.cumsum(widths[order])]),
        jump + np.concatenate([[0.0], np.cumsum(heights[order])]),
    )


def _entropy(s: float, r: FloatArray) -> FloatArray:
    """Return the KL of densities r on a set of measure s and q elsewhere, s·r + (1−s)·q = 1."""
    q = np.maximum(1 - s * r, 0) / (1 - s)
    with np.errstate(divide="ignore", invalid="ignore"):
        outside = np.where(q > 0, (1 - s) * q * np.log(q), 0.0)
    result: FloatArray = np.maximum(s * r * np.log(r) + outside, 0)
    return result


def concave_hull(entropies: FloatArray, squares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the corners of the smallest concave function above the points and above (0, 0)."""
    order = np.lexsort((-squares, entropies))
    corners: list[tuple[float, float]] = [(0.0, 0.0)]
    for x, y in zip(entropies[order].tolist(), squares[order].tolist(), strict=True):
        # ψ is increasing, so a point that is not higher than one to its left is below the hull.
        if y <= corners[-1][1]:
            continue
        while len(corners) > 1 and _turns_left(corners[-2], corners[-1], (x, y)):
            corners.pop()
        corners.append((x, y))
    hull = np.array(corners)
    return hull[:, 0], hull[:, 1]


def _turns_left(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    return (b[0] - a[0]) * (c[1] - a[1]) >= (b[1] - a[1]) * (c[0] - a[0])
