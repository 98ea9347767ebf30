# SPDX-License-Identifier: Apache-2.0
"""Families that report a set of answers: the kinds `unary` and `subset`.

The verifier finds the worst set without listing all 2^a sets (`audit.sets`), so calibration is fast
even for many answers.
"""

import math
from fractions import Fraction

from frankly_protocol.audit import exp_lower
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import SubsetMechanism, UnaryMechanism

from frankly_design.families.family import (
    BITS,
    Built,
    FamilyRequest,
    calibrate,
    certify,
    least_level,
)
from frankly_design.kinds.registry import kind_of
from frankly_design.kinds.set_law import SetMechanism
from frankly_design.notions.prior import Prior

# Each size costs one calibration, a bisection of up to 48 verifications.
_MAX_TRIED = 12
_D = 1 << BITS


def oue(request: FamilyRequest) -> Built:
    """Build optimised unary encoding: P(true bit = 1) = ½, P(any other bit = 1) = 1/(e^α+1).

    If `alpha` is given, it is α. Otherwise α is the largest value at which every claim holds; under
    LIP it solves LIP(OUE_α) = ε, and is ∞ if no α exceeds ε. Randomising each bit again turns a
    smaller flip probability into a larger one, so the larger one is at least as private under every
    notion  [Funnel (27)-(29)].
    """
    a = request.answers

    def make(flip: int) -> UnaryMechanism:
        return UnaryMechanism(BITS, a, _D // 2, flip)

    if request.explicit.alpha is not None:
        flip = _weight_up(1 / (exp_lower(request.explicit.alpha) + 1))
    else:
        level = least_level(request.claims)
        guess = _weight_up(1 / (Fraction(*level) + 1)) if level else None
        # At flip = ½ every bit is a fair coin and no share can be estimated.
        flip = calibrate(request, make, 0, _D // 2 - 1, guess)
    alpha = math.log(_D / flip - 1) if flip else math.inf
    return certify(request, make(flip), {"alpha": alpha, "p": 0.5, "q": flip / _D})


def symmetric_unary(request: FamilyRequest) -> Built:
    """Build symmetric unary encoding: a bit is correct with probability e^(α/2)/(e^(α/2)+1).

    If `alpha` is given, it is the LDP level α. Otherwise α is the largest value at which every
    claim holds, as for `oue`  [Funnel §VI.A, after RAPPOR].
    """
    a = request.answers

    def make(flip: int) -> UnaryMechanism:
        return UnaryMechanism(BITS, a, _D - flip, flip)

    if request.explicit.alpha is not None:
        flip = _weight_up(1 / (exp_lower(request.explicit.alpha / 2) + 1))
    else:
        flip = calibrate(request, make, 0, _D // 2 - 1)
    alpha = 2 * math.log(_D / flip - 1) if flip else math.inf
    return certify(request, make(flip), {"alpha": alpha, "p": 1 - flip / _D, "q": flip / _D})


def subset_selection(request: FamilyRequest) -> Built:
    """Build subset selection: `size` answers, the truth among them with probability `inside`.

    For each candidate size, `inside` is the largest probability at which every claim holds (with
    `alpha`, the closed form for α-LDP). The size with the least total variance is used. Candidates
    are all sizes with `alpha` or for up to 12 answers; under ldp and dp the 12 best sizes for LDP
    at the smallest level; otherwise the best size for LDP and the powers of two. Size 1 is GRR [Ye
    and Barg 2018].
    """
    a, alpha = request.answers, request.explicit.alpha
    if alpha is not None:
        mechanism = min(
            (ldp_subsets(a, size, exp_lower(alpha)) for size in range(1, a)),
            key=lambda m: total_variance(m, request.prior),
        )
    else:
        level = least_level(request.claims)
        E = Fraction(*level) if level else None
        mechanism = min(_candidates(request, E), key=lambda m: total_variance(m, request.prior))
    inside = mechanism.inside / _D
    ratio = _odds(mechanism)
    figures = {
        "size": mechanism.size,
        "inside": inside,
        "alpha": math.log(ratio) if ratio else math.inf,
    }
    return certify(request, mechanism, figures)


def total_variance(mechanism: SetMechanism, prior: Prior) -> float:
    """Return the total variance of the unbiased shares at n = 1; inf if there is no estimate."""
    return math.fsum(kind_of(mechanism).variances(prior, None))


def _candidates(request: FamilyRequest, E: Fraction | None) -> list[SubsetMechanism]:
    a = request.answers
    by_variance: list[int] = []
    if E is not None:
        variances = {k: total_variance(ldp_subsets(a, k, E), request.prior) for k in range(1, a)}
        by_variance = sorted(variances, key=lambda size: variances[size])
    if by_variance and all(claim.notion in ("ldp", "dp") for claim in request.claims):
        sizes = by_variance[:_MAX_TRIED]
    elif a <= _MAX_TRIED:
        sizes = list(range(1, a))
    else:
        # There is a power of two within a factor of 2 of any size, and there are only log₂ a of
        # them.
        sizes = sorted({*by_variance[:1], *(1 << i for i in range(a.bit_length()) if 1 << i < a)})
    mechanisms, refusal = [], None
    for size in sizes:
        try:
            mechanisms.append(_calibrate_size(request, size, E))
        except InvalidInput as error:
            refusal = error
    # A size that cannot satisfy the claims is skipped; the error is raised only if no size can.
    if refusal is not None and not mechanisms:
        raise refusal
    return mechanisms


def _calibrate_size(request: FamilyRequest, size: int, E: Fraction | None) -> SubsetMechanism:
    a = request.answers

    def make(outside: int) -> SubsetMechanism:
        return SubsetMechanism(BITS, a, size, _D - outside)

    # At inside = size/a the set contains the truth as often as any other answer, so the report
    # carries no information.
    uninformative = _D - -(-size * _D // a)
    guess = _D - ldp_subsets(a, size, E).inside if E is not None else None
    return make(calibrate(request, make, 0, uninformative, guess))


def ldp_subsets(answers: int, size: int, E: Fraction) -> SubsetMechanism:
    """Return subset selection at the ratio E: `inside` is kE/(kE + a − k), rounded down."""
    return SubsetMechanism(BITS, answers, size, int(_D * size * E / (size * E + answers - size)))


def _odds(mechanism: SubsetMechanism) -> Fraction | None:
    """Return P(a set with the truth)/P(a set without it), None if the latter is never sent."""
    outside = _D - mechanism.inside
    if not outside:
        return None
    return Fraction(
        mechanism.inside * (mechanism.answers - mechanism.size), outside * mechanism.size
    )


def _weight_up(probability: Fraction) -> int:
    return -(-probability * _D // 1)
