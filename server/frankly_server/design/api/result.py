# SPDX-License-Identifier: Apache-2.0
"""Results of the engine: verified mechanisms with their figures."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from frankly_protocol.audit import Claim
from frankly_protocol.mechanisms import DenseMechanism, Mechanism

from frankly_server.design.notions.cones import Level


@dataclass(frozen=True, slots=True)
class Design:
    """Mechanism that satisfies its claims, with figures computed from its whole numbers.

    mechanism : of any kind; optima are tables.
    claims : with the levels that were verified.
    ceiling : leakage under every prior as a ratio, None if infinite.
    information, normalised_information : nats, share of H(X).
    variance : total of the unbiased shares at n = 1 under the prior, inf if not identifiable.
    target_variances : of each target, or of each share.
    hamming : probability that the best guess from a report is wrong.
    value, bound, gap : the objective reached, the proven bound of all mechanisms that satisfy the
        claims, their distance; bound and gap are None for families.
    certified : gap within the limit.
    exact : every ray of the cone was checked one by one (otherwise the bound comes from branch and
        bound or a relaxation).
    rank : exact rank of the table.
    identifiable : rank equals the number of answers.
    estimable : as text, the combinations that can be estimated.
    eta : share of constant noise mixed in by rounding.
    identity : every report reveals the answer.
    decoder_prior : counts of the answers from which the published decoder is made.
    parameters : a family's own.

    If there are too many reports to list, information and hamming are nan, for a product the
    variances too. Variances of sets are those of the estimate from the counts of each answer in
    them.
    """

    mechanism: Mechanism
    mechanism_name: str
    claims: tuple[Claim, ...]
    objective: str
    ceiling: Fraction | None
    information: float
    normalised_information: float
    variance: float
    target_variances: tuple[float, ...]
    hamming: float
    value: float
    bound: float | None
    gap: float | None
    certified: bool
    exact: bool
    rank: int
    identifiable: bool
    estimable: tuple[str, ...]
    eta: Fraction
    identity: bool
    decoder_prior: tuple[int, ...]
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def table(self) -> DenseMechanism:
        """The mechanism as a table (every optimum is one). Raises TypeError for other kinds."""
        if not isinstance(self.mechanism, DenseMechanism):
            raise TypeError(f"the kind is {self.mechanism.kind}")
        return self.mechanism

    @property
    def level(self) -> Level:
        """(p, q) of the first claim: the level of a document with one notion and one level."""
        return self.claims[0].level or (1, 1)


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """Verified mechanism on the frontier, with bounds and figures of its whole numbers.

    information : nats.
    variance : total of the targets.
    information_bound : upper bound of the information of all mechanisms that satisfy the claims at
        this variance.
    variance_bound : lower bound of their variance at this information.
    """

    mechanism: DenseMechanism
    information: float
    variance: float
    information_bound: float
    variance_bound: float
