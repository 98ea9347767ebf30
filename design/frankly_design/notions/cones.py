# SPDX-License-Identifier: Apache-2.0
"""Cones of privacy notions: integer rows r with r·q ≥ 0 on a report's column q ≥ 0 (spec 1.3).

Every notion except dp is a list of pairs of averages (A, B) with A·q ≤ (m/d)·B·q for the level m/d,
multiplied out to integers in its declaration (`declared`). Orientation: a column q contains Q(y|x)
for one report y and all answers x (Funnel writes it as a row of Q_{y|x}).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb

import numpy as np
from frankly_protocol.audit import Claim, require_private
from frankly_protocol.errors import DocumentRejected, InvalidInput
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.problems import Problem
from numpy.typing import NDArray

from frankly_design.notions.declared.answer import answer_rays
from frankly_design.notions.declared.notion import Level, Lifted, Row, level_of
from frankly_design.notions.declared.registry import notion_of
from frankly_design.notions.walk import base_vertices
from frankly_design.numeric.rays import MAX_CANDIDATES, Ray, extreme_rays

__all__ = ["MAX_RAYS", "Cone", "Level", "answer_rays", "have_cone", "rows_of"]

# The largest number of reports of a published table (MAX_REPORTS).
MAX_RAYS = 4096
# Up to this many candidate rays, the rays of a cone are listed; above, column generation is used
# (docs/maths/cones.md, Listing or not).
_LISTED_CANDIDATES = 20_000
# For more than 20 answers, rays of cones with about a² rows are not listed, unless in closed form.
_MAX_LISTED_ROWS = 400
# Up to these numbers of answers and rows, rays are listed even if the bound on their number is
# large.
_SMALL_ANSWERS, _SMALL_ROWS = 6, 60


@dataclass(frozen=True, slots=True)
class Cone:
    """Cone of the columns that every claim allows, over `answers` answers."""

    claims: tuple[Claim, ...]
    answers: int

    @classmethod
    def of(cls, claims: Sequence[Claim], answers: int) -> "Cone":
        """Return the cone of the claims that the strictest claim of LDP does not imply.

        ε-LDP implies the other notions at its level and above, but not dpv, and metric-ldp has a
        level for each pair (docs/maths/notions.md).
        """
        strictest = min(
            (claim for claim in claims if claim.notion == "ldp"),
            key=lambda claim: Fraction(*level_of(claim)),
            default=None,
        )
        if strictest is None:
            return cls(tuple(claims), answers)
        ratio = Fraction(*level_of(strictest))
        needed = [
            claim
            for claim in claims
            if claim is strictest
            or not notion_of(claim).is_implied
            or any(
                level is not None and Fraction(*level) < ratio
                for level in (claim.level, claim.low_level)
            )
        ]
        return cls(tuple(needed), answers)

    def rows(self) -> list[Row]:
        """Return the rows in addition to q ≥ 0; about answers² of them for ldp, metric-ldp and rldp."""
        return [row for claim in self.claims for row in rows_of(claim, self.answers)]

    def lifted_rows(self) -> list[Row]:
        """Return fewer rows, over q and auxiliary variables; their projection on q is the cone.

        `rows` has a row for each pair of averages, and at a ray many of these rows are tight.
        The constant column with all auxiliary variables equal to 1 satisfies every row strictly
        (docs/maths/generation.md, claims 8 and 17).
        """
        lifted, variables = [], 0
        for claim in self.claims:
            lift = notion_of(claim).lifted or _without_variables
            rows, count = lift(claim, self.answers)
            lifted += [(row, {variables + i: n for i, n in of.items()}) for row, of in rows]
            variables += count
        return [[*row, *(of.get(i, 0) for i in range(variables))] for row, of in lifted]

    def admits_identity(self) -> bool:
        """Return True if the exact verifier accepts the identity, which sends answers unchanged."""
        if any(
            min(row) < 0
            for claim in self.claims
            for row in notion_of(claim).rows(claim, self.answers)
        ):
            return False
        # 16 = 2^4 is the row sum of a table with 4 bits; whether the identity is private does not
        # depend on the number of bits.
        weights = tuple(
            tuple(16 if x == y else 0 for y in range(self.answers)) for x in range(self.answers)
        )
        try:
            require_private(DenseMechanism(4, weights), *self.claims)
        except DocumentRejected:
            return False
        return True

    def rays(self) -> list[Ray]:
        """Return all extreme rays as integer columns, exactly inside the cone.

        Raises InvalidInput(optimiser_limit) if there would be too many.
        """
        if not self.is_small() and self._candidates() > MAX_CANDIDATES:
            raise _too_large()
        if self._closed_rays is not None:
            return self._closed_rays(self.claims[0], self.answers)
        rays = extreme_rays(self.rows(), self.answers)
        if len(rays) > MAX_RAYS:
            raise _too_large()
        return rays

    def vertices(self, p: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return the rays as floats with p·v = 1, shape (n, answers), without exact arithmetic.

        Rays may occur twice. Returns None if a closed form gives the rays, or if floats cannot list
        them reliably (`walk.base_vertices`); `rays` works in both cases.
        """
        rows = [] if self._closed_rays else self.rows()
        if not rows:
            return None
        scaled = np.array(
            [[n / size for n in row] for row in rows for size in (max(map(abs, row)),)]
        )
        return base_vertices(scaled, p, MAX_RAYS)

    def is_small(self) -> bool:
        """Return True if all rays can be listed in well under a second."""
        if self._candidates() <= _LISTED_CANDIDATES:
            return True
        # For few dimensions the bound on the number of rays is far too large.
        return self.answers <= _SMALL_ANSWERS and len(self.rows()) <= _SMALL_ROWS

    @property
    def _closed_rays(self) -> Callable[[Claim, int], list[Ray]] | None:
        return notion_of(self.claims[0]).rays if len(self.claims) == 1 else None

    def _candidates(self) -> int:
        """Return an upper bound on the number of rays; MAX_CANDIDATES + 1 if there are too many."""
        a, notions = self.answers, [notion_of(claim) for claim in self.claims]
        most_rays = notions[0].most_rays if len(notions) == 1 else None
        if most_rays is not None:
            bound = most_rays(self.claims[0], a)
            # With a closed form, the bound is the number of rays itself.
            is_too_many = self._closed_rays is not None and bound > MAX_RAYS
            return MAX_CANDIDATES + 1 if is_too_many else bound
        if any(notion.has_many_rows for notion in notions) and a * a > _MAX_LISTED_ROWS:
            return MAX_CANDIDATES + 1
        return comb(len(self.rows()) + a, a - 1)


def have_cone(claims: Sequence[Claim]) -> bool:
    """Return False if columns alone do not decide whether all claims hold."""
    return all(notion_of(claim).has_cone for claim in claims)


def rows_of(claim: Claim, answers: int) -> list[Row]:
    """Return the rows of one notion, except those that every q ≥ 0 satisfies."""
    return [row for row in notion_of(claim).rows(claim, answers) if min(row) < 0]


def _without_variables(claim: Claim, answers: int) -> tuple[list[Lifted], int]:
    return [(row, {}) for row in rows_of(claim, answers)], 0


def _too_large() -> InvalidInput:
    return InvalidInput(
        Problem.OPTIMISER_LIMIT,
        "the candidate columns are too many to list: use the method auto, or the mechanism grr "
        "with the notion ldp",
        "method",
    )
