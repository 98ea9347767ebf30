# SPDX-License-Identifier: Apache-2.0
"""What an explicit family is asked for, what it answers, and the calibration that most of them share.

Every notion is closed under mixing a mechanism with one that tells nothing, and under post-processing. A family whose
members, numbered from the most open to the closest, each arise from the one before in such a way therefore keeps its
promises from some number on: bisection with the exact verifier finds the first, so the level is met and never exceeded.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from frankly_protocol.audit import Claim, require_private
from frankly_protocol.errors import DocumentRejected, InvalidInput
from frankly_protocol.mechanisms import DenseMechanism, Mechanism
from frankly_protocol.problems import Problem

from frankly_server.design.cones import Level
from frankly_server.design.families.needs import is_open, settled
from frankly_server.design.lift.criteria import Measure
from frankly_server.design.prior import Prior

BITS = 48
REGIONS = ("honest", "whole")


@dataclass(frozen=True, slots=True)
class Explicit:
    """Parameters given instead of, or beside, a level.

    p00, p11 : chances that answer 0 and answer 1 are told as they are, in [0, 1]; warner and mangat take p00 alone.
    alpha : the family's own level in nats, as its docstring says. region : of (ε, δ) for two answers, honest (the
    truth is at least as likely as the lie, Thesis R') or whole (all of R). lift_measure, lift_order : what the
    watchdog's mechanisms bound, see `lift.criteria`.
    """

    p00: Fraction | None = None
    p11: Fraction | None = None
    alpha: Fraction | None = None
    region: str = "honest"
    lift_measure: Measure = "lift"
    lift_order: int = 2


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a family is asked for.

    name : of the family. prior : over the mechanism's answers. claims : all must hold; one whose level is open (None)
    gets the level that the mechanism needs, which takes explicit parameters.
    """

    name: str
    prior: Prior
    claims: tuple[Claim, ...]
    explicit: Explicit = field(default_factory=Explicit)

    @property
    def answers(self) -> int:
        """How many answers the mechanism takes."""
        return self.prior.answers


@dataclass(frozen=True, slots=True)
class Built:
    """A mechanism that keeps its claims, all levels settled; parameters : the family's own figures, for people.

    eta : share of constant noise that rounding mixed in.
    """

    mechanism: Mechanism
    claims: tuple[Claim, ...]
    parameters: dict[str, Any]
    eta: Fraction = Fraction(0)


Family = Callable[[Wanted], Built]


def built(wanted: Wanted, mechanism: Mechanism, parameters: dict[str, Any], eta: Fraction = Fraction(0)) -> Built:
    """Return the mechanism if the exact verifier finds every claim kept.

    Raises InvalidInput(mechanism_not_certified), telling what is broken.
    """
    claims = tuple(settled(mechanism, claim, wanted.name) for claim in wanted.claims)
    try:
        require_private(mechanism, *claims)
    except DocumentRejected as error:
        raise refused(wanted, error.detail) from None
    return Built(mechanism, claims, parameters, eta)


def calibrated(wanted: Wanted, make: Callable[[int], Mechanism], low: int, high: int, guess: int | None = None) -> int:
    """Return the least t in [low, high] for which make(t) keeps every claim; t grows towards what tells nothing.

    guess : where it is thought to be; two looks then do.

    Raises InvalidInput: mechanism_not_certified if not even make(high) does; field_missing where a level is open.
    """
    if any(map(is_open, wanted.claims)):
        words = f"{wanted.name} is fitted to a level: give one for every notion, or the mechanism's own parameters"
        raise InvalidInput(Problem.FIELD_MISSING, words, "epsilon")
    broken = ""

    def keeps(t: int) -> bool:
        nonlocal broken
        try:
            require_private(make(t), *wanted.claims)
        except DocumentRejected as error:
            broken = error.detail
            return False
        return True

    if keeps(low):
        return low
    if guess is not None and low < guess <= high:
        if not keeps(guess):
            low = guess
        elif keeps(guess - 1):
            high = guess - 1
        else:
            return guess
    if not keeps(high):
        raise refused(wanted, broken)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return high


def refused(wanted: Wanted, detail: str) -> InvalidInput:
    """Return the refusal of a family that does not keep what is asked."""
    words = f"{wanted.name} does not keep this ({detail}): ask for another level or notion, or the mechanism optimal"
    return InvalidInput(Problem.MECHANISM_NOT_CERTIFIED, words, "mechanism")


def unsupported(words: str, name: str = "mechanism") -> InvalidInput:
    """Return the refusal of a combination that does not exist."""
    return InvalidInput(Problem.UNSUPPORTED, words, name)


def least_level(claims: Sequence[Claim]) -> Level | None:
    """Return the least ratio promised of a report's probabilities; None where none is (dpv alone)."""
    levels = [
        level
        for claim in claims
        if claim.notion != "dpv"
        for level in (claim.level, claim.low_level)
        if level is not None
    ]
    return min(levels, key=lambda level: Fraction(*level)) if levels else None


def table(rows: Sequence[Sequence[int]], bits: int = BITS) -> DenseMechanism:
    """Return the rows as a mechanism without the reports that are never sent."""
    used = [y for y, column in enumerate(zip(*rows, strict=True)) if any(column)]
    return DenseMechanism(bits, tuple(tuple(row[y] for y in used) for row in rows))
