# SPDX-License-Identifier: Apache-2.0
"""What every bench shares: medians of repeated runs, and one result as a table for people or JSON for tools."""

import argparse
import json
import platform
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Result:
    """What a bench measured.

    ratios : by name, of two times or rates taken in the same run: the figures that travel between machines.
    figures : by name with the unit in it (``import_s``). limits : upper bound of a figure or ratio, by its name.
    """

    name: str
    ratios: Mapping[str, float]
    figures: Mapping[str, float]
    limits: Mapping[str, float] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether every figure is under its limit."""
        return all((self.ratios | dict(self.figures))[name] < limit for name, limit in self.limits.items())


def medians(trials: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Return the median of each trial; the trials take turns, so that a busy moment is shared by all."""
    for trial in trials.values():
        trial()  # once for the caches, not counted
    seen: dict[str, list[float]] = {name: [] for name in trials}
    for _ in range(rounds):
        for name, trial in trials.items():
            seen[name].append(trial())
    return {name: statistics.median(values) for name, values in seen.items()}


def main(description: str, measure: Callable[[], Result], arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and exit 1 if a limit does not hold."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    as_json = parser.parse_args(arguments).json
    result = measure()
    if as_json:
        machine = {"python": platform.python_version(), "machine": platform.machine()}
        body = {"name": result.name, "ratios": result.ratios, "figures": result.figures, "limits": result.limits}
        print(json.dumps(body | {"holds": result.holds, "on": machine}, indent=2))
    else:
        for name, value in (dict(result.figures) | dict(result.ratios)).items():
            limit = f"   (must be under {result.limits[name]:g})" if name in result.limits else ""
            print(f"{name:>24}  {value:8.3f}{limit}")
    sys.exit(0 if result.holds else 1)
