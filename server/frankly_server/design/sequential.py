# SPDX-License-Identifier: Apache-2.0
"""Side-channel resistance attribute by attribute: a product of mechanisms, each chosen in view of the earlier ones.

The problem: Q(y|x) = ∏_j Q^j(y^j|x^j) with e^−ε ≤ P(y|s,x_J)/P(y|x_J) ≤ e^ε for every set J of attributes, every x_J,
secret s and outcome y  [Funnel Def 3]. Theorem 4 of Funnel makes each Q^j private with respect to p(S,X|x_J) alone and
is false: what Q^1 and Q^2 tell together can exceed the sum of what each tells (DESIGN §9.15). What is missing is the
earlier outcomes. With those, for the attributes in a chosen order,

    P(y|s,x_J) / P(y|x_J)  =  ∏_{j ∉ J}  P(y^j|s,x_J,y^{<j}) / P(y^j|x_J,y^{<j}),

as Y^j depends on x^j alone (a factor with j in J is 1, and y^i tells nothing beside x^i). Two ways to keep the product:

- ``stepwise``: every factor of the right-hand side keeps its own share of ε;
- ``carried``: the product of the first j factors keeps the sum of the first j shares, so that what an outcome left of
  the earlier shares is not lost. The constant mechanism always qualifies, hence the first attribute may even be given
  all of ε: the others then live on what its outcomes leave. That is usually best.

Information adds up by the chain rule, I(X;Y) = Σ_j I(X^j; Y^j | Y^{<j}), and its j-th term is linear in the weights of
Q^j's rays: each factor is the optimum of its step, by exact enumeration and one linear programme.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations, product
from typing import Literal

import numpy as np
from frankly_protocol.audit import level_for
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from numpy.typing import NDArray

from frankly_server.design.lift.inside import Table, best_mixture, gains, lazy_rays, rounded_inside
from frankly_server.design.prior import Prior
from frankly_server.design.promises import side_channels

Spending = Literal["stepwise", "carried"]
SPENDING: tuple[Spending, ...] = ("stepwise", "carried")

Rows = list[tuple[int, ...]]
Factor = Callable[[Rows, NDArray[np.float64]], Table]
"""Designs one attribute's mechanism: takes the rows r with r·q ≥ 0 for each of its columns q, and P(y^{<j}, x^j) of
shape (earlier outcomes, values); returns whole numbers, one row per value, with equal row sums."""

_CONSTANT: Table = ((1,),)


@dataclass(frozen=True, slots=True)
class Product:
    """One mechanism per attribute, in the attributes' own order; Q(y|x) is the product of their weights over row sums.

    order : in which the attributes were chosen. shares : of ε, in that order. information : I(X;Y) in nats.
    """

    factors: tuple[Table, ...]
    shares: tuple[Fraction, ...]
    order: tuple[int, ...]
    spending: Spending
    information: float

    def rows(self) -> list[list[int]]:
        """Return the product as one table of whole numbers with equal row sums; answers and reports row-major."""
        table = [[1]]
        for factor in self.factors:
            table = [[v * w for v, w in product(left, right)] for left, right in product(table, factor)]
        return table


def best_product(prior: Prior, attributes: Sequence[int], epsilon: Fraction, parts: int = 2) -> Product:
    """Return the most informative product over every order, both ways of spending, and a grid of shares of ε.

    parts : tried are equal shares, and carried also all shares that are multiples of 1/parts with a positive first.
    Raises as `product_of`.
    """
    size = len(attributes)
    equal = (Fraction(1, size),) * size
    grid = {
        tuple(Fraction(k, parts) for k in split)
        for split in product(range(parts + 1), repeat=size)
        if sum(split) == parts and split[0]
    }
    plans: list[tuple[tuple[Fraction, ...], Spending]] = [(equal, "stepwise")]
    plans += [(shares, "carried") for shares in sorted(grid | {equal})]
    tried = (
        product_of(prior, attributes, epsilon, shares, order, spending)
        for order in permutations(range(size))
        for shares, spending in plans
    )
    return max(tried, key=lambda found: found.information)


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
    prior : counts N[s][x], x row-major over the attributes, the last fastest. attributes : their numbers of values.
    epsilon : nats. order : of the attributes, counted from 0. shares : what each gets of ε, in that order, ≥ 0.
    factor : how one attribute's mechanism is designed; default `most_informative`. A factor that breaks its rows is
        refused, in exact arithmetic.

    Raises
    ------
    InvalidInput: choice_unprotected, secret_empty, field_type for attributes or shares that do not fit;
    mechanism_not_certified for a factor that breaks its rows.
    """
    side_channels(prior, epsilon, attributes)  # refuses what does not fit
    if sorted(order) != list(range(len(attributes))):
        raise InvalidInput(Problem.FIELD_TYPE, "the order names every attribute once", "order")
    if len(shares) != len(attributes) or min(shares) < 0 or sum(shares) != 1:
        raise InvalidInput(Problem.FIELD_TYPE, "give each attribute a share, zero or more; they sum to 1", "shares")
    design = factor or most_informative
    state = Conditions(prior, tuple(attributes))
    levels = _levels(epsilon, shares, spending)
    information = 0.0
    for j, level in zip(order, levels, strict=True):
        rows, told = state.rows(j, level, spending), state.outcomes(j)
        table = design(rows, told)
        if not all(_keeps(rows, column) for column in zip(*table, strict=True)):
            raise InvalidInput(Problem.MECHANISM_NOT_CERTIFIED, f"attribute {j} breaks its share", "attributes")
        information += math.fsum(gains(np.array(table, dtype=float).T / sum(table[0]), told))
        state.factors[j] = table
    factors = tuple(state.factors[j] for j in range(len(attributes)))
    return Product(factors, tuple(shares), tuple(order), spending, information)


def _levels(epsilon: Fraction, shares: Sequence[Fraction], spending: Spending) -> list[Fraction]:
    """Return the level of each step; their product (stepwise) or the last (carried) is at most level_for(ε).

    Levels are rounded down, so the product of the parts can exceed the rounded whole by a little: the last gives way.
    """
    whole = Fraction(*level_for(epsilon))
    if spending == "carried":
        spent = [sum(shares[: i + 1], Fraction(0)) * epsilon for i in range(len(shares) - 1)]
        return [min(whole, Fraction(*level_for(e))) for e in spent] + [whole]
    steps = [Fraction(*level_for(share * epsilon)) for share in shares[:-1]]
    return [*steps, min(Fraction(*level_for(shares[-1] * epsilon)), max(Fraction(1), whole / math.prod(steps)))]


class Conditions:
    """The factors chosen so far (`factors`, by attribute), and what they make of the conditions on the next one.

    A condition on attribute j says of every other attribute: its value (then its outcome tells nothing more), or its
    outcome if it was chosen earlier, or nothing. As matrices over the values: [1 | W] or [1 | sum].
    """

    def __init__(self, prior: Prior, attributes: tuple[int, ...]) -> None:
        self._joint = np.array(prior.joint, dtype=object).reshape(prior.secrets, *attributes)
        self.factors: dict[int, Table] = {}

    def rows(self, j: int, level: Fraction, spending: Spending) -> Rows:
        """Return the rows that every column of Q^j has to keep, each divided by its common factor."""
        told = self._contracted(j, outcomes=True)
        before = self._contracted(j, outcomes=spending == "stepwise").sum(axis=1)
        rows: set[tuple[int, ...]] = set()
        for k in range(told.shape[2]):
            rows |= set(_around_average(told[:, :, k].tolist(), before[:, k].tolist(), level))
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
        """Return the counts of (secret, value of j, condition), shape (secrets, values, conditions).

        With `outcomes` they are multiplied by the weights of the outcomes in the condition; without, they are the
        counts of the known values alone, listed in the same order.
        """
        table = self._joint
        for i, size in enumerate(self._joint.shape[1:]):
            if i == j:
                continue
            weights = np.array(self.factors.get(i, _CONSTANT * size), dtype=object)
            matrix = np.hstack([np.eye(size, dtype=int).astype(object), weights if outcomes else weights * 0 + 1])
            table = np.moveaxis(np.tensordot(table, matrix, axes=([i + 1], [0])), -1, i + 1)
        moved = np.moveaxis(table, j + 1, 1)
        return moved.reshape(*moved.shape[:2], -1)


def _around_average(told: list[list[int]], before: list[int], level: Fraction) -> Iterator[tuple[int, ...]]:
    """Yield the rows of told_s·q/before_s ≤ E·told·q/before and the reverse, for every secret that can occur."""
    p, q = level.numerator, level.denominator
    total, everybody = sum(before), [sum(column) for column in zip(*told, strict=True)]
    for own, mass in zip(told, before, strict=True):
        if not mass:
            continue
        above = [p * mass * n - q * total * v for n, v in zip(everybody, own, strict=True)]
        below = [p * total * v - q * mass * n for n, v in zip(everybody, own, strict=True)]
        for row in (above, below):
            if min(row) < 0:
                common = math.gcd(*row)
                yield tuple(v // common for v in row)


def most_informative(rows: Rows, told: NDArray[np.float64]) -> Table:
    """Maximise I(X^j; Y^j | Y^{<j}): exact extreme rays, one linear programme, rounded inside.

    Where the cone is too thin to round into (a level of 1, say), the constant is returned.
    """
    values = int(told.shape[1])
    # A cone this thin may not hold the constant in floats, so it is listed too: there is always a mechanism.
    mixed = best_mixture([*lazy_rays(rows, values), (1,) * values], told)
    shares = [max(1, int(p * 2.0**60)) for p in told.sum(axis=0).tolist()]
    return rounded_inside(mixed, shares, lambda column: _keeps(rows, column)) or _CONSTANT * values


def _keeps(rows: Rows, column: Sequence[int]) -> bool:
    return all(sum(r * v for r, v in zip(row, column, strict=True)) >= 0 for row in rows)
