# SPDX-License-Identifier: Apache-2.0
"""Description, for admins, of the combinations of shares that a mechanism can identify."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from frankly_protocol.blocks import Block
from frankly_protocol.mechanisms import Mechanism

from frankly_design.kinds.registry import kind_of
from frankly_design.numeric import rational


@dataclass(frozen=True, slots=True)
class Identifiable:
    """Identifiable and unidentifiable combinations of shares, as text.

    rank : rank of Q.
    can : the combinations that can be estimated.
    cannot : changes of the shares that do not change the distribution of the reports.
    """

    rank: int
    can: tuple[str, ...]
    cannot: tuple[str, ...]


def answers_of(block: Block) -> tuple[str, ...]:
    """Return the names of a block's joint answers, row-major, from the ids of its choices."""
    choices = ([choice.id for choice in question.choices] for question in block.questions)
    return tuple(" × ".join(cell) for cell in product(*choices))


def in_words(mechanism: Mechanism, labels: Sequence[str]) -> Identifiable:
    """Return a basis of the estimable combinations and a basis of the unidentifiable changes.

    `can` is the exact reduced echelon basis of the row space of Q, where Q has one row per report.
    `cannot` is a basis of the kernel of Q: changes of the shares that do not change the
    distribution of the reports. It is empty iff every share is identifiable.

    labels : names of the answers.
    """
    basis = kind_of(mechanism).basis
    kernel = _kernel(basis, mechanism.answers)
    return Identifiable(
        len(basis),
        tuple(_sum(row, labels) for row in basis),
        tuple(f"{_exchange(row, labels)}" for row in kernel),
    )


def _kernel(basis: list[list[Fraction]], answers: int) -> list[list[Fraction]]:
    """Return a basis of the kernel of a reduced echelon `basis`: one vector per free column."""
    pivots = [next(x for x, v in enumerate(row) if v) for row in basis]
    vectors = []
    for free in sorted(set(range(answers)) - set(pivots)):
        vector = [Fraction(int(x == free)) for x in range(answers)]
        for pivot, row in zip(pivots, basis, strict=True):
            vector[pivot] = -row[free]
        vectors.append([Fraction(v) for v in rational.whole(vector)])
    return vectors


def _sum(row: Sequence[Fraction], labels: Sequence[str]) -> str:
    """Return the combination Σ row_x · (share of x) as text."""
    terms = [
        f"{'' if abs(v) == 1 else f'{_decimal(abs(v))} × '}{label}"
        for v, label in zip(row, labels, strict=True)
        if v
    ]
    signs = ["−" if v < 0 else "+" for v in row if v]
    text = " ".join(f"{sign} {term}" for sign, term in zip(signs, terms, strict=True))
    return "the share of " + text.removeprefix("+ ")


def _exchange(row: Sequence[Fraction], labels: Sequence[str]) -> str:
    """Describe a change of the shares that has no effect on the reports."""
    up = [label for v, label in zip(row, labels, strict=True) if v > 0]
    down = [label for v, label in zip(row, labels, strict=True) if v < 0]
    return f"{' and '.join(up)} against {' and '.join(down)}"


def _decimal(value: Fraction) -> str:
    return str(value) if value.denominator < 1000 else f"{float(value):.4g}"
