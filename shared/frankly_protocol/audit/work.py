# SPDX-License-Identifier: Apache-2.0
"""Cost model of verification: a document that takes too long is refused before verification.

One unit is about a nanosecond on one core of a machine of 2020, in the slower of Python and
JavaScript and with the slowest data of that size (`run.py bench verify` measures it). The estimate
depends on sizes, and for (ε, δ) of products on the number of distinct likelihoods of their factors.
Both SDKs compute the same figures, so that both accept the same documents.
"""

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from frankly_protocol.audit import products
from frankly_protocol.audit.claims import Claim, LowerBounds
from frankly_protocol.errors import DocumentRejected
from frankly_protocol.mechanisms import (
    AgreementMechanism,
    AnyMechanism,
    DenseMechanism,
    ProductMechanism,
    SubsetMechanism,
    UnaryMechanism,
)
from frankly_protocol.mechanisms.base import MAX_REPORTS

if TYPE_CHECKING:
    from frankly_protocol.blocks import Block

MAX_WORK = 10**9
"""Largest number of units for verifying a claim, or for verifying all claims of a document and
computing the level of its report: about a second."""
MAX_COUNTS = 1 << 21
"""Largest total number of counts in a document's priors (with a row for each secret in each stratum)
and of cells in its forms."""
_FIRST_STEPS, _STEPS = 64, 2
"""Step limit of all searches for the worst set together: a fixed part, and a part for each
search."""


def require_affordable(blocks: "Sequence[Block]") -> None:
    """Raise DocumentRejected("work_limit") if verification and level take more than MAX_WORK."""
    total = level_work(blocks)
    pairs = [
        (block.mechanism, claim)
        for block in blocks
        for promise in block.promises
        for claim in promise.claims
    ]
    total += sum(_of_ceiling(block.mechanism) for block in blocks)
    total += sum(_of_sizes(mechanism, claim) for mechanism, claim in pairs)
    # Counting likelihoods takes time too, so it is done only if `total`, which includes that time,
    # is within the limit.
    if total <= MAX_WORK:
        total += sum(_of_likelihoods(mechanism, claim) for mechanism, claim in pairs)
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
        if isinstance(mechanism, AgreementMechanism) and claim.notion != "ldp":
            raise DocumentRejected(
                "privacy",
                f"{claim.notion}: of the agreement kind only ldp can be promised",
                "notion",
            )
        listed = isinstance(mechanism, ProductMechanism) and claim.notion not in ("ldp", "dp")
        # Every other notion averages over secrets, so the product's reports must be listed one by one.
        if listed and mechanism.reports > MAX_REPORTS:
            raise DocumentRejected(
                "privacy",
                f"{claim.notion}: a product of more than {MAX_REPORTS} reports can be verified for "
                "ldp and dp only",
                "notion",
            )
    if sum(work(mechanism, claim) for claim in claims) > MAX_WORK:
        raise too_long(*claims)


def too_long(*claims: Claim) -> DocumentRejected:
    """Return the error for claims whose verification would take too long."""
    notions = ", ".join(claim.notion for claim in claims)
    return DocumentRejected(
        "work_limit", f"{notions}: verifying this takes too long at its size", "notion"
    )


def search_steps(searches: int) -> int:
    """Return the total step limit for this many searches for the worst set."""
    return _FIRST_STEPS + _STEPS * searches


def work(mechanism: AnyMechanism, claim: Claim) -> int:
    """Return the units that it takes to verify a claim.

    If the sizes alone give more than MAX_WORK, likelihoods are not counted.
    """
    sizes = _of_sizes(mechanism, claim)
    return sizes if sizes > MAX_WORK else sizes + _of_likelihoods(mechanism, claim)


def level_work(blocks: "Sequence[Block]") -> int:
    """Return the units that it takes to compute the level of the whole report."""
    promises = [promise for block in blocks for promise in block.promises]
    secrets = len({promise.secret for promise in promises if promise.secret is not None})
    products_made = 2 * secrets + len(blocks) + 4
    return secrets * len(promises) * 300 + products_made * len(blocks) * (1000 + 60 * len(blocks))


def _of_ceiling(mechanism: AnyMechanism) -> int:
    return _of_sizes(mechanism, Claim("ldp", (1, 1)))


def _of_sizes(mechanism: AnyMechanism, claim: Claim) -> int:
    """Return the units that follow from sizes.

    For (ε, δ) of a product, these are the units of counting its likelihoods.
    """
    if isinstance(mechanism, AgreementMechanism):
        return 100_000  # two numbers determine its level; its constructor has checked the covers
    tables = len(claim.joint or ()) * mechanism.answers * 100
    if isinstance(mechanism, UnaryMechanism | SubsetMechanism):
        return 100_000 + tables + _of_sets(mechanism, claim)
    return 100_000 + tables + _of_columns(mechanism, claim)


def _of_columns(mechanism: DenseMechanism | ProductMechanism, claim: Claim) -> int:
    factors = mechanism.factors if isinstance(mechanism, ProductMechanism) else (mechanism,)
    # The coefficients below are nanoseconds per step, measured with `run.py bench verify`.
    a, b, joint = mechanism.answers, mechanism.reports, claim.joint or ()
    if claim.notion == "ldp":
        return sum(
            80 * factor.answers * factor.reports + 1500 * factor.reports for factor in factors
        )
    if claim.notion == "dp":
        cost_per_report = 2000 if len(factors) > 1 else 120
        return sum(
            factor.answers**2 * (5000 + cost_per_report * factor.reports) for factor in factors
        )
    size = 3 + _words(mechanism.bits * len(factors))
    if claim.notion == "metric-ldp":
        pairs = sum(map(bool, (ratio for row in claim.levels or () for ratio in row)))
        return a * a * 3000 + b * (a * 40 * size + pairs * 200 * size)
    listed = a * b * (40 if len(factors) == 1 else 40 * size)
    if claim.notion == "rldp":
        secrets = len(claim.lower_bounds or ())
        large = size + _words(_scale_bits(claim.lower_bounds or ()))
        return (
            listed
            + a * 300 * large
            + b * (a * (250 + 3 * large) + secrets * (800 + 3 * large) + 24 * large**2)
        )
    secrets, counts = len(joint), sum(sum(map(bool, row)) for row in joint)
    if claim.notion == "dpv":
        secrets, counts = 2, 2 * a
    cells = prod(size + 1 for size in claim.attributes or ()) if claim.notion == "srlip" else 1
    margins = secrets * cells * 40 * size if claim.notion == "srlip" else 0
    around = cells * (secrets * 190 + 800) * size
    return listed + b * (secrets * a * 8 + counts * 20 * size + margins + around)


def _of_sets(mechanism: UnaryMechanism | SubsetMechanism, claim: Claim) -> int:
    a, secrets = mechanism.answers, len(claim.joint or claim.lower_bounds or ())
    if claim.notion in ("ldp", "dp"):
        return 0
    if claim.notion == "metric-ldp":
        return a * a * 3000
    if claim.notion == "rldp":
        return (
            a * 300 * (3 + _words(_scale_bits(claim.lower_bounds or ())))
            + secrets * 2000
            + a**2 * 40
        )
    if claim.notion == "secret-ldp":
        searches = secrets * (secrets - 1)
        return 800 * a * search_steps(searches) + 8000 * searches
    if claim.notion == "dpv":
        return 800 * a * search_steps(1)
    # A condition fixes each attribute or leaves it free; a search for a set of fixed size also
    # sorts the answers that do not meet the condition.
    sizes = (claim.attributes or ()) if claim.notion == "srlip" else ()
    conditions = prod(size + 1 for size in sizes)
    spare_cost = a * conditions * 120 if isinstance(mechanism, SubsetMechanism) else 0
    cost_per_secret = _STEPS * ((800 * a << len(sizes)) + spare_cost) + 8000 * conditions
    return 2 * (800 * a * _FIRST_STEPS + secrets * cost_per_secret)


def _of_likelihoods(mechanism: AnyMechanism, claim: Claim) -> int:
    """Return the units of convolving the likelihoods of a product's factors, for (ε, δ)."""
    if claim.notion != "dp" or not isinstance(mechanism, ProductMechanism):
        return 0
    masses = [sum(map(len, products.likelihoods(factor))) for factor in mechanism.factors]
    return 650 * (3 + _words(mechanism.bits * len(masses))) * prod(masses)


def _scale_bits(bounds: LowerBounds) -> int:
    """Return an upper bound on the bits of the bounds' least common denominator."""
    return sum(d.bit_length() for d in {d for row in bounds for _, d in row})


def _words(bits: int) -> int:
    return -(-bits // 64)
