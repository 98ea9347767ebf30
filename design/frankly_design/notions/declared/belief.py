# SPDX-License-Identifier: Apache-2.0
"""Notions about the belief in a secret: lip, alip with pml and pmc, srlip, and dpv."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from math import comb, gcd, prod
from typing import Final

from frankly_protocol.audit import Claim, level_for
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_design.notions.declared.notion import (
    Asked,
    Level,
    Notion,
    Row,
    Told,
    inequality,
    level_of,
    nats,
    number,
    under_each,
)
from frankly_design.notions.prior import Prior, protected


def two_sided(prior: Prior, low: Fraction | None, high: Fraction | None) -> Claim:
    """Return (ε_l, ε_u)-ALIP: −ε_l ≤ ln P(y|s)/P(y) ≤ ε_u  [Lift Def 3].

    low, high : nats; None for a side without a bound.

    Raises InvalidInput if both are None.
    """
    if low is None and high is None:
        raise InvalidInput(
            Problem.EPS_OUT_OF_RANGE, "two infinite levels promise nothing", "epsilon_low"
        )
    joint = protected(prior)
    return Claim(
        "alip",
        None if high is None else level_for(high),
        joint,
        None if low is None else level_for(low),
    )


def side_channels(prior: Prior, epsilon: Fraction, attributes: Sequence[int]) -> Claim:
    """Return ε-SRLIP over attributes of these sizes, the last varying fastest  [Funnel Def 3]."""
    require_attributes(attributes, prior.answers)
    return Claim("srlip", level_for(epsilon), protected(prior), attributes=tuple(attributes))


def require_attributes(attributes: Sequence[int], answers: int) -> tuple[int, ...]:
    """Return the attributes' sizes. Raises InvalidInput unless their product is `answers`."""
    if len(attributes) < 1 or min(attributes) < 2 or prod(attributes) != answers:
        raise InvalidInput(
            Problem.FIELD_TYPE,
            f"give each attribute's number of values, two or more; their product must be {answers}",
            "attributes",
        )
    return tuple(attributes)


def no_violation(prior: Prior, bound: Fraction, sensitive: int) -> Claim:
    """Return P(sensitive | y) ≤ α for every report y  [Thesis eq. 6.24].

    bound : α, rounded down to a multiple of 2^-48.

    Raises InvalidInput if α exceeds 1, if there is no such secret, or if α does not exceed the
    share of the sensitive secret: that share is the average of P(sensitive | y), so reports could
    not carry any information.
    """
    joint = protected(prior)
    if not 0 <= sensitive < prior.secrets:
        raise InvalidInput(
            Problem.FIELD_TYPE,
            f"the secrets are numbered from 0 to {prior.secrets - 1}",
            "sensitive",
        )
    share = Fraction(prior.masses[sensitive], prior.total)
    if not share < bound <= 1:
        raise InvalidInput(
            Problem.EPS_OUT_OF_RANGE,
            f"a degree of privacy violation is above the sensitive share, {float(share):.6g}, and at most 1",
            "dpv",
        )
    level = Fraction(bound.numerator * 2**48 // bound.denominator, 2**48)  # rounded down
    return Claim("dpv", level.as_integer_ratio(), joint, sensitive=sensitive)


def _with_attributes(asked: Asked) -> list[Claim]:
    if asked.paired:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "srlip protects attributes, which answers (s, x) do not have: use lip",
            asked.field + "notion",
        )
    return [side_channels(prior, asked.epsilon, asked.attributes) for prior in asked.priors]


def _around_average(
    joint: Sequence[Sequence[int]], low: Level | None, high: Level | None
) -> Iterator[Row]:
    if not joint:
        return
    totals = [sum(column) for column in zip(*joint, strict=True)]
    total = sum(totals)
    for row in joint:
        mass = sum(row)
        if high is not None:
            yield inequality(high, row, mass, totals, total)
        if low is not None:
            yield inequality(low, totals, total, row, mass)


def _side_channel_rows(claim: Claim, _: int) -> Iterator[Row]:
    """Yield rows of ε-LIP given x_J, for all attribute sets J and all x_J  [Funnel Def 3, (19)]."""
    joint, attributes = claim.joint or (), claim.attributes or ()
    values = list(product(*map(range, attributes)))
    subsets = [
        J for size in range(len(attributes) + 1) for J in combinations(range(len(attributes)), size)
    ]
    yielded: set[tuple[int, ...]] = set()
    # Different conditions often give the same row. Each row is yielded once, because the cost of
    # an enumeration grows steeply with the number of rows.
    for J in subsets:
        for condition in product(*(range(attributes[j]) for j in J)):
            matches = [all(x[j] == v for j, v in zip(J, condition, strict=True)) for x in values]
            restricted = [
                [n if match else 0 for n, match in zip(row, matches, strict=True)] for row in joint
            ]
            for row in _around_average(
                [row for row in restricted if any(row)], claim.level, claim.level
            ):
                common = gcd(*row)
                row_key = tuple(v // common for v in row) if common else tuple(row)
                if row_key not in yielded:
                    yielded.add(row_key)
                    yield list(row_key)


def _violation_rows(claim: Claim, _: int) -> Iterator[Row]:
    """Yield P(s|y) ≤ α for the sensitive secret  [Thesis eq. 6.24]."""
    joint = claim.joint or ()
    p, q = level_of(claim)
    totals = [sum(column) for column in zip(*joint, strict=True)]
    yield [p * n - q * v for n, v in zip(totals, joint[claim.sensitive or 0], strict=True)]


def _most_lip_rays(claim: Claim, a: int) -> int:
    # A ray with k nonzero entries has k − 1 tight rows, each the upper or the lower side of a secret.
    c = len(claim.joint or ())
    return sum(comb(a, k) * comb(c, k - 1) * 2 ** (k - 1) for k in range(1, min(a, c + 1) + 1))


def _changes(up: Level | None, down: Level | None) -> str:
    """Return how far a report moves the probability of a secret; None for a side without a bound."""
    sides = [f"multiplies it by at most {number(up)}"] * (up is not None)
    sides += [f"divides it by at most {number(down)}"] * (down is not None)
    open_side = "" if up and down else ", without a bound on the other side"
    return f"changes the probability of each secret: it {' or '.join(sides)}{open_side}"


def _of_both(claim: Claim, told: Told) -> str:
    return f"{nats(claim.level)}-LIP: a report {_changes(claim.level, claim.level)}, {told.known}."


def _of_each(claim: Claim, told: Told) -> str:
    levels = f"({nats(claim.low_level)}, {nats(claim.level)})"
    return f"{levels}-ALIP: a report {_changes(claim.level, claim.low_level)}, {told.known}."


def _of_conditions(claim: Claim, told: Told) -> str:
    given = "also to whoever knows any of the attributes"
    return f"{nats(claim.level)}-SRLIP: a report {_changes(claim.level, claim.level)}, {given}, {told.known}."


def _of_one(claim: Claim, told: Told) -> str:
    name, most = told.secrets[claim.sensitive or 0], number(claim.level)
    return f"No report makes the secret {name!r} more probable than {most}, {told.known}."


LIP: Final = Notion(
    name="lip",
    claims=under_each(
        lambda prior, asked: Claim("lip", level_for(asked.epsilon), protected(prior))
    ),
    # P(y|s) ≤ E·P(y) and P(y) ≤ E·P(y|s) for all s  [Funnel Def 2, eq. 10]
    rows=lambda claim, _: _around_average(claim.joint or (), claim.level, claim.level),
    sentence=_of_both,
    is_prior_based=True,
    bounds="belief",
    most_rays=_most_lip_rays,
)
ALIP: Final = Notion(
    name="alip",
    claims=under_each(lambda prior, asked: two_sided(prior, asked.low, asked.high)),
    # P(y|s) ≤ E·P(y) and P(y) ≤ E_low·P(y|s), each if its level is finite  [Lift Def 3]
    rows=lambda claim, _: _around_average(claim.joint or (), claim.low_level, claim.level),
    sentence=_of_each,
    required=("epsilon_low", "epsilon_high"),
    is_prior_based=True,
)
# An alip claim with levels from the design would bound both sides.
_ONE_SIDE: Final = replace(ALIP, required=("epsilon",), may_be_open=False)
PML: Final = replace(
    _ONE_SIDE,
    name="pml",
    claims=under_each(lambda prior, asked: two_sided(prior, None, asked.epsilon)),
)
PMC: Final = replace(
    _ONE_SIDE,
    name="pmc",
    claims=under_each(lambda prior, asked: two_sided(prior, asked.epsilon, None)),
)
SRLIP: Final = Notion(
    name="srlip",
    claims=_with_attributes,
    rows=_side_channel_rows,
    sentence=_of_conditions,
    required=("epsilon", "attributes"),
    is_prior_based=True,
    bounds="belief",
)
DPV: Final = Notion(
    name="dpv",
    claims=under_each(lambda prior, asked: no_violation(prior, asked.dpv, asked.sensitive)),
    rows=_violation_rows,
    sentence=_of_one,
    required=("dpv",),
    optional=("sensitive",),
    is_prior_based=True,
    is_implied=False,
)
