# SPDX-License-Identifier: Apache-2.0
"""Flags: conditions under which an estimate, or one of its rows, gets a warning.

`figures` adds the flags of its own computations: negative parts of a variance, reports that do not
fit, and shares outside [0, 1].
"""

from typing import Final

from frankly_design.estimate.chernoff import Ends
from frankly_design.estimate.target_ends import VANISHED
from frankly_design.kinds.evidence import Evidence

ILL_CONDITIONED = 1e6
"""An estimate is flagged if the condition number of Q is at least this."""
IMPRECISE = 2 / 3
"""A margin above this fraction of the estimate is flagged as imprecise."""
FEW = 5
"""A row with fewer informative reports than this is flagged."""
FAR = 5
"""A row is flagged if it is more worst-case standard errors than this from the possible values.

The limit is the same for every level and method. For a normal estimate, fewer than one in a million
surveys without fakes is that far off.
"""

SENTENCES: Final = {
    "no_reports": "There are no reports.",
    "one_report": "From one report alone, its error cannot be estimated.",
    "outside_unit_interval": "The estimate lies outside 0 to 100%, as noise can cause for a rare or a common answer.",
    "imprecise": "The interval reaches farther from the estimate than two thirds of it: too uncertain for most uses.",
    "not_identifiable": "Some figures of this question cannot be estimated, however many reports come in.",
    "reports_do_not_fit": "The mechanism hardly ever produces such reports: a fault, fake reports, or rare chance.",
    "margin_too_wide": "The interval reaches farther than all possible values are apart: it says almost nothing.",
    "few_informative": "Fewer than 5 reports differ from the most common one here: the interval rests on very few.",
    "ill_conditioned": "The mechanism hardly shows some differences: small errors are magnified.",
    "mle_not_converged": "The search for the most likely shares stopped early.",
    "outside_simplex": "Taken together, the estimates are not possible shares; each of them is still unbiased.",
    "design_prior_replaced": "The published prior could not be used for decoding; equal shares were used instead.",
    "privacy_part_negative": "The part of the error due to privacy could not be separated.",
    "sampling_part_negative": "The part of the error due to sampling could not be separated; it is small.",
}
"""What each flag of an estimate, or of one of its rows, means for its reader."""


def evidence_flags(evidence: Evidence, targets: int) -> list[str]:
    """Return the flags of an estimate that follow from its evidence; `Estimate` describes them.

    targets : number of targets, identifiable or not.
    """
    conditions = {
        "no_reports": evidence.n == 0,
        "one_report": evidence.n == 1,
        "not_identifiable": len(evidence.known) < targets,
        "ill_conditioned": evidence.rank == evidence.answers
        and evidence.condition > ILL_CONDITIONED,
        "design_prior_replaced": evidence.fallback,
    }
    return [name for name, holds in conditions.items() if holds]


def row_flags(
    value: float | None,
    ends: Ends | None,
    possible: Ends,
    informative: int | None,
    worst: float | None,
) -> list[str]:
    """Return the flags of one row; `Estimate` describes them.

    possible : least and largest possible value of the target.
    worst : worst-case standard error of the target, None if undefined.
    """
    low, high = possible
    beyond = 0.0 if value is None else max(low - value, value - high)
    margin = 0.0 if value is None or ends is None else max(value - ends[0], ends[1] - value)
    conditions = {
        "imprecise": value is not None and margin > IMPRECISE * abs(value),
        "margin_too_wide": margin > high - low > 0,
        "few_informative": informative is not None and informative < FEW and high > low,
        "reports_do_not_fit": worst is not None
        and beyond > max(FAR * worst, VANISHED * (high - low)),
    }
    return [name for name, holds in conditions.items() if holds]
