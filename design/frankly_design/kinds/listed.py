# SPDX-License-Identifier: Apache-2.0
"""Kinds of which every symbol is counted: tables, and products of tables."""

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from frankly_design.kinds.decoder import Decoder, Rows, Targets, decoder, estimable, shares
from frankly_design.kinds.evidence import Evidence, Exact, TableEvidence
from frankly_design.kinds.kind import Checked, Kind, Tally, invalid_counts
from frankly_design.kinds.kronecker import Law
from frankly_design.kinds.set_counts import SetCounts
from frankly_design.numeric.arrays import FloatArray


class ListedKind(Kind):
    """A mechanism with one count for each symbol."""

    @property
    @abstractmethod
    def weights(self) -> Rows:
        """Integers proportional to Q(y|x), row = truth."""

    @property
    @abstractmethod
    def law(self) -> Law:
        """Q, as a matrix for a table and as its factors for a product."""

    @property
    @abstractmethod
    def condition(self) -> float:
        """Condition number of Q."""

    @property
    def reports(self) -> int:
        """Number of symbols."""
        return int(self.mechanism.reports)

    @property
    def denominator(self) -> int:
        """Sum of every row of the weights."""
        return int(self.mechanism.denominator)

    @property
    def size(self) -> int:
        """Number of counts that are published."""
        return self.reports

    def checked(self, counts: Tally) -> Checked:
        """Return one count for each symbol, in their order."""
        if isinstance(counts, SetCounts):
            raise invalid_counts("give one count for each report symbol")
        if not isinstance(counts, list | tuple) or len(counts) != self.reports:
            raise invalid_counts(f"give one count for each of the {self.reports} report symbols")
        for y, count in enumerate(counts):
            if type(count) is not int or count < 0:
                raise invalid_counts("counts are whole numbers, zero or more", f"counts[{y}]")
        return list(counts)

    def nothing_yet(self) -> Checked:
        """Return the counts of zero reports."""
        return [0] * self.reports

    def decoder(self, targets: Targets, prior: tuple[int, ...] | None) -> Decoder:
        """Return the exact unbiased decoder of the targets; see `decoder.decoder`."""
        return decoder(self, targets, prior)

    def factor_decoders(self, prior: tuple[int, ...] | None) -> tuple[Decoder, ...]:
        """Return decoders whose Kronecker product decodes the shares: of the whole table, or by factor."""
        return (self.decoder(shares(self.answers), prior),)

    def shares(self, counts: Sequence[int], prior: tuple[int, ...] | None) -> Exact:
        """Return the exact unbiased shares. All must be identifiable."""
        return self.decoder(shares(self.answers), prior).apply(counts)

    def share_decoder(self, prior: tuple[int, ...] | None) -> FloatArray:
        """Return the decoder of all shares, shape (answers, reports). All must be identifiable."""
        return self.decoder(shares(self.answers), prior).floats()

    def evidence(
        self, counts: Checked, targets: Targets, prior: tuple[int, ...] | None
    ) -> Evidence:
        """Return the evidence about targets from checked counts."""
        return TableEvidence(self, self.decoder(targets, prior), listed(counts))

    @property
    def law_json(self) -> dict[str, Any]:
        """The table and the sum of its rows."""
        return {"denominator": self.denominator, "weights": list(map(list, self.weights))}

    def share_rows(self, prior: tuple[int, ...]) -> Sequence[Sequence[Fraction] | None]:
        """Return the exact decoder of each share; None for one that cannot be estimated."""
        return self.decoder(shares(self.answers), prior).rows

    @property
    def basis(self) -> list[list[Fraction]]:
        """Reduced echelon basis of the combinations of shares that can be estimated."""
        return [list(row) for row in estimable(self)]


def listed(counts: Any) -> list[int]:
    """Return checked counts, for mypy."""
    found: list[int] = counts
    return found
