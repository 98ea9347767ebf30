# SPDX-License-Identifier: Apache-2.0
"""Comparison of the analyst's estimates with the respondents' true answers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb

from frankly_analyst import Estimate

from examples.demo.people import Person, counts, joint_counts


@dataclass(frozen=True, slots=True)
class Compared:
    """One choice: its estimate with an interval, and the true share among the respondents."""

    row: Estimate
    truth: float

    @property
    def inside(self) -> bool:
        """True if the truth lies in the interval; an interval without ends contains every truth."""
        low, high = self.row.low, self.row.high
        return low is None or high is None or low <= self.truth <= high


@dataclass(frozen=True, slots=True)
class Question:
    """All choices of one question, or all cells of the joint table of several."""

    id: str
    text: str
    rows: tuple[Compared, ...]

    @property
    def checks(self) -> tuple[Compared, ...]:
        """The rows without redundancy: the two shares of a yes/no question sum to 1."""
        return self.rows[:1] if len(self.rows) == 2 else self.rows


def compare(
    rows: Iterable[Estimate], respondents: Sequence[Person], texts: Mapping[str, str]
) -> list[Question]:
    """Compare every estimated share with the truth, question by question in the survey's order.

    texts : text of each question by id.
    """
    by_question: dict[str, list[Estimate]] = {}
    for row in rows:
        by_question.setdefault(row.question, []).append(row)
    questions = []
    for question, estimates in by_question.items():
        truths = counts(respondents, question, [row.choice for row in estimates])
        pairs = zip(estimates, truths, strict=True)
        questions.append(
            Question(
                question,
                texts[question],
                tuple(Compared(row, n / len(respondents)) for row, n in pairs),
            )
        )
    return questions


def compare_table(
    rows: Sequence[Estimate],
    respondents: Sequence[Person],
    questions: Sequence[str],
    choices: Sequence[Sequence[str]],
) -> Question:
    """Compare every cell of a joint table with the truth; cells are in row-major order."""
    truths = joint_counts(respondents, questions, choices)
    cells = tuple(Compared(row, n / len(respondents)) for row, n in zip(rows, truths, strict=True))
    return Question(" × ".join(questions), f"Together: {' × '.join(questions)}", cells)


def verdict(questions: Sequence[Question], level: float = 0.95) -> tuple[int, int, float]:
    """Return (truths inside, truths checked, probability of so few or fewer by chance).

    The probability is binomial, and approximate, because shares of one question are correlated.
    """
    checked = [row for question in questions for row in question.checks]
    inside, n = sum(row.inside for row in checked), len(checked)
    chance = sum(comb(n, k) * level**k * (1 - level) ** (n - k) for k in range(inside + 1))
    return inside, n, chance
