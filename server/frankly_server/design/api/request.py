# SPDX-License-Identifier: Apache-2.0
"""Design request, and the check that its combination of options exists."""

from dataclasses import dataclass, field
from fractions import Fraction

from frankly_protocol.audit import Claim
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms.base import MAX_ANSWERS
from frankly_protocol.problems import Problem

from frankly_server import rational
from frankly_server.design.families import FAMILIES, Explicit, is_open
from frankly_server.design.notions.prior import Prior
from frankly_server.design.notions.truths import Truths
from frankly_server.design.optimum import solver
from frankly_server.design.tables import objectives
from frankly_server.design.tables.limits import Limits

OPTIMA = ("optimal", "polyopt", "non-robust")
"""Mechanisms by optimisation: polyopt under rldp; non-robust over pairs (s, u), which treats the
counts as the true distribution; optimal for all other requests."""
MECHANISMS = (*OPTIMA, *FAMILIES)
SET_FAMILIES = ("subset-selection", "oue", "symmetric-unary")
"""Families whose reports are sets of answers, so that they need no table."""


@dataclass(frozen=True, slots=True)
class DesignRequest:
    """Request to the engine.

    prior : public counts; the objective is taken at its shares of the answers.
    claims : all of them must hold; the functions of `promises` build them.
    mechanism : one of MECHANISMS.
    explicit : a family's own parameters; with them, claims may leave their level open.
    objective : variance, information or hamming: the quantity that an optimum optimises.
    targets : rows W of exact numbers, one per answer: the variances of the estimates W·p are
        minimised; None for all shares.
    criterion : total or worst variance of the targets.
    truths : minimise the largest total variance over these truths instead of that at the prior.
    variance_cap : with the objective information, the largest total variance allowed.
    method : auto, or vertices to list every extreme ray exactly.
    accept_identity : accept a mechanism that sends answers unchanged.
    accept_unidentifiable : accept a mechanism even if some shares cannot be estimated from its
        reports.
    limits : see `Limits`.
    """

    prior: Prior
    claims: tuple[Claim, ...]
    mechanism: str = "optimal"
    explicit: Explicit = field(default_factory=Explicit)
    objective: str = "variance"
    targets: tuple[tuple[Fraction, ...], ...] | None = None
    criterion: str = "total"
    truths: Truths | None = None
    variance_cap: float | None = None
    method: str = "auto"
    accept_identity: bool = False
    accept_unidentifiable: bool = False
    limits: Limits = field(default_factory=Limits)


def check(request: DesignRequest) -> None:
    """Raise InvalidInput, naming the field, if the combination of options is not supported."""
    if not request.claims:
        raise InvalidInput(
            Problem.FIELD_MISSING,
            "a mechanism needs at least one promise",
            "notion",
        )
    if request.mechanism not in MECHANISMS:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            f"the mechanisms are {', '.join(MECHANISMS)}",
            "mechanism",
        )
    _check_notions(request)
    if request.prior.answers > MAX_ANSWERS:
        _check_long_list(request)
    if request.objective not in objectives.OBJECTIVES:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            f"the objectives are {', '.join(objectives.OBJECTIVES)}",
            "objective",
        )
    if request.criterion not in solver.CRITERIA:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            f"the criteria are {', '.join(solver.CRITERIA)}",
            "criterion",
        )
    if request.criterion != "total" and request.objective != "variance":
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "a criterion belongs to the objective variance",
            "criterion",
        )
    if request.variance_cap is not None and request.objective != "information":
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "a variance cap belongs to the objective information",
            "variance_cap",
        )
    if request.truths is not None:
        _check_truths(request)
    if request.method not in solver.METHODS:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            f"the methods are {', '.join(solver.METHODS)}",
            "method",
        )


def _check_long_list(request: DesignRequest) -> None:
    """Raise if the request needs a table, which cannot have this many answers."""
    if any(claim.notion != "ldp" for claim in request.claims):
        message = f"with more than {MAX_ANSWERS} answers only ldp can be promised: merge answers"
        raise InvalidInput(Problem.UNSUPPORTED, message, "notion")
    if request.mechanism not in (*OPTIMA, *SET_FAMILIES):
        raise long_list_error(request.prior.answers)


def long_list_error(answers: int) -> InvalidInput:
    """Return the error for a design that would need a table with too many answers."""
    message = (
        f"a table has at most {MAX_ANSWERS} answers, not {answers}: use the mechanism subset-selection, "
        "or optimal without a prior and for all shares"
    )
    return InvalidInput(Problem.UNSUPPORTED, message, "mechanism")


def _check_truths(request: DesignRequest) -> None:
    if request.mechanism not in OPTIMA or any(claim.notion == "dp" for claim in request.claims):
        message = (
            "truths need an optimum, under a notion other than dp: ask for the mechanism optimal"
        )
        raise InvalidInput(Problem.UNSUPPORTED, message, "truths")
    if request.objective != "variance" or request.criterion != "total":
        message = "truths belong to the objective variance with the criterion total"
        raise InvalidInput(Problem.UNSUPPORTED, message, "truths")
    # Shares sum to 1, so targets determine all shares if they do so together with this sum.
    rows = [[1] * request.prior.answers, *map(rational.whole, request.targets or ())]
    if request.targets is not None and rational.rank(rows) < request.prior.answers:
        message = (
            "with truths the targets must determine every share: add targets, or leave them out"
        )
        raise InvalidInput(Problem.UNSUPPORTED, message, "targets")


def _check_notions(request: DesignRequest) -> None:
    """Raise if an optimum lacks a level for some notion, or its name does not suit the notions."""
    # A family computes its own levels, and raises for notions that it cannot keep.
    if request.mechanism not in OPTIMA:
        return
    if any(map(is_open, request.claims)):
        message = "an optimum needs a level for every notion; only families with explicit parameters can omit it"
        raise InvalidInput(Problem.FIELD_MISSING, message, "epsilon")
    notions = {claim.notion for claim in request.claims}
    # rldp over boxes arrives as several secret-ldp claims, one for each prior of
    # `boxes.box_claims`.
    boxes = sum(claim.notion == "secret-ldp" for claim in request.claims) > 1
    if request.mechanism == "polyopt" and "rldp" not in notions and not boxes:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "polyopt is the optimum under rldp: ask for that notion",
            "notion",
        )
    if request.mechanism == "non-robust" and not notions <= {"secret-ldp", "lip", "alip", "ldp"}:
        message = "non-robust trusts the counts: ask for secret-ldp, lip or alip, and for rldp use polyopt"
        raise InvalidInput(Problem.UNSUPPORTED, message, "notion")
