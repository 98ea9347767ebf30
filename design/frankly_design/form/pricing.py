# SPDX-License-Identifier: Apache-2.0
"""Prices of components at one allocation: the rate at which each component lowers the objective."""

import numpy as np

from frankly_design.form.allocation import Allocation
from frankly_design.form.components import Sketch, Structure, laws, pair_factors, pair_information
from frankly_design.form.problem import FormProblem
from frankly_design.form.units import Unit
from frankly_design.numeric.arrays import FloatArray


class Pricer:
    """Prices of structures at one allocation, each with its best threshold."""

    def __init__(self, problem: FormProblem, allocation: Allocation) -> None:
        self._problem, self._prices = problem, allocation.prices
        self._known: dict[Structure, FloatArray] = {}
        self._tables: dict[tuple[int, int], tuple[float, FloatArray, FloatArray, FloatArray]] = {}
        self._pair_prices: dict[int, tuple[float, float, float]] = {}

    def best(self, structure: Structure) -> tuple[float, int]:
        """Return the largest price over all thresholds, and its threshold."""
        prices = self._all(structure)
        place = int(np.argmax(prices))
        return float(prices[place]), place + 1

    def price(self, sketch: Sketch) -> float:
        """Return the price of one component."""
        return float(self._all(sketch.structure)[sketch.threshold - 1])

    def _all(self, structure: Structure) -> FloatArray:
        # Local searches price the same structures repeatedly.
        if structure not in self._known:
            self._known[structure] = self._priced(structure)
        return self._known[structure]

    def _priced(self, structure: Structure) -> FloatArray:
        problem = self._problem
        law = laws(problem.classes, structure, problem.ratio)
        # The information of a component about a unit that it does not show is 11ᵀ.
        total = np.full(len(law.mean), sum(float(price.sum()) for price in self._prices))
        for g, draw in structure:
            constant, linear, square, shown = self._table(g, draw.cover)
            chance = problem.classes[g].covers[draw.cover].chance
            other = law.other[g][:, None]
            step = law.agree[g][:, None] - other
            quadratic = other**2 * constant + 2 * other * step * linear + step**2 * square
            price = (quadratic / (other + step * shown)) @ chance
            # A report is about each part of the class with probability pick/size.
            total += (price - constant) * draw.pick / problem.classes[g].size
        for u, pair, unit in problem.numbered_pairs:
            chance_both = problem.both_shown(structure, pair)
            if not chance_both:
                continue
            total += chance_both * self._of_pair(structure, pair, unit, u)
        return total

    def _of_pair(
        self, structure: Structure, pair: tuple[int, int], unit: Unit, u: int
    ) -> FloatArray:
        """Return tr(G (M − 11ᵀ)) for every threshold; M is the information if the pair is shown."""
        problem, draws = self._problem, dict(structure)
        factors = pair_factors(problem.classes, structure, problem.ratio, pair)
        covers = [problem.classes[g].covers[draws[g].cover] for g in pair]
        spreads = [
            cover.spread(problem.classes[g].unit.shares)
            for g, cover in zip(pair, covers, strict=True)
        ]
        # There is no closed form: one matrix is needed per threshold.
        if spreads[0] is None or spreads[1] is None:
            infos = (
                pair_information(covers[0], covers[1], factors[:, t], unit.shares)
                for t in range(factors.shape[1])
            )
            return np.array([float(np.sum(self._prices[u] * (info - 1))) for info in infos])
        both, first, second, none = factors
        p, q = covers[0].inside, covers[1].inside
        # θ = 1 + A(a−p) + B(b−q) + C(a−p)(b−q), a and b the indicators of agreement.
        C = both - first - second + none
        A, B = first - none + C * q, second - none + C * p
        of_first, of_second, of_both = self._contrasts(u, pair)
        one, other = spreads
        prices: FloatArray = (
            A**2 * one * of_first + B**2 * other * of_second + C**2 * one * other * of_both
        )
        return prices

    def _contrasts(self, u: int, pair: tuple[int, int]) -> tuple[float, float, float]:
        """Return tr(G P⊗J), tr(G J⊗P) and tr(G P⊗P), with J = 11ᵀ and P = I − J/k."""
        if u not in self._pair_prices:
            k, m = (len(self._problem.classes[g].unit.shares) for g in pair)
            price = self._prices[u].reshape(k, m, k, m)
            over_second = np.einsum("ajbl->ab", price)
            over_first = np.einsum("ajbl->jl", price)
            same_first = np.einsum("ajal->jl", price)
            total = float(over_first.sum())
            of_first = float(np.trace(over_second)) - total / k
            of_second = float(np.trace(over_first)) - total / m
            # Sums over axes instead of Kronecker products, which would have (k·m)² entries.
            same = float(np.einsum("ajaj->", price))
            of_both = (
                same
                - float(np.trace(over_first)) / k
                - float(same_first.sum()) / m
                + total / (k * m)
            )
            self._pair_prices[u] = of_first, of_second, of_both
        return self._pair_prices[u]

    def _table(self, g: int, cover: int) -> tuple[float, FloatArray, FloatArray, FloatArray]:
        """Return 1ᵀG1, and for every set s: 1ᵀG1_s, 1_sᵀG1_s and the prior share of s."""
        if (g, cover) not in self._tables:
            entry = self._problem.classes[g]
            member, price = entry.covers[cover].member, self._prices[g]
            ones = price @ np.ones(len(price))
            self._tables[g, cover] = (
                float(ones.sum()),
                member @ ones,
                np.einsum("sx,xz,sz->s", member, price, member),
                member @ entry.unit.shares,
            )
        return self._tables[g, cover]
