# SPDX-License-Identifier: Apache-2.0
"""Item 3, two levels of lift: the synthetic set-up of Lift §3.1.3, 17 answers and 5 secrets."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import islice

from frankly_server.design import Prior
from frankly_server.design.notions import promises

from _design import priors
from _design.measured import Measured, Summary, most_informative
from _design.row import Progress, Row

SECRETS, ANSWERS, PRIORS, QUICK_PRIORS = 5, 17, 20, 1
EPSILONS = ("0.25", "0.5", "1", "2", "4", "8")
QUICK_EPSILONS = ("2", "8")
SPLITS = ("0.35", "0.5", "0.65")
LIMIT_S, MEDIAN_S = 20.0, 0.3


def rows(quick: bool, progress: Progress) -> Iterator[Row]:
    """Yield a line per level and split λ (ε_l = λε, ε_u = (1 − λ)ε), and one over all."""
    drawn = list(
        islice(priors.dirichlet(SECRETS, ANSWERS, seed=3), QUICK_PRIORS if quick else PRIORS)
    )
    all_runs: list[Measured] = []
    for epsilon in QUICK_EPSILONS if quick else EPSILONS:
        for split in SPLITS:
            progress(f"alip at ε = {epsilon}, λ = {split}")
            runs = [_designed(prior, Fraction(epsilon), Fraction(split)) for prior in drawn]
            all_runs += runs
            case = f"alip ε={epsilon} λ={split}, {SECRETS}×{ANSWERS}, {len(runs)} priors"
            yield _row(case, Summary.of(runs), "every gap ≤ 1e-6")
    if not quick:  # the median of only a few levels is not meaningful
        case = f"alip, all {len(all_runs)} designs"
        yield _row(
            case, Summary.of(all_runs), f"every gap ≤ 1e-6, median ≤ {MEDIAN_S:g} s", MEDIAN_S
        )


def _designed(prior: Prior, epsilon: Fraction, split: Fraction) -> Measured:
    return most_informative(
        prior, promises.two_sided(prior, split * epsilon, (1 - split) * epsilon), LIMIT_S
    )


def _row(case: str, summary: Summary, limit: str, median_s: float = float("inf")) -> Row:
    return Row(
        item=3,
        case=f"{case}: means, largest gap, median s (longest {summary.most_s:.2f})",
        value=summary.value,
        bound=summary.bound,
        gap=summary.gap,
        seconds=summary.median_s,
        baseline="",
        baseline_value=None,
        baseline_seconds=None,
        limit=limit,
        holds=summary.all_certified and summary.median_s <= median_s,
    )
