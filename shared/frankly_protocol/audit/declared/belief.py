# SPDX-License-Identifier: Apache-2.0
"""Notions about the belief in a secret: lip, alip, srlip and dpv."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING

from frankly_protocol.audit import ratios, sets
from frankly_protocol.audit.declared.faults import (
    Fault,
    attribute_faults,
    is_whole,
    joint_faults,
    positive_faults,
    ratio_faults,
)
from frankly_protocol.audit.declared.notion import ByReport, Said
from frankly_protocol.audit.ratios import Candidate
from frankly_protocol.audit.units import STEPS, average_work, positive, search_steps, sizes_of
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.mechanisms.numbered import SetSymbols

if TYPE_CHECKING:
    from frankly_protocol.audit.claims import Claim


class Lip(ByReport):
    """P(y|s) / P(y) is within [1/E, E] for every secret s and report y (Funnel, Def. 2)."""

    def data_faults(self, claim: "Claim", answers: int, /) -> Iterator[Fault]:
        return joint_faults(claim.joint, answers)

    def of_columns(self, columns: ratios.Columns, claim: "Claim", /) -> Iterator[Candidate]:
        return ratios.average_ratios(columns, claim.joint or ())

    def of_sets(self, shape: sets.Sets, claim: "Claim", /) -> Iterator[Candidate]:
        return sets.average_ratios(shape, claim.joint or ())

    def columns_work(self, factors: Sequence[DenseMechanism], claim: "Claim", /) -> int:
        joint = claim.joint or ()
        return average_work(factors, len(joint), positive(joint))

    def sets_work(self, mechanism: SetSymbols, claim: "Claim", /) -> int:
        """Return the units of two searches for every secret and condition.

        A condition fixes each attribute or leaves it free; a search for a set of fixed size also
        sorts the answers that do not meet the condition.
        """
        a, attributes = mechanism.answers, claim.attributes or ()
        conditions = prod(size + 1 for size in attributes)
        spare_cost = a * conditions * 120 if mechanism.HAS_ONE_SIZE else 0
        cost_per_secret = STEPS * ((800 * a << len(attributes)) + spare_cost) + 8000 * conditions
        return 2 * (800 * a * search_steps(0) + len(claim.joint or ()) * cost_per_secret)

    def odds_bound(self, claim: "Claim", /) -> Fraction | None:
        """Return E²: two lifts within [1/E, E] can be at opposite ends."""
        bound = self.lift_bound(claim)
        return None if bound is None else bound**2

    def said(self, claim: "Claim", /) -> Said:
        up, down = (level and Fraction(*level) for level in (claim.level, claim.low_level))
        return Said((self.display_name(claim),), {"up": up, "down": down})


class Alip(Lip):
    """The two sides of lip, each with its own level; one may be left out (Lift, Def. 3)."""

    carries = ("joint", "low_level")
    fields = ("level", "low_level", "prior")
    bounds = ("level", "low_level")

    def display_name(self, claim: "Claim", /) -> str:
        """Return pml or pmc for a claim with one side.

        Documents use alip for both, so that each promise has only one form (ADR 0028).
        """
        if claim.low_level is None:
            return "pml"
        return "pmc" if claim.level is None else self.name

    def faults(self, claim: "Claim", answers: int, /) -> Iterator[Fault]:
        sides = {"level": claim.level, "low_level": claim.low_level}
        if not any(level is not None for level in sides.values()):
            yield "two infinite levels promise nothing", "level"
        for field, level in sides.items():
            if level is not None:
                yield from ratio_faults(level, field)
        yield from self.data_faults(claim, answers)

    def lift_bound(self, claim: "Claim", /) -> Fraction | None:
        """Return the larger level; None if a side is not promised, and so has no bound."""
        if claim.level is None or claim.low_level is None:
            return None
        return max(Fraction(*claim.level), Fraction(*claim.low_level))

    def odds_bound(self, claim: "Claim", /) -> Fraction | None:
        if claim.level is None or claim.low_level is None:
            return None
        return Fraction(*claim.level) * Fraction(*claim.low_level)


class Srlip(Lip):
    """lip given the values of any attributes of the answer (Funnel, Def. 3)."""

    carries = ("joint", "attributes")
    fields = ("level", "prior", "attributes")

    def data_faults(self, claim: "Claim", answers: int, /) -> Iterator[Fault]:
        yield from joint_faults(claim.joint, answers)
        yield from attribute_faults(claim.attributes, answers)

    def of_columns(self, columns: ratios.Columns, claim: "Claim", /) -> Iterator[Candidate]:
        return ratios.side_channel_ratios(columns, claim.joint or (), claim.attributes or ())

    def of_sets(self, shape: sets.Sets, claim: "Claim", /) -> Iterator[Candidate]:
        return sets.side_channel_ratios(shape, claim.joint or (), claim.attributes or ())

    def columns_work(self, factors: Sequence[DenseMechanism], claim: "Claim", /) -> int:
        """Return the units of an average for every secret and condition."""
        joint, cells = claim.joint or (), prod(size + 1 for size in claim.attributes or ())
        margins = len(joint) * cells * 40 * sizes_of(factors)[2]
        return average_work(factors, len(joint), positive(joint), cells, margins)


class Dpv(ByReport):
    """P(sensitive|y) ≤ level ≤ 1 for every report y (Thesis, 6.24)."""

    carries = ("joint", "sensitive")
    fields = ("level", "prior", "sensitive")
    least = 0
    is_posterior = True

    def faults(self, claim: "Claim", answers: int, /) -> Iterator[Fault]:
        yield from positive_faults(claim.level, "level")
        p, q = claim.level or (0, 0)
        if p > q:
            yield "the probability of the sensitive secret is bounded by p/q ≤ 1", "level"
        yield from self.data_faults(claim, answers)

    def data_faults(self, claim: "Claim", answers: int, /) -> Iterator[Fault]:
        yield from joint_faults(claim.joint, answers)
        rows = range(len(claim.joint or ()))
        if not (is_whole(claim.sensitive, 0) and claim.sensitive in rows):
            yield (
                "the sensitive secret must be one of the prior's rows, counted from 0",
                "sensitive",
            )

    def of_columns(self, columns: ratios.Columns, claim: "Claim", /) -> Iterator[Candidate]:
        return ratios.posteriors(columns, claim.joint or (), _sensitive(claim))

    def of_sets(self, shape: sets.Sets, claim: "Claim", /) -> Iterator[Candidate]:
        return sets.posteriors(shape, claim.joint or (), _sensitive(claim))

    def columns_work(self, factors: Sequence[DenseMechanism], _claim: "Claim", /) -> int:
        """Return the units of two averages: of the sensitive secret, and of all."""
        return average_work(factors, 2, 2 * sizes_of(factors)[0])

    def sets_work(self, mechanism: SetSymbols, _claim: "Claim", /) -> int:
        return 800 * mechanism.answers * search_steps(1)

    def lift_bound(self, _claim: "Claim", /) -> Fraction | None:
        """Return None: a posterior is no ratio."""
        return None

    def said(self, claim: "Claim", /) -> Said:
        return Said(("sure",), chance=Fraction(*(claim.level or (1, 1))))


def _sensitive(claim: "Claim") -> int:
    assert claim.sensitive is not None  # noqa: S101 - `require_sound` has checked it
    return claim.sensitive
