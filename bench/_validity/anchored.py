# SPDX-License-Identifier: Apache-2.0
"""Surveys whose people also answer a question with known shares, corrected by it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np
from frankly_design.estimate.anchors import Anchored, AnchorScore, Counted, Stack, fit_test
from frankly_design.estimate.estimator import checked_evidence
from frankly_design.estimate.validity import corrected
from frankly_design.kinds.decoder import shares
from frankly_design.kinds.parts import chance_shown, part_table
from frankly_design.numeric.arrays import FloatArray
from frankly_design.numeric.lazy import special
from frankly_protocol.mechanisms import AgreementMechanism
from frankly_protocol.mechanisms.agreement import Component, Cover, Pool
from frankly_protocol.questions import Anchor
from frankly_server.analysis.anchors import Overlap
from frankly_server.analysis.random_answers import Scored

from _validity.cells import Counts, Table, randomised_response
from _validity.estimates import Many, Z, adjusted, difference_of, means_of, sides_of
from _validity.law import LEVEL
from _validity.surveys import RANDOM, SHARES, SIZES, truth

CONSTANT, TWELFTH, QUARTER = Anchor((0, 1), "-"), Anchor((11, 1), "-"), Anchor((3, 1), "-")
NAMES = {CONSTANT: "constant", TWELFTH: "1 of 12", QUARTER: "1 of 4"}


@dataclass(frozen=True)
class Survey:
    """One kind of survey.

    table, anchor : mechanisms of the question and of the anchor. known : of the anchor. truth : shares of
    the question's answers among those who read. random, at_anchor : shares who answer the question and
    the anchor at random; the smaller group is part of the larger one. actual : true law of random
    answers to the question. pairs : law of both symbols, shape (joint answers, symbols, symbols of the
    anchor), if a form draws them together; None for blocks. both : share of reports with both.
    """

    table: Table
    anchor: Table
    known: Anchor
    n: int
    truth: tuple[float, ...]
    random: float
    at_anchor: float | None = None
    actual: tuple[float, ...] | None = None
    pairs: FloatArray | None = field(default=None, compare=False)
    both: float = 1.0
    survey: str = ""
    below: None = None

    @property
    def name(self) -> str:
        """What the survey is called."""
        return f"{self.survey}, {100 * self.random:g} % at random"

    @cached_property
    def weights(self) -> FloatArray:
        """The first answer's share, over 1."""
        size = len(self.truth)
        return np.array([[1.0] + [0.0] * (size - 1), [1.0] * size])

    @cached_property
    def assumed(self) -> FloatArray:
        """The assumed law of random answers."""
        return np.full(len(self.truth), 1 / len(self.truth))

    @property
    def theta(self) -> float:
        """The true share."""
        return self.truth[0]

    @cached_property
    def score(self) -> AnchorScore:
        """The values of the anchor's symbols."""
        known = self.known.shares
        even = [Fraction(1, len(known))] * len(known)
        found = AnchorScore.of(self.anchor.mechanism, known, even)
        if found is None:
            raise ValueError(f"{self.name}: the anchor tells nothing")
        return found

    @property
    def relative(self) -> float:
        """The relative standard error of κ̂."""
        kept = 1 - (self.random if self.at_anchor is None else self.at_anchor)
        return float(np.sqrt(self.score.variance(kept) / self.n / self.anchor.shown) / kept)

    @property
    def factor(self) -> float:
        """The standard error of the corrected share over that of the uncorrected one, by formula."""
        kept, off = 1 - self.random, self.theta - 1 / len(self.truth)
        scores = self.weights[0] @ self.table.decoder
        seen = (kept * np.array(self.truth) + self.random * self.assumed) @ self.table.law
        usual = float(seen @ scores**2 - (seen @ scores) ** 2) / self.table.shown
        common = 0.0 if self.pairs is not None else 2 * kept * self.random
        extra = off**2 * (self.score.variance(kept) / self.anchor.shown - common)
        return float(np.sqrt((usual + extra) / usual) / kept)

    def draw(self, surveys: int, rng: np.random.Generator) -> "Drawn":
        """Return the counts of some surveys."""
        at_anchor = self.random if self.at_anchor is None else self.at_anchor
        guess = np.array(self.actual or self.assumed)
        read, known = np.array(self.truth), np.array([float(share) for share in self.known.shares])
        even = np.full(len(known), 1 / len(known))
        together = min(self.random, at_anchor)
        answers = (
            (1 - max(self.random, at_anchor)) * np.outer(read, known)
            + (self.random - together) * np.outer(guess, known)
            + (at_anchor - together) * np.outer(read, even)
            + together * np.outer(guess, even)
        )
        pairs = self.pairs
        if pairs is None:
            pairs = np.einsum("xy,az->xayz", self.table.law, self.anchor.law)
            pairs = pairs.reshape(answers.size, *pairs.shape[2:])
        shown, anchored = self.table.shown, self.anchor.shown
        cells = [
            self.both * np.tensordot(answers.ravel(), pairs, 1),
            (shown - self.both) * (answers.sum(axis=1) @ self.table.law),
            (anchored - self.both) * (answers.sum(axis=0) @ self.anchor.law),
            np.array([1 - shown - anchored + self.both]),
        ]
        chances = np.clip(np.concatenate([cell.ravel() for cell in cells]), 0, None)
        counts = rng.multinomial(self.n, chances / chances.sum(), size=surveys)
        first, second, third, _ = np.split(counts, np.cumsum([cell.size for cell in cells])[:-1], 1)
        both = first.reshape(surveys, *pairs.shape[1:])
        return Drawn(both, both.sum(axis=2) + second, both.sum(axis=1) + third)


@dataclass(frozen=True)
class Drawn:
    """Counts of reports: with both symbols, shape (surveys, symbols, symbols of the anchor); and all."""

    both: Counts
    of_question: Counts
    of_anchor: Counts


def share_of(survey: Survey, drawn: Drawn) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return λ̂, its variance, and its covariance with the two means, of every survey."""
    values, n = survey.score.values, drawn.of_anchor.sum(axis=1)
    kept = drawn.of_anchor @ values / n
    variance = (drawn.of_anchor @ values**2 / n - kept**2) / (n - 1)
    return 1 - kept, variance, _beside(survey, drawn, 1 - kept)


def _beside(survey: Survey, drawn: Drawn, random: FloatArray) -> FloatArray:
    scores = survey.weights @ survey.table.decoder
    n, m = drawn.of_question.sum(axis=1), drawn.of_anchor.sum(axis=1)
    if survey.pairs is None:
        means = drawn.of_question @ scores.T / n[:, None]
        beside = -random[:, None] * (means - survey.weights @ survey.assumed) / survey.n
        return np.asarray(beside)
    both = np.maximum(drawn.both.sum(axis=(1, 2)), 1)
    apart = np.einsum("syz,iy,z->si", drawn.both, scores, survey.score.values, optimize=True)
    of_question = drawn.both.sum(axis=2) @ scores.T
    of_anchor = drawn.both.sum(axis=1) @ survey.score.values
    centred = apart - of_question * (of_anchor / both)[:, None]
    return np.asarray(-centred / (n * m)[:, None])


def by_anchor(survey: Survey, drawn: Drawn) -> Many:
    """Return the corrected estimates."""
    means, covariance = means_of(survey, drawn.of_question)
    sides = sides_of(survey, means, covariance, drawn.of_question.sum(axis=1))
    share = share_of(survey, drawn)
    return adjusted(survey.weights @ survey.assumed, means, covariance, sides, share)


def anchor_differences(survey: Survey, drawn: Drawn, surveys: int) -> Iterator[float]:
    """Yield the largest difference from the server's own estimates, relative, for some surveys."""
    many, (_, _, beside) = by_anchor(survey, drawn), share_of(survey, drawn)
    for i in range(surveys):
        counted = Counted(survey.score, drawn.of_anchor[i].astype(float))
        item = Anchored(survey.n, (Stack(survey.n, (counted,), (1.0,)),))
        counts = [int(n) for n in drawn.of_question[i]]
        targets = shares(len(survey.truth))
        evidence = checked_evidence(survey.table.mechanism, counts, targets, None)
        overlap = None
        if survey.pairs is not None:
            every = np.append(-beside[i, :1], np.zeros(len(targets) - 1))
            overlap = Overlap(survey.n, 1.0, every)
        scored = Scored.of(evidence, len(targets), 0, survey.assumed, item, 0.95, overlap)
        observed = scored.observed([0], 1.0)
        server = None if observed is None else corrected([observed], Z)
        yield difference_of(many, i, server)


def in_blocks() -> Iterator[Survey]:
    """Yield surveys with the question and the anchor in blocks of one level."""
    for known, share, choices, (epsilon, n), random in product(
        (CONSTANT, TWELFTH), SHARES, (2, 3, 6), SIZES, RANDOM
    ):
        yield Survey(
            randomised_response(choices, epsilon),
            randomised_response(2, epsilon),
            known,
            n,
            truth(share, choices),
            random,
            survey=f"{NAMES[known]}, {100 * share:g} %, {choices} choices, ε = {epsilon:g}, n = {n:,}",
        )


def in_forms() -> Iterator[Survey]:
    """Yield surveys with the question and the anchor among yes/no questions of a form.

    Of 4 questions one or two are drawn. About 275 reports show a question, or four times as many.
    """
    for pick, shown, share, random in product((1, 2), (275, 1100), (0.03, 0.1, 0.4), RANDOM):
        form = AgreementMechanism(
            5,
            15,
            2,
            (2,) * 4,
            tuple((i,) for i in range(4)),
            (Component(32, pick, (Pool((0, 1, 2, 3), pick, Cover(2, 1)),)),),
        )
        first = part_table(form, (0,))
        part = float(chance_shown(form, (0,)))
        table = Table("", first, part)
        both = float(chance_shown(form, (0, 1))) if pick > 1 else 0.0
        law = np.zeros((4, first.reports, first.reports))
        if both:
            joint = part_table(form, (0, 1))
            rows = np.array(joint.weights, dtype=float) / float(joint.denominator)
            law = rows.reshape(4, first.reports, first.reports)
        name = (
            f"form of 4, {pick} drawn, constant, {100 * share:g} %, {shown} reports of a question"
        )
        yield Survey(
            table,
            table,
            CONSTANT,
            round(shown / part),
            truth(share, 2),
            random,
            pairs=law,
            both=both,
            survey=name,
        )


def costs() -> Iterator[Survey]:
    """Yield the surveys of the table of costs in docs/maths/validity.md."""
    for known, (share, epsilon), random in product(
        (CONSTANT, TWELFTH, QUARTER),
        ((0.03, 2.0), (0.2, 2.0), (0.03, 0.5), (0.03, 4.0)),
        (0.0, 0.1),
    ):
        table, n = randomised_response(2, epsilon), {0.5: 40_000, 2.0: 8_000, 4.0: 8_000}[epsilon]
        name = f"{NAMES[known]}, {100 * share:g} %, ε = {epsilon:g}, n = {n:,}"
        yield Survey(table, table, known, n, truth(share, 2), random, survey=name)


def wrong_anchors() -> Iterator[Survey]:
    """Yield surveys of a rare answer in which an assumption does not hold."""
    table, shares_of = randomised_response(2, 2.0), truth(0.03, 2)
    yield Survey(
        table,
        table,
        CONSTANT,
        2000,
        shares_of,
        0.1,
        actual=(0.2, 0.8),
        survey="20 % of random answers are yes",
    )
    for at_anchor in (0.05, 0.15):
        name = f"{100 * at_anchor:g} % answer the anchor at random"
        yield Survey(table, table, CONSTANT, 2000, shares_of, 0.1, at_anchor, survey=name)


def sizes(surveys: int, rng: np.random.Generator) -> Iterator[tuple[str, float]]:
    """Yield (case, share rejected at 5 %) of the test whether an anchor fits its shares and the law."""
    for (choices, place), epsilon, n, random in product(
        ((3, 0), (5, 2)), (1.0, 4.0), (30, 100, 1000), (0.0, 0.1)
    ):
        table, even = randomised_response(choices, epsilon), np.full(choices, 1 / choices)
        known = tuple(Fraction(int(x == place)) for x in range(choices))
        score = AnchorScore.of(table.mechanism, known, [Fraction(1, choices)] * choices)
        if score is None:
            raise ValueError("the anchor tells nothing")
        read = np.eye(choices)[place]
        counts = rng.multinomial(n, ((1 - random) * read + random * even) @ table.law, surveys)
        kept = np.clip(counts @ score.values / n, 0, 1)
        found = [
            fit_test(table.decoder @ one / n - even, read - even, _covariance(table, share) / n)
            for one, share in zip(
                counts, np.outer(kept, read) + np.outer(1 - kept, even), strict=True
            )
        ]
        p = [1.0 if one is None else float(special.chdtrc(one[1], one[0])) for one in found]
        name = f"{choices} choices, ε = {epsilon:g}, {n:,} reports, {100 * random:g} % at random"
        yield name, float(np.mean(np.array(p) < LEVEL))


def _covariance(table: Table, shares_of_choices: FloatArray) -> FloatArray:
    seen = shares_of_choices @ table.law
    spread = (table.decoder * seen) @ table.decoder.T - np.outer(
        shares_of_choices, shares_of_choices
    )
    return np.asarray(spread)
