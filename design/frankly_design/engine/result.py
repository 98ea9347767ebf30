# SPDX-License-Identifier: Apache-2.0
"""Results of the engine: verified mechanisms with their figures."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from frankly_protocol.audit import Claim
from frankly_protocol.mechanisms import DenseMechanism, Mechanism

from frankly_design.kinds.dense import table_of
from frankly_design.notions.cones import Level


@dataclass(frozen=True, slots=True)
class DesignResult:
    """Mechanism that satisfies its claims, with figures computed from its integer weights.

    mechanism : any kind; an optimum is a table, or subset selection under ldp.
    claims : the claims, with verified levels.
    ceiling : largest ratio of a report's probabilities under two answers, which bounds the leakage
        under every prior; None if infinite.
    information, normalised_information : I(X;Y) in nats, and as a share of H(X).
    variance : total variance of the unbiased shares at n = 1, inf if some cannot be estimated.
    target_variances : variance of each target, or of each share if there are no targets.
    hamming : probability that the best guess of the answer from its report is wrong.
    value, bound, gap : the value of the objective, its proven bound over all mechanisms that
        satisfy the claims, and their distance. For families bound and gap are None, unless answers
        are sent unchanged.
    certified : True if the gap is within the limit.
    exact : True if the bound comes from a list of all rays or a closed form, False if it comes from
        branch and bound or a relaxation, or if there is none.
    rank : exact rank of Q.
    identifiable : True if the rank equals the number of answers.
    estimable : as text, the combinations of shares that can be estimated.
    eta : share of noise mixed in by rounding.
    identity : True if answers are sent unchanged.
    decoder_prior : counts of the answers, which determine the published decoder.
    left_out : names of figures that are nan because time was up.
    parameters : numbers of answers and reports, and parameters of a family. For a request with
    truths also the decoder's prior and the variances at the truths.

    If there are too many reports to list, information and hamming are nan, and for a product so are
    the variances. Variances of sets are those of the estimate from the number of sets that contain
    each answer.
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
    left_out: tuple[str, ...] = ()
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def table(self) -> DenseMechanism:
        """The mechanism as a table. Raises TypeError for other kinds."""
        table = table_of(self.mechanism)
        if table is None:
            raise TypeError(f"the kind is {self.mechanism.kind}")
        return table

    @property
    def level(self) -> Level:
        """Level (p, q) of the first claim; (1, 1) if it has none."""
        return self.claims[0].level or (1, 1)


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """Verified mechanism near the frontier, with bounds and with figures from its integer weights.

    information : I(X;Y) in nats.
    variance : total variance of the targets at n = 1.
    information_bound : upper bound of the information of all mechanisms that satisfy the claims and
        have this variance.
    variance_bound : lower bound of the variance of those that have this information.
    """

    mechanism: DenseMechanism
    information: float
    variance: float
    information_bound: float
    variance_bound: float
