# SPDX-License-Identifier: Apache-2.0
"""Plots; the design engine computes their numbers when they are drawn."""

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

from frankly_analyst.plots import percent
from frankly_analyst.svg import line, text
from frankly_design.requests.design import design_json
from frankly_protocol.canonical import parse_json

from examples.demo.surveys import SURVEYS
from tools.site.pictures.chart import BLUE, INK, ChartTexts, Curve, chart, picture

_NORMAL_95: Final = 1.959963984540054


def design(request: dict[str, Any]) -> dict[str, Any]:
    """Return the output of `frankly design --json`, with a fixed clock."""
    return design_json(parse_json(json.dumps(request).encode(), decimals=True), lambda: 0.0)


def one_answer() -> str:
    """Draw the distribution of the report for the answer “b” of four choices, at four levels."""
    levels, choices, truth = ("0.5", "1", "2", "4"), "abcd", 1
    elements = [text(12, 26, "start", "What leaves the device when the answer is b", 16)]
    description = []
    for i, level in enumerate(levels):
        designed = design(
            {
                "prior": {"joint": [[1, 1, 1, 1]]},
                "notion": "ldp",
                "mechanism": "grr",
                "epsilon": level,
            }
        )
        chances = [weight / 2 ** designed["bits"] for weight in designed["weights"][truth]]
        x_start = 20 + 156 * i
        elements.append(text(x_start + 64, 62, "middle", f"ε = {level}", 14))
        elements += _bars(chances, choices, truth, x_start)
        description.append(
            f"at ε = {level} b leaves with {percent(chances[truth])}, each other with {percent(chances[0])}"
        )
    elements.append(
        text(
            12,
            300,
            "start",
            "Whatever is sent, everybody could have said anything. The server sees one letter.",
            13,
        )
    )
    return picture(
        640, 318, "What randomisation does to one answer", "; ".join(description), elements
    )


def _bars(chances: Sequence[float], choices: str, truth: int, x_start: int) -> Iterator[str]:
    base, full = 250, 170
    for j, (chance, choice) in enumerate(zip(chances, choices, strict=True)):
        height, x = round(full * chance, 1), x_start + 32 * j
        fill = BLUE if j == truth else "#8fa9c4"
        yield f'<rect x="{x}" y="{round(base - height, 1)}" width="26" height="{height}" fill="{fill}"/>'
        yield text(x + 13, round(base - height - 5, 1), "middle", f"{chance:.0%}", 11)
        yield text(x + 13, base + 17, "middle", choice, 13)
    yield line(x_start - 4, base, x_start + 126, base, f'stroke="{INK}"')


def margin() -> str:
    """Draw the 95% margin of a share near 30% against the number of reports, at several levels."""
    sizes = [round(100 * 10 ** (i / 4)) for i in range(13)]
    curves = []
    for level in ("0.5", "1", "2", "4"):
        request = {
            "prior": {"joint": [[7, 3]]},
            "notion": "ldp",
            "mechanism": "warner",
            "epsilon": level,
        }
        variance = design(request)["variance"] / 2  # the total of two equal variances
        curves.append(
            Curve(f"ε = {level}", [(n, 100 * _NORMAL_95 * math.sqrt(variance / n)) for n in sizes])
        )
    unprotected = [(n, 100 * _NORMAL_95 * math.sqrt(0.21 / n)) for n in sizes]
    description = "; ".join(
        f"{c.name}: ±{c.points[4][1]:.1f} points at {c.points[4][0]:,} reports" for c in curves
    )
    texts = ChartTexts(
        "What privacy costs: the margin of a yes/no question",
        "reports",
        "95% margin, percentage points",
        f"{description}; no privacy: ±{unprotected[4][1]:.1f}",
    )
    return chart(texts, [*curves, Curve("no privacy", unprotected)], logs=(True, True))


def frontier() -> str:
    """Draw the frontier of variance and information for the affairs survey's marriage block."""
    block = next(b for b in SURVEYS["affairs"].definition.blocks if b.id == "marriage")
    joint = [[int(cell) for cell in row] for row in block.prior.joint] if block.prior else []
    curves = []
    for level in ("0.25", "0.5"):
        request = {
            "prior": {"joint": joint},
            "notion": "lip",
            "epsilon": level,
            "frontier": 8,
            "ceiling_cap": "3",
        }
        points = design(request)["frontier"]
        curves.append(
            Curve(f"LIP, ε = {level}", sorted((p["information"], p["variance"]) for p in points))
        )
    description = "; ".join(
        f"{c.name}: from {c.points[0][1]:.2f} at {c.points[0][0]:.3f} nats to {c.points[-1][1]:.2f} at "
        f"{c.points[-1][0]:.3f} nats"
        for c in curves
    )
    texts = ChartTexts(
        "More information or less variance: no mechanism has both",
        "information in a report, nats",
        "total variance of the shares, n = 1",
        description,
    )
    return chart(texts, curves, logs=(False, True))


def lift() -> str:
    """Draw the distribution of the lift of the secret, for true answers and for reports."""
    block = next(b for b in SURVEYS["affairs"].definition.blocks if b.id == "marriage")
    joint = [[int(cell) for cell in row] for row in block.prior.joint] if block.prior else []
    lip_design = design({"prior": {"joint": joint}, "notion": "lip", "epsilon": "0.25"})
    weights = [[cell / 2 ** lip_design["bits"] for cell in row] for row in lip_design["weights"]]
    raw = [[float(i == j) for j in range(len(weights))] for i in range(len(weights))]
    width, edges = 0.1, [-1.0 + 0.1 * i for i in range(16)]
    curves = []
    for name, Q in (("sent as they are", raw), ("randomised, ε = 0.25", weights)):
        shares = [0.0] * len(edges)
        for chance, value in _lifts(joint, Q):
            # rounding: a lift equal to the level lies on the edge of a bin, and belongs to the
            # inner bin
            shares[
                min(len(edges) - 1, max(0, math.floor((value * (1 - 1e-9) - edges[0]) / width)))
            ] += 100 * chance
        curves.append(
            Curve(
                name,
                list(zip([*edges, edges[-1] + width], [*shares, shares[-1]], strict=True)),
                steps=True,
            )
        )
    outside = [
        sum(chance for chance, value in _lifts(joint, Q) if abs(value) > 0.25 + 1e-9)
        for Q in (raw, weights)
    ]
    description = (
        f"{percent(outside[0])} of answers sent as they are move the belief by more than the promised 0.25 nats, "
        f"{percent(outside[1])} of the randomised ones do"
    )
    texts = ChartTexts(
        "How far one report moves what is believed about an affair",
        "log lift, nats",
        "% of reports",
        description,
    )
    return chart(texts, curves)


def _lifts(
    joint: Sequence[Sequence[int]], Q: Sequence[Sequence[float]]
) -> Iterator[tuple[float, float]]:
    """Yield P(s, y) and log P(y|s)/P(y) for every secret and report."""
    total = sum(map(sum, joint))
    for y in range(len(Q[0])):
        together = [sum(n * Q[x][y] for x, n in enumerate(row)) / total for row in joint]
        for s, row in enumerate(joint):
            if together[s] > 0:
                yield together[s], math.log(together[s] / (sum(together) * sum(row) / total))
