# SPDX-License-Identifier: Apache-2.0
"""Item 2, Adult: every panel of Funnel Figure 6, and a larger pair of columns, both ways round."""

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
_PATIENCE = 10  # a case that misses its limit still gets a row with its measured time


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
    listed = enumeration.capped("lip", prior, float(epsilon)) if beside else None
    return Row(
        item=2,
        case=f"Adult {secret}({prior.secrets}) × {answer}({prior.answers}), lip ε={float(epsilon):g}",
        value=run.design.information,
        bound=run.design.bound,
        gap=run.design.gap,
        seconds=run.seconds,
        baseline=f"vertices of Δ (Funnel Thm 3): {listed.words}" if listed else "",
        baseline_value=listed.optimum.information if listed and listed.optimum else None,
        baseline_seconds=listed.seconds if listed else None,
        limit=f"gap ≤ 1e-6, ≤ {limit_s:g} s",
        holds=run.certified and run.seconds <= limit_s and _not_below(run, listed),
        capped=listed is not None and listed.capped,
    )


def _not_below(run: Measured, listed: Timed | None) -> bool:
    """True if enumeration finds no better optimum; it may find a worse one (erratum 9.17)."""
    return (
        listed is None
        or listed.optimum is None
        or listed.optimum.information <= run.design.information + GAP
    )
