# SPDX-License-Identifier: Apache-2.0
"""Explicit mechanisms by name (spec 1.7), each checked by the exact verifier.

A family accepts every notion unless its docstring says otherwise. If its members are ordered by
privacy, the family is calibrated: bisection with the verifier finds the least private member that
satisfies every claim (`family.calibrate`). Otherwise the mechanism is built from the family's
parameters, and refused if a claim does not hold. `FamilyRequest` is the input, `Built` the
result.
"""

from frankly_design.families.binary import best_point, binary, variance_at
from frankly_design.families.conditional_reporting import conditional_reporting
from frankly_design.families.family import BITS, Built, Explicit, Family, FamilyRequest, certify
from frankly_design.families.needs import is_open, settle_level
from frankly_design.families.pairs import independent_reporting, secret_randomised_response
from frankly_design.families.randomised_response import (
    generalised,
    grr,
    mangat,
    super_binary_mangat,
    warner,
)
from frankly_design.families.sanitisation import sanitisation
from frankly_design.families.sets import oue, subset_selection, symmetric_unary, total_variance
from frankly_design.families.watchdog import complete_merging, subset_merged, subset_response

# The keys are the published names: requests, documents and the command line use them.
FAMILIES: dict[str, Family] = {
    "grr": generalised,
    "oue": oue,
    "subset-selection": subset_selection,
    "warner": warner,
    "mangat": mangat,
    "super-binary-mangat": super_binary_mangat,
    "product-sanitisation": sanitisation,
    "discrete-exponential": sanitisation,
    "binary": binary,
    "symmetric-unary": symmetric_unary,
    "conditional-reporting": conditional_reporting,
    "secret-rr": secret_randomised_response,
    "independent-reporting": independent_reporting,
    "watchdog": complete_merging,
    "subset-merging": subset_merged,
    "subset-rr": subset_response,
}
PAIRS = frozenset(
    {"conditional-reporting", "secret-rr", "independent-reporting", "non-robust", "polyopt"}
)
"""Mechanisms whose answers are pairs (s, u), row-major, under every notion; s is the secret."""

__all__ = [
    "BITS",
    "FAMILIES",
    "PAIRS",
    "Built",
    "Explicit",
    "Family",
    "FamilyRequest",
    "best_point",
    "certify",
    "grr",
    "is_open",
    "settle_level",
    "total_variance",
    "variance_at",
]
