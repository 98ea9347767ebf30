# SPDX-License-Identifier: Apache-2.0
"""Difference in time between neighbouring draws of two alternating answers (spec 2.5).

``python -m tests.faults.turns DEVICES ALTERNATIONS SEED`` writes one process's medians as JSON.
"""

import json
import random
import secrets
import statistics
import sys
from collections.abc import Callable, Sequence
from time import perf_counter_ns

from frankly_protocol.mechanisms import (
    DenseMechanism,
    Mechanism,
    ProductMechanism,
    SubsetMechanism,
    UnaryMechanism,
)
from frankly_sdk import Answer, Policy
from frankly_sdk._sealing import Row, Sealing
from frankly_sdk.testing import FakeServer, make_survey
from scipy.stats import binomtest

SIZE, BITS = 64, 48
D = 1 << BITS
NEARLY = ((D // 64 * 33, D // 64 * 31), (D // 64 * 31, D // 64 * 33))
"""Rows of these mechanisms are nearly equal: symbols are public, and 1 may take some nanoseconds
more than 0, but only differences between answers are measured."""


def wide() -> DenseMechanism:
    """Randomised response over 64 answers."""
    mechanism = make_survey({"q": [f"c{i}" for i in range(SIZE)]}).blocks[0].mechanism
    assert isinstance(mechanism, DenseMechanism)
    return mechanism


WIDE = wide()
MAKERS: dict[str, Callable[[], Mechanism]] = {
    "dense": wide,
    "unary": lambda: UnaryMechanism(BITS, SIZE, D // 2, D // 5),
    "subset": lambda: SubsetMechanism(BITS, SIZE, SIZE // 4, D // 2),
    "product": lambda: ProductMechanism((wide(), DenseMechanism(BITS, NEARLY))),
}
Draw = Callable[[int], object]


def alternated(draw: Draw, truth_a: int, truth_b: int, times: int, order: random.Random) -> float:
    """Return how many nanoseconds longer `truth_b` takes, over an even number of alternations.

    Each truth comes first in half of the alternations, in random order. The mean of the medians of
    both halves cancels the cost of coming first.
    """
    turns = [False, True] * (times // 2)
    order.shuffle(turns)
    times_ns: dict[bool, list[int]] = {False: [], True: []}
    for swapped in turns:
        first, second = (truth_b, truth_a) if swapped else (truth_a, truth_b)
        start = perf_counter_ns()
        draw(first)
        middle = perf_counter_ns()
        draw(second)
        later = (perf_counter_ns() - middle) - (middle - start)
        times_ns[swapped].append(-later if swapped else later)
    return statistics.fmean(statistics.median(half) for half in times_ns.values())


def chance(differences: Sequence[float]) -> float:
    """Return the p-value of the sign test for a median of 0, without ties."""
    longer, shorter = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    return float(binomtest(longer, longer + shorter).pvalue) if longer + shorter else 1.0


def whole_path() -> Draw:
    """Return a function that does everything between the app's answer and the sealed bytes."""
    document = make_survey({"q": [f"c{i}" for i in range(SIZE)]})
    server = FakeServer(document)
    arguments = (
        document,
        document.report_level,
        "",
        True,
        False,
        Policy(),
        None,
        server.clock,
        secrets.randbits,
    )
    sealing = Sealing(*arguments)  # type: ignore[arg-type]
    (question,) = document.questions.values()
    rows = [Row("", Answer({question.id: choice.id}), Answer({})) for choice in question.choices]

    def draw(x: int) -> bytes:
        settled = rows[x].settled(sealing.planning)
        assert isinstance(settled, Row)
        report = sealing._draw(settled, None)
        assert report is not None
        return report.to_bytes(document.report_length)

    return draw


DRAWS: dict[str, Callable[[], Draw]] = {
    **{kind: lambda make=make: make().sample for kind, make in MAKERS.items()},
    "sealed bytes": whole_path,
}
PAIRS = [(0, SIZE - 1), (0, 1), (SIZE // 2, SIZE // 2 + 1)]


CASES = [(name, *pair) for name in DRAWS for pair in PAIRS]


def devices(
    name: str, truth_a: int, truth_b: int, number: int, times: int, seed: int
) -> list[float]:
    """Return the median difference in nanoseconds on each of `number` devices.

    The memory address of a row makes its draws a few nanoseconds faster or slower for the life of
    the process, for any answer. Therefore each device has other addresses and counts once.
    """
    layout, order, medians = (
        random.Random(seed),
        random.Random(f"{seed}-{name}-{truth_a}-{truth_b}"),
        [],
    )
    for _ in range(number):
        holes = [bytes(layout.randrange(1, 4096)) for _ in range(layout.randrange(64))]
        draw = DRAWS[name]()
        del holes[:: 1 + layout.getrandbits(1)]
        alternated(draw, truth_a, truth_b, 20, order)  # warms caches
        medians.append(alternated(draw, truth_a, truth_b, times, order))
    return medians


if __name__ == "__main__":
    counts_and_seed = [int(argument) for argument in sys.argv[1:]]
    json.dump([statistics.median(devices(*case, *counts_and_seed)) for case in CASES], sys.stdout)
