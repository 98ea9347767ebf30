# SPDX-License-Identifier: Apache-2.0
"""Search for the components of a form: column generation with exact thresholds and local moves.

Each round prices structures at the current allocation and adds those that would improve the value.
With a single class of questions, all structures are priced; otherwise a local search changes the
draw of one class at a time, and then the components of known methods are priced.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Final

import numpy as np

from frankly_design.form.allocation import Allocation, allocate
from frankly_design.form.components import Draw, Sketch, Structure
from frankly_design.form.pricing import Pricer
from frankly_design.form.problem import FormProblem
from frankly_design.form.units import PartClass
from frankly_design.numeric.arrays import FloatArray
from frankly_design.tables.limits import Limits

_GAIN: Final = 1e-6
"""Smallest relative gain at which a component is added."""
_LEAST_CHANCE: Final = 1e-5
_ADDED: Final = 6  # structures added per round; more would slow down the allocation
CELLS: Final = 4
"""Largest number of joint answers that are randomised as one, in units of e^ε; with more, a report
is rarely true, and the variance was larger in every case tried."""
_MOST_JOINT: Final = 2000
"""Largest number of combinations of classes whose joint answers are randomised."""


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
    moves = _Moves(problem, limits)
    known = [sketch.structure for sketch in known_sketches(problem)]
    ways = (
        [moves.all_of_one_class] if len(problem.classes) == 1 else [moves.climbed, lambda *_: known]
    )

    def priced(way: int, pricer: Pricer, sketches: Sequence[Sketch]) -> Iterator[_Priced]:
        for structure in ways[way](pricer, sketches):
            price, threshold = pricer.best(structure)
            yield price, Sketch(structure, threshold)

    return _generated(problem, limits, [partial(priced, way) for way in range(len(ways))])


def known_method(problem: FormProblem, limits: Limits) -> Found:
    """Return the best components of published methods: a special case of `search`."""
    known = known_sketches(problem)
    return _generated(
        problem, limits, [lambda pricer, _: ((pricer.price(one), one) for one in known)]
    )


def known_sketches(problem: FormProblem) -> list[Sketch]:
    """Return the components of published methods, apart from those that draw a single part.

    They name the joint answer of several parts (fewer parts come first), or agree with several bits
    in at least t places.
    """
    joint = [sketch for covers in cover_choices(problem) for sketch in _joint(problem, covers)]
    caps = [
        Sketch(((g, Draw(pick, c)),), threshold)
        for g, entry in enumerate(problem.classes)
        for c in one_bit(entry)
        for pick in range(2, entry.most + 1)
        for threshold in range(1, pick)
    ]
    return joint + caps


def cover_choices(problem: FormProblem) -> list[tuple[int, ...]]:
    """Return choices of a cover for every class, for components in which all sets agree.

    Single answers; the best covers; bits where one figure is wanted, or wherever there are some.
    """
    classes, ratio = problem.classes, problem.ratio
    bits = [one_bit(entry) for entry in classes]
    wanted = [
        c if len(entry.unit.targets) == 1 else [] for entry, c in zip(classes, bits, strict=True)
    ]
    choices = [(0,) * len(classes), tuple(best_cover(entry, ratio) for entry in classes)]
    choices += [
        tuple(
            best_cover(entry, ratio, c) if c else 0 for entry, c in zip(classes, some, strict=True)
        )
        for some in (wanted, bits)
    ]
    return list(dict.fromkeys(choices))


def one_bit(entry: PartClass) -> list[int]:
    """Return the covers of which every set has its complement, as likely: a report of one bit."""
    found = []
    for c, cover in enumerate(entry.covers):
        full = (1 << cover.cover.answers) - 1
        weights = dict(zip(cover.cover.masks, cover.cover.weights, strict=True))
        if all(weights.get(full ^ mask) == weight for mask, weight in weights.items()):
            found.append(c)
    return found


def best_cover(entry: PartClass, ratio: float, among: Iterable[int] | None = None) -> int:
    """Return the cover of least variance at the level of a single part, of all or of some."""

    def value(c: int) -> float:
        cover = entry.covers[c]
        mean = 1 + (ratio - 1) * cover.inside
        information = cover.information(entry.unit.shares, ratio / mean, 1 / mean)
        return entry.unit.value(entry.unit.inverse(information))

    return min(range(len(entry.covers)) if among is None else among, key=value)


def _joint(problem: FormProblem, covers: Sequence[int]) -> list[Sketch]:
    """Return components in which the sets of all parts drawn hold the true answers, or not."""
    least = 1 / (CELLS * problem.ratio)
    inside = [entry.covers[c].inside for entry, c in zip(problem.classes, covers, strict=True)]
    found: list[Structure] = []
    last: list[Structure] = [((g, Draw(1, c)),) for g, c in enumerate(covers)]
    while last and len(found) < _MOST_JOINT:
        larger: list[Structure] = []
        for structure in last:
            g, draw = structure[-1]
            if draw.pick < problem.classes[g].most:
                larger.append(_with(structure, g, replace(draw, pick=draw.pick + 1)))
            others = (h for h in range(g + 1, len(covers)) if not problem.meets(structure, h))
            larger += [_with(structure, h, Draw(1, covers[h])) for h in others]
        # With fewer true reports than this, a component was never part of the best ones.
        last = [s for s in larger if prod(inside[g] ** draw.pick for g, draw in s) >= least]
        found += last
    return [Sketch(s, sum(draw.pick for _, draw in s)) for s in found[:_MOST_JOINT]]


_Priced = tuple[float, Sketch]
_Way = Callable[[Pricer, Sequence[Sketch]], Iterable[_Priced]]


def _generated(problem: FormProblem, limits: Limits, ways: Sequence[_Way]) -> Found:
    """Return the best components that the ways of finding some, tried in turn, lead to.

    A way gets the prices at the current allocation and the present components, and yields others
    with their prices.
    """
    sketches = [
        Sketch(((g, Draw(1, c)),), 1)
        for g, entry in enumerate(problem.classes)
        for c in range(len(entry.covers))
    ]
    # With components that draw a single part, the variance of a pair is infinite.
    for pair in problem.pairs.units:
        sketches += _with_both(problem, pair)
    infos = [problem.information(sketch) for sketch in sketches]
    allocation = allocate(problem.units, infos, limits)
    chances = allocation.chances
    way = unsuccessful = 0
    while unsuccessful < len(ways) and not limits.out_of_time():
        sketches, infos, chances = _kept(sketches, infos, chances)
        present = set(sketches)
        priced = ways[way](Pricer(problem, allocation), sketches)
        ranked = sorted(priced, key=lambda entry: -entry[0])
        # Each structure needs an information matrix per unit, so only the best few are added.
        better = [
            sketch
            for price, sketch in ranked
            if price > allocation.value * (1 + _GAIN) and sketch not in present
        ][:_ADDED]
        improves = False
        if better:
            sketches += better
            infos += [problem.information(sketch) for sketch in better]
            # New components start with a fifth of all reports: Newton steps are slow from
            # probability 0.
            share = 0.2
            start = np.concatenate(
                [chances * (1 - share), np.full(len(better), share / len(better))]
            )
            improved = allocate(problem.units, infos, limits, start)
            improves = improved.value <= allocation.value * (1 - _GAIN)
            allocation, chances = improved, improved.chances
        if improves:
            unsuccessful = 0
        else:
            way, unsuccessful = (way + 1) % len(ways), unsuccessful + 1
    sketches, infos, chances = _kept(sketches, infos, chances, _LEAST_CHANCE)
    allocation = allocate(problem.units, infos, limits, chances)
    return Found(problem, tuple(sketches), allocation)


def _with_both(problem: FormProblem, pair: tuple[int, int]) -> Iterator[Sketch]:
    """Yield components that show a pair: two parts, whose sets must both contain the truth."""
    g, h = pair
    for c in range(len(problem.classes[g].covers)):
        if g == h:
            yield Sketch(((g, Draw(2, c)),), 2)
        else:
            c_other = min(c, len(problem.classes[h].covers) - 1)
            yield Sketch(((g, Draw(1, c)), (h, Draw(1, c_other))), 2)


class _Moves:
    """Structures of a single class, or those that local changes lead to."""

    def __init__(self, problem: FormProblem, limits: Limits) -> None:
        self._problem, self._limits = problem, limits

    def all_of_one_class(self, *_: object) -> list[Structure]:
        """Return every structure of a problem with one class."""
        (entry,) = self._problem.classes
        return [
            ((0, Draw(pick, c)),)
            for pick in range(1, entry.most + 1)
            for c in range(len(entry.covers))
        ]

    def climbed(self, pricer: Pricer, sketches: Sequence[Sketch]) -> list[Structure]:
        """Return the results of local searches from several starts."""
        everything: Structure = ()
        for g, entry in enumerate(self._problem.classes):
            if not self._problem.meets(everything, g):
                everything = _with(everything, g, Draw(entry.most, len(entry.covers) // 2))
        # Starts: the components with the highest prices, and a draw of all questions, which a local
        # search rarely reaches.
        starts = {sketch.structure for sketch in sketches}
        ranked = sorted(starts, key=lambda s: -pricer.best(s)[0])
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
