# SPDX-License-Identifier: Apache-2.0
"""Compare forms under one ε with the best known variances and with published methods, in one table.

Items: 1 best known values; 2 tables of all pairs; 3 random questionnaires; 4 size and time of one
form, measured before the others run; 5 distributions and means of scales; 6 even forms; 7 what a
prior gains; 8 what a wish gains. A second table: forms beside known methods. Designs run in a
process per core; their limits and `seconds` are of CPU time. Exits 1 if a demand is not met.
"""

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from fractions import Fraction
from functools import partial
from itertools import combinations, product
from operator import call
from random import Random

from _design.row import Row
from _form import rivals, single
from _form.asked import FORMS, WITHIN, Asked, asked
from _form.designing import designed, even
from _runner import load, markdown
from frankly_design.form import FormQuestion
from frankly_protocol import canonical

Job = Callable[[], Row]
Questionnaire = tuple[list[rivals.Question], str]
"""Questions and ε."""
RIVALS = ("split", "one sampled", "few sampled", "together", "RS+FD")
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
    # At ε = 1 the Hadamard coefficients (docs/maths/forms.md, "Comparison with known values").
    *((10, 2, e, v) for e, v in (("1", 6585), ("2", 1813), ("4", 277))),
    *((15, 2, e, v) for e, v in (("2", 9870), ("4", 1510))),
    *((20, 10, e, v) for e, v in (("2", 2_560_000), ("4", 269_765))),
]


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument(
        "--quick", action="store_true", help="20 random questionnaires, no large pairs"
    )
    chosen = parser.parse_args(arguments)
    before, rows = load(), list[Row]()
    for row in measured(quick=chosen.quick):
        rows.append(row)
        if not chosen.json:
            print(_line(row), flush=True)
    questions_asked = [asked(*form) for form in FORMS]
    all_met = all(one.holds for one in questions_asked)
    holds = all_met and all(row.holds is not False for row in rows)
    if chosen.json:
        forms = [asdict(one) for one in questions_asked]
        body = {
            "bench": "form",
            "python": platform.python_version(),
            "machine": platform.machine(),
            "load": [before, load()],
            "rows": [asdict(row) | {"ratio": row.ratio} for row in rows],
            "questions_asked": {"holds": all_met, "forms": forms},
            "holds": holds,
        }
        print(json.dumps(body, indent=1))
    else:
        print("\nforms (expected)", *_asked_lines(questions_asked), sep="\n")
    sys.exit(0 if holds else 1)


def measured(*, quick: bool) -> Iterator[Row]:
    """Yield the rows of every item."""
    yield from _one_form()
    jobs = [
        *(partial(_reached, *form) for form in (*_TABLE, *_SMALL)),
        *(
            partial(_all_pairs, *pairs)
            for pairs in _PAIRS
            if not quick or pairs[0] * pairs[1] <= 100
        ),
        *_ordinal(),
        *_even(),
        *_single(),
    ]
    with ProcessPoolExecutor() as processes:
        yield from processes.map(call, jobs)
        drawn = list(_drawn(20 if quick else 200))
        yield from _questionnaires(list(processes.map(_compared, drawn)))


def _reached(name: str, sizes: Sequence[int], epsilon: str, best: float) -> Row:
    design, seconds = designed(even(sizes), epsilon)
    case = f"{name}, ε = {epsilon}"
    return _row(1, case, design.value, "best known", best, WITHIN, seconds, design.excess)


def _all_pairs(m: int, k: int, epsilon: str, best: float) -> Row:
    # The shares have almost no weight, because the requirement concerns the tables of pairs.
    questions = [FormQuestion((1,) * k, importance=Fraction(1, 10**6))] * m
    design, seconds = designed(questions, epsilon, tuple(combinations(range(m), 2)))
    value = sum(design.pair_variances)
    return _row(
        2, f"all pairs of {m}×{k}, ε = {epsilon}", value, "best known", best, WITHIN, seconds
    )


def _drawn(number: int) -> Iterator[Questionnaire]:
    rng = Random(23)
    for _ in range(number):
        questions = [(rng.randint(2, 8), rng.randint(1, 20) / 4) for _ in range(rng.randint(2, 12))]
        yield questions, f"{rng.uniform(0.5, 6):.2f}"


def _compared(questionnaire: Questionnaire) -> tuple[dict[str, float], float]:
    """Return the value of each method over ours, and the seconds of our design."""
    questions, epsilon = questionnaire
    form = [FormQuestion((1,) * k, importance=Fraction(weight)) for k, weight in questions]
    design, seconds = designed(form, epsilon)
    methods = (rivals.split, rivals.sampled, rivals.marginals, rivals.together, rivals.fake_data)
    values = {
        name: one(questions, float(epsilon)) for name, one in zip(RIVALS, methods, strict=True)
    }
    return {name: value / design.value for name, value in values.items() if value}, seconds


def _questionnaires(compared: Sequence[tuple[dict[str, float], float]]) -> Iterator[Row]:
    longest = max(seconds for _, seconds in compared)
    for name in RIVALS:
        worst = max(1 / gains[name] for gains, _ in compared if name in gains)
        case = f"{len(compared)} random questionnaires, the worst"
        yield _row(3, case, worst, f"of {name}", 1, 1 + 1e-6, longest)
    median = statistics.median(gains["split"] for gains, _ in compared)
    case = f"{len(compared)} random questionnaires, split over ours, median"
    yield _row(3, case, median, "no demand", 1, None, longest)


def _one_form() -> Iterator[Row]:
    """Yield the size and the times of one form; nothing else of the bench may run beside them."""
    design, seconds = designed(even([10] * 20), "2")
    yield _row(4, "20×10, seconds of the design", seconds, "limit", 10, 1, seconds)
    mechanism, truth = design.mechanism, (3,) * 20
    size = len(canonical.dumps(mechanism.params_json()))
    case = "20×10, bytes of the parameters"
    yield _row(4, case, size, "limit of the document", 32 * 1024, 1, seconds)
    mechanism.sample(truth)
    start = time.process_time()
    for _ in range(1000):
        mechanism.sample(truth)
    draw = (time.process_time() - start) / 1000 * 1e6
    yield _row(4, "20×10, µs of a draw", draw, "limit", 200, 1, seconds)


def _ordinal() -> Iterator[Job]:
    yield _distribution
    for points in (64, 41, 21):
        for wanted in ("distribution", "mean"):
            for epsilon in ("1", "2", "4"):
                yield partial(_scale, wanted, points, epsilon)
    for points in (2, 3, 5, 7, 11, 16, 21):
        for epsilon in ("0.5", "1", "2", "4"):
            yield partial(_mean, points, epsilon)


def _distribution() -> Row:
    design, seconds = designed([FormQuestion((1,) * 11, _up_to_each(11))], "1")
    rival, value = min(rivals.distribution(11, 1).items(), key=lambda entry: entry[1])
    case = "distribution of 11 points, ε = 1"
    return _row(5, case, design.value, rival, value, 0.65, seconds)


def _mean(points: int, epsilon: str) -> Row:
    scores = tuple(Fraction(2 * x, points - 1) - 1 for x in range(points))
    design, seconds = designed([FormQuestion((1,) * points, (scores,))], epsilon)
    rival, value = min(rivals.means(points, float(epsilon)).items(), key=lambda entry: entry[1])
    case = f"mean of {points} points, ε = {epsilon}"
    return _row(5, case, design.value, rival, value, 1 + 1e-6, seconds)


def _scale(wanted: str, points: int, epsilon: str) -> Row:
    """Return a long scale's distribution or mean, with the bound of all mechanisms."""
    mean = (tuple(map(Fraction, range(points))),)
    rows = mean if wanted == "mean" else _up_to_each(points)
    design, seconds = designed([FormQuestion((1,) * points, rows)], epsilon, limit_s=60)
    case = f"{wanted} of {points} points, ε = {epsilon}"
    return _row(5, case, design.value, "bound", design.bound, 1.05, seconds, design.excess)


def _up_to_each(points: int) -> tuple[tuple[Fraction, ...], ...]:
    """Return the rows of a distribution: the share of each point but the last with all before it."""
    return tuple(
        tuple(Fraction(int(x <= last)) for x in range(points)) for last in range(points - 1)
    )


def _even() -> Iterator[Job]:
    for number, choices in ((15, 2), (8, 3), (20, 4), (10, 5), (20, 10)):
        for epsilon in ("1", "2", "4"):
            yield partial(_near_the_bound, number, choices, epsilon)


def _near_the_bound(number: int, choices: int, epsilon: str) -> Row:
    design, seconds = designed(even([choices] * number), epsilon)
    case = f"{number}×{choices}, ε = {epsilon}"
    return _row(6, case, design.value, "bound", design.bound, 1.05, seconds, design.excess)


def _single() -> Iterator[Job]:
    for choices, epsilon in product((3, 5, 8), ("1", "2", "4")):
        for wanted in single.WANTED:
            yield partial(_prior, choices, epsilon, wanted)
            if wanted != "shares":
                yield partial(_wish, choices, epsilon, wanted)


def _prior(choices: int, epsilon: str, wanted: str) -> Row:
    """Return the variance at a prior of the design for it, beside that of the design for even shares."""
    start = time.process_time()
    gain = max(
        (
            single.gain(prior, (1,) * choices, epsilon, wanted, wanted)
            for prior in single.priors(choices)
        ),
        key=lambda gain: gain.ratio,
    )
    case = f"{wanted} of {choices} choices, ε = {epsilon}, the prior with the largest gain"
    seconds = time.process_time() - start
    return _row(7, case, gain.value, "even prior", gain.baseline, 1 + 1e-6, seconds)


def _wish(choices: int, epsilon: str, wanted: str) -> Row:
    """Return the variance of a figure that the design is for, beside that of the design for shares."""
    start = time.process_time()
    even = (1,) * choices
    gain = single.gain(even, even, epsilon, wanted, "shares")
    case = f"{wanted} of {choices} even choices, ε = {epsilon}"
    seconds = time.process_time() - start
    return _row(8, case, gain.value, "shares wanted", gain.baseline, 1 + 1e-6, seconds)


def _row(
    item: int,
    case: str,
    value: float,
    baseline: str,
    its_value: float,
    most: float | None,
    seconds: float,
    gap: float | None = None,
) -> Row:
    """Return a value compared with a baseline's; most : largest ratio of the two, None if any is good."""
    # Designs and rivals may have numbers of NumPy, whose comparisons are no JSON values.
    value, its_value = float(value), float(its_value)
    limit, holds = (
        ("", None) if most is None else (f"≤ {most:.7g} × its", value / its_value <= most)
    )
    bound = its_value if baseline == "bound" else None
    return Row(item, case, value, bound, gap, seconds, baseline, its_value, None, limit, holds)


def _line(row: Row) -> str:
    value, its_value = row.value or 0.0, row.baseline_value or 1.0
    gap = "" if row.gap is None else f"≤ {100 * row.gap:.1f} % above the best possible"
    verdict = {None: "", True: "yes", False: "NO"}[row.holds]
    figures = f"{value:14.5g} {row.baseline:24} {its_value:12.5g} {value / its_value:8.4f}"
    return f"{row.case:58} {figures} {row.limit:18} {row.seconds:6.2f} s {verdict:4} {gap}".rstrip()


def _asked_lines(questions_asked: Sequence[Asked]) -> list[str]:
    rows = []
    for one in questions_asked:
        expected = asdict(one.expected)
        figures = {
            k: f"{v:.6g}" + ("" if expected[k] is None else f" ({expected[k]:g})")
            for k, v in asdict(one.figures).items()
        }
        verdict = "yes" if one.holds else "NO: " + ", ".join(one.missed)
        rows.append({"form": one.case, **figures, "holds": verdict})
    return markdown(rows)


if __name__ == "__main__":
    main()
