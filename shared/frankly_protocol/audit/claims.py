# SPDX-License-Identifier: Apache-2.0
"""Privacy claims of a publisher: a notion, its levels and its public data (ADR 0012)."""

from dataclasses import dataclass, fields

from frankly_protocol.audit.data import Joint, LowerBounds, PairLevels, Ratio
from frankly_protocol.audit.declared import DECLARED
from frankly_protocol.errors import DocumentRejected, UnsupportedDocument

NOTIONS = tuple(DECLARED)
PRIOR_FREE = tuple(name for name, notion in DECLARED.items() if not notion.rests_on_prior)
PRIOR_BASED = tuple(name for name, notion in DECLARED.items() if notion.rests_on_prior)
"""The notions that depend on a public prior; they promise nothing if the prior is wrong."""


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
        """The notion's display name: pml or pmc for alip with one side, otherwise `notion`."""
        return DECLARED[self.notion].display_name(self)


def require_sound(claim: Claim, answers: int) -> None:
    """Raise unless the claim is well-formed for a mechanism with this many answers.

    Raises UnsupportedDocument for an unknown notion; DocumentRejected("privacy"), naming the field,
    for an invalid level and for parameters that are missing, do not fit, or do not belong to the
    notion.
    """
    # A tuple, because a caller may pass what cannot be looked up, such as a list.
    if claim.notion not in tuple(DECLARED):
        raise UnsupportedDocument(
            f"unknown notion; this version knows {', '.join(DECLARED)}: update the app", "notion"
        )
    notion = DECLARED[claim.notion]
    # A parameter that the notion ignores would look like a promise, but no check would cover it.
    # The first two fields, notion and level, belong to every notion.
    for field in fields(Claim)[2:]:
        if getattr(claim, field.name) is not field.default and field.name not in notion.carries:
            place = "prior" if field.name == "joint" else field.name
            raise _unsound(claim, "this does not belong to the notion", place)
    for detail, place in notion.faults(claim, answers):
        raise _unsound(claim, detail, place)


def _unsound(claim: Claim, detail: str, field: str) -> DocumentRejected:
    return DocumentRejected("privacy", f"{claim.notion}: {detail}", field)
