# SPDX-License-Identifier: Apache-2.0
"""Leakage of a whole report, computed by brute force over secrets, answers, strata and reports.

This module shares no code with `frankly_protocol.audit`: it sums every P(y | s, z) cell by cell.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import chain, combinations, permutations, product
from math import lcm

from frankly_protocol.mechanisms import AnyMechanism

from tests.frankly_protocol.audit.definitions import table
from tests.frankly_protocol.audit.worlds import Cell, Shape, World

Ratio = Fraction | None
"""A ratio; None is infinite."""


@dataclass(frozen=True)
class Rows:
    """Laws of the report under each of several hypotheses.

    masses : weight of each hypothesis. laws : integers P(y | hypothesis) · scale, for every y.
    """

    masses: tuple[int, ...]
    laws: tuple[tuple[int, ...], ...]
    scale: int

    @property
    def average(self) -> list[int]:
        """P(y) · scale · Σ masses."""
        return [
            sum(n * w for n, w in zip(self.masses, column, strict=True))
            for column in zip(*self.laws, strict=True)
        ]

    def odds(self) -> Ratio:
        """Return the largest P(y|s) / P(y|t)."""
        return _largest((max(column), min(column)) for column in zip(*self.laws, strict=True))

    def lift(self) -> Ratio:
        """Return the largest P(y|s) / P(y) or P(y) / P(y|s), which equals that of P(s|y) and P(s)."""
        up, down = self.growth(), self.shrinkage()
        return None if up is None or down is None else max(up, down)

    def growth(self) -> Ratio:
        """Return the largest P(y|s) / P(y)."""
        total, columns = sum(self.masses), zip(*self.laws, strict=True)
        return _largest(
            (max(column) * total, mean) for column, mean in zip(columns, self.average, strict=True)
        )

    def shrinkage(self) -> Ratio:
        """Return the largest P(y) / P(y|s)."""
        total, columns = sum(self.masses), zip(*self.laws, strict=True)
        return _largest(
            (mean, min(column) * total) for column, mean in zip(columns, self.average, strict=True)
        )

    def odds_excess(self, E: Fraction) -> Fraction:
        """Return the least δ with P(T|s) ≤ E·P(T|t) + δ for every set T of reports."""
        return max(
            (self._excess(a, b, E) for a, b in permutations(self.laws, 2)), default=Fraction(0)
        )

    def lift_excess(self, E: Fraction) -> Fraction:
        """Return the least δ with P(T|s) ≤ E·P(T) + δ and P(T) ≤ E·P(T|s) + δ for every set T."""
        total = sum(self.masses)
        excesses = [Fraction(0)]
        for law in self.laws:
            scaled = [w * total for w in law]
            excesses += [
                self._excess(scaled, self.average, E) / total,
                self._excess(self.average, scaled, E) / total,
            ]
        return max(excesses)

    def posterior(self, s: int) -> Fraction:
        """Return the largest P(hypothesis number s | y)."""
        joint_masses = [self.masses[s] * w for w in self.laws[s]]
        return max(Fraction(n, d) for n, d in zip(joint_masses, self.average, strict=True) if d)

    def _excess(self, a: Sequence[int], b: Sequence[int], E: Fraction) -> Fraction:
        p, q = E.as_integer_ratio()
        return Fraction(
            sum(max(0, q * n - p * d) for n, d in zip(a, b, strict=True)), q * self.scale
        )


class Leakage:
    """Leakage of a report on some blocks in one world, given the public answers."""

    def __init__(self, shape: Shape, mechanisms: Sequence[AnyMechanism], world: World) -> None:
        self.shape, self.world = shape, world
        self._columns = [_columns(mechanism) for mechanism in mechanisms]
        self._chances: dict[tuple[int, ...], list[int]] = {}
        self._secrets: dict[object, list[tuple[tuple[int, ...], Rows]]] = {}

    def about(
        self, r: int, i: int | None = None, fixed: tuple[int, ...] = ()
    ) -> list[tuple[tuple[int, ...], Rows]]:
        """Return (possible values of secret r, rows of these values) for every stratum that occurs.

        i, fixed : if set, return a pair for every stratum and every joint answer to these questions
        of block i.
        """
        key = (r, i, fixed)
        if key not in self._secrets:
            self._secrets[key] = self._by(
                lambda c: (c[2], self._answers_to(c, i, fixed)), lambda c: c[0][r]
            )
        return self._secrets[key]

    def beside(self, r: int, i: int) -> list[tuple[tuple[int, ...], Rows]]:
        """Return `about` given the answers to each subset of the questions of block i."""
        places = range(len(self.shape.questions[i]))
        subsets = chain.from_iterable(combinations(places, k) for k in range(len(places) + 1))
        return [pair for fixed in subsets for pair in self.about(r, i, fixed)]

    @property
    def answers(self) -> Rows:
        """Laws of the report for every joint answer, including answers that no respondent has."""
        every = list(product(*(range(len(columns[0])) for columns in self._columns)))
        laws = tuple(tuple(self.chances(x)) for x in every)
        return Rows((1,) * len(every), laws, sum(laws[0]))

    def strata(self, r: int) -> Rows:
        """Return the stratum's laws given each value of secret r, as if the stratum were the report."""
        strata, held = sorted({z for _, _, z in self.world}), range(self.shape.secrets[r])
        counts = {(s, z): 0 for s in held for z in strata}
        for (s, _, z), n in self.world.items():
            counts[s[r], z] += n
        masses = tuple(sum(counts[s, z] for z in strata) for s in held)
        scale = lcm(*masses)
        laws = tuple(tuple(counts[s, z] * scale // masses[s] for z in strata) for s in held)
        return Rows(masses, laws, scale)

    def chances(self, x: tuple[int, ...]) -> list[int]:
        """Return the probability of every report given the answers, times a constant."""
        if x not in self._chances:
            rows = [
                [column[answer] for column in columns]
                for answer, columns in zip(x, self._columns, strict=True)
            ]
            law = [1]
            for row in rows:
                law = [a * b for a in law for b in row]
            self._chances[x] = law
        return self._chances[x]

    def _answers_to(self, cell: Cell, i: int | None, fixed: tuple[int, ...]) -> tuple[int, ...]:
        if i is None or not fixed:
            return ()
        answers, x = [], cell[1][i]
        for size in reversed(self.shape.questions[i]):
            x, answer = divmod(x, size)
            answers.append(answer)
        answers.reverse()
        return tuple(answers[j] for j in fixed)

    def _by(
        self, condition: Callable[[Cell], object], hypothesis: Callable[[Cell], int]
    ) -> list[tuple[tuple[int, ...], Rows]]:
        sums: dict[object, dict[int, tuple[int, list[int]]]] = {}
        for cell, n in self.world.items():
            rows = sums.setdefault(condition(cell), {})
            mass, law = rows.get(hypothesis(cell), (0, [0] * len(self.chances(cell[1]))))
            rows[hypothesis(cell)] = (
                mass + n,
                [a + n * w for a, w in zip(law, self.chances(cell[1]), strict=True)],
            )
        return [_normal(rows) for rows in sums.values()]


def _normal(rows: dict[int, tuple[int, list[int]]]) -> tuple[tuple[int, ...], Rows]:
    values = tuple(sorted(rows))
    masses = tuple(rows[s][0] for s in values)
    common = lcm(*masses)
    laws = tuple(tuple(w * (common // rows[s][0]) for w in rows[s][1]) for s in values)
    return values, Rows(masses, laws, sum(laws[0]))


@cache
def _columns(mechanism: AnyMechanism) -> tuple[tuple[int, ...], ...]:
    """Return every report's probabilities by answer, times a constant."""
    columns = table(mechanism).values()
    scale = lcm(*(chance.denominator for column in columns for chance in column))
    return tuple(tuple(int(chance * scale) for chance in column) for column in columns)


def _largest(ratios: Iterator[tuple[int, int]]) -> Ratio:
    n, d = 1, 1
    for up, down in ratios:
        if up * d > n * down:
            n, d = up, down
        if not d:
            return None
    return Fraction(n, d)
