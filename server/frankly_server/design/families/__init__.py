# SPDX-License-Identifier: Apache-2.0
"""Explicit mechanisms by name (DESIGN §7), each met exactly and verified by the exact verifier.

A family may be asked under any notion. Where its members can be ordered from open to closed it is calibrated: the most
open one that keeps every promise, found with the verifier itself (`base.calibrated`). Elsewhere it is built at its own
parameters, and refused where a promise does not hold. `Wanted` says what is asked, `Built` what came of it.
"""

from frankly_server.design.families.base import BITS, Built, Explicit, Family, Wanted, built
from frankly_server.design.families.binary import best_point, binary, variance_at
from frankly_server.design.families.conditional_reporting import conditional_reporting
from frankly_server.design.families.needs import is_open, settled
from frankly_server.design.families.pairs import independent_reporting, secret_randomised_response
from frankly_server.design.families.randomised_response import generalised, grr, mangat, super_binary_mangat, warner
from frankly_server.design.families.sanitisation import discrete_exponential, product_sanitisation
from frankly_server.design.families.sets import oue, spread, subset_selection, symmetric_unary
from frankly_server.design.families.watchdog import complete_merging, subset_merged, subset_response

FAMILIES: dict[str, Family] = {
    "grr": generalised,
    "oue": oue,
    "subset-selection": subset_selection,
    "warner": warner,
    "mangat": mangat,
    "super-binary-mangat": super_binary_mangat,
    "product-sanitisation": product_sanitisation,
    "discrete-exponential": discrete_exponential,
    "binary": binary,
    "symmetric-unary": symmetric_unary,
    "conditional-reporting": conditional_reporting,
    "secret-rr": secret_randomised_response,
    "independent-reporting": independent_reporting,
    "watchdog": complete_merging,
    "subset-merging": subset_merged,
    "subset-rr": subset_response,
}
PAIRS = frozenset({"conditional-reporting", "secret-rr", "independent-reporting", "non-robust", "polyopt"})
"""Mechanisms whose answers are pairs (s, u) with s the secret, row-major, whatever the notion."""

__all__ = [
    "BITS",
    "FAMILIES",
    "PAIRS",
    "Built",
    "Explicit",
    "Family",
    "Wanted",
    "best_point",
    "built",
    "grr",
    "is_open",
    "settled",
    "spread",
    "variance_at",
]
