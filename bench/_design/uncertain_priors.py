# SPDX-License-Identifier: Apache-2.0
"""Item 6, uncertain priors: robust LDP on Adult, against Independent Reporting (Robust Table 2)."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from frankly_protocol.audit import Claim, require_private
from frankly_protocol.errors import DocumentRejected, FranklyError
from frankly_protocol.mechanisms import DenseMechanism
from frankly_server.design import Prior
from frankly_server.design.families.robust.independent_reporting import (
    best_split,
)
from frankly_server.design.notions import promises
from frankly_server.design.notions.ball_bounds import lower_bounds
from frankly_server.design.notions.balls import confidence_ball

from _design import adult, enumeration
from _design.measured import GAP, most_informative
from _design.row import Progress, Row
from papers.value_leak import distance_bound, leak_of_distance

ORDER, BETA, EPSILON = 2, "0.05", Fraction("1.5")
LIMIT_S, LARGE_LIMIT_S, QUICK_PATIENCE = 1.0, 300.0, 10.0
_SEARCH = 0.9
"""Share of the time limit for the search; rounding and verification need the remaining time."""
_ROUNDING = 1e-12


@dataclass(frozen=True)
class _Case:
    """Columns of Adult. times : demanded multiple of the baseline's information, or None."""

    secret: str
    value: str
    times: float | None


SMALL = (_Case("sex", "race", None), _Case("race", "sex", None))
LARGE = (_Case("occupation", "education", 5.5), _Case("native-country", "relationship", 3.5))


def rows(quick: bool, progress: Progress) -> Iterator[Row]:
    """Yield a line per pair of columns: shares of H(S, U). Raises adult.DataMissingError."""
    for case in SMALL if quick else SMALL + LARGE:
        joint = adult.prior(case.secret, case.value)
        progress(f"Adult, {case.secret} × {case.value}, rldp")
        try:
            yield _row(case, joint)
        except FranklyError as error:
            yield _refused(case, error)


def _row(case: _Case, joint: Prior) -> Row:
    large = case.times is not None
    limit_s = LARGE_LIMIT_S if large else LIMIT_S
    bounds = lower_bounds(joint.joint, ORDER, joint.total, BETA)
    prior, claim = promises.pairs(joint), promises.robust(bounds, EPSILON, diagonal=False)
    run = most_informative(prior, claim, _SEARCH * limit_s if large else QUICK_PATIENCE)
    entropy = float(enumeration.entropies(enumeration.probabilities(prior).sum(axis=0)[:, None])[0])
    information, bound = run.design.normalised_information, (run.design.bound or math.inf) / entropy
    start = time.perf_counter()
    ball = confidence_ball(joint.joint, ORDER, joint.total, BETA)
    split = best_split(joint.joint, float(EPSILON), leak_of_distance(distance_bound(ball)))
    baseline, baseline_s = split.information / entropy, time.perf_counter() - start
    mechanism = run.design.table
    realised = realised_level(mechanism, joint.joint)
    keeps_claim = keeps(mechanism, claim) and realised <= float(EPSILON) + _ROUNDING
    meets = (
        information >= case.times * baseline
        if case.times
        else run.certified and information >= baseline - GAP
    )
    demand = f"≥ {case.times:g} × baseline" if case.times else f"gap ≤ {GAP:g}"
    sizes = f"{case.secret}({joint.secrets}) × {case.value}({joint.answers})"
    times = f", {information / baseline:.2f} × baseline" if baseline > 0 else ""
    return Row(
        item=6,
        case=f"Adult {sizes}, rldp: realised ε {realised:.3f}{times}",
        value=information,
        bound=bound,
        gap=bound - information,
        seconds=run.seconds,
        baseline=f"Independent Reporting (Robust Thm 5), ε₁={split.eps1:.2f} ε₂={split.eps2:.2f}",
        baseline_value=baseline,
        baseline_seconds=baseline_s,
        limit=f"{demand}, ≤ {limit_s:g} s, private",
        holds=meets and keeps_claim and run.seconds <= limit_s,
    )


def _refused(case: _Case, error: FranklyError) -> Row:
    return Row(
        item=6,
        case=f"Adult {case.secret} × {case.value}, rldp: no mechanism: {error}",
        value=None,
        bound=None,
        gap=None,
        seconds=0.0,
        baseline="",
        baseline_value=None,
        baseline_seconds=None,
        limit="a mechanism with its bound",
        holds=False,
    )


def keeps(mechanism: DenseMechanism, claim: Claim) -> bool:
    """Return True if the exact verifier accepts the mechanism; an independent check."""
    try:
        require_private(mechanism, claim)
    except DocumentRejected:
        return False
    return True


def realised_level(mechanism: DenseMechanism, joint: Sequence[Sequence[int]]) -> float:
    """Return ε* = ln max_y,s,t P(y|s)/P(y|t) for the estimated prior  [Robust §8.3, erratum 9.12].

    joint : counts N[s][u]; the answers of the mechanism are the pairs (s, u), row-major.
    """
    size, worst = len(joint[0]), Fraction(1)
    for column in zip(*mechanism.weights, strict=True):
        conditional = [
            Fraction(sum(n * w for n, w in zip(row, column[s * size :], strict=False)), sum(row))
            for s, row in enumerate(joint)
        ]
        if max(conditional) > 0:
            worst = (
                max(worst, max(conditional) / min(conditional))
                if min(conditional) > 0
                else Fraction(2**1000)
            )
    return math.log(worst.numerator) - math.log(worst.denominator)
