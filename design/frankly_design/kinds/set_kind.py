# SPDX-License-Identifier: Apache-2.0
"""Base of the kinds whose symbols are sets of answers, counted by pairs of answers."""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any, ClassVar, Final

import numpy as np

from frankly_design.kinds.decoder import Targets
from frankly_design.kinds.evidence import Evidence
from frankly_design.kinds.factor import Factor, FactorKind
from frankly_design.kinds.kind import Checked, Stored, Tally, invalid_counts, whole_numbers
from frankly_design.kinds.set_counts import SetCounts
from frankly_design.kinds.set_factor import SetFactor
from frankly_design.kinds.set_figures import information_and_hamming
from frankly_design.kinds.set_law import SetLaw
from frankly_design.kinds.sets import SetEvidence
from frankly_design.kinds.symbols import members
from frankly_design.notions.prior import Prior
from frankly_design.numeric.arrays import FloatArray
from frankly_design.tables import objectives
from frankly_design.tables.limits import Poll, no_poll

MOST_MASKED: Final = 10
"""Largest number of answers of a set that is counted by its bit mask (at most 2^10 counts).

The maximum-likelihood shares need these counts; pairs of positions are not enough. A change needs a
migration that recounts the reports.
"""


class SetKind(FactorKind, SetLaw):
    """A mechanism that reports a set of answers."""

    is_set: ClassVar[bool] = True

    @property
    def digits(self) -> tuple[int, ...]:
        """The number of masks of a small set; larger sets have no numbers."""
        return (1 << self.answers,) if self.answers <= MOST_MASKED else ()

    @property
    def most_pairs(self) -> int:
        """Largest number of pairs of positions in one set."""
        size = self.answers if self.set_size is None else self.set_size
        return size * (size + 1) // 2

    def number(self, symbol: Any) -> int:
        """Return the bit mask."""
        return int(symbol, 16)

    def keys(self, symbol: Any) -> list[tuple[int, ...]]:
        """Return the bit mask of a small set, else all pairs of its positions."""
        if self.digits:
            return [self.parts(symbol)]
        return list(combinations_with_replacement(members(symbol), 2))

    @property
    def size(self) -> int:
        """Number of pairs of answers; there are too many different sets."""
        return self.answers**2

    def index(self, key: Sequence[int]) -> int:
        """Return the position of a pair of answers, row-major."""
        x, z = key
        return x * self.answers + z

    def counts(self, n: int, stored: Stored) -> SetCounts:
        """Return the counts of pairs, and of masks for small sets."""
        if self.digits:
            return SetCounts.of_symbols(self.answers, {mask: k for (mask,), k in stored.items()})
        # The matrix of pair counts is symmetric, and only pairs x ≤ z are stored.
        pairs = [[0] * self.answers for _ in range(self.answers)]
        for (x, z), k in stored.items():
            pairs[x][z] = pairs[z][x] = k
        return SetCounts(n, tuple(map(tuple, pairs)))

    def count(self, reports: Iterable[Any]) -> Tally:
        """Return the counts of masks."""
        seen = whole_numbers(reports)
        for mask in seen:
            if not 0 <= mask < 1 << self.answers or self.set_size not in (None, mask.bit_count()):
                raise invalid_counts("a report is not a set of this mechanism", "reports")
        return SetCounts.of_symbols(self.answers, seen)

    def checked(self, counts: Tally) -> Checked:
        """Return the counts."""
        if not isinstance(counts, SetCounts):
            raise invalid_counts(
                "reports of this mechanism are sets: give the number of sets with each answer pair"
            )
        return counts

    def nothing_yet(self) -> Checked:
        """Return the counts of zero reports."""
        return SetCounts(0, ((0,) * self.answers,) * self.answers)

    def evidence(
        self,
        counts: Any,
        targets: Targets,
        prior: tuple[int, ...] | None,  # noqa: ARG002 - the counts of answers need no prior
    ) -> Evidence:
        """Return the evidence about targets from checked counts."""
        return SetEvidence(self, targets, counts)

    def factor(self, prior: tuple[int, ...] | None) -> Factor:  # noqa: ARG002
        """Return the mechanism as a factor of a joint table."""
        return SetFactor(self)

    @property
    def rank(self) -> int:
        """Exact rank of Q: full, or 1 if the set does not depend on the answer."""
        return self.answers if self.is_informative else 1

    @property
    def law_json(self) -> dict[str, Any]:
        """The probabilities that the set contains the true, and another, answer."""
        inside, outside = self.inclusion
        return {
            "inside": list(inside.as_integer_ratio()),
            "outside": list(outside.as_integer_ratio()),
        }

    def share_rows(self, prior: tuple[int, ...]) -> Sequence[Sequence[Fraction] | None]:  # noqa: ARG002
        """Return the decoder of each share from 1 and the indicators of the answers in the set."""
        # If the set does not depend on the answer, no decoder exists.
        return SetFactor(self).decoder if self.is_informative else [None] * self.answers

    @property
    def basis(self) -> list[list[Fraction]]:
        """Reduced echelon basis of the combinations of shares that can be estimated."""
        a = self.answers
        if not self.is_informative:  # only the total of the shares, which is 1
            return [[Fraction(1)] * a]
        return [[Fraction(int(x == z)) for z in range(a)] for x in range(a)]

    def information_and_hamming(
        self,
        prior: Prior,
        poll: Poll = no_poll,  # noqa: ARG002 - a closed form
    ) -> tuple[float, float]:
        """Return (information in nats, Hamming error), both nan for many uneven answers."""
        return information_and_hamming(self, prior.shares)

    def variances(self, prior: Prior, targets: objectives.Targets | None) -> list[float]:
        """Return the variance at n = 1 of each target's estimate (default: each share).

        Sets are decoded from the number of sets that contain each answer; a decoder that scores every
        set could have a slightly smaller variance for an uneven prior.
        """
        return self.target_variances(np.array(prior.probabilities(), dtype=np.float64), targets)

    def variance_at(self, truth: FloatArray) -> float:
        """Return the total variance of the shares at n = 1; inf if they cannot be estimated."""
        return math.fsum(self.target_variances(truth, None))

    def names(self, answers: Sequence[Any]) -> list[str]:
        """Return the labels of the answers in each set, as {a, b}."""
        held = (
            (str(label) for x, label in enumerate(answers) if mask >> x & 1)
            for mask in self.mechanism.symbols()
        )
        return [f"{{{', '.join(labels)}}}" for labels in held]
