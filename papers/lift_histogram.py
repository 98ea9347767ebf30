# SPDX-License-Identifier: Apache-2.0
"""Lift, Figure 1: distribution of the largest and the least log-lift of an answer."""

from collections.abc import Iterator

import numpy as np
from frankly_design.measures.lift import Lifts

from papers.figure import Check, Figure, Panel, Row, Rows, Run
from papers.lift_common import ANSWERS, SYNTHETIC, synthetic

_BINS = 70


def _histogram(run: Run) -> Iterator[Row]:
    identity = [[int(x == y) for y in range(ANSWERS)] for x in range(ANSWERS)]
    least, largest = [], []
    for i, prior in enumerate(synthetic("lift-1", run), 1):
        run.on_progress(f"distribution {i} of {run.draws}")
        table = np.log(Lifts.of(identity, prior).table)
        least += [float(v) for v in table.min(axis=0)]
        largest += [float(v) for v in table.max(axis=0)]
    ends = (min(least), max(largest))
    for name, values in (("log Ψ", least), ("log Λ", largest)):
        counts, edges = np.histogram(values, bins=_BINS, range=ends)
        for count, edge in zip(counts, edges, strict=False):
            yield Row(
                "a",
                name,
                float(edge),
                float(count) / len(values),
                least=min(values),
                most=max(values),
            )


def _about(rows: Rows) -> Iterator[Check]:
    least, largest = (list(rows.curve("a", name).values()) for name in ("log Ψ", "log Λ"))
    low, high = least[0].least or 0.0, least[0].most or 0.0
    yield Check.near("range of log Ψ, lower end", low, -12.0, 4.0)
    yield Check.near("range of log Ψ, upper end", high, -0.06, 0.1)
    yield Check.near("range of log Λ, lower end", largest[0].least or 0.0, 0.02, 0.1)
    yield Check.near("range of log Λ, upper end", largest[0].most or 0.0, 1.64, 0.2)
    far = sum(row.y for row in least if row.x < -6)
    yield Check("the probability of |log Ψ| ≥ 6 is near zero", far, holds=far < 0.01)
    tops = [max(row.y for row in rows) for rows in (least, largest)]
    yield Check("the most frequent log Ψ is much rarer than the most frequent log Λ: ratio", tops[0] / tops[1],
                holds=tops[0] < 0.7 * tops[1])  # fmt: skip


FIGURES = (
    Figure(
        "lift-1", "Figure 1", "Histogram of the least and the largest log-lift of an answer",
        (Panel("a", "", "log-lift", "share of answers", kind="steps"),),
        {"data": SYNTHETIC, "bins": f"{_BINS} over the whole range; least, most: the range"},
        _histogram, _about, draws=1000, quick_draws=30,
        notes=("the ends of the ranges are extremes of 17,000 draws, and differ from seed to seed",),
    ),
)  # fmt: skip
