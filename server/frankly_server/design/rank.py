# SPDX-License-Identifier: Apache-2.0
"""What can be estimated from a mechanism's reports, decided exactly (DESIGN §6)."""

from collections.abc import Sequence
from fractions import Fraction

from frankly_protocol.mechanisms import DenseMechanism

from frankly_server import rational

_DIGITS = 6


def rank(mechanism: DenseMechanism) -> int:
    """Return the exact rank of the weights; all shares can be estimated iff it equals the number of answers."""
    return rational.rank(mechanism.weights)


def estimable(mechanism: DenseMechanism, names: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return in words a basis of the combinations of shares that can be estimated without bias.

    W·p is estimable iff the row W lies in the span of the columns Q(y|·); the reduced echelon form of these columns is
    the plainest basis. Coefficients are shown to six digits. `names` default to "answer 0", "answer 1", …
    """
    return estimable_rows(mechanism.weights, names)


def estimable_rows(weights: Sequence[Sequence[int]], names: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return the same for a table of whole numbers with equal row sums, row = truth."""
    words = list(names) if names is not None else [f"answer {x}" for x in range(len(weights))]
    if rational.rank(weights) == len(weights):
        return tuple(words)
    basis = rational.row_echelon(list(zip(*weights, strict=True)))
    return tuple(_combination(row, words) for row in basis)


def _combination(row: Sequence[Fraction], words: Sequence[str]) -> str:
    parts: list[str] = []
    for coefficient, word in zip(row, words, strict=True):
        shown = f"{abs(float(coefficient)):.{_DIGITS}g}"
        if round(abs(coefficient), _DIGITS) == 0:
            continue
        sign = "-" if coefficient < 0 else "+" if parts else ""
        parts.append(f"{sign} {word}".strip() if shown == "1" else f"{sign} {shown} × {word}".strip())
    return " ".join(parts)
