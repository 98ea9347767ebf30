# SPDX-License-Identifier: Apache-2.0
"""What every bench shares: medians of repeated runs, and one result as a table for people or JSON for tools."""

import argparse
import json
import os
import platform
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Result:
    """What a bench measured.

    figures : by name; ``ratio_…`` of two times or rates taken in the same run (these travel between machines), others
    with their unit (``…_s``). limits : what a figure must stay under, by its name.
    """

    name: str
    figures: dict[str, float]
    limits: dict[str, float] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether every figure is under its limit."""
        return all(self.figures[name] < limit for name, limit in self.limits.items())


def load() -> float:
    """Return how many processes wanted a core in the last minute: what else a machine did while it was measured."""
    return os.getloadavg()[0]


def medians(trials: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Return the median of each trial; the trials take turns, so that a busy moment is shared by all."""
    for trial in trials.values():
        trial()  # once for the caches, not counted
    seen: dict[str, list[float]] = {name: [] for name in trials}
    for _ in range(rounds):
        for name, trial in trials.items():
            seen[name].append(trial())
    return {name: statistics.median(values) for name, values in seen.items()}


def show(figures: Mapping[str, float], spread: Mapping[str, tuple[float, float]], short: Sequence[str]) -> None:
    """Print a table for people: each figure's median, least and most, and which fall short of what is asked."""
    print(f"{'figure':>36}  {'median':>12}  {'least':>12}  {'most':>12}")
    for name, value in figures.items():
        low, high = spread.get(name, (value, value))
        print(f"{name:>36}  {value:12.5g}  {low:12.5g}  {high:12.5g}{'  falls short' if name in short else ''}")


def main(description: str, measure: Callable[[], Result], arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and exit 1 if a limit does not hold."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    as_json = parser.parse_args(arguments).json
    result = measure()
    if as_json:
        body = {"bench": result.name, **result.figures, "limits": result.limits, "holds": result.holds}
        print(json.dumps(body | {"python": platform.python_version(), "machine": platform.machine()}, indent=2))
    else:
        for name, value in result.figures.items():
            limit = f"   (must be under {result.limits[name]:g})" if name in result.limits else ""
            print(f"{name:>24}  {value:8.3f}{limit}")
    sys.exit(0 if result.holds else 1)
