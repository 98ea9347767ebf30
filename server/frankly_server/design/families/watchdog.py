# SPDX-License-Identifier: Apache-2.0
"""The watchdog's mechanisms as families: complete merging, subset merging, subset random response  [Lift §3-5]."""

from collections.abc import Callable
from dataclasses import replace

from frankly_protocol.audit import Claim
from frankly_protocol.mechanisms import DenseMechanism

from frankly_server.design.families.base import BITS, Built, Family, Wanted, built, unsupported
from frankly_server.design.lift.criteria import MEASURES, Level, Measure
from frankly_server.design.lift.inside import Table
from frankly_server.design.lift.merging import subset_merging
from frankly_server.design.lift.subset_rr import subset_random_response
from frankly_server.design.lift.watchdog import watchdog

Maker = Callable[..., Table]


def _family(make: Maker) -> Family:
    def family(wanted: Wanted) -> Built:
        """Answers that tell little are sent as they are, the others blurred; which, the criterion decides exactly.

        alip, lip and secret-ldp set the criterion (lift, lift, ldp) and its levels. With `lift_measure` l1, chi2 or
        alpha the levels of alip or lip bound that average and its inverse instead (Lift Defs 5, 6), which is no notion
        of a document: what is promised then is the alip level that the table really needs. Corrected as DESIGN §9.21-22
        says: a block that would tell too much takes in more answers until it does not.
        """
        claim, average = wanted.claims[0], wanted.explicit.lift_measure != "lift"
        low, high, measure = _levels(wanted, claim)
        joint = claim.joint or ()
        weights = make(joint, low, high, measure=measure, order=wanted.explicit.lift_order)
        mechanism = DenseMechanism(BITS, weights)
        figures: dict[str, object] = {
            "lift_measure": measure,
            "sent_as_they_are": sum(1 for column in zip(*weights, strict=True) if sum(map(bool, column)) == 1),
        }
        if not average:
            return built(wanted, mechanism, figures)
        if measure == "alpha":
            figures["lift_order"] = wanted.explicit.lift_order
        open_alip = Claim("alip", None, joint)
        return built(replace(wanted, claims=(open_alip, *wanted.claims[1:])), mechanism, figures)

    return family


def _levels(wanted: Wanted, claim: Claim) -> tuple[Level | None, Level | None, Measure]:
    """Return the lower level, the upper level and the measure that they bound."""
    measure = wanted.explicit.lift_measure
    if measure not in MEASURES or measure == "ldp":
        words = f"the measures are {', '.join(m for m in MEASURES if m != 'ldp')}"
        raise unsupported(words, "lift_measure")
    if claim.notion == "secret-ldp" and measure == "lift":
        return None, claim.level, "ldp"
    if claim.notion not in ("alip", "lip"):
        words = f"{wanted.name} keeps alip, lip and (lift_measure lift only) secret-ldp, as the first notion"
        raise unsupported(words, "notion")
    return (claim.level if claim.notion == "lip" else claim.low_level), claim.level, measure


complete_merging = _family(watchdog)
subset_merged = _family(subset_merging)
subset_response = _family(subset_random_response)
