# SPDX-License-Identifier: Apache-2.0
"""One document's part in a table: its blocks, its counts, and the targets over its joint answers."""

from dataclasses import dataclass
from functools import reduce

from frankly_protocol.blocks import Block, Question
from frankly_protocol.mechanisms import DenseMechanism, ProductMechanism

from frankly_server.analysis.counted_document import Tally
from frankly_server.estimate import Joint, SetCounts
from frankly_server.estimate.decoder import Targets
from frankly_server.estimate.estimator import checked_evidence
from frankly_server.estimate.evidence import Evidence
from frankly_server.estimate.inputs import Tally as Counts
from frankly_server.estimate.joint import Source
from frankly_server.estimate.set_law import SetMechanism
from frankly_server.store import is_masked


@dataclass(frozen=True, slots=True)
class Part:
    """Blocks, joint counts and targets of one document.

    tally : number of the n reports by joint symbols; for a single block of large sets, by pairs of
        positions x ≤ z.
    targets : weights over the joint answers of the blocks.
    strata : the document's public questions, which void promises under counts of all people.
    """

    blocks: tuple[Block, ...]
    n: int
    tally: Tally
    targets: Targets
    strata: tuple[Question, ...] = ()

    @property
    def mechanism(self) -> Source:
        """Mechanism of the block; for several blocks their product, as they are independent."""
        if len(self.blocks) == 1:
            return self.blocks[0].mechanism
        tables: list[DenseMechanism] = []
        factors: list[DenseMechanism | SetMechanism] = []
        for mechanism in (block.mechanism for block in self.blocks):
            block_factors = (
                mechanism.factors if isinstance(mechanism, ProductMechanism) else (mechanism,)
            )
            factors += block_factors
            tables += [factor for factor in block_factors if isinstance(factor, DenseMechanism)]
        return (
            ProductMechanism(tuple(tables))
            if len(tables) == len(factors)
            else Joint(tuple(factors))
        )

    @property
    def design_prior(self) -> tuple[int, ...]:
        """Product of the blocks' priors, because no joint prior is published."""

        def times(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(a * b for a in left for b in right)

        return reduce(times, (block.design_prior for block in self.blocks))

    @property
    def counts(self) -> Counts:
        """Tally in the form that the estimator of this mechanism expects."""
        mechanism = self.mechanism
        if isinstance(mechanism, ProductMechanism | Joint):
            return dict(self.tally)
        if isinstance(mechanism, DenseMechanism):
            return [self.tally.get((y,), 0) for y in range(mechanism.reports)]
        # Small sets are counted by their bit mask, large ones by pairs of positions.
        if is_masked(mechanism):
            return SetCounts.of_symbols(
                mechanism.answers, {symbol: n for (symbol,), n in self.tally.items()}
            )
        # The matrix of pair counts is symmetric, and the store holds only x ≤ z.
        pairs = [[0] * mechanism.answers for _ in range(mechanism.answers)]
        for (x, z), n in self.tally.items():
            pairs[x][z] = pairs[z][x] = n
        return SetCounts(self.n, tuple(map(tuple, pairs)))

    @property
    def question_keys(self) -> tuple[tuple[str, ...], ...]:
        """Ids of question and choices for all questions of the blocks, in order."""
        return tuple(
            (question.id, *(choice.id for choice in question.choices))
            for block in self.blocks
            for question in block.questions
        )

    def evidence(self, targets: Targets) -> Evidence:
        """Return the evidence of the counts about targets over the joint answers."""
        return checked_evidence(self.mechanism, self.counts, targets, self.design_prior)
