# SPDX-License-Identifier: Apache-2.0
"""Kinds of surveys that the bench simulates."""

from collections.abc import Iterator
from functools import cache
from itertools import product

from _form.designing import designed, even

from _validity.cells import Cell, Table, first_of, randomised_response

SHARES = (0.005, 0.03, 0.1, 0.2, 0.4)
CHOICES = (2, 3, 6)
SIZES = ((0.5, 10_000), (1.0, 5_000), (2.0, 2_000), (4.0, 500))
"""ε, and reports of a survey that is planned with it."""
RANDOM = (0.0, 0.1, 0.2)
FORMS = ((4, 2, "1"), (10, 2, "2"), (10, 2, "4"), (8, 3, "2"), (6, 6, "4"))
"""Number of questions, choices of each, ε."""
LEAST_SHOWN = 250


def truth(share: float, choices: int) -> tuple[float, ...]:
    """Return shares of which the first is given and the others are equal."""
    return (share, *([(1 - share) / (choices - 1)] * (choices - 1)))


def same_report() -> Iterator[Cell]:
    """Yield surveys with one question, first with items of 4 choices, then of 2 and 5, and ratios."""
    for share, choices, (epsilon, n), random in product(SHARES, CHOICES, SIZES, RANDOM):
        yield _cell(randomised_response(choices, epsilon), n, share, random)
    for item, share, choices, random in product((2, 5), (0.03, 0.2), CHOICES, (0.1, 0.2)):
        yield _cell(randomised_response(choices, 2.0), 2000, share, random, item)
    for share, random in product((0.03, 0.1, 0.2), RANDOM):
        yield Cell(
            randomised_response(6, 2.0),
            2000,
            truth(share, 6),
            random,
            below=(1.0, 1.0, 1.0, 1.0, 1.0, 0.0),
            survey=f"share {100 * share:g} % among the first 5 of 6 choices, ε = 2, n = 2,000",
        )


def few_reports() -> Iterator[Cell]:
    """Yield surveys in which κ̂ is uncertain: many answer at random, or there are few reports."""
    for n, share, random in product((50, 100, 200), (0.1, 0.4), (0.3, 0.5, 0.6)):
        yield _cell(randomised_response(2, 4.0), n, share, random)


def of_forms() -> Iterator[Cell]:
    """Yield surveys that are a form; about 250, and about 1,000, reports show a question."""
    for table, shown, share, random in product(
        forms(), (LEAST_SHOWN, 4 * LEAST_SHOWN), (0.03, 0.1, 0.4), RANDOM
    ):
        # Ten per cent more, so that few surveys have less than the least number.
        yield _cell(table, round(1.1 * shown / table.shown), share, random)


@cache
def forms() -> tuple[Table, ...]:
    """Return the first question of each form."""
    return tuple(
        first_of(
            designed(even([choices] * questions), epsilon)[0].mechanism,
            f"form of {questions} questions of {choices} choices, ε = {epsilon}",
        )
        for questions, choices, epsilon in FORMS
    )


def wrong() -> Iterator[Cell]:
    """Yield surveys of a rare answer in which an assumption does not hold."""
    table, shares = randomised_response(2, 2.0), truth(0.03, 2)
    rarely = (0.2, 0.8)
    yield Cell(table, 2000, shares, 0.1, actual=rarely, survey="20 % of random answers are yes")
    for at_item in (0.05, 0.15):
        survey = f"{100 * at_item:g} % answer the item at random"
        yield Cell(table, 2000, shares, 0.1, at_item=at_item, survey=survey)


def _cell(table: Table, n: int, share: float, random: float, choices: int = 4) -> Cell:
    item = "" if choices == 4 else f", item of {choices} choices"
    survey = f"{100 * share:g} %, {table.name}, n = {n:,}{item}"
    shares = truth(share, table.mechanism.answers)
    return Cell(table, n, shares, random, choices, survey=survey)
