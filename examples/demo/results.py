# SPDX-License-Identifier: Apache-2.0
"""Comparison of the analyst's estimates with the respondents' true answers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import comb

from frankly_analyst import Estimate
from frankly_design.estimate.scales import MEDIAN

from examples.demo.people import Person, counts, joint_counts


@dataclass(frozen=True, slots=True)
class Compared:
    """One figure: its estimate with an interval, and the truth among the respondents."""

    row: Estimate
    truth: float

    @property
    def inside(self) -> bool:
        """True if the truth lies in the interval; an interval without ends contains every truth."""
        low, high = self.row.low, self.row.high
        return low is None or high is None or low <= self.truth <= high


@dataclass(frozen=True, slots=True)
class Question:
    """All figures of one question, or all cells of the joint table of several."""

    id: str
    text: str
    rows: tuple[Compared, ...]

    @property
    def checks(self) -> tuple[Compared, ...]:
        """The rows without redundancy: the two shares of a yes/no question sum to 1."""
        return self.rows[:1] if len(self.rows) == 2 else self.rows


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as it was asked: its text, the ids of its choices in order, and their numbers, if any."""

    text: str
    choices: tuple[str, ...]
    numbers: tuple[float, ...] = ()


def compare(
    rows: Iterable[Estimate], respondents: Sequence[Person], asked: Mapping[str, Asked]
) -> list[Question]:
    """Compare every estimate with the truth, question by question in the survey's order.

    rows : shares of choices; or of each choice with all before it, in order, and the median.
    """
    by_question: dict[str, list[Estimate]] = {}
    for row in rows:
        by_question.setdefault(row.question, []).append(row)
    questions = []
    for question, estimates in by_question.items():
        truths = _truths([row.choice for row in estimates], respondents, question, asked[question])
        pairs = zip(estimates, truths, strict=True)
        text = asked[question].text
        questions.append(Question(question, text, tuple(Compared(row, n) for row, n in pairs)))
    return questions


def _truths(
    figures: Sequence[str], respondents: Sequence[Person], question: str, asked: Asked
) -> list[float]:
    """Return the true value of each figure of a question."""
    tally = counts(respondents, question, asked.choices)
    shares = dict(zip(asked.choices, (n / len(respondents) for n in tally), strict=True))
    up_to = list(accumulate(tally))
    truths = []
    for place, figure in enumerate(figures):
        if figure == MEDIAN:
            # The first number that at least half of the people do not exceed.
            half = next(i for i, n in enumerate(up_to) if 2 * n >= len(respondents))
            truths.append(asked.numbers[half])
        else:
            truths.append(shares.get(figure, up_to[place] / len(respondents)))
    return truths


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
