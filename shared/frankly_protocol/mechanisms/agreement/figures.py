# SPDX-License-Identifier: Apache-2.0
"""Figures of a form: its level, its sizes, what a guess gains, and what an explanation says of it."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import comb, prod

from frankly_protocol.mechanisms.agreement.component import Component
from frankly_protocol.mechanisms.agreement.cover import Cover, gain
from frankly_protocol.mechanisms.agreement.limits import CELLS_PER_SCORE
from frankly_protocol.mechanisms.base import Sentence, Shape
from frankly_protocol.mechanisms.fit import SILENT, Fit, Range, enumerated, symmetric


class FormFigures:
    """What follows from the parameters of a form, without a draw."""

    bits: int
    agree: int
    disagree: int
    choices: tuple[int, ...]
    parts: tuple[tuple[int, ...], ...]
    components: tuple[Component, ...]

    @property
    def level(self) -> Fraction:
        """e^ε of the whole report: agree/disagree."""
        return Fraction(self.agree, self.disagree)

    @property
    def answers(self) -> int:
        """The number of joint answers to all questions; may be astronomically large."""
        return prod(self.choices)

    @property
    def reports(self) -> int:
        return sum(
            prod(comb(len(pool.parts), pool.pick) for pool in component.pools)
            * prod(pool.cover.sets for pool in component.slots)
            for component in self.components
        )

    @property
    def cells(self) -> int:
        """The number of cells of the form's tables; the time to explain the form is proportional to it.

        For each pool, its sets times the sum of its cover's answers and of the choices of all
        questions in its parts of several questions; for each component, eight times its slots times
        the scores from 0 to the threshold.
        """
        cells = 0
        for component in self.components:
            slots = sum(pool.pick for pool in component.pools)
            cells += CELLS_PER_SCORE * slots * (component.threshold + 1)
            for pool in component.pools:
                joint = (self.parts[part] for part in pool.parts if len(self.parts[part]) > 1)
                choices = sum(self.choices[question] for part in joint for question in part)
                cells += pool.cover.sets * (pool.cover.answers + choices)
        return cells

    @property
    def sends_unchanged(self) -> bool:
        """False: every report is possible under every truth."""
        return False

    @property
    def questions_drawn(self) -> tuple[int, int]:
        """The smallest and the largest number of questions that a report is about."""
        numbers = []
        for component in self.components:
            sizes = [sorted(len(self.parts[i]) for i in pool.parts) for pool in component.pools]
            pairs = list(zip(sizes, component.pools, strict=True))
            # The shortest parts of each pool, and below the longest ones.
            numbers.append(sum(sum(lengths[: pool.pick]) for lengths, pool in pairs))
            numbers.append(sum(sum(lengths[-pool.pick :]) for lengths, pool in pairs))
        return min(numbers), max(numbers)

    @property
    def guesses(self) -> tuple[Fraction, ...]:
        """For each question, the chance that the best guess from a report is right.

        All joint answers are assumed to be equally likely.
        """
        chances = [Fraction(1, choices) for choices in self.choices]
        for component in self.components:
            mean = self.mean_weight(component)
            for pool, (agreeing, other) in zip(component.pools, component.others, strict=True):
                # All slots of a pool are equivalent, and each of its parts is drawn equally often.
                drawn = Fraction(component.chance * pool.pick, len(pool.parts) << self.bits)
                sets = pool.cover.inside + pool.cover.outside
                added = Fraction((self.agree - self.disagree) * (agreeing - other) * sets, mean)
                gains: dict[tuple[int, int], Fraction] = {}
                for part in pool.parts:
                    for question in self.parts[part]:
                        place = self._place(part, question)
                        if place not in gains:
                            gains[place] = gain(pool.cover, *place)
                        chances[question] += drawn * added * gains[place]
        return tuple(chances)

    @property
    def easiest(self) -> int:
        """The position of the question at which the best guess from a report is right most often.

        Of several such questions, it is the first of those with the most choices.
        """
        # Compared by the chance, not by its ratio to that of a blind guess: no other answer is
        # guessed more often.
        pairs = list(zip(self.guesses, self.choices, strict=True))
        return pairs.index(max(pairs))

    @property
    def guess(self) -> Fraction:
        """Chance that the best guess at the `easiest` question is right, under a uniform prior."""
        return self.guesses[self.easiest]

    @property
    def blind_guess(self) -> Fraction:
        """Chance that a guess at the `easiest` question is right without a report."""
        return Fraction(1, self.choices[self.easiest])

    @property
    def sentences(self) -> Iterator[Sentence]:
        """Sentences on the draw of a report about many questions."""
        (low, high), every = self.questions_drawn, len(self.choices)
        if low < every:
            name = "picked" if low == high else "picked_range"
            numbers = {"n": low, "low": low, "high": high, "all": every}
            yield Sentence(name, numbers, is_draw=True)
        yield Sentence("sets", ratios={"ratio": self.level})

    @property
    def symbol_shape(self) -> Shape:
        sizes = [1 + 2 * len(component.slots) for component in self.components]
        low, high = min(sizes), max(sizes)
        name = "numbers" if low == high else "numbers_range"
        return (Sentence(name, {"n": high, "low": low, "high": high}),)

    def _place(self, part: int, question: int) -> tuple[int, int]:
        """Return the number of choices of a question, and of joint answers to later ones."""
        after = prod(self.choices[q] for q in self.parts[part] if q > question)
        return self.choices[question], after

    def answers_of(self, part: int) -> int:
        """Return the number of joint answers of a part."""
        return prod(self.choices[question] for question in self.parts[part])

    def mean_weight(self, component: Component) -> int:
        """Return the total weight of a component's outcomes, which is the same for every truth."""
        agreeing, total = component.tails[0][0], component.totals[0]
        return self.agree * agreeing + self.disagree * (total - agreeing)

    def fits(self, _sizes: Sequence[int], /) -> list[Fit | None]:
        found: list[Fit | None] = [SILENT] * len(self.choices)
        for component in self.components:
            others, mean = component.totals[0], self.mean_weight(component)
            for pool, (agreeing, other) in zip(component.pools, component.others, strict=True):
                rest = others // (pool.cover.inside + pool.cover.outside)
                # Weight of one set per unit of its own weight, if it holds the truth and if not.
                held, missed = (
                    self.agree * n + self.disagree * (rest - n) for n in (agreeing, other)
                )
                drawn = Fraction(component.chance * pool.pick, len(pool.parts) << self.bits)
                of_place: dict[tuple[int, int], Fit | None] = {}
                for part in pool.parts:
                    for q in self.parts[part]:
                        place = self._place(part, q)
                        if place not in of_place:
                            of_place[place] = _slot(pool.cover, place, held, missed, mean)
                        found[q] = _added(found[q], of_place[place], drawn)
        return found


def _slot(cover: Cover, place: tuple[int, int], held: int, missed: int, mean: int) -> Fit | None:
    """Return the Fit of one drawn part with the given cover."""
    choices, later = place
    if cover.size is not None and choices == cover.answers:
        return symmetric(choices, cover.size, Fraction(cover.inside * held, mean))
    columns = (
        [weight * (held if mask >> x & 1 else missed) for x in range(cover.answers)]
        for mask, weight in zip(cover.masks, cover.weights, strict=True)
    )
    return enumerated(columns, choices, later, mean)


def _added(fit: Fit | None, slot: Fit | None, drawn: Fraction) -> Fit | None:
    """Return a Fit with that of one part that is drawn with a given chance."""
    if fit is None or slot is None:
        return None

    def plus(total: Range, own: Range) -> Range:
        return total[0] + drawn * own[0], total[1] + drawn * own[1]

    silent = plus(fit.silent, (slot.silent[0] - 1, slot.silent[1] - 1))
    is_joint = fit.is_joint or slot.is_joint
    return Fit(plus(fit.own, slot.own), plus(fit.other, slot.other), silent, is_joint)
