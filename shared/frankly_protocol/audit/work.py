# SPDX-License-Identifier: Apache-2.0
"""Cost model of verification: a document that takes too long is refused before verification.

One unit is about a nanosecond on one core of a machine of 2020, in the slower of Python and
JavaScript and with the slowest data of that size (`run.py bench verify` measures it). The estimate
depends on sizes, and for (ε, δ) of products on the number of distinct likelihoods of their factors.
Both SDKs compute the same figures, so that both accept the same documents.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from frankly_protocol.audit.claims import Claim
from frankly_protocol.audit.kinds import verifier_of
from frankly_protocol.errors import DocumentRejected
from frankly_protocol.mechanisms import AnyMechanism

if TYPE_CHECKING:
    from frankly_protocol.blocks import Block

MAX_WORK = 10**9
"""Largest number of units for verifying a claim, or for verifying all claims of a document and
computing the level of its report: about a second."""
MAX_COUNTS = 1 << 21
"""Largest total number of counts in a document's priors (with a row for each secret in each stratum)
and of cells in its forms."""


def require_affordable(blocks: "Sequence[Block]") -> None:
    """Raise DocumentRejected("work_limit") if verification and level take more than MAX_WORK."""
    total = level_work(blocks)
    pairs = [
        (block.mechanism, claim)
        for block in blocks
        for promise in block.promises
        for claim in promise.claims
    ]
    total += sum(_of_sizes(block.mechanism, Claim("ldp", (1, 1))) for block in blocks)
    total += sum(_of_sizes(mechanism, claim) for mechanism, claim in pairs)
    # Counting likelihoods takes time too, so it is done only if `total`, which includes that time,
    # is within the limit.
    if total <= MAX_WORK:
        total += sum(
            verifier_of(mechanism).likelihood_work(mechanism, claim) for mechanism, claim in pairs
        )
    if total > MAX_WORK:
        raise DocumentRejected(
            "work_limit", "verifying all that is promised would take too long", "blocks"
        )


def require_verifiable(mechanism: AnyMechanism, *claims: Claim) -> None:
    """Raise DocumentRejected unless the claims together can be verified.

    The reason is work_limit if that would take too long, and privacy for a claim that cannot be
    verified for a product with this many reports.
    """
    for claim in claims:
        verifier_of(mechanism).require_promisable(mechanism, claim)
    if sum(work(mechanism, claim) for claim in claims) > MAX_WORK:
        notions = ", ".join(claim.notion for claim in claims)
        raise DocumentRejected(
            "work_limit", f"{notions}: verifying this takes too long at its size", "notion"
        )


def work(mechanism: AnyMechanism, claim: Claim) -> int:
    """Return the units that it takes to verify a claim.

    If the sizes alone give more than MAX_WORK, likelihoods are not counted.
    """
    sizes = _of_sizes(mechanism, claim)
    return (
        sizes
        if sizes > MAX_WORK
        else sizes + verifier_of(mechanism).likelihood_work(mechanism, claim)
    )


def level_work(blocks: "Sequence[Block]") -> int:
    """Return the units that it takes to compute the level of the whole report."""
    promises = [promise for block in blocks for promise in block.promises]
    secrets = len({promise.secret for promise in promises if promise.secret is not None})
    products_made = 2 * secrets + len(blocks) + 4
    return secrets * len(promises) * 300 + products_made * len(blocks) * (1000 + 60 * len(blocks))


def _of_sizes(mechanism: AnyMechanism, claim: Claim) -> int:
    """Return the units that follow from sizes.

    For (ε, δ) of a product, these are the units of counting its likelihoods.
    """
    return 100_000 + verifier_of(mechanism).size_work(mechanism, claim)
