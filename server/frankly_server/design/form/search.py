# SPDX-License-Identifier: Apache-2.0
"""Search for the components of a form: column generation with exact thresholds and local moves.

Each round prices structures at the current allocation and adds those that would improve the value.
With a single class of questions, all structures are priced; otherwise a local search changes the
draw of one class at a time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from frankly_server.arrays import FloatArray
from frankly_server.design.form.allocation import Allocation, allocate
from frankly_server.design.form.components import Draw, Sketch, Structure
from frankly_server.design.form.pricing import Pricer
from frankly_server.design.form.problem import FormProblem
from frankly_server.design.tables.limits import Limits

_GAIN: Final = 1e-6
"""Smallest relative gain at which a component is added."""
_LEAST_CHANCE: Final = 1e-5
_ADDED: Final = 6  # structures added per round; more would slow down the allocation


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Result of a search: components with their allocation."""

    problem: FormProblem
    sketches: tuple[Sketch, ...]
    allocation: Allocation

    @property
    def value(self) -> float:
        """The weighted sum of variances at n = 1."""
        return self.allocation.value + sum(unit.constant for unit in self.problem.units)


def search(problem: FormProblem, limits: Limits) -> Found:
    """Return the best components found, starting from those that draw a single part."""
    return _ComponentSearch(problem, limits).run()


class _ComponentSearch:
    def __init__(self, problem: FormProblem, limits: Limits) -> None:
        self._problem, self._limits = problem, limits

    def run(self) -> Found:
        sketches = [
            Sketch(((g, Draw(1, c)),), 1)
            for g, entry in enumerate(self._problem.classes)
            for c in range(len(entry.covers))
        ]
        # With components that draw a single part, the variance of a pair is infinite.
        for pair in self._problem.pairs.units:
            sketches += self._with_both(pair)
        infos = [self._problem.information(sketch) for sketch in sketches]
        allocation = allocate(self._problem.units, infos, self._limits)
        chances = allocation.chances
        while not self._limits.out_of_time():
            sketches, infos, chances = _kept(sketches, infos, chances)
            present = set(sketches)
            # Each structure needs an information matrix per unit, so only the best few are added.
            better = [
                sketch
                for price, sketch in self._priced(allocation, sketches)
                if price > allocation.value * (1 + _GAIN) and sketch not in present
            ][:_ADDED]
            if not better:
                break
            sketches += better
            infos += [self._problem.information(sketch) for sketch in better]
            # New components start with a fifth of all reports: Newton steps are slow from
            # probability 0.
            share = 0.2
            start = np.concatenate(
                [chances * (1 - share), np.full(len(better), share / len(better))]
            )
            improved = allocate(self._problem.units, infos, self._limits, start)
            is_done = improved.value > allocation.value * (1 - _GAIN)
            allocation, chances = improved, improved.chances
            if is_done:
                break
        sketches, infos, chances = _kept(sketches, infos, chances, _LEAST_CHANCE)
        allocation = allocate(self._problem.units, infos, self._limits, chances)
        return Found(self._problem, tuple(sketches), allocation)

    def _with_both(self, pair: tuple[int, int]) -> Iterator[Sketch]:
        """Yield components that show a pair: two parts, whose sets must both contain the truth."""
        g, h = pair
        for c in range(len(self._problem.classes[g].covers)):
            if g == h:
                yield Sketch(((g, Draw(2, c)),), 2)
            else:
                c_other = min(c, len(self._problem.classes[h].covers) - 1)
                yield Sketch(((g, Draw(1, c)), (h, Draw(1, c_other))), 2)

    def _priced(
        self, allocation: Allocation, sketches: Sequence[Sketch]
    ) -> list[tuple[float, Sketch]]:
        """Return (price, component) pairs by descending price."""
        pricer = Pricer(self._problem, allocation)
        if len(self._problem.classes) == 1:
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
        (entry,) = self._problem.classes
        return [
            ((0, Draw(pick, c)),)
            for pick in range(1, entry.most + 1)
            for c in range(len(entry.covers))
        ]

    def _moved(self, pricer: Pricer, starts: Sequence[Structure]) -> list[Structure]:
        """Return the results of local searches from several starts."""
        everything: Structure = ()
        for g, entry in enumerate(self._problem.classes):
            if not self._problem.meets(everything, g):
                everything = _with(everything, g, Draw(entry.most, len(entry.covers) // 2))
        # Starts: the components with the highest prices, and a draw of all questions, which a local
        # search rarely reaches.
        ranked = sorted(set(starts), key=lambda s: -pricer.best(s)[0])
        ends: dict[Structure, None] = {}
        for start in [*ranked[:4], everything]:
            ends[self._climbed(pricer, start)] = None
        return list(ends)

    def _climbed(self, pricer: Pricer, structure: Structure) -> Structure:
        """Return the local optimum reached from a structure: no change of one class improves it."""
        is_better = True
        while is_better and not self._limits.out_of_time():
            is_better = False
            for g in range(len(self._problem.classes)):
                # The pricer caches prices, so pricing a structure again is free.
                price = pricer.best(structure)[0]
                moved = max(self._moves(structure, g), key=lambda s: pricer.best(s)[0])
                if pricer.best(moved)[0] > price * (1 + 1e-9):
                    structure, is_better = moved, True
        return structure

    def _moves(self, structure: Structure, g: int) -> Iterator[Structure]:
        """Yield the structure, and its neighbours that differ in the draw of one class."""
        yield structure
        draws, entry = dict(structure), self._problem.classes[g]
        draw = draws.get(g)
        covers = range(len(entry.covers))
        if draw is None:
            if not self._problem.meets(structure, g):
                new = (Draw(1, c, score) for c in covers for score in (1, 2))
                yield from (_with(structure, g, added) for added in new)
            return
        # One more, one less, or all: with many equal parts the best number is often the largest.
        for pick in {draw.pick - 1, draw.pick + 1, entry.most} - {draw.pick}:
            if 1 <= pick <= entry.most:
                yield _with(structure, g, replace(draw, pick=pick))
        # A component must draw something.
        if len(draws) > 1:
            yield tuple((h, d) for h, d in structure if h != g)
        for c in covers:
            yield _with(structure, g, replace(draw, cover=c))
        yield _with(structure, g, replace(draw, score=3 - draw.score))


def _with(structure: Structure, g: int, draw: Draw) -> Structure:
    return tuple(sorted({**dict(structure), g: draw}.items(), key=lambda entry: entry[0]))


def _kept(
    sketches: Sequence[Sketch],
    infos: Sequence[dict[int, FloatArray]],
    chances: FloatArray,
    least: float = 1e-9,
) -> tuple[list[Sketch], list[dict[int, FloatArray]], FloatArray]:
    places = [i for i, chance in enumerate(chances) if chance > least]
    kept = chances[places]
    return [sketches[i] for i in places], [infos[i] for i in places], kept / kept.sum()
