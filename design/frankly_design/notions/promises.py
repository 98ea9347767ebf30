# SPDX-License-Identifier: Apache-2.0
"""Claims of each notion, with the exact levels and priors that the verifier checks (spec 1.4)."""

from collections.abc import Sequence
from fractions import Fraction
from math import prod

from frankly_protocol.audit import NOTIONS, Claim, level_for
from frankly_protocol.canonical import MAX_INT
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_design.notions.prior import Prior

LowerBounds = tuple[tuple[tuple[int, int], ...], ...]


def require_notion(notion: object) -> str:
    """Return the notion if it is known. Raises InvalidInput(unsupported), listing the notions."""
    if not isinstance(notion, str) or notion not in NOTIONS:
        raise InvalidInput(Problem.UNSUPPORTED, f"the notions are {', '.join(NOTIONS)}", "notion")
    return notion


def promise(notion: str, prior: Prior, epsilon: Fraction) -> Claim:
    """Return the claim of a notion with a single level in nats (ldp, secret-ldp, lip) and a prior.

    Raises InvalidInput: unsupported, choice_unprotected, secret_empty.
    """
    require_notion(notion)
    if notion == "ldp":
        return answer_ldp(epsilon)
    if notion not in ("secret-ldp", "lip"):
        raise InvalidInput(
            Problem.UNSUPPORTED,
            f"{notion} cannot be promised by one level and a prior alone",
            "notion",
        )
    return Claim(notion, level_for(epsilon), protected(prior))


def answer_ldp(epsilon: Fraction) -> Claim:
    """Return ε-LDP of the answer; combined with a prior-based notion, it bounds the ceiling."""
    return Claim("ldp", level_for(epsilon))


def between_pairs(epsilons: Sequence[Sequence[Fraction | None]], answers: int) -> Claim:
    """Return Q(y|x) ≤ e^epsilons[x][z]·Q(y|z) for all pairs with a level: metric LDP.

    epsilons : nats; None for a pair without a level, and on the diagonal.

    Raises InvalidInput(field_type) unless there are a row and a column for every answer, the
    diagonal is None, and at least one pair has a level.
    """
    if len(epsilons) != answers or any(len(row) != answers for row in epsilons):
        raise InvalidInput(
            Problem.FIELD_TYPE,
            f"give {answers} rows of {answers} levels, one of every answer against every other",
            "epsilons",
        )
    if any(row[x] is not None for x, row in enumerate(epsilons)):
        raise InvalidInput(
            Problem.FIELD_TYPE,
            'an answer has no level against itself: write null or "inf" on the diagonal',
            "epsilons",
        )
    if not any(epsilon is not None for row in epsilons for epsilon in row):
        raise InvalidInput(
            Problem.EPS_OUT_OF_RANGE, "without a level for any pair nothing is promised", "epsilons"
        )
    levels = tuple(tuple(None if e is None else level_for(e) for e in row) for row in epsilons)
    return Claim("metric-ldp", (1, 1), levels=levels)


def differential(epsilon: Fraction, delta: Fraction) -> Claim:
    """Return (ε, δ)-DP of one answer over all sets of reports  [Thesis (6.13); erratum 9.4].

    delta : in [0, 1); rounded down to a multiple of 2^-48 if its integers do not fit into a
    document.
    """
    # A document contains integers below 2^53. Rounding δ down makes the guarantee stronger.
    if delta.numerator > MAX_INT or delta.denominator > MAX_INT:
        delta = Fraction(delta.numerator * 2**48 // delta.denominator, 2**48)
    return Claim("dp", level_for(epsilon), delta=delta.as_integer_ratio())


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


def robust(lower_bounds: LowerBounds, epsilon: Fraction, *, diagonal: bool) -> Claim:
    """Return (ε, F)-RLDP over the polytopes D_s = {R ≥ L(·|s)}  [Robust Def 1, Thm 2]."""
    return Claim("rldp", level_for(epsilon), lower_bounds=lower_bounds, diagonal=diagonal)


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


def protected(prior: Prior, field: str = "prior.joint") -> tuple[tuple[int, ...], ...]:
    """Return the prior's counts. Raises InvalidInput if some answer or secret has no mass."""
    prior.require_protection(field)
    return prior.joint


def pairs(prior: Prior) -> Prior:
    """Return the prior whose answers are the pairs (s, u), row-major; rldp needs it (spec 1.4)."""
    # P((s, u)) is in row s, in the columns of s; other secrets never have these answers.
    size = prior.answers
    rows = [
        tuple(n for t in range(prior.secrets) for n in (row if s == t else (0,) * size))
        for s, row in enumerate(prior.joint)
    ]
    return Prior(tuple(rows))
