# SPDX-License-Identifier: Apache-2.0
"""Design request, and the check that its combination of options is supported."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from frankly_protocol.audit import Claim
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms.base import MAX_ANSWERS
from frankly_protocol.problems import Problem

from frankly_design.families import FAMILIES, Explicit, is_open
from frankly_design.notions.cones import have_cone
from frankly_design.notions.prior import Prior
from frankly_design.notions.truths import Truths
from frankly_design.numeric import rational
from frankly_design.optimum import solver
from frankly_design.tables import objectives
from frankly_design.tables.limits import Limits

OPTIMA = ("optimal", "polyopt", "non-robust")
"""Mechanisms found by optimisation: polyopt under rldp; non-robust over pairs (s, u), which treats
the counts as the true distribution; optimal for all other requests."""
MECHANISMS = (*OPTIMA, *FAMILIES)
SET_FAMILIES = ("subset-selection", "oue", "symmetric-unary")
"""Families whose reports are sets of answers, and which therefore need no table."""


@dataclass(frozen=True, slots=True)
class DesignRequest:
    """Request to the design engine.

    prior : public counts; the objective is computed at the shares of the answers in them.
    claims : all of them must hold; the functions of `promises` build them.
    mechanism : one of MECHANISMS.
    explicit : explicit parameters of a family; with these, claims may have an open level.
    objective : the quantity to optimise: variance, information or hamming.
    targets : rows W of exact numbers, one per answer; the variances of the estimates W·p are
    minimised. None for all shares.
    criterion : total or worst variance of the targets.
    truths : minimise the largest total variance over these truths instead of that at the prior.
    variance_cap : with the objective information, the largest total variance allowed.
    method : auto, or vertices, which lists every extreme ray exactly.
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
    for refusals in (_refusals_of_promises, _refusals_of_goals):
        for is_refused, problem, message, name in refusals(request):
            if is_refused:
                raise InvalidInput(problem, message, name)


def long_list_error(answers: int) -> InvalidInput:
    """Return the error for a design whose table would have too many answers."""
    return InvalidInput(Problem.UNSUPPORTED, _TOO_LONG.format(answers), "mechanism")


_TOO_LONG = (
    f"a table has at most {MAX_ANSWERS} answers, not {{}}: use the mechanism subset-selection, "
    "or optimal without a prior and for all shares"
)
_Refusal = tuple[bool, Problem, str, str]
"""A condition; if it holds, the error's problem, message and field."""


def _refusals_of_promises(request: DesignRequest) -> list[_Refusal]:
    """Return the conditions on the mechanism and its promises, in the order of their errors."""
    mechanism, answers = request.mechanism, request.prior.answers
    notions = [claim.notion for claim in request.claims]
    # A family computes its own levels, and raises an error for unsupported notions.
    is_optimum, is_long = mechanism in OPTIMA, answers > MAX_ANSWERS
    # rldp over boxes arrives as several secret-ldp claims, one for each prior of
    # `boxes.box_claims`.
    is_robust = "rldp" in notions or notions.count("secret-ldp") > 1
    trusting = {"secret-ldp", "lip", "alip", "ldp"}
    return [
        (not notions, Problem.FIELD_MISSING, "a mechanism needs at least one promise", "notion"),
        (
            mechanism not in MECHANISMS,
            Problem.UNSUPPORTED,
            f"the mechanisms are {', '.join(MECHANISMS)}",
            "mechanism",
        ),
        (
            is_optimum and any(map(is_open, request.claims)),
            Problem.FIELD_MISSING,
            "an optimum needs a level for every notion; only families with explicit parameters can omit it",
            "epsilon",
        ),
        (
            mechanism == "polyopt" and not is_robust,
            Problem.UNSUPPORTED,
            "polyopt is the optimum under rldp: ask for that notion",
            "notion",
        ),
        (
            mechanism == "non-robust" and not trusting.issuperset(notions),
            Problem.UNSUPPORTED,
            "non-robust trusts the counts: ask for secret-ldp, lip or alip, and for rldp use polyopt",
            "notion",
        ),
        (
            is_long and set(notions) != {"ldp"},
            Problem.UNSUPPORTED,
            f"with more than {MAX_ANSWERS} answers only ldp can be promised: merge answers",
            "notion",
        ),
        (
            is_long and mechanism not in (*OPTIMA, *SET_FAMILIES),
            Problem.UNSUPPORTED,
            _TOO_LONG.format(answers),
            "mechanism",
        ),
    ]


def _refusals_of_goals(request: DesignRequest) -> list[_Refusal]:
    """Return the conditions on the objective, truths and method, in the order of their errors."""
    objective, criterion = request.objective, request.criterion
    has_truths, targets = request.truths is not None, request.targets
    is_optimum = request.mechanism in OPTIMA
    return [
        (
            objective not in objectives.OBJECTIVES,
            Problem.UNSUPPORTED,
            f"the objectives are {', '.join(objectives.OBJECTIVES)}",
            "objective",
        ),
        (
            criterion not in solver.CRITERIA,
            Problem.UNSUPPORTED,
            f"the criteria are {', '.join(solver.CRITERIA)}",
            "criterion",
        ),
        (
            criterion != "total" and objective != "variance",
            Problem.UNSUPPORTED,
            "a criterion belongs to the objective variance",
            "criterion",
        ),
        (
            request.variance_cap is not None and objective != "information",
            Problem.UNSUPPORTED,
            "a variance cap belongs to the objective information",
            "variance_cap",
        ),
        (
            has_truths and (not is_optimum or not have_cone(request.claims)),
            Problem.UNSUPPORTED,
            "truths need an optimum, under a notion other than dp: ask for the mechanism optimal",
            "truths",
        ),
        (
            has_truths and (objective, criterion) != ("variance", "total"),
            Problem.UNSUPPORTED,
            "truths belong to the objective variance with the criterion total",
            "truths",
        ),
        (
            has_truths and targets is not None and not _determines_shares(request.prior, targets),
            Problem.UNSUPPORTED,
            "with truths the targets must determine every share: add targets, or leave them out",
            "targets",
        ),
        (
            request.method not in solver.METHODS,
            Problem.UNSUPPORTED,
            f"the methods are {', '.join(solver.METHODS)}",
            "method",
        ),
    ]


def _determines_shares(prior: Prior, targets: Sequence[Sequence[Fraction]]) -> bool:
    # Shares sum to 1, so targets determine all shares if they do so together with this sum.
    return rational.rank([[1] * prior.answers, *map(rational.whole, targets)]) == prior.answers
