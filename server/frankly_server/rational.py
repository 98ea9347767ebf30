# SPDX-License-Identifier: Apache-2.0
"""Exact linear algebra over the rationals; the only module that imports python-flint.

Matrices hold Python ints or Fractions, and results are exact. Only the least-squares weights of
`normal_equations` are rounded; any positive weights are valid there.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import lcm

from flint import fmpq, fmpq_mat, fmpz_mat, nmod_mat

IntRows = Sequence[Sequence[int]]
FractionRows = tuple[tuple[Fraction, ...], ...]

WEIGHT_BITS = 64
_PRIME = 2**61 - 1


def distinct(values: Iterable[Fraction]) -> tuple[Fraction, ...]:
    """Return the values without repeated objects; equal numbers in different objects may remain.

    Hashing a fraction takes a microsecond, and a long list of choices has a million weights that
    are one of two objects.
    """
    return tuple({id(value): value for value in values}.values())


def rank(rows: IntRows) -> int:
    """Return the exact rank of an integer matrix."""
    least = least_rank(rows)
    if least == min(len(rows), len(rows[0])):
        return least
    return fmpz_mat([list(row) for row in rows]).rank()


def least_rank(rows: IntRows) -> int:
    """Return the rank modulo a prime of 61 bits, which is much faster than the exact rank.

    Minors that are not 0 modulo a prime are not 0, so the exact rank is never smaller. It is larger
    only if the prime divides all the largest minors that are not 0.
    """
    return nmod_mat([[value % _PRIME for value in row] for row in rows], _PRIME).rank()


def row_echelon(rows: IntRows) -> FractionRows:
    """Return the nonzero rows of the reduced row echelon form, a basis of the row space."""
    reduced, size = fmpq_mat(fmpz_mat([list(row) for row in rows])).rref()
    return _fractions(reduced)[:size]


def normal_equations(
    weights: IntRows,
    prior: Sequence[int],
) -> tuple[list[list[int]], list[list[int]], int]:
    """Return (G, H, scale), G = WΓWᵀ and H = WΓ, for least squares with weights W[x][y].

    u = prior · W is proportional to P(report), and Γ = diag(round(scale / u_y)) is proportional to
    diag(P(report))⁻¹, up to rounding. Rounding 1/u_y to at least 64 significant bits keeps the
    numbers of the solution short. The decoder stays unbiased, because any positive Γ gives an
    unbiased one; its variance changes by less than one part in 2^64.

    Raises ValueError if some report has no mass under `prior`.
    """
    columns = list(zip(*weights, strict=True))
    u = [sum(n * w for n, w in zip(prior, column, strict=True)) for column in columns]
    if min(u) <= 0:
        raise ValueError("every report needs mass under the prior")
    # The smallest entry of Γ then has at least 64 significant bits.
    scale = max(u) << WEIGHT_BITS
    gamma = [(scale + v // 2) // v for v in u]
    weighted = [[w * g for w, g in zip(row, gamma, strict=True)] for row in weights]
    product = fmpz_mat(weighted) * fmpz_mat([list(row) for row in weights]).transpose()
    return [[int(v) for v in row] for row in product.tolist()], weighted, scale


def solve(left: IntRows, right: IntRows) -> FractionRows:
    """Return X with left · X = right, exactly. Raises ZeroDivisionError if `left` is singular."""
    square = fmpq_mat(fmpz_mat([list(row) for row in left]))
    return _fractions(square.solve(fmpq_mat(fmpz_mat([list(row) for row in right]))))


def inverse_diagonal(square: IntRows) -> tuple[Fraction, ...]:
    """Return the diagonal of the inverse. Raises ZeroDivisionError if `square` is singular."""
    inverse = fmpq_mat(fmpz_mat([list(row) for row in square])).inv()
    return tuple(_fraction(inverse[i, i]) for i in range(len(square)))


def product(
    left: Sequence[Sequence[Fraction]],
    right: Sequence[Sequence[Fraction]],
) -> FractionRows:
    """Return left · right, exactly."""
    return _fractions(_matrix(left) * _matrix(right))


def whole(row: Sequence[Fraction]) -> list[int]:
    """Return the row times its common denominator: integers in the same proportions."""
    return over_one_denominator(row)[0]


def over_one_denominator(row: Sequence[Fraction]) -> tuple[list[int], int]:
    """Return (numerators, denominator): arithmetic on integers is much faster than on Fractions."""
    # One common denominator, found once, instead of a gcd at every addition.
    scale = lcm(*(v.denominator for v in row))
    return [v.numerator * (scale // v.denominator) for v in row], scale


def _matrix(rows: Sequence[Sequence[Fraction]]) -> fmpq_mat:
    return fmpq_mat([[fmpq(v.numerator, v.denominator) for v in row] for row in rows])


def _fraction(value: fmpq) -> Fraction:
    return Fraction(int(value.p), int(value.q))


def _fractions(matrix: fmpq_mat) -> FractionRows:
    return tuple(tuple(_fraction(v) for v in row) for row in matrix.tolist())
