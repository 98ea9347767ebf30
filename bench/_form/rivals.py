# SPDX-License-Identifier: Apache-2.0
"""Published methods for a form under one total ε: variances at n = 1, even shares, closed form.

A question is (choices, importance); values are Σ importance · total variance of its shares.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import product
from math import comb, exp, inf, log, prod, sqrt

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


def marginals(questions: Sequence[Question], epsilon: float) -> float:
    """Return the variance if m questions are drawn and one cell of their joint table is named.

    All sets of m are equally likely, the cell by randomised response, m the best [Cormode, Kulkarni
    and Srivastava 2018, MargPS, for yes/no questions].
    """
    ratio, number, best = exp(epsilon), len(questions), inf
    for drawn in range(1, number + 1):
        total = 0.0
        for i, (k, importance) in enumerate(questions):
            cells = _products([k for j, (k, _) in enumerate(questions) if j != i], drawn - 1)
            sets = sum(cells.values())
            # 1 / variance of a report's estimate, averaged over the other questions drawn.
            mean = sum(
                n / sets * k / (k - 1) * ((ratio - 1) / (ratio + k * others - 1)) ** 2
                for others, n in cells.items()
            )
            total += importance / (drawn / number * mean)
        best = min(best, total)
    return best


def _products(sizes: Sequence[int], drawn: int) -> Counter[int]:
    """Count the products of the sizes of every set of `drawn` questions."""
    by_number = [Counter({1: 1}), *(Counter[int]() for _ in range(drawn))]
    for size in sizes:
        for number in range(drawn, 0, -1):
            for cells, n in by_number[number - 1].items():
                by_number[number][cells * size] += n
    return by_number[drawn]


def caps(number: int, epsilon: float) -> float:
    """Return the variance for yes/no questions of m drawn and a vector that agrees in at least t places.

    Such vectors are e^ε times as likely as others; m and t are the best. With t at the middle it is
    the cube of Duchi, Jordan and Wainwright 2018.
    """
    ratio, best = exp(epsilon), inf
    for drawn in range(1, number + 1):
        for least in range(1, drawn + 1):
            weights = [comb(drawn, i) * (ratio if i >= least else 1) for i in range(drawn + 1)]
            right = sum(w * i for i, w in enumerate(weights)) / drawn / sum(weights)
            best = min(best, number**2 / drawn / 2 / (2 * right - 1) ** 2)
    return best


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
