# SPDX-License-Identifier: Apache-2.0
"""One document's part in a table: its blocks and counts, and the targets over its joint answers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, reduce

from frankly_design.estimate import Joint, SetCounts
from frankly_design.estimate.decoder import Targets
from frankly_design.estimate.estimator import checked_evidence
from frankly_design.estimate.evidence import Evidence
from frankly_design.estimate.inputs import Tally as Counts
from frankly_design.estimate.joint import Source
from frankly_design.estimate.set_law import SetMechanism
from frankly_design.tables.parts import PartTable, part_table
from frankly_protocol.blocks import Block, Question
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism, Mechanism, ProductMechanism
from frankly_protocol.problems import Problem

from frankly_server.analysis.counted_document import Tally
from frankly_server.store import is_masked


@dataclass(frozen=True)  # no slots: the cached properties are stored in its `__dict__`
class Part:
    """Blocks, joint counts and targets of one document.

    tally : number of reports by joint symbols; for a single block of large sets, by pairs of
        positions x ≤ z.
    targets : weights over the joint answers of the blocks.
    received : number of reports on the document within the same cells, of which n contain these
        blocks; None if all of them do.
    beside : number of reports of other arms, which could have contained the blocks.
    strata : the document's public questions. A privacy guarantee whose prior has no counts by
        stratum does not hold if there are any (`is_unstated`).
    """

    blocks: tuple[Block, ...]
    n: int
    tally: Tally
    targets: Targets
    strata: tuple[Question, ...] = ()
    received: int | None = None
    beside: int = 0

    @property
    def respondents(self) -> int:
        """Number of reports on the document in these cells, with or without these blocks."""
        return self.n if self.received is None else self.received

    @property
    def _everybody(self) -> int:
        return self.respondents + self.beside

    def frame(self, population: int | None, *, census: bool) -> tuple[int | None, bool]:
        """Return (population, census) for the reports that contain the blocks.

        In a census these reports are a random sample of those of all respondents.
        """
        if census and self._everybody > self.n:
            return self._everybody, False
        return population, census

    def fake_share(self, beta: Fraction) -> Fraction | None:
        """Return the largest possible share of fakes here if a share `beta` of all reports is fake.

        In the worst case every fake contains these blocks. Returns None if all reports may be fake.
        """
        # All fakes can contain the blocks, while only some of the genuine reports do.
        share = beta * self._everybody / self.n if self.n else beta
        return share if share < 1 else None

    @cached_property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """Mechanisms of the blocks; forms do not occur, because their parts are separate blocks."""
        return tuple(block.numbered_mechanism for block in self.blocks)

    @cached_property
    def together(self) -> PartTable | None:
        """Joint table of several parts of one form, which are dependent; None for other blocks.

        Raises InvalidInput(unsupported) for parts of a form together with other blocks.
        """
        parts = [m for m in self.mechanisms if isinstance(m, PartTable)]
        forms = {id(part.form) for part in parts}
        if len(self.blocks) == 1 or len(forms) == len(parts):
            return None
        if len(forms) > 1 or len(parts) < len(self.blocks):
            raise InvalidInput(
                Problem.UNSUPPORTED,
                "several questions of one form cannot be combined with others: name fewer",
                "targets",
            )
        return part_table(parts[0].form, tuple(i for part in parts for i in part.parts))

    @cached_property
    def mechanism(self) -> Source:
        """Mechanism of the block, or the joint mechanism of several blocks."""
        if self.together is not None:
            return self.together
        if len(self.blocks) == 1:
            return self.mechanisms[0]
        tables: list[DenseMechanism] = []
        factors: list[DenseMechanism | SetMechanism] = []
        for mechanism in self.mechanisms:
            block_factors = (
                mechanism.factors if isinstance(mechanism, ProductMechanism) else (mechanism,)
            )
            factors += block_factors
            tables += [factor for factor in block_factors if isinstance(factor, DenseMechanism)]
        # An answer in the clear has a table of fewer bits, which a product does not allow.
        is_product = (
            len(tables) == len(factors)
            and len({table.bits for table in tables}) == 1
            and not any(isinstance(table, PartTable) for table in tables)
        )
        return ProductMechanism(tuple(tables)) if is_product else Joint(tuple(factors))

    @cached_property
    def design_prior(self) -> tuple[int, ...]:
        """Product of the blocks' priors; documents contain no joint prior."""

        def times(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(a * b for a in left for b in right)

        return reduce(times, (block.design_prior for block in self.blocks))

    @cached_property
    def counts(self) -> Counts:
        """Tally in the form that the estimator of this mechanism expects."""
        mechanism = self.mechanism
        if isinstance(mechanism, PartTable) and len(self.blocks) > 1:
            return self._counts_together(mechanism)
        if isinstance(mechanism, ProductMechanism | Joint):
            return dict(self.tally)
        if isinstance(mechanism, DenseMechanism):
            return [self.tally.get((y,), 0) for y in range(mechanism.reports)]
        # Small sets are counted by their bit mask, large ones by pairs of positions.
        if is_masked(mechanism):
            return SetCounts.of_symbols(
                mechanism.answers, {symbol: n for (symbol,), n in self.tally.items()}
            )
        # The matrix of pair counts is symmetric, and only pairs x ≤ z are stored.
        pairs = [[0] * mechanism.answers for _ in range(mechanism.answers)]
        for (x, z), n in self.tally.items():
            pairs[x][z] = pairs[z][x] = n
        return SetCounts(self.n, tuple(map(tuple, pairs)))

    def _counts_together(self, table: PartTable) -> list[int]:
        """Return the counts by column of the joint table of the parts."""
        counts = [0] * table.reports
        for columns, n in self.tally.items():
            counts[self.column_together(table, columns)] += n
        return counts

    def column_together(self, table: PartTable, columns: Sequence[int]) -> int:
        """Return the column of the parts' joint table, from the columns of the parts."""
        parts = zip(self.mechanisms, columns, strict=True)
        columns_shown = [
            part.shown(column) for part, column in parts if isinstance(part, PartTable)
        ]
        return table.column_of(columns_shown[0][0], [i for _, sets in columns_shown for i in sets])

    @property
    def question_keys(self) -> tuple[tuple[str, ...], ...]:
        """Question id and choice ids of each question of the blocks, in order."""
        return tuple(
            (question.id, *(choice.id for choice in question.choices))
            for block in self.blocks
            for question in block.questions
        )

    def without(self, some: "Part") -> "Part":
        """Return the part without some of its reports."""
        left = {symbols: n - some.tally.get(symbols, 0) for symbols, n in self.tally.items()}
        return replace(self, n=self.n - some.n, tally=left)

    def evidence(self, targets: Targets) -> Evidence:
        """Return the evidence of the counts about targets over the joint answers."""
        return checked_evidence(self.mechanism, self.counts, targets, self.design_prior)
