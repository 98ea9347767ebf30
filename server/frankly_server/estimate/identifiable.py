# SPDX-License-Identifier: Apache-2.0
"""What a mechanism's reports can tell and what they cannot, in words for an admin before anything is collected."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import product

from frankly_protocol.blocks import Block
from frankly_protocol.mechanisms import DenseMechanism, Mechanism, ProductMechanism

from frankly_server import rational
from frankly_server.estimate.decoder import estimable
from frankly_server.estimate.set_law import chances


@dataclass(frozen=True, slots=True)
class Identifiable:
    """can : combinations of shares that can be estimated; cannot : ones that no number of reports tells apart."""

    rank: int
    can: tuple[str, ...]
    cannot: tuple[str, ...]


def answers_of(block: Block) -> tuple[str, ...]:
    """Return the names of a block's joint answers, row-major, from the ids of its choices."""
    choices = ([choice.id for choice in question.choices] for question in block.questions)
    return tuple(" × ".join(cell) for cell in product(*choices))


def in_words(mechanism: Mechanism, labels: Sequence[str]) -> Identifiable:
    """Return a basis of both, as sums of shares; `cannot` is empty iff every share is identifiable.

    can : the reduced echelon basis of the row space of Q (usual orientation), exact. cannot : a basis of the kernel of
    Q: shares may move along it without changing the law of any report.
    """
    if isinstance(mechanism, DenseMechanism):
        basis = [list(row) for row in estimable(mechanism)]
    elif isinstance(mechanism, ProductMechanism):
        # Products of reduced echelon rows are reduced echelon rows; the whole table may be too large to make.
        basis = reduce(_products, ([list(row) for row in estimable(factor)] for factor in mechanism.factors))
    else:
        q1, q0 = chances(mechanism)
        size = mechanism.answers
        basis = (
            [[Fraction(int(x == z)) for z in range(size)] for x in range(size)] if q1 != q0 else [[Fraction(1)] * size]
        )
    kernel = _kernel(basis, mechanism.answers)
    return Identifiable(
        len(basis),
        tuple(_sum(row, labels) for row in basis),
        tuple(f"{_moved(row, labels)}" for row in kernel),
    )


def _products(left: list[list[Fraction]], right: list[list[Fraction]]) -> list[list[Fraction]]:
    return [[a * b for a in row for b in other] for row in left for other in right]


def _kernel(basis: list[list[Fraction]], answers: int) -> list[list[Fraction]]:
    """Return the vectors with one free entry that the reduced echelon `basis` sends to zero."""
    pivots = [next(x for x, v in enumerate(row) if v) for row in basis]
    found = []
    for free in sorted(set(range(answers)) - set(pivots)):
        vector = [Fraction(int(x == free)) for x in range(answers)]
        for pivot, row in zip(pivots, basis, strict=True):
            vector[pivot] = -row[free]
        found.append([Fraction(v) for v in rational.whole(vector)])
    return found


def _sum(row: Sequence[Fraction], labels: Sequence[str]) -> str:
    """Return Σ row_x · share x in words."""
    parts = [
        f"{'' if abs(v) == 1 else f'{_plain(abs(v))} × '}{label}" for v, label in zip(row, labels, strict=True) if v
    ]
    signs = ["−" if v < 0 else "+" for v in row if v]
    words = " ".join(f"{sign} {part}" for sign, part in zip(signs, parts, strict=True))
    return "the share of " + words.removeprefix("+ ")


def _moved(row: Sequence[Fraction], labels: Sequence[str]) -> str:
    """Return which shares can be exchanged against each other unseen."""
    up = [label for v, label in zip(row, labels, strict=True) if v > 0]
    down = [label for v, label in zip(row, labels, strict=True) if v < 0]
    return f"{' and '.join(up)} against {' and '.join(down)}"


def _plain(value: Fraction) -> str:
    return str(value) if value.denominator < 1000 else f"{float(value):.4g}"
