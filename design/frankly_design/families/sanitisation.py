# SPDX-License-Identifier: Apache-2.0
"""Product sanitisation and the discrete exponential mechanism, two names for one mechanism.

Each part of an answer passes through a randomised response with the same odds e^k of the truth
against any other value. Hence P(y|x) ∝ e^(−k·h(x, y)), with h the number of parts that differ
(Hamming distance). An srlip claim defines the parts of an answer; without one, the answer has a
single part  [Thesis Thm 4.5].
"""

from fractions import Fraction
from math import log

from frankly_protocol.audit import Claim, exp_lower
from frankly_protocol.mechanisms import DenseMechanism, Mechanism, ProductMechanism

from frankly_design.families.family import (
    BITS,
    Built,
    FamilyRequest,
    calibrate,
    certify,
    unsupported,
)
from frankly_design.families.randomised_response import alpha_of, closed_form, symmetric_response
from frankly_design.kinds.registry import kind_of

MAX_FACTORS = 16


def sanitisation(request: FamilyRequest) -> Built:
    """Build product sanitisation, which is also the discrete exponential mechanism.

    As product sanitisation it has the least error: p = (1−δ)/(e^ε+m−1) is the probability of each
    wrong value of a part with m values. The max-mean Hamming error p(m−1) is the least of all
    (ε, δ)-DP mechanisms for any m: for the answer as a whole and, part by part, for neighbours that
    differ in one part [Thm 3.5]. With `alpha`, e^α = P(truth)/P(another value) per part. Under
    other notions p is the least at which they hold [Thesis Thm 4.8].

    As the discrete exponential mechanism it has the utility −k·h(x, y) with e^k = 1 + 1/p − m
    (4.16); `alpha` is k. Under ldp and dp of an answer with one part, k is at the upper end of
    (4.10): e^k = (e^ε + (m−1)δ)/(1−δ) [Thesis Def 4.2, (4.8)].
    """
    sizes = next(
        (claim.attributes for claim in request.claims if claim.attributes), (request.answers,)
    )
    if len(sizes) > MAX_FACTORS:
        raise unsupported(
            f"{request.name} takes answers of at most {MAX_FACTORS} parts", "attributes"
        )
    D = 1 << BITS
    if request.explicit.alpha is not None:
        mechanism = _mechanism(sizes, -(-D // exp_lower(request.explicit.alpha)))
    elif len(sizes) == 1:
        # With one part t is the weight of a wrong value, so the closed form can be the guess.
        m = sizes[0]
        mechanism = symmetric_response(
            m,
            calibrate(
                request,
                lambda t: symmetric_response(m, t),
                0,
                D // m,
                closed_form(m, request.claims),
            ),
        )
    else:
        # Parts of different sizes share one t: the odds e^−k in units of 2^-48.
        mechanism = _mechanism(sizes, calibrate(request, lambda t: _mechanism(sizes, t), 0, D))
    return certify(request, mechanism, _figures(mechanism, request.claims))


def _mechanism(sizes: tuple[int, ...], odds: int) -> Mechanism:
    """Return the mechanism with odds/2^48 = e^−k; the weight of every wrong value is rounded up."""
    D = 1 << BITS
    factors = tuple(symmetric_response(m, -(-D * odds // (D + (m - 1) * odds))) for m in sizes)
    return factors[0] if len(factors) == 1 else ProductMechanism(factors)


def _figures(mechanism: Mechanism, claims: tuple[Claim, ...]) -> dict[str, object]:
    """Return k, p and the error; for one part under ldp or dp also (4.10) and (4.14)."""
    dense = [factor for factor in kind_of(mechanism).factors if isinstance(factor, DenseMechanism)]
    wrong = [factor.probability(1, 0) for factor in dense]
    error = sum((p * (f.answers - 1) for p, f in zip(wrong, dense, strict=True)), Fraction(0))
    figures: dict[str, object] = {
        # Rounding depends on the number of values, so k differs between parts in the last digits;
        # the smallest is reported.
        "k": min(alpha_of(factor) for factor in dense),
        "p": [float(p) for p in wrong] if len(wrong) > 1 else float(wrong[0]),
        "hamming_error": float(error),
        "parts": len(dense),
    }
    level = next((c for c in claims if c.notion in ("ldp", "dp") and c.level), None)
    if level is None or len(dense) > 1:
        return figures
    E, delta = Fraction(*(level.level or (1, 1))), Fraction(*(level.delta or (0, 1)))
    m = dense[0].answers
    low, high = exponent_range(E, delta, m)
    least, greatest = error_range(E, delta, m)
    return figures | {
        "k_range": [log(low) if low else float("-inf"), log(high)],
        "error_range": [float(least), float(greatest)],
        "error_bound": float(error_bound_discrete(E, delta, m)),
    }


def exponent_range(E: Fraction, delta: Fraction, m: int) -> tuple[Fraction, Fraction]:
    """Return the smallest and the largest e^k that are (ε, δ)-DP, at least 0  [Thesis (4.10)]."""
    return max(Fraction(0), (1 - (m - 1) * delta) / (E + delta)), (E + (m - 1) * delta) / (
        1 - delta
    )


def error_range(E: Fraction, delta: Fraction, m: int) -> tuple[Fraction, Fraction]:
    """Return the smallest and the largest share of wrong answers, p(m−1).

    [Thesis Thms 4.4, 4.7, (4.14), (4.18)]
    """
    return (1 - delta) / (1 + E / (m - 1)), min(Fraction(1), (E + delta) / (E + Fraction(1, m - 1)))


def error_bound_discrete(
    E: Fraction, delta: Fraction, m: int, least: Fraction = Fraction(1)
) -> Fraction:
    """Return the lower bound for m values at least `least` = κ apart  [Thesis (3.17)].

    It is κ(m−1)(1−δ)/(m−1+E), attained for κ = 1.
    """
    return least * (m - 1) * (1 - delta) / (m - 1 + E)
