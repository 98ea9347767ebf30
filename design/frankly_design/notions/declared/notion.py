# SPDX-License-Identifier: Apache-2.0
"""What differs by privacy notion: levels, claims, rows of the cone, and the sentence.

There is one `Notion` for each, and `registry` finds it. Requests, cones, families and the server ask
it; they compare names only to choose an algorithm that is made for one notion. The functions below
are the parts of rows and sentences that several notions share.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from typing import Any, Literal

from frankly_protocol.audit import Claim, ln_up

from frankly_design.notions.prior import Prior, pairs
from frankly_design.numeric.rays import Ray

Level = tuple[int, int]
Row = list[int]
Lifted = tuple[Row, dict[int, int]]
"""A row over q, and its coefficients of auxiliary variables, which are numbered from 0."""
# Up to this number of averages, one row per pair is no larger than an additional variable.
_FEW_AVERAGES = 3


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for one notion.

    priors : every prior-based notion holds under each of them. answers : number of the mechanism's
    answers. paired : True if these are pairs (s, u). field : path of the notion's fields, for errors.
    ball : order, n and beta of `confidence_ball`. has_boxes : True for boxes instead of simplices.
    sensitive : row of a secret. The other fields are levels, in nats: None for a level that is not
    promised.
    """

    priors: Sequence[Prior]
    answers: int
    paired: bool = False
    field: str = ""
    epsilon: Fraction = Fraction(0)
    low: Fraction | None = None
    high: Fraction | None = None
    delta: Fraction = Fraction(0)
    dpv: Fraction = Fraction(0)
    epsilons: Sequence[Sequence[Fraction | None]] = ()
    attributes: Sequence[int] = ()
    ball: tuple[object, object, object] = (None, None, None)
    has_boxes: bool = False
    diagonal: bool = False
    sensitive: int = 1


@dataclass(frozen=True, slots=True)
class Told:
    """What a sentence may mention: labels of secrets, counts of the requested priors.

    several : True if the same is claimed under several priors.
    """

    secrets: Sequence[Any]
    priors: Collection[Any] = ()
    several: bool = False

    @property
    def known(self) -> str:
        """The condition of a claim that rests on a prior."""
        return "if one of the priors is true" if self.several else "if the prior is true"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notion:
    """A notion of privacy.

    name : in requests. claims : the claims that together promise what is asked, or InvalidInput.
    rows : the rows r with r·q ≥ 0 on the claim's columns q ≥ 0 of so many answers. sentence : what a
    claim promises for every report. required, optional : names of its levels in requests.
    is_prior_based : True if it rests on counts. bounds : "odds" or "belief", if e^ε bounds
    one of them. is_implied : True if ε-LDP implies it
    at all levels of at least ε. may_be_open : True if a design can determine its level. has_cone :
    False if columns alone do not decide whether it holds. has_many_rows : True for about answers²
    rows. has_pairs : True if the mechanism's answers are pairs (s, u). lifted : fewer rows over q and
    auxiliary variables, and the number of these. most_rays : a bound on the rays of the cone, if that
    from the number of rows is too large. rays : all rays, if they have a closed form.
    """

    name: str
    claims: Callable[[Asked], list[Claim]]
    rows: Callable[[Claim, int], Iterable[Row]]
    sentence: Callable[[Claim, Told], str]
    required: tuple[str, ...] = ("epsilon",)
    optional: tuple[str, ...] = ()
    is_prior_based: bool = False
    bounds: Literal["odds", "belief"] | None = None
    is_implied: bool = True
    may_be_open: bool = True
    has_cone: bool = True
    has_many_rows: bool = False
    has_pairs: bool = False
    lifted: Callable[[Claim, int], tuple[list[Lifted], int]] | None = None
    most_rays: Callable[[Claim, int], int] | None = None
    rays: Callable[[Claim, int], list[Ray]] | None = None

    @property
    def levels(self) -> frozenset[str]:
        """The names of all its levels in requests."""
        return frozenset((*self.required, *self.optional))

    @property
    def has_pair_levels(self) -> bool:
        """True if it has a level for each pair of answers."""
        return "epsilons" in self.required

    @property
    def has_sides(self) -> bool:
        """True if its claims also have a low level."""
        return "epsilon_low" in self.required


def under_each(claim: Callable[[Prior, Asked], Claim]) -> Callable[[Asked], list[Claim]]:
    """Return the function from a request to a claim under each prior."""

    def claims(asked: Asked) -> list[Claim]:
        made = [claim(prior, asked) for prior in asked.priors]
        if not asked.paired:
            return made
        # Claims with the same counts over pairs (s, u) protect s in the same way.
        joints = [pairs(prior).joint for prior in asked.priors]
        return [replace(one, joint=joint) for one, joint in zip(made, joints, strict=True)]

    return claims


def level_of(claim: Claim) -> Level:
    """Return the level of a claim. Raises ValueError if it is open."""
    if claim.level is None:
        raise ValueError(f"{claim.notion} needs a level")
    return claim.level


def inequality(
    level: Level, left: Sequence[int], left_size: int, right: Sequence[int], right_size: int
) -> Row:
    """Return (left/left_size)·q ≤ level·(right/right_size)·q as a row of integers."""
    p, q = level
    return [p * b * left_size - q * a * right_size for a, b in zip(left, right, strict=True)]


def around_threshold(
    claim: Claim, averages: Sequence[tuple[Row, int]], rows: Iterable[Row]
) -> tuple[list[Lifted], int]:
    """Return 2u ≤ (E+1)·A·q ≤ 2E·u for every average A, given as counts and their sum; u is variable 0.

    rows : returned instead for up to three averages, because they are no more than these.
    """
    if len(averages) <= _FEW_AVERAGES:
        return [(row, {}) for row in rows if min(row) < 0], 0
    p, q = level_of(claim)
    lifted = []
    for counts, mass in averages:
        lifted.append(([(p + q) * n for n in counts], {0: -2 * q * mass}))
        lifted.append(([-(p + q) * n for n in counts], {0: 2 * p * mass}))
    return lifted, 1


def nats(level: Level | None) -> str:
    """Return ε of a level e^ε with four decimals, rounded up so that a sentence stays true."""
    text = ln_up(None if level is None else Fraction(*level), 4)
    return text if level is None else f"{Decimal(text).normalize():f}"


def number(ratio: Level | None) -> str:
    """Return a ratio with four significant digits, rounded up; "∞" for None."""
    if ratio is None:
        return "∞"
    with localcontext() as context:
        context.prec, context.rounding = 4, ROUND_CEILING
        return f"{(Decimal(ratio[0]) / Decimal(ratio[1])).normalize():f}"
