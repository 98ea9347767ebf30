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

    tally : joint symbols -> number of the n reports; for one block of large sets, pairs of
        positions x ≤ z.
    targets : weights over the joint answers of the blocks.
    strata : the document's public questions. Beside them, counts of everybody promise nothing.
    """

    blocks: tuple[Block, ...]
    n: int
    tally: Tally
    targets: Targets
    strata: tuple[Question, ...] = ()

    @property
    def mechanism(self) -> Source:
        """Mechanism of the block, or the product of several: their reports are drawn independently."""
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
        """Tally in the form that the estimator of this mechanism takes."""
        mechanism = self.mechanism
        if isinstance(mechanism, ProductMechanism | Joint):
            return dict(self.tally)
        if isinstance(mechanism, DenseMechanism):
            return [self.tally.get((y,), 0) for y in range(mechanism.reports)]
        # Small sets are stored by mask, one number a report; large ones as pairs of elements.
        if is_masked(mechanism):
            return SetCounts.of_symbols(
                mechanism.answers, {symbol: n for (symbol,), n in self.tally.items()}
            )
        # A matrix of pair counts is symmetric; the store keeps x ≤ z only.
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
