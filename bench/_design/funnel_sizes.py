# SPDX-License-Identifier: Apache-2.0
"""Item 1, the papers' own size: two secrets, five answers, ten random priors (Funnel Figure 3)."""

import time
from collections.abc import Iterator
from fractions import Fraction
from itertools import islice
from statistics import fmean

from frankly_server.design import Prior
from frankly_server.design.notions import promises

from _design import enumeration, priors
from _design.enumeration import EnumerationError, Timed
from _design.measured import GAP, Measured, Summary, most_informative
from _design.row import Progress, Row

SECRETS, ANSWERS, QUICK_ANSWERS, PRIORS, QUICK_PRIORS = 2, 5, 4, 10, 3
EPSILONS, QUICK_EPSILONS = ("0.5", "1", "1.5", "2"), ("0.5", "1.5")
LIMIT_S = 60.0
RATIO = 100


def rows(quick: bool, progress: Progress) -> Iterator[Row]:
    """Yield rows by notion and level; secret-ldp also gets a row that compares one prior with enumeration."""
    answers, count = (QUICK_ANSWERS, QUICK_PRIORS) if quick else (ANSWERS, PRIORS)
    drawn = list(islice(priors.dirichlet(SECRETS, answers, seed=1), count))
    for notion in ("secret-ldp", "lip"):
        for epsilon in QUICK_EPSILONS if quick else EPSILONS:
            progress(f"{notion} at ε = {epsilon}")
            _designed(drawn[-1], notion, epsilon)  # warm-up: fills the caches; not timed
            runs = [_designed(prior, notion, epsilon) for prior in drawn]
            if notion == "secret-ldp":
                yield _one(epsilon, drawn[0], runs[0], quick)
            yield _all(notion, epsilon, drawn, runs)


def _designed(prior: Prior, notion: str, epsilon: str) -> Measured:
    return most_informative(prior, promises.promise(notion, prior, Fraction(epsilon)), LIMIT_S)


def _one(epsilon: str, prior: Prior, run: Measured, quick: bool) -> Row:
    """Compare one prior with enumeration; a quick run has few vertices and demands no ratio."""
    listed = enumeration.capped("secret-ldp", prior, float(Fraction(epsilon)))
    fast = quick or listed.seconds >= RATIO * run.seconds
    return Row(
        item=1,
        case=f"secret-ldp ε={epsilon}, {prior.secrets}×{prior.answers}, one prior",
        value=run.design.information,
        bound=run.design.bound,
        gap=run.design.gap,
        seconds=run.seconds,
        baseline=f"vertices of Γ (Funnel Thm 2): {listed.words}",
        baseline_value=listed.optimum.information if listed.optimum else None,
        baseline_seconds=listed.seconds,
        limit="gap ≤ 1e-6, same optimum" + ("" if quick else f", ratio ≥ {RATIO}"),
        holds=run.certified and fast and _agree(run, listed),
        capped=listed.capped,
    )


def _all(notion: str, epsilon: str, drawn: list[Prior], runs: list[Measured]) -> Row:
    """Summarise all priors; for LIP each is also enumerated, which is fast."""
    summary, sizes = Summary.of(runs), f"{drawn[0].secrets}×{drawn[0].answers}"
    value, seconds, name, agree = None, None, "", True
    if notion == "lip":
        start, level = time.perf_counter(), float(Fraction(epsilon))
        listed = [_listed(prior, level) for prior in drawn]
        seconds, value = (time.perf_counter() - start) / len(drawn), fmean(listed)
        name = "vertices of Δ, programme (Funnel Thm 3)"
        agree = all(
            abs(enumerated - run.design.information) <= GAP
            for enumerated, run in zip(listed, runs, strict=True)
        )
    return Row(
        item=1,
        case=f"{notion} ε={epsilon}, {sizes}, {len(drawn)} priors: means, largest gap",
        value=summary.value,
        bound=summary.bound,
        gap=summary.gap,
        seconds=sum(run.seconds for run in runs) / len(runs),
        baseline=name,
        baseline_value=value,
        baseline_seconds=seconds,
        limit="every gap ≤ 1e-6" + (", same optima" if name else ""),
        holds=summary.all_certified and agree,
    )


def _listed(prior: Prior, level: float) -> float:
    """Return the optimum found by enumeration, or nan if it fails."""
    try:
        return enumeration.lip(enumeration.probabilities(prior), level, level).information
    except EnumerationError:
        return float("nan")


def _agree(run: Measured, listed: Timed) -> bool:
    """Return True if both find the same optimum, or enumeration finds none."""
    return listed.optimum is None or abs(listed.optimum.information - run.design.information) <= GAP
