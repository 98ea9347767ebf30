# SPDX-License-Identifier: Apache-2.0
"""Chances of given components: the convex allocation problem (docs/maths/forms.md).

A report that does not show a unit is one more symbol, equally likely under every answer: its
information is 11ᵀ. So I p = 1 holds for the prior p, as for any table.

Minimise F(π) = Σ_u weight_u · tr(W_u I_u(π)⁻¹ W_uᵀ), I_u = Σ_c π_c · I_uc, over the simplex. With
G_u = weight_u · I_u⁻¹W_uᵀW_u I_u⁻¹, a π is optimal iff no component's price Σ_u tr(G_u I_uc) exceeds F.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from frankly_server.design.form.units import Unit
from frankly_server.design.tables.limits import Limits
from frankly_server.design.tables.linear import FloatArray

_STEPS: Final = 3000
_TOLERANCE: Final = 1e-7


@dataclass(frozen=True, slots=True, eq=False)
class Allocation:
    """Chances of the components, the value F, and of every unit the inverse I_u⁻¹ and the price G_u."""

    chances: FloatArray
    value: float
    inverses: tuple[FloatArray, ...]
    prices: tuple[FloatArray, ...]


def allocate(
    units: Sequence[Unit], informations: Sequence[Mapping[int, FloatArray]],
    limits: Limits, start: FloatArray | None = None,
) -> Allocation:  # fmt: skip
    """Return the best chances of components with these informations by unit, found within the limits.

    Every unit with a weight needs some component that informs about it. Multiplicative steps
    π_c ← π_c·√(price_c/F), renormalised, lower F for this A-optimality criterion.
    """
    number = len(informations)
    stacked = [
        np.array(
            [info.get(u, np.ones((len(unit.shares),) * 2)).reshape(-1) for info in informations]
        )
        for u, unit in enumerate(units)
    ]
    chances = np.full(number, 1 / number) if start is None else start
    value, inverses, prices = _evaluated(units, stacked, chances)
    for _ in range(_STEPS):
        component_prices = sum(
            table @ price.reshape(-1) for table, price in zip(stacked, prices, strict=True)
        )
        gap = float(np.max(component_prices)) / value - 1
        if gap < _TOLERANCE or limits.out_of_time():
            break
        chances = chances * np.sqrt(np.maximum(component_prices, 0) / value)
        chances = np.where(chances < 1e-12, 0, chances)
        chances /= chances.sum()
        value, inverses, prices = _evaluated(units, stacked, chances)
    return Allocation(chances, value, tuple(inverses), tuple(prices))


def _evaluated(
    units: Sequence[Unit], stacked: Sequence[FloatArray], chances: FloatArray
) -> tuple[float, list[FloatArray], list[FloatArray]]:
    value, inverses, prices = 0.0, [], []
    for unit, table in zip(units, stacked, strict=True):
        size = len(unit.shares)
        inverse = unit.inverse((chances @ table).reshape(size, size))
        value += unit.value(inverse)
        inverses.append(inverse)
        prices.append(unit.price(inverse))
    return value, inverses, prices
