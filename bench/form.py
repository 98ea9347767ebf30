# SPDX-License-Identifier: Apache-2.0
"""Compare forms under one ε with the best known variances and with published methods, in one table.

Exits 1 if a demand is not met.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import combinations
from random import Random

from _form import rivals
from frankly_protocol import canonical
from frankly_server.design.form import FormDesign, FormQuestion, FormRequest, design_form
from frankly_server.design.tables.limits import Limits

WITHIN = 1.005
"""A best known value counts as reached if the difference is at most half a per cent."""
_TABLE = [
    ("2+2+2", [2] * 3, "2", 5.949),
    ("5+2", [5, 2], "1", 25.27),
    ("5+2", [5, 2], "2", 6.365),
    *(("10×5", [5] * 10, e, v) for e, v in (("1", 1223), ("2", 254.2), ("4", 86.02), ("6", 44.96))),
    *(("15×2", [2] * 15, e, v) for e, v in (("2", 148.7), ("4", 47.4), ("6", 24.5))),
    *(("20×4", [4] * 20, e, v) for e, v in (("2", 793.2), ("4", 252.9))),
]
_SMALL = [
    ("2+2+2", [2] * 3, "4", 1.9812),
    ("3+3", [3, 3], "2", 5.7589),
    ("3+3", [3, 3], "4", 1.8187),
    ("4+4", [4, 4], "1", 33.225),
    ("20×10", [10] * 20, "1", 12002),
    ("20×10", [10] * 20, "2", 2369),
    ("20×10", [10] * 20, "4", 506.9),
]
_PAIRS = [
    *((10, 5, e, v) for e, v in (("1", 171952), ("2", 33782), ("4", 4180), ("6", 1096))),
    *((10, 2, e, v) for e, v in (("1", 10558), ("2", 1813), ("4", 277))),
    *((15, 2, e, v) for e, v in (("2", 9870), ("4", 1510))),
    *((20, 10, e, v) for e, v in (("2", 2_560_000), ("4", 269_765))),
]


@dataclass(frozen=True)
class Row:
    """A value and the value that it is compared with.

    short : factor by which the demand is missed, or None if it is met. excess : largest relative
    distance of the value from the bound, or None without a bound.
    """

    case: str
    value: float
    against: str
    its_value: float
    ratio: float
    excess: float | None
    seconds: float
    holds: bool
    short: float | None


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument(
        "--quick", action="store_true", help="20 random questionnaires, no large pairs"
    )
    chosen = parser.parse_args(arguments)
    rows: list[Row] = []
    for row in measured(quick=chosen.quick):
        rows.append(row)
        if not chosen.json:
            print(_line(row), flush=True)
    if chosen.json:
        holds = all(row.holds for row in rows)
        print(
            json.dumps(
                {"bench": "form", "rows": [asdict(r) for r in rows], "holds": holds}, indent=2
            )
        )
    sys.exit(0 if all(row.holds for row in rows) else 1)


def measured(*, quick: bool) -> Iterator[Row]:
    """Yield the rows of every part."""
    for name, sizes, epsilon, best in [*_TABLE, *_SMALL]:
        yield _reached(f"{name}, ε = {epsilon}", sizes, epsilon, best)
    yield from _pairs(quick=quick)
    yield from _questionnaires(20 if quick else 200)
    yield from _large()
    yield from _ordinal()


def _reached(case: str, sizes: Sequence[int], epsilon: str, best: float) -> Row:
    design, seconds = _designed([FormQuestion((1,) * k) for k in sizes], epsilon)
    return _row(case, design.value, "best known", best, WITHIN, seconds, design.excess)


def _pairs(*, quick: bool) -> Iterator[Row]:
    for m, k, epsilon, best in _PAIRS:
        if quick and m * k > 100:
            continue
        # The shares have almost no weight, because the requirement concerns the tables of pairs.
        questions = [FormQuestion((1,) * k, importance=Fraction(1, 10**6))] * m
        design, seconds = _designed(questions, epsilon, tuple(combinations(range(m), 2)))
        value = sum(design.pair_variances)
        yield _row(
            f"all pairs of {m}×{k}, ε = {epsilon}", value, "best known", best, WITHIN, seconds
        )


def _questionnaires(number: int) -> Iterator[Row]:
    rng, gains, longest = Random(23), [], 0.0
    worst = dict.fromkeys(("split", "one sampled", "together", "RS+FD"), 0.0)
    for _ in range(number):
        questions = [(rng.randint(2, 8), rng.randint(1, 20) / 4) for _ in range(rng.randint(2, 12))]
        epsilon = f"{rng.uniform(0.5, 6):.2f}"
        asked = [FormQuestion((1,) * k, importance=Fraction(w)) for k, w in questions]
        design, seconds = _designed(asked, epsilon)
        longest = max(longest, seconds)
        e = float(epsilon)
        separate = rivals.split(questions, e)
        values: dict[str, float | None] = {
            "split": separate,
            "one sampled": rivals.sampled(questions, e),
            "together": rivals.together(questions, e),
            "RS+FD": rivals.fake_data(questions, e),
        }
        gains.append(separate / design.value)
        for name, value in values.items():
            if value is not None:
                worst[name] = max(worst[name], design.value / value)
    for name, ratio in worst.items():
        case = f"{number} random questionnaires, the worst"
        yield _row(case, ratio, f"of {name}", 1.0, 1 + 1e-6, longest)
    case = f"{number} random questionnaires, split over ours, median"
    yield _row(case, statistics.median(gains), "no demand", 1.0, float("inf"), longest)


def _large() -> Iterator[Row]:
    design, seconds = _designed([FormQuestion((1,) * 10)] * 20, "2")
    yield _row("20×10, seconds of the design", seconds, "limit", 10, 1, seconds)
    mechanism, truth = design.mechanism, (3,) * 20
    size = len(canonical.dumps(mechanism.params_json()))
    yield _row(
        "20×10, bytes of the parameters", size, "limit of the document", 32 * 1024, 1, seconds
    )
    mechanism.sample(truth)
    start = time.perf_counter()
    for _ in range(1000):
        mechanism.sample(truth)
    draw = (time.perf_counter() - start) / 1000 * 1e6
    yield _row("20×10, µs of a draw", draw, "limit", 200, 1, seconds)


def _ordinal() -> Iterator[Row]:
    design, seconds = _designed([FormQuestion((1,) * 11, _up_to_each(11))], "1")
    rival, value = min(rivals.distribution(11, 1).items(), key=lambda entry: entry[1])
    yield _row(
        "distribution of 11 points, ε = 1",
        design.value,
        f"0.65 of {rival}",
        0.65 * value,
        1,
        seconds,
    )
    yield from _scales()
    yield from _even()
    for points in (2, 3, 5, 7, 11, 16, 21):
        for epsilon in ("0.5", "1", "2", "4"):
            scores = tuple(Fraction(2 * x, points - 1) - 1 for x in range(points))
            design, seconds = _designed([FormQuestion((1,) * points, (scores,))], epsilon)
            rival, value = min(
                rivals.means(points, float(epsilon)).items(), key=lambda entry: entry[1]
            )
            case = f"mean of {points} points, ε = {epsilon}"
            yield _row(case, design.value, rival, value, 1 + 1e-6, seconds)


def _up_to_each(points: int) -> tuple[tuple[Fraction, ...], ...]:
    """Return the rows of a distribution: the share of each point but the last with all before it."""
    return tuple(
        tuple(Fraction(int(x <= last)) for x in range(points)) for last in range(points - 1)
    )


def _scales() -> Iterator[Row]:
    """Yield distributions and means of long scales, with the bounds of all mechanisms."""
    for points in (21, 41, 64):
        for wanted in ("distribution", "mean"):
            for epsilon in ("1", "2", "4"):
                mean = (tuple(map(Fraction, range(points))),)
                rows = mean if wanted == "mean" else _up_to_each(points)
                question = FormQuestion((1,) * points, rows)
                design, seconds = _designed([question], epsilon, limit_s=60)
                case = f"{wanted} of {points} points, ε = {epsilon}"
                yield _row(case, design.value, "bound", design.bound, 1.05, seconds, design.excess)


def _even() -> Iterator[Row]:
    """Yield even forms, with the bounds of all mechanisms."""
    for number, choices in ((15, 2), (8, 3), (20, 4), (10, 5), (20, 10)):
        for epsilon in ("1", "2", "4"):
            design, seconds = _designed([FormQuestion((1,) * choices)] * number, epsilon)
            case = f"{number}×{choices}, ε = {epsilon}"
            yield _row(case, design.value, "bound", design.bound, 1.05, seconds, design.excess)


def _designed(
    questions: Sequence[FormQuestion],
    epsilon: str,
    pairs: tuple[tuple[int, int], ...] = (),
    limit_s: float = 10,
) -> tuple[FormDesign, float]:
    start = time.monotonic()
    limits = Limits.within(limit_s, time.monotonic)
    design = design_form(FormRequest(tuple(questions), Fraction(epsilon), pairs, limits))
    return design, time.monotonic() - start


def _row(
    case: str,
    value: float,
    against: str,
    its_value: float,
    most: float,
    seconds: float,
    excess: float | None = None,
) -> Row:
    # Designs and rivals may have numbers of NumPy, whose comparisons are no JSON values.
    value, its_value = float(value), float(its_value)
    ratio = value / its_value
    holds = ratio <= most
    return Row(
        case,
        value,
        against,
        its_value,
        ratio,
        excess,
        seconds,
        holds,
        None if holds else ratio / most,
    )


def _line(row: Row) -> str:
    excess = "" if row.excess is None else f"≤ {100 * row.excess:.1f} % above the best possible"
    verdict = "yes" if row.holds else f"NO, short by {row.short:.4f}"
    figures = f"{row.value:14.5g} {row.against:24} {row.its_value:12.5g} {row.ratio:8.4f}"
    return f"{row.case:58} {figures} {row.seconds:6.2f} s {verdict:24} {excess}".rstrip()


if __name__ == "__main__":
    main()
