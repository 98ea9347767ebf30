# SPDX-License-Identifier: Apache-2.0
"""Item 6, information under LIP at the slowest sizes: certified, in CPU seconds.

The time limit is in CPU seconds, so that other work on the machine does not end a search.
"""

import time
from collections.abc import Iterator
from fractions import Fraction

from frankly_design.engine import DesignRequest, design
from frankly_design.notions import promises
from frankly_design.tables.limits import Limits

from _design import priors
from _design.designs import GAP
from _design.row import Progress, Row

CERTIFIED, OPEN = (60, 20), (20, 60)
QUICK_CERTIFIED = (20, 10)
SEEDS = (1, 2)
LIMIT_S, OPEN_GAP = 60.0, 0.05
EPSILON = Fraction(1)


def rows(quick: bool, progress: Progress) -> Iterator[Row]:
    """Yield a line per random prior; optima with as many answers as secrets are only bounded."""
    for secrets, answers in (QUICK_CERTIFIED,) if quick else (CERTIFIED, OPEN):
        largest = OPEN_GAP if (secrets, answers) == OPEN else GAP
        for seed in SEEDS:
            progress(f"{secrets}×{answers}, prior {seed}")
            yield _row(secrets, answers, seed, largest)


def _row(secrets: int, answers: int, seed: int, largest: float) -> Row:
    prior = next(priors.dirichlet(secrets, answers, seed=seed))
    start = time.process_time()
    designed = design(
        DesignRequest(
            prior,
            (promises.promise("lip", prior, EPSILON),),
            objective="information",
            accept_identity=True,
            accept_unidentifiable=True,
            limits=Limits.within(LIMIT_S, time.process_time, gap=GAP),
        )
    )
    gap = designed.gap
    return Row(
        item=6,
        case=f"lip ε={EPSILON}, {secrets}×{answers}, prior {seed}",
        value=designed.information,
        bound=designed.bound,
        gap=gap,
        seconds=time.process_time() - start,
        baseline="",
        baseline_value=None,
        baseline_seconds=None,
        limit=f"gap ≤ {largest:g}, ≤ {LIMIT_S:g} s of CPU time",
        holds=gap is not None and gap <= largest,
    )
