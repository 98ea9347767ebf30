# SPDX-License-Identifier: Apache-2.0
"""Product sanitisation and the discrete exponential mechanism: one mechanism under two names  [Thesis Thm 4.5].

Each of an answer's parts is told with the same odds e^k : 1 : … : 1 of the truth against any other value, which is
P(y|x) ∝ e^(−k·h(x, y)) with h how many parts differ (Hamming distance). An answer of one part is its own only part;
an srlip claim says of which parts an answer consists.
"""

from fractions import Fraction
from math import log

from frankly_protocol.audit import Claim, exp_lower
from frankly_protocol.mechanisms import DenseMechanism, Mechanism, ProductMechanism

from frankly_server.design import sanitisation as theory
from frankly_server.design.families.base import BITS, Built, Wanted, built, calibrated, unsupported
from frankly_server.design.families.randomised_response import alpha_of, closed_form, telling

MAX_FACTORS = 16


def product_sanitisation(wanted: Wanted) -> Built:
    """The product sanitisation of least error: a wrong value with p = (1−δ)/(e^ε+m−1) each  [Thesis Thm 4.8].

    Its max-mean Hamming error p(m−1) is the least of all (ε, δ)-DP ones, any m, for the answer as a whole and, part by
    part, for neighbours that differ in one part [Thm 3.5]. With `alpha`: e^α = P(truth)/P(another value) of each part.
    Under other notions the least p that keeps them.
    """
    return _family(wanted)


def discrete_exponential(wanted: Wanted) -> Built:
    """The discrete exponential mechanism with utility −k·h(x, y), calibrated  [Thesis Def 4.2, (4.8)].

    e^k = 1 + 1/p − m makes it the product sanitisation (4.16). With `alpha`: k itself. Under ldp and dp of an answer of
    one part k is at the upper end of (4.10), e^k = (e^ε + (m−1)δ)/(1−δ).
    """
    return _family(wanted)


def _family(wanted: Wanted) -> Built:
    sizes = next((claim.attributes for claim in wanted.claims if claim.attributes), (wanted.answers,))
    if len(sizes) > MAX_FACTORS:
        raise unsupported(f"{wanted.name} takes answers of at most {MAX_FACTORS} parts", "attributes")
    D = 1 << BITS
    if wanted.explicit.alpha is not None:
        mechanism = _of(sizes, -(-D // exp_lower(wanted.explicit.alpha)))
    elif len(sizes) == 1:
        m = sizes[0]
        mechanism = telling(m, calibrated(wanted, lambda t: telling(m, t), 0, D // m, closed_form(m, wanted.claims)))
    else:
        mechanism = _of(sizes, calibrated(wanted, lambda t: _of(sizes, t), 0, D))
    return built(wanted, mechanism, _figures(mechanism, wanted.claims))


def _of(sizes: tuple[int, ...], odds: int) -> Mechanism:
    """Return the mechanism with odds/2^48 = e^−k, every wrong value's weight rounded up."""
    D = 1 << BITS
    factors = tuple(telling(m, -(-D * odds // (D + (m - 1) * odds))) for m in sizes)
    return factors[0] if len(factors) == 1 else ProductMechanism(factors)


def _figures(mechanism: Mechanism, claims: tuple[Claim, ...]) -> dict[str, object]:
    """Return k, p and the expected number of wrong parts; for one part under ldp or dp also (4.10) and (4.14)."""
    factors = mechanism.factors if isinstance(mechanism, ProductMechanism) else (mechanism,)
    dense = [factor for factor in factors if isinstance(factor, DenseMechanism)]
    wrong = [factor.probability(1, 0) for factor in dense]
    error = sum((p * (f.answers - 1) for p, f in zip(wrong, dense, strict=True)), Fraction(0))
    figures: dict[str, object] = {
        "k": min(alpha_of(factor) for factor in dense),
        "p": [float(p) for p in wrong] if len(wrong) > 1 else float(wrong[0]),
        "hamming_error": float(error),
        "parts": len(dense),
    }
    level = next((c for c in claims if c.notion in ("ldp", "dp") and c.level), None)
    if level is None or len(dense) > 1:
        return figures
    E, delta, m = Fraction(*(level.level or (1, 1))), Fraction(*(level.delta or (0, 1))), dense[0].answers
    low, high = theory.exponent_range(E, delta, m)
    least, most = theory.error_range(E, delta, m)
    return figures | {
        "k_range": [log(low) if low else float("-inf"), log(high)],
        "error_range": [float(least), float(most)],
        "error_bound": float(theory.error_bound_discrete(E, delta, m)),
    }
