# SPDX-License-Identifier: Apache-2.0
"""Surveys whose people answer a question in private and an instructed item in the clear."""

from dataclasses import dataclass, field
from functools import cached_property
from math import exp

import numpy as np
from frankly_design.kinds.decoder import decoder, shares
from frankly_design.kinds.parts import chance_shown, part_table
from frankly_design.numeric.arrays import FloatArray
from frankly_protocol.mechanisms import AgreementMechanism, DenseMechanism
from numpy.typing import NDArray

Counts = NDArray[np.int64]
_BITS = 40


@dataclass(frozen=True)
class Table:
    """The mechanism of one question. shown : share of the reports that show the question."""

    name: str
    mechanism: DenseMechanism
    shown: float = 1.0

    @cached_property
    def law(self) -> FloatArray:
        """Return Q(y|x), shape (answers, symbols)."""
        rows = np.array([[float(w) for w in row] for row in self.mechanism.weights])
        return np.asarray(rows / float(self.mechanism.denominator), dtype=np.float64)

    @cached_property
    def decoder(self) -> FloatArray:
        """Return the scores of the shares, shape (answers, symbols)."""
        return decoder(self.mechanism, shares(self.mechanism.answers), None).floats()


def randomised_response(choices: int, epsilon: float) -> Table:
    """Return a block of its own for one question."""
    off = int(2**_BITS / (exp(epsilon) + choices - 1))
    on = 2**_BITS - (choices - 1) * off
    rows = tuple(tuple(on if x == y else off for y in range(choices)) for x in range(choices))
    return Table(f"{choices} choices, ε = {epsilon:g}", DenseMechanism(_BITS, rows))


def first_of(form: AgreementMechanism, name: str) -> Table:
    """Return the first question of a form as a table."""
    return Table(name, part_table(form, (0,)), float(chance_shown(form, (0,))))


@dataclass(frozen=True)
class Cell:
    """One kind of survey.

    truth : shares of the answers of people who read the questions. random, at_item : shares who
    answer the question and the item at random; the smaller group is part of the larger one.
    choices : of the item. guesses : law of the random answers that the estimate assumes, equal
    shares if None; actual : their true law, the same if None. above, below : the figure is the
    ratio of these weighted sums of the shares; the share of the first answer by default. survey :
    what surveys have in common that differ only in the people who answer at random.
    """

    table: Table
    n: int
    truth: tuple[float, ...]
    random: float
    choices: int = 4
    at_item: float | None = None
    guesses: tuple[float, ...] | None = None
    actual: tuple[float, ...] | None = None
    above: tuple[float, ...] | None = None
    below: tuple[float, ...] | None = None
    survey: str = field(default="", compare=False)

    @property
    def name(self) -> str:
        """Return a description of the survey and of the people who answer at random."""
        return f"{self.survey}, {100 * self.random:g} % at random"

    @property
    def answers(self) -> int:
        """Return the number of choices of the question."""
        return self.table.mechanism.answers

    @cached_property
    def weights(self) -> FloatArray:
        """Return the weights of numerator and denominator, shape (2, answers)."""
        first = [1.0] + [0.0] * (self.answers - 1)
        return np.array([self.above or first, self.below or [1.0] * self.answers])

    @cached_property
    def assumed(self) -> FloatArray:
        """Return the assumed law of random answers."""
        return np.array(self.guesses or [1 / self.answers] * self.answers)

    @property
    def theta(self) -> float:
        """Return the true value of the figure."""
        a, b = self.weights @ np.array(self.truth)
        return float(a / b)

    @property
    def relative(self) -> float:
        """Return the relative standard error of κ̂."""
        item_random = self.random if self.at_item is None else self.at_item
        fails = item_random * (1 - 1 / self.choices)
        factor = self.choices / (self.choices - 1)
        return float(np.sqrt(fails * (1 - fails) / self.n) * factor / (1 - item_random))

    def kinds(self) -> FloatArray:
        """Return the chances of a report: (passed, symbol), (failed, symbol), and without symbol."""
        item_random = self.random if self.at_item is None else self.at_item
        both = min(self.random, item_random)
        only_item, only_question = item_random - both, self.random - both
        read = np.array(self.truth) @ self.table.law
        guess = np.array(self.actual or self.assumed) @ self.table.law
        neither, lucky = 1 - both - only_item - only_question, 1 / self.choices
        passed = (neither + lucky * only_item) * read + (only_question + lucky * both) * guess
        failed = (1 - lucky) * (only_item * read + both * guess)
        shown = self.table.shown
        hidden = (1 - shown) * np.array([passed.sum(), failed.sum()])
        return np.concatenate([shown * passed, shown * failed, hidden])

    def draw(self, surveys: int, rng: np.random.Generator) -> "Drawn":
        """Return the counts of some surveys."""
        chances = np.clip(self.kinds(), 0, None)
        counts = rng.multinomial(self.n, chances / chances.sum(), size=surveys)
        symbols = self.table.law.shape[1]
        passed, failed = counts[:, :symbols], counts[:, symbols : 2 * symbols]
        return Drawn(passed, failed, failed.sum(axis=1) + counts[:, -1])


@dataclass(frozen=True)
class Drawn:
    """Counts of symbols of those who passed and failed, shape (surveys, symbols), and all failures."""

    passed: Counts
    failed: Counts
    failures: Counts
