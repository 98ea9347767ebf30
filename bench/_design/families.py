# SPDX-License-Identifier: Apache-2.0
"""Explicit ε-LDP mechanisms as tables Q(y|x) in floats, with their variance and information.

Shapes: Q (answers, reports), p (answers,). E = e^ε, D = diag(Qᵀp), A = Q D⁻¹ Qᵀ. Variances are those
of the best unbiased estimator, by A⁻¹, which are at most those of each mechanism's usual estimator:
the comparison favours these mechanisms.
"""

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np

from _design.enumeration import FloatArray

MOST_BITS = 6
"""Largest number a of answers for which the table of OUE is listed; it has 2^a reports."""
_LEAST_SHARE, _LEAST_EIGENVALUE = 1e-12, 1e-9


def tables(answers: int, E: float) -> Iterator[tuple[str, FloatArray]]:
    """Yield (name, table): GRR, subset selection of every size, OUE up to MOST_BITS answers."""
    for size in range(1, answers):
        name = "GRR" if size == 1 else f"subsets of {size}"
        yield name, subsets(answers, size, E)
    if answers <= MOST_BITS:
        yield "OUE", unary(answers, E)


def subsets(answers: int, size: int, E: float) -> FloatArray:
    """Return subset selection: a subset with the truth is E times likelier; size 1 is GRR."""
    inside = [
        [E if x in chosen else 1.0 for chosen in combinations(range(answers), size)]
        for x in range(answers)
    ]
    table = np.array(inside)
    return np.asarray(table / table[0].sum())


def unary(answers: int, E: float) -> FloatArray:
    """Return OUE: independent bits, 1 with probability 1/2 for the truth, 1/(E + 1) for others."""
    rows = []
    for x in range(answers):
        chances = [0.5 if i == x else 1 / (E + 1) for i in range(answers)]
        rows.append(
            [
                np.prod([c if b else 1 - c for c, b in zip(chances, bits, strict=True)])
                for bits in _bits(answers)
            ]
        )
    return np.array(rows, dtype=np.float64)


def _bits(answers: int) -> Iterator[tuple[int, ...]]:
    return product((0, 1), repeat=answers)


def variance(Q: FloatArray, p: FloatArray) -> float:
    """Return the total variance at n = 1, Σ_x [(Q D⁻¹ Qᵀ)⁻¹ − p pᵀ]_xx; inf if not identifiable.

    Instead of A, √p A √p is inverted, whose eigenvalues lie in [0, 1]: they are the squared canonical
    correlations of answer and report.
    """
    sent, root = p @ Q, np.sqrt(np.maximum(p, _LEAST_SHARE))
    scaled = root[:, None] * Q[:, sent > 0] / np.sqrt(sent[sent > 0])
    correlation = scaled @ scaled.T
    if np.linalg.eigvalsh(correlation)[0] < _LEAST_EIGENVALUE:
        return float("inf")
    return float(np.sum(root**2 * np.diag(np.linalg.inv(correlation))) - p @ p)


def information(Q: FloatArray, p: FloatArray) -> float:
    """Return I(X; Y) = Σ p_x Q(y|x) ln(Q(y|x)/P(y)) in nats."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(Q > 0, Q * np.log(Q / (p @ Q)), 0.0)
    return float(p @ terms.sum(axis=1))


def best_uniform_variance(answers: int, E: float) -> float:
    """Return the total variance of the best subset selection at uniform shares, in closed form.

    A column of size d is c = 1/(N·m) times E on its subset and times 1 elsewhere, N = C(k,d) subsets all equally
    likely, m = (dE + k − d)/k. By symmetry A = N Σ q qᵀ has the eigenvector 1 with eigenvalue k (as Q1 = 1 and all
    P(y) = 1/N), and one other eigenvalue μ, k − 1 times; k + (k−1)μ = tr A = (dE² + k − d)/m². So
    tr A⁻¹ − 1/k = (k−1)/μ = (k−1)² / (tr A − k).
    """
    k = answers
    traces = [(d * E**2 + k - d) / ((d * E + k - d) / k) ** 2 for d in range(1, k)]
    return (k - 1) ** 2 / (max(traces) - k)
