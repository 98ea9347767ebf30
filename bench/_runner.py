# SPDX-License-Identifier: Apache-2.0
"""Bench runner: interleaved trials; prints the result as a table or as JSON."""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, TypeVar

Samples = dict[str, list[float]]
"""Name of a figure -> its values, one per round."""
Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class Result:
    """Measurements of a bench, and the bounds of their medians.

    samples : by name, values of several rounds; ``ratio_…`` is of two times or rates of the same
    run, comparable between machines; others end with their unit (``…_s``). at_most, at_least :
    bounds of a figure's median, by name. extra : fields of the JSON output only.
    """

    name: str
    samples: Mapping[str, Sequence[float]]
    at_most: Mapping[str, float] = field(default_factory=dict)
    at_least: Mapping[str, float] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def figures(self) -> dict[str, float]:
        """Medians."""
        return {name: median(values) for name, values in self.samples.items()}

    @property
    def spread(self) -> dict[str, tuple[float, float]]:
        """Least and largest value of the figures measured several times."""
        return {
            name: (min(values), max(values))
            for name, values in self.samples.items()
            if len(values) > 1
        }

    @property
    def demands(self) -> dict[str, str]:
        """Bounds by figure, as text; most figures have none."""
        limits = {name: f"≤ {bound:g}" for name, bound in self.at_most.items()}
        return limits | {name: f"≥ {bound:g}" for name, bound in self.at_least.items()}

    @property
    def short(self) -> list[str]:
        """Figures whose median breaks its bound."""
        figures = self.figures
        over = [name for name, bound in self.at_most.items() if figures[name] > bound]
        return over + [name for name, bound in self.at_least.items() if figures[name] < bound]


def load() -> float:
    """Return the load average of the last minute."""
    return os.getloadavg()[0]


def turns(trials: Mapping[str, Callable[[], Outcome]], rounds: int) -> dict[str, list[Outcome]]:
    """Return the outcomes of each trial; trials alternate, after one warm-up run of each.

    Other load on the machine therefore affects all trials alike.
    """
    outcomes: dict[str, list[Outcome]] = {name: [] for name in trials}
    for trial in trials.values():
        trial()
    for _ in range(rounds):
        for name, trial in trials.items():
            outcomes[name].append(trial())
    return outcomes


def timed(trial: Callable[[], object]) -> Callable[[], float]:
    """Return a function that runs a trial and returns its seconds."""

    def run() -> float:
        start = time.perf_counter()
        trial()
        return time.perf_counter() - start

    return run


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Return the ratio in each round."""
    return [a / b for a, b in zip(ours, theirs, strict=True)]


def once(figures: Mapping[str, float]) -> Samples:
    """Return figures that are measured only once, as samples."""
    return {name: [value] for name, value in figures.items()}


def times(factor: float, values: Sequence[float]) -> list[float]:
    """Return values multiplied by a factor."""
    return [factor * value for value in values]


def number(value: float | None) -> str:
    """Return a figure as text, with 5 significant digits."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.5g}"


def markdown(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return rows with the same keys as the lines of a table."""
    cells = [
        [value if isinstance(value, str) else number(value) for value in row.values()]
        for row in rows
    ]
    return [f"| {' | '.join(line)} |" for line in (list(rows[0]), ["---"] * len(rows[0]), *cells)]


def print_result(result: Result, *, as_json: bool, before: float) -> None:
    """Print a result, and exit 1 if a figure breaks its bound. before : `load` at the start."""
    if as_json:
        body: dict[str, Any] = {
            "bench": result.name,
            "python": platform.python_version(),
            "machine": platform.machine(),
        }
        body |= {**result.figures, "spread": result.spread, "asked": result.demands, **result.extra}
        body |= {"load": [before, load()], "short": result.short, "holds": not result.short}
        print(json.dumps(body, indent=1))
    else:
        print(f"{'figure':>44}  {'median':>12}  {'least':>12}  {'most':>12}  demand")
        for name, value in result.figures.items():
            low, high = result.spread.get(name, (value, value))
            note = result.demands.get(name, "") + ("  FALLS SHORT" if name in result.short else "")
            print(f"{name:>44}  {value:12.5g}  {low:12.5g}  {high:12.5g}  {note}".rstrip())
    sys.exit(1 if result.short else 0)


def main(
    description: str, measure: Callable[[], Result], arguments: Sequence[str] | None = None
) -> None:
    """Measure and print: the entry point of a bench whose only option is --json."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    as_json, before = parser.parse_args(arguments).json, load()
    print_result(measure(), as_json=as_json, before=before)
