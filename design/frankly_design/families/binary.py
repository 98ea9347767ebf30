# SPDX-License-Identifier: Apache-2.0
"""Binary mechanisms, with explicit entries or least variance  [Thesis §6.3; erratum 9.3]."""

from fractions import Fraction

from frankly_protocol.audit import Claim
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.problems import Problem

from frankly_design.families.family import (
    BITS,
    REGIONS,
    Built,
    FamilyRequest,
    calibrate,
    certify,
    table,
    unsupported,
)
from frankly_design.families.randomised_response import symmetric_response, weight_of
from frankly_design.notions.prior import Prior

Point = tuple[Fraction, Fraction]


def binary(request: FamilyRequest) -> Built:
    """Build a mechanism over two answers, [[p00, 1−p00], [1−p11, p11]]  [Thesis (6.2)].

    `p00` and `p11`, if given, are the entries, rounded to multiples of 2^-48. Otherwise the only
    claim must be ldp or dp, and the mechanism has least variance at the prior's share
    (`best_point`): among those with p00, p11 ≥ ½ if `region` is honest, among all (ε, δ)-DP
    mechanisms if it is whole. The optimal point is rounded towards the inside of the region: the
    free coordinate is lowered until the exact verifier accepts the mechanism.
    """
    if request.answers != 2:
        raise unsupported(
            f"{request.name} is for two answers: use grr, product-sanitisation or optimal"
        )
    parameters = request.explicit
    if (parameters.p00 is None) != (parameters.p11 is None):
        raise InvalidInput(
            Problem.FIELD_MISSING,
            "give both p00 and p11",
            "p11" if parameters.p11 is None else "p00",
        )
    if parameters.p00 is not None and parameters.p11 is not None:
        return certify(
            request, _mechanism(weight_of(parameters.p00), weight_of(parameters.p11)), {}
        )
    claim = request.claims[0]
    if len(request.claims) != 1 or claim.notion not in ("ldp", "dp") or claim.level is None:
        raise unsupported(
            f"{request.name} has a closed form under ldp and dp alone: give p00 and p11, or ask for optimal",
            "notion",
        )
    point = best_point(claim, request.prior, parameters.region)
    return certify(
        request,
        _fit_inside(request, point),
        {"region": parameters.region, "p00": float(point[0]), "p11": float(point[1])},
    )


def best_point(claim: Claim, prior: Prior, region: str) -> Point:
    """Return the exact (p00, p11) of least variance (6.6) under (ε, δ)-DP.

    π = P(answer 1) under the prior. With s = (E+δ)/(E+1), the point (s, s) is best unless π is near
    0 or 1.

    Region "honest" [Thm 6.3 and Cor 6.3, on the closure of p00, p11 ≥ ½]: (r, ½) with r = 1 −
    (½−δ)/E is best if g = ((E−1)(3δ−1) + 3δ²)/(E−1+2δ)² > min(π, 1−π), mirrored for π > ½. The
    theorem does not cover δ > ½; there the corner of the region is (1, δ).

    Region "whole" [erratum 9.3]: (1, δ) is best if min(π, 1−π) < h = δ(E+δ)/(E−1+2δ)², again
    mirrored for π > ½. At this point a respondent with the rarer answer is exposed with probability
    δ. The choice of the region is therefore a choice about privacy, not about accuracy.
    """
    if region not in REGIONS:
        raise unsupported(f"the regions are {' and '.join(REGIONS)}", "region")
    E, delta = Fraction(*(claim.level or (1, 1))), Fraction(*(claim.delta or (0, 1)))
    pi = Fraction(prior.shares[1], prior.total)
    s = (E + delta) / (E + 1)
    # The variances of all corners are compared as fractions, so g and h are not needed, and there
    # is no rounding.
    candidates = [(s, s)]
    if delta and region == "whole":
        candidates.append((Fraction(1), delta) if 2 * pi <= 1 else (delta, Fraction(1)))
    elif delta:
        half = max(Fraction(1, 2), delta)
        r = 1 - (half - delta) / E
        candidates.append((r, half) if 2 * pi <= 1 else (half, r))
    return min(candidates, key=lambda point: variance_at(point, pi))


def variance_at(point: Point, pi: Fraction) -> Fraction:
    """Return the variance at n = 1 of the unbiased estimate of π; p00 + p11 ≠ 1  [Thesis (6.6)]."""
    p00, p11 = point
    k = p00 + p11 - 1
    return (Fraction(1, 4) - (p00 - Fraction(1, 2) - pi * k) ** 2) / k**2


def _mechanism(truth_weight0: int, truth_weight1: int) -> DenseMechanism:
    D = 1 << BITS
    return table([[truth_weight0, D - truth_weight0], [D - truth_weight1, truth_weight1]])


def _fit_inside(request: FamilyRequest, point: Point) -> DenseMechanism:
    """Return the mechanism at a corner of the region, rounded towards its inside."""
    p00, p11 = point
    D = 1 << BITS
    if p00 == p11:
        # −(v // 1) for a negative fraction v rounds up, so the weight of the wrong answer is never
        # below the closed form.
        guess = -((p00 - 1) * D // 1)
        return symmetric_response(
            2, calibrate(request, lambda t: symmetric_response(2, t), 0, D // 2, guess)
        )
    # The smaller coordinate is δ or ½ and is rounded down; the larger one is lowered by t. This is
    # monotone in t, as `calibrate` requires: (p00 − t, p11) lies on the segment from the corner to
    # (1 − p11, p11), whose report is independent of the answer.
    if p00 > p11:
        larger, smaller = int(p00 * D), int(p11 * D)
        return _mechanism(
            larger
            - calibrate(
                request, lambda t: _mechanism(larger - t, smaller), 0, larger - (D - smaller)
            ),
            smaller,
        )
    larger, smaller = int(p11 * D), int(p00 * D)
    return _mechanism(
        smaller,
        larger
        - calibrate(request, lambda t: _mechanism(smaller, larger - t), 0, larger - (D - smaller)),
    )
