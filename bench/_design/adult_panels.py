# SPDX-License-Identifier: Apache-2.0
"""Item 2, Adult: every panel of Funnel Figure 6, and a pair of columns that the paper did not try."""

from collections.abc import Iterator
from fractions import Fraction

from frankly_server.design.notions import promises

from _design import adult, enumeration
from _design.enumeration import Timed
from _design.measured import GAP, Measured, most_informative
from _design.row import Progress, Row

SECRETS = ("marital-status", "occupation")
ANSWERS = ("education", "relationship", "sex", "race")
QUICK_ANSWERS = ("relationship", "sex")
EPSILONS = tuple(Fraction(k, 4) for k in range(1, 9))
QUICK_EPSILONS = (Fraction(1, 2),)
LARGE = (("native-country", "occupation"), ("occupation", "native-country"))
LARGE_EPSILONS = (Fraction(1, 2), Fraction(1), Fraction(2))
LIMIT_S, LARGE_LIMIT_S = 2.0, 20.0
_PATIENCE = 10  # a case that misses its limit is still worth a line that tells by how much


def rows(quick: bool, progress: Progress) -> Iterator[Row]:
    """Yield a line per pair of columns and level. Raises adult.DataMissingError."""
    for secret in SECRETS:
        for answer in QUICK_ANSWERS if quick else ANSWERS:
            for epsilon in QUICK_EPSILONS if quick else EPSILONS:
                progress(f"Adult, {secret} × {answer} at ε = {float(epsilon):g}")
                yield _row(secret, answer, epsilon, LIMIT_S, beside=True)
    if quick:
        return
    for secret, answer in LARGE:
        for epsilon in LARGE_EPSILONS:
            progress(f"Adult, {secret} × {answer} at ε = {float(epsilon):g}")
            yield _row(secret, answer, epsilon, LARGE_LIMIT_S, beside=False)


def _row(secret: str, answer: str, epsilon: Fraction, limit_s: float, *, beside: bool) -> Row:
    prior = adult.prior(secret, answer)
    run = most_informative(prior, promises.promise("lip", prior, epsilon), _PATIENCE * limit_s)
    found = enumeration.capped("lip", prior, float(epsilon)) if beside else None
    return Row(
        item=2,
        case=f"Adult {secret}({prior.secrets}) × {answer}({prior.answers}), lip ε={float(epsilon):g}",
        value=run.design.information,
        bound=run.design.bound,
        gap=run.design.gap,
        seconds=run.seconds,
        baseline=f"vertices of Δ (Funnel Thm 3): {found.words}" if found else "",
        baseline_value=found.optimum.information if found and found.optimum else None,
        baseline_seconds=found.seconds if found else None,
        limit=f"gap ≤ 1e-6, ≤ {limit_s:g} s",
        holds=run.certified and run.seconds <= limit_s and _not_below(run, found),
        capped=found is not None and found.capped,
    )


def _not_below(run: Measured, found: Timed | None) -> bool:
    """Whether enumeration found nothing better; it may find less, where floats lose vertices (erratum 9.17)."""
    return (
        found is None
        or found.optimum is None
        or found.optimum.information <= run.design.information + GAP
    )
