# SPDX-License-Identifier: Apache-2.0
"""How much arithmetic a claim takes to verify, known before it is done: no document may keep a device busy for long."""

from math import prod

from frankly_protocol.audit import products
from frankly_protocol.audit.claims import Claim
from frankly_protocol.errors import DocumentRejected
from frankly_protocol.mechanisms import Mechanism, ProductMechanism, SubsetMechanism, UnaryMechanism
from frankly_protocol.mechanisms.base import MAX_REPORTS

MAX_WORK = 10**8
"""Multiplications that the verification of one claim, and of one document, may take: seconds on one core."""
_SEARCH = 8
"""Multiplications of whole numbers that one step of the search over sets stands for."""
_LIKELIHOOD = 80


def work(mechanism: Mechanism, claim: Claim) -> int:
    """Return about how many multiplications verifying a well-formed claim takes, from sizes alone."""
    if isinstance(mechanism, UnaryMechanism | SubsetMechanism):
        return _of_sets(mechanism.answers, claim)
    if isinstance(mechanism, ProductMechanism):
        if claim.notion == "ldp":
            return sum(factor.answers * factor.reports for factor in mechanism.factors)
        if claim.notion == "dp":
            return _of_likelihoods(mechanism)
    if claim.notion == "dp":
        return mechanism.answers**2 * mechanism.reports
    cells = prod(size + 1 for size in claim.attributes) if claim.attributes else mechanism.answers
    return mechanism.reports * (mechanism.answers + cells * len(claim.joint or ((),)))


def require_verifiable(mechanism: Mechanism, *claims: Claim) -> None:
    """Raise DocumentRejected("privacy") if verifying the claims together would take too long, or cannot be done."""
    for claim in claims:
        listed = isinstance(mechanism, ProductMechanism) and claim.notion not in ("ldp", "dp")
        if listed and mechanism.reports > MAX_REPORTS:
            words = f"a product of more than {MAX_REPORTS} reports can be verified for ldp and dp only"
            raise DocumentRejected("privacy", f"{claim.notion}: {words}", "notion")
    if sum(work(mechanism, claim) for claim in claims) > MAX_WORK:
        notions = ", ".join(claim.notion for claim in claims)
        raise DocumentRejected("privacy", f"{notions}: verifying this takes too long at its size", "notion")


def _of_sets(answers: int, claim: Claim) -> int:
    secrets = len(claim.joint or claim.lower_bounds or ())
    if claim.notion in ("ldp", "dp"):
        return answers
    if claim.notion in ("secret-ldp", "rldp"):
        return _SEARCH * secrets**2 * answers
    conditions = prod(size + 1 for size in claim.attributes or ())
    return _SEARCH * 2 * secrets * answers * conditions


def _of_likelihoods(mechanism: ProductMechanism) -> int:
    if sum(factor.answers**2 * factor.reports for factor in mechanism.factors) > MAX_WORK // _LIKELIHOOD:
        return MAX_WORK + 1
    known = [products.likelihoods(factor) for factor in mechanism.factors]
    return _LIKELIHOOD * prod(sum(map(len, own)) for own in known)
