# SPDX-License-Identifier: Apache-2.0
"""Published methods for a form under one total ε: variances at n = 1, even shares, closed form.

A question is (choices, importance); values are Σ importance · total variance of its shares.
"""

from collections.abc import Sequence
from itertools import product
from math import exp, log, prod, sqrt

import numpy as np
from scipy.optimize import minimize

Question = tuple[int, float]


def alone(choices: int, epsilon: float) -> float:
    """Return the variance of subset selection at the best size [Ye and Barg 2018]."""
    ratio = exp(epsilon)
    return min(_subset(choices, size, ratio) for size in range(1, choices))


def _subset(choices: int, size: int, ratio: float) -> float:
    step = (ratio - 1) / (1 + (ratio - 1) * size / choices)
    return (choices - 1) ** 2 * choices / (step**2 * size * (choices - size))


def split(questions: Sequence[Question], epsilon: float) -> float:
    """Return the variance of separate blocks: ε is divided optimally among the questions."""

    def value(logits: np.ndarray) -> float:
        shares = np.exp(logits - logits.max())
        shares /= shares.sum()
        return sum(
            importance * alone(k, float(share) * epsilon)
            for (k, importance), share in zip(questions, shares, strict=True)
        )

    if len(set(questions)) == 1:
        return value(np.zeros(len(questions)))
    # At a small ε the optimum is proportional to the cube root of a question's variance.
    start = np.log([(importance * (k - 1) ** 2 * k) ** (1 / 3) for k, importance in questions])
    found = minimize(value, start, method="Nelder-Mead", options={"maxiter": 400 * len(questions)})
    return min(value(start), float(found.fun))


def sampled(questions: Sequence[Question], epsilon: float) -> float:
    """Return the variance of one question at the whole ε, sampled by Neyman allocation."""
    return sum(sqrt(importance * alone(k, epsilon)) for k, importance in questions) ** 2


def together(questions: Sequence[Question], epsilon: float) -> float | None:
    """Return the variance of subset selection on joint answers; None above 256 of them."""
    cells = prod(k for k, _ in questions)
    if cells > 256:
        return None
    information = (cells - 1) / alone(cells, epsilon)
    return sum(importance * (k - 1) * cells / k / information for k, importance in questions)


def fake_data(questions: Sequence[Question], epsilon: float) -> float:
    """Return RS+FD with GRR: a question at ε, uniform fakes for the others [Arcolezi et al. 2021].

    The paper uses ε' = ln(m(e^ε−1)+1), which exceeds ε for the whole form: see `fake_data_level`.
    """
    m, total = len(questions), 0.0
    for k, importance in questions:
        p = exp(epsilon) / (exp(epsilon) + k - 1)
        q = (1 - p) / (k - 1)
        rate = (q + (p - q) / k + (m - 1) / k) / m
        total += importance * k * m**2 * rate * (1 - rate) / (p - q) ** 2
    return total


def fake_data_level(choices: Sequence[int], epsilon: float) -> float:
    """Return the level of a whole RS+FD report with GRR at `epsilon`, by enumeration."""
    m, ratio = len(choices), exp(epsilon)
    laws = [
        prod(choices) ** -1
        / m
        * sum(
            k * (ratio if x == y else 1) / (ratio + k - 1)
            for k, x, y in zip(choices, truth, report, strict=True)
        )
        for report in [(0,) * m]  # every other report equals this one up to renamed choices
        for truth in product(*map(range, choices))
    ]
    return log(max(laws) / min(laws))


def means(points: int, epsilon: float) -> dict[str, float]:
    """Return the variances of the mean of an even answer on a grid of [−1, 1].

    Methods: Duchi et al. 2018; PM and HM of Wang et al. 2019.
    """
    second = float((np.linspace(-1, 1, points) ** 2).mean())
    ratio, root = exp(epsilon), exp(epsilon / 2)
    duchi = ((ratio + 1) / (ratio - 1)) ** 2
    piecewise = second / (root - 1) + (root + 3) / (3 * (root - 1) ** 2) + second
    if epsilon > 0.61:
        hybrid = (root + 3) / (3 * root * (root - 1)) + (ratio + 1) ** 2 / (root * (ratio - 1) ** 2)
        hybrid += second
    else:
        hybrid = duchi
    return {"Duchi": duchi, "PM": piecewise, "HM": hybrid}


def distribution(points: int, epsilon: float) -> dict[str, float]:
    """Return variances of an even ordinal answer's distribution function: GRR, subset selection."""
    rows = np.tril(np.ones((points, points)))[:-1]
    spread = np.trace(rows @ (np.eye(points) - 1 / points) @ rows.T)
    ratio = exp(epsilon)
    return {
        name: spread * _subset(points, size, ratio) / (points - 1)
        for name, size in (("GRR", 1), ("subset selection", _best(points, ratio)))
    }


def _best(choices: int, ratio: float) -> int:
    return min(range(1, choices), key=lambda size: _subset(choices, size, ratio))
