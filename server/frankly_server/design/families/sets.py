# SPDX-License-Identifier: Apache-2.0
"""Families whose report is a set of answers: unary encodings and subset selection, of the kinds `unary` and `subset`.

The verifier finds the worst set without listing 2^a of them (`audit.sets`), so calibration takes moments at any a.
"""

import math
from fractions import Fraction

import numpy as np
from frankly_protocol.audit import exp_lower
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import SubsetMechanism, UnaryMechanism

from frankly_server.design.families.base import BITS, Built, Wanted, built, calibrated, least_level
from frankly_server.design.linear import FloatArray
from frankly_server.design.objectives import Targets
from frankly_server.design.prior import Prior

Sets = SubsetMechanism | UnaryMechanism

_FEW = 12
_D = 1 << BITS


def oue(wanted: Wanted) -> Built:
    """Optimised unary encoding: the true bit is 1 with probability ½, any other with 1/(e^α+1)  [Funnel (27)-(29)].

    With `alpha`: that. Else the largest α at which every promise holds: LIP(OUE_α) = ε, ∞ where ε ≥ LIP(identity). A
    larger flip arises from a smaller one by randomising each bit again, hence is as private under every notion.
    """
    a = wanted.answers

    def make(flip: int) -> UnaryMechanism:
        return UnaryMechanism(BITS, a, _D // 2, flip)

    if wanted.explicit.alpha is not None:
        flip = _up(1 / (exp_lower(wanted.explicit.alpha) + 1))
    else:
        level = least_level(wanted.claims)
        guess = _up(1 / (Fraction(*level) + 1)) if level else None
        flip = calibrated(wanted, make, 0, _D // 2 - 1, guess)
    alpha = math.log(_D / flip - 1) if flip else math.inf
    return built(wanted, make(flip), {"alpha": alpha, "p": 0.5, "q": flip / _D})


def symmetric_unary(wanted: Wanted) -> Built:
    """Symmetric unary encoding: every bit is told with probability e^(α/2)/(e^(α/2)+1)  [Funnel §VI.A, after RAPPOR].

    With `alpha`: that, α being its level of LDP. Else the largest α at which every promise holds, as for `oue`.
    """
    a = wanted.answers

    def make(flip: int) -> UnaryMechanism:
        return UnaryMechanism(BITS, a, _D - flip, flip)

    if wanted.explicit.alpha is not None:
        flip = _up(1 / (exp_lower(wanted.explicit.alpha / 2) + 1))
    else:
        flip = calibrated(wanted, make, 0, _D // 2 - 1)
    alpha = 2 * math.log(_D / flip - 1) if flip else math.inf
    return built(wanted, make(flip), {"alpha": alpha, "p": 1 - flip / _D, "q": flip / _D})


def subset_selection(wanted: Wanted) -> Built:
    """Subset selection: a set of `size` answers, the truth in it with probability `inside`  [Ye and Barg 2018].

    Each size is calibrated on its own to the largest `inside` at which every promise holds (with `alpha`: to α-LDP, in
    closed form, as are ldp claims); of these the one of the least total variance is taken. All sizes are tried under
    LDP, with `alpha` and for up to 12 answers, else the powers of two and the best under LDP. At size 1 it is GRR.
    """
    a, alpha = wanted.answers, wanted.explicit.alpha
    if alpha is not None:
        mechanism = min((_at(a, size, exp_lower(alpha)) for size in range(1, a)), key=lambda m: spread(m, wanted.prior))
    else:
        level = least_level(wanted.claims)
        E = Fraction(*level) if level else None
        mechanism = min(_candidates(wanted, E), key=lambda m: spread(m, wanted.prior))
    inside = mechanism.inside / _D
    ratio = _odds(mechanism)
    figures = {"size": mechanism.size, "inside": inside, "alpha": math.log(ratio) if ratio else math.inf}
    return built(wanted, mechanism, figures)


def spread(mechanism: Sets, prior: Prior) -> float:
    """Return the total variance at n = 1 of the unbiased shares, inf if they cannot be estimated."""
    return math.fsum(target_variances(mechanism, np.array(prior.probabilities(), dtype=np.float64), None))


def target_variances(mechanism: Sets, truth: FloatArray, targets: Targets | None) -> list[float]:
    """Return the variance at n = 1 of the estimate of each target, of each share by default; inf if there is none.

    The estimate counts how often each answer is in the reported sets: a target w decodes to w̄ + Σ_x u_x 1[x in
    set]/(p−q), u = w − w̄, whose variance is Σ_x u_x² (λ_x − A − 2(B−A) p_x)/(p−q)² − (Σ_x u_x p_x)². p_x is the share
    of x (`truth`), λ_x the chance of x in the set; p, q those given that x is the truth and that it is not; A, B those
    of two given answers, of which none, and one, is the truth (docs/maths/estimator.md, claim 12).
    """
    p, q, apart, together = _chances(mechanism)
    if p == q:
        return [math.inf] * (mechanism.answers if targets is None else len(targets))
    w = np.eye(mechanism.answers) if targets is None else np.array(targets, dtype=np.float64)
    u = w - w.mean(axis=1, keepdims=True)
    squares = u**2 @ (q + (p - q) * truth - apart - 2 * (together - apart) * truth)
    return [float(v) for v in squares / (p - q) ** 2 - (u @ truth) ** 2]


def _chances(mechanism: Sets) -> tuple[float, float, float, float]:
    """Return the chances of an answer in the set, true or not, and of two: none of them true, and one."""
    if isinstance(mechanism, UnaryMechanism):
        p, q = mechanism.keep / mechanism.denominator, mechanism.flip / mechanism.denominator
        return p, q, q * q, p * q
    others, size, p = mechanism.answers - 1, mechanism.size, mechanism.inside / mechanism.denominator
    pair = p * (size - 1) * (size - 2) + (1 - p) * size * (size - 1)
    return p, (size - p) / others, pair / (others * max(1, others - 1)), p * (size - 1) / others


def _candidates(wanted: Wanted, E: Fraction | None) -> list[SubsetMechanism]:
    a = wanted.answers
    if E is not None and all(claim.notion in ("ldp", "dp") for claim in wanted.claims):
        tried = sorted(range(1, a), key=lambda size: spread(_at(a, size, E), wanted.prior))[:_FEW]
    elif a <= _FEW:
        tried = list(range(1, a))
    else:
        best = [min(range(1, a), key=lambda size: spread(_at(a, size, E), wanted.prior))] if E is not None else []
        tried = sorted({*best, *(1 << i for i in range(a.bit_length()) if 1 << i < a)})
    found, refusal = [], None
    for size in tried:
        try:
            found.append(_calibrated(wanted, size, E))
        except InvalidInput as error:
            refusal = error
    if refusal is not None and not found:
        raise refusal
    return found


def _calibrated(wanted: Wanted, size: int, E: Fraction | None) -> SubsetMechanism:
    a = wanted.answers

    def make(outside: int) -> SubsetMechanism:
        return SubsetMechanism(BITS, a, size, _D - outside)

    # With the truth in the set no more often than by chance, the report tells nothing.
    chance = _D - -(-size * _D // a)
    guess = _D - _at(a, size, E).inside if E is not None else None
    return make(calibrated(wanted, make, 0, chance, guess))


def _at(answers: int, size: int, E: Fraction) -> SubsetMechanism:
    """Return the largest `inside` with a ratio of at most E between a set's chances: kE/(kE + a − k), rounded down."""
    return SubsetMechanism(BITS, answers, size, int(_D * size * E / (size * E + answers - size)))


def _odds(mechanism: SubsetMechanism) -> Fraction | None:
    """Return how much likelier a set with the truth in it is than one without; None where the latter never is sent."""
    rest = _D - mechanism.inside
    if not rest:
        return None
    return Fraction(mechanism.inside * (mechanism.answers - mechanism.size), rest * mechanism.size)


def _up(chance: Fraction) -> int:
    return -(-chance * _D // 1)
