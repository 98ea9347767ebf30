# SPDX-License-Identifier: Apache-2.0
"""One document's part in a table: its blocks and counts, and the targets over its joint answers."""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, reduce

from frankly_design.kinds.decoder import Targets
from frankly_design.kinds.evidence import Evidence
from frankly_design.kinds.joint import Source
from frankly_design.kinds.kind import Estimable
from frankly_design.kinds.kind import Tally as Counts
from frankly_design.kinds.registry import together
from frankly_protocol.blocks import Block, Question
from frankly_protocol.mechanisms import Mechanism

from frankly_server.analysis.counted_document import Tally


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
    def kind(self) -> Estimable:
        """How the blocks are counted and decoded, together.

        Raises InvalidInput(unsupported) for parts of a form together with other blocks.
        """
        return together(self.mechanisms)

    @property
    def mechanism(self) -> Source:
        """Mechanism of the block, or the joint mechanism of several blocks."""
        source: Source = self.kind.mechanism
        return source

    @cached_property
    def design_prior(self) -> tuple[int, ...]:
        """Product of the blocks' priors; documents contain no joint prior."""

        def times(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(a * b for a in left for b in right)

        return reduce(times, (block.design_prior for block in self.blocks))

    @cached_property
    def counts(self) -> Counts:
        """Tally in the form that the estimator expects."""
        return self.kind.counts(self.n, self.tally)

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
        return self.kind.evidence(self.kind.checked(self.counts), targets, self.design_prior)
