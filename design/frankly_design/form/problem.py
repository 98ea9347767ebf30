# SPDX-License-Identifier: Apache-2.0
"""Form design problem: classes of parts, requested pairs, and information of components."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from frankly_design.form.components import Sketch, Structure, laws, pair_factors, pair_information
from frankly_design.form.units import PartClass, Unit
from frankly_design.numeric.arrays import FloatArray


@dataclass(frozen=True, slots=True)
class Pairs:
    """Requested pairs whose two questions are separate parts.

    units : by the two classes (g ≤ h); the weight is the number of requested pairs.
    """

    units: Mapping[tuple[int, int], Unit]

    @classmethod
    def of(cls, classes: Sequence[PartClass], pairs: Iterable[tuple[int, int]]) -> "Pairs":
        """Return the units of the requested pairs of questions."""
        # In this problem every part is a single question, or a question that is asked twice.
        place = {
            members[0]: g
            for g, entry in enumerate(classes)
            for members in entry.members
            if len(members) == 1
        }
        numbers: Counter[tuple[int, int]] = Counter()
        for a, b in pairs:
            # Pairs of the same two classes, in either order, have one unit.
            first, second = sorted((place[a], place[b]))
            numbers[first, second] += 1
        units = {}
        for (g, h), number in numbers.items():
            shares = np.outer(classes[g].unit.shares, classes[h].unit.shares).reshape(-1)
            units[g, h] = Unit(shares, np.eye(len(shares)), float(number))
        return cls(units)


@dataclass(frozen=True, slots=True, eq=False)
class FormProblem:
    """Classes of parts and requested pairs of them, at one level.

    ratio : agree/disagree. Units of classes have the first numbers; those of pairs follow.
    """

    classes: tuple[PartClass, ...]
    pairs: Pairs
    ratio: float

    @property
    def units(self) -> tuple[Unit, ...]:
        """The units of the objective."""
        return (*(entry.unit for entry in self.classes), *self.pairs.units.values())

    @property
    def numbered_pairs(self) -> Iterable[tuple[int, tuple[int, int], Unit]]:
        """(number of the unit, pair of classes, unit) of all pairs."""
        for u, (pair, unit) in enumerate(self.pairs.units.items(), len(self.classes)):
            yield u, pair, unit

    def information(self, sketch: Sketch) -> dict[int, FloatArray]:
        """Return a component's mean information per report about every unit that it may show."""
        law, structure = laws(self.classes, sketch.structure, self.ratio), sketch.structure
        infos: dict[int, FloatArray] = {}
        for g, draw in structure:
            entry = self.classes[g]
            of_draw = entry.covers[draw.cover].information(
                entry.unit.shares,
                float(law.agree[g][sketch.threshold - 1]),
                float(law.other[g][sketch.threshold - 1]),
            )
            infos[g] = _when_shown(of_draw, draw.pick / entry.size)
        for u, pair, unit in self.numbered_pairs:
            chance = self.both_shown(structure, pair)
            if chance:
                about = self.about_pair(structure, pair, unit, sketch.threshold)
                infos[u] = _when_shown(about, chance)
        return infos

    def about_pair(
        self, structure: Structure, pair: tuple[int, int], unit: Unit, threshold: int
    ) -> FloatArray:
        """Return the information of reports that show both questions about their joint answers."""
        draws = dict(structure)
        first, second = (self.classes[g].covers[draws[g].cover] for g in pair)
        factors = pair_factors(self.classes, structure, self.ratio, pair)
        return pair_information(first, second, factors[:, threshold - 1], unit.shares)

    def both_shown(self, structure: Structure, pair: tuple[int, int]) -> float:
        """Return the probability that a report shows two given questions of these classes."""
        draws, (g, h) = dict(structure), pair
        if g not in draws or h not in draws:
            return 0.0
        size, pick = self.classes[g].size, draws[g].pick
        # Parts are drawn from a class without replacement.
        if g == h:
            return pick * (pick - 1) / (size * (size - 1))
        return pick / size * draws[h].pick / self.classes[h].size

    def meets(self, structure: Structure, g: int) -> bool:
        """Return True if class `g` shares a question with another class of a structure."""
        questions = self.classes[g].questions
        return any(h != g and questions & self.classes[h].questions for h, _ in structure)


def _when_shown(information: FloatArray, chance: float) -> FloatArray:
    """Return the mean information about a unit that a report shows with this probability."""
    result: FloatArray = chance * information + (1 - chance)
    return result
