# SPDX-License-Identifier: Apache-2.0
"""Families over answers (s, u), row-major, that see the secret: secret randomised response, Independent Reporting."""

from fractions import Fraction
from math import inf, log

from frankly_protocol.audit import Claim, level_for, require_private
from frankly_protocol.errors import DocumentRejected
from frankly_protocol.mechanisms import DenseMechanism, ProductMechanism

from frankly_server.design.families.base import BITS, Built, Wanted, built, refused, unsupported
from frankly_server.design.families.needs import is_open
from frankly_server.design.families.randomised_response import grr, strongest, telling
from frankly_server.design.robust.bounds import Bounds
from frankly_server.design.robust.independent_reporting import Split, ValueLeak, best_split
from frankly_server.design.robust.secret_rr import secret_rr

_MOST_NATS = 30
"""Beyond this a part is sent unchanged as far as 2^-48 can tell."""
_STEPS = (0, *(2.0**-k for k in range(46, 9, -2)))


def counted(wanted: Wanted) -> tuple[tuple[int, ...], ...]:
    """Return the counts N[s][u] of a prior over pairs (s, u)."""
    joint = wanted.prior.joint
    values = wanted.answers // len(joint)
    own = tuple(row[s * values : (s + 1) * values] for s, row in enumerate(joint))
    if values * len(joint) != wanted.answers or tuple(map(sum, own)) != wanted.prior.masses:
        raise unsupported(f"{wanted.name} takes answers (s, u) with s the secret")
    return own


def secret_randomised_response(wanted: Wanted) -> Built:
    """Secret randomised response, private for S under every distribution  [Robust Def 4, Thm 4].

    Weights E, 1/E, 1 for the truth, another u with the same s, another s: E is that of `alpha`, else the least level
    promised. E-RLDP whatever the ball, hence E-secret-LDP and E-LIP; of the answer as a whole only E²-LDP.
    """
    joint, level = counted(wanted), strongest(wanted)
    mechanism = secret_rr(len(joint), len(joint[0]), level)
    return built(wanted, mechanism, {"alpha": log(level[0] / level[1])})


def independent_reporting(wanted: Wanted) -> Built:
    """Independent Reporting: s and u through randomised responses of their own, a product  [Robust §7; DESIGN §9.10].

    ε = ε₁ + ε₂ is split for the most information under the prior; δ₂ = `ValueLeak.delta2(ε₂)` is what u may be told at,
    exact over the polytopes of an rldp claim, or for the one distribution of a prior. The floats only choose: factors
    are rounded to whole numbers towards privacy, and both levels shrunk until the exact verifier is satisfied.
    """
    joint, level = counted(wanted), strongest(wanted)
    if len(joint[0]) < 2:
        raise unsupported(f"{wanted.name} needs two or more values of u: use secret-rr")
    leak = ValueLeak.of_bounds(_bounds(wanted.claims, joint))
    split = best_split(joint, log(level[0] / level[1]), leak)
    return built(wanted, _met(wanted, split), {"eps1": split.eps1, "eps2": split.eps2, "delta2": split.delta2})


def _met(wanted: Wanted, split: Split) -> ProductMechanism:
    """Return the factors at the split's levels, or as little below as the exact verifier asks for."""
    promised, broken = [claim for claim in wanted.claims if not is_open(claim)], ""
    for step in _STEPS:
        mechanism = _factors(split, 1 - step)
        if not promised:
            return mechanism
        try:
            require_private(mechanism, *promised)
        except DocumentRejected as error:
            broken = error.detail
            continue
        return mechanism
    raise refused(wanted, broken)


def _bounds(claims: tuple[Claim, ...], joint: tuple[tuple[int, ...], ...]) -> Bounds:
    """Return the polytopes of the rldp claim; without one P(u|s) is known, and the bounds leave nothing open."""
    for claim in claims:
        if claim.lower_bounds is not None:
            return claim.lower_bounds
    return tuple(tuple((n, sum(row)) for n in row) for row in joint)


def _factors(split: Split, share: float) -> ProductMechanism:
    return ProductMechanism((_part(split.secrets, split.eps1 * share), _part(split.values, split.delta2 * share)))


def _part(size: int, nats: float) -> DenseMechanism:
    if nats <= 0:
        return DenseMechanism(BITS, ((1 << BITS,),) * size)
    if nats == inf:
        return telling(size, 0)
    return grr(size, level_for(Fraction(min(nats, _MOST_NATS))))
