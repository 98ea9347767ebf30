# SPDX-License-Identifier: Apache-2.0
"""Randomised responses whose report is an answer: generalised, Warner's, Mangat's and super-binary Mangat.

Rows are truths: the design matrix (6.2) of the thesis is [[p00, 1 − p00], [1 − p11, p11]] here as there.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import log

from frankly_protocol.audit import Claim, level_for
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.problems import Problem

from frankly_server.design.cones import Level
from frankly_server.design.families.base import BITS, Built, Wanted, built, calibrated, least_level, table, unsupported


def grr(answers: int, level: Level, bits: int = BITS) -> DenseMechanism:
    """Return generalised randomised response: the truth with probability E/(E+a−1), else another answer at random.

    For two answers this is the ε-optimal binary mechanism [Thesis Thm 6.2]. The off-diagonal weight is rounded up, so
    rounding only ever lowers the level: on/off ≤ p/q exactly.
    """
    p, q = level
    return telling(answers, -(-(1 << bits) * q // (p + (answers - 1) * q)), bits)


def telling(answers: int, off: int, bits: int = BITS) -> DenseMechanism:
    """Return the mechanism that sends each wrong answer with weight `off`, the truth with what is left."""
    on = (1 << bits) - (answers - 1) * off
    return DenseMechanism(bits, tuple(tuple(on if x == y else off for y in range(answers)) for x in range(answers)))


def generalised(wanted: Wanted) -> Built:
    """Generalised randomised response, GRR_α  [Funnel (25), (26)].

    With `alpha`: e^α = P(truth)/P(any other answer), as large as that. Else the largest α at which every promise holds:
    LIP(GRR_α) = ε, or α = ∞ (answers sent unchanged) where ε ≥ LIP(identity), which is infinite if some cell of the
    prior is empty (DESIGN §9.19). A larger `off` is a mixture with the constant, hence as private under every notion.
    """
    mechanism = _told(wanted)
    return built(wanted, mechanism, {"alpha": alpha_of(mechanism)})


def _told(wanted: Wanted) -> DenseMechanism:
    a = wanted.answers
    if wanted.explicit.alpha is not None:
        return grr(a, level_for(wanted.explicit.alpha))
    return telling(a, calibrated(wanted, lambda t: telling(a, t), 0, (1 << BITS) // a, closed_form(a, wanted.claims)))


def closed_form(answers: int, claims: Sequence[Claim]) -> int | None:
    """Return the wrong answers' weight at which ε-LDP, or (ε, δ)-DP, is met: (1−δ)/(E+a−1) of 2^48, rounded up.

    Thesis Thm 4.8; δ = 0 gives Funnel (25). None for other notions.
    """
    found = [
        (1 - Fraction(*(claim.delta or (0, 1)))) / (Fraction(*claim.level) + answers - 1)
        for claim in claims
        if claim.notion in ("ldp", "dp") and claim.level
    ]
    return -(-max(found) * (1 << BITS) // 1) if found else None


def alpha_of(mechanism: DenseMechanism) -> float:
    """Return α = ln(P(truth)/P(another answer)), inf where no other answer is sent."""
    on, off = mechanism.weights[0][0], mechanism.weights[0][1]
    return log(on / off) if off else float("inf")


def warner(wanted: Wanted) -> Built:
    """Warner's randomised response: a yes/no question, the truth with probability p_w  [Thesis §6.2.2].

    With `p00`: p_w itself, rounded to 2^-48. Else the largest p_w ≥ ½ at which every promise holds: E/(E+1) for ε-LDP
    [Thm 6.2], and for a degree of privacy violation α of a share π (6.28), p_w = α(1−π)/(α(1−π) + π(1−α)); (6.30), its
    mirror image below ½, is the same mechanism with the reports' names exchanged.
    """
    _require_two(wanted)
    if wanted.explicit.p00 is None:
        mechanism = _told(wanted)
        return built(wanted, mechanism, {"alpha": alpha_of(mechanism), "p": float(mechanism.probability(0, 0))})
    kept = share(wanted.explicit.p00)
    rest = (1 << BITS) - kept
    return built(wanted, table([[kept, rest], [rest, kept]]), {"p": float(wanted.explicit.p00)})


def mangat(wanted: Wanted) -> Built:
    """Mangat's model: who has the sensitive answer says so, the others with probability 1 − p_m  [Thesis §6.2.3].

    Answer 1 is the sensitive one, or answer 0 where a dpv claim says that it is. With `p00`: p_m, the chance that the
    other answer is told. Else the largest p_m at which every promise holds: (α−π)/(α(1−π)) for a degree of privacy
    violation α [§6.4.2]. One report is sent by one answer only: no finite level of LDP, never (ε, 0)-DP (DESIGN §9.2).
    """
    _require_two(wanted)
    _refuse_dp(wanted)
    sensitive = next((claim.sensitive for claim in wanted.claims if claim.notion == "dpv"), 1)

    def make(kept: int) -> DenseMechanism:
        rest, D = (1 << BITS) - kept, 1 << BITS
        return table([[kept, rest], [0, D]] if sensitive else [[D, 0], [rest, kept]])

    if wanted.explicit.p00 is None:
        least = calibrated(wanted, lambda t: make((1 << BITS) - t), 0, (1 << BITS) - 1)
        kept = (1 << BITS) - least
    else:
        kept = share(wanted.explicit.p00)
    return built(wanted, make(kept), {"p_m": kept / 2.0**BITS, "sensitive_answer": 1 if sensitive else 0})


def super_binary_mangat(wanted: Wanted) -> Built:
    """Super-binary Mangat: sensitive answers are told, answer 0 sends any answer with equal chance  [Thesis (6.32)].

    It has no parameter: it keeps what is asked or is refused. Reports other than 0 come from two answers only, so no
    level of LDP is finite and it is never presented as (ε, δ)-DP (DESIGN §9.2); dpv of an answer can hold.
    """
    _refuse_dp(wanted)
    m, D = wanted.answers, 1 << BITS
    even = [D // m + (y < D % m) for y in range(m)]
    rows = [even, *([D if x == y else 0 for y in range(m)] for x in range(1, m))]
    return built(wanted, table(rows), {})


def share(chance: Fraction) -> int:
    """Return a probability in units of 2^-48, to the nearest."""
    return round(chance * (1 << BITS))


def strongest(wanted: Wanted) -> Level:
    """Return the level a family without a calibration is built at: that of `alpha`, else the least one promised."""
    if wanted.explicit.alpha is not None:
        return level_for(wanted.explicit.alpha)
    level = least_level(wanted.claims)
    if level is None:
        words = f"{wanted.name} is built at a level: give epsilon, or alpha"
        raise InvalidInput(Problem.FIELD_MISSING, words, "alpha")
    return level


def _refuse_dp(wanted: Wanted) -> None:
    """Refuse (ε, δ)-DP, which some δ would always allow, and LDP, whose level is infinite (DESIGN §9.2)."""
    if any(claim.notion in ("ldp", "dp") for claim in wanted.claims):
        words = f"{wanted.name} is not differentially private at any level: ask for dpv, or for warner"
        raise unsupported(words, "notion")


def _require_two(wanted: Wanted) -> None:
    if wanted.answers != 2:
        raise unsupported(f"{wanted.name} is for two answers: use grr or optimal")
