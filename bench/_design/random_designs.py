# SPDX-License-Identifier: Apache-2.0
"""Item 1, random designs over all notions: verified again, bounds checked with rivals."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from statistics import fmean, median

from frankly_design.engine import DesignResult
from frankly_protocol.audit import require_private
from frankly_protocol.errors import DocumentRejected, FranklyError

from _design import rivals
from _design.designs import designed, table
from _design.draws import KINDS, Draw, draw
from _design.row import Progress, Row

DESIGNS, QUICK_DESIGNS, QUICK_ANSWERS, ANSWERS = 1000, 24, 8, 16
LIMIT_S, QUICK_LIMIT_S = 4.0, 3.0
MOST_ETA = Fraction(1, 10**6)
_ROUNDING = 1e-8
_SAME = 1e-6
_LEVEL_WITH = 1e-3


@dataclass(frozen=True)
class _Tried:
    """One design: its faults, and the relative value of a rival (1: equal; None: no rival)."""

    drawn: Draw
    faults: tuple[str, ...]
    certified: bool
    gap: float
    seconds: float
    rival: float | None


def rows(quick: bool, progress: Progress) -> Iterator[Row]:
    """Yield a line for every design that fails, then one per notion."""
    tried: list[_Tried] = []
    for number in range(QUICK_DESIGNS if quick else DESIGNS):
        drawn = draw(number, QUICK_ANSWERS if quick else ANSWERS)
        case = _tried(drawn, number, QUICK_LIMIT_S if quick else LIMIT_S)
        tried.append(case)
        if case.faults:
            yield _failed(case)
        if (number + 1) % len(KINDS) == 0:
            progress(
                f"{number + 1} designs, {sum(bool(t.faults) for t in tried)} fail, {case.seconds:.1f} s for the last"
            )
    for kind in KINDS:
        yield _summary(kind, [case for case in tried if case.drawn.kind == kind])


def _tried(drawn: Draw, number: int, limit_s: float) -> _Tried:
    try:
        run = designed(drawn.request, limit_s)
    except FranklyError as error:
        return _Tried(
            drawn, (f"refused: {error}",), certified=False, gap=math.nan, seconds=0.0, rival=None
        )
    design, p = run.design, drawn.request.prior.probabilities()
    faults = [*_unsound(drawn, design)]
    try:
        best = rivals.Search(drawn.request.claims, p, (9, number)).best(design.objective)
    except rivals.NoRivalError:
        best = None
    if best is not None and not _within(best, design):
        faults.append(f"a rival has {best!r}, the bound is {design.bound!r}")
    gap = (
        (design.gap or 0.0) / max(design.value, _SAME) if math.isfinite(design.value) else math.inf
    )
    return _Tried(drawn, tuple(faults), design.certified, gap, run.seconds, _compared(best, design))


def _unsound(drawn: Draw, design: DesignResult) -> Iterator[str]:
    try:
        require_private(design.mechanism, *drawn.request.claims)
    except DocumentRejected as error:
        yield f"the verifier refuses it: {error}"
    if design.eta > MOST_ETA:
        yield f"η is {float(design.eta):.3g}"
    if design.bound is None:
        yield "no bound"
    value = rivals.VALUES[design.objective](
        table(design.table), drawn.request.prior.probabilities()
    )
    # rounding: if the shares are barely estimable, the float value may already be infinite
    if math.isfinite(value) and not math.isclose(
        value, design.value, rel_tol=_SAME, abs_tol=_SAME**2
    ):
        yield f"its value is {value!r}, not {design.value!r}"


def _within(value: float, design: DesignResult) -> bool:
    """Return True if a rival's value is no better than the bound."""
    bound = math.nan if design.bound is None else design.bound
    if design.objective == "information":
        return value <= bound + _ROUNDING
    return value >= bound - _ROUNDING * max(1.0, abs(bound))


def _compared(best: float | None, design: DesignResult) -> float | None:
    """Return the rival's value relative to the design's: 1 is equally good, less is worse."""
    if best is None or not math.isfinite(best) or not design.value > _SAME:
        return None
    return best / design.value if design.objective == "information" else design.value / best


def _failed(tried: _Tried) -> Row:
    return Row(
        item=1,
        case=f"{'; '.join(tried.faults)}: {tried.drawn.description}",
        value=None,
        bound=None,
        gap=None,
        seconds=tried.seconds,
        baseline="",
        baseline_value=None,
        baseline_seconds=None,
        limit="sound",
        holds=False,
    )


def _summary(kind: str, tried: list[_Tried]) -> Row:
    certified, sound = sum(case.certified for case in tried), sum(not case.faults for case in tried)
    gaps = [case.gap for case in tried if math.isfinite(case.gap)]
    compared = [case.rival for case in tried if case.rival is not None]
    level = sum(share >= 1 - _LEVEL_WITH for share in compared)
    return Row(
        item=1,
        case=f"{kind}: share of {len(tried)} that are sound, {certified} certified; largest gap / value, mean s",
        value=sound / len(tried),
        bound=None,
        gap=max(gaps, default=None),
        seconds=fmean(case.seconds for case in tried),
        baseline=f"local search: {level} of {len(compared)} as good to {_LEVEL_WITH:g}; median share",
        baseline_value=median(compared) if compared else None,
        baseline_seconds=None,
        limit="verified, η ≤ 1e-6, no rival above its bound",
        holds=sound == len(tried),
    )
