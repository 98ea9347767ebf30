# SPDX-License-Identifier: Apache-2.0
"""The unary kind: one noisy bit for each answer."""

from fractions import Fraction

from frankly_protocol.mechanisms import UnaryMechanism

from frankly_design.kinds.set_kind import SetKind
from frankly_design.kinds.set_law import log, log_power


class UnaryKind(SetKind):
    """Sets of any size: every bit is drawn by itself."""

    mechanism: UnaryMechanism
    set_size = None

    @property
    def inclusion(self) -> tuple[Fraction, Fraction]:
        D = self.mechanism.denominator
        return Fraction(self.mechanism.keep, D), Fraction(self.mechanism.flip, D)

    def held_together(self, m: int) -> tuple[float, float]:
        q1, q0 = map(float, self.inclusion)
        return q0**m, q1 * q0 ** (m - 1)

    @property
    def pair_inclusion(self) -> tuple[float, float, float, float]:
        D = self.mechanism.denominator
        p, q = self.mechanism.keep / D, self.mechanism.flip / D
        return p, q, q * q, p * q

    @property
    def odds(self) -> tuple[int, int]:
        """Keep (1 − flip) : (1 − keep) flip."""
        D, keep, flip = self.mechanism.denominator, self.mechanism.keep, self.mechanism.flip
        return keep * (D - flip), (D - keep) * flip

    def log_chances(self, size: int) -> tuple[float, float]:
        a, D = self.answers, self.mechanism.denominator
        keep, flip = self.mechanism.keep / D, self.mechanism.flip / D
        inside = log(keep) + log_power(flip, size - 1) + log_power(1 - flip, a - size)
        outside = log(1 - keep) + log_power(flip, size) + log_power(1 - flip, a - size - 1)
        return inside if size else log(0), outside if size < a else log(0)
