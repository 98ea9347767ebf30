# SPDX-License-Identifier: Apache-2.0
"""Item 9, requests of up to 10 answers: none is refused, and nearly all are certified within seconds."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import fmean

import numpy as np
from frankly_protocol.errors import FranklyError

from _design.designs import designed
from _design.draws import KINDS, Draw, draw
from _design.row import Progress, Row

REQUESTS, QUICK_REQUESTS = 600, 48
MOST_ANSWERS, LIMIT_S = 10, 5.0
LEAST_SHARE = 0.95
_SEED = 9

Targets = tuple[tuple[Fraction, ...], ...]


@dataclass(frozen=True)
class _Tried:
    """One request: the reason of a refusal ("" if none), or certificate, gap and time."""

    drawn: Draw
    refused: str
    certified: bool
    gap: float
    seconds: float


def rows(quick: bool, progress: Progress) -> Iterator[Row]:
    """Yield a line for every refused request, one per kind, and one for all."""
    tried = []
    for number in range(QUICK_REQUESTS if quick else REQUESTS):
        tried.append(_tried(number))
        if (number + 1) % 50 == 0:
            progress(f"{number + 1} requests, {sum(t.certified for t in tried)} certified")
    for case in tried:
        if case.refused:
            yield _row(f"{case.refused}: {case.drawn.description}", [case], holds=False)
    for kind in KINDS:
        yield _row(kind, [case for case in tried if case.drawn.kind == kind], holds=None)
    share = sum(case.certified for case in tried) / len(tried)
    yield _row("all kinds", tried, holds=share >= LEAST_SHARE)


def _tried(number: int) -> _Tried:
    drawn = draw(number, MOST_ANSWERS)
    request = drawn.request
    if request.objective == "variance":
        request = replace(request, targets=_targets(number, request.prior.answers))
    try:
        run = designed(request, LIMIT_S)
    except FranklyError as error:
        return _Tried(drawn, f"refused: {error}", certified=False, gap=np.nan, seconds=0.0)
    gap = np.nan if run.design.gap is None else run.design.gap / max(run.design.value, 1e-6)
    return _Tried(drawn, "", run.design.certified, gap, run.seconds)


def _targets(number: int, answers: int) -> Targets | None:
    """Return at random: all shares (None), one share, a sum of two, half of them, or a contrast."""
    unit = np.eye(answers, dtype=int)
    choices = (
        None,
        unit[:1],
        unit[:1] + unit[1:2],
        unit[: max(1, answers // 2)],
        unit[:1] - unit[1:2],
    )
    chosen = choices[int(np.random.default_rng([_SEED, number]).integers(len(choices)))]
    if chosen is None:
        return None
    return tuple(tuple(Fraction(int(v)) for v in row) for row in chosen)


def _row(case: str, tried: list[_Tried], *, holds: bool | None) -> Row:
    gaps = [one.gap for one in tried if np.isfinite(one.gap)]
    return Row(
        item=9,
        case=f"{case}: share certified of {len(tried)}; largest gap / value, mean s",
        value=sum(one.certified for one in tried) / max(1, len(tried)),
        bound=None,
        gap=max(gaps, default=None),
        seconds=fmean(one.seconds for one in tried) if tried else 0.0,
        baseline="",
        baseline_value=None,
        baseline_seconds=None,
        limit=f"none refused, ≥ {LEAST_SHARE:.0%} in {LIMIT_S:g} s",
        holds=holds,
    )
