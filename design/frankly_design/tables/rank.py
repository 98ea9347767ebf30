# SPDX-License-Identifier: Apache-2.0
"""Combinations of shares that a mechanism can estimate, in exact arithmetic (spec 8.1)."""

from collections.abc import Sequence
from fractions import Fraction

from frankly_design.numeric import rational

_DIGITS = 6


def estimable_rows(weights: Sequence[Sequence[int]]) -> tuple[str, ...]:
    """Return, as text, a basis of the combinations of shares that can be estimated without bias.

    weights : integers with equal row sums, row = truth. W·p is estimable iff the row W is in the
    span of the columns Q(y|·). The basis is the reduced echelon form of these columns, in which
    every estimable share has its own row. Coefficients have six significant digits; those that
    round to 0 at six decimals are left out. Answers are called "answer 0", "answer 1", …
    """
    labels = [f"answer {x}" for x in range(len(weights))]
    if rational.rank(weights) == len(weights):
        return tuple(labels)
    basis = rational.row_echelon(list(zip(*weights, strict=True)))
    return tuple(_combination(row, labels) for row in basis)


def _combination(row: Sequence[Fraction], labels: Sequence[str]) -> str:
    terms: list[str] = []
    for coefficient, label in zip(row, labels, strict=True):
        magnitude = f"{abs(float(coefficient)):.{_DIGITS}g}"
        if round(abs(coefficient), _DIGITS) == 0:
            continue
        sign = "-" if coefficient < 0 else "+" if terms else ""
        terms.append(
            f"{sign} {label}".strip()
            if magnitude == "1"
            else f"{sign} {magnitude} × {label}".strip()
        )
    return " ".join(terms)
