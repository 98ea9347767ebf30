# SPDX-License-Identifier: Apache-2.0
"""Promises with and without robustness, if the prior is estimated from a sample.

python -m examples.workplace.mismatch [--pilots 40] [--people 1000] [--from everybody|clinic] [--json]

The 19,138 records of the RAND experiment are the truth. Each round draws a public pilot from them,
designs three mechanisms for the pair (limitation, health) at the same level, and computes under the
*truth* how much a report can reveal about the limitation. A pilot from the clinic contains only
people who saw a doctor more than five times: a selection error instead of a sampling error. Nothing
is published or sent.
"""

import argparse
import json
import math
import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from frankly_design.requests.design import design_json
from frankly_protocol.canonical import parse_json

from examples.demo.people import Person, joint_counts
from examples.workplace.data import HEALTH, LIMITATION, people

EPSILON, BETA, CAP = "0.5", "0.05", "2"
SEED = 7
Table = list[list[int]]


def design_request(name: str, joint: Table, n: int) -> dict[str, Any]:
    """Return the request of one of the three designs for a pilot's counts, joint[limitation][health]."""
    base: dict[str, Any] = {
        "prior": {"joint": joint},
        "epsilon": EPSILON,
        "objective": "information",
    }
    if name == "trusts the counts":
        return base | {"notion": "secret-ldp", "mechanism": "non-robust"}
    if name == "robust":
        return base | {"notion": "rldp", "robust": {"order": 2, "n": n, "beta": BETA}}
    return base | {"notion": "secret-ldp", "mechanism": "non-robust", "ceiling_cap": CAP}


NAMES = ("trusts the counts", "robust", "with a backstop")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One mechanism of one pilot: its realised level under the truth and its mutual information, both in nats."""

    name: str
    realised: float
    information: float


def table(persons: Sequence[Person]) -> Table:
    """Count limitation (rows) by health (columns)."""
    return [
        joint_counts(persons, ("health",), (HEALTH,), limitation=secret) for secret in LIMITATION
    ]


def realised(weights: Sequence[Sequence[int]], truth: Table) -> float:
    """Return the largest |log P(y|s) − log P(y|s')| in nats over reports y and secrets, under the true table.

    weights : row = pair (s, u) row-major, or u if the mechanism ignores the secret; column = report.
    """
    columns = len(truth[0])
    in_pairs = len(weights) == len(truth) * columns
    worst = 0.0
    for y in range(len(weights[0])):
        chances = []
        for s, row in enumerate(truth):
            start = s * columns if in_pairs else 0
            chances.append(sum(n * weights[start + u][y] for u, n in enumerate(row)) / sum(row))
        if max(chances) > 0:
            worst = max(
                worst, math.inf if min(chances) == 0 else math.log(max(chances) / min(chances))
            )
    return worst


FRAMES = ("everybody", "clinic")


def rounds(
    pilots: int,
    n: int,
    frame: str = "everybody",
    seed: int = SEED,
    clock: Callable[[], float] = time.monotonic,
) -> list[Outcome]:
    """Draw `pilots` samples of n people and return the outcome of each mechanism of each pilot.

    frame : population from which pilots are drawn, one of FRAMES; the truth is always all people.
    clock : seconds, for the time limits of designs; a fixed clock makes runs reproducible.
    """
    everyone = people()
    truth = table(everyone)
    met = [p for p in everyone if frame == "everybody" or p["visits"] == "more"]
    draw = random.Random(seed)
    outcomes = []
    for _ in range(pilots):
        joint = table(draw.sample(met, n))
        for name in NAMES:
            answer = design_json(
                parse_json(json.dumps(design_request(name, joint, n)).encode(), decimals=True),
                clock,
            )
            weights = _weights(answer)
            outcomes.append(Outcome(name, realised(weights, truth), answer["information"]))
    return outcomes


def _weights(answer: Mapping[str, Any]) -> list[list[int]]:
    weights: list[list[int]] = answer["weights"]
    return weights


def summary(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Return per mechanism: share of pilots whose promise broke, median and largest realised level, information."""
    lines = []
    for name in NAMES:
        by_level = sorted(
            (outcome for outcome in outcomes if outcome.name == name),
            key=lambda outcome: outcome.realised,
        )
        lines.append(
            {
                "mechanism": name,
                "pilots": len(by_level),
                "broken": sum(outcome.realised > float(EPSILON) for outcome in by_level),
                "median": by_level[len(by_level) // 2].realised,
                "largest": by_level[-1].realised,
                "information": sum(outcome.information for outcome in by_level) / len(by_level),
            }
        )
    return lines


def as_text(run: Mapping[str, Any]) -> str:
    """Return a run, in the form of `--json`, as a table."""
    lines = [
        f"Promised: {run['epsilon']} nats about the limitation, from pilots of {run['people']} people."
    ]
    lines.append(
        f"{'mechanism':<18} {'broken':>8} {'median':>7} {'largest':>8} {'information':>12}"
    )
    for line in run["mechanisms"]:
        broken = f"{line['broken']}/{line['pilots']}"
        figures = f"{line['median']:7.2f} {line['largest']:8.2f} {line['information']:12.3f}"
        lines.append(f"{line['mechanism']:<18} {broken:>8} {figures}")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the rounds and print the summary."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pilots", type=int, default=40)
    parser.add_argument("--people", type=int, default=1000)
    parser.add_argument("--from", dest="frame", choices=FRAMES, default=FRAMES[0])
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(arguments)
    outcomes = rounds(chosen.pilots, chosen.people, chosen.frame)
    run = {
        "epsilon": EPSILON,
        "beta": BETA,
        "cap": CAP,
        "people": chosen.people,
        "from": chosen.frame,
        "mechanisms": summary(outcomes),
        "rounds": [asdict(outcome) for outcome in outcomes],
    }
    print(json.dumps(run) if chosen.json else as_text(run), end="\n" if chosen.json else "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
