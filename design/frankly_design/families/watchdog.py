# SPDX-License-Identifier: Apache-2.0
"""Watchdog families: complete merging, subset merging, subset random response  [Lift §3-5]."""

from collections.abc import Callable
from dataclasses import replace

from frankly_protocol.audit import Claim
from frankly_protocol.mechanisms import DenseMechanism

from frankly_design.families.family import BITS, Built, Family, FamilyRequest, certify, unsupported
from frankly_design.families.lift.complete_merging import watchdog
from frankly_design.families.lift.merging import subset_merging
from frankly_design.families.lift.mixture import Table
from frankly_design.families.lift.subset_rr import subset_random_response
from frankly_design.notions.lift_criteria import MEASURES, Level, Measure

Maker = Callable[..., Table]


def _family(make: Maker) -> Family:
    def family(request: FamilyRequest) -> Built:
        """Build a table that sends low-risk answers unchanged, and merges or randomises the others.

        An answer is of low risk if its report meets the criterion. The first claim sets the
        criterion (lift for alip and lip, ldp for secret-ldp) and its levels. With
        `lift_measure` l1, chi2 or alpha, the levels of alip or lip bound that average and its
        inverse instead (Lift Defs 5, 6). No document can promise such a bound, so the published
        claim is the alip level that the table satisfies. A group that breaks the criterion is
        extended by further answers until it meets the criterion (erratum 9.21-9.22).
        """
        claim, bounds_average = request.claims[0], request.explicit.lift_measure != "lift"
        low, high, measure = _levels_and_measure(request, claim)
        joint = claim.joint or ()
        weights = make(joint, low, high, measure=measure, order=request.explicit.lift_order)
        mechanism = DenseMechanism(BITS, weights)
        figures: dict[str, object] = {
            "lift_measure": measure,
            # A report with a single non-zero weight reveals its answer.
            "sent_as_they_are": sum(
                sum(map(bool, column)) == 1 for column in zip(*weights, strict=True)
            ),
        }
        if not bounds_average:
            return certify(request, mechanism, figures)
        if measure == "alpha":
            figures["lift_order"] = request.explicit.lift_order
        # The claim is open, so `certify` sets it to the alip level that the table satisfies.
        open_alip = Claim("alip", None, joint)
        return certify(
            replace(request, claims=(open_alip, *request.claims[1:])), mechanism, figures
        )

    return family


def _levels_and_measure(
    request: FamilyRequest, claim: Claim
) -> tuple[Level | None, Level | None, Measure]:
    """Return the lower level, the upper level and the measure that they bound."""
    measure = request.explicit.lift_measure
    if measure not in MEASURES or measure == "ldp":
        raise unsupported(
            f"the measures are {', '.join(m for m in MEASURES if m != 'ldp')}", "lift_measure"
        )
    # LDP of the secret has one level, which the criterion treats as the level of the upper side.
    if claim.notion == "secret-ldp" and measure == "lift":
        return None, claim.level, "ldp"
    if claim.notion not in ("alip", "lip"):
        raise unsupported(
            f"{request.name} supports alip, lip and, only with lift_measure lift, secret-ldp as the first notion",
            "notion",
        )
    return (claim.level if claim.notion == "lip" else claim.low_level), claim.level, measure


complete_merging = _family(watchdog)
subset_merged = _family(subset_merging)
subset_response = _family(subset_random_response)
