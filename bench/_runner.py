# SPDX-License-Identifier: Apache-2.0
"""Bench runner: interleaved trials, and one result as a table for people or JSON for tools."""

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

Seen = dict[str, list[float]]
"""A figure's values, one for each round; one if it was taken once."""
Found = TypeVar("Found")


@dataclass(frozen=True)
class Result:
    """What a bench measured.

    seen : by name, values of several rounds; ``ratio_…`` of two times or rates taken in the same run (these travel
    between machines), others with their unit (``…_s``). most, least : what a figure's median is to keep to, by name.
    more : what only JSON tells.
    """

    name: str
    seen: Mapping[str, Sequence[float]]
    most: Mapping[str, float] = field(default_factory=dict)
    least: Mapping[str, float] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def figures(self) -> dict[str, float]:
        """Medians."""
        return {name: median(values) for name, values in self.seen.items()}

    @property
    def spread(self) -> dict[str, tuple[float, float]]:
        """Least and most of the figures that were taken several times."""
        return {
            name: (min(values), max(values))
            for name, values in self.seen.items()
            if len(values) > 1
        }

    @property
    def asked(self) -> dict[str, str]:
        """What is asked of a figure, in words; of most nothing is."""
        limits = {name: f"≤ {most:g}" for name, most in self.most.items()}
        return limits | {name: f"≥ {least:g}" for name, least in self.least.items()}

    @property
    def short(self) -> list[str]:
        """Figures that are not what is asked."""
        figures = self.figures
        over = [name for name, most in self.most.items() if figures[name] > most]
        return over + [name for name, least in self.least.items() if figures[name] < least]


def load() -> float:
    """Return how many processes wanted a core in the last minute: what else a machine did while it was measured."""
    return os.getloadavg()[0]


def turns(trials: Mapping[str, Callable[[], Found]], rounds: int) -> dict[str, list[Found]]:
    """Return what each trial gave; they take turns, so that a busy moment is shared, after one for the caches."""
    found: dict[str, list[Found]] = {name: [] for name in trials}
    for trial in trials.values():
        trial()
    for _ in range(rounds):
        for name, trial in trials.items():
            found[name].append(trial())
    return found


def timed(trial: Callable[[], object]) -> Callable[[], float]:
    """Return a trial that gives its seconds."""

    def run() -> float:
        start = time.perf_counter()
        trial()
        return time.perf_counter() - start

    return run


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Return the ratio in each round."""
    return [a / b for a, b in zip(ours, theirs, strict=True)]


def once(figures: Mapping[str, float]) -> Seen:
    """Return figures that are taken a single time."""
    return {name: [value] for name, value in figures.items()}


def times(factor: float, values: Sequence[float]) -> list[float]:
    """Return values in another unit."""
    return [factor * value for value in values]


def number(value: float | None) -> str:
    """Return a figure as pages tell it."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.5g}"


def markdown(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return rows with the same keys as the lines of a table."""
    cells = [
        [each if isinstance(each, str) else number(each) for each in row.values()] for row in rows
    ]
    return [f"| {' | '.join(line)} |" for line in (list(rows[0]), ["---"] * len(rows[0]), *cells)]


def tell(result: Result, *, as_json: bool, before: float) -> None:
    """Print a result, and exit 1 if it falls short of what is asked. before : what `load` was when it began."""
    if as_json:
        body: dict[str, Any] = {
            "bench": result.name,
            "python": platform.python_version(),
            "machine": platform.machine(),
        }
        body |= {**result.figures, "spread": result.spread, "asked": result.asked, **result.more}
        body |= {"load": [before, load()], "short": result.short, "holds": not result.short}
        print(json.dumps(body, indent=1))
    else:
        print(f"{'figure':>44}  {'median':>12}  {'least':>12}  {'most':>12}  asked")
        for name, value in result.figures.items():
            low, high = result.spread.get(name, (value, value))
            said = result.asked.get(name, "") + ("  FALLS SHORT" if name in result.short else "")
            print(f"{name:>44}  {value:12.5g}  {low:12.5g}  {high:12.5g}  {said}".rstrip())
    sys.exit(1 if result.short else 0)


def main(
    description: str, measure: Callable[[], Result], arguments: Sequence[str] | None = None
) -> None:
    """Measure and tell: the whole of a bench that takes no options of its own."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    as_json, before = parser.parse_args(arguments).json, load()
    tell(measure(), as_json=as_json, before=before)
