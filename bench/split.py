# SPDX-License-Identifier: Apache-2.0
"""Simulate split ballots, surveys with two arms, with as many reports as their plan needs.

Items: 1 size of the two-sided test at 5 % that the arms' shares are equal; 2 its power less the
planned one, which takes into account that the test's standard error is that of equal shares, beside
the planned power; 3 its power less 80 %, for which the plan by the variances alone is made; 4 size of
the exact test that devices drew the arms with the chances of the document. Ballots are drawn as
counts from the exact law of the reports. The server's own code tests some of each kind; any
difference above 1e-9 ends the bench. Exits 1 if a demand is not met.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `tests` is not an installed package
from _design.row import Row
from _validity import split
from _validity.cells import Counts
from _validity.estimates import TOLERANCE
from _validity.rows import printed, row_of
from _validity.split import LEVEL, Ballot

BALLOTS, CHECKED = 20_000, 5
SIZE, POWER = (4.3, 5.7), (-1.5, 1.5)
"""Demands on the size in per cent, and on the power less the planned one in points."""
EXACT = (0.0, 5.7)
"""Demand on the size of the exact test, which is at most 5 %."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, simulate and print."""
    printed("split", __doc__, BALLOTS, measured, arguments)


def measured(runs: int) -> Iterator[Row]:
    """Yield the rows of every item. runs : simulated ballots of each kind."""
    rng = np.random.default_rng(1)
    for ballot in _ballots():
        yield from _of_ballot(ballot, runs, rng)


def _ballots() -> Iterator[Ballot]:
    yield from split.ballots()


def _of_ballot(ballot: Ballot, runs: int, rng: np.random.Generator) -> Iterator[Row]:
    name = f"{ballot.name}, n = {ballot.n:,}"
    start = time.process_time()
    drawn = ballot.without_difference().draw(runs, rng)
    size = 100 * _rejected(ballot, drawn)
    yield row_of(1, name, size, SIZE, time.process_time() - start, unit=" %")
    start = time.process_time()
    drawn = ballot.draw(runs, rng)
    found, planned = 100 * _rejected(ballot, drawn), 100 * ballot.power_of_test
    seconds = time.process_time() - start
    yield row_of(2, name, found - planned, POWER, seconds, "planned", planned, " points")
    yield row_of(3, name, found - 100 * ballot.power, None, seconds)
    start = time.process_time()
    exact = 100 * split.size_rejected(ballot, drawn)
    yield row_of(4, name, exact, EXACT, time.process_time() - start, unit=" %")


def _rejected(ballot: Ballot, drawn: tuple[Counts, Counts]) -> float:
    """Return the share of ballots whose test rejects equal shares."""
    checked = min(CHECKED, len(drawn[0]))
    if (difference := max(split.differences(ballot, drawn, checked))) > TOLERANCE:
        sys.exit(f"{ballot.name}: the server's p-value differs by {difference:g}")
    return float(np.mean(split.p_values(ballot, drawn) < LEVEL))


if __name__ == "__main__":
    main()
