# SPDX-License-Identifier: Apache-2.0
"""Item 4, too large for enumeration: 200 answers, 15 secrets, compared with subset random response (Lift Figure 10)."""

import time
from collections.abc import Iterator
from fractions import Fraction

from frankly_server.design import Prior
from frankly_server.design.notions import promises

from _design import enumeration, priors, subset_rr
from _design.enumeration import EnumerationError
from _design.measured import most_informative
from _design.row import Progress, Row

SECRETS, ANSWERS, QUICK_SECRETS, QUICK_ANSWERS = 15, 200, 4, 24
EPSILONS, QUICK_EPSILONS = tuple(range(1, 9)), (2, 4)
LIMIT_S, QUICK_LIMIT_S = 60.0, 6.0
_SEARCH = 0.7
"""Share of the time limit for the search; rounding and verification need the remaining time."""


def rows(quick: bool, progress: Progress) -> Iterator[Row]:
    """Yield a line per level, λ = 1/2: value, bound, gap and baseline are shares of H(X)."""
    size = (QUICK_SECRETS, QUICK_ANSWERS) if quick else (SECRETS, ANSWERS)
    prior = next(priors.normalised(*size, seed=4))
    for epsilon in QUICK_EPSILONS if quick else EPSILONS:
        progress(f"{prior.answers} answers at ε = {epsilon}")
        yield _row(prior, Fraction(epsilon, 2), QUICK_LIMIT_S if quick else LIMIT_S)


def _row(prior: Prior, half: Fraction, limit_s: float) -> Row:
    run = most_informative(prior, promises.two_sided(prior, half, half), _SEARCH * limit_s)
    joint = enumeration.probabilities(prior)
    entropy = float(enumeration.entropies(joint.sum(axis=0)[:, None])[0])
    name, value, start = "subset random response (Lift Alg. 2)", None, time.perf_counter()
    try:
        response = subset_rr.subset_random_response(joint, float(half), float(half))
        value = subset_rr.information(response, joint) / entropy
        excess = subset_rr.broken(response, joint, float(half), float(half))
        name += (
            f", breaks its promise by {excess:.3g}"
            if excess
            else f", {len(response.groups)} groups"
        )
    except EnumerationError as error:
        name += f": {error}"
    baseline_seconds = time.perf_counter() - start
    bound = None if run.design.bound is None else run.design.bound / entropy
    information = run.design.normalised_information
    return Row(
        item=4,
        case=f"alip ε={2 * half} λ=0.5, {prior.secrets}×{prior.answers}, shares of H(X)",
        value=information,
        bound=bound,
        gap=None if bound is None else bound - information,
        seconds=run.seconds,
        baseline=name,
        baseline_value=value,
        baseline_seconds=baseline_seconds,
        limit=f"≥ baseline, ≤ {limit_s:g} s",
        holds=None if value is None else information >= value and run.seconds <= limit_s,
    )
