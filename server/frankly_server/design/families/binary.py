# SPDX-License-Identifier: Apache-2.0
"""The general binary mechanism, and the one of least variance under (ε, δ)-DP  [Thesis §6.3; DESIGN §9.3]."""

from fractions import Fraction

from frankly_protocol.audit import Claim
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.problems import Problem

from frankly_server.design.families.base import BITS, REGIONS, Built, Wanted, built, calibrated, table, unsupported
from frankly_server.design.families.randomised_response import share, telling
from frankly_server.design.prior import Prior

Point = tuple[Fraction, Fraction]


def binary(wanted: Wanted) -> Built:
    """Any mechanism over two answers: [[p00, 1−p00], [1−p11, p11]]  [Thesis (6.2)].

    With `p00` and `p11`: these, to the nearest 2^-48. Else the one of least variance under (ε, δ)-DP at the prior's
    share, in the closure of p00, p11 ≥ ½ (`region` honest) or in all of R (`whole`): `best_point`. The point is met
    from inside, its free coordinate lowered by as little as the exact verifier asks for.
    """
    if wanted.answers != 2:
        raise unsupported(f"{wanted.name} is for two answers: use grr, product-sanitisation or optimal")
    given = wanted.explicit
    if (given.p00 is None) != (given.p11 is None):
        raise InvalidInput(Problem.FIELD_MISSING, "give both p00 and p11", "p11" if given.p11 is None else "p00")
    if given.p00 is not None and given.p11 is not None:
        return built(wanted, _mechanism(share(given.p00), share(given.p11)), {})
    claim = wanted.claims[0]
    if len(wanted.claims) != 1 or claim.notion not in ("ldp", "dp") or claim.level is None:
        words = f"{wanted.name} has a closed form under ldp and dp alone: give p00 and p11, or ask for optimal"
        raise unsupported(words, "notion")
    point = best_point(claim, wanted.prior, given.region)
    return built(wanted, _met(wanted, point), {"region": given.region, "p00": float(point[0]), "p11": float(point[1])})


def best_point(claim: Claim, prior: Prior, region: str) -> Point:
    """Return (p00, p11) of the least variance (6.6) at π = P(answer 1) among all that keep (ε, δ)-DP, exactly.

    s = (E+δ)/(E+1) and (s, s) is best but for shares near 0 or 1. Honest [Thm 6.3 and Cor 6.3, on the closure of
    p00, p11 ≥ ½]: (r, ½) with r = 1 − (½−δ)/E where g = ((E−1)(3δ−1) + 3δ²)/(E−1+2δ)² > min(π, 1−π), mirrored for
    π > ½; for δ > ½, which the theorem leaves out, the region's corner is (1, δ). Whole [DESIGN §9.3]: (1, δ) where
    min(π, 1−π) < h = δ(E+δ)/(E−1+2δ)², mirrored likewise. There whoever holds the rarer answer is exposed outright with
    probability δ: which region is a choice about privacy, not about accuracy.
    """
    if region not in REGIONS:
        raise unsupported(f"the regions are {' and '.join(REGIONS)}", "region")
    E, delta = Fraction(*(claim.level or (1, 1))), Fraction(*(claim.delta or (0, 1)))
    pi = Fraction(prior.shares[1], prior.total)
    s = (E + delta) / (E + 1)
    candidates = [(s, s)]
    if delta and region == "whole":
        candidates.append((Fraction(1), delta) if 2 * pi <= 1 else (delta, Fraction(1)))
    elif delta:
        half = max(Fraction(1, 2), delta)
        r = 1 - (half - delta) / E
        candidates.append((r, half) if 2 * pi <= 1 else (half, r))
    return min(candidates, key=lambda point: variance_at(point, pi))


def variance_at(point: Point, pi: Fraction) -> Fraction:
    """Return the variance of the unbiased estimate of π at n = 1  [Thesis Cor 6.1, (6.6)]; p00 + p11 ≠ 1."""
    p00, p11 = point
    k = p00 + p11 - 1
    return (Fraction(1, 4) - (p00 - Fraction(1, 2) - pi * k) ** 2) / k**2


def _mechanism(kept0: int, kept1: int) -> DenseMechanism:
    D = 1 << BITS
    return table([[kept0, D - kept0], [D - kept1, kept1]])


def _met(wanted: Wanted, point: Point) -> DenseMechanism:
    """Return the mechanism at a corner of the region, rounded to its inside."""
    p00, p11 = point
    D = 1 << BITS
    if p00 == p11:
        guess = -((p00 - 1) * D // 1)
        return telling(2, calibrated(wanted, lambda t: telling(2, t), 0, D // 2, guess))
    # The smaller coordinate is δ or ½, rounded down; the larger one gives way. What is told less tells less: the pair
    # (p00 − t, p11) lies between the corner and (1 − p11, p11), which tells nothing.
    if p00 > p11:
        top, low = int(p00 * D), int(p11 * D)
        return _mechanism(top - calibrated(wanted, lambda t: _mechanism(top - t, low), 0, top - (D - low)), low)
    top, low = int(p11 * D), int(p00 * D)
    return _mechanism(low, top - calibrated(wanted, lambda t: _mechanism(low, top - t), 0, top - (D - low)))
