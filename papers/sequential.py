# SPDX-License-Identifier: Apache-2.0
"""Product mechanisms under side-channel resistance: one factor per attribute, chosen in order.

The problem: Q(y|x) = ∏_j Q^j(y^j|x^j) with e^−ε ≤ P(y|s,x_J)/P(y|x_J) ≤ e^ε for every set J of
attributes, every x_J, secret s and outcome y  [Funnel Def 3]. Theorem 4 of Funnel makes each Q^j
private with respect to p(S,X|x_J) alone and is false: the leakage of Q^1 and Q^2 together can
exceed the sum of their leakages (erratum 9.15). The theorem's conditions ignore the earlier
outcomes. With these outcomes, for the attributes in a chosen order,

    P(y|s,x_J) / P(y|x_J)  =  ∏_{j ∉ J}  P(y^j|s,x_J,y^{<j}) / P(y^j|x_J,y^{<j}),

because Y^j depends only on x^j: a factor with j in J is 1, and given x^i, y^i is independent of the
other outcomes. There are two ways to bound the product:

- ``stepwise``: every factor of the right-hand side keeps its own share of ε;
- ``carried``: the product of the first j factors keeps the sum of the first j shares, so that the
  unused part of earlier shares carries over. A constant mechanism keeps every level, so the first
  attribute may even get all of ε, and the others then use what it leaves unused. This is usually
  the best choice.

Information adds up by the chain rule, I(X;Y) = Σ_j I(X^j; Y^j | Y^{<j}), and its j-th term is
linear in the weights of Q^j's rays: each factor is optimal for its step, found by exact enumeration
of the rays and one linear programme.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations, product
from typing import Literal

import numpy as np
from frankly_design.families.lift.mixture import (
    Table,
    best_mixture,
    gains,
    lazy_rays,
    rounded_inside,
)
from frankly_design.notions.declared.belief import side_channels
from frankly_design.notions.prior import Prior
from frankly_protocol.audit import level_for
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from numpy.typing import NDArray

Spending = Literal["stepwise", "carried"]
SPENDING: tuple[Spending, ...] = ("stepwise", "carried")

Rows = list[tuple[int, ...]]
Factor = Callable[[Rows, NDArray[np.float64]], Table]
"""Function that designs one attribute's mechanism.

Its arguments are the rows r that require r·q ≥ 0 of every column q, and P(y^{<j}, x^j), shape (earlier outcomes,
values). It returns whole numbers, one row per value, with equal row sums.
"""

_CONSTANT: Table = ((1,),)


@dataclass(frozen=True, slots=True)
class Product:
    """Product of one mechanism per attribute, in the attributes' order.

    Q(y|x) is the product of the factors' weights over their row sums. order : the order in which
    the attributes were chosen. shares : their shares of ε, in that order. information : I(X;Y) in
    nats.
    """

    factors: tuple[Table, ...]
    shares: tuple[Fraction, ...]
    order: tuple[int, ...]
    spending: Spending
    information: float

    def rows(self) -> list[list[int]]:
        """Return the product as one table with equal row sums; answers and reports row-major."""
        table = [[1]]
        for factor in self.factors:
            table = [
                [v * w for v, w in product(left, right)] for left, right in product(table, factor)
            ]
        return table


def best_product(
    prior: Prior, attributes: Sequence[int], epsilon: Fraction, grid_parts: int = 2
) -> Product:
    """Return the most informative product over all orders, both spendings and a grid of shares of ε.

    grid_parts : the grid contains equal shares and, for carried, also all multiples of 1/grid_parts
        with a positive first share.

    Raises like `product_of`.
    """
    size = len(attributes)
    equal = (Fraction(1, size),) * size
    grid = {
        tuple(Fraction(k, grid_parts) for k in split)
        for split in product(range(grid_parts + 1), repeat=size)
        if sum(split) == grid_parts and split[0]
    }
    plans: list[tuple[tuple[Fraction, ...], Spending]] = [(equal, "stepwise")]
    plans += [(shares, "carried") for shares in sorted(grid | {equal})]
    candidates = (
        product_of(prior, attributes, epsilon, shares, order, spending)
        for order in permutations(range(size))
        for shares, spending in plans
    )
    return max(candidates, key=lambda candidate: candidate.information)


def product_of(
    prior: Prior,
    attributes: Sequence[int],
    epsilon: Fraction,
    shares: Sequence[Fraction],
    order: Sequence[int],
    spending: Spending = "carried",
    factor: Factor | None = None,
) -> Product:
    """Choose one mechanism per attribute, in `order`, so that their product is ε-SRLIP.

    Parameters
    ----------
    prior : counts N[s][x], x row-major over the attributes, the last fastest.
    attributes : number of values of each attribute.
    epsilon : nats.
    order : the attributes in the order of choice, numbered from 0.
    shares : each attribute's share of ε in that order, ≥ 0, with sum 1.
    factor : designs one attribute's mechanism; default `most_informative`. Its result is checked in
        exact arithmetic.

    Raises
    ------
    InvalidInput: choice_unprotected, secret_empty, field_type for attributes, order or shares that
    do not fit; mechanism_not_certified for a factor that breaks its rows.
    """
    side_channels(prior, epsilon, attributes)  # raises for attributes that do not fit the prior
    if sorted(order) != list(range(len(attributes))):
        raise InvalidInput(Problem.FIELD_TYPE, "the order must name every attribute once", "order")
    if len(shares) != len(attributes) or min(shares) < 0 or sum(shares) != 1:
        raise InvalidInput(
            Problem.FIELD_TYPE, "give each attribute a share of at least 0, with sum 1", "shares"
        )
    design = factor or most_informative
    state = Conditions(prior, tuple(attributes))
    levels = _levels(epsilon, shares, spending)
    information = 0.0
    for j, level in zip(order, levels, strict=True):
        rows, outcomes = state.rows(j, level, spending), state.outcomes(j)
        table = design(rows, outcomes)
        if not all(_keeps(rows, column) for column in zip(*table, strict=True)):
            raise InvalidInput(
                Problem.MECHANISM_NOT_CERTIFIED, f"attribute {j} breaks its share", "attributes"
            )
        information += math.fsum(gains(np.array(table, dtype=float).T / sum(table[0]), outcomes))
        state.factors[j] = table
    factors = tuple(state.factors[j] for j in range(len(attributes)))
    return Product(factors, tuple(shares), tuple(order), spending, information)


def _levels(epsilon: Fraction, shares: Sequence[Fraction], spending: Spending) -> list[Fraction]:
    """Return the level of each step.

    Their product (stepwise), or the last level (carried), is at most level_for(ε). Every level is
    rounded down separately, so the product of the steps could slightly exceed the rounded total:
    the last step is lowered if necessary.
    """
    total = Fraction(*level_for(epsilon))
    if spending == "carried":
        spent = [sum(shares[: i + 1], Fraction(0)) * epsilon for i in range(len(shares) - 1)]
        # Partial sums are rounded separately too; no step may exceed the total.
        return [min(total, Fraction(*level_for(e))) for e in spent] + [total]
    steps = [Fraction(*level_for(share * epsilon)) for share in shares[:-1]]
    remaining = max(Fraction(1), total / math.prod(steps))
    return [*steps, min(Fraction(*level_for(shares[-1] * epsilon)), remaining)]


class Conditions:
    """Factors chosen so far (`factors`, by attribute), and their conditions on the next one.

    A condition on attribute j fixes the value of every other attribute (then its outcome adds
    nothing), or its outcome if it was chosen earlier, or nothing. As matrices over the values,
    these are [1 | W] or [1 | sum].
    """

    def __init__(self, prior: Prior, attributes: tuple[int, ...]) -> None:
        # Python integers: products of counts and weights exceed 64 bits.
        self._joint = np.array(prior.joint, dtype=object).reshape(prior.secrets, *attributes)
        self.factors: dict[int, Table] = {}

    def rows(self, j: int, level: Fraction, spending: Spending) -> Rows:
        """Return the rows r, with coprime entries, that require r·q ≥ 0 of every column q of Q^j."""
        after = self._contracted(j, outcomes=True)
        before = self._contracted(j, outcomes=spending == "stepwise").sum(axis=1)
        rows: set[tuple[int, ...]] = set()
        for k in range(after.shape[2]):
            rows |= set(_around_average(after[:, :, k].tolist(), before[:, k].tolist(), level))
        return sorted(rows)

    def outcomes(self, j: int) -> NDArray[np.float64]:
        """Return P(y^{<j}, x^j), shape (earlier outcomes, values of j)."""
        table = self._joint.sum(axis=0)
        for i in reversed(range(table.ndim)):
            if i != j:
                matrix = np.array(self.factors.get(i, _CONSTANT * table.shape[i]), dtype=object)
                table = np.moveaxis(np.tensordot(table, matrix, axes=([i], [0])), -1, i)
        flat = np.moveaxis(table, j, -1).reshape(-1, table.shape[j])
        total = int(flat.sum())
        return np.array([[v / total for v in row] for row in flat.tolist()])

    def _contracted(self, j: int, *, outcomes: bool) -> NDArray[np.object_]:
        """Return counts of (secret, value of j, condition), shape (secrets, values, conditions).

        With `outcomes`, they are multiplied by the weights of the outcomes in the condition;
        otherwise, they are the counts of the known values only, in the same order.
        """
        table = self._joint
        for i, size in enumerate(self._joint.shape[1:]):
            if i == j:
                continue
            weights = np.array(self.factors.get(i, _CONSTANT * size), dtype=object)
            matrix = np.hstack(
                [np.eye(size, dtype=int).astype(object), weights if outcomes else weights * 0 + 1]
            )
            table = np.moveaxis(np.tensordot(table, matrix, axes=([i + 1], [0])), -1, i + 1)
        moved = np.moveaxis(table, j + 1, 1)
        return moved.reshape(*moved.shape[:2], -1)


def _around_average(
    counts: list[list[int]], before: list[int], level: Fraction
) -> Iterator[tuple[int, ...]]:
    """Yield the rows of counts_s·q/before_s ≤ E·Σcounts·q/Σbefore and its reverse, for s with mass."""
    p, q = level.numerator, level.denominator
    total, totals = sum(before), [sum(column) for column in zip(*counts, strict=True)]
    for secret_row, mass in zip(counts, before, strict=True):
        if not mass:
            continue
        upper = [p * mass * n - q * total * v for n, v in zip(totals, secret_row, strict=True)]
        lower = [p * total * v - q * mass * n for n, v in zip(totals, secret_row, strict=True)]
        for row in (upper, lower):
            if min(row) < 0:
                common = math.gcd(*row)
                yield tuple(v // common for v in row)


def most_informative(rows: Rows, outcomes: NDArray[np.float64]) -> Table:
    """Return a table that maximises I(X^j; Y^j | Y^{<j}): exact extreme rays, linear programme, rounding.

    If the cone is too thin to round into (for example at a level of 1), returns the constant mechanism.
    """
    values = int(outcomes.shape[1])
    # In a very thin cone, no float mixture of rays equals the constant; adding it keeps the LP
    # feasible.
    mixed = best_mixture([*lazy_rays(rows, values), (1,) * values], outcomes)
    shares = [max(1, int(p * 2.0**60)) for p in outcomes.sum(axis=0).tolist()]
    return rounded_inside(mixed, shares, lambda column: _keeps(rows, column)) or _CONSTANT * values


def _keeps(rows: Rows, column: Sequence[int]) -> bool:
    return all(sum(r * v for r, v in zip(row, column, strict=True)) >= 0 for row in rows)
