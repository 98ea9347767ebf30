# SPDX-License-Identifier: Apache-2.0
"""Running time by size: designs, verifications, estimates, and intake by server processes.

CPU time of designs by answers a and secrets c, of exact verification by size, of estimates by n and
k; reports per second by server processes on one PostgreSQL. `bench/_performance.py` draws the JSON.
"""

import argparse
import json
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from _growth import series
from _growth.series import Point
from _runner import load

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.postgres import PostgresServer, find_binaries

PANELS = ("design", "verify", "estimate", "intake")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--quick", action="store_true", help="a few small sizes")
    parser.add_argument(
        "--panel", choices=PANELS, action="append", help="only this panel; may be repeated"
    )
    parser.add_argument(
        "--rounds", type=int, default=3, help="designs per size; other work is run 7 times as often"
    )
    chosen = parser.parse_args()
    before = load()
    points = list(measure(chosen.panel or PANELS, quick=chosen.quick, rounds=chosen.rounds))
    if chosen.json:
        body: dict[str, object] = {
            "bench": "growth",
            "python": platform.python_version(),
            "machine": platform.machine(),
        }
        body |= {"load": [before, load()]}
        print(json.dumps(body | {"points": [asdict(point) for point in points]}, indent=1))
        return
    for point in points:
        print(f"{point.panel:>12}  {point.curve:>16}  {point.x:>12g}  {point.y:12.6g}")


def measure(
    panels: tuple[str, ...] | list[str], *, quick: bool, rounds: int = 3
) -> Iterator[Point]:
    """Yield the points of the chosen panels."""
    often = 3 if quick else 7 * rounds
    if "design" in panels:
        answers, secrets = ((4, 8), (2,)) if quick else ((4, 8, 16, 24, 32, 48, 64), (2, 4, 8))
        yield from series.designs(answers, secrets, 1 if quick else rounds)
    if "verify" in panels:
        yield from series.verifications((2, 8) if quick else (2, 4, 8, 16, 32, 64), often)
    if "estimate" in panels:
        numbers = [10**k for k in ((2, 4) if quick else range(2, 10))]
        yield from series.estimates(numbers, (2, 8) if quick else (2, 4, 8, 16, 32, 64), often)
    if "intake" in panels:
        server = PostgresServer(find_binaries(None))
        server.start()
        try:
            yield from series.processes(
                server.create, (1,) if quick else (1, 2, 3, 4), 40 if quick else 2000
            )
        finally:
            server.stop()


if __name__ == "__main__":
    main()
