# SPDX-License-Identifier: Apache-2.0
"""Counts of one part as arrays, the input of weights and models; one `Version` per signed document, or per arm of one.

A part is one question, or several that were drawn or counted together. Its *states* are the answers,
or the combinations of answers with the last question fastest. All shapes use H strata, S states and
Y symbols (`table`) or S bits (`sets`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frankly_analyst.errors import InvalidRequest

FloatArray = NDArray[np.float64]

SIMPLE, STRATA = "simple", "strata"
SAMPLINGS = (SIMPLE, STRATA)
"""Sampling designs: a simple random sample (random strata), or fixed sizes of the strata."""


@dataclass(frozen=True)
class Version:
    """Counts of one part under one document, or in one of its arms.

    answers : choices of each question; the states are their combinations, the last question fastest.
    law : shape (S, Y), probability of a symbol (`table`) or of a set bit (`sets`) given the state.
    decoder : shape (S, Y), decoded score of a symbol or bit; its mean over reports estimates shares.
    prior : shape (S,), shares that the design assumed.
    strata : H rows, one column per public covariate.
    counts : shape (H, Y), reports with each symbol, or with each bit.
    n : shape (H,), reports.
    moments : `sets` only: shape (S, Y, Y), probability that two bits are set given the state.
    pairs : `sets` only: shape (H, Y, Y), reports with two bits; None if they were not released.
    offset : shape (S,), score that every report gets in addition to the scores of its bits.
    features : True if the "bits" are decoded scores of a question that was randomised together with
        others; then `law` is the identity and `moments` are those at the design prior.
    arm : the document's arm, None without arms.
    """

    document: str
    answers: tuple[tuple[str, ...], ...]
    law: FloatArray
    decoder: FloatArray
    prior: FloatArray
    strata: pd.DataFrame
    counts: FloatArray
    n: FloatArray
    moments: FloatArray | None = None
    pairs: FloatArray | None = None
    offset: FloatArray | None = None
    features: bool = False
    arm: str | None = None

    def __post_init__(self) -> None:
        states, symbols = self.law.shape
        shapes = {
            "decoder": (self.decoder.shape, (states, symbols)),
            "prior": (self.prior.shape, (states,)),
            "counts": (self.counts.shape, (len(self.strata), symbols)),
            "n": (self.n.shape, (len(self.strata),)),
        }
        for name, (shape, expected) in shapes.items():
            if shape != expected:
                raise InvalidRequest(
                    f"has the shape {shape} instead of {expected}",
                    code="targets_invalid",
                    field=name,
                )
        if (self.n <= 0).any() or (not self.features and (self.counts < 0).any()):
            raise InvalidRequest(
                "counts must not be negative, and every stratum needs reports",
                code="targets_invalid",
                field="counts",
            )

    @property
    def name(self) -> str:
        """The document and, if there is one, its arm, as in `CountedPart.key`."""
        return self.document if self.arm is None else f"{self.document} {self.arm}"

    @property
    def sets(self) -> bool:
        """True if reports are sets of bits, False if they are symbols of a table."""
        return self.moments is not None

    @property
    def states(self) -> list[tuple[str, ...]]:
        """The combinations of answers in the order of the law's rows."""
        return list(product(*self.answers))

    def decoded(self, targets: FloatArray) -> FloatArray:
        """Return per stratum the mean decoded score of each target, shape (H, T); unbiased for its share."""
        means = (self.counts / self.n[:, None]) @ (targets @ self.decoder).T
        return means if self.offset is None else means + targets @ self.offset

    def score_moments(self, targets: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return per stratum the mean and covariance of the decoded scores of `targets`, shape (T, S).

        The covariance has divisor n. For sets without released pairs, it is computed from the
        decoded shares, because the state determines the joint law of two bits.
        """
        V = targets @ self.decoder
        share = self.counts / self.n[:, None]
        if self.moments is None:
            centred = V - (share @ V.T)[:, :, None]
            spread = (centred * share[:, None, :]) @ centred.transpose(0, 2, 1)
        else:
            spread = V @ self.bit_covariance() @ V.T
        return self.decoded(targets), np.asarray(spread)

    def bit_covariance(self) -> FloatArray:
        """Return the covariance (divisor n) of the bits of `sets`, shape (H, Y, Y)."""
        share = self.counts / self.n[:, None]
        if self.pairs is not None:
            second = self.pairs / self.n[:, None, None]
        else:
            decoded = self.decoded(np.eye(len(self.law)))
            second = np.tensordot(decoded, np.asarray(self.moments, dtype=float), axes=1)
        return np.asarray(second - share[:, :, None] * share[:, None, :])

    def score_law(self, targets: FloatArray) -> FloatArray:
        """Return E[d² | state] of the decoded score of each target, shape (T, S)."""
        V = targets @ self.decoder
        constant = np.zeros(len(targets)) if self.offset is None else targets @ self.offset
        if self.moments is None:
            return np.asarray(V**2 @ self.law.T)
        squares = np.einsum("ti,sij,tj->ts", V, self.moments, V, optimize=True)
        cross = 2 * constant[:, None] * (V @ self.law.T)
        return np.asarray(squares + cross + constant[:, None] ** 2)

    def prior_variance(self, targets: FloatArray) -> float:
        """Return the total variance of one report's decoded scores at the design prior."""
        second = self.score_law(targets) @ self.prior
        return float(np.sum(second - (targets @ self.prior) ** 2))


@dataclass(frozen=True)
class Sample:
    """All versions of one part: the same questions and answers, each with its own mechanism.

    withheld : number of strata and of reports that the release rules withheld; no estimate contains
    them. without_stratum : number of reports that were released without public answers; no estimate
    contains them.
    """

    questions: tuple[str, ...]
    versions: tuple[Version, ...]
    withheld: tuple[int, int] = (0, 0)
    without_stratum: int = 0

    def __post_init__(self) -> None:
        if not self.versions:
            raise InvalidRequest(
                "no released counts of this part", code="targets_invalid", field="counts"
            )
        first = self.versions[0]
        for version in self.versions:
            if version.answers != first.answers:
                raise InvalidRequest(
                    f"documents {first.name} and {version.name} have different choices: "
                    "use one of them",
                    code="unsupported",
                    field="documents",
                )
            if list(version.strata.columns) != list(first.strata.columns):
                raise InvalidRequest(
                    "the documents have different public covariates: use those that both have",
                    code="unsupported",
                    field="by",
                )

    @property
    def answers(self) -> tuple[tuple[str, ...], ...]:
        """Choices of each question."""
        return self.versions[0].answers

    @property
    def covariates(self) -> list[str]:
        """Names of the public covariates."""
        return list(self.versions[0].strata.columns)

    @property
    def n(self) -> int:
        """Number of reports."""
        return round(sum(float(version.n.sum()) for version in self.versions))

    def strata(self) -> pd.DataFrame:
        """Return the covariates of the strata of all versions, stacked."""
        if len(self.versions) == 1:
            return self.versions[0].strata
        return pd.concat([version.strata for version in self.versions], ignore_index=True)

    def notes(self) -> list[str]:
        """Return a sentence for each kind of report that these counts do not include."""
        strata, reports = self.withheld
        notes = []
        if strata:
            notes.append(
                f"{strata} strata with {reports} reports were withheld: no estimate contains them"
            )
        if self.without_stratum:
            notes.append(f"{self.without_stratum} reports without public answers are left out")
        if notes:
            notes.append("models.left_out compares these reports with the others")
        return notes


def table(
    law: FloatArray,
    strata: Sequence[Mapping[str, str]] | pd.DataFrame,
    counts: FloatArray,
    answers: Sequence[str] | Sequence[Sequence[str]],
    prior: FloatArray | None = None,
    document: str = "",
) -> Version:
    """Return a version of a table mechanism from its law, with the decoder of the design prior.

    answers : choices of the question, or of each question of a joint table.
    prior : shares that the design assumed; None for equal ones.
    """
    Q = np.asarray(law, dtype=float)
    p = np.full(len(Q), 1 / len(Q)) if prior is None else np.asarray(prior, dtype=float)
    scaled = Q / (p @ Q)
    counted = np.asarray(counts, dtype=float)
    named: tuple[tuple[str, ...], ...] = (
        (tuple(str(answer) for answer in answers),)
        if isinstance(answers[0], str)
        else tuple(tuple(choices) for choices in answers)
    )
    frame = strata if isinstance(strata, pd.DataFrame) else pd.DataFrame(list(strata))
    return Version(
        document,
        named,
        Q,
        np.linalg.pinv(scaled @ Q.T) @ scaled,
        p,
        frame,
        counted,
        counted.sum(axis=1),
    )
