# SPDX-License-Identifier: Apache-2.0
"""Item 7, variance: known optima, explicit families, frontier with information, cost of a ceiling."""

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import islice, pairwise
from statistics import fmean

from frankly_protocol.audit import Claim, require_private
from frankly_protocol.errors import DocumentRejected
from frankly_server.design import Prior
from frankly_server.design.api.engine import DesignRequest, FrontierPoint, frontier
from frankly_server.design.notions import promises
from frankly_server.design.tables.limits import Limits

from _design import adult, families, priors, redbook
from _design.designs import designed, request, table
from _design.row import Progress, Row

EPSILONS, QUICK_EPSILONS = ("0.25", "0.5", "1", "2", "3"), ("0.5", "2")
UNIFORM, QUICK_UNIFORM = range(3, 9), (3, 5)
ANSWERS, QUICK_ANSWERS, PRIORS, QUICK_PRIORS = range(3, 7), (3, 4), 10, 2
LEVELS, QUICK_LEVELS = ("0.5", "1", "2"), ("0.5",)
BACKSTOP = Fraction("2.995")
"""Ceiling just below ln 20: the most that a report can leak if the prior is wrong."""
POINTS, QUICK_POINTS = 41, 9
LIMIT_S, FRONTIER_S = 30.0, 120.0
SAME = 1e-6
_GIVEN_UP = 0.01


def rows(quick: bool, progress: Progress) -> Iterator[Row]:
    """Yield the rows of all four parts. Raises adult.DataMissingError."""
    for answers in QUICK_UNIFORM if quick else UNIFORM:
        for epsilon in QUICK_EPSILONS if quick else EPSILONS:
            progress(f"{answers} equal shares, ldp at ε = {epsilon}")
            yield _uniform(answers, Fraction(epsilon))
    for answers in QUICK_ANSWERS if quick else ANSWERS:
        for epsilon in QUICK_EPSILONS if quick else EPSILONS:
            progress(f"{answers} random shares, ldp at ε = {epsilon}")
            yield _random(answers, Fraction(epsilon), QUICK_PRIORS if quick else PRIORS)
    cases = _cases()[:1] if quick else _cases()
    for name, prior in cases:
        progress(f"{name}, frontier")
        yield _frontier(name, prior, QUICK_POINTS if quick else POINTS)
    for name, prior in cases:
        for epsilon in QUICK_LEVELS if quick else LEVELS:
            for objective in ("variance", "information"):
                progress(f"{name}, lip at ε = {epsilon}, {objective} with a ceiling")
                yield _ceiling(name, prior, Fraction(epsilon), objective)


def _cases() -> list[tuple[str, Prior]]:
    return [
        ("Redbook affair × marriage", redbook.prior()),
        ("Adult sex × relationship", adult.prior("sex", "relationship")),
        ("Adult marital-status × education", adult.prior("marital-status", "education")),
    ]


def _ratio(claim: Claim) -> float:
    p, q = claim.level or (1, 1)
    return p / q


def _uniform(answers: int, epsilon: Fraction) -> Row:
    claim = promises.answer_ldp(epsilon)
    run = designed(request(Prior.from_rows([[1] * answers]), [claim], "variance"), LIMIT_S)
    start = time.perf_counter()
    best_known = families.best_uniform_variance(answers, _ratio(claim))
    return Row(
        item=7,
        case=f"variance, {answers} equal shares, ldp ε={float(epsilon):g}",
        value=run.design.value,
        bound=run.design.bound,
        gap=run.design.gap,
        seconds=run.seconds,
        baseline="best subset selection, closed form",
        baseline_value=best_known,
        baseline_seconds=time.perf_counter() - start,
        limit=f"equal to {SAME:g} of it",
        holds=math.isclose(run.design.value, best_known, rel_tol=SAME),
    )


def _random(answers: int, epsilon: Fraction, count: int) -> Row:
    claim = promises.answer_ldp(epsilon)
    values, bounds, gaps, seconds, best, never_worse = [], [], [], [], [], True
    start = time.perf_counter()
    listed = list(families.tables(answers, _ratio(claim)))
    spent = time.perf_counter() - start
    for prior in islice(priors.dirichlet(1, answers, seed=70 + answers), count):
        run = designed(request(prior, [claim], "variance"), LIMIT_S)
        start = time.perf_counter()
        theirs = [families.variance(Q, prior.probabilities()) for _, Q in listed]
        spent += time.perf_counter() - start
        values.append(run.design.value)
        bounds.append(run.design.bound or 0.0)
        gaps.append((run.design.gap or 0.0) / run.design.value)
        seconds.append(run.seconds)
        best.append(min(theirs))
        never_worse &= run.design.value <= min(theirs) * (1 + SAME)
    return Row(
        item=7,
        case=f"variance, {answers} random shares, ldp ε={float(epsilon):g}, {count} priors: means, largest gap / value",
        value=fmean(values),
        bound=fmean(bounds),
        gap=max(gaps),
        seconds=fmean(seconds),
        baseline="best of GRR, subset selection, OUE as a table",
        baseline_value=fmean(best),
        baseline_seconds=spent / count,
        limit="never above a family",
        holds=never_worse,
    )


def _frontier(name: str, prior: Prior, points: int) -> Row:
    """Compare the variance at 99% of the largest information with that at the largest information."""
    claims = [promises.promise("lip", prior, Fraction("0.5"))]
    most_informative = designed(request(prior, claims, "information"), LIMIT_S).design
    start = time.perf_counter()
    limits = Limits.within(FRONTIER_S, time.perf_counter)
    base_request = replace(request(prior, claims, "variance"), limits=limits)
    curve = frontier(base_request, points)
    seconds = time.perf_counter() - start
    near = next(
        (on for on in curve if on.information >= (1 - _GIVEN_UP) * most_informative.information),
        curve[-1],
    )
    share, largest = (
        near.information / most_informative.information,
        most_informative.variance if math.isfinite(most_informative.variance) else None,
    )
    note = "" if largest else " (shares not estimable)"
    return Row(
        item=7,
        case=f"{name}, lip ε=0.5, {len(curve)} on the frontier; variance at {share:.2%} of the information",
        value=near.variance,
        bound=near.variance_bound,
        gap=near.variance - near.variance_bound,
        seconds=seconds,
        baseline=f"variance at all of it{note}",
        baseline_value=largest,
        baseline_seconds=None,
        limit="monotone, within bounds, values as stated",
        holds=_monotone(curve)
        and all(_as_said(base_request, on) for on in curve)
        and _bought(prior, claims, near),
    )


def _monotone(curve: list[FrontierPoint]) -> bool:
    """Return True if more information always comes with more variance, up to rounding."""
    steps = list(pairwise(curve))
    increasing = all(b.information >= a.information - SAME for a, b in steps)
    return increasing and all(b.variance >= a.variance * (1 - SAME) for a, b in steps)


def _as_said(request: DesignRequest, on: FrontierPoint) -> bool:
    """Return True if the mechanism keeps its claims and its stated values are correct."""
    try:
        require_private(on.mechanism, *request.claims)
    except DocumentRejected:
        return False
    Q, p = table(on.mechanism), request.prior.probabilities()
    same = math.isclose(families.information(Q, p), on.information, abs_tol=SAME)
    same &= math.isclose(families.variance(Q, p), on.variance, rel_tol=SAME) or math.isinf(
        on.variance
    )
    return (
        same
        and on.information <= on.information_bound + SAME
        and on.variance >= on.variance_bound * (1 - SAME)
    )


def _bought(prior: Prior, claims: list[Claim], near: FrontierPoint) -> bool:
    """Return True if a direct request with that variance as its cap reaches that information."""
    direct = designed(request(prior, claims, "information", cap=near.variance), LIMIT_S).design
    enough = direct.information >= near.information * (1 - SAME) - SAME
    return enough and direct.variance <= near.variance * (1 + SAME)


def _ceiling(name: str, prior: Prior, epsilon: Fraction, objective: str) -> Row:
    """Compare the optimum under a backstop ceiling with the optimum without one."""
    claim = promises.promise("lip", prior, epsilon)
    alone = designed(request(prior, [claim], objective), LIMIT_S)
    run = designed(request(prior, [claim, promises.answer_ldp(BACKSTOP)], objective), LIMIT_S)
    design, other_design = run.design, alone.design
    E = _ratio(promises.answer_ldp(BACKSTOP))
    finite = design.ceiling is not None and design.ceiling <= E * (1 + SAME)
    dearer = (
        design.value >= _least(other_design.bound)
        if objective == "variance"
        else design.value <= _most(other_design.bound)
    )
    side = _figures(design.variance, design.information, objective)
    return Row(
        item=7,
        case=f"{name}, lip ε={float(epsilon):g} and ceiling {float(BACKSTOP):g}: {objective}{side}",
        value=design.value,
        bound=design.bound,
        gap=design.gap,
        seconds=run.seconds,
        baseline=f"lip alone{_figures(other_design.variance, other_design.information, objective)}",
        baseline_value=other_design.value,
        baseline_seconds=alone.seconds,
        limit="ceiling kept",
        holds=finite and dearer,
    )


def _least(bound: float | None) -> float:
    return (0.0 if bound is None else bound) * (1 - SAME)


def _most(bound: float | None) -> float:
    return (math.inf if bound is None else bound) + SAME


def _figures(variance: float, information: float, objective: str) -> str:
    """Return the other objective's value as text."""
    if objective == "variance":
        return f" (information {information:.4f})"
    return f" (variance {variance:.4g})" if math.isfinite(variance) else " (not estimable)"
