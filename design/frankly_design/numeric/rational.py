# SPDX-License-Identifier: Apache-2.0
"""Exact linear algebra over the rationals. Only this module imports python-flint.

Matrices contain Python ints or Fractions, and results are exact, with two exceptions: the
least-squares weights of `normal_equations` are rounded, because any positive weights are valid
there, and `inverse_forms` has a proven relative error.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from math import lcm
from threading import Lock

from flint import arb, arb_mat, ctx, fmpq, fmpq_mat, fmpz_mat, nmod_mat

IntRows = Sequence[Sequence[int]]
FractionRows = tuple[tuple[Fraction, ...], ...]

WEIGHT_BITS = 64
_PRIME = 2**61 - 1
# Precision of the first attempt in ball arithmetic; it suffices for most tables.
_FIRST_BITS = 256
_precision = Lock()


def distinct(values: Iterable[Fraction]) -> tuple[Fraction, ...]:
    """Return the values without repeated objects; equal values in different objects may remain.

    Hashing a fraction takes a microsecond, and a long list of choices can have a million weights
    that consist of only two objects.
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

    A minor that is nonzero modulo a prime is nonzero, so the exact rank is never smaller. It is
    larger only if the prime divides all nonzero minors of the largest size.
    """
    return nmod_mat([[value % _PRIME for value in row] for row in rows], _PRIME).rank()


def row_echelon(rows: IntRows) -> FractionRows:
    """Return the nonzero rows of the reduced row echelon form, a basis of the row space."""
    reduced, size = fmpq_mat(fmpz_mat([list(row) for row in rows])).rref()
    return _fractions(reduced)[:size]


def normal_equations(
    weights: IntRows, prior: Sequence[int]
) -> tuple[list[list[int]], list[list[int]], int]:
    """Return (G, H, scale), G = WΓWᵀ and H = WΓ, for least squares with weights W[x][y].

    u = prior · W is proportional to P(report), and Γ = diag(round(scale / u_y)) is proportional to
    diag(P(report))⁻¹, up to rounding. Rounding 1/u_y to at least 64 significant bits keeps the
    numbers of the solution short. The decoder is still unbiased, because any positive Γ gives an
    unbiased decoder; its variance changes by less than one part in 2^64.

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


def inverse_forms(
    square: IntRows, rows: IntRows | None = None, bits: int = WEIGHT_BITS
) -> tuple[Fraction, ...]:
    """Return wᵀS⁻¹w of a symmetric matrix S for every row w, with relative error at most 2^-bits.

    rows : None for the unit vectors, which gives the diagonal of the inverse.

    Ball arithmetic proves the error; its precision is doubled until it suffices. The exact inverse
    takes 100 times as long for 64 answers, because its numbers have thousands of digits.

    Raises ZeroDivisionError if S is singular.
    """
    matrix, working = fmpz_mat([list(row) for row in square]), _FIRST_BITS
    left = None if rows is None else fmpz_mat([list(row) for row in rows])
    while True:
        with _with_precision(working):
            forms = _enclosed_forms(matrix, left)
            if forms is not None and all(ball.rel_accuracy_bits() > bits for ball in forms):
                return tuple(map(_midpoint, forms))
        # At full rank some precision always suffices.
        if working == _FIRST_BITS and rank(square) < len(square):
            raise ZeroDivisionError("the matrix is singular")
        working *= 2


def _enclosed_forms(matrix: fmpz_mat, rows: fmpz_mat | None) -> list[arb] | None:
    """Return enclosures of the forms; None if the current precision cannot invert the matrix."""
    try:
        inverse = arb_mat(matrix).inv()
    except ZeroDivisionError:  # the enclosure of some pivot contains 0
        return None
    if rows is None:
        return [inverse[i, i] for i in range(matrix.nrows())]
    products = arb_mat(rows) * inverse
    indices = range(matrix.nrows())
    return [
        sum((products[t, x] * rows[t, x] for x in indices), arb(0)) for t in range(rows.nrows())
    ]


def _midpoint(ball: arb) -> Fraction:
    mantissa, exponent = map(int, ball.mid().man_exp())
    return Fraction(mantissa << max(exponent, 0), 1 << max(-exponent, 0))


@contextmanager
def _with_precision(bits: int) -> Iterator[None]:
    # The precision is global in python-flint, so only one thread may change it at a time.
    with _precision:
        before, ctx.prec = ctx.prec, bits
        try:
            yield
        finally:
            ctx.prec = before


def product(
    left: Sequence[Sequence[Fraction]], right: Sequence[Sequence[Fraction]]
) -> FractionRows:
    """Return left · right, exactly."""
    return _fractions(_matrix(left) * _matrix(right))


def whole(row: Sequence[Fraction]) -> list[int]:
    """Return the row times its common denominator: integers in the same proportions."""
    return over_one_denominator(row)[0]


def over_one_denominator(row: Sequence[Fraction]) -> tuple[list[int], int]:
    """Return (numerators, denominator): arithmetic on integers is much faster than on Fractions."""
    # One common denominator, computed once, instead of a gcd at every addition.
    scale = lcm(*(v.denominator for v in row))
    return [v.numerator * (scale // v.denominator) for v in row], scale


def _matrix(rows: Sequence[Sequence[Fraction]]) -> fmpq_mat:
    return fmpq_mat([[fmpq(v.numerator, v.denominator) for v in row] for row in rows])


def _fraction(value: fmpq) -> Fraction:
    return Fraction(int(value.p), int(value.q))


def _fractions(matrix: fmpq_mat) -> FractionRows:
    return tuple(tuple(_fraction(v) for v in row) for row in matrix.tolist())
