# SPDX-License-Identifier: Apache-2.0
"""Families over pairs (s, u), row-major: secret randomised response and Independent Reporting."""

from fractions import Fraction
from math import inf, log

from frankly_protocol.audit import Claim, level_for, require_private
from frankly_protocol.errors import DocumentRejected
from frankly_protocol.mechanisms import DenseMechanism, ProductMechanism

from frankly_design.families.family import (
    BITS,
    Built,
    FamilyRequest,
    certify,
    claims_not_kept,
    unsupported,
)
from frankly_design.families.needs import is_open
from frankly_design.families.randomised_response import grr, required_level, symmetric_response
from frankly_design.families.robust.independent_reporting import Split, ValueLeak, best_split
from frankly_design.families.robust.secret_rr import secret_rr
from frankly_design.notions.ball_bounds import Bounds

_MAX_NATS = 30
"""Largest level of a randomised response, in nats; above it, values are practically unchanged."""
# Relative reductions of both levels, in the order of trial: none, then 2^-46 up to 2^-10.
_STEPS = (0, *(2.0**-k for k in range(46, 9, -2)))


def pair_counts(request: FamilyRequest) -> tuple[tuple[int, ...], ...]:
    """Return the counts N[s][u] of a prior over pairs (s, u).

    Raises InvalidInput(unsupported) for a prior that is not over such pairs.
    """
    joint = request.prior.joint
    values = request.answers // len(joint)
    counts = tuple(row[s * values : (s + 1) * values] for s, row in enumerate(joint))
    if values * len(joint) != request.answers or tuple(map(sum, counts)) != request.prior.masses:
        raise unsupported(f"{request.name} needs answers (s, u), where s is the secret")
    return counts


def secret_randomised_response(request: FamilyRequest) -> Built:
    """Build secret randomised response, which protects S under every distribution.

    Weights are E for the truth, 1/E for another u with the same s, and 1 for another s. E is e^α
    with `alpha`, else the smallest requested level. The mechanism satisfies RLDP at level E for
    every ball, and so secret-LDP and LIP; its LDP level for the pair is E² [Robust Def 4, Thm 4].
    """
    joint, level = pair_counts(request), required_level(request)
    mechanism = secret_rr(len(joint), len(joint[0]), level)
    return certify(request, mechanism, {"alpha": log(level[0] / level[1])})


def independent_reporting(request: FamilyRequest) -> Built:
    """Build Independent Reporting: s and u pass through separate randomised responses.

    The split ε = ε₁ + ε₂ maximises the information under the prior. The response on u has level
    δ₂ = `ValueLeak.delta2(ε₂)`, the largest that leaks at most ε₂ over the polytopes of an rldp
    claim or, without such a claim, under the prior. Floats only determine the split: the factors
    are rounded to integers towards privacy, and both levels are reduced until the verifier accepts
    the mechanism [Robust §7; erratum 9.10].
    """
    joint, level = pair_counts(request), required_level(request)
    if len(joint[0]) < 2:
        raise unsupported(f"{request.name} needs two or more values of u: use secret-rr")
    leak = ValueLeak.of_bounds(_bounds(request.claims, joint))
    split = best_split(joint, log(level[0] / level[1]), leak)
    return certify(
        request,
        _certified_factors(request, split),
        {"eps1": split.eps1, "eps2": split.eps2, "delta2": split.delta2},
    )


def _certified_factors(request: FamilyRequest, split: Split) -> ProductMechanism:
    """Return the mechanism of the split, with levels reduced until the verifier accepts it."""
    claims_with_level, broken = [claim for claim in request.claims if not is_open(claim)], ""
    for step in _STEPS:
        mechanism = _factors(split, 1 - step)
        if not claims_with_level:
            return mechanism
        try:
            require_private(mechanism, *claims_with_level)
        except DocumentRejected as error:
            broken = error.detail
            continue
        return mechanism
    raise claims_not_kept(request, broken)


def _bounds(claims: tuple[Claim, ...], joint: tuple[tuple[int, ...], ...]) -> Bounds:
    """Return the polytopes of the rldp claim; without such a claim, the single points P(u|s)."""
    for claim in claims:
        if claim.lower_bounds is not None:
            return claim.lower_bounds
    return tuple(tuple((n, sum(row)) for n in row) for row in joint)


def _factors(split: Split, share: float) -> ProductMechanism:
    return ProductMechanism(
        (_factor(split.secrets, split.eps1 * share), _factor(split.values, split.delta2 * share))
    )


def _factor(size: int, nats: float) -> DenseMechanism:
    # At level 0 the report is constant: a uniform response over `size` values would make reports
    # longer without adding privacy.
    if nats <= 0:
        return DenseMechanism(BITS, ((1 << BITS,),) * size)
    if nats == inf:
        return symmetric_response(size, 0)
    return grr(size, level_for(Fraction(min(nats, _MAX_NATS))))
