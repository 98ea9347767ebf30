# SPDX-License-Identifier: Apache-2.0
"""Search for the components of a form: column generation with exact thresholds and local moves.

Each round prices structures at the current allocation and adds those that would improve it. Within
one class of questions every structure is priced; otherwise moves of one class at a time are tried.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from frankly_server.design.form.allocation import Allocation, allocate
from frankly_server.design.form.components import (
    Draw,
    Sketch,
    Structure,
    laws,
    pair_factors,
    pair_information,
)
from frankly_server.design.form.units import PartClass, Unit
from frankly_server.design.tables.limits import Limits
from frankly_server.design.tables.linear import FloatArray

_GAIN: Final = 1e-6
"""Smallest relative gain in price for which a component is added."""
_LEAST_CHANCE: Final = 1e-5
_ADDED: Final = 6  # structures added per round: more make the allocation slow


@dataclass(frozen=True, slots=True)
class Pairs:
    """Wanted pairs of questions that come as two parts: their number by classes (g ≤ h), and units."""

    units: Mapping[tuple[int, int], Unit]

    @classmethod
    def of(
        cls, classes: Sequence[PartClass], pairs: Iterable[tuple[int, int]]
    ) -> "Pairs":
        """Return the units of wanted pairs of questions."""
        place = {members[0]: g for g, entry in enumerate(classes) for members in entry.members}
        numbers: Counter[tuple[int, int]] = Counter()
        for a, b in pairs:
            first, second = sorted((place[a], place[b]))
            numbers[first, second] += 1
        units = {}
        for (g, h), number in numbers.items():
            shares = np.outer(classes[g].unit.shares, classes[h].unit.shares).reshape(-1)
            units[g, h] = Unit(shares, np.eye(len(shares)), float(number))
        return cls(units)


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The components found, with their allocation; units are the classes, then the pairs."""

    classes: tuple[PartClass, ...]
    pairs: Pairs
    sketches: tuple[Sketch, ...]
    allocation: Allocation

    @property
    def units(self) -> tuple[Unit, ...]:
        """The units of the objective."""
        return (*(entry.unit for entry in self.classes), *self.pairs.units.values())

    @property
    def value(self) -> float:
        """The weighted sum of variances at n = 1."""
        return self.allocation.value + sum(unit.constant for unit in self.units)


def search(
    classes: Sequence[PartClass], pairs: Pairs, ratio: float, limits: Limits
) -> Found:
    """Return the best components found; at least those that draw a single part."""
    return _Search(tuple(classes), pairs, ratio, limits).run()


class _Search:
    def __init__(
        self, classes: tuple[PartClass, ...], pairs: Pairs, ratio: float, limits: Limits
    ) -> None:
        self._classes, self._pairs, self._ratio, self._limits = classes, pairs, ratio, limits
        self._units = [*(entry.unit for entry in classes), *pairs.units.values()]
        self._best: dict[Structure, tuple[float, int]] = {}

    def run(self) -> Found:
        sketches = [
            Sketch(((g, Draw(1, c)),), 1)
            for g, entry in enumerate(self._classes)
            for c in range(len(entry.covers))
        ]
        for pair in self._pairs.units:
            sketches += self._with_both(pair)
        infos = [self._information(sketch) for sketch in sketches]
        allocation = allocate(self._units, infos)
        chances = allocation.chances
        while not self._limits.out_of_time():
            sketches, infos, chances = _kept(sketches, infos, chances)
            known = set(sketches)
            better = [
                sketch
                for price, sketch in self._priced(allocation, sketches)
                if price > allocation.value * (1 + _GAIN) and sketch not in known
            ][:_ADDED]
            if not better:
                break
            sketches += better
            infos += [self._information(sketch) for sketch in better]
            share = 0.2
            start = np.concatenate([chances * (1 - share), np.full(len(better), share / len(better))])
            improved = allocate(self._units, infos, start)
            is_done = improved.value > allocation.value * (1 - _GAIN)
            allocation, chances = improved, improved.chances
            if is_done:
                break
        sketches, infos, chances = _kept(sketches, infos, chances, _LEAST_CHANCE)
        allocation = allocate(self._units, infos, chances)
        return Found(self._classes, self._pairs, tuple(sketches), allocation)

    def _with_both(self, pair: tuple[int, int]) -> Iterator[Sketch]:
        """Yield components that inform about a pair: two parts, both of which must agree."""
        g, h = pair
        for c in range(len(self._classes[g].covers)):
            if g == h:
                yield Sketch(((g, Draw(2, c)),), 2)
            else:
                c_other = min(c, len(self._classes[h].covers) - 1)
                yield Sketch(((g, Draw(1, c)), (h, Draw(1, c_other))), 2)

    def _information(self, sketch: Sketch) -> dict[int, FloatArray]:
        """Return the information of a component about every unit, times the chance to be shown."""
        found, structure = laws(self._classes, sketch.structure, self._ratio), sketch.structure
        infos: dict[int, FloatArray] = {}
        for g, draw in structure:
            entry = self._classes[g]
            own = entry.covers[draw.cover].information(
                entry.unit.shares,
                float(found.agree[g][sketch.threshold - 1]),
                float(found.other[g][sketch.threshold - 1]),
            )
            infos[g] = _when_shown(own, draw.pick / entry.size)
        for u, (pair, unit) in enumerate(self._pairs.units.items(), len(self._classes)):
            chance = self._both_shown(structure, pair)
            if chance:
                about = self._about_pair(structure, pair, unit, sketch.threshold)
                infos[u] = _when_shown(about, chance)
        return infos

    def _about_pair(
        self, structure: Structure, pair: tuple[int, int], unit: Unit, threshold: int
    ) -> FloatArray:
        draws = dict(structure)
        first, second = (self._classes[g].covers[draws[g].cover] for g in pair)
        factors = pair_factors(self._classes, structure, self._ratio, pair)
        return pair_information(first, second, factors[:, threshold - 1], unit.shares)

    def _both_shown(self, structure: Structure, pair: tuple[int, int]) -> float:
        draws, (g, h) = dict(structure), pair
        if g not in draws or h not in draws:
            return 0.0
        size, pick = self._classes[g].size, draws[g].pick
        if g == h:
            return pick * (pick - 1) / (size * (size - 1))
        return pick / size * draws[h].pick / self._classes[h].size

    def _priced(
        self, allocation: Allocation, sketches: Sequence[Sketch]
    ) -> list[tuple[float, Sketch]]:
        """Return (price, component), the dearest first."""
        pricer = _Pricer(self, allocation)
        if len(self._classes) == 1:
            structures = self._all_of_one_class()
        else:
            structures = self._moved(pricer, [sketch.structure for sketch in sketches])
        priced = []
        for structure in structures:
            price, threshold = pricer.best(structure)
            priced.append((price, Sketch(structure, threshold)))
        priced.sort(key=lambda entry: -entry[0])
        return priced

    def _all_of_one_class(self) -> list[Structure]:
        (entry,) = self._classes
        return [
            ((0, Draw(pick, c)),)
            for pick in range(1, entry.most + 1)
            for c in range(len(entry.covers))
        ]

    def _moved(self, pricer: "_Pricer", starts: Sequence[Structure]) -> list[Structure]:
        """Return structures that no move of one class improves, from several starts."""
        everything: Structure = ()
        for g, entry in enumerate(self._classes):
            if not self._meets(everything, g):
                everything = _with(everything, g, Draw(entry.most, len(entry.covers) // 2))
        ranked = sorted(set(starts), key=lambda s: -pricer.best(s)[0])
        ends: dict[Structure, None] = {}
        for start in [*ranked[:4], everything]:
            structure = start
            while not self._limits.out_of_time():
                price = pricer.best(structure)[0]
                moved = max(self._moves(structure), key=lambda s: pricer.best(s)[0])
                if pricer.best(moved)[0] <= price * (1 + 1e-9):
                    break
                structure = moved
            ends[structure] = None
        return list(ends)

    def _moves(self, structure: Structure) -> Iterator[Structure]:
        draws = dict(structure)
        for g, entry in enumerate(self._classes):
            draw = draws.get(g)
            if draw is None and self._meets(structure, g):
                continue
            if draw is None:
                covers = range(len(entry.covers)) if len(entry.covers) <= 4 else _spread(entry)
                for c in covers:
                    for score in (1, 2):
                        yield _with(structure, g, Draw(1, c, score))
                continue
            for pick in {draw.pick - 1, draw.pick + 1, entry.most} - {draw.pick}:
                if 1 <= pick <= entry.most:
                    yield _with(structure, g, replace(draw, pick=pick))
            if draw.pick == 1 and len(draws) > 1:
                yield tuple((h, d) for h, d in structure if h != g)
            for c in (draw.cover - 1, draw.cover + 1):
                if 0 <= c < len(entry.covers):
                    yield _with(structure, g, replace(draw, cover=c))
            yield _with(structure, g, replace(draw, score=3 - draw.score))


    def _meets(self, structure: Structure, g: int) -> bool:
        """Return True if a class shares a question with those of a structure."""
        questions = self._classes[g].questions
        return any(h != g and questions & self._classes[h].questions for h, _ in structure)


class _Pricer:
    """Prices of structures at one allocation: the best threshold of each."""

    def __init__(self, owner: _Search, allocation: Allocation) -> None:
        self._owner, self._prices = owner, allocation.prices
        self._known: dict[Structure, tuple[float, int]] = {}
        self._tables: dict[tuple[int, int], tuple[float, FloatArray, FloatArray, FloatArray]] = {}
        self._pair_prices: dict[int, tuple[float, float, float]] = {}

    def best(self, structure: Structure) -> tuple[float, int]:
        """Return the largest price over all thresholds, and its threshold."""
        if structure not in self._known:
            prices = self._all(structure)
            place = int(np.argmax(prices))
            self._known[structure] = float(prices[place]), place + 1
        return self._known[structure]

    def _all(self, structure: Structure) -> FloatArray:
        owner = self._owner
        found = laws(owner._classes, structure, owner._ratio)
        # Every component informs by 11ᵀ about what it does not show.
        total = np.full(len(found.mean), sum(float(price.sum()) for price in self._prices))
        for g, draw in structure:
            constant, linear, square, shown = self._table(g, draw.cover)
            chance = owner._classes[g].covers[draw.cover].chance
            other = found.other[g][:, None]
            step = found.agree[g][:, None] - other
            quadratic = other**2 * constant + 2 * other * step * linear + step**2 * square
            price = (quadratic / (other + step * shown)) @ chance
            total += (price - constant) * draw.pick / owner._classes[g].size
        for u, (pair, unit) in enumerate(owner._pairs.units.items(), len(owner._classes)):
            chance_both = owner._both_shown(structure, pair)
            if not chance_both:
                continue
            total += chance_both * self._of_pair(structure, pair, unit, u)
        return total

    def _of_pair(
        self, structure: Structure, pair: tuple[int, int], unit: Unit, u: int
    ) -> FloatArray:
        """Return tr(G (M − 11ᵀ)) for every threshold, M the information about a pair shown."""
        owner, draws = self._owner, dict(structure)
        factors = pair_factors(owner._classes, structure, owner._ratio, pair)
        covers = [owner._classes[g].covers[draws[g].cover] for g in pair]
        spreads = [
            cover.spread(owner._classes[g].unit.shares)
            for g, cover in zip(pair, covers, strict=True)
        ]
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
        return A**2 * one * of_first + B**2 * other * of_second + C**2 * one * other * of_both

    def _contrasts(self, u: int, pair: tuple[int, int]) -> tuple[float, float, float]:
        """Return tr(G P⊗J), tr(G J⊗P) and tr(G P⊗P), with J = 11ᵀ and P = I − J/k."""
        if u not in self._pair_prices:
            k, m = (len(self._owner._classes[g].unit.shares) for g in pair)
            price = self._prices[u].reshape(k, m, k, m)
            over_second = np.einsum("ajbl->ab", price)
            over_first = np.einsum("ajbl->jl", price)
            same_first = np.einsum("ajal->jl", price)
            total = float(over_first.sum())
            of_first = float(np.trace(over_second)) - total / k
            of_second = float(np.trace(over_first)) - total / m
            same = float(np.einsum("ajaj->", price))
            of_both = (
                same - float(np.trace(over_first)) / k - float(same_first.sum()) / m + total / (k * m)
            )
            self._pair_prices[u] = of_first, of_second, of_both
        return self._pair_prices[u]

    def _table(self, g: int, cover: int) -> tuple[float, FloatArray, FloatArray, FloatArray]:
        """Return 1ᵀG1, and for every set s: 1ᵀG1_s, 1_sᵀG1_s, and the prior's chance of s."""
        if (g, cover) not in self._tables:
            entry = self._owner._classes[g]
            member, price = entry.covers[cover].member, self._prices[g]
            ones = price @ np.ones(len(price))
            self._tables[g, cover] = (
                float(ones.sum()),
                member @ ones,
                np.einsum("sx,xz,sz->s", member, price, member),
                member @ entry.unit.shares,
            )
        return self._tables[g, cover]


def _when_shown(information: FloatArray, chance: float) -> FloatArray:
    """Return the information of a part that a report shows with this chance."""
    result: FloatArray = chance * information + (1 - chance)
    return result


def _with(structure: Structure, g: int, draw: Draw) -> Structure:
    return tuple(sorted({**dict(structure), g: draw}.items(), key=lambda entry: entry[0]))


def _spread(entry: PartClass) -> list[int]:
    last = len(entry.covers) - 1
    return sorted({0, 1, last // 2, last})


def _kept(
    sketches: Sequence[Sketch], infos: Sequence[dict[int, FloatArray]], chances: FloatArray,
    least: float = 1e-9,
) -> tuple[list[Sketch], list[dict[int, FloatArray]], FloatArray]:  # fmt: skip
    places = [i for i, chance in enumerate(chances) if chance > least]
    kept = chances[places]
    return [sketches[i] for i in places], [infos[i] for i in places], kept / kept.sum()

