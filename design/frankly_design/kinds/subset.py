# SPDX-License-Identifier: Apache-2.0
"""The subset kind: a random set of fixed size."""

from fractions import Fraction
from math import comb, inf, perm

from frankly_protocol.mechanisms import SubsetMechanism

from frankly_design.kinds.set_kind import SetKind
from frankly_design.kinds.set_law import log


class SubsetKind(SetKind):
    """Sets of one size."""

    mechanism: SubsetMechanism

    @property
    def set_size(self) -> int:
        return self.mechanism.size

    @property
    def inclusion(self) -> tuple[Fraction, Fraction]:
        inside = Fraction(self.mechanism.inside, self.mechanism.denominator)
        # The other answers have all `size` places if the set lacks the truth, otherwise one fewer: on
        # average size − inside.
        return inside, (self.mechanism.size - inside) / (self.answers - 1)

    def held_together(self, m: int) -> tuple[float, float]:
        inside, size = self.mechanism.inside / self.mechanism.denominator, self.mechanism.size
        false_answers = self.answers - 1

        def placed(places: int, m: int) -> float:
            """Return P(m specific false answers are in a uniform set of `places` false answers)."""
            return perm(places, m) / perm(false_answers, m) if m <= false_answers else 0.0

        return (
            inside * placed(size - 1, m) + (1 - inside) * placed(size, m),
            inside * placed(size - 1, m - 1),
        )

    @property
    def pair_inclusion(self) -> tuple[float, float, float, float]:
        a, size = self.answers, self.mechanism.size
        p = self.mechanism.inside / self.mechanism.denominator
        pair = p * (size - 1) * (size - 2) + (1 - p) * size * (size - 1)
        return (p, (size - p) / (a - 1), pair / ((a - 1) * max(1, a - 2)), p * (size - 1) / (a - 1))

    @property
    def odds(self) -> tuple[int, int]:
        """Inside (answers − size) : (1 − inside) size."""
        D, inside, size = self.mechanism.denominator, self.mechanism.inside, self.mechanism.size
        return inside * (self.answers - size), (D - inside) * size

    def log_chances(self, size: int) -> tuple[float, float]:
        if size != self.mechanism.size:
            return -inf, -inf
        a, D, inside = self.answers, self.mechanism.denominator, self.mechanism.inside
        return (
            log(inside / D) - log(comb(a - 1, size - 1)),
            log((D - inside) / D) - log(comb(a - 1, size)),
        )
