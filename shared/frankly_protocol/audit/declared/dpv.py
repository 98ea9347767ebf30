# SPDX-License-Identifier: Apache-2.0
"""dpv: a bound on the chance of one sensitive value of a secret after a report (Thesis, 6.24)."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from frankly_protocol.audit import ratios, sets
from frankly_protocol.audit.declared.cost import average_work, sizes_of
from frankly_protocol.audit.declared.faults import Fault, is_whole, joint_faults, positive_faults
from frankly_protocol.audit.declared.notion import ByReport, Said
from frankly_protocol.audit.ratios import Candidate
from frankly_protocol.audit.units import search_steps
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.mechanisms.numbered import SetSymbols

if TYPE_CHECKING:
    from frankly_protocol.audit.claims import Claim


class Dpv(ByReport):
    """P(sensitive|y) ≤ level ≤ 1 for every report y."""

    carries = ("joint", "sensitive")
    fields = ("level", "prior", "sensitive")
    least = 0
    is_posterior = True

    def faults(self, claim: "Claim", answers: int, /) -> Iterator[Fault]:
        """Yield the faults of the level, which is a chance, and of the data."""
        yield from positive_faults(claim.level, "level")
        p, q = claim.level or (0, 0)
        if p > q:
            yield "the probability of the sensitive secret is bounded by p/q ≤ 1", "level"
        yield from self.data_faults(claim, answers)

    def data_faults(self, claim: "Claim", answers: int, /) -> Iterator[Fault]:
        """Yield the faults of the prior and of its sensitive row."""
        yield from joint_faults(claim.joint, answers)
        rows = range(len(claim.joint or ()))
        if not (is_whole(claim.sensitive, 0) and claim.sensitive in rows):
            yield (
                "the sensitive secret must be one of the prior's rows, counted from 0",
                "sensitive",
            )

    def of_columns(self, columns: ratios.Columns, claim: "Claim", /) -> Iterator[Candidate]:
        """Yield the chance after every report."""
        return ratios.posteriors(columns, claim.joint or (), _sensitive(claim))

    def of_sets(self, shape: sets.Sets, claim: "Claim", /) -> Iterator[Candidate]:
        """Yield the chance after the worst set."""
        return sets.posteriors(shape, claim.joint or (), _sensitive(claim))

    def columns_work(self, factors: Sequence[DenseMechanism], _claim: "Claim", /) -> int:
        """Return the units of two averages: of the sensitive secret, and of all."""
        return average_work(factors, 2, 2 * sizes_of(factors)[0])

    def sets_work(self, mechanism: SetSymbols, _claim: "Claim", /) -> int:
        """Return the units of one search."""
        return 800 * mechanism.answers * search_steps(1)

    def lift_bound(self, _claim: "Claim", /) -> Fraction | None:
        """Return None: a posterior is no ratio."""
        return None

    def said(self, claim: "Claim", /) -> Said:
        """Return the sentence about the sensitive value."""
        return Said(("sure",), chance=Fraction(*(claim.level or (1, 1))))


def _sensitive(claim: "Claim") -> int:
    assert claim.sensitive is not None  # noqa: S101 - `require_sound` has checked it
    return claim.sensitive
