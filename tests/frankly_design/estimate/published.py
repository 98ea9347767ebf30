# SPDX-License-Identifier: Apache-2.0
"""Published analyses of randomised responses: designs, counts, estimates and standard errors.

The module contains only facts and figures, each with its source; docs/published.md lists them. If a
source prints an estimate but no count, the count follows exactly from the estimate and n.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from frankly_protocol.mechanisms import DenseMechanism, UnaryMechanism

BITS: Final = 48
Table = tuple[tuple[Fraction, ...], ...]

VAN_DEN_HOUT: Final = (
    "van den Hout and van der Heijden 2007, as analysed in the vignette of rrLogit 1.0.1"
)
RRTCS: Final = "Cobo, Rueda and Arcos 2021, vignette of RRTCS 0.0.4"
RRREG: Final = "Heck 2022, vignette of RRreg 0.7.5"
MINARETS: Final = "Heck and Moshagen 2018, Journal of Statistical Software 85(2), section 4.1"
PLAGIARISM: Final = "Jann, Jerke and Krumpal 2012, counts of the data set in GLMMRR 0.6.0"


@dataclass(frozen=True)
class Published:
    """One published analysis.

    law : P(symbol | answer), one row per answer. counts : number of reports by symbol. estimates,
    errors : published shares by answer and their standard errors; None if not printed. population :
    size of the population, if the source corrects for it.
    """

    name: str
    source: str
    law: Table
    counts: tuple[int, ...]
    estimates: tuple[float | None, ...]
    errors: tuple[float | None, ...]
    population: int | None = None

    @property
    def mechanism(self) -> DenseMechanism:
        """Return the design as a table of whole numbers, with each probability rounded to 2^-48."""
        rows = []
        for row in self.law:
            weights = [round(chance * 2**BITS) for chance in row]
            weights[-1] += 2**BITS - sum(weights)
            rows.append(tuple(weights))
        return DenseMechanism(BITS, tuple(rows))


def warner(p: Fraction) -> Table:
    """Return the table of Warner's design: the true answer with probability p, otherwise the other answer."""
    return ((p, 1 - p), (1 - p, p))


def unrelated(p: Fraction, prevalence: Fraction) -> Table:
    """Return the table of the unrelated question, answered with probability 1 − p (no, yes)."""
    lie = (1 - p) * prevalence
    return ((1 - lie, lie), (1 - p - lie, p + lie))


def times(left: Table, right: Table) -> Table:
    """Return the table of two independent designs in row-major order."""
    return tuple(tuple(a * b for a in row for b in other) for row in left for other in right)


def _university(
    name: str, prevalence: Fraction, yes: int, estimate: float, variance: float
) -> Published:
    return Published(
        name, RRTCS, unrelated(Fraction(1, 2), prevalence), (710 - yes, yes), (None, estimate),
        (None, variance**0.5), population=10777,
    )  # fmt: skip


_CARDS: Final = warner(Fraction(4, 5))
ANALYSES: Final = (
    # Answers and symbols have the order yes, no.
    Published("refused a job (Kuk's cards)", VAN_DEN_HOUT, _CARDS, (120, 292),
              (0.1521036, 0.8478964), (0.0373519, 0.0373519)),
    Published("too few applications (Kuk's cards)", VAN_DEN_HOUT, _CARDS, (171, 241),
              (0.3584142, 0.6415858), (0.04045847, 0.04045847)),
    Published("both questions (Kuk's cards twice)", VAN_DEN_HOUT, times(_CARDS, _CARDS),
              (68, 52, 103, 189), (0.17718447, -0.02508091, 0.18122977, 0.66666667),
              (None, None, None, None)),
    _university("copied in an exam (unrelated question)", Fraction(1, 12), 328, 0.8406103, 0.001389716),
    _university("fought with a teacher", Fraction(1, 10), 180, 0.4070423, 0.001045196),
    _university("was bullied", Fraction(20, 30), 280, 0.1220657, 0.001337415),
    _university("bullied someone", Fraction(1, 10), 81, 0.128169, 0.0005597858),
    _university("drugs on the campus", Fraction(10, 30), 164, 0.1286385, 0.000991658),
    _university("sex on the premises", Fraction(1, 12), 53, 0.06596244, 0.000383954),
    # The source simulated 1,000 answers by Warner's design with p = 1/6 (no, yes).
    Published("simulated cocaine use (Warner)", RRREG, warner(Fraction(1, 6)), (367, 633),
              (None, 0.300500), (None, 0.022874)),
)  # fmt: skip
"""Analyses that agree in estimate and standard error to 3 digits."""

ROUNDED: Final = (
    # Answers have the order yes, no.
    Published("partial plagiarism (crosswise)", PLAGIARISM, warner(Fraction(3, 4)), (112, 198),
              (0.22, None), (None, None)),
    Published("severe plagiarism (crosswise)", PLAGIARISM, warner(Fraction(3, 4)), (80, 230),
              (0.015, None), (None, None)),
)  # fmt: skip
"""Analyses of which only rounded shares could be read: 22 percent, and "about 1 to 2 percent"."""


@dataclass(frozen=True)
class LieDetector:
    """The stochastic lie detector with two groups; people without the attribute say no with
    probability p.

    yes, n : number of "yes" reports and of all reports by group. The difference of the groups'
    shares of "yes" is (1 − π)(p₂ − p₁), so π follows from two unbiased shares.
    """

    source: str = MINARETS
    p: tuple[Fraction, Fraction] = (Fraction(1, 6), Fraction(5, 6))
    yes: tuple[int, int] = (373, 398)
    n: tuple[int, int] = (564, 692)
    estimate: float = 0.870695
    error: float = 0.041118


# One table has reports that only one answer sends, like designs for a skewed prior; the other does
# not.
SKEWED = DenseMechanism(4, ((8, 4, 4, 0), (0, 12, 4, 0), (0, 4, 8, 4)))
ORDINARY = DenseMechanism(4, ((9, 4, 2, 1), (2, 9, 4, 1), (1, 3, 4, 8)))


def tallies(n: int, symbols: int) -> Iterator[tuple[int, ...]]:
    """Yield all counts of n reports."""
    if symbols == 1:
        yield (n,)
        return
    for first in range(n + 1):
        for remaining in tallies(n - first, symbols - 1):
            yield (first, *remaining)


UNARY = UnaryMechanism(4, 3, 9, 4)
