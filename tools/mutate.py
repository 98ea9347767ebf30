# SPDX-License-Identifier: Apache-2.0
"""Put faults into a copy of the estimator, one at a time, and say which ones its nearest tests do not find.

.venv/bin/python -m tools.mutate [--seed N] [--most N] [--module NAME]

Exits 1 if a fault survives that `mutants.EQUAL` does not explain.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from hashlib import sha256
from pathlib import Path

from tools.mutants import EQUAL, MUTANTS, NEAREST

ROOT = Path(__file__).resolve().parents[1]
ESTIMATE = Path("server/frankly_server/estimate")
TESTS = "tests/frankly_server/estimate"
COPIED = ("server", "shared", "client_sdk", "tests", "bench", "examples", "docs", "pyproject.toml")
SECONDS = 300


def faults(seed: int) -> list[tuple[str, int]]:
    """Return every fault by module and place: one of each module in turn, in an order that the seed decides."""

    def key(module: str, place: int) -> bytes:
        return sha256(f"{seed} {module} {place}".encode()).digest()

    places = {module: sorted(range(len(MUTANTS[module])), key=partial(key, module)) for module in MUTANTS}
    longest = max(map(len, places.values()))
    return [(module, own[i]) for i in range(longest) for module, own in places.items() if i < len(own)]


def changed(module: str, place: int) -> str:
    """Return the source of a module with one fault. Raises ValueError if its text does not occur exactly once."""
    source = (ROOT / ESTIMATE / f"{module}.py").read_text()
    before, after = MUTANTS[module][place]
    if source.count(before) != 1:
        raise ValueError(f"{module} {place}: the text occurs {source.count(before)} times")
    return source.replace(before, after)


def is_found(copy: Path, module: str, place: int) -> bool:
    """Return whether the nearest tests fail with the fault; the copy is as before afterwards."""
    path = copy / ESTIMATE / f"{module}.py"
    original = path.read_text()
    tests = [f"{TESTS}/{name}.py" for name in NEAREST[module].split()]
    sources = os.pathsep.join(str(copy / name) for name in ("server", "shared", "client_sdk"))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    path.write_text(changed(module, place))
    try:
        done = subprocess.run(  # noqa: S603 - our own tests
            command, cwd=copy, check=False, capture_output=True, timeout=SECONDS,
            env={**os.environ, "PYTHONPATH": sources, "PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return True
    finally:
        path.write_text(original)
    if done.returncode not in (0, 1, 2):
        raise RuntimeError(done.stdout.decode()[-2000:])
    return done.returncode != 0


def main() -> None:
    """Read the command line, run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=19)
    parser.add_argument("--most", type=int, default=None, help="so many faults at most")
    parser.add_argument("--module", choices=sorted(MUTANTS), action="append")
    chosen = parser.parse_args()
    wanted = [each for each in faults(chosen.seed) if chosen.module is None or each[0] in chosen.module]
    survivors = 0
    with tempfile.TemporaryDirectory() as name:
        for part in COPIED:
            source, goal = ROOT / part, Path(name) / part
            shutil.copytree(source, goal) if source.is_dir() else shutil.copy(source, goal)
        for module, place in wanted[: chosen.most]:
            found = is_found(Path(name), module, place)
            words = "found" if found else f"survives: {EQUAL.get((module, place), 'NOT EXPLAINED')}"
            sys.stdout.write(f"{module} {place}: {words}\n")
            sys.stdout.flush()
            survivors += not found and (module, place) not in EQUAL
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()
