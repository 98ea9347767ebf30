# SPDX-License-Identifier: Apache-2.0
"""Optimal probabilities of given components: a convex problem (docs/maths/forms.md).

A report that does not show a unit counts as an additional symbol, equally likely under every
answer, with the information 11ᵀ. So I p = 1 holds for the prior p, as for any table.

Minimise F(π) = Σ_u weight_u · tr(W_u I_u(π)⁻¹ W_uᵀ), I_u = Σ_c π_c · I_uc, over the simplex. With
G_u = weight_u · I_u⁻¹W_uᵀW_u I_u⁻¹, a π is optimal iff no component's price Σ_u tr(G_u I_uc) exceeds F.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from frankly_design.form.units import Unit
from frankly_design.numeric.arrays import FloatArray
from frankly_design.tables.limits import Limits

_STEPS: Final = 100
_TOLERANCE: Final = 1e-7
_CENTRING: Final = 0.1  # each step reduces the gap to about a tenth
_TO_BOUNDARY: Final = 0.95  # a step goes at most this share of the way to the nearest zero
_MIXED: Final = (
    0.01  # share of equal probabilities mixed into a start: Newton steps need an interior point
)


@dataclass(frozen=True, slots=True, eq=False)
class Allocation:
    """Probabilities of the components, the value F, and I_u⁻¹ and the price G_u of every unit."""

    chances: FloatArray
    value: float
    inverses: tuple[FloatArray, ...]
    prices: tuple[FloatArray, ...]


def allocate(
    units: Sequence[Unit],
    informations: Sequence[Mapping[int, FloatArray]],
    limits: Limits,
    start: FloatArray | None = None,
) -> Allocation:
    """Return the best probabilities of the components found within the limits.

    informations : for each component, its information about the units that it may show; some
    component must show each unit with a weight. This is a primal-dual interior-point method (Boyd
    and Vandenberghe, Convex Optimization, section 11.7).
    """
    programme = _AllocationProgramme(units, informations)
    number = len(informations)
    even = np.full(number, 1 / number)
    chances = even if start is None else (1 - _MIXED) * start + _MIXED * even
    at = programme.at(chances)
    # At the start every product of slack and probability is F divided by their number.
    slacks = np.full(number, at.value / number) / chances
    for _ in range(_STEPS):
        prices = programme.component_prices(at)
        # The largest price minus F bounds the distance of F from its minimum.
        if float(np.max(prices)) / at.value - 1 < _TOLERANCE or limits.out_of_time():
            break
        barrier = _CENTRING * float(at.chances @ slacks) / number
        step = _newton(programme, at, slacks, prices, barrier)
        towards = barrier / at.chances - slacks * (1 + step / at.chances)
        length = min(_longest(at.chances, step), _longest(slacks, towards))
        merit = _merit(at, barrier)
        while _merit(moved := programme.at(at.chances + length * step), barrier) > merit:
            length /= 2
            # A shorter step would improve F by less than its rounding error.
            if length < 1e-10:
                return at
        at, slacks = moved, slacks + length * towards
    return at


def _newton(
    programme: "_AllocationProgramme",
    at: Allocation,
    slacks: FloatArray,
    prices: FloatArray,
    barrier: float,
) -> FloatArray:
    """Return the Newton step of −price − slack + ν = 0, slack·chance = barrier, Σ chance = 1.

    The unknowns are scaled by the probabilities and the equations by F, because both differ by
    orders of magnitude.
    """
    number, p = len(prices), at.chances
    matrix = np.zeros((number + 1, number + 1))
    matrix[:-1, :-1] = p[:, None] * programme.curvature(at) * p / at.value
    matrix[:-1, :-1] += np.diag(slacks * p / at.value)
    matrix[-1, :-1] = matrix[:-1, -1] = p
    right = np.append((prices * p + barrier) / at.value, 0)
    # Least squares, because equal components make the matrix singular.
    result: FloatArray = p * np.linalg.lstsq(matrix, right)[0][:-1]
    return result


def _longest(values: FloatArray, step: FloatArray) -> float:
    """Return a step length, at most 1, such that values + length·step stay positive."""
    falling = step < 0
    return float(np.min(-_TO_BOUNDARY * values[falling] / step[falling], initial=1.0))


def _merit(at: Allocation, barrier: float) -> float:
    return at.value - barrier * float(np.log(at.chances).sum())


class _AllocationProgramme:
    def __init__(
        self, units: Sequence[Unit], informations: Sequence[Mapping[int, FloatArray]]
    ) -> None:
        self._units = units
        self._tables = [
            np.array([info.get(u, np.ones((len(unit.shares),) * 2)) for info in informations])
            for u, unit in enumerate(units)
        ]

    def at(self, chances: FloatArray) -> Allocation:
        """Return the allocation with these probabilities, which sum to 1 up to rounding."""
        chances = chances / chances.sum()
        inverses = tuple(
            unit.inverse(np.tensordot(chances, table, 1))
            for unit, table in zip(self._units, self._tables, strict=True)
        )
        pairs = list(zip(self._units, inverses, strict=True))
        value = sum(unit.value(inverse) for unit, inverse in pairs)
        return Allocation(
            chances, value, inverses, tuple(unit.price(inverse) for unit, inverse in pairs)
        )

    def component_prices(self, at: Allocation) -> FloatArray:
        """Return Σ_u tr(G_u I_uc) of every component: −∂F/∂π_c."""
        number = len(at.chances)
        return sum(
            (
                table.reshape(number, -1) @ price.reshape(-1)
                for table, price in zip(self._tables, at.prices, strict=True)
            ),
            np.zeros(number),
        )

    def curvature(self, at: Allocation) -> FloatArray:
        """Return ∂²F/∂π_b∂π_c = 2 Σ_u weight · tr(W I⁻¹ I_b I⁻¹ I_c I⁻¹ Wᵀ)."""
        number = len(at.chances)
        result = np.zeros((number, number))
        for unit, table, inverse in zip(self._units, self._tables, at.inverses, strict=True):
            spread = (unit.targets @ inverse) @ table
            other = (spread @ inverse).reshape(number, -1)
            result += 2 * unit.weight * spread.reshape(number, -1) @ other.T
        return result
