# SPDX-License-Identifier: Apache-2.0
"""Simulated surveys by strata: mechanisms, true shares, and counts as an analyst receives them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import exp

import numpy as np
from frankly_analyst.models.sample import SIMPLE, FloatArray, Sample, Version, table


def grr(answers: int, epsilon: float) -> FloatArray:
    """Return generalised randomised response."""
    e = exp(epsilon)
    return (np.eye(answers) * (e - 1) + 1) / (e + answers - 1)


@dataclass(frozen=True)
class Survey:
    """Strata with their probabilities and true shares of the states, and one or two mechanisms.

    shares : shape (H, S). chances : shape (H,), probability that a respondent is in the stratum. laws :
    law of each version. unary : True if the law gives bits instead of symbols; then symbols are masks.
    split : probability of the first version.
    """

    rows: Sequence[dict[str, str]]
    shares: FloatArray
    chances: FloatArray
    laws: tuple[FloatArray, ...]
    answers: tuple[tuple[str, ...], ...]
    questions: tuple[str, ...] = ("q",)
    unary: bool = False
    split: float = 0.5

    def template(self) -> Sample:
        """Return a sample with one report per symbol, whose counts `drawn` replaces."""
        versions = []
        for i, law in enumerate(self.laws):
            ones = np.ones((len(self.rows), law.shape[1]))
            answers = self.answers if len(self.answers) > 1 else self.answers[0]
            version = table(law, self.rows, ones, answers, document=str(i))
            versions.append(self._sets(version) if self.unary else version)
        return Sample(self.questions, tuple(versions))

    def drawn(self, sample: Sample, n: int, sampling: str, rng: np.random.Generator) -> Sample:
        """Return counts of n respondents, in the template `sample`."""
        random = sampling == SIMPLE
        sizes = np.asarray(
            rng.multinomial(n, self.chances) if random else np.rint(n * self.chances), dtype=float
        )
        parts = [sizes] if len(self.laws) == 1 else _halves(sizes, self.split, rng)
        return replace(
            sample,
            versions=tuple(
                self._counts(version, law, part, rng)
                for version, law, part in zip(sample.versions, self.laws, parts, strict=True)
            ),
        )

    def _counts(
        self, version: Version, law: FloatArray, sizes: FloatArray, rng: np.random.Generator
    ) -> Version:
        n = sizes.astype(float)
        if not self.unary:
            counts = rng.multinomial(sizes.astype(int), self.shares @ law)
            return replace(version, counts=counts.astype(float), n=n)
        masks, chance = _masks(law)
        drawn = rng.multinomial(sizes.astype(int), self.shares @ chance)
        pairs = np.einsum("hm,mi,mj->hij", drawn, masks, masks)
        return replace(version, counts=np.einsum("hii->hi", pairs).copy(), n=n, pairs=pairs)

    def _sets(self, version: Version) -> Version:
        bits = version.law
        masks, chance = _masks(bits)
        inside, outside, a = float(bits[0, 0]), float(bits[0, 1]), len(bits)
        return replace(
            version,
            decoder=np.eye(a) / (inside - outside),
            offset=np.full(a, -outside / (inside - outside)),
            moments=np.einsum("sm,mi,mj->sij", chance, masks, masks),
            pairs=np.zeros((len(version.strata), a, a)),
        )


def _masks(bits: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return all sets as rows of bits, and their probability given each answer."""
    masks = np.array(list(product((0.0, 1.0), repeat=len(bits))))
    chance = np.prod(np.where(masks[None] == 1, bits[:, None], 1 - bits[:, None]), axis=2)
    return masks, chance


def _halves(sizes: FloatArray, split: float, rng: np.random.Generator) -> list[FloatArray]:
    first = rng.binomial(sizes.astype(int), split).astype(float)
    return [first, sizes - first]


def oue(answers: int, epsilon: float) -> FloatArray:
    """Return the bits' probabilities of optimised unary encoding."""
    off = 1 / (exp(epsilon) + 1)
    return np.full((answers, answers), off) + np.eye(answers) * (0.5 - off)


def cross(**values: str) -> list[dict[str, str]]:
    """Return the combinations of covariates' values; values are separated by spaces."""
    return [
        dict(zip(values, row, strict=True))
        for row in product(*(v.split() for v in values.values()))
    ]
