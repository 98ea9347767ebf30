# SPDX-License-Identifier: Apache-2.0
"""Randomised responses that report an answer: generalised, Warner's and Mangat's two models.

Rows are truths, as in the Thesis, whose design matrix (6.2) is [[p00, 1 − p00], [1 − p11, p11]].
"""

from collections.abc import Sequence
from fractions import Fraction
from math import log

from frankly_protocol.audit import Claim, level_for
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.problems import Problem

from frankly_design.families.family import (
    BITS,
    Built,
    FamilyRequest,
    calibrate,
    certify,
    least_level,
    table,
    unsupported,
)
from frankly_design.notions.cones import Level


def grr(answers: int, level: Level, bits: int = BITS) -> DenseMechanism:
    """Return generalised randomised response.

    The mechanism sends the truth with probability E/(E+a−1), E = p/q, and otherwise another answer,
    chosen uniformly. For two answers this is the ε-optimal binary mechanism [Thesis Thm 6.2]. The
    off-diagonal weight is rounded up, so the ratio of the weights never exceeds p/q.
    """
    p, q = level
    return symmetric_response(answers, -(-(1 << bits) * q // (p + (answers - 1) * q)), bits)


def symmetric_response(answers: int, off: int, bits: int = BITS) -> DenseMechanism:
    """Return the mechanism that sends each wrong answer with weight `off`, otherwise the truth."""
    on = (1 << bits) - (answers - 1) * off
    rows = [tuple(on if x == y else off for y in range(answers)) for x in range(answers)]
    return DenseMechanism(bits, tuple(rows))


def generalised(request: FamilyRequest) -> Built:
    """Build generalised randomised response, GRR_α  [Funnel (25), (26)].

    e^α = P(truth)/P(any other answer). If `alpha` is not given, α is the largest value at which
    every claim holds: under LIP, LIP(GRR_α) = ε, or α = ∞ (answers sent unchanged) if ε ≥
    LIP(identity), which is infinite if some cell of the prior is empty (erratum 9.19). A mechanism
    with a larger `off` is a mixture with the uniform report, so it is at least as private under
    every notion.
    """
    mechanism = _calibrated_grr(request)
    return certify(request, mechanism, {"alpha": alpha_of(mechanism)})


def _calibrated_grr(request: FamilyRequest) -> DenseMechanism:
    a = request.answers
    if request.explicit.alpha is not None:
        return grr(a, level_for(request.explicit.alpha))
    return symmetric_response(
        a,
        calibrate(
            request,
            lambda t: symmetric_response(a, t),
            0,
            (1 << BITS) // a,
            closed_form(a, request.claims),
        ),
    )


def closed_form(answers: int, claims: Sequence[Claim]) -> int | None:
    """Return the weight of a wrong answer under ε-LDP or (ε, δ)-DP; None under other notions.

    The weight is 2^48·(1−δ)/(E+a−1), rounded up  [Thesis Thm 4.8; δ = 0 gives Funnel (25)].
    """
    off_weights = [
        (1 - Fraction(*(claim.delta or (0, 1)))) / (Fraction(*claim.level) + answers - 1)
        for claim in claims
        if claim.notion in ("ldp", "dp") and claim.level
    ]
    # The largest weight satisfies all claims at once; −(−x // 1) rounds up, towards privacy.
    return -(-max(off_weights) * (1 << BITS) // 1) if off_weights else None


def alpha_of(mechanism: DenseMechanism) -> float:
    """Return α = ln(P(truth)/P(another answer)), inf if no other answer is sent."""
    on, off = mechanism.weights[0][0], mechanism.weights[0][1]
    return log(on / off) if off else float("inf")


def warner(request: FamilyRequest) -> Built:
    """Build Warner's randomised response over two answers: the truth has probability p_w.

    `p00`, if given, is p_w, rounded to a multiple of 2^-48. Otherwise p_w is the largest value ≥ ½
    at which every claim holds: E/(E+1) for ε-LDP [Thm 6.2], and α(1−π)/(α(1−π) + π(1−α)) for a
    degree of privacy violation α of an answer with share π (6.28). Its mirror image below ½ (6.30)
    is the same mechanism with the two reports exchanged  [Thesis §6.2.2].
    """
    _require_two(request)
    if request.explicit.p00 is None:
        mechanism = _calibrated_grr(request)
        return certify(
            request,
            mechanism,
            {"alpha": alpha_of(mechanism), "p": float(mechanism.probability(0, 0))},
        )
    truth_weight = weight_of(request.explicit.p00)
    lie_weight = (1 << BITS) - truth_weight
    return certify(
        request,
        table([[truth_weight, lie_weight], [lie_weight, truth_weight]]),
        {"p": float(request.explicit.p00)},
    )


def mangat(request: FamilyRequest) -> Built:
    """Build Mangat's model: a sensitive answer is always sent, the other with probability p_m.

    Answer 1 is the sensitive one, or answer 0 if a dpv claim says so. `p00` is p_m, the probability
    that the other answer is reported truthfully. By default p_m is the largest value at which every
    claim holds: (α−π)/(α(1−π)) for a degree of privacy violation α [§6.4.2]. One of the reports
    comes from a single answer, so the LDP level is infinite, and the notions ldp and dp are refused
    (erratum 9.2)  [Thesis §6.2.3].
    """
    _require_two(request)
    _refuse_dp(request)
    sensitive = next((claim.sensitive for claim in request.claims if claim.notion == "dpv"), 1)

    def make(truth_weight: int) -> DenseMechanism:
        lie_weight, D = (1 << BITS) - truth_weight, 1 << BITS
        return table(
            [[truth_weight, lie_weight], [0, D]]
            if sensitive
            else [[D, 0], [lie_weight, truth_weight]]
        )

    if request.explicit.p00 is None:
        # Privacy must grow with t, so t is the weight of the wrong answer; at t = 2^48 both rows
        # are equal and no share can be estimated.
        least = calibrate(request, lambda t: make((1 << BITS) - t), 0, (1 << BITS) - 1)
        truth_weight = (1 << BITS) - least
    else:
        truth_weight = weight_of(request.explicit.p00)
    return certify(
        request,
        make(truth_weight),
        {"p_m": truth_weight / 2.0**BITS, "sensitive_answer": 1 if sensitive else 0},
    )


def super_binary_mangat(request: FamilyRequest) -> Built:
    """Build super-binary Mangat: sensitive answers are reported truthfully, answer 0 uniformly.

    The family has no parameter: the request is refused if the mechanism does not satisfy the
    claims. Each report other than 0 comes from only two answers, so the LDP level is infinite, and
    the notions ldp and dp are refused (erratum 9.2); dpv of an answer can hold  [Thesis (6.32)].
    """
    _refuse_dp(request)
    m, D = request.answers, 1 << BITS
    # m need not divide the row sum 2^48, so the first reports get one extra unit.
    even = [D // m + (y < D % m) for y in range(m)]
    rows = [even, *([D if x == y else 0 for y in range(m)] for x in range(1, m))]
    return certify(request, table(rows), {})


def weight_of(chance: Fraction) -> int:
    """Return a probability in units of 2^-48, rounded to the nearest integer."""
    return round(chance * (1 << BITS))


def required_level(request: FamilyRequest) -> Level:
    """Return the level of an uncalibrated family: `alpha`, else the smallest requested level.

    Raises InvalidInput(field_missing) if the request has neither.
    """
    if request.explicit.alpha is not None:
        return level_for(request.explicit.alpha)
    level = least_level(request.claims)
    if level is None:
        raise InvalidInput(
            Problem.FIELD_MISSING, f"{request.name} needs a level: give epsilon, or alpha", "alpha"
        )
    return level


def _refuse_dp(request: FamilyRequest) -> None:
    """Raise InvalidInput for ldp, which never holds, and dp, which holds only for large δ.

    Erratum 9.2 explains why Mangat's models are not offered as differentially private.
    """
    if any(claim.notion in ("ldp", "dp") for claim in request.claims):
        raise unsupported(
            f"{request.name} is not differentially private at any level: ask for dpv, or for warner",
            "notion",
        )


def _require_two(request: FamilyRequest) -> None:
    if request.answers != 2:
        raise unsupported(f"{request.name} is for two answers: use grr or optimal")
