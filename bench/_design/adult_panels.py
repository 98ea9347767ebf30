# SPDX-License-Identifier: Apache-2.0
"""Item 2, Adult: every panel of Funnel Figure 6, and a larger pair of columns, both ways round.

If both methods take less than half a second, the times are the least CPU seconds of several
alternating runs in one process, because starting a process takes longer than such a panel.
"""

import time
from collections.abc import Callable, Iterator
from fractions import Fraction

from frankly_server.design import Prior
from frankly_server.design.notions import promises

from _design import adult, enumeration
from _design.enumeration import Timed
from _design.measured import GAP, Measured, most_informative
from _design.row import Progress, Row

SECRETS = ("marital-status", "occupation")
ANSWERS = ("education", "relationship", "sex", "race")
QUICK_ANSWERS = ("relationship", "sex")
EPSILONS = tuple(Fraction(k, 4) for k in range(1, 9))
QUICK_EPSILONS = (Fraction(1, 2),)
LARGE = (("native-country", "occupation"), ("occupation", "native-country"))
LARGE_EPSILONS = (Fraction(1, 2), Fraction(1), Fraction(2))
LIMIT_S, LARGE_LIMIT_S = 2.0, 20.0
SLOWER = 1.5
"""Largest allowed ratio of our seconds to those of the enumeration, if both are fast."""
_QUICK_S, _TURNS = 0.5, 9
_PATIENCE = 10  # a case that misses its limit still gets a row with its measured time


def rows(quick: bool, progress: Progress) -> Iterator[Row]:
    """Yield a line per pair of columns and level. Raises adult.DataMissingError."""
    for secret in SECRETS:
        for answer in QUICK_ANSWERS if quick else ANSWERS:
            for epsilon in QUICK_EPSILONS if quick else EPSILONS:
                progress(f"Adult, {secret} × {answer} at ε = {float(epsilon):g}")
                yield _row(secret, answer, epsilon, LIMIT_S, beside=True)
    if quick:
        return
    for secret, answer in LARGE:
        for epsilon in LARGE_EPSILONS:
            progress(f"Adult, {secret} × {answer} at ε = {float(epsilon):g}")
            yield _row(secret, answer, epsilon, LARGE_LIMIT_S, beside=False)


def _row(secret: str, answer: str, epsilon: Fraction, limit_s: float, *, beside: bool) -> Row:
    prior = adult.prior(secret, answer)
    run = most_informative(prior, promises.promise("lip", prior, epsilon), _PATIENCE * limit_s)
    listed = enumeration.capped("lip", prior, float(epsilon)) if beside else None
    ours, theirs = run.seconds, listed.seconds if listed else None
    limit, quick = f"gap ≤ 1e-6, ≤ {limit_s:g} s", False
    if listed and listed.optimum and max(ours, listed.seconds) < _QUICK_S:
        ours, theirs = _by_turns(prior, epsilon)
        limit, quick = f"{limit}, ≤ {SLOWER:g} × the vertices'", True
    return Row(
        item=2,
        case=f"Adult {secret}({prior.secrets}) × {answer}({prior.answers}), lip ε={float(epsilon):g}",
        value=run.design.information,
        bound=run.design.bound,
        gap=run.design.gap,
        seconds=ours,
        baseline=f"vertices of Δ (Funnel Thm 3): {listed.words}" if listed else "",
        baseline_value=listed.optimum.information if listed and listed.optimum else None,
        baseline_seconds=theirs,
        limit=limit,
        holds=run.certified
        and run.seconds <= limit_s
        and _not_below(run, listed)
        and (not quick or theirs is None or ours <= SLOWER * theirs),
        capped=listed is not None and listed.capped,
    )


def _by_turns(prior: Prior, epsilon: Fraction) -> tuple[float, float]:
    """Return the least CPU seconds of a design and of the enumeration."""
    claim = promises.promise("lip", prior, epsilon)
    level, joint = float(epsilon), enumeration.probabilities(prior)
    runs = [
        (
            _cpu_s(lambda: most_informative(prior, claim, _PATIENCE)),
            _cpu_s(lambda: enumeration.lip(joint, level, level)),
        )
        for _ in range(_TURNS)
    ]
    return min(ours for ours, _ in runs), min(theirs for _, theirs in runs)


def _cpu_s(run: Callable[[], object]) -> float:
    started = time.process_time()
    run()
    return time.process_time() - started


def _not_below(run: Measured, listed: Timed | None) -> bool:
    """Return True unless enumeration finds a better optimum (erratum 9.17: it may be worse)."""
    return (
        listed is None
        or listed.optimum is None
        or listed.optimum.information <= run.design.information + GAP
    )
