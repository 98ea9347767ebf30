# SPDX-License-Identifier: Apache-2.0
"""Privacy claims of a publisher: a notion, its levels and its public data (ADR 0012)."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from fractions import Fraction
from math import prod

from frankly_protocol.canonical import MAX_INT
from frankly_protocol.errors import DocumentRejected, UnsupportedDocument

_CARRIES = {
    "ldp": (),
    "dp": ("delta",),
    "secret-ldp": ("joint",),
    "lip": ("joint",),
    "alip": ("joint", "low_level"),
    "srlip": ("joint", "attributes"),
    "rldp": ("lower_bounds", "diagonal"),
    "dpv": ("joint", "sensitive"),
    "metric-ldp": ("levels",),
}
NOTIONS = tuple(_CARRIES)
PRIOR_FREE = ("ldp", "dp", "metric-ldp")
PRIOR_BASED = tuple(notion for notion in NOTIONS if notion not in PRIOR_FREE)
"""The notions that depend on a public prior; they promise nothing if the prior is wrong."""

Ratio = tuple[int, int]
Joint = tuple[tuple[int, ...], ...]
LowerBounds = tuple[tuple[Ratio, ...], ...]
PairLevels = tuple[tuple[Ratio | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Claim:
    """One promised notion and its parameters; a promise of several notions is several claims.

    notion : one of NOTIONS.
    level : (p, q) with E = p/q ≥ 1, positive whole numbers below 2^53. alip: the level of P(y|s) ≤
        E·P(y), or None if that side is not promised. metric-ldp: a common factor of all its levels,
        which designs set to (1, 1). dpv: the bound α = p/q on P(sensitive|y), 0 < p ≤ q.
    joint : counts N[s][x], for secret-ldp, lip, alip, srlip and dpv.
    low_level : alip only: the level of P(y) ≤ E·P(y|s), or None if that side is not promised.
    attributes : srlip only: the number of values of each attribute; answers are numbered row-major,
        the last attribute fastest.
    lower_bounds : rldp only: L[s][u] as ratios, each row summing to at most 1; answers are pairs
        (s, u), row-major.
    diagonal : rldp only: True if a secret is also compared with itself, as in the paper's
        Definition 3.
    sensitive : dpv only: the row of the secret that must not be inferred.
    levels : metric-ldp only: L[x][z] of Q(y|x) ≤ level·L[x][z]·Q(y|z), each a ratio of at least 1,
        or None if nothing is promised for this pair; None on the diagonal.
    delta : dp only: δ = n/d with 0 ≤ n < d: Q(T|x) ≤ E·Q(T|x') + δ for every set T of reports.
    """

    notion: str
    level: Ratio | None
    joint: Joint | None = None
    low_level: Ratio | None = None
    attributes: tuple[int, ...] | None = None
    lower_bounds: LowerBounds | None = None
    diagonal: bool = False
    sensitive: int | None = None
    delta: Ratio | None = None
    levels: PairLevels | None = None

    @property
    def name(self) -> str:
        """The notion's display name: pml or pmc for alip with one side, otherwise `notion`.

        Documents use alip for both, so that each promise has only one form (ADR 0028).
        """
        if self.notion == "alip" and self.low_level is None:
            return "pml"
        return "pmc" if self.notion == "alip" and self.level is None else self.notion


def require_sound(claim: Claim, answers: int) -> None:
    """Raise unless the claim is well-formed for a mechanism with this many answers.

    Raises UnsupportedDocument for an unknown notion; DocumentRejected("privacy"), naming the field,
    for an invalid level and for parameters that are missing, do not fit, or do not belong to the
    notion.
    """
    if claim.notion not in NOTIONS:
        raise UnsupportedDocument(
            f"unknown notion; this version knows {', '.join(NOTIONS)}: update the app", "notion"
        )
    for detail, field in _faults(claim, answers):
        raise DocumentRejected("privacy", f"{claim.notion}: {detail}", field)


_Fault = tuple[str, str]


def _faults(claim: Claim, answers: int) -> Iterator[_Fault]:
    """Yield the faults of a claim.

    The caller raises at the first one, so each check may rely on those before it.
    """
    carries = _CARRIES[claim.notion]
    # A parameter that the notion ignores would look like a promise, but no check would cover it.
    # The first two fields, notion and level, belong to every notion.
    for field in fields(Claim)[2:]:
        if getattr(claim, field.name) is not field.default and field.name not in carries:
            yield (
                "this does not belong to the notion",
                "prior" if field.name == "joint" else field.name,
            )
    yield from _level_faults(claim)
    if "joint" in carries:
        yield from _joint_faults(claim.joint, answers)
    if "attributes" in carries:
        yield from _attribute_faults(claim.attributes, answers)
    if "sensitive" in carries and not (
        _whole(claim.sensitive, 0) and claim.sensitive in range(len(claim.joint or ()))
    ):
        yield "the sensitive secret must be one of the prior's rows, counted from 0", "sensitive"
    if "delta" in carries and not _is_delta(claim.delta):
        yield (
            "delta is a ratio n/d of whole numbers below 2^53, zero or more and less than 1",
            "delta",
        )
    if "levels" in carries:
        yield from _pair_faults(claim.levels, answers)
    if "lower_bounds" in carries:
        yield from _bound_faults(claim.lower_bounds, answers)
        if type(claim.diagonal) is not bool:
            yield "expected true or false", "diagonal"


def _level_faults(claim: Claim) -> Iterator[_Fault]:
    promised = {"level": claim.level}
    if claim.notion == "alip":
        promised = {
            f: v for f, v in {**promised, "low_level": claim.low_level}.items() if v is not None
        }
        if not promised:
            yield "two infinite levels promise nothing", "level"
    for field, level in promised.items():
        if not _pair(level) or not all(_whole(v, 1) for v in level or ()):
            yield "a level is a ratio p/q of positive whole numbers below 2^53", field
        p, q = level or (0, 0)
        if claim.notion == "dpv" and p > q:
            yield "the probability of the sensitive secret is bounded by p/q ≤ 1", field
        if claim.notion != "dpv" and p < q:
            yield "a level is a ratio p/q ≥ 1", field


def _joint_faults(joint: Joint | None, answers: int) -> Iterator[_Fault]:
    if not _table(joint) or len(joint or ()) < 2:
        # A single row is a constant secret, which every mechanism protects. If the answer itself is
        # the secret, the prior is a diagonal table, not one row.
        yield "the prior needs a row for each of two or more secrets", "prior"
    for s, row in enumerate(joint or ()):
        field = f"prior.joint[{s}]"
        if len(row) != answers:
            yield f"every row of the prior needs {answers} columns", field
        if not all(_whole(n, 0) for n in row):
            yield "a prior consists of whole numbers, zero or more", field
        if not any(row):
            yield "a secret without mass cannot be protected", field


def _attribute_faults(attributes: tuple[int, ...] | None, answers: int) -> Iterator[_Fault]:
    # An attribute of one value reveals nothing, but would double the subsets J to verify.
    if not isinstance(attributes, tuple | list) or not all(_whole(k, 2) for k in attributes):
        yield "give the number of values of every attribute, two or more", "attributes"
    if prod(attributes or ()) != answers:
        yield (
            f"the attributes' sizes must multiply to {answers}, the number of answers",
            "attributes",
        )


def _bound_faults(bounds: LowerBounds | None, answers: int) -> Iterator[_Fault]:
    if not _table(bounds) or len(bounds or ()) < 2:
        yield "lower bounds need a row for each of two or more secrets", "lower_bounds"
    width, remainder = divmod(answers, len(bounds or (0,)))
    for s, row in enumerate(bounds or ()):
        field = f"lower_bounds[{s}]"
        if remainder or len(row) != width:
            yield (
                f"the rows must be equally long and have {answers} bounds, one for each answer (s, u)",
                field,
            )
        if not all(_pair(bound) and _whole(bound[0], 0) and _whole(bound[1], 1) for bound in row):
            yield "a bound is a ratio of whole numbers below 2^53", field
        if sum(Fraction(n, d) for n, d in row) > 1:
            yield "the row's bounds on probabilities sum to more than 1", field


def _pair_faults(levels: PairLevels | None, answers: int) -> Iterator[_Fault]:
    if not _table(levels) or len(levels or ()) != answers:
        yield f"levels of pairs need {answers} rows, one for each answer", "levels"
    for x, row in enumerate(levels or ()):
        field = f"levels[{x}]"
        if len(row) != answers:
            yield f"every row of levels needs {answers} columns", field
        # A level of an answer against itself would look like a promise, but promises nothing.
        if row[x] is not None:
            yield "an answer has no level against itself: give null", field
        for ratio in row:
            if ratio is None:
                continue
            if not _pair(ratio) or not all(_whole(v, 1) for v in ratio) or ratio[0] < ratio[1]:
                yield "a level of a pair is null or a ratio p/q ≥ 1", field
    if not any(ratio for row in levels or () for ratio in row):
        yield "without a level for any pair nothing is promised", "levels"


def _is_delta(delta: Ratio | None) -> bool:
    n, d = delta if delta is not None and _pair(delta) else (None, None)
    return _whole(n, 0) and _whole(d, 1) and Fraction(n or 0, d or 1) < 1


def _whole(value: object, least: int) -> bool:
    return type(value) is int and least <= value <= MAX_INT


def _pair(value: object) -> bool:
    return isinstance(value, tuple | list) and len(value) == 2


def _table(value: object) -> bool:
    return isinstance(value, tuple | list) and all(isinstance(row, tuple | list) for row in value)
