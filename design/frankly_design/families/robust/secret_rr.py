# SPDX-License-Identifier: Apache-2.0
"""Secret randomised response, private under any distribution  [Robust Def 4, Lemma 2, Thm 4]."""

from fractions import Fraction

from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.mechanisms.base import MAX_ANSWERS
from frankly_protocol.problems import Problem

BITS = 48


def secret_rr(
    secrets: int, values: int, level: tuple[int, int], bits: int = BITS
) -> DenseMechanism:
    """Return secret randomised response over answers (s, u), row-major, as integers.

    With E = p/q, the truth (s, u) is reported as itself with weight E, as another (s, u') with 1/E,
    and as any answer with another s with 1 [Robust (58)]. The last two weights are rounded up and
    the truth gets the remainder, so no ratio between different secrets exceeds p/q. This is RLDP at
    level E over all distributions: the claim rldp with lower bounds of 0.

    Parameters
    ----------
    secrets : 2 or more.
    values : 1 or more; secrets · values ≤ 256.
    level : (p, q), p/q ≥ 1.

    Raises InvalidInput: prior_shape for other sizes, weights_invalid if there are too few bits.
    """
    if secrets < 2 or values < 1 or secrets * values > MAX_ANSWERS:
        raise InvalidInput(
            Problem.PRIOR_SHAPE,
            f"secret-rr needs two or more secrets and at most {MAX_ANSWERS} answers (s, u) in all",
            "prior.joint",
        )
    E, denominator, outside_values = Fraction(*level), 1 << bits, (secrets - 1) * values
    other_secret = _up(denominator / (E + (values - 1) / E + outside_values))
    # Rounding up both off-weights lowers the truth's weight, the numerator of the largest ratio.
    same_secret = _up(other_secret / E)
    on = denominator - (values - 1) * same_secret - outside_values * other_secret
    pairs = [(s, u) for s in range(secrets) for u in range(values)]

    def weight(truth: tuple[int, int], sent: tuple[int, int]) -> int:
        if truth == sent:
            return on
        return same_secret if truth[0] == sent[0] else other_secret

    return DenseMechanism(bits, tuple(tuple(weight(x, y) for y in pairs) for x in pairs))


def _up(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)
